//! The file system below the root, and nothing else.
//!
//! Every path is resolved by the kernel from the descriptor of the root, with `openat2` and
//! `RESOLVE_BENEATH`: a symbolic link that leads out is an error at the instant of its use, also one that was
//! put there a moment ago. Everything then happens relative to the descriptor of the directory.

mod attributes;
mod error;
mod file;
mod number;
mod prepared;
mod temporary;
mod writers;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, Mode as Bits, OFlags, RenameFlags, ResolveFlags, Stat, StatxAttributes, StatxFlags,
};
use rustix::io::Errno;

use crate::item::RootPath;
use number::number;
use prepared::What;
use writers::Writers;

pub(crate) use attributes::{Attached, Xattr};
pub use error::FsError;
pub(crate) use error::untouched;
pub(crate) use file::{LastLook, Whole, Write, Written};
pub(crate) use number::{Number, lasting_number, number_at};
pub(crate) use prepared::{Prepared, Published};
pub(crate) use temporary::{Temporary, short};

/// The descriptor of the root directory.
#[derive(Debug)]
pub(crate) struct Root {
    fd: OwnedFd,
    resolve: ResolveFlags,
    writers: Writers,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileType {
    File,
    Directory,
    Symlink,
    Other,
}

impl FileType {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Other => "something that is no file, directory or link",
        }
    }
}

/// What is known of a path without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: FileType,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    /// How many names it has.
    pub(crate) names: u64,
    /// When it was last written to, in seconds since 1970.
    pub(crate) modified: i64,
    /// When anything about it was last changed, its place included, in seconds since 1970.
    pub(crate) changed: i64,
}

impl From<Stat> for Found {
    fn from(stat: Stat) -> Self {
        use rustix::fs::FileType as Reported;
        let kind = match Reported::from_raw_mode(stat.st_mode) {
            Reported::RegularFile => FileType::File,
            Reported::Directory => FileType::Directory,
            Reported::Symlink => FileType::Symlink,
            _ => FileType::Other,
        };
        #[expect(clippy::useless_conversion, reason = "the types differ between architectures")]
        Self {
            kind,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            dev: stat.st_dev.into(),
            ino: stat.st_ino.into(),
            names: stat.st_nlink.into(),
            modified: stat.st_mtime.into(),
            changed: stat.st_ctime.into(),
        }
    }
}

/// The directory that a path is in.
pub(crate) enum Dir<'a> {
    Root(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Dir<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(fd) => *fd,
            Self::Below(fd) => fd.as_fd(),
        }
    }
}

/// How often a path is looked up again when the kernel reports that the tree changed meanwhile.
const TRIES: usize = 64;

impl Root {
    /// Opens the root.
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Bits::empty())?;
        // Nothing is outside of `/`: absolute links below it are as good as any.
        let within = if path == Path::new("/") { ResolveFlags::IN_ROOT } else { ResolveFlags::BENEATH };
        let resolve = within | ResolveFlags::NO_MAGICLINKS;
        let root = Self { fd, resolve, writers: Writers::default() };
        // Known before anything is done: old kernels, and what some containers forbid.
        root.open_at(".", OFlags::PATH)?;
        Ok(root)
    }

    /// Opens a path below the root; the last part of it is never followed.
    fn open_at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        let mut tries = 0;
        loop {
            match rustix::fs::openat2(&self.fd, path, flags, Bits::empty(), self.resolve) {
                // Something was renamed meanwhile, and the kernel can't be sure: it is asked again.
                Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => tries += 1,
                opened => return opened,
            }
        }
    }

    /// Opens the directory that a path is in.
    pub(crate) fn around(&self, path: &RootPath) -> Result<Dir<'_>, Errno> {
        match path.parent() {
            None => Ok(Dir::Root(self.fd.as_fd())),
            Some(parent) => self.open_at(parent, OFlags::PATH | OFlags::DIRECTORY).map(Dir::Below),
        }
    }

    /// What is at a path; none if nothing is.
    pub(crate) fn stat(&self, path: &RootPath) -> Result<Option<Found>, FsError> {
        let found = self.around(path).and_then(|dir| stat(&dir, path.file_name()));
        match found {
            Ok(found) => Ok(Some(found)),
            // Something else in the place of a directory hides what is in that: it is not known to be gone.
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FsError::new("look at", path.as_str(), errno)),
        }
    }

    /// Makes a directory under a temporary name, beside a path where nothing is.
    pub(crate) fn prepare_directory<'a>(
        &'a self,
        path: &'a RootPath,
        temporary: &'a str,
    ) -> Result<Prepared<'a>, FsError> {
        Prepared::make(self, path, temporary, What::Directory)
    }

    /// Makes a symbolic link under a temporary name, beside a path where nothing is.
    pub(crate) fn prepare_link<'a>(
        &'a self,
        path: &'a RootPath,
        target: &'a str,
        attached: &'a Attached,
        temporary: &'a str,
    ) -> Result<Prepared<'a>, FsError> {
        Prepared::make(self, path, temporary, What::Link(target, attached))
    }

    /// Which file, link or directory is at a path; none if nothing is.
    pub(crate) fn number(&self, path: &RootPath) -> Result<Option<Number>, FsError> {
        let failed = |errno| FsError::new("look at", path.as_str(), errno);
        let Some(dir) = gone(self.around(path)).map_err(failed)? else { return Ok(None) };
        gone(number(&dir, path.file_name())).map_err(failed)
    }

    /// Which directory a path leads to, links included; none if it leads to none.
    pub(crate) fn directory(&self, path: &str) -> Option<Number> {
        number::directory(&self.fd, path).ok().flatten()
    }

    /// Which directory a path leads to; none if it leads to none. Unlike [`Self::directory`], what can't be looked at, such as a
    /// link out of the root, is an error and not another directory.
    pub(crate) fn look_for_directory(&self, path: &str) -> Result<Option<Number>, FsError> {
        let found = if path.is_empty() {
            number::directory(&self.fd, path)
        } else {
            self.open_at(path, OFlags::PATH | OFlags::DIRECTORY).and_then(|dir| number::directory(&dir, ""))
        };
        match found {
            Ok(found) => Ok(found),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(FsError::new("look at", path, errno)),
        }
    }

    /// Returns whether a directory holds nothing; one that can't be read may.
    pub(crate) fn is_empty(&self, path: &str) -> bool {
        let opened = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY);
        let Ok(listed) = opened.and_then(rustix::fs::Dir::new) else { return true };
        let is_own = |name: &[u8]| name == b"." || name == b"..";
        listed.flatten().all(|entry| is_own(entry.file_name().to_bytes()))
    }

    /// Which directory a path is in; none if that is not there.
    pub(crate) fn holder(&self, path: &RootPath) -> Option<Number> {
        self.directory(path.parent().unwrap_or_default())
    }

    /// How many file systems are mounted on the way from the root to the directory that a path is in.
    pub(crate) fn mounts(&self, path: &RootPath) -> usize {
        let around = path.parent().unwrap_or_default();
        let ends = around.match_indices('/').map(|(end, _)| end).chain([around.len()]);
        let on_the_way = std::iter::once("").chain(ends.filter_map(|end| around.get(..end)));
        let mounts: Vec<u64> = on_the_way.map_while(|path| number::mount(&self.fd, path).ok()).collect();
        mounts.windows(2).filter(|pair| pair.first() != pair.last()).count()
    }

    /// The number of the directory that a path leads to, as it can be noted for good.
    pub(crate) fn lasting_directory(&self, path: &str) -> Option<Number> {
        if path.is_empty() {
            return number::of_directory(&self.fd);
        }
        self.open_at(path, OFlags::PATH | OFlags::DIRECTORY).ok().and_then(number::of_directory)
    }

    /// The number of the directory that a path is in, as it can be noted for good.
    pub(crate) fn lasting_holder(&self, path: &RootPath) -> Option<Number> {
        self.lasting_directory(path.parent().unwrap_or_default())
    }

    /// Removes an empty directory, if it is this one. Temporary files of this set in it don't count.
    pub(crate) fn remove_directory(
        &self,
        path: &RootPath,
        this: Option<Number>,
        ours: &str,
    ) -> Result<(), FsError> {
        let failed = |errno| FsError::new("remove", path.as_str(), errno);
        let Some(dir) = gone(self.around(path)).map_err(failed)? else { return Ok(()) };
        if let Some(this) = this {
            let Some(found) = gone(number(&dir, path.file_name())).map_err(failed)? else { return Ok(()) };
            let is_directory =
                stat(&dir, path.file_name()).is_ok_and(|found| found.kind == FileType::Directory);
            if is_directory && !this.is(found) {
                return Err(FsError::replaced(path));
            }
        }
        let remove = || rustix::fs::unlinkat(&dir, path.file_name(), AtFlags::REMOVEDIR);
        match remove() {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(Errno::NOTDIR) => return Err(other_type(&dir, path, FileType::Directory)),
            Err(errno) => return Err(refused(&dir, "remove", path, errno)),
        }
        let inside = self.open_at(path.as_str(), OFlags::RDONLY | OFlags::DIRECTORY).map_err(failed)?;
        let mut foreign = Vec::new();
        let listed = rustix::fs::Dir::read_from(&inside).map_err(failed)?;
        for entry in listed {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(ours) {
                temporary::remove(&inside, &name).map_err(failed)?;
            } else if name != "." && name != ".." {
                foreign.push(one_line(&name));
            }
        }
        foreign.sort();
        if foreign.is_empty() {
            return remove().map_err(failed);
        }
        let more = foreign.len().saturating_sub(5);
        let mut entries = foreign.get(..5).unwrap_or(&foreign).join(", ");
        if more > 0 {
            entries = format!("{entries}, and {more} more");
        }
        Err(FsError::NotEmpty { path: path.to_string(), entries })
    }

    /// Removes a file or a link, if it is of that kind, and in this directory.
    pub(crate) fn remove(
        &self,
        path: &RootPath,
        within: Option<Number>,
        kind: FileType,
    ) -> Result<(), FsError> {
        let failed = |errno| FsError::new("remove", path.as_str(), errno);
        let Some(dir) = gone(self.around(path)).map_err(failed)? else { return Ok(()) };
        let Some(found) = gone(stat(&dir, path.file_name())).map_err(failed)? else { return Ok(()) };
        is_within(&dir, within, path)?;
        if found.kind != kind {
            return Err(other_type(&dir, path, kind));
        }
        gone(rustix::fs::unlinkat(&dir, path.file_name(), AtFlags::empty()))
            .map_err(|errno| refused(&dir, "remove", path, errno))
            .map(drop)
    }

    /// Refuses a path where something is.
    pub(crate) fn is_free(&self, path: &RootPath) -> Result<(), FsError> {
        match self.stat(path)? {
            None => Ok(()),
            Some(found) => {
                let (path, what) = (path.to_string(), found.kind.words());
                Err(FsError::Exists { path, what, adoptable: false })
            }
        }
    }

    /// Moves something to where nothing is, if it is in this directory.
    pub(crate) fn rename(
        &self,
        from: &RootPath,
        within: Option<Number>,
        to: &RootPath,
        kind: FileType,
    ) -> Result<(), FsError> {
        let failed = |errno| FsError::new("move", from.as_str(), errno);
        let source = self.around(from).map_err(failed)?;
        is_within(&source, within, from)?;
        let target =
            self.around(to).map_err(|errno| FsError::new("move something to", to.as_str(), errno))?;
        let found = stat(&source, from.file_name()).map_err(failed)?;
        if found.kind != kind {
            return Err(other_type(&source, from, kind));
        }
        match rename_new(&source, from.file_name(), &target, to.file_name()) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => Err(exists(&target, to, FileType::Other)),
            Err(Errno::XDEV) => Err(FsError::OtherFileSystem { from: from.to_string(), to: to.to_string() }),
            renamed => renamed.map_err(|errno| refused(&source, "move", from, errno)),
        }
    }

    /// What a symbolic link points to; none if nothing is there.
    pub(crate) fn read_link(&self, path: &RootPath) -> Result<Option<String>, FsError> {
        let failed = |errno| FsError::new("read", path.as_str(), errno);
        let Some(dir) = gone(self.around(path)).map_err(failed)? else { return Ok(None) };
        match rustix::fs::readlinkat(&dir, path.file_name(), Vec::new()) {
            Ok(target) => Ok(Some(target.to_string_lossy().into_owned())),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(Errno::INVAL) => Err(other_type(&dir, path, FileType::Symlink)),
            Err(errno) => Err(failed(errno)),
        }
    }

    /// What a symbolic link points to, and what is attached to it, to be put back as it is; none if nothing is there.
    pub(crate) fn read_link_whole(&self, path: &RootPath) -> Result<Option<(String, Attached)>, FsError> {
        let Some(target) = self.read_link(path)? else { return Ok(None) };
        // What is not text was replaced by this.
        if target.contains(char::REPLACEMENT_CHARACTER) {
            return Err(FsError::NotText { path: path.to_string() });
        }
        let dir = self.around(path).map_err(|errno| FsError::new("read", path.as_str(), errno))?;
        let attached = attributes::of_link(&dir, path.file_name());
        attached.map(|attached| Some((target, attached))).map_err(|lost| FsError::attribute(path, lost))
    }

    /// Points a symbolic link elsewhere, in one step, if it is in this directory. What is attached to it stays, but for what is given.
    pub(crate) fn replace_link(
        &self,
        path: &RootPath,
        within: Option<Number>,
        target: &str,
        attached: &Attached,
        temporary: &str,
        last_look: LastLook<'_>,
    ) -> Result<(), FsError> {
        let failed = |errno| FsError::new("change", path.as_str(), errno);
        let dir = self.around(path).map_err(failed)?;
        let found = stat(&dir, path.file_name()).map_err(failed)?;
        is_within(&dir, within, path)?;
        if found.kind != FileType::Symlink {
            return Err(other_type(&dir, path, FileType::Symlink));
        }
        gone(rustix::fs::unlinkat(&dir, temporary, AtFlags::empty())).map_err(failed)?;
        rustix::fs::symlinkat(target, &dir, temporary).map_err(failed)?;
        let new = Temporary::new(&dir, temporary);
        attributes::of_link(&dir, path.file_name())
            .map(|was| Attached { owner: attached.owner.or(was.owner), ..was })
            .and_then(|was| attributes::attach_to_link(&dir, temporary, &was))
            .and_then(|()| attributes::attach_to_link(&dir, temporary, attached))
            .map_err(|lost| FsError::attribute(path, lost))?;
        new.replace(path, last_look, failed)
    }

    /// Changes the mode and the owner of what is at a path, if it is of that kind.
    pub(crate) fn set_access(
        &self,
        path: &RootPath,
        kind: FileType,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> Result<(), FsError> {
        let failed = |errno| FsError::new("change the permissions of", path.as_str(), errno);
        if mode.is_none() && uid.is_none() && gid.is_none() {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = self.open_at(path.as_str(), flags).map_err(failed)?;
        let found = Found::from(rustix::fs::fstat(&fd).map_err(failed)?);
        if found.kind != kind {
            let (path, wanted, found) = (path.to_string(), kind.words(), found.kind.words());
            return Err(FsError::OtherType { path, wanted, found });
        }
        let set = file::set_access(&fd, mode, uid, gid);
        set.map_err(|errno| match self.around(path) {
            Ok(dir) => refused(&dir, "change the permissions of", path, errno),
            Err(_) => failed(errno),
        })
    }

    /// Opens a directory to run in.
    pub(crate) fn open_directory(&self, path: &RootPath) -> Result<OwnedFd, FsError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        self.open_at(path.as_str(), flags).map_err(|errno| match errno {
            Errno::NOENT => FsError::Failed { verb: "run in", path: path.to_string(), errno },
            errno => FsError::new("run in", path.as_str(), errno),
        })
    }

    /// Opens a file to add to; it is made if it is not there. One with other names is copied first, as what is added would be in all
    /// of them; returns whether it was.
    pub(crate) fn open_log(
        &self,
        path: &RootPath,
        temporary: &str,
    ) -> Result<(std::fs::File, bool), FsError> {
        let failed = |errno| FsError::new("open", path.as_str(), errno);
        let dir = self.around(path).map_err(failed)?;
        let open = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let (flags, mode) = (flags | OFlags::NONBLOCK, Bits::from_raw_mode(0o640));
            let fd = rustix::fs::openat(&dir, path.file_name(), flags, mode).map_err(failed)?;
            let found = Found::from(rustix::fs::fstat(&fd).map_err(failed)?);
            if found.kind == FileType::File {
                Ok((fd, found))
            } else {
                Err(other_type(&dir, path, FileType::File))
            }
        };
        let (fd, found) = open()?;
        if found.names < 2 {
            return Ok((fd.into(), false));
        }
        file::separate(&dir, path, temporary)?;
        open().map(|(fd, _)| (fd.into(), true))
    }

    /// Waits until what is at a path is on the disk, with its name.
    pub(crate) fn sync(&self, path: &RootPath) -> Result<(), FsError> {
        let failed = |errno| FsError::new("write", path.as_str(), errno);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let (dir, of_directory) = (self.around(path).map_err(failed)?, OFlags::RDONLY | OFlags::DIRECTORY);
        match self.open_at(path.as_str(), flags) {
            Ok(there) => rustix::fs::fsync(there).map_err(failed)?,
            // A link is nothing but its name. What may not be opened was not written.
            Err(Errno::LOOP | Errno::NOENT | Errno::ACCESS) => {}
            Err(errno) => return Err(failed(errno)),
        }
        match rustix::fs::openat(&dir, ".", of_directory | OFlags::CLOEXEC, Bits::empty()) {
            // Where nobody may look, the system decides.
            Err(Errno::ACCESS) => Ok(()),
            dir => dir.and_then(rustix::fs::fsync).map_err(failed),
        }
    }

    /// Returns whether something temporary is beside a path.
    pub(crate) fn has_temporary(&self, path: &RootPath, name: &str) -> Result<bool, FsError> {
        self.stat(&path.beside(name)).map(|found| found.is_some())
    }

    /// Gives something temporary beside a path a name that nobody removes, and returns where it is then.
    pub(crate) fn save_temporary(&self, path: &RootPath, name: &str) -> Result<RootPath, FsError> {
        let failed = |errno| FsError::new("rename what is beside", path.as_str(), errno);
        let dir = self.around(path).map_err(failed)?;
        temporary::save(&dir, name, path.file_name()).map(|saved| path.beside(&saved)).map_err(failed)
    }

    /// Removes something temporary beside a path. Returns whether there was one.
    pub(crate) fn remove_temporary(&self, path: &RootPath, name: &str) -> Result<bool, FsError> {
        let at = path.beside(name);
        let failed = |errno| FsError::new("remove", at.as_str(), errno);
        let Some(dir) = gone(self.around(path)).map_err(failed)? else { return Ok(false) };
        temporary::remove(&dir, name).map_err(|errno| refused(&dir, "remove", &at, errno))
    }
}

/// A name that somebody gave, as it may stand in a line: its control characters are escapes.
fn one_line(name: &str) -> String {
    let shown = |character: char| {
        let is_control = character.is_control();
        let escape = is_control.then(|| character.escape_default()).into_iter().flatten();
        escape.chain((!is_control).then_some(character))
    };
    name.chars().flat_map(shown).collect()
}

/// Takes what is not there for nothing instead of an error.
fn gone<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn stat(dir: &Dir<'_>, name: &str) -> Result<Found, Errno> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(Found::from)
}

/// Says what the system's error means for what is in a directory, or was to come there.
fn refused(dir: &Dir<'_>, verb: &'static str, path: &RootPath, errno: Errno) -> FsError {
    let marks = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
    let is_marked = |name: &str, flags: AtFlags| {
        rustix::fs::statx(dir, name, flags, StatxFlags::empty())
            .is_ok_and(|found| found.stx_attributes.intersects(marks))
    };
    let around = || path.parent().map_or_else(|| "the root".to_owned(), str::to_owned);
    let what = match errno {
        Errno::PERM if is_marked(path.file_name(), AtFlags::SYMLINK_NOFOLLOW) => path.to_string(),
        Errno::PERM if is_marked("", AtFlags::EMPTY_PATH) => around(),
        errno => return FsError::new(verb, path.as_str(), errno),
    };
    FsError::Immutable { verb, path: path.to_string(), what }
}

/// Refuses what is in another directory than it should be.
fn is_within(dir: &Dir<'_>, within: Option<Number>, path: &RootPath) -> Result<(), FsError> {
    let Some(within) = within else { return Ok(()) };
    let failed = |errno| FsError::new("look at", path.as_str(), errno);
    match number::directory(dir, "").map_err(failed)? {
        Some(found) if within.is(found) => Ok(()),
        _ => Err(FsError::elsewhere(path)),
    }
}

fn other_type(dir: &Dir<'_>, path: &RootPath, wanted: FileType) -> FsError {
    let found = stat(dir, path.file_name()).map_or("something else", |found| found.kind.words());
    FsError::OtherType { path: path.to_string(), wanted: wanted.words(), found }
}

fn exists(dir: &Dir<'_>, path: &RootPath, wanted: FileType) -> FsError {
    let found = stat(dir, path.file_name()).ok().map(|found| found.kind);
    let what = found.map_or("something", FileType::words);
    FsError::Exists { path: path.to_string(), what, adoptable: found == Some(wanted) }
}

/// Renames without ever replacing anything.
fn rename_new(from: &Dir<'_>, name: &str, to: &Dir<'_>, new_name: &str) -> Result<(), Errno> {
    rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE)
}
