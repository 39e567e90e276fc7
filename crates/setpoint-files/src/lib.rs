//! Writes a file so that it is there whole or not at all.
//!
//! ```text
//!  bytes ──▶ Draft: beside its place, owner and mode of what it replaces, on disk ──place──▶ rename, folder on disk
//! ```
//!
//! A draft stands in the folder of the file that it replaces, so that HAProxy can check it with paths that are relative to
//! that folder. A link stays a link: what it points to is replaced. A file that is a mount of its own, as of a container,
//! can't be renamed over; [`Draft::prepare`] says so before anything is written.
//!
//! [`replace`] writes such a file where it is, and one that has several names (hard links): a new file would leave the other
//! names with the old content. [`overwrite`] does that, after the room for it was reserved.
//!
//! A process that is killed leaves its drafts behind. They stay in nobody's way; [`remove_drafts`] removes them.
//!
//! ```
//! let folder = std::env::temp_dir();
//! let file = folder.join(format!("setpoint-files-{}", std::process::id()));
//! setpoint_files::replace(&file, b"new")?;
//! assert_eq!(std::fs::read(&file)?, b"new");
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, FallocateFlags, StatxAttributes, StatxFlags, fallocate, statx};
use rustix::io::Errno;

/// The mode of a file that replaces none: configurations hold passwords.
const MODE: u32 = 0o600;

/// What stands between the name of a file and the number of its draft.
const DRAFT: &str = ".draft-";

/// How many drafts this process has made.
static DRAFTS: AtomicU64 = AtomicU64::new(0);

/// What is about to take the place of a file.
#[derive(Debug)]
pub struct Draft {
    /// Where it is now.
    path: PathBuf,
    /// The place it takes, with all links followed.
    place: PathBuf,
    /// Whether it has taken its place, or is somebody else's to place.
    placed: bool,
}

/// Why a file can't be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A step failed.
    #[error("can't {step} {}: {source}", path.display())]
    Step {
        /// What was to be done.
        step: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something is mounted at its very place.
    #[error("{} is a mount of its own, and can't be replaced as a whole", .0.display())]
    Mounted(PathBuf),
}

fn step(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    move |source| WriteError::Step { step, path: path.to_owned(), source }
}

impl Draft {
    /// Writes bytes beside the file that they are going to replace, and makes sure that they are on disk.
    ///
    /// What is dropped without having been placed is removed.
    pub fn prepare(file: &Path, bytes: &[u8]) -> Result<Self, WriteError> {
        let place = target(file).map_err(step("find", file))?;
        let old = match fs::metadata(&place) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(step("look at", &place)(error)),
        };
        if old.is_some() && is_mount(&place).map_err(step("look at", &place))? {
            return Err(WriteError::Mounted(place));
        }
        let (path, mut new) = create_beside(&place)?;
        let draft = Self { path, place, placed: false };
        let at = |what| step(what, &draft.path);
        let mode = old.as_ref().map_or(MODE, |old| old.mode() & 0o7777);
        new.write_all(bytes).map_err(at("write"))?;
        if let Some(old) = &old {
            let made = new.metadata().map_err(at("look at"))?;
            if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
                fchown(&new, Some(old.uid()), Some(old.gid())).map_err(at("give its owner to"))?;
            }
        }
        new.set_permissions(Permissions::from_mode(mode)).map_err(at("set the mode of"))?;
        new.sync_all().map_err(at("write to disk"))?;
        Ok(draft)
    }

    /// Where it is until it is placed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether it takes a place, links followed.
    pub fn place_is(&self, place: &Path) -> bool {
        self.place == place
    }

    /// Puts it into its place, at once for everybody who looks, and makes sure that it stays there.
    pub fn place(self) -> Result<(), WriteError> {
        let place = self.rename()?;
        sync_folder(&place).map_err(step("write to disk the folder of", &place))
    }

    /// Puts it into its place, at once for everybody who looks. A machine that stops may forget it until [`sync_folder`] has been
    /// called with the place, which is returned.
    pub fn rename(mut self) -> Result<PathBuf, WriteError> {
        fs::rename(&self.path, &self.place).map_err(step("replace", &self.place))?;
        self.placed = true;
        Ok(std::mem::take(&mut self.place))
    }

    /// Leaves it where it is, to be placed by who knows of it.
    pub fn keep(mut self) {
        self.placed = true;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.placed {
            // Where it can't be removed, its name says what it is, and the next draft gets another.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Replaces a file. Whoever reads it finds the old one or the new one, never a part; only a file that has several names, or is
/// a mount of its own, is written where it is.
///
/// # Errors
///
/// The step that failed, and the file that it was about.
pub fn replace(file: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let place = target(file).map_err(step("find", file))?;
    let stays = match fs::metadata(&place) {
        Ok(old) => old.nlink() > 1 || is_mount(&place).map_err(step("look at", &place))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(step("look at", &place)(error)),
    };
    if !stays {
        return Draft::prepare(&place, bytes)?.place();
    }
    overwrite(&place, bytes)
}

/// Writes bytes into a file where it is. If there is no room for them, nothing has changed; whoever reads it meanwhile may find
/// a part.
///
/// # Errors
///
/// The step that failed, and the file that it was about.
pub fn overwrite(file: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let at = |what| step(what, file);
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut held = File::options().write(true).open(file).map_err(at("open"))?;
    reserve_in(&held, length).map_err(at("reserve room in"))?;
    held.write_all(bytes).map_err(at("write"))?;
    held.set_len(length).map_err(at("write"))?;
    held.sync_all().map_err(at("write to disk"))
}

/// Makes sure that a file can hold so many bytes, and changes nothing else of it.
///
/// # Errors
///
/// The step that failed, such as that the disk is full.
pub fn reserve(file: &Path, length: usize) -> Result<(), WriteError> {
    let held = File::options().write(true).open(file).map_err(step("open", file))?;
    reserve_in(&held, u64::try_from(length).unwrap_or(u64::MAX)).map_err(step("reserve room in", file))
}

fn reserve_in(file: &File, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, length) {
        // A file system that can't reserve says so when it is written to.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes the drafts of a file that processes have left behind. Only who knows that nobody else writes the file may do so.
///
/// # Errors
///
/// The folder can't be read, or a draft can't be removed.
pub fn remove_drafts(file: &Path) -> io::Result<()> {
    let place = target(file)?;
    let beginning = draft_name(&place);
    remove_if(place.parent().unwrap_or(Path::new("/")), |name| {
        name.strip_prefix(&beginning).is_some_and(is_number)
    })
}

/// Removes the drafts of all files in a folder. Only who knows that nobody else writes files there may do so.
///
/// # Errors
///
/// The folder can't be read, or a draft can't be removed.
pub fn remove_drafts_in(folder: &Path) -> io::Result<()> {
    remove_if(folder, |name| {
        let numbered = name.rsplit_once(DRAFT).is_some_and(|(_, number)| is_number(number));
        name.starts_with('.') && numbered
    })
}

fn remove_if(folder: &Path, is_draft: impl Fn(&str) -> bool) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if is_draft(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Makes sure that a rename or a removal in the folder of a file is on disk.
pub fn sync_folder(file: &Path) -> io::Result<()> {
    File::open(file.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// The file that is written when a path is: links are followed, also to where nothing is yet.
pub fn target(file: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(file)?;
    // As many links as the kernel follows.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("/")).join(link),
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many links"))
}

/// What the names of the drafts of a file begin with: HAProxy passes over such names in a folder.
fn draft_name(place: &Path) -> String {
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!(".{name}{DRAFT}")
}

/// Makes a file beside another, under a name that is free: a process that was killed, or one of another container, may have
/// left others. Until it has its owner, nobody else may read it.
fn create_beside(place: &Path) -> Result<(PathBuf, File), WriteError> {
    let beginning = draft_name(place);
    loop {
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let path = place.with_file_name(format!("{beginning}{number}"));
        match File::options().write(true).create_new(true).mode(MODE).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(step("create", &path)(error)),
        }
    }
}

/// Returns whether something is mounted at a path.
pub fn is_mount(path: &Path) -> io::Result<bool> {
    let status = statx(CWD, path, AtFlags::empty(), StatxFlags::empty())?;
    Ok(status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_link_stays_a_link_and_the_mode_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("real.cfg"), folder.path().join("haproxy.cfg"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("real.cfg", &link).unwrap();
        Draft::prepare(&link, b"new").unwrap().place().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("real.cfg"));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        assert_eq!(names(folder.path()), ["haproxy.cfg", "real.cfg"]);
    }

    #[test]
    fn until_it_is_placed_nothing_has_changed_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, "old").unwrap();
        let draft = Draft::prepare(&file, b"new").unwrap();
        assert_eq!(fs::read_to_string(draft.path()).unwrap(), "new");
        let name = draft.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with('.'), "HAProxy reads {name} with its folder");
        drop(draft);
        assert_eq!(
            (names(folder.path()), fs::read_to_string(&file).unwrap()),
            (vec!["haproxy.cfg".into()], "old".into())
        );
    }

    #[test]
    fn drafts_that_others_have_left_are_in_nobodys_way_and_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, "old").unwrap();
        // Another process counts from 0 as well.
        for number in 0..50 {
            fs::write(folder.path().join(format!(".haproxy.cfg.draft-{number}")), "half").unwrap();
        }
        Draft::prepare(&file, b"new").unwrap().place().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        fs::write(folder.path().join(".haproxy.cfg.draft-mine"), "").unwrap();
        fs::write(folder.path().join(".other.cfg.draft-1"), "").unwrap();
        remove_drafts(&file).unwrap();
        assert_eq!(names(folder.path()), [".haproxy.cfg.draft-mine", ".other.cfg.draft-1", "haproxy.cfg"]);
        remove_drafts_in(folder.path()).unwrap();
        assert_eq!(names(folder.path()), [".haproxy.cfg.draft-mine", "haproxy.cfg"]);
        remove_drafts(&folder.path().join("no/such/folder")).unwrap();
    }

    #[test]
    fn a_file_that_was_not_there_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("link"));
        symlink("a", &link).unwrap();
        Draft::prepare(&link, b"new").unwrap().place().unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
        symlink("loop", folder.path().join("loop")).unwrap();
        assert!(Draft::prepare(&folder.path().join("loop"), b"new").is_err());
    }

    #[test]
    fn owner_mode_and_all_names_of_a_file_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        fs::write(&one, "a long old text").unwrap();
        fs::set_permissions(&one, Permissions::from_mode(0o640)).unwrap();
        // Who is not root can give nothing away.
        let _ = std::os::unix::fs::chown(&one, Some(1234), Some(1234));
        let status = |path: &Path| {
            let found = fs::metadata(path).unwrap();
            (found.uid(), found.gid(), found.mode(), found.nlink())
        };
        let before = status(&one);
        replace(&one, b"new").unwrap();
        assert_eq!((status(&one), fs::read(&one).unwrap()), (before, b"new".to_vec()));
        fs::hard_link(&one, &two).unwrap();
        let before = status(&two);
        replace(&one, b"short").unwrap();
        assert_eq!((status(&two), fs::read(&two).unwrap()), (before, b"short".to_vec()));
        assert_eq!(names(folder.path()), ["one", "two"]);
    }
}
