//! The database: opened for a moment, in which all of it is read or one transaction is written.

mod left;
mod quiet;
mod write;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use redb::{
    Database, DatabaseError, ReadOnlyDatabase, ReadOnlyTable, ReadTransaction, ReadableDatabase,
    ReadableTable, ReadableTableMetadata, TableDefinition, TableError,
};
use serde_json::value::RawValue;
use setpoint_engine::{CurrentGraph, ItemState};
use setpoint_graph::{ItemHandle, ItemRef, ItemTypes, Kind, Name, SubgraphPath};

use crate::format::{FORMAT, StoredItem, WITH_DIGESTS, digest, read_item};
use crate::{Run, StateError};
use quiet::quietly;

pub(crate) use write::Checkpoint;

const META: TableDefinition<'_, &str, &str> = TableDefinition::new("meta");
const ITEMS: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("items");
/// Where the first format had what a later one keeps in the state of each item.
const ADOPTED: TableDefinition<'_, (&str, &str), ()> = TableDefinition::new("adopted");
/// The digests of the items, in the same order.
const DIGESTS: TableDefinition<'_, (&str, &str), u64> = TableDefinition::new("digests");
const RUNS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("runs");

/// How long another process may have the database open before that is an error.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// After so many checkpoints the copy is made anew, and read whole, by the next command: what a disk has lost of it is noticed then.
const CHECKPOINTS_PER_COPY: u64 = 64;

/// The file, while nobody has it open.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    path: PathBuf,
}

/// What the database holds, but for the runs.
#[derive(Debug)]
pub(crate) struct DatabaseContent {
    pub(crate) set: String,
    pub(crate) serial: u64,
    pub(crate) last_run: u64,
    /// Where the items of the set are.
    pub(crate) location: Option<String>,
    /// The files that declared the items; none if that was not saved.
    pub(crate) manifests: Option<BTreeSet<String>>,
    /// The items of which something was left that could not be removed.
    pub(crate) left_over: Vec<ItemHandle>,
    pub(crate) graph: CurrentGraph,
    /// It was read from an earlier format: the next checkpoint writes all of it.
    pub(crate) outdated: bool,
    /// It was read from the copy, since the database is damaged: how, in words.
    pub(crate) damaged: Option<String>,
}

/// Something that was read, also where the database is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered<T> {
    /// What was read.
    pub value: T,
    /// It is what the copy of the database holds: the database is damaged, in these words.
    pub damaged: Option<String>,
}

impl DatabaseContent {
    pub(crate) fn empty(set: &str) -> Self {
        let graph = CurrentGraph::new(set);
        let set = set.to_owned();
        Self {
            set,
            serial: 0,
            last_run: 0,
            location: None,
            manifests: None,
            left_over: Vec::new(),
            graph,
            outdated: false,
            damaged: None,
        }
    }
}

/// The database and its copy, as a writer left them with the same content: the next checkpoint is written into both, and neither is
/// copied or read whole for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamps {
    database: FileStamp,
    copy: FileStamp,
}

/// Tells whether a file is as it was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        let (modified, changed) = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
        Some(Self { inode: found.ino(), size: found.len(), modified, changed })
    }
}

/// What tells two checkpoints apart without reading all of them: also those that were made after one of them was put back.
#[derive(Debug, Default, PartialEq, Eq)]
struct Summary {
    meta: Vec<(String, String)>,
    /// How many items there are.
    items: u64,
    /// It has the times of each operation.
    last_run: Vec<u8>,
}

/// An item that was stored.
struct ReadItem {
    path: SubgraphPath,
    item: ItemHandle,
    state: Option<ItemState>,
    target: Option<ItemHandle>,
}

impl Store {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { path: dir.join("state.redb") }
    }

    /// The copy that is made after each checkpoint, for when the database is damaged.
    fn copy(&self) -> Self {
        Self { path: self.path.with_file_name("state.last") }
    }

    /// Where it and its copies are; not all of them are there.
    pub(crate) fn files(&self) -> [PathBuf; 3] {
        [self.path.clone(), self.copy().path, self.path.with_extension("damaged")]
    }

    /// Returns whether there is a database. Only what is not there is not there: what can't be looked at is an error.
    pub(crate) fn exists(&self) -> Result<bool, StateError> {
        self.path.try_exists().map_err(StateError::file("look at", &self.path))
    }

    /// Reads all but the runs; from the copy where the database is damaged.
    pub(crate) fn read(&self, types: &ItemTypes) -> Result<Option<DatabaseContent>, StateError> {
        match self.read_own(types) {
            Err(error) if error.is_damage() => match self.copy().read_own(types) {
                Ok(Some(content)) => {
                    Ok(Some(DatabaseContent { damaged: Some(error.to_string()), ..content }))
                }
                Ok(None) => Err(self.without_copy(&error)),
                Err(copy) => Err(self.with_copy(&error, copy)),
            },
            // Who wants to start anew removes the whole directory.
            Ok(None) if self.copy().exists()? => {
                let content =
                    self.copy().read_own(types).map_err(|copy| self.with_copy(&"it is gone", copy))?;
                let damaged = Some(format!("{} is gone", self.path.display()));
                Ok(content.map(|content| DatabaseContent { damaged, ..content }))
            }
            read => read,
        }
    }

    fn without_copy(&self, error: &StateError) -> StateError {
        self.damaged(&format!("{error}; there is no copy of it"))
    }

    /// Why neither the database nor its copy can be used. A copy that can't be read now may well be later.
    fn with_copy(&self, why: &dyn Display, copy: StateError) -> StateError {
        if !copy.is_damage() {
            return copy;
        }
        self.damaged(&format!("{why}; its copy can't be used either: {copy}"))
    }

    fn damaged(&self, why: &str) -> StateError {
        StateError::Damaged { path: self.path.clone(), why: why.to_owned() }
    }

    /// Puts the copy in the place of a damaged database, which is kept under another name.
    pub(crate) fn restore(&self) -> Result<(), StateError> {
        let failed = |path: &Path| StateError::file("put the copy in the place of", path.to_path_buf());
        // First what may fail.
        let beside = self.path.with_extension("new");
        copy_whole(&self.copy().path, &beside).map_err(failed(&beside))?;
        match fs::rename(&self.path, self.path.with_extension("damaged")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(&self.path)(error));
            }
            _ => {}
        }
        fs::rename(&beside, &self.path).map_err(failed(&self.path))?;
        sync_names(&self.path);
        Ok(())
    }

    /// Makes the copy, if it can be read; returns whether it did. Where there is no room for it, the last one stays.
    fn keep_copy(&self, types: &ItemTypes) -> Result<bool, StateError> {
        let copy = self.copy().path;
        let beside = Self { path: copy.with_extension("last-new") };
        let copied = copy_whole(&self.path, &beside.path).is_ok();
        // Only what can be read takes the place of the last good copy.
        let read_all = |store: &Self| {
            let content = store.read_whole(types)?;
            store.own_runs(usize::MAX).map(|_| content)
        };
        let read = if copied { beside.guarded(read_all) } else { Ok(None) };
        let kept = matches!(read, Ok(Some(_))) && fs::rename(&beside.path, &copy).is_ok();
        if kept {
            sync_names(&copy);
        } else {
            let _ = fs::remove_file(&beside.path);
        }
        match read {
            Err(error) if error.is_damage() => Err(self.damaged(&error.to_string())),
            _ => Ok(kept),
        }
    }

    /// The database, which was read whole, and its copy, if that holds the same. Otherwise the copy is made anew: the writer of the
    /// last checkpoint was killed, or there was no room.
    pub(crate) fn sync_copy(&self, serial: u64, types: &ItemTypes) -> Option<Stamps> {
        let summary = |store: &Self| store.guarded(Self::summary).ok().flatten();
        let is_copied = !serial.is_multiple_of(CHECKPOINTS_PER_COPY)
            && summary(self).is_some_and(|found| summary(&self.copy()) == Some(found));
        // What can't be copied now is copied with the next checkpoint.
        let is_copied = is_copied || self.guarded(|store| store.keep_copy(types)).unwrap_or(false);
        if is_copied { self.stamps() } else { None }
    }

    /// Reads what tells two checkpoints apart; none if there is none.
    fn summary(&self) -> Result<Option<Summary>, StateError> {
        let Some(txn) = self.begin_read()? else { return Ok(None) };
        let Some(meta) = self.table(txn.open_table(META))? else { return Ok(None) };
        let mut summary = Summary::default();
        for entry in self.done(meta.iter())? {
            let (key, value) = self.done(entry)?;
            summary.meta.push((key.value().to_owned(), value.value().to_owned()));
        }
        if let Some(items) = self.table(txn.open_table(ITEMS))? {
            summary.items = self.done(items.len())?;
        }
        if let Some(runs) = self.table(txn.open_table(RUNS))?
            && let Some((_, run)) = self.done(runs.last())?
        {
            summary.last_run = run.value().to_vec();
        }
        Ok(Some(summary))
    }

    /// The database and its copy as they are now.
    fn stamps(&self) -> Option<Stamps> {
        let (database, copy) = (FileStamp::of(&self.path)?, FileStamp::of(&self.copy().path)?);
        Some(Stamps { database, copy })
    }

    fn read_own(&self, types: &ItemTypes) -> Result<Option<DatabaseContent>, StateError> {
        self.guarded(|store| store.read_whole(types))
    }

    /// Reads something; from the copy where the database is damaged, or gone.
    fn or_copy<T>(&self, read: impl Fn(&Self) -> Result<T, StateError>) -> Result<Recovered<T>, StateError> {
        if !self.exists()? && self.copy().exists()? {
            let value = self.copy().guarded(&read).map_err(|copy| self.with_copy(&"it is gone", copy))?;
            return Ok(Recovered { value, damaged: Some(format!("{} is gone", self.path.display())) });
        }
        match self.guarded(&read) {
            Err(error) if error.is_damage() && !self.copy().exists()? => Err(self.without_copy(&error)),
            Err(error) if error.is_damage() => match self.copy().guarded(&read) {
                Ok(value) => Ok(Recovered { value, damaged: Some(error.to_string()) }),
                Err(copy) => Err(self.with_copy(&error, copy)),
            },
            read => Ok(Recovered { value: read?, damaged: None }),
        }
    }

    /// Reads or writes what may be damaged.
    fn guarded<T>(&self, work: impl Fn(&Self) -> Result<T, StateError>) -> Result<T, StateError> {
        let done = quietly(|| work(self));
        done.unwrap_or_else(|why| Err(StateError::Damaged { path: self.path.clone(), why }))
    }

    fn read_whole(&self, types: &ItemTypes) -> Result<Option<DatabaseContent>, StateError> {
        let Some(txn) = self.begin_read()? else { return Ok(None) };
        let Some(meta) = self.table(txn.open_table(META))? else { return Ok(None) };
        let field = |key: &str| -> Result<Option<String>, StateError> {
            Ok(self.done(meta.get(key))?.map(|value| value.value().to_owned()))
        };
        let number = |key: &str| -> Result<u64, StateError> {
            field(key)?.map_or(Ok(0), |text| self.number(key, &text))
        };
        let found = self.required("format", field("format")?)?;
        let has_digest = || Ok::<_, StateError>(field("digest")? == Some(self.meta_digest(&meta)?));
        if found > FORMAT {
            // No format that has a digest changes how it is made.
            if !has_digest()? {
                return Err(self.damaged("its format is not what was written"));
            }
            return Err(StateError::Format { path: self.path.clone(), found, known: FORMAT });
        }
        let set = field("set")?.unwrap_or_default();
        let mut graph = CurrentGraph::new(set.as_str());
        let items = self.table(txn.open_table(ITEMS))?;
        if items.is_none() && found >= WITH_DIGESTS {
            // A checkpoint makes the table, also where there is no item.
            return Err(self.damaged("its items are missing"));
        }
        if let Some(items) = items {
            graph.reserve(usize::try_from(self.done(items.len())?).unwrap_or(0));
            let digests = self.table(txn.open_table(DIGESTS))?;
            let mut digests =
                digests.iter().map(|table| self.done(table.iter())).collect::<Result<Vec<_>, _>>()?;
            let mut next_digest = || digests.first_mut().and_then(Iterator::next);
            // Items of one kind follow each other.
            let mut known_kind = Kind::new("");
            for entry in self.done(items.iter())? {
                let (key, value) = self.done(entry)?;
                let (kind, name) = key.value();
                if found >= WITH_DIGESTS {
                    let noted = next_digest().map(|entry| self.done(entry)).transpose()?;
                    let is_it = noted.is_some_and(|(of, noted)| {
                        of.value() == (kind, name) && noted.value() == item_digest(kind, name, value.value())
                    });
                    if !is_it {
                        return Err(self.damaged(&format!("{kind}/{name} is not what was written")));
                    }
                }
                if known_kind.as_str() != kind {
                    known_kind = Kind::new(kind);
                }
                let ReadItem { path, item, state, target } =
                    self.item(found, &known_kind, name, value.value(), types)?;
                // References are unique in the table, so that no put is refused.
                let put = match state {
                    Some(state) => {
                        graph.put_item_with_state(&path, item, state.with_unfinished_target(target))
                    }
                    None => graph.put_item_into(&path, item),
                };
                debug_assert!(put.is_ok());
            }
            if found >= WITH_DIGESTS && next_digest().is_some() {
                return Err(self.damaged("an item is missing"));
            }
        }
        if let Some(table) = self.table(txn.open_table(ADOPTED))? {
            for entry in self.done(table.iter())? {
                let (key, _) = self.done(entry)?;
                let (kind, name) = key.value();
                let slot = graph.slot_of(&ItemRef::new(Kind::new(kind), Name::new(name)));
                if let Some(state) = slot.and_then(|slot| graph.state_at_mut(slot)) {
                    *state = state.clone().adopted();
                }
            }
        }
        // What is in it is read by those who ask for it.
        self.runs_table(&txn)?;
        let (last_run, outdated) = (number("last_run")?, found < FORMAT);
        let serial = self.required("serial", field("serial")?)?;
        if found >= WITH_DIGESTS && !has_digest()? {
            return Err(self.damaged("what it says of all items is not what was written"));
        }
        let (location, manifests) = (field("place")?, field("manifests")?);
        let manifests = manifests.map(|text| serde_json::from_str(&text)).transpose();
        let manifests = manifests.map_err(|source| StateError::Broken {
            path: self.path.clone(),
            what: "the list of manifests".to_owned(),
            source,
        })?;
        let left_over = field(left::KEY)?.map_or(Ok(Vec::new()), |text| self.left_from_text(&text, types))?;
        Ok(Some(DatabaseContent {
            set,
            serial,
            last_run,
            location,
            manifests,
            left_over,
            graph,
            outdated,
            damaged: None,
        }))
    }

    /// Reads an item that was stored in some format.
    fn item(
        &self,
        format: u64,
        kind: &Kind,
        name: &str,
        bytes: &[u8],
        types: &ItemTypes,
    ) -> Result<ReadItem, StateError> {
        let broken =
            |source| StateError::Broken { path: self.path.clone(), what: format!("{kind}/{name}"), source };
        let broken_item = |why: &dyn Display| StateError::BrokenItem {
            path: self.path.clone(),
            why: format!("{kind}/{name}: {why}"),
        };
        let read = |text: &RawValue| {
            let item = types.item_from_text(kind, text.get()).map_err(|why| broken_item(&why))?;
            if item.reference().name().as_str() == name {
                Ok(item)
            } else {
                Err(broken_item(&format_args!("it is called {} inside", item.reference().name())))
            }
        };
        let StoredItem { path, item, state, target } = read_item(format, bytes).map_err(broken)?;
        Ok(ReadItem { path, item: read(item)?, state, target: target.map(read).transpose()? })
    }

    /// Reads how many checkpoints there have been; none without any.
    pub(crate) fn serial(&self) -> Result<Option<u64>, StateError> {
        self.guarded(|store| {
            let Some(txn) = store.begin_read()? else { return Ok(None) };
            let Some(meta) = store.table(txn.open_table(META))? else { return Ok(None) };
            let serial = store.done(meta.get("serial"))?.map(|serial| serial.value().to_owned());
            store.required("serial", serial).map(Some)
        })
    }

    /// A number that each database has.
    fn required(&self, key: &str, text: Option<String>) -> Result<u64, StateError> {
        let text = text.ok_or_else(|| self.damaged(&format!("its {key} is missing")))?;
        self.number(key, &text)
    }

    /// The digest of the values beside the items, in words.
    fn meta_digest(
        &self,
        meta: &impl ReadableTable<&'static str, &'static str>,
    ) -> Result<String, StateError> {
        let mut texts = Vec::new();
        for entry in self.done(meta.iter())? {
            let (key, value) = self.done(entry)?;
            if key.value() != "digest" {
                texts.extend([key.value().to_owned(), value.value().to_owned()]);
            }
        }
        Ok(format!("{:016x}", digest(texts.iter().map(String::as_bytes))))
    }

    fn number(&self, key: &str, text: &str) -> Result<u64, StateError> {
        text.parse().map_err(|_| self.damaged(&format!("its {key} is no number")))
    }

    /// Reads the runs, latest first, at most that many.
    pub(crate) fn runs(&self, most: usize) -> Result<Recovered<Vec<Run>>, StateError> {
        self.or_copy(|store| store.own_runs(most))
    }

    fn own_runs(&self, most: usize) -> Result<Vec<Run>, StateError> {
        let Some(txn) = self.begin_read()? else { return Ok(Vec::new()) };
        let Some(table) = self.runs_table(&txn)? else { return Ok(Vec::new()) };
        let latest = self.done(table.iter())?.rev().take(most);
        latest
            .map(|entry| {
                let (number, value) = self.done(entry)?;
                self.run(number.value(), value.value())
            })
            .collect()
    }

    /// Reads one run.
    pub(crate) fn run_numbered(&self, number: u64) -> Result<Recovered<Option<Run>>, StateError> {
        self.or_copy(|store| store.own_run_numbered(number))
    }

    fn own_run_numbered(&self, number: u64) -> Result<Option<Run>, StateError> {
        let Some(txn) = self.begin_read()? else { return Ok(None) };
        let Some(table) = self.runs_table(&txn)? else { return Ok(None) };
        let found = self.done(table.get(number))?;
        found.map(|value| self.run(number, value.value())).transpose()
    }

    /// The runs; none if there was none.
    fn runs_table(
        &self,
        txn: &ReadTransaction,
    ) -> Result<Option<ReadOnlyTable<u64, &'static [u8]>>, StateError> {
        let table = self.table(txn.open_table(RUNS))?;
        let Some(meta) = self.table(txn.open_table(META))? else { return Err(self.damaged("it is empty")) };
        if table.is_none() && self.done(meta.get("last_run"))?.is_some() {
            return Err(self.damaged("its runs are missing"));
        }
        Ok(table)
    }

    fn run(&self, number: u64, bytes: &[u8]) -> Result<Run, StateError> {
        let run: Run = serde_json::from_slice(bytes).map_err(|source| StateError::Broken {
            path: self.path.clone(),
            what: format!("run {number}"),
            source,
        })?;
        if run.number == number { Ok(run) } else { Err(self.damaged("a run has another number")) }
    }

    fn begin_read(&self) -> Result<Option<ReadTransaction>, StateError> {
        if !self.exists()? {
            return Ok(None);
        }
        let db = match self.open(|path| ReadOnlyDatabase::open(path)) {
            // Its writer was killed: it is put in order once, which takes someone who may write.
            Err(StateError::Database { source, .. }) if matches!(*source, redb::Error::RepairAborted) => {
                drop(self.open(|path| Database::open(path))?);
                self.open(|path| ReadOnlyDatabase::open(path))?
            }
            db => db?,
        };
        Ok(Some(self.done(db.begin_read())?))
    }

    /// Opens the database, waiting for other processes that have it open for a moment.
    fn open<D>(&self, open: impl Fn(&Path) -> Result<D, DatabaseError>) -> Result<D, StateError> {
        let start = Instant::now();
        loop {
            match open(&self.path) {
                Ok(db) => return Ok(db),
                Err(DatabaseError::DatabaseAlreadyOpen) if start.elapsed() < OPEN_TIMEOUT => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(DatabaseError::DatabaseAlreadyOpen) => {
                    return Err(StateError::Busy { path: self.path.clone(), waited: OPEN_TIMEOUT });
                }
                Err(error) => return Err(self.failed("open", error.into())),
            }
        }
    }

    /// A table; none if nothing was ever written into it.
    fn table<T>(&self, table: Result<T, TableError>) -> Result<Option<T>, StateError> {
        match table {
            Ok(table) => Ok(Some(table)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(self.failed("read", error.into())),
        }
    }

    fn done<T, E: Into<redb::Error>>(&self, result: Result<T, E>) -> Result<T, StateError> {
        result.map_err(|error| self.failed("use", error.into()))
    }

    fn failed(&self, what: &'static str, source: redb::Error) -> StateError {
        StateError::Database { what, path: self.path.clone(), source: Box::new(source) }
    }
}

/// The digest of an item as it is stored.
fn item_digest(kind: &str, name: &str, stored: &[u8]) -> u64 {
    digest([kind.as_bytes(), name.as_bytes(), stored])
}

/// Waits until the names in the directory of a file are on the disk. Where that fails, the system writes them later.
fn sync_names(beside: &Path) {
    if let Some(directory) = beside.parent() {
        let _ = fs::File::open(directory).and_then(|directory| directory.sync_all());
    }
}

/// Copies a file, and waits until the copy is on the disk.
fn copy_whole(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::copy(from, to)?;
    fs::File::open(to)?.sync_all()
}
