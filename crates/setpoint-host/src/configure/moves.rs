//! Renames that a killed run, or one that was stopped half-way, has left behind.
//!
//! A rename and the engine's record of its end are two steps. Before the first it is noted of the item what goes where;
//! so whoever looks for an item at its old path, and finds nothing, can tell a move from a loss. Notes stay until what
//! the engine knows is saved: several cut-off runs may have moved the same thing one after the other, and what is inside
//! of a moved directory is told so one item at a time. What is here is the index of these notes over all items.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use setpoint_graph::ItemRef;

use crate::fs::{FsError, Number, Root};
use crate::item::RootPath;

/// How many directories around a thing may have moved, one inside the other.
const NESTED: usize = 16;

/// The renames since what the engine knows was saved, of each item in order.
#[derive(Debug, Default)]
pub(crate) struct Moves(Mutex<BTreeMap<ItemRef, Vec<Move>>>);

/// One rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) from: RootPath,
    pub(crate) to: RootPath,
    /// Which one it is, whatever it is called.
    pub(crate) number: Number,
}

impl Moves {
    /// Takes in what was noted of an item.
    pub(crate) fn set(&self, item: &ItemRef, moves: Vec<Move>) {
        self.known().insert(item.clone(), moves);
    }

    /// Forgets all moves.
    pub(crate) fn clear(&self) {
        self.known().clear();
    }

    /// Where an item is now: at its path, or where it has moved.
    pub(crate) fn place(&self, root: &Root, item: &ItemRef, path: &RootPath) -> Result<RootPath, FsError> {
        if root.stat(path)?.is_some() {
            return Ok(path.clone());
        }
        Ok(self.find(root, item, path)?.unwrap_or_else(|| path.clone()))
    }

    /// Where an item is that is not at its path, if it has moved. What can't be looked at is an error, and not taken
    /// for gone.
    pub(crate) fn find(
        &self,
        root: &Root,
        item: &ItemRef,
        path: &RootPath,
    ) -> Result<Option<RootPath>, FsError> {
        let known = self.known();
        // Its own moves, one after the other: it is at the last place where something is. Not the same file,
        // maybe, since its content may have been replaced there.
        let (mut at, mut last) = (path, None);
        for own in known.get(item).into_iter().flatten() {
            if own.from == *at {
                at = &own.to;
                if root.stat(at)?.is_some() {
                    last = Some(at.clone());
                } else if let Some(carried) = carried(root, &known, at, NESTED)? {
                    last = Some(carried);
                }
            }
        }
        match last {
            None => carried(root, &known, path, NESTED),
            last => Ok(last),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<ItemRef, Vec<Move>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a path leads now that a directory around it has moved.
fn carried(
    root: &Root,
    known: &BTreeMap<ItemRef, Vec<Move>>,
    path: &RootPath,
    nested: usize,
) -> Result<Option<RootPath>, FsError> {
    let Some(nested) = nested.checked_sub(1) else { return Ok(None) };
    let all = || known.values().flatten();
    for record in all() {
        let inside = path.as_str().strip_prefix(record.from.as_str()).and_then(|rest| rest.strip_prefix('/'));
        let Some(inside) = inside else { continue };
        // The same directory may have moved again: it is wherever it is found.
        for place in
            all().filter(|other| other.number == record.number).flat_map(|other| [&other.to, &other.from])
        {
            let place = match root.number(place)? {
                Some(number) if number == record.number => Some(place.clone()),
                Some(_) => None,
                None => carried(root, known, place, nested)?,
            };
            let there = place.and_then(|place| RootPath::new(&format!("{place}/{inside}")).ok());
            if let Some(there) = there
                && root.stat(&there)?.is_some()
            {
                return Ok(Some(there));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::fs::Kind;

    struct Sandbox {
        directory: tempfile::TempDir,
        root: Root,
        moves: Moves,
    }

    impl Sandbox {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = Root::open(directory.path()).unwrap();
            Self { directory, root, moves: Moves::default() }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.directory.path().join(path)
        }

        fn note(&self, item: &ItemRef, from: &str, to: &str) {
            let number = self.root.number(&path(from)).unwrap().unwrap();
            let mut moves = self.moves.known().get(item).cloned().unwrap_or_default();
            moves.push(Move { from: path(from), to: path(to), number });
            self.moves.set(item, moves);
        }

        fn rename(&self, item: &ItemRef, from: &str, to: &str, kind: Kind) {
            self.note(item, from, to);
            self.root.rename(&path(from), &path(to), kind).unwrap();
        }

        fn find(&self, item: &ItemRef, from: &str) -> Option<String> {
            self.moves.find(&self.root, item, &path(from)).unwrap().map(|path| path.to_string())
        }
    }

    fn path(text: &str) -> RootPath {
        RootPath::new(text).unwrap()
    }

    fn file(name: &str) -> ItemRef {
        ItemRef::new("file", name)
    }

    #[test]
    fn a_rename_that_nobody_could_note_any_more_is_told_from_a_loss() {
        let sandbox = Sandbox::new();
        fs::write(sandbox.at("old"), "x").unwrap();
        sandbox.note(&file("f"), "old", "new");
        let place = sandbox.moves.place(&sandbox.root, &file("f"), &path("old"));
        assert_eq!(place.unwrap(), path("old"), "not yet");
        sandbox.root.rename(&path("old"), &path("new"), Kind::File).unwrap();
        assert_eq!(sandbox.find(&file("f"), "old").as_deref(), Some("new"), "killed after it");
        assert_eq!(sandbox.find(&file("g"), "old"), None, "another item");
        fs::write(sandbox.at("new"), "replaced").unwrap();
        assert_eq!(sandbox.find(&file("f"), "old").as_deref(), Some("new"), "with another content");
        sandbox.moves.clear();
        assert_eq!(sandbox.find(&file("f"), "old"), None);
    }

    #[test]
    fn several_moves_lead_to_the_last_place_where_something_is() {
        let sandbox = Sandbox::new();
        fs::write(sandbox.at("a"), "x").unwrap();
        sandbox.rename(&file("f"), "a", "b", Kind::File);
        sandbox.rename(&file("f"), "b", "c", Kind::File);
        fs::write(sandbox.at("b"), "another").unwrap();
        assert_eq!(sandbox.find(&file("f"), "a").as_deref(), Some("c"));
        sandbox.note(&file("f"), "c", "d");
        assert_eq!(sandbox.find(&file("f"), "a").as_deref(), Some("c"), "noted, and not done");
    }

    #[test]
    fn what_is_inside_of_a_moved_directory_is_found() {
        let sandbox = Sandbox::new();
        let directory = ItemRef::new("directory", "d");
        fs::create_dir_all(sandbox.at("old/in")).unwrap();
        fs::write(sandbox.at("old/in/f"), "x").unwrap();
        sandbox.rename(&directory, "old", "new", Kind::Directory);
        assert_eq!(sandbox.find(&file("f"), "old/in/f").as_deref(), Some("new/in/f"));
        assert_eq!(sandbox.find(&file("f"), "old/in/g"), None);
        // On its way back it is still found, before and after the rename.
        sandbox.note(&directory, "new", "old");
        assert_eq!(sandbox.find(&file("f"), "old/in/f").as_deref(), Some("new/in/f"));
        // Also when the directory around that moves.
        fs::create_dir(sandbox.at("outer")).unwrap();
        sandbox.rename(&directory, "new", "outer/new", Kind::Directory);
        sandbox.rename(&ItemRef::new("directory", "outer"), "outer", "other", Kind::Directory);
        assert_eq!(sandbox.find(&file("f"), "old/in/f").as_deref(), Some("other/new/in/f"));
    }

    #[test]
    fn what_can_not_be_looked_at_is_not_taken_for_gone() {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.at("d")).unwrap();
        fs::write(sandbox.at("d/old"), "x").unwrap();
        sandbox.rename(&file("f"), "d/old", "d/new", Kind::File);
        fs::rename(sandbox.at("d"), sandbox.at("away")).unwrap();
        std::os::unix::fs::symlink("/", sandbox.at("d")).unwrap();
        assert!(sandbox.moves.find(&sandbox.root, &file("f"), &path("d/old")).is_err());
        assert!(sandbox.moves.place(&sandbox.root, &file("f"), &path("d/old")).is_err());
    }
}
