//! One process of a part, in a process group of its own, with its log.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::guard::{Guard, Registration};
use crate::wait;

/// How long a process may take to end when it is asked to or killed, and to stand still.
const GRACE: Duration = wait::LIMIT;
/// How much of a log is shown.
const SHOWN: u64 = 16 * 1024;

/// A running process and all that it starts.
///
/// It does not belong to an async runtime: a part that several tests share outlives each of theirs. When it is
/// dropped, the whole group is killed; if the test is failing, the end of its log is shown.
#[derive(Debug)]
pub struct Process {
    name: String,
    id: u32,
    log: PathBuf,
    ended: Arc<Ended>,
    registration: Option<Registration>,
}

/// Whether and how the process ended.
#[derive(Debug, Default)]
struct Ended {
    status: Mutex<Option<ExitStatus>>,
    changed: Condvar,
}

impl Process {
    /// Starts a command; what it prints is appended to the log.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Self {
        let open = || OpenOptions::new().create(true).append(true).open(log);
        let (output, errors) =
            (open().expect("the log can be opened"), open().expect("the log can be opened"));
        let guard = Guard::get();
        guard.mark(command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} can't be started: {error}"));
        let id = child.id();
        let registration = Some(guard.process_group(id));
        let ended = Arc::new(Ended::default());
        let reaper = Arc::clone(&ended);
        std::thread::spawn(move || {
            if let Ok(status) = child.wait() {
                *reaper.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
                reaper.changed.notify_all();
            }
        });
        Self { name: name.to_owned(), id, log: log.to_path_buf(), ended, registration }
    }

    /// What it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id, which is its group's too.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// How it ended, if it did.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        *self.ended.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the group with SIGKILL and waits until the process is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.wait(GRACE);
        self.registration = None;
    }

    /// Asks the group to end with SIGTERM, waits, and kills what is left.
    pub fn stop(&mut self) {
        self.signal(Signal::SIGCONT);
        self.signal(Signal::SIGTERM);
        self.wait(GRACE);
        self.kill();
    }

    /// Stops the group where it is, with SIGSTOP, and waits until every thread of it stands still.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
        let end = Instant::now() + GRACE;
        while moves(self.id) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns whether it stands still after it was paused: one that has ended does not.
    pub fn is_paused(&self) -> bool {
        fields(Path::new(&format!("/proc/{}", self.id))).is_some_and(|(state, _)| state == 'T')
    }

    /// Lets a paused group go on.
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Sends a signal to the process alone.
    pub fn signal_leader(&self, signal: Signal) {
        if self.exit_status().is_none() {
            let _ = nix::sys::signal::kill(self.pid(), signal);
        }
    }

    /// Sends a signal to the whole group, as long as the guard knows of it: its number may be another's later.
    pub fn signal(&self, signal: Signal) {
        if self.registration.is_some() {
            let _ = killpg(self.pid(), signal);
        }
    }

    /// The end of what it printed.
    pub fn log(&self) -> String {
        tail(&self.log)
    }

    /// Asks again and again until the answer is `Some`; panics with the log if it ends, or time runs out.
    pub async fn until<T>(&self, what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
        self.until_within(wait::LIMIT, what, ask).await
    }

    /// As [`Process::until`], with another limit.
    pub async fn until_within<T>(
        &self,
        limit: Duration,
        what: &str,
        mut ask: impl AsyncFnMut() -> Option<T>,
    ) -> T {
        let answer = wait::within(limit, async || match self.exit_status() {
            Some(status) => Some(Err(status)),
            None => ask().await.map(Ok),
        });
        match answer.await {
            Some(Ok(answer)) => answer,
            Some(Err(status)) => self.fail(&format!("waiting until {what}, it ended: {status}")),
            None => self.fail(&format!("waited {limit:?} in vain until {what}")),
        }
    }

    /// Panics with its log.
    pub fn fail(&self, why: &str) -> ! {
        panic!("{}: {why}\n--- the end of its log ---\n{}", self.name, self.log());
    }

    fn wait(&self, limit: Duration) {
        let status = self.ended.status.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.ended.changed.wait_timeout_while(status, limit, |status| status.is_none());
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.id).expect("a process id is a positive number"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {}: the end of its log ---\n{}", self.name, self.log());
        }
        self.kill();
    }
}

/// Whether a thread of a process group is neither stopped nor dead.
fn moves(group: u32) -> bool {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let of_group = entries(Path::new("/proc"))
        .filter(|process| fields(&process.path()).is_some_and(|(_, of)| of == group))
        .flat_map(|process| entries(&process.path().join("task")));
    of_group.filter_map(|thread| fields(&thread.path())).any(|(state, _)| !matches!(state, 'T' | 'Z' | 'X'))
}

/// The state and the process group of a process or thread, from its folder in `/proc`.
fn fields(path: &Path) -> Option<(char, u32)> {
    let stat = fs::read_to_string(path.join("stat")).ok()?;
    // The name in parentheses may hold anything; what follows its end does not.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(1)?.parse().ok()?))
}

/// The last part of a file, from the start of a line.
pub(crate) fn tail(path: &Path) -> String {
    let length = fs::metadata(path).map_or(0, |data| data.len());
    let mut text = Vec::new();
    if let Ok(mut file) = File::open(path) {
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(SHOWN)));
        let _ = file.read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    match text.split_once('\n') {
        Some((_, rest)) if length > SHOWN => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workdir::Workdir;

    fn shell(folder: &Workdir, script: &str) -> Process {
        Process::start("script", Command::new("sh").args(["-c", script]), &folder.path().join("log"))
    }

    fn eventually(holds: impl Fn() -> bool) {
        let started = Instant::now();
        while !holds() {
            assert!(started.elapsed() < wait::LIMIT, "it never came");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn state(id: u32) -> Option<char> {
        fields(Path::new(&format!("/proc/{id}"))).map(|(state, _)| state)
    }

    #[test]
    fn killing_takes_the_whole_group() {
        let folder = Workdir::new("process");
        let mut process = shell(&folder, "trap '' TERM; sleep 600 & echo $!; wait");
        eventually(|| process.log().ends_with('\n'));
        let inner: u32 = process.log().trim().parse().unwrap();
        assert!(state(inner).is_some());
        process.kill();
        eventually(|| matches!(state(inner), None | Some('Z')));
        assert!(process.exit_status().is_some());
    }

    #[test]
    fn stopping_lets_a_process_end_by_itself() {
        let folder = Workdir::new("process");
        let mut process =
            shell(&folder, "trap 'echo bye; exit 7' TERM; echo hello; while :; do sleep 0.01; done");
        eventually(|| process.log().contains("hello"));
        process.stop();
        assert_eq!(process.exit_status().unwrap().code(), Some(7));
        assert!(process.log().ends_with("bye\n"), "{}", process.log());
    }

    #[test]
    fn a_paused_process_stands_still_until_it_is_resumed() {
        let folder = Workdir::new("process");
        // One that starts nothing itself: a shell that is just starting something waits for it, uninterruptibly, and what
        // it starts may be the one that stands still.
        let process = shell(&folder, "echo begun; exec sleep 600");
        eventually(|| process.log().contains("begun"));
        process.pause();
        // A signal takes effect when the process gets to it, which may wait for a disk meanwhile.
        eventually(|| state(process.id()) == Some('T'));
        process.resume();
        eventually(|| state(process.id()) != Some('T'));
    }

    #[tokio::test]
    #[should_panic(expected = "waiting until it answers, it ended: exit status: 3")]
    async fn a_process_that_ends_is_not_waited_for() {
        let folder = Workdir::new("process");
        shell(&folder, "exit 3").until("it answers", async || None::<()>).await;
    }

    #[test]
    fn dropping_a_paused_process_ends_it() {
        let folder = Workdir::new("process");
        let process = shell(&folder, "exec sleep 600");
        process.pause();
        let id = process.id();
        drop(process);
        assert!(state(id).is_none());
    }
}
