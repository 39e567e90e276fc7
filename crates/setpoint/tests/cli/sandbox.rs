//! A directory with manifests, and the command run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use setpoint_testutils::wait::LIMIT;
use tempfile::TempDir;

pub(crate) struct Sandbox {
    dir: TempDir,
}

impl Sandbox {
    /// A directory with one manifest, of which the name does not depend on the directory's.
    pub(crate) fn new(manifest: &str) -> Self {
        let sandbox = Self { dir: tempfile::tempdir().unwrap() };
        sandbox.declare(manifest);
        sandbox
    }

    pub(crate) fn declare(&self, manifest: &str) {
        self.write("site.yaml", &format!("name: site\n{manifest}"));
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// All files, directories and links but for the manifest and the state, sorted.
    pub(crate) fn tree(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut todo = vec![PathBuf::new()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(self.root().join(&dir)).unwrap() {
                let entry = entry.unwrap();
                let path = dir.join(entry.file_name());
                if path == Path::new(".setpoint") || path == Path::new("site.yaml") {
                    continue;
                }
                if entry.file_type().unwrap().is_dir() {
                    todo.push(path.clone());
                }
                found.push(path.to_str().unwrap().to_owned());
            }
        }
        found.sort();
        found
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
        command.current_dir(self.root()).args(args).stdin(Stdio::null());
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
            command.env_remove(variable);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran(self.command(args).output().unwrap())
    }

    /// Runs a command that has to succeed, and returns what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code(), 0, "{args:?}: {}{}", ran.out(), ran.err());
        ran.out()
    }

    /// Runs a command that has to succeed with no more than so many MiB of memory.
    pub(crate) fn ok_within(&self, mebibytes: u64, args: &[&str]) -> String {
        let script = format!("ulimit -v {} && exec \"$0\" \"$@\"", mebibytes * 1024);
        let mut command = Command::new("sh");
        command.current_dir(self.root()).arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_setpoint")).args(args);
        let ran = Ran(command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(ran.0.status.code(), Some(0), "{args:?}: {}{}", ran.out(), ran.err());
        ran.out()
    }

    /// Starts a command whose output goes to a file.
    pub(crate) fn start(&self, args: &[&str]) -> Started {
        self.start_command(&mut self.command(args))
    }

    /// Starts what runs the command in some other way, with its output in the same file.
    pub(crate) fn start_command(&self, command: &mut Command) -> Started {
        let log = self.path(".log");
        let file = fs::File::create(&log).unwrap();
        let errors = file.try_clone().unwrap();
        let child = command.stdout(file).stderr(errors).spawn().unwrap();
        Started { child, log }
    }
}

/// What a command printed, without what differs from run to run.
pub(crate) struct Ran(Output);

impl Ran {
    pub(crate) fn code(&self) -> i32 {
        self.0.status.code().unwrap()
    }

    pub(crate) fn out(&self) -> String {
        timeless(std::str::from_utf8(&self.0.stdout).unwrap())
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }
}

/// A text without the times it took. Of single operations only those that took long are told.
pub(crate) fn timeless(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| match line.rsplit_once(" in ") {
        Some((before, time)) if is_duration(time.trim_end().trim_end_matches('.')) => {
            let is_operation = ["  + ", "  ~ ", "  - "].iter().any(|sign| line.starts_with(sign));
            let end = if time.ends_with(".\n") { ".\n" } else { "\n" };
            if is_operation { format!("{before}{end}") } else { format!("{before} in no time{end}") }
        }
        _ => line.to_owned(),
    });
    lines.collect()
}

fn is_duration(text: &str) -> bool {
    let number =
        text.strip_suffix(" ms").or(text.strip_suffix(" s")).map(|text| text.trim_start_matches("under "));
    number.is_some_and(|number| number.parse::<f64>().is_ok())
}

/// A process that ends with the test.
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command that runs; ended with the test.
pub(crate) struct Started {
    pub(crate) child: Child,
    log: PathBuf,
}

impl Started {
    /// Waits until the command has printed something.
    pub(crate) fn until(&self, wanted: &str) {
        let end = Instant::now() + LIMIT;
        while !self.log().contains(wanted) {
            assert!(Instant::now() < end, "it never printed {wanted:?}:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let process = i32::try_from(self.child.id()).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), signal).unwrap();
    }

    pub(crate) fn wait(&mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
