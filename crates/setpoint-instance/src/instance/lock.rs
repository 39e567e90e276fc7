//! One writer: a lock on a file that says who holds it.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::Settings;

/// How long a lock is tried for.
const WITHIN: Duration = Duration::from_secs(2);

/// The right to change a configuration. It ends with the process at the latest.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// The folder beside a file, links followed, that holds what is known of it: however somebody names the file, it is the same.
pub(super) fn folder_of(file: &Path) -> PathBuf {
    let target = setpoint_files::target(file).unwrap_or_else(|_| file.to_owned());
    let target = target.canonicalize().unwrap_or(target);
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    target.with_file_name(format!(".{name}.setpoint"))
}

/// Takes the locks of all files of a configuration, so that nobody else writes one of them.
pub(super) fn take_all(settings: &Settings) -> Result<Vec<Lock>, LockError> {
    let mut folders = vec![settings.folder.clone()];
    folders.extend(settings.files.iter().map(|file| folder_of(file)));
    let real = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let mut seen = Vec::new();
    let mut locks = Vec::new();
    for folder in &folders {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| LockError::File { path: folder.clone(), source })?;
        let real = real(folder);
        if !seen.contains(&real) {
            locks.push(Lock::take(&real.join("lock"))?);
            seen.push(real);
        }
    }
    Ok(locks)
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{holder} has this configuration in hand (lock {})", path.display())]
    Held {
        /// The lock.
        path: PathBuf,
        /// Who has it.
        holder: String,
    },
    /// The file can't be made or locked.
    #[error("can't lock {}: {source}", path.display())]
    File {
        /// The lock.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Lock {
    /// Takes the lock, and writes down who has it.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::File { path: path.to_owned(), source };
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        match patiently(&file) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let _ = (&file).take(1000).read_to_string(&mut holder);
                let holder = if holder.trim().is_empty() { "another process" } else { holder.trim() };
                return Err(LockError::Held { path: path.to_owned(), holder: holder.to_owned() });
            }
            Err(error) => return Err(failed(error.into())),
        }
        let program = fs::read_link("/proc/self/exe").unwrap_or_default();
        let program = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "process {} ({program})", std::process::id()));
        written.map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// Locks a file. One that was just let go may be held for a moment still: by a program that its holder was starting.
fn patiently(file: &File) -> rustix::io::Result<()> {
    let until = Instant::now() + WITHIN;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(WITHIN / 100),
            locked => return locked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_told_who_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Lock::take(&path).unwrap();
        let error = Lock::take(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(first);
        Lock::take(&path).unwrap();
    }
}
