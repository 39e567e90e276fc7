//! One HAProxy and its configuration, in the hands of one process.
//!
//! ```text
//!  edit ──▶ transaction, or a change of its own ──commit──▶ check ──▶ write ──▶ apply ──▶ told at runtime, or one reload
//!                                                             ▲                                    │
//!  file edited by hand ──seen before each commit──────────────┘        failed: the last good text ◀┘
//! ```
//!
//! The file is the truth: what is in memory is what was read from it. A commit names the version it was made for, and is
//! refused if there is another one by now.

mod backups;
mod commit;
mod differences;
mod files;
mod good;
mod inherited;
mod lock;
mod look;
mod operator;
mod record;
mod reloading;
mod reloads;
mod settings;
mod standing;
mod telling;
mod transactions;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use setpoint_haproxy::compare::{CompareError, Diff, compare};
use setpoint_haproxy::model::Context;
use setpoint_haproxy::text::Document;
use tokio::sync::{Notify, broadcast};

use crate::blocking::run_blocking;
use crate::cli::Socket;
use crate::configuration::{Configuration, ReadError};
use crate::journal::{Journal, JournalError};
use crate::reload::Master;
use crate::runtime::{Leftover, Worker};
pub use commit::{Applied, CommitError, Committed, ReloadChoice};
pub use files::{FileError, Replaced};
pub use lock::{Lock, LockError};
use record::Record;
use reloads::Reloads;
pub use reloads::{Reload, ReloadStatus};
pub use settings::Settings;
use standing::{Running, Standing};
pub use telling::{loaded, without_empty_lines};
use transactions::Transactions;
pub use transactions::{Transaction, TransactionStatus, new_id};

/// How many changes of a file that somebody else changed are named.
const NAMED_CHANGES: usize = 50;
/// What is said of a file in which somebody else changed nothing that HAProxy reads.
const ONLY_WRITING: &str = "only comments, blanks or the way in which words are written";

/// Events that nobody has read yet; who is slower misses the oldest.
const EVENTS: usize = 256;

/// One HAProxy and its configuration.
#[derive(Clone, Debug)]
pub struct Instance {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    cx: &'static Context,
    _locks: Vec<Lock>,
    journal: Journal,
    master: Socket,
    /// Held for moments, never while something is waited for.
    state: Mutex<State>,
    /// Held by the one that writes, checks or reloads.
    writer: tokio::sync::Mutex<Writer>,
    /// Somebody ordered a reload, or has something to be checked.
    wake: Notify,
    events: broadcast::Sender<Event>,
}

/// What is known.
#[derive(Debug)]
struct State {
    current: Configuration,
    /// What HAProxy has said of it.
    standing: Standing,
    signatures: Vec<Option<Signature>>,
    /// Whether a commit is writing the files, or could not write all of them: what they hold is no configuration.
    files_are_torn: bool,
    transactions: Transactions,
    reloads: Reloads,
    /// Servers that are gone from the configuration, and not from HAProxy.
    leftovers: Vec<Leftover>,
}

/// What only the one that writes needs to know.
#[derive(Debug)]
struct Writer {
    /// The last text that HAProxy accepted and ran, if there was one.
    good: Option<Configuration>,
    /// Whether that text is kept on disk, because the files hold another one.
    good_is_kept: bool,
    running: Running,
    /// Whether somebody has looked at what runs since this program began.
    has_looked: bool,
    /// The servers that were changed at runtime since the worker was started, each with its backend.
    changed_servers: BTreeSet<(String, String)>,
    /// Whether what HAProxy runs is still to be recorded.
    unrecorded: bool,
    record: Record,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A commit was written.
    Committed {
        /// The new version.
        version: u64,
        /// How it takes effect: `runtime`, `reload`, `reloaded` or `skipped`.
        applied: &'static str,
        /// Why it reloads, if it does.
        reason: Option<String>,
    },
    /// A reload ended.
    Reloaded {
        /// Its name, if one was ordered.
        id: Option<String>,
        /// Whether a new worker serves.
        succeeded: bool,
        /// What HAProxy printed, or why there is no reload.
        response: String,
    },
    /// Somebody else changed a file.
    FileChanged {
        /// The version it has now.
        version: u64,
        /// What it has changed, an operation each; of very many the first, and how many more there are. None where HAProxy reads the
        /// same.
        changes: Vec<String>,
    },
    /// The last good text was written back.
    Restored {
        /// The version it has now.
        version: u64,
        /// Why.
        reason: String,
    },
    /// The running HAProxy differs from its configuration.
    Drift {
        /// In what.
        difference: String,
    },
}

impl Event {
    /// Writes a line about it.
    fn log(&self) {
        match self {
            Self::Committed { version, applied, reason } => {
                let reason = reason.as_deref().unwrap_or_default();
                tracing::info!(version, applied, reason, "a commit was written");
            }
            Self::Reloaded { id, succeeded: true, .. } => {
                tracing::info!(id = id.as_deref().unwrap_or("forced"), "HAProxy has reloaded");
            }
            Self::Reloaded { id, response, .. } => {
                tracing::error!(id = id.as_deref().unwrap_or("forced"), response, "HAProxy has not reloaded");
            }
            Self::FileChanged { version, changes } => {
                let changes = if changes.is_empty() { ONLY_WRITING.to_owned() } else { changes.join("; ") };
                tracing::warn!(version, changes, "somebody else changed the configuration");
            }
            Self::Restored { version, reason } => {
                tracing::error!(version, reason, "the last good configuration was written back");
            }
            Self::Drift { difference } => {
                tracing::warn!(difference, "HAProxy differs from its configuration");
            }
        }
    }
}

/// Tells versions of a file apart without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Signature {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Signature {
    fn of(path: &Path) -> Option<Self> {
        let status = fs::metadata(path).ok()?;
        Some(Self {
            device: status.dev(),
            inode: status.ino(),
            size: status.size(),
            modified: (status.mtime(), status.mtime_nsec()),
            changed: (status.ctime(), status.ctime_nsec()),
        })
    }

    fn of_all(files: &[PathBuf]) -> Vec<Option<Self>> {
        files.iter().map(|file| Self::of(file)).collect()
    }
}

/// Why an instance can't be had.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its folder can't be made.
    #[error("can't make the folder {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has it, or the lock can't be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// What was cut off can't be completed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The configuration can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Removes what a process that was killed was about to write.
fn remove_drafts(settings: &Settings) {
    let files = settings.files.iter().map(|file| setpoint_files::remove_drafts(file));
    for removed in files.chain([setpoint_files::remove_drafts_in(&settings.folder)]) {
        if let Err(error) = removed {
            tracing::warn!(%error, "a draft that was left behind could not be removed");
        }
    }
}

impl Instance {
    /// Takes a configuration in hand: locks it, completes what was cut off, and reads it.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let folder = settings.folder.clone();
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|source| OpenError::Folder { path: folder.clone(), source })?;
        let locks = lock::take_all(&settings)?;
        let journal = Journal::new(&folder);
        journal.recover()?;
        remove_drafts(&settings);
        // It is needed for as long as the process lives, by every copy of the configuration.
        let cx: &'static Context = Box::leak(Box::new(settings.context.clone()));
        let signatures = Signature::of_all(&settings.files);
        let mut current = Configuration::read(&settings.files, cx)?;
        let text = record::hash(&current.print());
        let mut record = Record::read(&folder).unwrap_or_else(|| Record {
            version: current.version(),
            text: text.clone(),
            files: signatures.clone(),
            worker: None,
            started: None,
            started_about: None,
            loaded: None,
        });
        if record.files != signatures && record.text != text {
            // Somebody changed the file while nobody looked: what was read before is another version.
            current.raise_version(record.version + 1);
        }
        let kept = good::kept(&folder, &settings.files, cx);
        let is_loaded = record.loaded.as_ref() == Some(&text);
        let running = match &kept {
            // It is looked at before anybody relies on it.
            _ if is_loaded || record.worker.is_none() => Running::text(current.whole().into_owned()),
            Some(kept) if record.loaded == Some(record::hash(&kept.print())) => {
                Running::Since(Some(Arc::new(kept.whole().into_owned())))
            }
            _ => Running::Since(None),
        };
        let standing = match &kept {
            Some(_) if settings.checks => Standing::Unchecked,
            Some(_) => Standing::Checked,
            None if is_loaded => Standing::Good,
            None => Standing::Foreign,
        };
        (record.version, record.text, record.files) = (current.version(), text, signatures.clone());
        let writer = Writer {
            good_is_kept: kept.is_some(),
            good: kept.or_else(|| is_loaded.then(|| current.fork())),
            running,
            has_looked: false,
            changed_servers: BTreeSet::new(),
            unrecorded: false,
            record,
        };
        let state = State {
            current,
            standing,
            signatures,
            files_are_torn: false,
            transactions: Transactions::default(),
            reloads: Reloads::read(&folder),
            leftovers: Vec::new(),
        };
        let inner = Inner {
            master: Socket::new(&settings.master_socket),
            cx,
            _locks: locks,
            journal,
            state: Mutex::new(state),
            writer: tokio::sync::Mutex::new(writer),
            wake: Notify::new(),
            events: broadcast::channel(EVENTS).0,
            settings,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What it was told about itself.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// What texts are read for.
    pub fn context(&self) -> &'static Context {
        self.inner.cx
    }

    /// The files that are mounts of their own, and so are written in place.
    pub fn in_place(&self) -> Vec<PathBuf> {
        let files = self.inner.settings.files.iter();
        files.filter(|file| setpoint_files::is_mount(file).unwrap_or(false)).cloned().collect()
    }

    /// The master, as it is reached.
    pub fn master(&self) -> Master {
        if self.inner.settings.by_process { self.master_process() } else { Master::from(&self.inner.master) }
    }

    /// The master as a process of this machine.
    fn master_process(&self) -> Master {
        let files = self.inner.settings.files.clone();
        Master::Process { files, worker: self.worker().socket().clone() }
    }

    /// What happens from now on.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.inner.events.subscribe()
    }

    fn emit(&self, event: Event) {
        event.log();
        // Nobody may be listening.
        let _ = self.inner.events.send(event);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is whole by itself.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the current configuration, for a moment: all others wait. The file is read anew if somebody else changed it.
    pub fn read<T>(&self, look: impl FnOnce(&mut Configuration) -> T) -> T {
        let _ = self.refresh();
        look(&mut self.state().current)
    }

    /// A copy of the current configuration, for whoever looks at much of it: nobody waits meanwhile. The file is read anew if
    /// somebody else changed it.
    pub fn snapshot(&self) -> Configuration {
        self.read(|current| current.fork())
    }

    /// The version of the current configuration.
    pub fn version(&self) -> u64 {
        self.read(|current| current.version())
    }

    /// Reads the files anew if somebody else changed them.
    fn refresh(&self) -> Result<(), ReadError> {
        let files = &self.inner.settings.files;
        let mut state = self.state();
        if state.files_are_torn {
            return Ok(());
        }
        let signatures = Signature::of_all(files);
        if signatures == state.signatures {
            return Ok(());
        }
        let mut found = Configuration::read(files, self.inner.cx)?;
        state.signatures = signatures;
        if !found.differs_from(&state.current) {
            return Ok(());
        }
        let version = found.version().max(state.current.version() + 1);
        found.raise_version(version);
        let now = found.fork();
        let before = std::mem::replace(&mut state.current, found);
        state.standing = Standing::Foreign;
        drop(state);
        // It may be long: nobody waits for the comparison but who has seen the file first.
        let changes = run_blocking(|| self.changes(&before.whole(), &now.whole()));
        self.emit(Event::FileChanged { version, changes });
        Ok(())
    }

    /// What leads from one text to another, in words.
    fn changes(&self, from: &Document, to: &Document) -> Vec<String> {
        let diff = match self.compare(from, to) {
            Ok(diff) => diff,
            Err(error) => return vec![error.to_string()],
        };
        let operations = diff.operations();
        let mut changes: Vec<String> =
            operations.iter().take(NAMED_CHANGES).map(ToString::to_string).collect();
        match operations.len() - changes.len() {
            0 => {}
            more => changes.push(format!("and {more} more")),
        }
        changes
    }

    /// The worker that serves, as it is reached.
    pub fn worker(&self) -> Worker {
        if let Some(path) = &self.inner.settings.worker_socket {
            return Worker::at(path.clone());
        }
        Worker::of(&self.state().current.whole(), &self.inner.master, self.inner.cx.haproxy)
    }

    /// Begins a transaction for a version.
    pub fn begin(&self, version: u64) -> Result<Transaction, CommitError> {
        self.refresh()?;
        let mut state = self.state();
        let current = state.current.version();
        if version != current {
            return Err(CommitError::Stale { current, given: version });
        }
        let most = self.inner.settings.open_transactions;
        if state.transactions.open() >= most {
            return Err(CommitError::TooMany(most));
        }
        let copy = state.current.fork();
        Ok(state.transactions.begin(copy))
    }

    /// Looks at what a transaction comes to, or changes it; none if it is not in progress.
    pub fn in_transaction<T>(&self, id: &str, work: impl FnOnce(&mut Configuration) -> T) -> Option<T> {
        let mut state = self.state();
        state.transactions.configuration(id).map(work)
    }

    /// All transactions, in the order in which they were begun.
    pub fn transactions(&self) -> Vec<Transaction> {
        self.state().transactions.list()
    }

    /// How many transactions are in progress.
    pub fn open_transactions(&self) -> usize {
        self.state().transactions.open()
    }

    /// How many servers are gone from the configuration, and not from HAProxy.
    pub fn leftovers(&self) -> usize {
        self.state().leftovers.len()
    }

    /// One transaction.
    pub fn transaction(&self, id: &str) -> Option<Transaction> {
        self.state().transactions.get(id)
    }

    /// Drops a transaction. Returns whether it was there.
    pub fn discard(&self, id: &str) -> bool {
        self.state().transactions.remove(id)
    }

    /// What committing a transaction would do.
    pub fn plan(&self, id: &str) -> Option<Result<Diff, CompareError>> {
        let mut state = self.state();
        let new = state.transactions.configuration(id)?.fork();
        let current = state.current.fork();
        drop(state);
        Some(run_blocking(|| self.compare(&current.whole(), &new.whole())))
    }

    /// Compares two texts, with the verdicts of what can be told here.
    fn compare(&self, old: &Document, new: &Document) -> Result<Diff, CompareError> {
        let mut diff = compare(old, new, self.inner.cx)?;
        diff.narrow(commit::needs_reload);
        Ok(diff)
    }

    /// The reloads that are remembered, the newest first.
    pub fn reloads(&self) -> Vec<Reload> {
        self.state().reloads.list()
    }

    /// One reload; none if there never was one of this name.
    pub fn reload_by_id(&self, id: &str) -> Option<Reload> {
        self.state().reloads.find(id)
    }

    /// Orders a reload, which further commits share. Returns its name.
    pub fn order_reload(&self) -> String {
        let id = self.state().reloads.order(self.inner.settings.reload_delay);
        self.inner.wake.notify_one();
        id
    }
}
