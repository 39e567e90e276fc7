//! Renames that a killed run, or one that was stopped half-way, has left behind.
//!
//! A rename and the engine's note of it are two steps. Before the first, a line in a file says what goes where;
//! so whoever looks for an item at its old path, and finds nothing, can tell a move from a loss. The lines stay
//! until what the engine knows is saved: several cut-off runs may have moved the same thing one after the other,
//! and what is inside of a moved directory is told so one item at a time.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use setpoint_graph::ItemRef;

use super::notes::Notes;
use crate::fs::{Found, Root};
use crate::item::RootPath;

/// How many directories around a thing may have moved, one inside the other.
const NESTED: usize = 16;

/// The renames since what the engine knows was saved, in order.
#[derive(Debug)]
pub(crate) struct Moves(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    notes: Notes<Move>,
    /// Read when they are first needed.
    known: Option<Vec<Move>>,
}

/// One rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Move {
    item: ItemRef,
    from: RootPath,
    to: RootPath,
    /// Which file or directory it is, whatever it is called.
    dev: u64,
    ino: u64,
}

impl Moves {
    pub(crate) fn new(runtime: &Path) -> Self {
        Self(Mutex::new(Inner { notes: Notes::new(runtime.join("moves")), known: None }))
    }

    /// Writes down that an item is about to move.
    pub(crate) fn note(
        &self,
        item: &ItemRef,
        from: &RootPath,
        to: &RootPath,
        found: &Found,
    ) -> io::Result<()> {
        let (dev, ino) = (found.dev, found.ino);
        let record = Move { item: item.clone(), from: from.clone(), to: to.clone(), dev, ino };
        let mut inner = self.inner();
        inner.notes.add(&record)?;
        if let Some(known) = &mut inner.known {
            known.push(record);
        }
        Ok(())
    }

    /// Forgets all moves.
    pub(crate) fn forget_all(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.known = None;
        inner.notes.clear()
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
        let mut inner = self.inner();
        let Inner { notes, known } = &mut *inner;
        let known: &[Move] = known.get_or_insert_with(|| notes.read());
        // Its own moves, one after the other: it is at the last place where something is. Not the same file,
        // maybe, since its content may have been replaced there.
        let (mut at, mut last) = (path, None);
        for own in known.iter().filter(|record| record.item == *item) {
            if own.from == *at {
                at = &own.to;
                last = is_there(root, at)
                    .then(|| at.clone())
                    .or_else(|| carried(root, known, at, NESTED))
                    .or(last);
            }
        }
        last.or_else(|| carried(root, known, path, NESTED))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_there(root: &Root, path: &RootPath) -> bool {
    root.stat(path).ok().flatten().is_some()
}

/// Where a path leads now that a directory around it has moved.
fn carried(root: &Root, known: &[Move], path: &RootPath, nested: usize) -> Option<RootPath> {
    let nested = nested.checked_sub(1)?;
    for record in known {
        let inside = path.as_str().strip_prefix(record.from.as_str()).and_then(|rest| rest.strip_prefix('/'));
        let Some(inside) = inside else { continue };
        // The same directory may have moved again: it is wherever it is found.
        let same = known.iter().filter(|other| (other.dev, other.ino) == (record.dev, record.ino));
        for place in same.flat_map(|other| [&other.to, &other.from]) {
            let found = root.stat(place).ok().flatten();
            let place = match found {
                Some(found) if (found.dev, found.ino) == (record.dev, record.ino) => Some(place.clone()),
                Some(_) => None,
                None => carried(root, known, place, nested),
            };
            let there = place.and_then(|place| RootPath::new(&format!("{place}/{inside}")).ok());
            if let Some(there) = there.filter(|there| is_there(root, there)) {
                return Some(there);
            }
        }
    }
    None
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
    }

    impl Sandbox {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let root = Root::open(directory.path()).unwrap();
            Self { directory, root }
        }

        /// As another process sees it.
        fn moves(&self) -> Moves {
            Moves::new(&self.directory.path().join("run"))
        }

        fn at(&self, path: &str) -> PathBuf {
            self.directory.path().join(path)
        }

        fn note(&self, item: &ItemRef, from: &str, to: &str) {
            let found = self.root.stat(&path(from)).unwrap().unwrap();
            self.moves().note(item, &path(from), &path(to), &found).unwrap();
        }

        fn rename(&self, item: &ItemRef, from: &str, to: &str, kind: Kind) {
            self.note(item, from, to);
            self.root.rename(&path(from), &path(to), kind).unwrap();
        }

        fn find(&self, item: &ItemRef, from: &str) -> Option<String> {
            self.moves().find(&self.root, item, &path(from)).map(|path| path.to_string())
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
        assert_eq!(sandbox.moves().place(&sandbox.root, &file("f"), &path("old")), path("old"), "not yet");
        sandbox.root.rename(&path("old"), &path("new"), Kind::File).unwrap();
        assert_eq!(sandbox.find(&file("f"), "old").as_deref(), Some("new"), "killed after it");
        assert_eq!(sandbox.find(&file("g"), "old"), None, "another item");
        fs::write(sandbox.at("new"), "replaced").unwrap();
        assert_eq!(sandbox.find(&file("f"), "old").as_deref(), Some("new"), "with another content");
        sandbox.moves().forget_all().unwrap();
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
    fn half_a_line_of_a_killed_run_spoils_nothing() {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.at("run")).unwrap();
        fs::write(sandbox.at("run/moves"), "{\"item\":{\"ki").unwrap();
        fs::write(sandbox.at("a"), "x").unwrap();
        sandbox.rename(&file("f"), "a", "b", Kind::File);
        assert_eq!(sandbox.find(&file("f"), "a").as_deref(), Some("b"));
    }
}
