//! Files that are read to their end: regular ones, which have one.
//!
//! A pipe would be waited for, and a device may have no end. Neither is a file of the kernel that only looks like a regular one:
//! `/proc/kmsg` waits for messages, and `/proc/kcore` is as large as memory can be.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// A file may grow by so many bytes while it is read, and one of the kernel has no more.
const SLACK: u64 = 16 << 20;
/// File systems whose files the kernel makes up when they are read, and of whose sizes none is to be believed: proc, sysfs, debugfs,
/// tracefs and securityfs.
const MADE_UP: [u64; 5] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x7363_6673];

/// A regular file that is open, and read no further than one can be.
#[derive(Debug)]
pub(crate) struct RegularFile {
    file: File,
    /// How many bytes more it may have.
    left: u64,
}

impl RegularFile {
    /// Opens a regular file, and nothing that has taken its place meanwhile.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).custom_flags(nonblocking).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        let size = if is_made_up(&file) { 0 } else { found.len() };
        Ok(Self { file, left: size.saturating_add(SLACK) })
    }

    /// All that it holds.
    pub(crate) fn read_whole(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes).map(|_| bytes)
    }
}

impl Read for RegularFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.file.read(buffer) {
            Ok(read) => {
                self.left = self.left.checked_sub(read as u64).ok_or_else(|| endless("it does not end"))?;
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(endless("it has no end, and whoever reads it waits for more"))
            }
            Err(error) => Err(error),
        }
    }
}

fn endless(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// Returns whether the kernel makes up what is in a file.
fn is_made_up(file: &File) -> bool {
    #[expect(
        clippy::cast_sign_loss,
        clippy::useless_conversion,
        reason = "the type differs between architectures"
    )]
    let kind = rustix::fs::fstatfs(file).map(|found| u64::from(found.f_type as u64) & 0xffff_ffff);
    kind.is_ok_and(|kind| MADE_UP.contains(&kind))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_the_kernel_makes_up_is_read_where_it_ends() {
        let bytes = RegularFile::open(Path::new("/proc/self/status")).unwrap().read_whole().unwrap();
        assert!(bytes.starts_with(b"Name:"));
    }

    #[test]
    fn what_has_no_end_is_an_error() {
        for path in ["/dev/zero", "/proc/kmsg", "/proc/kcore"] {
            // Not each machine has each, and not each user may open it.
            if File::open(path).is_ok() {
                let read = RegularFile::open(Path::new(path)).and_then(RegularFile::read_whole);
                assert!(read.is_err(), "{path}");
            }
        }
    }

    #[test]
    fn a_file_that_grows_a_little_while_it_is_read_is_read_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, "one ").unwrap();
        let file = RegularFile::open(&path).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b"two").unwrap();
        assert_eq!(file.read_whole().unwrap(), b"one two");
        let mut endless = RegularFile { left: 3, ..RegularFile::open(&path).unwrap() };
        assert!(endless.read_to_end(&mut Vec::new()).is_err());
    }
}
