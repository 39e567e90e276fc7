//! Regular files: read whole, written beside their place and renamed into it.

use std::os::fd::OwnedFd;

use rustix::fs::{Gid, Mode as Bits, OFlags, Uid};
use rustix::io::Errno;

use super::prepared::{Prepared, What};
use super::{Dir, Found, FsError, Kind, Root, Temporary, gone, other_type, stat, temporary};
use crate::item::RootPath;

/// A file to be written.
pub(crate) struct Write<'a> {
    pub(crate) path: &'a RootPath,
    pub(crate) bytes: &'a [u8],
    /// None for the mode of the file that is replaced, or the default.
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    /// The mode of a new file.
    pub(crate) default_mode: u32,
    /// The name it has until it is whole.
    pub(crate) temporary: &'a str,
}

/// What came of a file that was written.
pub(crate) enum Written<'a> {
    /// It has replaced the one that was there.
    Replaced,
    /// It is new, and not in its place yet.
    New(Prepared<'a>),
}

impl Root {
    /// Reads a file with what is known of it; none if nothing is there.
    pub(crate) fn read(&self, path: &RootPath) -> Result<Option<(Found, Vec<u8>)>, FsError> {
        let failed = |errno| FsError::new("read", path.as_str(), errno);
        // A pipe must not be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = match self.open_at(path.as_str(), flags) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno @ (Errno::LOOP | Errno::NXIO)) => {
                // A link in its place, a socket, or a link on the way that leads in circles.
                let dir = self.around(path).map_err(failed)?;
                let found = stat(&dir, path.file_name()).map_err(failed)?;
                let other = found.kind != Kind::File;
                return Err(if other { other_type(&dir, path, Kind::File) } else { failed(errno) });
            }
            Err(errno) => return Err(failed(errno)),
        };
        let found = Found::from(rustix::fs::fstat(&fd).map_err(failed)?);
        if found.kind != Kind::File {
            let (path, wanted, found) = (path.to_string(), Kind::File.words(), found.kind.words());
            return Err(FsError::OtherType { path, wanted, found });
        }
        let bytes = read_all(&fd, found.size).map_err(failed)?;
        Ok(Some((found, bytes)))
    }

    /// Writes a file beside its place, where nothing is.
    pub(crate) fn write_new<'a>(&'a self, write: &Write<'a>) -> Result<Written<'a>, FsError> {
        let path = write.path;
        let failed = |errno| FsError::new("write", path.as_str(), errno);
        let dir = self.around(path).map_err(failed)?;
        let (fd, temporary) = open_temporary(&dir, write.temporary).map_err(failed)?;
        fill(&fd, write.bytes).map_err(failed)?;
        set_access(&fd, Some(write.mode.unwrap_or(write.default_mode)), write.uid, write.gid)
            .map_err(failed)?;
        temporary.keep();
        Prepared::new(dir, path, write.temporary, What::File).map(Written::New).map_err(failed)
    }

    /// Writes a file in the place of the one that is there, in one step. Where nothing is, it is new.
    pub(crate) fn write_over<'a>(&'a self, write: &Write<'a>) -> Result<Written<'a>, FsError> {
        let path = write.path;
        let failed = |errno| FsError::new("write", path.as_str(), errno);
        let dir = self.around(path).map_err(failed)?;
        let Some(old) = gone(stat(&dir, path.file_name())).map_err(failed)? else {
            return self.write_new(write);
        };
        if old.kind != Kind::File {
            return Err(other_type(&dir, path, Kind::File));
        }
        let (fd, temporary) = open_temporary(&dir, write.temporary).map_err(failed)?;
        fill(&fd, write.bytes).map_err(failed)?;
        // What is not managed stays as it was.
        let new = Found::from(rustix::fs::fstat(&fd).map_err(failed)?);
        let uid = write.uid.or_else(|| (old.uid != new.uid).then_some(old.uid));
        let gid = write.gid.or_else(|| (old.gid != new.gid).then_some(old.gid));
        set_access(&fd, Some(write.mode.unwrap_or(old.mode)), uid, gid).map_err(failed)?;
        rustix::fs::renameat(&dir, temporary.as_str(), &dir, path.file_name()).map_err(failed)?;
        temporary.keep();
        Ok(Written::Replaced)
    }
}

/// Opens a new file with a temporary name; what an earlier run left under it is removed.
fn open_temporary<'a>(dir: &'a Dir<'a>, name: &'a str) -> Result<(OwnedFd, Temporary<'a>), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(dir, name, flags, Bits::from_raw_mode(0o600));
    let fd = match open() {
        Err(Errno::EXIST) => {
            temporary::remove(dir, name)?;
            open()?
        }
        opened => opened?,
    };
    Ok((fd, Temporary::new(dir, name)))
}

fn fill(fd: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn read_all(fd: &OwnedFd, size: u64) -> Result<Vec<u8>, Errno> {
    // One byte more than there should be: a short read then says that this was all.
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0).saturating_add(1)];
    let mut filled = 0;
    loop {
        let room = bytes.get_mut(filled..).unwrap_or_default();
        match rustix::io::read(fd, room) {
            Ok(0) => break,
            Ok(read) => {
                filled += read;
                if filled as u64 == size {
                    break;
                }
                if filled == bytes.len() {
                    bytes.resize(bytes.len() * 2, 0);
                }
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Sets owner and mode; the owner first, as changing it may clear bits of the mode.
pub(super) fn set_access(
    fd: &OwnedFd,
    mode: Option<u32>,
    uid: Option<u32>,
    gid: Option<u32>,
) -> Result<(), Errno> {
    if uid.is_some() || gid.is_some() {
        rustix::fs::fchown(fd, uid.map(Uid::from_raw), gid.map(Gid::from_raw))?;
    }
    mode.map_or(Ok(()), |mode| rustix::fs::fchmod(fd, Bits::from_raw_mode(mode)))
}
