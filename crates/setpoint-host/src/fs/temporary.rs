//! Temporary names: one for each item, so that a later run finds what a killed one left.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use setpoint_graph::{ItemRef, Name};
use sha2::{Digest, Sha256};

use super::{Dir, FsError, LastLook, rename_new};
use crate::item::{RootPath, hex};

/// What the names of files end with that were somebody's, and could be neither kept nor put back.
const SAVED: &str = ".setpoint-saved";
/// The most of them for one name.
const MOST_SAVED: usize = 1000;

/// A temporary entry of a directory: removed when dropped, unless it was kept.
pub(crate) struct Temporary<'a> {
    dir: &'a Dir<'a>,
    name: &'a str,
    kept: bool,
}

impl<'a> Temporary<'a> {
    pub(crate) fn new(dir: &'a Dir<'a>, name: &'a str) -> Self {
        Self { dir, name, kept: false }
    }

    /// It has become something else.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }

    /// Brings it into the place of what is at a path, in one step. What is there is looked at right before that. What was there is
    /// looked at once more, where the file system can let the two change places: nobody can write to that path any more. Where
    /// that look fails, they change back.
    pub(super) fn replace(
        self,
        path: &RootPath,
        look: LastLook<'_>,
        failed: impl Fn(Errno) -> FsError,
    ) -> Result<(), FsError> {
        let (dir, name) = (self.dir, path.file_name());
        let exchange = || rustix::fs::renameat_with(dir, self.name, dir, name, RenameFlags::EXCHANGE);
        if let Some(look) = look {
            look(path)?;
            match exchange() {
                Ok(()) => {
                    let looked = look(&path.beside(self.name));
                    let is_back = || exchange().or_else(|_| rename_new(dir, self.name, dir, name)).is_ok();
                    if let Err(why) = &looked
                        && !is_back()
                    {
                        // It is somebody's, and not to be removed.
                        let saved = save(dir, self.name, name);
                        self.keep();
                        let saved = path.beside(&saved.map_err(failed)?).to_string();
                        return Err(FsError::Saved { path: path.to_string(), saved, why: why.to_string() });
                    }
                    if looked.is_ok() {
                        return self.remove_replaced(path);
                    }
                    return looked;
                }
                // The file system can't, or nothing is there any more.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOENT) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        rustix::fs::renameat(dir, self.name, dir, name).map_err(failed)?;
        self.keep();
        Ok(())
    }

    /// Removes what was replaced. Where that fails, whoever asked for it has to know: it would stay beside the path for good.
    fn remove_replaced(self, path: &RootPath) -> Result<(), FsError> {
        // What failed once may succeed at once.
        let removed = remove(self.dir, self.name).or_else(|_| remove(self.dir, self.name));
        let temporary = path.beside(self.name).to_string();
        self.keep();
        removed.map(drop).map_err(|errno| FsError::LeftBehind { path: path.to_string(), temporary, errno })
    }

    /// What the names of all temporary files of a set begin with.
    pub(crate) fn prefix(set: &Name) -> String {
        format!(".setpoint-{}-", short(&[set.as_str()]))
    }

    /// The name of an item's temporary file.
    pub(crate) fn name(set: &Name, item: &ItemRef) -> String {
        Self::name_of(&Self::prefix(set), item)
    }

    /// The same, for a prefix that is known.
    pub(crate) fn name_of(prefix: &str, item: &ItemRef) -> String {
        format!("{prefix}{}", short(&[item.kind().as_str(), item.name().as_str()]))
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept {
            // Where this fails too, a later run removes it.
            let _ = remove(self.dir, self.name);
        }
    }
}

/// Removes what is temporary, also an empty directory. Returns whether it was there.
pub(super) fn remove(dir: impl AsFd, name: &str) -> Result<bool, Errno> {
    let removed = match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
        // Which of the two depends on the file system.
        Err(Errno::ISDIR | Errno::PERM) => rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR),
        removed => removed,
    };
    super::gone(removed).map(|removed| removed.is_some())
}

/// Gives what is under a temporary name, and is somebody's, a name that nobody removes. Returns that.
pub(super) fn save(dir: &Dir<'_>, temporary: &str, name: &str) -> Result<String, Errno> {
    for number in 1.. {
        let saved = if number == 1 { format!("{name}{SAVED}") } else { format!("{name}{SAVED}-{number}") };
        match rename_new(dir, temporary, dir, &saved) {
            Err(Errno::EXIST) if number < MOST_SAVED => {}
            renamed => return renamed.map(|()| saved),
        }
    }
    Err(Errno::EXIST)
}

/// A short digest of some texts.
pub(crate) fn short(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update(text);
        hasher.update([0]);
    }
    hex(&hasher.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use super::*;
    use crate::fs::Root;

    /// Replaces a file, while somebody else does so right after it was looked at. Returns what was seen, and what is there then.
    fn replaced(second: impl Fn() -> Result<(), FsError> + Sync) -> (Vec<String>, Vec<(String, String)>) {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("d");
        fs::create_dir(&inside).unwrap();
        for (name, text) in [("f", "old"), ("late", "late"), (".temporary", "new")] {
            fs::write(inside.join(name), text).unwrap();
        }
        let (root, path) = (Root::open(directory.path()).unwrap(), RootPath::new("d/f").unwrap());
        let seen = Mutex::new(Vec::new());
        let look = |at: &RootPath| {
            let mut seen = seen.lock().unwrap();
            seen.push(fs::read_to_string(at.in_root(directory.path())).unwrap());
            if seen.len() > 1 {
                return second();
            }
            fs::rename(inside.join("late"), inside.join("f")).unwrap();
            Ok(())
        };
        let dir = root.around(&path).unwrap();
        let failed = |errno| FsError::new("write", path.as_str(), errno);
        // What came of it is seen below.
        let _ = Temporary::new(&dir, ".temporary").replace(&path, Some(&look), failed);
        let entries = fs::read_dir(&inside).unwrap().map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
        });
        let mut entries: Vec<(String, String)> = entries.collect();
        entries.sort();
        (seen.into_inner().unwrap(), entries)
    }

    #[test]
    fn what_is_written_right_before_it_is_replaced_is_looked_at_once_more() {
        let (seen, left) = replaced(|| Ok(()));
        assert_eq!(seen, ["old", "late"]);
        assert_eq!(left, [("f".to_owned(), "new".to_owned())]);
    }

    #[test]
    fn what_was_replaced_and_can_not_be_removed_is_named() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [("f", "old"), (".temporary", "new")] {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let (root, path) = (Root::open(directory.path()).unwrap(), RootPath::new("f").unwrap());
        let looks = Mutex::new(0);
        let look = |at: &RootPath| {
            *looks.lock().unwrap() += 1;
            if at != &path {
                // What can't be removed, as a disk with errors would have it.
                let at = at.in_root(directory.path());
                fs::remove_file(&at).unwrap();
                fs::create_dir(&at).unwrap();
                fs::write(at.join("inside"), "").unwrap();
            }
            Ok(())
        };
        let dir = root.around(&path).unwrap();
        let failed = |errno| FsError::new("write", path.as_str(), errno);
        let error = Temporary::new(&dir, ".temporary").replace(&path, Some(&look), failed).unwrap_err();
        assert_eq!(*looks.lock().unwrap(), 2);
        assert!(
            matches!(&error, FsError::LeftBehind { temporary, .. } if temporary == ".temporary"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(directory.path().join("f")).unwrap(), "new");
    }

    #[test]
    fn what_can_not_go_back_either_has_a_name_that_nobody_removes() {
        let directory = tempfile::tempdir().unwrap();
        let (root, path) = (Root::open(directory.path()).unwrap(), RootPath::new("f").unwrap());
        let dir = root.around(&path).unwrap();
        for (text, saved) in [("one", "f.setpoint-saved"), ("two", "f.setpoint-saved-2")] {
            fs::write(directory.path().join(".temporary"), text).unwrap();
            assert_eq!(save(&dir, ".temporary", "f").unwrap(), saved);
            assert_eq!(fs::read_to_string(directory.path().join(saved)).unwrap(), text);
        }
        assert!(!directory.path().join(".temporary").exists());
    }

    #[test]
    fn what_can_not_be_kept_is_back_in_its_place() {
        let (seen, left) = replaced(|| Err(FsError::Cancelled { path: "d/f".to_owned() }));
        assert_eq!(seen, ["old", "late"]);
        assert_eq!(left, [("f".to_owned(), "late".to_owned())]);
    }
}
