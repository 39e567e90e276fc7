//! New things: made whole under a temporary name, and only then brought to their place.

use rustix::fs::{AtFlags, Mode as Bits};
use rustix::io::Errno;

use super::number::{self, Number, number};
use super::{Attached, Dir, FileType, FsError, Root, attributes, exists, rename_new, temporary};
use crate::item::RootPath;

/// What is made.
#[derive(Clone, Copy)]
pub(super) enum What<'a> {
    File,
    Directory,
    Link(&'a str, &'a Attached),
}

impl What<'_> {
    fn kind(self) -> FileType {
        match self {
            Self::File => FileType::File,
            Self::Directory => FileType::Directory,
            Self::Link(..) => FileType::Symlink,
        }
    }

    /// Makes it under a name; a file is made elsewhere, with what it holds.
    fn make(self, dir: &Dir<'_>, name: &str) -> Result<(), Errno> {
        match self {
            Self::File => Err(Errno::OPNOTSUPP),
            Self::Directory => rustix::fs::mkdirat(dir, name, Bits::from_raw_mode(0o755)),
            Self::Link(target, _) => rustix::fs::symlinkat(target, dir, name),
        }
    }

    /// Gives what was made under a name what is to be attached to it. Where that can't be, it is removed again.
    fn attach(self, dir: &Dir<'_>, name: &str, path: &RootPath) -> Result<(), FsError> {
        let Self::Link(_, attached) = self else { return Ok(()) };
        attributes::attach_to_link(dir, name, attached).map_err(|lost| {
            // Where this fails too, a later run removes it.
            let _ = temporary::remove(dir, name);
            FsError::attribute(path, lost)
        })
    }
}

/// Something new that is whole, and under a temporary name: removed when dropped, unless it was brought to its place.
pub(crate) struct Prepared<'a> {
    dir: Dir<'a>,
    path: &'a RootPath,
    temporary: &'a str,
    what: What<'a>,
    number: Number,
    published: bool,
}

/// Whether something came to its place.
pub(crate) enum Published<'a> {
    /// It is there.
    Done,
    /// The file system can't rename it without replacing what may be there: it can only be made in its place.
    Unable(Prepared<'a>),
}

impl<'a> Prepared<'a> {
    pub(super) fn make(
        root: &'a Root,
        path: &'a RootPath,
        temporary: &'a str,
        what: What<'a>,
    ) -> Result<Self, FsError> {
        let failed = |errno| FsError::new("make", path.as_str(), errno);
        let dir = root.around(path).map_err(failed)?;
        // What a killed run left.
        temporary::remove(&dir, temporary).map_err(failed)?;
        what.make(&dir, temporary).map_err(failed)?;
        what.attach(&dir, temporary, path)?;
        Self::new(dir, path, temporary, what).map_err(failed)
    }

    /// Looks after what is under a temporary name.
    pub(super) fn new(
        dir: Dir<'a>,
        path: &'a RootPath,
        temporary: &'a str,
        what: What<'a>,
    ) -> Result<Self, Errno> {
        match number(&dir, temporary) {
            Ok(number) => Ok(Self { dir, path, temporary, what, number, published: false }),
            Err(errno) => {
                // Where this fails too, a later run removes it.
                let _ = temporary::remove(&dir, temporary);
                Err(errno)
            }
        }
    }

    /// Which one it is.
    pub(crate) fn number(&self) -> Number {
        self.number
    }

    /// Where it is to come.
    pub(crate) fn path(&self) -> &RootPath {
        self.path
    }

    /// The directory that it is known by: a directory by itself, anything else by the one that holds it. None where the file
    /// system does not keep such numbers.
    pub(crate) fn known_by(&self) -> Option<Number> {
        match self.what {
            What::Directory => number::kept(&self.dir, self.number),
            What::File | What::Link(..) => number::of_directory(&self.dir),
        }
    }

    /// Brings it to its place, where nothing is.
    pub(crate) fn publish(mut self) -> Result<Published<'a>, FsError> {
        let failed = |errno| FsError::new("make", self.path.as_str(), errno);
        match rename_new(&self.dir, self.temporary, &self.dir, self.path.file_name()) {
            Ok(()) => self.published = true,
            Err(Errno::EXIST | Errno::NOTEMPTY) => return Err(self.is_taken()),
            // A link does not replace anything either, and it is the same file.
            Err(Errno::INVAL) if matches!(self.what, What::File) => {
                let (dir, name) = (&self.dir, self.path.file_name());
                match rustix::fs::linkat(dir, self.temporary, dir, name, AtFlags::empty()) {
                    Err(Errno::EXIST) => return Err(self.is_taken()),
                    linked => linked.map_err(failed)?,
                }
            }
            Err(Errno::INVAL) => return Ok(Published::Unable(self)),
            Err(errno) => return Err(failed(errno)),
        }
        Ok(Published::Done)
    }

    /// Makes it in its place, where nothing is.
    pub(crate) fn make_in_place(self) -> Result<(), FsError> {
        match self.what.make(&self.dir, self.path.file_name()) {
            Err(Errno::EXIST) => Err(self.is_taken()),
            Err(errno) => Err(FsError::new("make", self.path.as_str(), errno)),
            Ok(()) => self.what.attach(&self.dir, self.path.file_name(), self.path),
        }
    }

    fn is_taken(&self) -> FsError {
        exists(&self.dir, self.path, self.what.kind())
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if !self.published {
            // Where this fails too, a later run removes it.
            let _ = temporary::remove(&self.dir, self.temporary);
        }
    }
}
