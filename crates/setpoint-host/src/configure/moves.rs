//! Renames that a killed run, or one that was stopped half-way, has left behind.
//!
//! A rename and the engine's note of it are two steps. Before the first, a small record says what goes where;
//! so whoever looks for an item at its old path, and finds nothing, can tell a move from a loss. The record
//! of a directory stays, as what is inside of it moved along and is told so later, one item at a time.

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

    /// Where an item is that is not at its path, if it has moved.
    pub(crate) fn find(&self, root: &Root, item: &ItemRef, path: &RootPath) -> Option<RootPath> {
        if let Some(record) = load(&self.record_of(item))
            && record.from == *path
            && record.is_true(root)
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
