//! A release comes to its folder all at once: it is packed beside the folder, and the two are exchanged at the end.
//!
//! ```text
//! OUT/.. ─┬─ OUT         the release before     ──exchange──▶  the new release
//!         └─ .OUT-XXXX   the one being packed   ──exchange──▶  the release before, which is removed
//! ```
//!
//! Whatever goes wrong before that, and whenever the process is killed, `OUT` is as it was. Only files that `SHA256SUMS` of
//! the release before lists are ever removed; a folder that holds anything else is refused.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use crate::checksums;
use crate::error::DistError;

/// A folder in which a release is packed before it comes to its place.
#[derive(Debug)]
pub struct Staging {
    place: PathBuf,
    folder: TempDir,
}

impl Staging {
    /// Makes the folder beside `place`, where the release is going to be. Fails if what is there is no release.
    pub fn beside(place: &Path) -> Result<Self, DistError> {
        let place = resolve(place)?;
        let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
            return Err(DistError::Place { path: place, why: "it has no folder above it".to_owned() });
        };
        fs::create_dir_all(parent).map_err(DistError::file("make", parent))?;
        if there(&place)? {
            if device(&place)? != device(parent)? {
                let why = "it is a mount point, which can't be renamed".to_owned();
                return Err(DistError::Place { path: place, why });
            }
            release_before(&place)?;
        }
        let prefix = format!(".{}-", name.to_string_lossy());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent);
        let folder = folder.map_err(DistError::file("make a folder in", parent))?;
        Ok(Self { place, folder })
    }

    /// Where the release is packed.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Puts the release into its place, removes the one before, and returns the place.
    pub fn publish(self) -> Result<PathBuf, DistError> {
        let Self { place, folder } = self;
        if !there(&place)? {
            set_mode(folder.path(), 0o755)?;
            fs::rename(folder.path(), &place).map_err(DistError::file("make", &place))?;
            // What is removed with it is gone already.
            let _ = folder.keep();
            return Ok(place);
        }
        // Packing takes a while, in which someone may have put something there.
        let before = release_before(&place)?;
        let mode = place.metadata().map_err(DistError::file("read", &place))?.permissions().mode();
        set_mode(folder.path(), mode & 0o7777)?;
        exchange(folder.path(), &place)?;
        // From here on the folder holds the release before, which is not removed as a whole.
        let old = folder.keep();
        remove(&old, &before)?;
        Ok(place)
    }

    /// Leaves the release where it was packed, for someone to look at, and returns where that is.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

/// The absolute path of a folder without symbolic links, whether it is there or not.
fn resolve(place: &Path) -> Result<PathBuf, DistError> {
    match fs::canonicalize(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::path::absolute(place).map_err(DistError::file("find", place))
        }
        found => found.map_err(DistError::file("find", place)),
    }
}

fn there(place: &Path) -> Result<bool, DistError> {
    match fs::symlink_metadata(place) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DistError::file("read", place)(error)),
    }
}

/// The file system that a folder is on: only what is on one can be exchanged.
fn device(path: &Path) -> Result<u64, DistError> {
    Ok(path.metadata().map_err(DistError::file("read", path))?.dev())
}

/// The files of the release that is in a folder: what its checksums list, and these. Fails if there is anything else.
fn release_before(place: &Path) -> Result<BTreeSet<PathBuf>, DistError> {
    let sums = place.join(checksums::NAME);
    let mut files = match fs::read_to_string(&sums) {
        Ok(text) => checksums::listed(&text).map(|(_, name)| PathBuf::from(name)).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
        Err(error) => return Err(DistError::file("read", &sums)(error)),
    };
    files.insert(checksums::NAME.into());
    // Only what is in the folder: a path with `..` names a file elsewhere.
    files.retain(|path| path.components().all(|part| matches!(part, Component::Normal(_))));
    let folders: BTreeSet<&Path> = files.iter().flat_map(|file| file.ancestors().skip(1)).collect();
    let mut todo = vec![PathBuf::new()];
    while let Some(folder) = todo.pop() {
        let path = place.join(&folder);
        for entry in fs::read_dir(&path).map_err(DistError::file("read", &path))? {
            let entry = entry.map_err(DistError::file("read", &path))?;
            // That of the entry itself: a symbolic link is neither.
            let kind = entry.file_type().map_err(DistError::file("read", &path))?;
            let found = folder.join(entry.file_name());
            if kind.is_dir() && folders.contains(&*found) {
                todo.push(found);
            } else if !(kind.is_file() && files.contains(&found)) {
                let why = format!("it holds {}, which is no part of a release", found.display());
                return Err(DistError::Place { path: place.to_path_buf(), why });
            }
        }
    }
    Ok(files)
}

/// Exchanges two folders, at once where the file system can.
fn exchange(new: &Path, place: &Path) -> Result<(), DistError> {
    let failed = || DistError::file("replace", place);
    match renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            let aside = new.with_extension("before");
            fs::rename(place, &aside).map_err(failed())?;
            if let Err(error) = fs::rename(new, place) {
                fs::rename(&aside, place).map_err(failed())?;
                return Err(failed()(error));
            }
            fs::rename(&aside, new).map_err(failed())
        }
        Err(error) => Err(failed()(error.into())),
    }
}

/// Removes these files and the folders that are empty without them.
fn remove(folder: &Path, files: &BTreeSet<PathBuf>) -> Result<(), DistError> {
    let removed = |result: io::Result<()>, path: &Path| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DistError::file("remove", path)(error)),
        _ => Ok(()),
    };
    for file in files {
        let path = folder.join(file);
        removed(fs::remove_file(&path), &path)?;
    }
    let folders: BTreeSet<&Path> = files.iter().flat_map(|file| file.ancestors().skip(1)).collect();
    // Those below come first.
    for below in folders.iter().rev() {
        let path = folder.join(below);
        removed(fs::remove_dir(&path), &path)?;
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Result<(), DistError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(DistError::file("set the mode of", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs something that looks like a release.
    fn pack(folder: &Path, version: &str) {
        let image = folder.join(format!("setpoint-{version}.oci"));
        fs::create_dir_all(image.join("blobs")).unwrap();
        fs::write(image.join("blobs/layer"), version).unwrap();
        fs::write(folder.join(format!("setpoint_{version}.deb")), version).unwrap();
        checksums::write(folder).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_release_replaces_the_one_before_at_once_and_leaves_nothing_beside_it() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("new/dist");
        let staging = Staging::beside(&place).unwrap();
        pack(staging.path(), "1");
        assert!(!place.exists(), "nothing is there before it is complete");
        assert_eq!(staging.publish().unwrap(), place);
        assert_eq!((checksums::check(&place).unwrap(), mode(&place)), (2, 0o755));

        set_mode(&place, 0o750).unwrap();
        let staging = Staging::beside(&place).unwrap();
        pack(staging.path(), "2");
        assert_eq!(names(&place), ["SHA256SUMS", "setpoint-1.oci", "setpoint_1.deb"]);
        staging.publish().unwrap();
        assert_eq!(names(&place), ["SHA256SUMS", "setpoint-2.oci", "setpoint_2.deb"]);
        assert_eq!(names(place.parent().unwrap()), ["dist"]);
        assert_eq!(mode(&place), 0o750, "the folder's own mode is its owner's choice");
    }

    #[test]
    fn a_release_that_is_given_up_leaves_the_one_before() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("dist");
        fs::create_dir(&place).unwrap();
        pack(&place, "1");
        let staging = Staging::beside(&place).unwrap();
        fs::write(staging.path().join("setpoint_2.deb"), "half of i").unwrap();
        drop(staging);
        assert_eq!(checksums::check(&place).unwrap(), 2);
        assert_eq!(names(scratch.path()), ["dist"]);
    }

    #[test]
    fn a_folder_with_files_that_no_release_put_there_is_refused_and_left_alone() {
        for strange in ["setpoint-thesis/a.tex", "setpoint-mine", "setpoint-1.oci/blobs/notes", "thesis.tex"]
        {
            let scratch = tempfile::tempdir().unwrap();
            let place = scratch.path().join("dist");
            fs::create_dir(&place).unwrap();
            pack(&place, "1");
            let path = place.join(strange);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "precious").unwrap();
            let error = Staging::beside(&place).unwrap_err().to_string();
            let top = strange.split('/').next().unwrap();
            assert!(error.contains(top) && error.contains("is no part of a release"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
            assert!(place.join("setpoint_1.deb").exists(), "the release before is still there");
            assert_eq!(names(scratch.path()), ["dist"]);
        }
    }

    #[test]
    fn a_mount_point_is_refused_before_anything_is_packed() {
        // Mounted on every Linux, but for some roots that tests are run in.
        if Path::new("/proc/self").exists() {
            let error = Staging::beside(Path::new("/proc")).unwrap_err().to_string();
            assert!(error.contains("can't put a release into /proc: it is a mount point"), "{error}");
        }
    }

    #[test]
    fn what_comes_while_a_release_is_packed_is_not_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().join("dist");
        let staging = Staging::beside(&place).unwrap();
        pack(staging.path(), "1");
        fs::create_dir(&place).unwrap();
        fs::write(place.join("setpoint-mine"), "precious").unwrap();
        assert!(staging.publish().unwrap_err().to_string().contains("setpoint-mine"));
        assert_eq!(fs::read_to_string(place.join("setpoint-mine")).unwrap(), "precious");
    }

    #[test]
    fn checksums_and_links_that_lead_elsewhere_remove_nothing_there() {
        let scratch = tempfile::tempdir().unwrap();
        let (place, other) = (scratch.path().join("dist"), scratch.path().join("other"));
        fs::create_dir(&place).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("layer"), "precious").unwrap();
        let absolute = other.join("layer");
        let text = format!("00  ../other/layer\n00  {}\n00  image/layer\n", absolute.display());
        fs::write(place.join(checksums::NAME), text).unwrap();
        std::os::unix::fs::symlink(&other, place.join("image")).unwrap();
        assert!(Staging::beside(&place).unwrap_err().to_string().contains("it holds image"));

        fs::remove_file(place.join("image")).unwrap();
        let staging = Staging::beside(&place).unwrap();
        pack(staging.path(), "1");
        staging.publish().unwrap();
        assert_eq!(fs::read_to_string(&absolute).unwrap(), "precious");
    }
}
