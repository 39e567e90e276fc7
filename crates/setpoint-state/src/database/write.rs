//! Writing a checkpoint, into the database and into its copy.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use redb::{Database, WriteTransaction};
use setpoint_engine::{CurrentGraph, ItemState};
use setpoint_graph::{ItemHandle, ItemRef, ItemTypes, Node};

use super::{ADOPTED, DIGESTS, ITEMS, META, RUNS, Stamps, Store, item_digest, left, sync_names};
use crate::format::{FORMAT, StoredItem};
use crate::{Run, StateError};

/// How many runs the history keeps.
const RUNS_KEPT: u64 = 1000;

/// What a checkpoint changes.
#[derive(Debug)]
pub(crate) struct Checkpoint<'a> {
    pub(crate) set: &'a str,
    pub(crate) serial: u64,
    pub(crate) location: Option<&'a str>,
    pub(crate) manifests: Option<&'a BTreeSet<String>>,
    /// The items of which something was left that could not be removed.
    pub(crate) left_over: &'a [ItemHandle],
    pub(crate) graph: &'a CurrentGraph,
    /// The items to write or remove; none for all of them.
    pub(crate) touched: Option<BTreeSet<ItemRef>>,
    pub(crate) runs: Vec<&'a Run>,
}

impl Store {
    /// Writes a checkpoint: all of it or nothing, and it lasts. A database that was damaged since it was read is put in order
    /// from its copy and what is known. `stamps` is how this writer has left both, and is about to.
    pub(crate) fn write(
        &self,
        change: &Checkpoint<'_>,
        types: &ItemTypes,
        stamps: &mut Option<Stamps>,
    ) -> Result<(), StateError> {
        self.check(change, types)?;
        let left = stamps.take();
        let are_in_step = left.is_some() && left == self.stamps() && change.touched.is_some();
        let write = |store: &Self| {
            if are_in_step { store.write_both(change, types) } else { store.write_whole(change, types) }
        };
        let written = if self.exists()? { self.guarded(write) } else { Err(self.damaged("it is gone")) };
        let has_copy = match written {
            Err(error) if error.is_damage() && (self.copy().exists()? || !self.exists()?) => {
                if self.copy().exists()? {
                    self.restore()?;
                }
                let all = Checkpoint { touched: None, runs: change.runs.clone(), ..*change };
                self.guarded(|store| store.write_whole(&all, types))?
            }
            Err(error) if error.is_damage() => return Err(self.without_copy(&error)),
            written => written?,
        };
        *stamps = if has_copy { self.stamps() } else { None };
        Ok(())
    }

    /// Writes a checkpoint into the database and into its copy; returns whether also into that.
    fn write_both(&self, change: &Checkpoint<'_>, types: &ItemTypes) -> Result<bool, StateError> {
        self.commit(self.open(|path| Database::open(path))?, change, types)?;
        // Where that fails, the last copy stays, and a new one is made with the next checkpoint.
        let copied =
            self.copy().guarded(|copy| copy.commit(copy.open(|path| Database::open(path))?, change, types));
        Ok(copied.is_ok())
    }

    /// Reads what a checkpoint is about to write: what could not be read again must get neither into the database nor into its copy.
    fn check(&self, change: &Checkpoint<'_>, types: &ItemTypes) -> Result<(), StateError> {
        let check = |node: &Node<'_, ItemState>| {
            let item = node.reference();
            let read =
                self.item(FORMAT, item.kind(), item.name().as_str(), &self.stored(node, types)?, types);
            read.map(drop).map_err(|error| match error {
                StateError::BrokenItem { path, why } => StateError::Unreadable { path, why },
                StateError::Broken { path, what, source } => {
                    StateError::Unreadable { path, why: format!("{what}: {source}") }
                }
                error => error,
            })
        };
        let is_saved = |node: &Node<'_, ItemState>| !node.item().external();
        match &change.touched {
            None => change.graph.items().filter(is_saved).try_for_each(|node| check(&node)),
            Some(touched) => {
                let nodes = touched.iter().filter_map(|item| change.graph.node_of(item));
                nodes.filter(is_saved).try_for_each(|node| check(&node))
            }
        }
    }

    /// Writes a checkpoint into the database, and copies that; returns whether it did.
    fn write_whole(&self, change: &Checkpoint<'_>, types: &ItemTypes) -> Result<bool, StateError> {
        if self.exists()? {
            self.commit(self.open(|path| Database::open(path))?, change, types)?;
            return self.keep_copy(types);
        }
        // A database that is only half made is none: it is made beside its place. The lock keeps others away.
        let beside = Self { path: self.path.with_extension("new") };
        let failed = |path: &Path| StateError::file("make", path.to_path_buf());
        match fs::remove_file(&beside.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(&beside.path)(error));
            }
            _ => {}
        }
        // Items are in it whole, secrets included, whatever stands around it.
        let file =
            fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&beside.path);
        let file = file.map_err(failed(&beside.path))?;
        let made = Database::builder().create_file(file);
        beside.commit(made.map_err(|error| beside.failed("make", error.into()))?, change, types)?;
        fs::rename(&beside.path, &self.path).map_err(failed(&self.path))?;
        sync_names(&self.path);
        self.keep_copy(types)
    }

    fn commit(&self, db: Database, change: &Checkpoint<'_>, types: &ItemTypes) -> Result<(), StateError> {
        let txn = self.done(db.begin_write())?;
        self.fill(&txn, change, types)?;
        self.done(txn.commit())?;
        drop(db);
        Ok(())
    }

    fn fill(
        &self,
        txn: &WriteTransaction,
        change: &Checkpoint<'_>,
        types: &ItemTypes,
    ) -> Result<(), StateError> {
        let mut meta = self.done(txn.open_table(META))?;
        if change.left_over.is_empty() {
            self.done(meta.remove(left::KEY).map(drop))?;
        } else {
            let text = self.left_to_text(change.left_over, types)?;
            self.done(meta.insert(left::KEY, text.as_str()).map(drop))?;
        }
        let mut set = |key: &str, value: &str| self.done(meta.insert(key, value).map(drop));
        set("format", &FORMAT.to_string())?;
        set("set", change.set)?;
        set("serial", &change.serial.to_string())?;
        if let Some(location) = change.location {
            set("place", location)?;
        }
        if let Some(manifests) = change.manifests {
            let text = serde_json::to_string(manifests).map_err(|source| StateError::Broken {
                path: self.path.clone(),
                what: "the list of manifests".to_owned(),
                source,
            })?;
            set("manifests", &text)?;
        }
        self.done(txn.delete_table(ADOPTED))?;
        for run in &change.runs {
            set("last_run", &run.number.to_string())?;
            let mut runs = self.done(txn.open_table(RUNS))?;
            let bytes = serde_json::to_vec(run).map_err(|source| StateError::Broken {
                path: self.path.clone(),
                what: format!("run {}", run.number),
                source,
            })?;
            self.done(runs.insert(run.number, bytes.as_slice()).map(drop))?;
            let old = run.number.saturating_sub(RUNS_KEPT);
            self.done(runs.retain_in(..=old, |_, _| false))?;
        }
        let text = self.meta_digest(&meta)?;
        self.done(meta.insert("digest", text.as_str()).map(drop))?;
        let mut items = self.done(txn.open_table(ITEMS))?;
        let mut digests = self.done(txn.open_table(DIGESTS))?;
        match &change.touched {
            None => {
                self.done(items.retain(|_, _| false))?;
                self.done(digests.retain(|_, _| false))?;
                for node in change.graph.items().filter(|node| !node.item().external()) {
                    let bytes = self.stored(&node, types)?;
                    let item = node.reference();
                    let key = (item.kind().as_str(), item.name().as_str());
                    self.done(items.insert(key, bytes.as_slice()).map(drop))?;
                    self.done(digests.insert(key, item_digest(key.0, key.1, &bytes)).map(drop))?;
                }
            }
            Some(touched) => {
                for item in touched {
                    let key = (item.kind().as_str(), item.name().as_str());
                    let node = change.graph.node_of(item).filter(|node| !node.item().external());
                    if let Some(node) = node {
                        let bytes = self.stored(&node, types)?;
                        self.done(items.insert(key, bytes.as_slice()).map(drop))?;
                        self.done(digests.insert(key, item_digest(key.0, key.1, &bytes)).map(drop))?;
                    } else {
                        self.done(items.remove(key).map(drop))?;
                        self.done(digests.remove(key).map(drop))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn stored(&self, node: &Node<'_, ItemState>, types: &ItemTypes) -> Result<Vec<u8>, StateError> {
        let target = node.state().and_then(ItemState::unfinished_target);
        let stored = StoredItem {
            path: node.path(),
            item: types.item_to_value(node.item())?,
            state: node.state().cloned(),
            target: target.map(|target| types.item_to_value(target)).transpose()?,
        };
        serde_json::to_vec(&stored).map_err(|source| StateError::Broken {
            path: self.path.clone(),
            what: node.reference().to_string(),
            source,
        })
    }
}
