//! Runs one test binary, never longer than a limit, in the environment of tests.
//!
//! ```text
//! cargo xtask test ──▶ the binary, in the process group of the watcher
//!        └────pipe───▶ watcher, a shell: ends its group at the limit, or when the pipe ends
//! ```
//!
//! Documentation tests are started by `rustdoc`, which is told to do so through `xtask run-test`. A binary that is ended has
//! its unfinished tests named and counted as failed, in the words of the test runner, so that they are counted as any
//! others. The watcher holds the read end of a pipe whose only write end is here: when this process is killed, the group
//! is ended too. It is there before the binary is, so that there is no instant at which a binary runs that nobody would
//! end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::environment::Environment;
use super::tally::{Tally, without_colour};
use crate::{console, exit};

/// How often is looked whether the binary has ended.
const TICK: Duration = Duration::from_millis(50);
/// How long a binary may take to list its tests.
const LIST_LIMIT: Duration = Duration::from_mins(1);
/// How long output may still come when the binary has ended: something it left behind may never stop printing.
const REST: Duration = Duration::from_secs(5);
/// A line before the end of the pipe says that the binary has ended by itself. Else the group ends, the watcher with it.
const WATCHER: &str = "trap '' HUP INT TERM QUIT\nread -r _ || kill -KILL \"-$$\"";

/// Arguments of `cargo xtask run-test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Ends the binary after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    limit: u64,
    /// Runs it so many times in a row.
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: u32,
    /// The environment of tests, as `cargo xtask test` wrote it; this one's if there is none.
    #[arg(long, value_name = "FILE")]
    environment: Option<PathBuf>,
    /// The test binary.
    binary: PathBuf,
    /// Its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// How test binaries are run.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    /// What tests see of the machine; all of it if there is none.
    pub(crate) environment: Option<Environment>,
    /// How long one binary may take.
    pub(crate) limit: Duration,
}

impl Runner {
    /// What makes cargo start test binaries through this program, each so many times in a row, as `cargo --config` takes it.
    pub(crate) fn setting(&self, program: &Path, repeat: u32) -> Result<String> {
        let (limit, repeat) = (self.limit.as_secs().to_string(), repeat.to_string());
        let mut words = vec![program.display().to_string()];
        words.extend(["run-test", "--limit", &limit, "--repeat", &repeat].map(str::to_owned));
        if let Some(environment) = &self.environment {
            words.extend(["--environment".to_owned(), environment.save()?.display().to_string()]);
        }
        // An array of JSON strings is one of TOML strings too.
        Ok(format!("target.'cfg(all())'.runner={}", serde_json::json!(words)))
    }

    /// Runs a binary in a folder, each line of its output passed on, and returns how it ended; one that had to be ended
    /// has none.
    pub(crate) fn run(
        &self,
        binary: &Path,
        folder: &Path,
        arguments: &[OsString],
        on_line: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Option<ExitStatus>> {
        let mut seen = Seen::default();
        let start = |more: &[&str]| {
            let mut command = Command::new(binary);
            if let Some(environment) = &self.environment {
                environment.apply(&mut command);
            }
            command.args(arguments).args(more).current_dir(folder);
            // Documentation tests that share a binary each get a process of their own only if they are told where it is,
            // and rustdoc tells them only when nothing stands in between.
            command.env("RUSTDOC_DOCTEST_BIN_PATH", binary).env("CARGO_MANIFEST_DIR", folder);
            command
        };
        let status = watch(&mut start(&[]), self.limit, |line| {
            seen.read_line(&String::from_utf8_lossy(line));
            on_line(line)
        })
        .with_context(|| format!("can't run {}", binary.display()))?;
        if status.is_none() {
            let listed = list(&mut start(&["--list", "--format=terse"]));
            let unfinished: Vec<_> =
                listed.into_iter().filter(|test| !seen.finished.contains(test)).collect();
            let mut text = Vec::new();
            seen.report(binary, self.limit, &unfinished, &mut text)?;
            for line in text.split_inclusive(|byte| *byte == b'\n') {
                on_line(line)?;
            }
        }
        Ok(status)
    }
}

/// Runs the binary, its output passed on, and exits as it does; run several times, as it did when it last failed.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let environment = args.environment.as_deref().map(Environment::load).transpose()?;
    let runner = Runner { environment, limit: Duration::from_secs(args.limit) };
    let folder = std::env::current_dir().context("can't find out which folder this is")?;
    let mut code = ExitCode::SUCCESS;
    for _ in 0..args.repeat {
        let status = runner.run(&args.binary, &folder, &args.arguments, &mut |line| {
            let mut shown = io::stdout();
            shown.write_all(line).and_then(|()| shown.flush())
        })?;
        let Some(status) = status else { return Ok(ExitCode::FAILURE) };
        if status.code().is_none() {
            eprintln!("{} ended by a {status}", args.binary.display());
        }
        if !status.success() {
            code = exit::like(status);
        }
    }
    Ok(code)
}

/// What a binary has said so far.
#[derive(Debug, Default)]
struct Seen {
    tally: Tally,
    finished: BTreeSet<String>,
}

impl Seen {
    /// Takes in `test NAME ... ok`, with what else may follow the name.
    fn read_line(&mut self, line: &str) {
        let line = without_colour(line);
        let Some((name, verdict)) =
            line.trim().strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... "))
        else {
            return;
        };
        match verdict.split([',', ' ']).next() {
            Some("ok") => self.tally.passed += 1,
            Some("FAILED") => self.tally.failed += 1,
            Some("ignored") => self.tally.skipped += 1,
            _ => return,
        }
        self.finished.insert(name.trim_end_matches(" - should panic").to_owned());
    }

    /// Says that the binary was ended, and which tests it owes, as the test runner would say that they failed.
    fn report(
        &self,
        binary: &Path,
        limit: Duration,
        unfinished: &[String],
        shown: &mut impl Write,
    ) -> io::Result<()> {
        let (binary, limit) = (binary.display(), console::human(limit));
        writeln!(shown, "\n{binary} ran longer than {limit} and was ended; what it had not finished:")?;
        for test in unfinished {
            writeln!(shown, "test {test} (unfinished when {binary} was ended after {limit}) ... FAILED")?;
        }
        if unfinished.is_empty() {
            writeln!(shown, "test {binary} (ended after {limit}) ... FAILED")?;
        }
        let Tally { passed, failed, skipped, .. } = &self.tally;
        let failed = failed + unfinished.len().max(1);
        writeln!(shown, "\ntest result: FAILED. {passed} passed; {failed} failed; {skipped} ignored\n")
    }
}

/// The tests that a binary lists; none if it can't tell.
fn list(command: &mut Command) -> Vec<String> {
    let mut names = Vec::new();
    let status = watch(command.stderr(Stdio::null()), LIST_LIMIT, |line| {
        let line = String::from_utf8_lossy(line);
        names.extend(line.trim().strip_suffix(": test").map(str::to_owned));
        Ok(())
    });
    if matches!(status, Ok(Some(status)) if status.success()) { names } else { Vec::new() }
}

/// Runs a command in the process group of a watcher, handing on each line of its output. At the limit the group is ended,
/// and there is no status.
fn watch(
    command: &mut Command,
    limit: Duration,
    mut on_line: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<Option<ExitStatus>> {
    let started = Instant::now();
    let watcher = Watcher::start()?;
    let group = watcher.group()?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(group).spawn()?;
    let (sender, lines) = mpsc::channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let Some(mut output) = output.map(BufReader::new) else { return };
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    let mut ended = None;
    loop {
        match (lines.recv_timeout(TICK), ended) {
            (Ok(line), _) => on_line(&line)?,
            (Err(RecvTimeoutError::Disconnected), Some((status, _))) => {
                watcher.dismiss();
                return Ok(Some(status));
            }
            (Err(RecvTimeoutError::Timeout), _) => {}
            (Err(RecvTimeoutError::Disconnected), None) => std::thread::sleep(TICK),
        }
        match ended {
            // Something that it left behind may hold its output open: that is not waited for.
            Some((status, at)) if Instant::now() > at + REST => {
                watcher.dismiss();
                return Ok(Some(status));
            }
            Some(_) => {}
            None => ended = child.try_wait()?.map(|status| (status, Instant::now())),
        }
        if ended.is_none() && started.elapsed() >= limit {
            watcher.end_group();
            child.wait()?;
            return Ok(None);
        }
    }
}

/// A shell that ends its process group when it is told to, or when this process is gone.
#[derive(Debug)]
pub(super) struct Watcher {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Watcher {
    /// Starts it in a process group of its own.
    pub(super) fn start() -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", WATCHER, "watcher"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Out of reach of what a terminal sends to this process and its group.
            .process_group(0)
            .spawn()?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }

    /// The process group that it ends.
    pub(super) fn group(&self) -> io::Result<i32> {
        i32::try_from(self.shell.id()).map_err(io::Error::other)
    }

    /// The binary has ended by itself. What it left in the group is not ours to end.
    pub(super) fn dismiss(mut self) {
        if let Some(pipe) = &mut self.pipe {
            let _ = pipe.write_all(b"ended\n");
        }
    }

    /// Ends the group.
    fn end_group(self) {
        drop(self);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::super::environment::Allowed;
    use super::*;

    fn runner(folder: &Path, limit: Duration) -> Runner {
        let environment = Environment::prepare(&Allowed::load().unwrap(), folder).unwrap();
        Runner { environment: Some(environment), limit }
    }

    /// Runs a script in the place of a test binary; what was shown, and whether it counts as a success.
    fn run(script: &str, limit: Duration) -> (String, bool) {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["-c", script, "tests"].map(OsString::from);
        let mut shown = Vec::new();
        let status = runner(folder.path(), limit)
            .run(Path::new("/bin/sh"), folder.path(), &arguments, &mut |line| shown.write_all(line))
            .unwrap();
        (String::from_utf8(shown).unwrap(), status.is_some_and(|status| status.success()))
    }

    fn tally(output: &str) -> Tally {
        let mut tally = Tally::default();
        output.lines().for_each(|line| tally.read_line(line));
        tally
    }

    const LONG: Duration = Duration::from_mins(5);

    #[test]
    fn a_binary_that_hangs_is_ended_with_all_it_started_and_its_unfinished_tests_are_named() {
        let script = r#"
            if [ "$1" = --list ]; then printf 'a::one: test\na::two: test\na::three: test\nb::four: test\n'; exit; fi
            echo 'running 4 tests'
            echo 'test a::one ... ok'
            echo 'test a::two - should panic ... ok'
            trap '' TERM
            sleep 600 & echo "started $!"
            wait
        "#;
        let started = Instant::now();
        let (output, success) = run(script, Duration::from_secs(8));
        assert!(started.elapsed() < Duration::from_mins(5));
        assert!(!success);
        assert!(output.contains("/bin/sh ran longer than 8.0 s and was ended"), "{output}");
        let tally = tally(&output);
        assert_eq!(tally.to_string(), "2 passed, 2 failed, 0 skipped", "{output}");
        assert!(tally.failures[0].starts_with("a::three (unfinished when /bin/sh"), "{output}");
        assert!(tally.failures[1].starts_with("b::four ("), "{output}");

        let sleeper = output.lines().find_map(|line| line.strip_prefix("started ")).unwrap();
        let there = || {
            let stat = std::fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while there() {
            assert!(started.elapsed() < Duration::from_mins(5), "what it started is still there");
            std::thread::sleep(TICK);
        }
    }

    #[test]
    fn a_binary_that_hangs_and_lists_no_tests_counts_as_one_failure() {
        let (output, success) = run("[ -z \"$1\" ] || exit 1; exec sleep 600", Duration::from_millis(300));
        assert!(!success);
        let tally = tally(&output);
        assert_eq!(tally.to_string(), "0 passed, 1 failed, 0 skipped", "{output}");
        assert!(tally.failures[0].starts_with("/bin/sh (ended after"), "{output}");
    }

    #[test]
    fn a_binary_that_ends_in_time_is_passed_on_as_it_is() {
        let (output, success) = run("echo 'test a ... ok'; printf 'no newline'; exit 0", LONG);
        assert_eq!((output.as_str(), success), ("test a ... ok\nno newline", true));
        let (output, success) = run("echo 'test a ... FAILED'; exit 101", LONG);
        assert_eq!((output.as_str(), success), ("test a ... FAILED\n", false));
        assert!(!run("kill -ABRT $$", LONG).1);
    }

    #[test]
    fn a_binary_that_is_run_several_times_has_failed_where_it_failed_once() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        let script = "echo >> \"$0\"; test \"$(wc -l < \"$0\")\" -ne 2";
        let arguments = vec!["-c".into(), script.into(), runs.clone().into_os_string()];
        let mut args = Args { limit: 300, repeat: 1, environment: None, binary: "/bin/sh".into(), arguments };
        assert_eq!(super::run(&args).unwrap(), ExitCode::SUCCESS);
        args.repeat = 3;
        assert_ne!(super::run(&args).unwrap(), ExitCode::SUCCESS, "the second one failed");
        assert_eq!(std::fs::read_to_string(&runs).unwrap().len(), 4, "and the others were run all the same");
    }

    #[test]
    fn what_a_binary_leaves_behind_is_not_waited_for() {
        let started = Instant::now();
        let (output, success) = run("sleep 120 2>&- & echo done", LONG);
        assert_eq!((output.as_str(), success), ("done\n", true));
        assert!(started.elapsed() < Duration::from_secs(100));
    }

    #[test]
    fn a_binary_that_closes_its_output_is_waited_for() {
        let (output, success) = run("exec >&-; sleep 0.5; exit 3", LONG);
        assert_eq!((output.as_str(), success), ("", false));
    }

    #[test]
    fn cargo_is_told_in_a_way_it_understands() {
        let folder = tempfile::tempdir().unwrap();
        let runner = runner(folder.path(), Duration::from_mins(15));
        let setting = runner.setting(Path::new("/odd \"place\"/xtask"), 3).unwrap();
        let setting: toml::Table = toml::from_str(&setting).unwrap();
        let words = setting["target"]["cfg(all())"]["runner"].as_array().unwrap();
        let words: Vec<_> = words.iter().map(|word| word.as_str().unwrap()).collect();
        let told = ["/odd \"place\"/xtask", "run-test", "--limit", "900", "--repeat", "3", "--environment"];
        assert_eq!(words[..7], told);
        assert!(Environment::load(Path::new(words[7])).is_ok());
    }
}
