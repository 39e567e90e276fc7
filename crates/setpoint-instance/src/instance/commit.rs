//! Commits: checked, written, applied.

use setpoint_files::{Draft, WriteError};
use setpoint_haproxy::compare::{CompareError, Diff, Operation, Subject};
use setpoint_haproxy::model::ObjectKind;

use super::transactions::new_id;
use super::{Event, Instance, Signature, TransactionStatus, Writer, record};
use crate::check::{Check, CheckError};
use crate::configuration::{self, Configuration, ReadError};
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

/// Why an operation that HAProxy could be told is not told by this program.
pub(super) fn not_told(operation: &Operation) -> Option<String> {
    let is_told = match &operation.subject {
        Subject::Child { kind, .. } => {
            *kind == ObjectKind::Server
                || operation.changes.iter().all(|change| change.attribute == "metadata")
        }
        _ => operation.action == setpoint_plan::Action::Modify,
    };
    (!is_told).then(|| format!("a new {} comes with a reload", operation.kind()))
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
            let configuration =
                state.transactions.configuration(id).map(|configuration| configuration.fork());
            configuration.ok_or_else(|| CommitError::NoTransaction(id.to_owned()))?
        };
        let given = new.version();
        let committed = self.write(&mut writer, new, given, choice, id).await;
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
            Err(_) => state.transactions.end(id, TransactionStatus::Failed),
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
        let mut new = self.state().current.with_text(text);
        let current = new.version();
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
        let new = self.state().current.with_text(text);
        let current = self.state().current.fork();
        self.check(&new, &current, &new_id()).await.map(|_| ()).map_err(|error| self.about(text, error))
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
        self.refresh()?;
        let current = self.state().current.fork();
        if current.version() != given {
            return Err(CommitError::Stale { current: current.version(), given });
        }
        new.set_version(if new.is_reset() { 1 } else { given + 1 });
        let diff = self.compare(&current.whole(), &new.whole());
        let at_runtime = |diff: &Diff| diff.is_possible_at_runtime();
        let is_quick = choice == ReloadChoice::Delayed && diff.as_ref().is_ok_and(at_runtime);
        let mut drafts = Vec::new();
        if !is_quick && self.inner.settings.checks {
            drafts = self.check(&new, &current, id).await?;
            writer.unchecked = false;
        }
        self.keep_good(writer);
        self.place(&new, &current, drafts)?;
        self.keep(&current);
        if new.is_reset() {
            // Another version of the same number would be taken for the one that they were made for.
            self.state().transactions.outdate_all();
        }
        let version = new.version();
        let runs_current = configuration::same(&writer.applied, &current.whole());
        self.take(writer, new);
        let (applied, reason) = match choice {
            ReloadChoice::Skip => (Applied::Skipped, None),
            ReloadChoice::Now => match self.reload_now(writer).await {
                Ok(_) => (Applied::Reloaded, None),
                Err(why) => return Err(CommitError::Reload(why)),
            },
            ReloadChoice::Delayed => self.apply(writer, &diff, runs_current).await,
        };
        let word = match &applied {
            Applied::Runtime => "runtime",
            Applied::Ordered(_) => "reload",
            Applied::Reloaded => "reloaded",
            Applied::Skipped => "skipped",
        };
        self.say(Event::Committed { version, applied: word, reason: reason.clone() });
        Ok(Committed { version, applied, reason })
    }

    /// Tells a running HAProxy what was committed, or orders a reload, and says why. What HAProxy runs then is what was
    /// committed, if it ran what was there before.
    async fn apply(
        &self,
        writer: &mut Writer,
        diff: &Result<Diff, CompareError>,
        runs_current: bool,
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
        if !diff.is_empty() {
            match apply::apply(&self.worker(), diff.operations(), self.inner.cx, self.inner.settings.drain)
                .await
            {
                Ok(leftovers) => self.state().leftovers.extend(leftovers),
                Err(refused) => return order(refused.to_string()),
            }
            writer.unchecked = self.inner.settings.checks;
            let applied = if runs_current {
                Ok(self.state().current.whole())
            } else {
                writer.applied.apply_all(diff, self.inner.cx)
            };
            match applied {
                Ok(applied) => writer.applied = applied,
                Err(error) => return order(error.to_string()),
            }
        }
        // Nobody has to wait for that: what is read from the file is the same.
        writer.unnoted = self.state().reloads.due().is_none();
        self.inner.wake.notify_one();
        (Applied::Runtime, None)
    }

    /// Asks HAProxy about exactly the bytes that would be written. Returns the files that hold them.
    async fn check(
        &self,
        new: &Configuration,
        current: &Configuration,
        id: &str,
    ) -> Result<Vec<Draft>, CommitError> {
        let settings = &self.inner.settings;
        let mut drafts = Vec::new();
        let mut files: Vec<_> = settings.files.iter().map(|file| (file.clone(), None)).collect();
        for (path, bytes) in new.changed_since(current) {
            let draft = match Draft::prepare(path, &bytes) {
                // It can't be replaced as a whole: what is checked stands elsewhere.
                Err(WriteError::Mounted(_)) => Draft::prepare(&settings.folder.join("checked.cfg"), &bytes)?,
                draft => draft?,
            };
            if let Some(file) = files.iter_mut().find(|(file, _)| file == path) {
                file.1 = Some(draft.path().to_owned());
            }
            drafts.push(draft);
        }
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

    /// Writes the files that differ; a single one from the draft that was checked.
    pub(super) fn place(
        &self,
        new: &Configuration,
        current: &Configuration,
        mut drafts: Vec<Draft>,
    ) -> Result<(), CommitError> {
        let changed = new.changed_since(current);
        if let ([(path, _)], Some(draft)) = (changed.as_slice(), drafts.pop())
            && setpoint_files::target(path).is_ok_and(|target| draft.place_is(&target))
        {
            return Ok(draft.place()?);
        }
        let changes: Vec<_> = changed.iter().map(|(path, bytes)| Change::Write(path, bytes)).collect();
        if !changes.is_empty() {
            self.inner.journal.commit(&changes)?;
        }
        Ok(())
    }

    /// Takes what was written for what is current.
    pub(super) fn take(&self, writer: &mut Writer, new: Configuration) {
        let signatures = Signature::of_all(&self.inner.settings.files);
        writer.record.version = new.version();
        writer.record.files.clone_from(&signatures);
        self.write_record(writer);
        let mut state = self.state();
        state.signatures = signatures;
        state.current = new;
    }

    /// Writes down what the running HAProxy has loaded: all that is in the files.
    pub(super) fn note(&self, writer: &mut Writer) {
        let (version, text) = {
            let state = self.state();
            (state.current.version(), record::hash(&state.current.print()))
        };
        writer.unnoted = false;
        writer.record.version = version;
        writer.record.loaded = Some(text.clone());
        writer.record.text = text;
        self.write_record(writer);
    }

    fn write_record(&self, writer: &Writer) {
        if let Err(error) = writer.record.write(&self.inner.settings.folder) {
            tracing::warn!(%error, "what HAProxy runs could not be written down");
        }
    }
}
