//! Renames that a killed run, or one that was stopped half-way, has left behind.
//!
//! A rename and the engine's note of it are two steps. Before the first, a small record says what goes where;
//! so whoever looks for an item at its old path, and finds nothing, can tell a move from a loss. Records stay
//! until what the engine knows is saved: what is inside of a moved directory is told so one item at a time.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use setpoint_graph::ItemRef;

use crate::fs::{Found, Kind, Root, short};
use crate::item::RootPath;

/// The records of renames, in a directory of their own.
#[derive(Debug)]
pub(crate) struct Moves {
    directory: PathBuf,
}

/// One rename.
#[derive(Debug, Serialize, Deserialize)]
struct Move {
    from: RootPath,
    to: RootPath,
    /// Which file it is, whatever it is called.
    dev: u64,
    ino: u64,
}

impl Moves {
    pub(crate) fn new(runtime: &Path) -> Self {
        Self { directory: runtime.join("moves") }
    }

    fn record_of(&self, item: &ItemRef) -> PathBuf {
        self.directory.join(short(&[item.kind().as_str(), item.name().as_str()]))
    }

    /// Writes down that an item is about to move.
    pub(crate) fn note(
        &self,
        item: &ItemRef,
        from: &RootPath,
        to: &RootPath,
        found: &Found,
    ) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let record = Move { from: from.clone(), to: to.clone(), dev: found.dev, ino: found.ino };
        let path = self.record_of(item);
        let beside = path.with_extension("new");
        let mut file = fs::File::create(&beside)?;
        serde_json::to_writer(&mut file, &record)?;
        file.flush()?;
        fs::rename(beside, path)
    }

    /// Forgets an item's move.
    pub(crate) fn forget(&self, item: &ItemRef) {
        // Where a record is left, it does no harm: it only counts as long as it is true.
        let _ = fs::remove_file(self.record_of(item));
    }

    /// Forgets all moves.
    pub(crate) fn forget_all(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Where an item is now: at its path, or where it has moved.
    pub(crate) fn place(&self, root: &Root, item: &ItemRef, path: &RootPath) -> RootPath {
        match root.stat(path) {
            Ok(None) => self.find(root, item, path).unwrap_or_else(|| path.clone()),
            _ => path.clone(),
        }
    }

    /// Where an item is that is not at its path, if it has moved.
    pub(crate) fn find(&self, root: &Root, item: &ItemRef, path: &RootPath) -> Option<RootPath> {
        // Its content may have been replaced since, so that it is another file by now.
        let is_there = |path: &RootPath| root.stat(path).ok().flatten().is_some();
        if let Some(record) = load(&self.record_of(item))
            && record.from == *path
            && !is_there(path)
            && is_there(&record.to)
        {
            return Some(record.to);
        }
        // It may have moved with a directory around it.
        let mut records: Vec<PathBuf> =
            fs::read_dir(&self.directory).ok()?.flatten().map(|e| e.path()).collect();
        records.sort();
        records.iter().filter_map(|record| load(record)).find_map(|record| {
            let inside = path.as_str().strip_prefix(record.from.as_str())?.strip_prefix('/')?;
            let moved = root.stat(&record.from).ok()?.is_none() && record.is_true(root);
            let there = RootPath::new(&format!("{}/{inside}", record.to)).ok()?;
            (moved && root.stat(&there).ok()?.is_some()).then_some(there)
        })
    }
}

impl Move {
    /// Whether what was to move is where it was to go.
    fn is_true(&self, root: &Root) -> bool {
        root.stat(&self.to)
            .ok()
            .flatten()
            .is_some_and(|found| (found.dev, found.ino) == (self.dev, self.ino) && found.kind != Kind::Other)
    }
}

fn load(path: &Path) -> Option<Move> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RootPath {
        RootPath::new(text).unwrap()
    }

    #[test]
    fn a_rename_that_nobody_could_note_any_more_is_told_from_a_loss() {
        let directory = tempfile::tempdir().unwrap();
        let (root, moves) =
            (Root::open(directory.path()).unwrap(), Moves::new(&directory.path().join("run")));
        let item = ItemRef::new("file", "f");
        fs::write(directory.path().join("old"), "x").unwrap();
        let found = root.stat(&path("old")).unwrap().unwrap();
        moves.note(&item, &path("old"), &path("new"), &found).unwrap();
        assert_eq!(moves.find(&root, &item, &path("old")), None, "killed before the rename");
        root.rename(&path("old"), &path("new"), Kind::File).unwrap();
        assert_eq!(moves.find(&root, &item, &path("old")), Some(path("new")), "killed after it");
        assert_eq!(moves.find(&root, &ItemRef::new("file", "g"), &path("old")), None, "another item");

        assert_eq!(moves.place(&root, &item, &path("old")), path("new"));
        fs::rename(directory.path().join("new"), directory.path().join("old")).unwrap();
        assert_eq!(moves.find(&root, &item, &path("old")), None, "it is back");
        moves.forget(&item);
        assert_eq!(fs::read_dir(directory.path().join("run/moves")).unwrap().count(), 0);
    }

    #[test]
    fn what_is_inside_of_a_moved_directory_is_found_until_its_old_place_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let (root, moves) =
            (Root::open(directory.path()).unwrap(), Moves::new(&directory.path().join("run")));
        fs::create_dir_all(directory.path().join("old/in")).unwrap();
        fs::write(directory.path().join("old/in/f"), "x").unwrap();
        let found = root.stat(&path("old")).unwrap().unwrap();
        moves.note(&ItemRef::new("directory", "d"), &path("old"), &path("new"), &found).unwrap();
        root.rename(&path("old"), &path("new"), Kind::Directory).unwrap();
        let file = ItemRef::new("file", "f");
        assert_eq!(moves.find(&root, &file, &path("old/in/f")), Some(path("new/in/f")));
        assert_eq!(moves.find(&root, &file, &path("old/in/g")), None);
        fs::create_dir(directory.path().join("old")).unwrap();
        assert_eq!(moves.find(&root, &file, &path("old/in/f")), None);
    }
}
