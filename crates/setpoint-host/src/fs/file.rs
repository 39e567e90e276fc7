//! Regular files: read whole, written beside their place and renamed into it.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{Gid, Mode as Bits, OFlags, Uid};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::prepared::{Prepared, What};
use super::{
    Dir, FileType, Found, FsError, Number, Root, Temporary, Xattr, attributes, gone, is_within, other_type,
    refused, stat, temporary, writers::Writers,
};
use crate::item::{Content, RootPath};

/// A file to be written.
pub(crate) struct Write<'a> {
    pub(crate) path: &'a RootPath,
    /// The directory that one which is replaced has to be in; none for any.
    pub(crate) within: Option<Number>,
    pub(crate) content: &'a Content,
    /// None for the mode of the file that is replaced, or the default.
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    /// The mode of a new file.
    pub(crate) default_mode: u32,
    /// What it has besides the attributes of the file that is replaced.
    pub(crate) attributes: &'a [Xattr],
    /// The name it has until it is whole.
    pub(crate) temporary: &'a str,
    /// Is cancelled when nobody wants it any more.
    pub(crate) cancellation: &'a CancellationToken,
    /// Is asked when it is whole, right before it replaces something and right after that.
    pub(crate) last_look: LastLook<'a>,
}

/// Looks once more at what is about to be replaced, and at what was, at the path that it has then: it may have been written until
/// that instant, and writing a large file takes its time.
pub(crate) type LastLook<'a> = Option<&'a (dyn Fn(&RootPath) -> Result<(), FsError> + Sync)>;

/// A file that was read whole.
pub(crate) struct Whole {
    pub(crate) found: Found,
    /// None of one that is too large.
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) attributes: Vec<Xattr>,
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
    pub(crate) fn read(&self, path: &RootPath) -> Result<Option<(Found, Content)>, FsError> {
        let read = self.read_up_to(path, u64::MAX)?;
        Ok(read.and_then(|(found, content)| Some((found, content?))))
    }

    /// Reads a file with what is known of it; none if nothing is there. Of one with more bytes than this, the content is not read.
    pub(crate) fn read_up_to(
        &self,
        path: &RootPath,
        most: u64,
    ) -> Result<Option<(Found, Option<Content>)>, FsError> {
        let Some((found, file)) = self.open_file(path)? else { return Ok(None) };
        if found.size > most {
            return Ok(Some((found, None)));
        }
        let content = Content::observed(&file, found.size);
        content.map(|content| Some((found, Some(content)))).map_err(|error| unreadable(path, &error))
    }

    /// Reads a file of at most that many bytes whole; none if nothing is there, and of a larger one no bytes.
    pub(crate) fn read_bytes(&self, path: &RootPath, most: usize) -> Result<Option<Whole>, FsError> {
        let Some((found, file)) = self.open_file(path)? else { return Ok(None) };
        let attributes = attributes::of(&file).map_err(|lost| FsError::attribute(path, lost))?;
        let mut bytes = Vec::new();
        let read = file.take(most as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| unreadable(path, &error))?;
        Ok(Some(Whole { found, bytes: (bytes.len() <= most).then_some(bytes), attributes }))
    }

    /// Opens a regular file to read; none if nothing is there.
    fn open_file(&self, path: &RootPath) -> Result<Option<(Found, File)>, FsError> {
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
                let other = found.kind != FileType::File;
                return Err(if other { other_type(&dir, path, FileType::File) } else { failed(errno) });
            }
            Err(errno) => return Err(failed(errno)),
        };
        let found = Found::from(rustix::fs::fstat(&fd).map_err(failed)?);
        if found.kind != FileType::File {
            let (path, wanted, found) = (path.to_string(), FileType::File.words(), found.kind.words());
            return Err(FsError::OtherType { path, wanted, found });
        }
        Ok(Some((found, fd.into())))
    }

    /// Writes a file beside its place, where nothing is.
    pub(crate) fn write_new<'a>(&'a self, write: &Write<'a>) -> Result<Written<'a>, FsError> {
        let path = write.path;
        let dir = self.around(path).map_err(|errno| FsError::new("write", path.as_str(), errno))?;
        let failed = |errno| refused(&dir, "write", path, errno);
        let (fd, temporary) = open_temporary(&dir, write.temporary).map_err(failed)?;
        let fd = fill(fd, write)?;
        attributes::set(&fd, write.attributes).map_err(|lost| FsError::attribute(path, lost))?;
        set_access(&fd, Some(write.mode.unwrap_or(write.default_mode)), write.uid, write.gid)
            .map_err(failed)?;
        temporary.keep();
        Prepared::new(dir, path, write.temporary, What::File)
            .map(Written::New)
            .map_err(|errno| FsError::new("write", path.as_str(), errno))
    }

    /// Writes a file in the place of the one that is there, in one step. Where nothing is, it is new.
    pub(crate) fn write_over<'a>(&'a self, write: &Write<'a>) -> Result<Written<'a>, FsError> {
        let path = write.path;
        let dir = self.around(path).map_err(|errno| FsError::new("write", path.as_str(), errno))?;
        let failed = |errno| refused(&dir, "write", path, errno);
        let Some(old) = gone(stat(&dir, path.file_name())).map_err(failed)? else {
            return self.write_new(write);
        };
        is_within(&dir, write.within, path)?;
        if old.kind != FileType::File {
            return Err(other_type(&dir, path, FileType::File));
        }
        let (fd, temporary) = open_temporary(&dir, write.temporary).map_err(failed)?;
        let fd = fill(fd, write)?;
        attributes::keep(&dir, path.file_name(), &fd)
            .and_then(|()| attributes::set(&fd, write.attributes))
            .map_err(|lost| FsError::attribute(path, lost))?;
        // What is not managed stays as it was.
        let new = Found::from(rustix::fs::fstat(&fd).map_err(failed)?);
        let uid = write.uid.or_else(|| (old.uid != new.uid).then_some(old.uid));
        let gid = write.gid.or_else(|| (old.gid != new.gid).then_some(old.gid));
        set_access(&fd, Some(write.mode.unwrap_or(old.mode)), uid, gid).map_err(failed)?;
        let look = |at: &RootPath| {
            self.is_left_alone(at, path)?;
            write.last_look.map_or(Ok(()), |look| look(at))
        };
        // Most often nobody has touched it for long.
        let is_recent =
            gone(stat(&dir, path.file_name())).map_err(failed)?.is_some_and(Writers::may_write_to);
        let look: LastLook<'_> = if is_recent || write.last_look.is_some() { Some(&look) } else { None };
        temporary.replace(path, look, failed)?;
        Ok(Written::Replaced)
    }

    /// Refuses to replace a file that somebody writes to; it is at its path, or was there until now.
    fn is_left_alone(&self, at: &RootPath, path: &RootPath) -> Result<(), FsError> {
        match self.stat(at)? {
            Some(found) if self.writers.write_to(&found) => {
                Err(FsError::BeingWritten { path: path.to_string() })
            }
            _ => Ok(()),
        }
    }
}

/// Puts a copy of a file that has other names in its place: the others keep what it holds, and are not added to.
pub(super) fn separate(dir: &Dir<'_>, path: &RootPath, temporary: &str) -> Result<(), FsError> {
    let failed = |errno| refused(dir, "write", path, errno);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let old = rustix::fs::openat(dir, path.file_name(), flags, Bits::empty()).map_err(failed)?;
    let found = Found::from(rustix::fs::fstat(&old).map_err(failed)?);
    let (fd, temporary) = open_temporary(dir, temporary).map_err(failed)?;
    let mut new = File::from(fd);
    io::copy(&mut File::from(old), &mut new).map_err(|error| failed(errno(&error)))?;
    let fd = OwnedFd::from(new);
    attributes::keep(dir, path.file_name(), &fd).map_err(|lost| FsError::attribute(path, lost))?;
    set_access_of(&fd, found).map_err(failed)?;
    temporary.replace(path, None, failed)
}

/// Gives a new file the owner and the mode of another one.
fn set_access_of(fd: &OwnedFd, old: Found) -> Result<(), Errno> {
    let new = Found::from(rustix::fs::fstat(fd)?);
    let uid = (old.uid != new.uid).then_some(old.uid);
    let gid = (old.gid != new.gid).then_some(old.gid);
    set_access(fd, Some(old.mode), uid, gid)
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

/// Writes a content into a new file.
fn fill(fd: OwnedFd, write: &Write<'_>) -> Result<OwnedFd, FsError> {
    let mut file = File::from(fd);
    // What can't be written is told from what can't be read.
    let mut unwritten = None;
    let written = write.content.for_each_chunk(|chunk| {
        if write.cancellation.is_cancelled() {
            unwritten = Some(Errno::CANCELED);
            return Err(Errno::CANCELED.into());
        }
        file.write_all(chunk).inspect_err(|error| unwritten = Some(errno(error)))
    });
    let path = write.path.as_str();
    match (written, unwritten) {
        (Ok(()), _) => Ok(file.into()),
        (Err(_), Some(Errno::CANCELED)) => Err(FsError::Cancelled { path: path.to_owned() }),
        (Err(_), Some(errno)) => Err(FsError::new("write", path, errno)),
        (Err(error), None) => Err(FsError::NoContent { path: path.to_owned(), why: error.to_string() }),
    }
}

fn unreadable(path: &RootPath, error: &io::Error) -> FsError {
    FsError::new("read", path.as_str(), errno(error))
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(if error.kind() == io::ErrorKind::WriteZero {
        Errno::NOSPC
    } else {
        Errno::IO
    })
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
