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
//! names with the old content.
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

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};

/// The mode of a file that replaces none: configurations hold passwords.
const MODE: u32 = 0o600;

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
        let draft = Self { path: beside(&place), place, placed: false };
        let at = |what| step(what, &draft.path);
        let mode = old.as_ref().map_or(MODE, |old| old.mode() & 0o7777);
        // Until it has its owner, nobody else may read it.
        let mut new = File::options()
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(&draft.path)
            .map_err(at("create"))?;
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

    /// Puts it into its place, at once for everybody who looks.
    pub fn place(mut self) -> Result<(), WriteError> {
        fs::rename(&self.path, &self.place).map_err(step("replace", &self.place))?;
        self.placed = true;
        sync_folder(&self.place).map_err(step("write to disk the folder of", &self.place))
    }

    /// Leaves it where it is, to be placed by who knows of it.
    pub fn keep(mut self) {
        self.placed = true;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.placed {
            // Where it can't be removed, its name says what it is, and the next draft has another.
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
    let at = |what| step(what, &place);
    let mut held = File::options().write(true).open(&place).map_err(at("open"))?;
    held.write_all(bytes).map_err(at("write"))?;
    held.set_len(u64::try_from(bytes.len()).unwrap_or(u64::MAX)).map_err(at("write"))?;
    held.sync_all().map_err(at("write to disk"))
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

/// A name beside a file, that HAProxy passes over in a folder.
fn beside(place: &Path) -> PathBuf {
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let unique = format!(".{name}.{}-{}", std::process::id(), DRAFTS.fetch_add(1, Ordering::Relaxed));
    place.with_file_name(unique)
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
