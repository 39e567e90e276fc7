//! What is known of the copies: how much they are, which of them may go, and whose path an original was at.
//!
//! The directory is listed once, and the copies in it are read once, however many are kept afterwards. Only who may write the state
//! keeps anything; what a person removes meanwhile is noticed before anything has to go.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::{BESIDE, CHANGE, Original, is_original};
use crate::item::RootPath;

/// How soon the directory may be listed again where something would have to go.
pub(super) const LIST_AGAIN: Duration = Duration::from_secs(1);

/// A copy that may go for others, by which the oldest comes first: since when it is kept, and its name.
type ChangeKey = (SystemTime, String);

/// What is known of the copies in a directory.
#[derive(Debug)]
pub(super) struct Index {
    listed: Instant,
    /// How many bytes all of them have.
    bytes: u64,
    /// Those that may go for others, the oldest first, with their sizes.
    changes: BTreeMap<ChangeKey, u64>,
    /// The names of originals by the path that they were at; none until somebody looks for one. They may be gone.
    originals: Option<BTreeMap<RootPath, Vec<(SystemTime, String)>>>,
}

impl Index {
    /// Lists a directory, and removes what a killed run did not write to its end.
    pub(super) fn list(directory: &Path) -> Self {
        let mut index = Self { listed: Instant::now(), bytes: 0, changes: BTreeMap::new(), originals: None };
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let is_half = entry.path().extension().is_some_and(|extension| extension == BESIDE);
            if is_half && fs::remove_file(entry.path()).is_ok() {
                continue;
            }
            if let Ok(found) = entry.metadata() {
                index.add(&entry.file_name().to_string_lossy(), &found);
            }
        }
        index
    }

    /// Returns whether it is worth while to list the directory again.
    pub(super) fn is_old(&self) -> bool {
        self.listed.elapsed() >= LIST_AGAIN
    }

    /// A copy is there from now on.
    pub(super) fn add(&mut self, name: &str, found: &Metadata) {
        self.bytes += found.len();
        if Path::new(name).extension().is_some_and(|extension| extension == CHANGE) {
            self.changes.insert((since(found), name.to_owned()), found.len());
        }
    }

    /// An original is there from now on.
    pub(super) fn add_original(&mut self, name: &str, original: &Original, found: &Metadata) {
        if let (Some(originals), Some(path)) = (&mut self.originals, original.path()) {
            originals.entry(path.clone()).or_default().push((since(found), name.to_owned()));
        }
    }

    /// A copy is gone.
    pub(super) fn remove(&mut self, name: &str, found: &Metadata) {
        self.changes.remove(&(since(found), name.to_owned()));
        self.bytes = self.bytes.saturating_sub(found.len());
    }

    /// The changes that have to go for so many bytes more, where at most so many may be kept: the oldest. None if all of them are
    /// too few.
    pub(super) fn in_the_way(&self, bytes: u64, most: u64) -> Option<Vec<ChangeKey>> {
        let mut surplus = (self.bytes + bytes).saturating_sub(most);
        let mut changes = Vec::new();
        for (change, size) in &self.changes {
            if surplus == 0 {
                break;
            }
            surplus = surplus.saturating_sub(*size);
            changes.push(change.clone());
        }
        (surplus == 0).then_some(changes)
    }

    /// A change is gone.
    pub(super) fn remove_change(&mut self, change: &ChangeKey) {
        let size = self.changes.remove(change);
        self.bytes = self.bytes.saturating_sub(size.unwrap_or_default());
    }

    /// The names of originals of what was at a path, the last one first. They are read with `read`, once.
    pub(super) fn originals(
        &mut self,
        directory: &Path,
        path: &RootPath,
        read: impl Fn(&str) -> Option<Original>,
    ) -> Vec<String> {
        let originals = self.originals.get_or_insert_with(|| {
            let mut originals: BTreeMap<RootPath, Vec<(SystemTime, String)>> = BTreeMap::new();
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let name = entry.file_name().into_string().ok().filter(|name| is_original(name));
                let Some((name, found)) = name.zip(entry.metadata().ok()) else { continue };
                if let Some(path) = read(&name).as_ref().and_then(Original::path) {
                    originals.entry(path.clone()).or_default().push((since(&found), name));
                }
            }
            originals
        });
        let mut found = originals.get(path).cloned().unwrap_or_default();
        found.sort();
        found.into_iter().rev().map(|(_, name)| name).collect()
    }
}

fn since(found: &Metadata) -> SystemTime {
    found.modified().unwrap_or(SystemTime::UNIX_EPOCH)
}
