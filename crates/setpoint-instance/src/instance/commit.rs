//! Commits: checked, written, applied.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use setpoint_files::{Draft, WriteError};
use setpoint_haproxy::compare::{CompareError, Diff, Operation};
use tokio::task::spawn_blocking;

use super::transactions::new_id;
use super::{Event, Instance, Running, Signature, Standing, TransactionStatus, Writer, record};
use crate::blocking::run_blocking;
use crate::check::{Check, CheckError};
use crate::configuration::{Configuration, ReadError};
use crate::journal::{Change, JournalError};
use crate::runtime::apply;
use crate::text;

/// When a commit that needs a reload gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReloadChoice {
    /// After the delay, with all others that were committed meanwhile; never, if it can be told at runtime.
    #[default]
    Delayed,
    /// At once, and the commit waits for it.
    Now,
    /// Never: who commits sees to it.
    Skip,
}

/// How a commit takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// HAProxy was told all of it, or there was nothing to tell.
    Runtime,
    /// A reload waits, under this name.
    Ordered(String),
    /// HAProxy has reloaded.
    Reloaded,
    /// Not at all, as was asked for.
    Skipped,
}

/// What came of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The new version.
    pub version: u64,
    /// How it takes effect.
    pub applied: Applied,
    /// Why a reload is needed, if one is.
    pub reason: Option<String>,
}

/// Why a commit is refused.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// It was made for another version.
    #[error("the configuration has version {current}, and the change was made for {given}")]
    Stale {
        /// The version of the configuration.
        current: u64,
        /// The version it was made for.
        given: u64,
    },
    /// There are too many transactions.
    #[error("{0} transactions are open already")]
    TooMany(usize),
    /// There is no such transaction.
    #[error("there is no transaction {0}")]
    NoTransaction(String),
    /// The transaction can't be committed any more.
    #[error("transaction {id} is {}", match status { TransactionStatus::Failed => "failed", _ => "outdated" })]
    Ended {
        /// Its name.
        id: String,
        /// What became of it.
        status: TransactionStatus,
    },
    /// HAProxy refuses the text.
    #[error("HAProxy refuses the configuration: {messages}")]
    Refused {
        /// The transaction.
        id: String,
        /// What HAProxy printed.
        messages: String,
    },
    /// HAProxy could not be asked.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// It can't be written.
    #[error(transparent)]
    Write(#[from] JournalError),
    /// The file can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is written, and HAProxy has not reloaded.
    #[error("the reload failed: {0}")]
    Reload(String),
}

impl From<WriteError> for CommitError {
    fn from(error: WriteError) -> Self {
        Self::Write(error.into())
    }
}

/// Writes what is to take the place of a single file beside it, on disk, beside whatever else is done. None if several files change,
/// or if the file can't be replaced as a whole: then a journal is needed.
fn prepare_beside(
    changed: &Arc<Vec<(PathBuf, Vec<u8>)>>,
) -> impl Future<Output = Result<Option<Draft>, CommitError>> + use<> {
    let changed = Arc::clone(changed);
    let prepared = spawn_blocking(move || match changed.as_slice() {
        [(path, bytes)] => match Draft::prepare(path, bytes) {
            Err(WriteError::Mounted(_)) => Ok(None),
            draft => draft.map(Some),
        },
        _ => Ok(None),
    });
    // Without a draft, it is written when it is needed.
    async move { Ok(prepared.await.unwrap_or(Ok(None))?) }
}

/// Makes sure that a file stays where it was renamed to, beside whatever else is done.
pub(super) fn on_disk(renamed: Option<PathBuf>) -> impl Future<Output = Result<(), CommitError>> {
    let synced = renamed.map(|path| {
        spawn_blocking(move || {
            let synced = setpoint_files::sync_folder(&path);
            synced.map_err(|source| WriteError::Step { step: "write to disk the folder of", path, source })
        })
    });
    async move {
        match synced {
            // Nobody ends such a thread but the end of the program.
            Some(synced) => Ok(synced.await.unwrap_or(Ok(()))?),
            None => Ok(()),
        }
    }
}

/// Why an operation that HAProxy could be told is not told by this program.
pub(super) fn needs_reload(operation: &Operation) -> Option<String> {
    (!apply::has_commands(operation)).then(|| format!("a new {} comes with a reload", operation.kind()))
}

impl Instance {
    /// Commits a transaction.
    pub async fn commit(&self, id: &str, choice: ReloadChoice) -> Result<Committed, CommitError> {
        let mut writer = self.inner.writer.lock().await;
        let new = {
            let mut state = self.state();
            match state.transactions.get(id) {
                None => return Err(CommitError::NoTransaction(id.to_owned())),
                Some(transaction) if transaction.version.is_none() => {
                    return Err(CommitError::Ended { id: id.to_owned(), status: transaction.status });
                }
                Some(_) => {}
            }
            state.transactions.take(id).ok_or_else(|| CommitError::NoTransaction(id.to_owned()))?
        };
        let given = new.version();
        let committed = self.write(&mut writer, new.fork(), given, choice, id).await;
        let mut state = self.state();
        match &committed {
            Ok(committed) => {
                state.transactions.remove(id);
                state.transactions.outdate(committed.version);
            }
            Err(CommitError::Stale { .. }) => state.transactions.end(id, TransactionStatus::Outdated),
            Err(CommitError::Reload(_)) => {
                state.transactions.remove(id);
            }
            Err(CommitError::Refused { .. }) => state.transactions.end(id, TransactionStatus::Failed),
            // It is not the fault of what it came to: it can be committed again.
            Err(_) => state.transactions.give_back(id, new),
        }
        committed
    }

    /// Commits a change of its own, made for a version. What was refused is listed as a failed transaction.
    pub async fn change<T, E>(
        &self,
        given: u64,
        choice: ReloadChoice,
        work: impl FnOnce(&mut Configuration) -> Result<T, E>,
    ) -> Result<Result<(T, Committed), E>, CommitError> {
        let mut writer = self.inner.writer.lock().await;
        self.refresh()?;
        let mut new = self.state().current.fork();
        if new.version() != given {
            return Err(CommitError::Stale { current: new.version(), given });
        }
        let result = match work(&mut new) {
            Ok(result) => result,
            Err(error) => return Ok(Err(error)),
        };
        let committed = self.single(&mut writer, new, given, choice).await?;
        Ok(Ok((result, committed)))
    }

    async fn single(
        &self,
        writer: &mut Writer,
        new: Configuration,
        given: u64,
        choice: ReloadChoice,
    ) -> Result<Committed, CommitError> {
        let id = new_id();
        let committed = self.write(writer, new, given, choice, &id).await;
        if matches!(&committed, Err(CommitError::Refused { .. })) {
            self.state().transactions.failed(id);
        }
        committed
    }

    /// Puts a whole text in the place of the present one. Without a version, its version is 1 afterwards.
    pub async fn push(
        &self,
        text: &[u8],
        given: Option<u64>,
        choice: ReloadChoice,
    ) -> Result<Committed, CommitError> {
        let mut writer = self.inner.writer.lock().await;
        self.refresh()?;
        let current = self.state().current.fork();
        let mut new = run_blocking(|| current.with_text(text));
        let current = current.version();
        if let Some(given) = given.filter(|given| *given != current) {
            return Err(CommitError::Stale { current, given });
        }
        if given.is_none() {
            new.reset_version();
        }
        self.single(&mut writer, new, current, choice).await.map_err(|error| self.about(text, error))
    }

    /// Makes a refusal speak of the lines of a text as it was sent.
    fn about(&self, sent: &[u8], error: CommitError) -> CommitError {
        match (error, self.inner.settings.files.as_slice()) {
            (CommitError::Refused { id, messages }, [file]) => {
                let messages = text::renumbered(&messages, &file.to_string_lossy(), sent);
                CommitError::Refused { id, messages }
            }
            // The lines of several files are not those of the text.
            (error, _) => error,
        }
    }

    /// Asks HAProxy whether it would accept a text, and writes nothing.
    pub async fn validate(&self, text: &[u8]) -> Result<(), CommitError> {
        let current = self.state().current.fork();
        let changed = run_blocking(|| current.with_text(text).changed_since(&current));
        let checked = self.check_texts(&changed, Vec::new(), &new_id()).await;
        checked.map(|_| ()).map_err(|error| self.about(text, error))
    }

    /// Checks, writes and applies.
    async fn write(
        &self,
        writer: &mut Writer,
        mut new: Configuration,
        given: u64,
        choice: ReloadChoice,
        id: &str,
    ) -> Result<Committed, CommitError> {
        self.begin_with_what_runs(writer).await;
        self.complete(writer)?;
        self.refresh()?;
        let (current, standing) = {
            let state = self.state();
            (state.current.fork(), state.standing)
        };
        let stale = |current: u64| Err(CommitError::Stale { current, given });
        if current.version() != given {
            return stale(current.version());
        }
        new.set_version(if new.is_reset() { 1 } else { given + 1 });
        let changed = Arc::new(run_blocking(|| new.changed_since(&current)));
        // Whatever comes of the comparison, the bytes are the same: they go to disk meanwhile.
        let draft = prepare_beside(&changed);
        let diff = run_blocking(|| self.compare(&current.whole(), &new.whole()));
        let mut drafts: Vec<Draft> = draft.await?.into_iter().collect();
        let at_runtime = |diff: &Diff| diff.is_possible_at_runtime();
        // What somebody else wrote may be wrong by itself: it is not built upon before HAProxy has been asked.
        let is_quick = choice == ReloadChoice::Delayed
            && standing != Standing::Foreign
            && diff.as_ref().is_ok_and(at_runtime);
        let checks = self.inner.settings.checks;
        if !is_quick && checks {
            drafts = self.check_texts(&changed, drafts, id).await?;
        }
        // Somebody may have edited a file while all that was done.
        self.refresh()?;
        let now = self.state().current.version();
        if now != given {
            return stale(now);
        }
        self.keep_good(writer, standing);
        let version = new.version();
        let (ran_current, is_reset) = (writer.running.is(&current.whole()), new.is_reset());
        let placed = self.place(writer, new, &changed, drafts, Standing::committed(!is_quick || !checks))?;
        // A machine that stops takes HAProxy with it: what is told need not wait for the disk.
        let on_disk = on_disk(placed);
        self.keep(&current);
        if is_reset {
            // Another version of the same number would be taken for the one that they were made for.
            self.state().transactions.outdate_all();
        }
        let (applied, reason) = match choice {
            ReloadChoice::Skip => (Applied::Skipped, None),
            ReloadChoice::Now => match self.reload_now(writer).await {
                Ok(_) => (Applied::Reloaded, None),
                Err(why) => {
                    self.emit(Event::Committed { version, applied: "reload", reason: Some(why.clone()) });
                    return Err(CommitError::Reload(why));
                }
            },
            ReloadChoice::Delayed => self.apply(writer, &diff, ran_current).await,
        };
        let word = match &applied {
            Applied::Runtime => "runtime",
            Applied::Ordered(_) => "reload",
            Applied::Reloaded => "reloaded",
            Applied::Skipped => "skipped",
        };
        self.emit(Event::Committed { version, applied: word, reason: reason.clone() });
        on_disk.await?;
        Ok(Committed { version, applied, reason })
    }

    /// Tells a running HAProxy what was committed, or orders a reload, and says why. What HAProxy runs then is what was
    /// committed, if it ran what was there before.
    async fn apply(
        &self,
        writer: &mut Writer,
        diff: &Result<Diff, CompareError>,
        ran_current: bool,
    ) -> (Applied, Option<String>) {
        let order = |why: String| (Applied::Ordered(self.order_reload()), Some(why));
        let diff = match diff {
            Ok(diff) => diff,
            Err(error) => return order(error.to_string()),
        };
        let refused = diff.operations().iter().find_map(|operation| match &operation.runtime {
            setpoint_plan::Runtime::Yes => None,
            setpoint_plan::Runtime::No { why } => Some(format!("{operation}: {why}")),
        });
        if let Some(why) = refused {
            return order(why);
        }
        match self.tell(writer, diff, self.inner.settings.drain).await {
            Ok(()) if ran_current => {
                writer.running = Running::text(self.state().current.whole().into_owned());
            }
            Ok(()) => writer.running.follow(diff, self.inner.cx),
            Err(refused) => return order(refused.to_string()),
        }
        // Nobody has to wait for that: what is read from the file is the same.
        writer.unrecorded = true;
        self.inner.wake.notify_one();
        match &writer.running {
            Running::Text(_) => (Applied::Runtime, None),
            Running::Since(_) => order("HAProxy was told only a part of an earlier change".to_owned()),
        }
    }

    /// Tells a running HAProxy what differs. While it is told, and if it can't be told all of it, it is not known what it runs. Who
    /// calls says what it runs then.
    pub(super) async fn tell(
        &self,
        writer: &mut Writer,
        diff: &Diff,
        drain: Duration,
    ) -> Result<(), apply::Refused> {
        if diff.is_empty() {
            return Ok(());
        }
        let before = writer.running.interrupt();
        let servers = diff.operations().iter().filter_map(|operation| {
            let (backend, server) = apply::server_of(operation)?;
            Some((backend.to_owned(), server.to_owned()))
        });
        writer.changed_servers.extend(servers);
        let mut leftovers = std::mem::take(&mut self.state().leftovers);
        let applied =
            apply::apply(&self.worker(), diff.operations(), self.inner.cx, drain, &mut leftovers).await;
        self.state().leftovers.extend(leftovers);
        applied?;
        writer.running = before;
        Ok(())
    }

    /// Asks HAProxy about the files, some of which hold something else: exactly the bytes that would be written. Returns what stands
    /// for these, of which some may be there already, in the order of the files.
    pub(super) async fn check_texts(
        &self,
        changed: &[(PathBuf, Vec<u8>)],
        mut drafts: Vec<Draft>,
        id: &str,
    ) -> Result<Vec<Draft>, CommitError> {
        let settings = &self.inner.settings;
        let missing = changed.iter().skip(drafts.len());
        let prepared = missing.map(|(path, bytes)| match Draft::prepare(path, bytes) {
            // It can't be replaced as a whole: what is checked stands elsewhere.
            Err(WriteError::Mounted(_)) => Draft::prepare(&settings.folder.join("checked.cfg"), bytes),
            draft => draft,
        });
        drafts.extend(run_blocking(|| prepared.collect::<Result<Vec<_>, _>>())?);
        let stands_for = |file: &PathBuf| {
            let place = changed.iter().position(|(path, _)| path == file)?;
            drafts.get(place).map(|draft| draft.path().to_owned())
        };
        let files = settings.files.iter().map(|file| (file.clone(), stands_for(file))).collect();
        let check = Check {
            program: settings.program.clone(),
            files,
            working_directory: settings.working_directory.clone(),
            environment: settings.environment.clone(),
            within: settings.check_within,
        };
        let verdict = check.run().await?;
        if verdict.accepted {
            Ok(drafts)
        } else {
            Err(CommitError::Refused { id: id.to_owned(), messages: verdict.messages })
        }
    }

    /// Writes the files that differ, a single one from its draft, and takes what was written for what is current. Until all of it is
    /// written, nobody reads the files. Returns the file, if one was renamed into its place and that may not be on disk yet.
    pub(super) fn place(
        &self,
        writer: &mut Writer,
        new: Configuration,
        changed: &[(PathBuf, Vec<u8>)],
        drafts: Vec<Draft>,
        standing: Standing,
    ) -> Result<Option<PathBuf>, CommitError> {
        self.state().files_are_torn = true;
        let written = run_blocking(|| self.write_files(changed, drafts));
        // What could not be completed is completed from the journal, and read then.
        let is_torn = matches!(&written, Err(CommitError::Write(error)) if error.is_incomplete());
        let renamed = match written {
            Ok(renamed) => renamed,
            Err(error) => {
                self.state().files_are_torn = is_torn;
                return Err(error);
            }
        };
        let signatures = Signature::of_all(&self.inner.settings.files);
        writer.record.version = new.version();
        writer.record.files.clone_from(&signatures);
        self.write_record(writer);
        let mut state = self.state();
        state.signatures = signatures;
        (state.current, state.standing) = (new, standing);
        state.files_are_torn = false;
        Ok(renamed)
    }

    fn write_files(
        &self,
        changed: &[(PathBuf, Vec<u8>)],
        mut drafts: Vec<Draft>,
    ) -> Result<Option<PathBuf>, CommitError> {
        if let ([(path, _)], Some(draft)) = (changed, drafts.pop())
            && setpoint_files::target(path).is_ok_and(|target| draft.place_is(&target))
        {
            return Ok(Some(draft.rename()?));
        }
        let changes: Vec<_> = changed.iter().map(|(path, bytes)| Change::Write(path, bytes)).collect();
        if !changes.is_empty() {
            self.inner.journal.commit(&changes)?;
        }
        Ok(None)
    }

    /// Completes what could not be written, if something could not.
    pub(super) fn complete(&self, _writer: &mut Writer) -> Result<(), CommitError> {
        if self.state().files_are_torn {
            self.inner.journal.recover()?;
            self.state().files_are_torn = false;
        }
        Ok(())
    }

    /// Writes down what the running HAProxy runs: all that is in the files, or something else.
    pub(super) fn note(&self, writer: &mut Writer) {
        // Nobody waits while it is printed and hashed.
        let current = self.state().current.fork();
        let text = run_blocking(|| record::hash(&current.print()));
        writer.unrecorded = false;
        writer.record.version = current.version();
        writer.record.loaded = writer.running.is(&current.whole()).then(|| text.clone());
        writer.record.text = text;
        self.write_record(writer);
    }

    /// The hash of the current text.
    pub(super) fn hash_of_current(&self) -> String {
        let current = self.state().current.fork();
        run_blocking(|| record::hash(&current.print()))
    }

    fn write_record(&self, writer: &Writer) {
        if let Err(error) = writer.record.write(&self.inner.settings.folder) {
            tracing::warn!(%error, "what HAProxy runs could not be written down");
        }
    }
}
