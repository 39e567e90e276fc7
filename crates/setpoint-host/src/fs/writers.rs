//! Who has a file open to write: what they write after it was replaced is lost with the old one.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::{FileType, Found};

/// A file that somebody has open and has not written to for this long was left alone.
const LEFT_ALONE: Duration = Duration::from_secs(5);
/// Of the time that passes, so much is spent on looking at all processes: a tenth.
const SHARE: u32 = 10;
/// Who saves a file closes it at once. It is looked this often whether they have, with a pause before each look.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);
/// The bit of a descriptor's link in `/proc` that says that it may be written to.
const WRITABLE: u32 = 0o200;

/// The files that somebody has open to write, as far as this program may know: of the processes of other users it may not.
#[derive(Debug, Default)]
pub(super) struct Writers(Mutex<Option<OpenFiles>>);

/// What was open to write when all processes were looked at.
#[derive(Debug)]
struct OpenFiles {
    began: Instant,
    took: Duration,
    /// By device and number.
    files: HashSet<(u64, u64)>,
}

impl Writers {
    /// Returns whether somebody has a file open to write, and has written to it a moment ago.
    pub(super) fn write_to(&self, found: &Found) -> bool {
        if !Self::may_write_to(*found) || !self.have_open(found) {
            return false;
        }
        // It may be closed just now, or by a program that another one is about to become.
        (0..LOOKS).all(|_| {
            std::thread::sleep(PAUSE);
            OpenFiles::look().is_some_and(|open| open.have(found))
        })
    }

    /// Returns whether it is a file that was written to a moment ago, by whomever.
    pub(super) fn may_write_to(found: Found) -> bool {
        found.kind == FileType::File && is_recent(&found, SystemTime::now())
    }

    /// Many files may be replaced one after the other: then one look counts for some of them.
    fn have_open(&self, found: &Found) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_none_or(|open| open.began.elapsed() > open.took * (SHARE + 1)) {
            *last = OpenFiles::look();
        }
        last.as_ref().is_some_and(|open| open.have(found))
    }
}

/// Returns whether a file was written to a moment before a time.
fn is_recent(found: &Found, now: SystemTime) -> bool {
    let since =
        u64::try_from(found.modified).map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    // Where a time that is to come is on the file, nobody knows when it was written.
    since.is_ok_and(|since| {
        now.duration_since(since).map_or(true, |ago| ago < LEFT_ALONE + Duration::from_secs(1))
    })
}

impl OpenFiles {
    fn have(&self, found: &Found) -> bool {
        self.files.contains(&(found.dev, found.ino))
    }

    /// Looks at all processes; none where the system does not let anybody.
    fn look() -> Option<Self> {
        let began = Instant::now();
        let mut files = HashSet::new();
        let processes =
            rustix::fs::open("/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let processes = processes.ok()?;
        for process in numbered(&processes).ok()? {
            // It may have ended, or be another user's.
            let _ = add_written(&processes, &format!("{process}/fd"), &mut files);
        }
        Some(Self { began, took: began.elapsed(), files })
    }
}

/// Adds the regular files that a process has open to write.
fn add_written(processes: &OwnedFd, descriptors: &str, files: &mut HashSet<(u64, u64)>) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptors = openat(processes, descriptors, flags, Mode::empty())?;
    for descriptor in numbered(&descriptors)? {
        let link = statat(&descriptors, &descriptor, AtFlags::SYMLINK_NOFOLLOW);
        if !link.is_ok_and(|link| link.st_mode & WRITABLE != 0) {
            continue;
        }
        if let Ok(found) = statat(&descriptors, &descriptor, AtFlags::empty()).map(Found::from)
            && found.kind == FileType::File
        {
            files.insert((found.dev, found.ino));
        }
    }
    Ok(())
}

/// The entries of a directory of `/proc` that are numbers.
fn numbered(directory: impl AsFd) -> Result<Vec<String>, Errno> {
    let entries = Dir::read_from(directory)?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    Ok(names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_being_written_while_it_is_open_to_write_and_was_written_a_moment_ago() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let found = || Found::from(rustix::fs::stat(&path).unwrap());
        let writes = || Writers::default().write_to(&found());
        fs::write(&path, "x").unwrap();
        assert!(!writes(), "it is closed");
        let reader = File::open(&path).unwrap();
        assert!(!writes(), "it is only read");
        let mut writer = File::options().append(true).open(&path).unwrap();
        writer.write_all(b"y").unwrap();
        assert!(writes());
        writer.set_modified(SystemTime::now() - LEFT_ALONE * 2).unwrap();
        assert!(!writes(), "it was left alone");
        drop(reader);
    }
}
