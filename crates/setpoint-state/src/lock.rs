//! Who may write: one process at a time, known by its id.
//!
//! What is locked is the directory itself, as anybody may remove a file in it and make another one. The file says who it is, and is
//! locked too, for where directories can't be, as on NFS.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::StateError;

/// How often a lock that is held is tried again.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// How long a lock that is held is waited for, where nobody asks for more.
#[derive(Clone, Copy, Debug)]
struct LockWait {
    /// A process that was killed needs a moment to end.
    to_end: Duration,
    /// What it was starting when it was killed holds its files until it has become a program of its own.
    to_start: Duration,
}

impl LockWait {
    const USUAL: Self = Self { to_end: Duration::from_millis(500), to_start: Duration::from_secs(5) };
}

/// The lock, for as long as it lives. The kernel lets go of it whatever way the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    directory: File,
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock, waiting for at most that long, and says whose it is.
    pub(crate) fn take(dir: &Path, command: &str, wait: Duration) -> Result<Self, StateError> {
        Self::take_with(dir, command, wait, LockWait::USUAL, || thread::sleep(TRY_EVERY))
    }

    /// As [`Lock::take`]; `pause` is what happens between two tries.
    fn take_with(
        dir: &Path,
        command: &str,
        wait: Duration,
        lock_wait: LockWait,
        mut pause: impl FnMut(),
    ) -> Result<Self, StateError> {
        let path = dir.join("lock");
        let failed = |path: &Path| StateError::file("lock", path.to_path_buf());
        let directory = File::open(dir).map_err(failed(dir))?;
        let begin = Instant::now();
        let mut file = loop {
            let is_held = match lock_directory(&directory) {
                Ok(()) => {
                    let opened = OpenOptions::new()
                        .read(true)
                        .write(true)
                        .create(true)
                        .truncate(false)
                        .mode(0o600)
                        .open(&path);
                    let file = opened.map_err(failed(&path))?;
                    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                        Ok(()) => break file,
                        held => held,
                    }
                }
                held => held,
            };
            match is_held {
                Err(Errno::WOULDBLOCK)
                    if begin.elapsed() < wait.max(lock_wait.to_end)
                        || begin.elapsed() < lock_wait.to_start && has_ended(&path) =>
                {
                    pause();
                }
                Err(Errno::WOULDBLOCK) => {
                    let holder = holder(&path).unwrap_or_else(|| "another process".to_owned());
                    return Err(StateError::Locked { dir: dir.to_path_buf(), holder });
                }
                held => held.map_err(|errno| failed(&path)(errno.into()))?,
            }
        };
        let text = format!("{} {command}\n", std::process::id());
        let written =
            file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
        written.map_err(failed(&path))?;
        Ok(Self { directory, path: dir.to_path_buf(), _file: file })
    }

    /// Refuses to go on where the directory that was locked is gone, or another one is in its place: somebody else may write there.
    pub(crate) fn check(&self) -> io::Result<()> {
        let number = |found: fs::Metadata| (found.dev(), found.ino());
        let locked = self.directory.metadata().map(number)?;
        match fs::metadata(&self.path).map(number) {
            Ok(found) if found == locked => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => {
                let why = "the directory was removed or replaced while it was in use";
                Err(io::Error::new(io::ErrorKind::NotFound, why))
            }
        }
    }
}

/// Locks a directory, where the file system can do that.
fn lock_directory(directory: &File) -> Result<(), Errno> {
    match flock(directory, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::BADF | Errno::INVAL | Errno::ISDIR | Errno::NOLCK | Errno::OPNOTSUPP) => Ok(()),
        locked => locked,
    }
}

/// Who wrote itself into the lock last, in words.
pub(crate) fn holder(path: &Path) -> Option<String> {
    let (pid, command) = written(path)?;
    Some(format!("process {pid} (setpoint {command})"))
}

/// Returns whether the process that wrote itself into the lock last is not there any more.
fn has_ended(path: &Path) -> bool {
    let pid = written(path).and_then(|(pid, _)| Pid::from_raw(pid.parse().ok()?));
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

fn written(path: &Path) -> Option<(String, String)> {
    let mut text = String::new();
    File::open(path).ok()?.take(4096).read_to_string(&mut text).ok()?;
    let (pid, command) = text.trim().split_once(' ')?;
    Some((pid.to_owned(), command.to_owned()))
}

/// Returns whether some process holds the lock of a directory now.
pub(crate) fn is_held(dir: &Path) -> bool {
    let is_locked = |path: &Path| {
        let shared = |file: File| flock(file, FlockOperation::NonBlockingLockShared);
        File::open(path).is_ok_and(|file| shared(file) == Err(Errno::WOULDBLOCK))
    };
    is_locked(dir) || is_locked(&dir.join("lock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_mins(5);

    /// Takes a lock that another holds until it was tried once. Returns what came of it, and how often it was held.
    fn take_while_held(holder: &str, wait: Duration, lock_wait: LockWait) -> (Result<(), StateError>, u32) {
        let dir = tempfile::tempdir().unwrap();
        let mut held = Some(Lock::take(dir.path(), "apply", NEVER).unwrap());
        std::fs::write(dir.path().join("lock"), holder).unwrap();
        let mut tries = 0;
        let taken = Lock::take_with(dir.path(), "apply", wait, lock_wait, || {
            tries += 1;
            drop(held.take());
        });
        (taken.map(drop), tries)
    }

    #[test]
    fn a_lock_that_is_let_go_within_a_moment_is_no_error() {
        let lock_wait = LockWait { to_end: LONG, to_start: NEVER };
        let (taken, tries) = take_while_held(&format!("{} apply\n", std::process::id()), NEVER, lock_wait);
        taken.unwrap();
        assert_eq!(tries, 1, "it was waited for");
    }

    #[test]
    fn a_lock_that_only_a_child_of_an_ended_process_holds_is_waited_for() {
        let lock_wait = LockWait { to_end: NEVER, to_start: LONG };
        // As if the process that wrote itself there were gone: no process has this number.
        let (taken, tries) = take_while_held("2147483647 apply\n", NEVER, lock_wait);
        taken.unwrap();
        assert_eq!(tries, 1, "it was waited for");
        let (taken, tries) = take_while_held(&format!("{} apply\n", std::process::id()), NEVER, lock_wait);
        assert!(matches!(taken, Err(StateError::Locked { .. })), "the process that holds it is there");
        assert_eq!(tries, 0);
    }

    #[test]
    fn a_lock_whose_file_was_removed_is_still_held() {
        let dir = tempfile::tempdir().unwrap();
        let held = Lock::take(dir.path(), "apply", NEVER).unwrap();
        fs::remove_file(dir.path().join("lock")).unwrap();
        assert!(is_held(dir.path()));
        let lock_wait = LockWait { to_end: NEVER, to_start: NEVER };
        let taken = Lock::take_with(dir.path(), "apply", NEVER, lock_wait, || {});
        assert!(matches!(taken, Err(StateError::Locked { .. })), "{taken:?}");
        assert!(held.check().is_ok());
        drop(held);
        assert!(!is_held(dir.path()));
        Lock::take(dir.path(), "apply", NEVER).unwrap();
    }

    #[test]
    fn a_directory_that_was_replaced_is_not_the_one_that_was_locked() {
        let around = tempfile::tempdir().unwrap();
        let (dir, away) = (around.path().join("state"), around.path().join("away"));
        fs::create_dir(&dir).unwrap();
        let held = Lock::take(&dir, "apply", NEVER).unwrap();
        fs::rename(&dir, &away).unwrap();
        assert!(held.check().is_err(), "it is gone");
        fs::create_dir(&dir).unwrap();
        assert!(held.check().is_err(), "it is another one");
        fs::remove_dir(&dir).unwrap();
        fs::rename(&away, &dir).unwrap();
        assert!(held.check().is_ok());
    }

    #[test]
    fn a_second_writer_that_may_wait_gets_its_turn() {
        let lock_wait = LockWait { to_end: NEVER, to_start: NEVER };
        let (taken, tries) = take_while_held(&format!("{} apply\n", std::process::id()), LONG, lock_wait);
        taken.unwrap();
        assert_eq!(tries, 1, "it was waited for");
    }
}
