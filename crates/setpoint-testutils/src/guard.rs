//! What a test started is gone when the test is, even when it is killed with SIGKILL.
//!
//! ```text
//! test process ──pipe──▶ guard: reads until the pipe's end, then
//!      │                    ends the process groups,
//!      └──register──▶ folder ──▶ removes the folders and network namespaces
//! ```
//!
//! The guard is a shell with a few lines of script, so that nothing has to be built or found to start it. It holds
//! the read end of a pipe whose only write end is the test's; the end of the test, however it comes, is the end of
//! the pipe. What there is to remove is registered as small files in a folder. Should the guard be killed too, the
//! next test that starts one sweeps up.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// The environment variable by which the guard knows a process that left its group.
const MARK: &str = "SETPOINT_GUARD";

/// `$1` is the register's folder.
const SCRIPT: &str = r#"
trap '' HUP INT TERM QUIT
[ "$2" = now ] || while read -r _; do :; done
for entry in "$1"/group-*; do
    [ -e "$entry" ] && kill -KILL "-${entry##*-}"
done
round=0
# A process that is just starting shows no environment yet: three looks in a row have to find nothing.
empty=0
while [ "$round" -lt 100 ] && [ "$empty" -lt 3 ]; do
    left=$(grep -lzxF "SETPOINT_GUARD=$1" /proc/[0-9]*/environ)
    if [ -n "$left" ]; then empty=0; else empty=$((empty + 1)); fi
    for process in $left; do
        process=${process#/proc/}
        kill -KILL "${process%/environ}"
    done
    round=$((round + 1))
    sleep 0.05
done
for entry in "$1"/namespace-*; do
    [ -e "$entry" ] || continue
    umount -l "/run/netns/${entry##*/namespace-}"
    rm -f "/run/netns/${entry##*/namespace-}"
done
for entry in "$1"/folder-*; do
    [ -e "$entry" ] && rm -rf -- "$(cat "$entry")"
done
rm -rf -- "$1"
"#;

/// The guard of this process.
#[derive(Debug)]
pub struct Guard {
    register: PathBuf,
    _shell: Child,
}

/// Something that the guard removes, unless this is dropped first.
#[derive(Debug)]
pub struct Registration {
    file: PathBuf,
}

impl Guard {
    /// The guard of this process, started when it is first needed.
    pub fn get() -> &'static Self {
        static GUARD: OnceLock<Guard> = OnceLock::new();
        GUARD.get_or_init(|| {
            sweep(&std::env::temp_dir());
            let name = format!("setpoint-guard-{}", std::process::id());
            let register = std::env::temp_dir().join(name);
            fs::create_dir_all(&register).expect("a folder in the temporary directory can be made");
            let shell = shell(&register, "wait", Stdio::piped()).expect("a shell can be started");
            Self { register, _shell: shell }
        })
    }

    /// Marks a command, so that the guard knows its processes.
    pub fn mark(&self, command: &mut Command) {
        command.env(MARK, &self.register);
    }

    /// Has a process group ended.
    pub fn process_group(&self, id: u32) -> Registration {
        self.register(&format!("group-{id}"), "")
    }

    /// Has a network namespace removed.
    pub fn namespace(&self, name: &str) -> Registration {
        self.register(&format!("namespace-{name}"), "")
    }

    /// Has a folder removed. It needs to be registered before it holds anything.
    pub fn folder(&self, path: &Path) -> Registration {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.register(&format!("folder-{name}"), &path.display().to_string())
    }

    fn register(&self, name: &str, content: &str) -> Registration {
        let file = self.register.join(name);
        fs::write(&file, content).expect("the guard's register can be written");
        Registration { file }
    }
}

/// A process group that a test did not start by [`Process`](crate::Process): it is ended when this is dropped, and when the test is
/// killed.
#[derive(Debug)]
pub struct OwnedGroup {
    id: u32,
    _registration: Registration,
}

impl OwnedGroup {
    /// Takes over a group by its number.
    pub fn new(id: u32) -> Self {
        Self { id, _registration: Guard::get().process_group(id) }
    }
}

impl Drop for OwnedGroup {
    fn drop(&mut self) {
        // Most are gone by then.
        let id = i32::try_from(self.id).unwrap_or_default();
        if id > 1 {
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// Starts the script: it waits for the end of its standard input, or does its work `now`.
fn shell(register: &Path, when: &str, input: Stdio) -> io::Result<Child> {
    Command::new("/bin/sh")
        .args(["-c", SCRIPT, "setpoint-guard"])
        .arg(register)
        .arg(when)
        .env_remove(MARK)
        .current_dir("/")
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Out of reach of what a terminal or a test runner sends to the test's own group.
        .process_group(0)
        .spawn()
}

/// Removes what is registered for processes that are gone and whose guard is gone too.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = name.strip_prefix("setpoint-guard-") else { continue };
        if Path::new("/proc").join(process).exists() || guarded(&entry.path()) {
            continue;
        }
        if let Ok(mut shell) = shell(&entry.path(), "now", Stdio::null()) {
            let _ = shell.wait();
        }
    }
}

/// Whether a guard is at work on a register.
fn guarded(register: &Path) -> bool {
    let register = register.display().to_string();
    fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok).any(|process| {
        fs::read(process.path().join("cmdline")).is_ok_and(|line| {
            let mut arguments = line.split(|byte| *byte == 0);
            arguments.any(|argument| argument == b"setpoint-guard")
                && arguments.next() == Some(register.as_bytes())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn eventually(what: &str, holds: impl Fn() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < crate::wait::LIMIT, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether a process is there and not just a zombie.
    fn alive(id: u32) -> bool {
        fs::read_to_string(format!("/proc/{id}/stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
    }

    #[test]
    fn the_end_of_the_pipe_ends_groups_and_strays_and_removes_folders() {
        let folder = tempfile::tempdir().unwrap();
        let register = folder.path().join("register");
        let data = folder.path().join("data");
        fs::create_dir(&register).unwrap();
        fs::create_dir(&data).unwrap();
        let mut guard = shell(&register, "wait", Stdio::piped()).unwrap();

        // A group that ignores polite signals, and a process that left its group.
        let mut group = Command::new("sh")
            .args(["-c", "trap '' TERM; sleep 600 & sleep 600"])
            .process_group(0)
            .spawn()
            .unwrap();
        let mut stray =
            Command::new("sleep").arg("600").env(MARK, &register).process_group(0).spawn().unwrap();
        fs::write(register.join(format!("group-{}", group.id())), "").unwrap();
        fs::write(register.join("folder-data"), data.display().to_string()).unwrap();
        assert!(alive(group.id()) && alive(stray.id()) && data.exists());

        drop(guard.stdin.take());
        eventually("the group is still there", || !alive(group.id()));
        eventually("the stray is still there", || !alive(stray.id()));
        eventually("the folder is still there", || !data.exists());
        eventually("the register is still there", || !register.exists());
        for child in [&mut guard, &mut group, &mut stray] {
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_register_without_a_process_and_without_a_guard_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        // No process has this number: it is above the kernel's highest limit.
        let register = folder.path().join("setpoint-guard-99999999");
        fs::create_dir(&register).unwrap();
        fs::write(register.join("folder-data"), data.display().to_string()).unwrap();
        let own = folder.path().join(format!("setpoint-guard-{}", std::process::id()));
        fs::create_dir(&own).unwrap();

        sweep(folder.path());
        assert!(!data.exists() && !register.exists());
        assert!(own.exists(), "the register of a live process is left alone");
    }

    #[test]
    fn a_register_whose_guard_is_at_work_is_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let register = folder.path().join("setpoint-guard-99999998");
        fs::create_dir(&register).unwrap();
        let mut guard = shell(&register, "wait", Stdio::piped()).unwrap();
        eventually("the guard does not start", || guarded(&register));
        sweep(folder.path());
        assert!(register.exists());
        drop(guard.stdin.take());
        guard.wait().unwrap();
        assert!(!register.exists());
    }
}
