//! The state as others see it: a directory, a snapshot of what is known, and the one who may write.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_engine::{CurrentGraph, Record, replay};
use setpoint_graph::{GraphId, ItemHandle, ItemRef, ItemTypes, Revision, Touched};

use crate::database::{Checkpoint, DatabaseContent, FileStamp, Recovered, Stamps, Store};
use crate::entry::RunBegin;
use crate::journal::{self, JournalContent, JournalFile, ReadJournal};
use crate::lock::{self, Lock};
use crate::{Run, RunDetails, RunEntry, RunOutcome, StateError};

/// How long others may write one checkpoint after the other before reading what they wrote is an error.
const LOAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A directory that holds state.
#[derive(Clone, Debug)]
pub struct StateDir {
    dir: PathBuf,
    types: Arc<ItemTypes>,
}

/// What is known at some instant.
#[derive(Debug)]
pub struct Snapshot {
    /// The name of the manifest set that the state belongs to.
    pub set: String,
    /// The checkpoints so far: two snapshots of the same serial and no run under way are the same.
    pub serial: u64,
    /// Where the items are, in the words of whoever saved them; none if they did not say.
    pub location: Option<String>,
    /// The files that declared the items, in the words of whoever saved them; none if they did not say.
    pub manifests: Option<BTreeSet<String>>,
    /// What is known to exist.
    pub graph: CurrentGraph,
    /// Whether a run is under way, or was when its process ended.
    pub unfinished: bool,
    /// It is not the last state: the database or the journal is damaged, and what was used instead, in these words.
    pub damaged: Option<String>,
}

impl Snapshot {
    /// What is known where nothing was ever done.
    pub fn empty(set: &str) -> Self {
        Self {
            set: set.to_owned(),
            serial: 0,
            location: None,
            manifests: None,
            graph: CurrentGraph::new(set),
            unfinished: false,
            damaged: None,
        }
    }
}

/// Tells whether anybody has written the state meanwhile, without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateVersion {
    database: Option<FileStamp>,
    journal: Option<FileStamp>,
}

/// Who may write the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder(pub String);

impl Holder {
    /// Returns whether it is a process of this command.
    pub fn is_command(&self, command: &str) -> bool {
        self.0.ends_with(&format!("(setpoint {command})"))
    }
}

impl StateDir {
    /// A directory, which need not exist yet, for items of these types.
    pub fn new(dir: impl Into<PathBuf>, types: Arc<ItemTypes>) -> Self {
        Self { dir: dir.into(), types }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Who holds the lock now, if anybody does.
    pub fn holder(&self) -> Option<Holder> {
        let named = || lock::holder(&self.dir.join("lock")).unwrap_or_else(|| "another process".to_owned());
        lock::is_held(&self.dir).then(|| Holder(named()))
    }

    /// What tells the state as it is now from what anybody makes of it.
    pub fn version(&self) -> StateVersion {
        let [database, ..] = self.store().files();
        StateVersion { database: FileStamp::of(&database), journal: FileStamp::of(&self.journal_path()) }
    }

    /// Reads what is known, also beside a writer; none if nothing was ever written.
    pub fn read(&self) -> Result<Option<Snapshot>, StateError> {
        Ok(self.load()?.map(|(content, journalled)| {
            let damaged = content.damaged.as_deref().map(from_copy).or(journalled.damaged);
            Snapshot { damaged, ..snapshot(content, journalled.content.as_ref()) }
        }))
    }

    /// Reads the history, latest run first, at most that many.
    pub fn runs(&self, most: usize) -> Result<Recovered<Vec<Run>>, StateError> {
        Ok(saying_so(self.store().runs(most)?))
    }

    /// Reads one run of the history.
    pub fn run(&self, number: u64) -> Result<Recovered<Option<Run>>, StateError> {
        Ok(saying_so(self.store().run_numbered(number)?))
    }

    /// Becomes the writer of a set's state, waiting for another one for at most that long, and learns what
    /// is known.
    ///
    /// The state of another set is refused. A run that its process did not live to finish is taken over.
    pub fn lock(
        &self,
        set: &str,
        command: &str,
        wait: Duration,
    ) -> Result<(Writer, CurrentGraph), StateError> {
        // Items are in it whole, secrets included.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir);
        made.map_err(StateError::file("make the directory", &self.dir))?;
        let lock = Arc::new(Lock::take(&self.dir, command, wait)?);
        self.close_to_others()?;
        let journal = JournalFile::new(self.journal_path(), Arc::clone(&self.types), Arc::clone(&lock));
        let journal = Arc::new(journal);
        let loaded = self.load()?;
        if let Some((content, _)) = &loaded
            && content.set != set
        {
            let (found, wanted) = (content.set.clone(), set.to_owned());
            return Err(StateError::OtherSet { dir: self.dir.clone(), found, wanted });
        }
        let is_new = loaded.is_none();
        let (content, journalled) =
            loaded.unwrap_or_else(|| (DatabaseContent::empty(set), ReadJournal::default()));
        let damaged = self.recover(&content, &journalled)?;
        let journalled = journalled.content;
        let (serial, last_run, outdated) = (content.serial, content.last_run, content.outdated);
        let found = serial;
        // What a lost run did stays in the journal until all of it is saved: only there it is whole.
        let lost = journalled.as_ref().map(|journalled| lost_run(journalled, last_run + 1));
        let left_over = content.left_over.clone();
        let mut interrupted = journalled.as_ref().map(interrupted_items).unwrap_or_default();
        interrupted
            .extend(left_over.iter().filter(|item| !interrupted.contains(item)).cloned().collect::<Vec<_>>());
        let Snapshot { graph, location, manifests, .. } = snapshot(content, journalled.as_ref());
        let last_run = last_run + u64::from(lost.is_some());
        let goes_on = lost.is_some();
        let state = Mutex::new(WriterState {
            serial,
            last_run,
            location,
            manifests,
            left_over,
            saved: None,
            stamps: None,
            unsaved: lost.into_iter().collect(),
        });
        let writer = Writer {
            dir: self.clone(),
            set: set.to_owned(),
            journal,
            state,
            interrupted_items: interrupted,
            damaged,
            found,
            lock,
        };
        if is_new {
            // That there is a state now is no change to what is known.
            writer.write(&graph, None, serial)?;
        } else if goes_on {
            let whole = journalled.as_ref().map_or(0, |journalled| journalled.length);
            writer.journal.cut(whole).map_err(StateError::file("mend", self.journal_path()))?;
        } else {
            // A journal that goes on from an earlier checkpoint says nothing new.
            writer.clear_journal()?;
            writer.state().saved = (!outdated).then(|| (graph.id(), graph.revision()));
        }
        if !is_new {
            writer.state().stamps = self.store().sync_copy(serial, &self.types);
        }
        Ok((writer, graph))
    }

    /// Puts the copy in the place of a damaged database, and sets aside what is not known of a journal. Returns what was damaged,
    /// in words.
    fn recover(
        &self,
        content: &DatabaseContent,
        journalled: &ReadJournal,
    ) -> Result<Option<String>, StateError> {
        let aside = self.journal_path().with_extension("damaged");
        let set_aside = || {
            // The lines that can be read are still needed. It may be all that is left of what a run did.
            let copied =
                fs::copy(self.journal_path(), &aside).and_then(|_| fs::File::open(&aside)?.sync_all());
            copied.map_err(StateError::file("set aside", self.journal_path()))
        };
        if let Some(damaged) = &content.damaged {
            self.store().restore()?;
            let mut damaged = damaged.clone();
            if journalled.content.is_none() && self.journal_path().exists() {
                set_aside()?;
                let _ = write!(damaged, "; what a later run did is in {}", aside.display());
            }
            return Ok(Some(from_copy(&damaged)));
        }
        let Some(damaged) = &journalled.damaged else { return Ok(None) };
        set_aside()?;
        Ok(Some(format!(
            "{damaged}; what a run did from there on is not known, and is in {}",
            aside.display()
        )))
    }

    /// Takes from others what an earlier version, or a restore from a backup, let them read.
    fn close_to_others(&self) -> Result<(), StateError> {
        let journals = [self.journal_path(), self.journal_path().with_extension("damaged")];
        for path in self.store().files().into_iter().chain(journals) {
            let Ok(found) = fs::metadata(&path) else { continue };
            if found.permissions().mode() & 0o077 != 0 {
                let closed = fs::set_permissions(&path, fs::Permissions::from_mode(0o600));
                closed.map_err(StateError::file("close to others", &path))?;
            }
        }
        Ok(())
    }

    fn store(&self) -> Store {
        Store::new(&self.dir)
    }

    fn journal_path(&self) -> PathBuf {
        self.dir.join("journal")
    }

    fn load(&self) -> Result<Option<(DatabaseContent, ReadJournal)>, StateError> {
        let began = Instant::now();
        loop {
            let Some(content) = self.store().read(&self.types)? else { return Ok(None) };
            let journalled = journal::read(&self.journal_path(), content.serial, &self.types)?;
            if content.damaged.is_some() || journalled.content.is_some() {
                return Ok(Some((content, journalled)));
            }
            // A checkpoint between the two reads leaves a journal that goes on from a later state.
            match self.store().serial() {
                Ok(Some(serial)) if serial == content.serial => return Ok(Some((content, journalled))),
                // It was damaged just now, and is read from its copy.
                Err(error) if !error.is_damage() => return Err(error),
                _ if began.elapsed() > LOAD_TIMEOUT => {
                    return Err(StateError::Busy { path: self.dir.clone(), waited: LOAD_TIMEOUT });
                }
                _ => {}
            }
        }
    }
}

/// The one who may write, for as long as it lives.
#[derive(Debug)]
pub struct Writer {
    dir: StateDir,
    set: String,
    journal: Arc<JournalFile>,
    state: Mutex<WriterState>,
    interrupted_items: Vec<ItemHandle>,
    damaged: Option<String>,
    found: u64,
    lock: Arc<Lock>,
}

/// What a writer knows of its checkpoints.
#[derive(Debug)]
struct WriterState {
    serial: u64,
    last_run: u64,
    location: Option<String>,
    manifests: Option<BTreeSet<String>>,
    left_over: Vec<ItemHandle>,
    /// The graph that was saved last, and how far.
    saved: Option<(GraphId, Revision)>,
    /// How the database and its copy were left; none if they may differ.
    stamps: Option<Stamps>,
    /// Runs that are not saved yet: one whose process did not live to finish it, and those for which there was no room.
    unsaved: Vec<Run>,
}

impl Writer {
    /// The journal, for the engine of a run.
    pub fn journal(&self) -> Arc<JournalFile> {
        Arc::clone(&self.journal)
    }

    /// The checkpoint that was found when the writer became one, as [`Snapshot::serial`] tells it.
    pub fn found_serial(&self) -> u64 {
        self.found
    }

    /// Returns whether there is a run that is not saved yet: a lost one that was taken over, or one for which there was no
    /// room.
    pub fn has_unsaved_runs(&self) -> bool {
        !self.state().unsaved.is_empty()
    }

    /// How the database or the journal was damaged, and what was used instead; none if they were not.
    pub fn damaged(&self) -> Option<&str> {
        self.damaged.as_deref()
    }

    /// The items that a lost run was working on, with their old and new values, and those of which something was left before
    /// that could not be removed.
    pub fn interrupted_items(&self) -> &[ItemHandle] {
        &self.interrupted_items
    }

    /// Where the items are, in the words of whoever saved them.
    pub fn location(&self) -> Option<String> {
        self.state().location.clone()
    }

    /// Says where the items are; the next run that is journalled, and the next checkpoint, save it.
    pub fn set_location(&self, location: impl Into<String>) {
        self.state().location = Some(location.into());
    }

    /// The files that declared the items, in the words of whoever saved them.
    pub fn manifests(&self) -> Option<BTreeSet<String>> {
        self.state().manifests.clone()
    }

    /// Says which files declare the items; the next run that is journalled, and the next checkpoint, save it. Returns whether
    /// it is news.
    pub fn set_manifests(&self, manifests: BTreeSet<String>) -> bool {
        let mut state = self.state();
        let is_news = state.manifests.as_ref() != Some(&manifests);
        state.manifests = Some(manifests);
        is_news
    }

    /// Says of which items something was left that could not be removed, with their values: the next checkpoint saves it, and
    /// whoever becomes the writer then finds them among [`Writer::interrupted_items`]. Returns whether it is news.
    pub fn set_left_over(&self, items: Vec<ItemHandle>) -> bool {
        let mut state = self.state();
        let is_news = state.left_over != items;
        state.left_over = items;
        is_news
    }

    /// Where the state is.
    pub fn dir(&self) -> &StateDir {
        &self.dir
    }

    /// Says that a run begins: what is journalled from now on belongs to it. Returns its number.
    ///
    /// `protection` has the items of which the run changes whether they may be deleted, also those that it is about to make:
    /// it is journalled before anything is done, so that it holds whenever the run is cut off.
    /// `details` are what the history will say of it.
    pub fn begin(
        &self,
        command: &str,
        at: Timestamp,
        protection: Vec<(ItemRef, bool)>,
        details: RunDetails,
    ) -> u64 {
        let state = self.state();
        let begin = RunBegin {
            serial: state.serial,
            command: command.to_owned(),
            at,
            location: state.location.clone(),
            manifests: state.manifests.clone(),
            protection,
            details,
        };
        self.journal.begin(begin);
        state.last_run + 1
    }

    /// Saves the graph, and the run that led to it, in one step; the journal starts anew.
    pub fn save(&self, graph: &CurrentGraph, run: Option<Run>) -> Result<(), StateError> {
        let serial = self.state().serial + 1;
        self.write(graph, run, serial)
    }

    fn write(&self, graph: &CurrentGraph, run: Option<Run>, serial: u64) -> Result<(), StateError> {
        let in_place = self.lock.check().map_err(StateError::file("write the state in", &self.dir.dir));
        let mut state = self.state();
        let mut stamps = state.stamps.take();
        let checkpoint = Checkpoint {
            set: &self.set,
            serial,
            location: state.location.as_deref(),
            manifests: state.manifests.as_ref(),
            left_over: &state.left_over,
            graph,
            touched: touched(graph, state.saved),
            runs: state.unsaved.iter().chain(&run).collect(),
        };
        let store = self.dir.store();
        let written = in_place.and_then(|()| store.write(&checkpoint, &self.dir.types, &mut stamps));
        if let Err(error) = written {
            drop(checkpoint);
            if let Some(run) = run {
                // The next checkpoint has it.
                state.last_run = run.number;
                state.unsaved.push(run);
            }
            return Err(error);
        }
        state.unsaved.clear();
        state.stamps = stamps;
        state.serial = serial;
        state.last_run = run.map_or(state.last_run, |run| run.number);
        state.saved = Some((graph.id(), graph.revision()));
        drop(state);
        self.clear_journal()
    }

    fn clear_journal(&self) -> Result<(), StateError> {
        self.journal.clear().map_err(StateError::file("empty", self.dir.journal_path()))
    }

    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says of a damaged database that its copy is used.
fn from_copy(damaged: &str) -> String {
    format!("{damaged}; what it held when it was last copied is used instead")
}

fn saying_so<T>(read: Recovered<T>) -> Recovered<T> {
    Recovered { damaged: read.damaged.as_deref().map(from_copy), ..read }
}

/// What a checkpoint and the journal after it come to.
fn snapshot(content: DatabaseContent, journalled: Option<&JournalContent>) -> Snapshot {
    let DatabaseContent { set, serial, location, manifests, graph, damaged, .. } = content;
    let Some(journalled) = journalled else {
        return Snapshot { set, serial, location, manifests, graph, unfinished: false, damaged };
    };
    let location = journalled.location.clone().or(location);
    let manifests = journalled.manifests.clone().or(manifests);
    let mut graph = replay(set.as_str(), Some(graph), &journalled.records);
    for (item, protected) in &journalled.protection {
        if let Some(slot) = graph.slot_of(item)
            && let Some(state) = graph.state_at_mut(slot)
        {
            state.protect(*protected);
            graph.touch_at(slot);
        }
    }
    Snapshot { set, serial, location, manifests, graph, unfinished: true, damaged }
}

/// The items that changed since the last checkpoint; none if that is not known.
fn touched(graph: &CurrentGraph, saved: Option<(GraphId, Revision)>) -> Option<BTreeSet<ItemRef>> {
    let (_, revision) = saved.filter(|(id, _)| *id == graph.id())?;
    let touched = graph.touched_since(revision)?.filter_map(|touched| match touched {
        Touched::Slot(slot) => graph.reference_at(*slot).cloned(),
        Touched::Gone(item) => Some((**item).clone()),
    });
    Some(touched.collect())
}

/// The values of the items whose operations a journal does not end.
fn interrupted_items(journalled: &JournalContent) -> Vec<ItemHandle> {
    let mut open: BTreeMap<&ItemRef, Vec<&ItemHandle>> = BTreeMap::new();
    for record in &journalled.records {
        match record {
            Record::Started { item, target, .. } => {
                open.insert(item.reference(), std::iter::once(item).chain(target).collect());
            }
            Record::Ended { item, .. } | Record::Withdrawn { item, .. } => {
                open.remove(item);
            }
            _ => {}
        }
    }
    open.into_values().flatten().cloned().collect()
}

/// What a journal says of a run whose process ended before it did.
fn lost_run(journalled: &JournalContent, number: u64) -> Run {
    let mut entries: Vec<RunEntry> = Vec::new();
    let mut ended = journalled.began.unwrap_or(Timestamp::UNIX_EPOCH);
    for record in &journalled.records {
        match record {
            Record::Started { operation, item, at, .. } => {
                let item = item.reference();
                entries.push(RunEntry {
                    operation: *operation,
                    kind: item.kind().to_string(),
                    name: item.name().to_string(),
                    adopted: false,
                    started: *at,
                    ended: None,
                    error: None,
                    reason: None,
                    changes: Vec::new(),
                });
                ended = ended.max(*at);
            }
            Record::Ended { item, outcome, at } => {
                let entry = entries
                    .iter_mut()
                    .rev()
                    .find(|entry| entry.kind == item.kind().as_str() && entry.name == item.name().as_str());
                if let Some(entry) = entry {
                    entry.ended = Some(*at);
                    entry.error = outcome.as_ref().err().map(ToString::to_string);
                }
                ended = ended.max(*at);
            }
            _ => {}
        }
    }
    let started = journalled.began.unwrap_or(ended);
    journalled.details.complete(&mut entries);
    let (command, drift) = (journalled.command.clone(), journalled.details.drift.clone());
    Run { number, command, started, ended, outcome: RunOutcome::Lost, drift, entries }
}
