//! Brings a target to what is desired.
//!
//! ```text
//! 1 fetch ─▶ 2 parse ─▶ 3 compare ─▶ 4 compare files ─▶ 5 anything to do? ─▶ 6 by which way?
//!   ▲                                                                              │
//!   └───────── somebody else changed it: plan again ◀──── 7 files, configuration ◀─┘
//!                                                                 │
//!                      files that go ◀── read back ◀── 8 reload ◀─┘
//! ```

mod auxiliary;
mod avoid;
mod change;
mod execute;
mod failure;
mod normalised;
mod options;
mod planned;
mod runtime;
mod steps;
mod verify;
mod ways;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use setpoint_haproxy::compare::{Diff, compare};
use setpoint_haproxy::text::Document;
use tokio_util::sync::CancellationToken;

use crate::client::{ApiError, Process};
use crate::error::{ConfigType, ParseError, Stage, SyncError};
use crate::files::FileDiffs;
use crate::retry::RetryError;
use crate::target::Target;
use auxiliary::Written;
use change::Committed;
use failure::{Failed, conflict, flat, hinted, moved};
pub use options::{Choice, Desired, FailedSync, Strategy, SyncMode, SyncOptions, SyncResult};
pub use planned::{ReloadCause, SyncPlan, plan};
pub use ways::{Impossible, PlannedWay};
use ways::{Question, Way};

/// How long a transaction that nobody wants any more may take to be dropped.
const ABORT_WITHIN: Duration = Duration::from_secs(5);

/// Brings a target to what is desired.
pub async fn sync<T: Target>(
    target: &T,
    desired: &Desired,
    options: &SyncOptions,
    cancel: &CancellationToken,
) -> Result<SyncResult, Box<FailedSync>> {
    let run = Run::new(target, desired, options, cancel);
    let mut result = SyncResult::default();
    let ended = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(SyncError::new(Stage::Apply, "it was cancelled")),
        ended = tokio::time::timeout(options.timeout, run.steps(&mut result)) => ended.unwrap_or_else(|_| {
            let message = format!("it took longer than {:?}", options.timeout);
            Err(SyncError::new(Stage::Apply, message).hint("the target may be overloaded: look at its log"))
        }),
    };
    run.drop_transaction().await;
    let mut written = run.written.into_inner().unwrap_or_else(PoisonError::into_inner);
    written.append(&mut result.applied_files);
    result.applied_files = written;
    match ended {
        Ok(()) => {
            result.success = true;
            Ok(result)
        }
        Err(error) => {
            let is_lost = |file: &&String| file.starts_with("~ certificate ");
            result.not_restorable = result.applied_files.iter().filter(is_lost).cloned().collect();
            Err(Box::new(FailedSync { error: partial(error, &result.not_restorable), result }))
        }
    }
}

/// What is there.
struct Current {
    document: Document,
    version: u64,
}

struct Run<'a, T> {
    target: &'a T,
    desired: &'a Desired,
    options: &'a SyncOptions,
    cancel: &'a CancellationToken,
    /// The transaction that is open.
    transaction: Mutex<Option<String>>,
    /// The files that were written, in the words of a plan.
    written: Mutex<Vec<String>>,
}

impl<'a, T: Target> Run<'a, T> {
    fn new(
        target: &'a T,
        desired: &'a Desired,
        options: &'a SyncOptions,
        cancel: &'a CancellationToken,
    ) -> Self {
        let (transaction, written) = (Mutex::default(), Mutex::default());
        Self { target, desired, options, cancel, transaction, written }
    }

    async fn steps(&self, result: &mut SyncResult) -> Result<(), SyncError> {
        let desired = parse(ConfigType::Desired, &self.desired.text)?;
        let mut current = self.current().await?;
        if let Some(expected) = self.options.expected_version.filter(|expected| *expected != current.version)
        {
            return Err(moved(expected, Some(current.version)));
        }
        let mut files: Option<(FileDiffs, Written)> = None;
        loop {
            let diff = self.compare(&current.document, &desired)?;
            result.summary = diff.summary().clone();
            if files.is_none() {
                let found = self.compare_files(&diff).await?;
                if diff.is_empty() && found.is_empty() {
                    result.post_sync_version = Some(current.version);
                    self.note_what_is_there(&found).await?;
                    self.wait_for_pending(result).await?;
                    return self.repair_running(&desired, result).await;
                }
                let writes = self.writes(&found, &current.document, &diff);
                if !diff.is_empty() || writes.take_reload() {
                    self.can_be_kept(&desired)?;
                }
                let written = self.write_files(&writes, result).await?;
                files = Some((found, written));
            }
            let waits = files.as_ref().is_some_and(|(_, written)| written.wait);
            // What files have ordered is over: another process shows that this one's reload succeeded.
            let before = self.process_before().await;
            match self.change(&diff, &current, &desired, waits, result).await {
                Ok(committed) => {
                    // What files have reloaded for came before: HAProxy may have been told of the rest.
                    let was_told = !committed.reloads;
                    self.finish(committed, before.as_ref(), &desired, result).await?;
                    if was_told {
                        self.read_back_running(diff.operations().iter(), &desired).await?;
                    }
                    self.repair_running(&desired, result).await?;
                    if let Some((files, written)) = files {
                        if was_told && files.deletes_any() {
                            // What HAProxy goes back to where that fails may name them.
                            self.wait_for_pending(result).await?;
                        }
                        self.delete_files(&files, written, result).await;
                    }
                    return Ok(());
                }
                Err(Failed::Error(error)) => return Err(error),
                Err(Failed::Conflict(actual)) => {
                    // It was made for a version that is gone.
                    self.drop_transaction().await;
                    if let Some(expected) = self.options.expected_version {
                        return Err(moved(expected, actual));
                    }
                    if result.retries >= self.options.max_retries {
                        return Err(conflict(result.retries, current.version, actual));
                    }
                    result.retries += 1;
                    tracing::info!(
                        endpoint = self.target.endpoint(),
                        expected = current.version,
                        actual,
                        "somebody else changed the configuration: planning again"
                    );
                    // Some of it may be done by now.
                    current =
                        self.fetch().await.map_err(|error| SyncError { stage: Stage::Apply, ..error })?;
                }
            }
        }
    }

    /// Reads what is there, or takes what is known of it while it has the same version.
    async fn current(&self) -> Result<Current, SyncError> {
        if let Some((document, known)) = &self.options.cached {
            let asked = self
                .options
                .connection_retry
                .run(self.cancel, ApiError::is_connection, async || self.target.version().await);
            match asked.await {
                Ok(version) if version == *known => {
                    return Ok(Current { document: document.clone(), version });
                }
                Ok(_) => {}
                Err(RetryError::Failed(error)) => {
                    tracing::debug!(endpoint = self.target.endpoint(), %error, "the version can't be read");
                }
                Err(RetryError::Cancelled { .. }) => {
                    return Err(SyncError::new(Stage::Fetch, "it was cancelled"));
                }
            }
        }
        self.fetch().await
    }

    async fn fetch(&self) -> Result<Current, SyncError> {
        let (text, version) = self.target.read().await.map_err(|error| {
            let stage = if error.is_connection() { Stage::Connect } else { Stage::Fetch };
            hinted(SyncError::new(stage, "the current configuration can't be read"), &error)
                .caused_by(flat(error))
                .hint("check that the Dataplane API runs there, and that the credentials are right")
        })?;
        Ok(Current { document: parse(ConfigType::Current, &text)?, version })
    }

    fn compare(&self, current: &Document, desired: &Document) -> Result<Diff, SyncError> {
        let written = self.target.rewrites().then(|| normalised::as_written(current, desired));
        let mut diff = compare(current, written.as_ref().unwrap_or(desired), self.target.context())
            .map_err(|error| SyncError::new(Stage::Compare, error.to_string()))?;
        diff.narrow(|operation| self.target.needs_reload(operation));
        Ok(diff)
    }

    /// Sees to it that a text means the same after it was written there: what HAProxy makes of it otherwise is known too late.
    fn can_be_kept(&self, desired: &Document) -> Result<(), SyncError> {
        let Some(why) = self.target.loses(desired) else { return Ok(()) };
        let message = format!("the Dataplane API would not keep this configuration: {why}");
        Err(SyncError::new(Stage::Compare, message)
            .hint("say it in another way, or sync without this API: `--local`, or `setpoint haproxy serve`"))
    }

    /// By which way a difference is carried over; none if there is none.
    fn way<'d>(
        &'d self,
        diff: &'d Diff,
        version: u64,
        desired: &'d Document,
        files_wait: bool,
    ) -> Result<Option<Way<'d>>, SyncError> {
        if diff.is_empty() {
            return Ok(None);
        }
        let question = Question {
            target: self.target,
            version,
            operations: diff.operations(),
            desired,
            held: self.desired.text.len(),
            threshold: self.options.raw_push_threshold,
            files_wait,
        };
        let way = question.choose(&self.options.choice);
        way.map(Some).map_err(|error| SyncError::new(Stage::Compare, error.to_string()))
    }

    /// Sees to it that a change has taken effect.
    async fn finish(
        &self,
        committed: Committed,
        before: Option<&Process>,
        desired: &Document,
        result: &mut SyncResult,
    ) -> Result<(), SyncError> {
        result.reload_triggered |= committed.reloads;
        if committed.reloads && self.options.verify_reload {
            result.reload_verified = false;
            let verified = match &committed.reload_id {
                Some(id) => self.verify(id, before).await.map(|()| true),
                // It was waited for, or the API does not say what the reload is called.
                None => self.verify_process(before).await,
            };
            match verified {
                Ok(is_verified) => result.reload_verified = is_verified,
                Err(why) => {
                    result.reload_verification_error = Some(why.clone());
                    let name = committed.reload_id.as_deref().map(|id| format!(" {id}")).unwrap_or_default();
                    let message = format!("the reload{name} did not succeed: {why}");
                    return Err(SyncError::new(Stage::ReloadVerification, message).hint(
                        "HAProxy goes on with what it ran before; look at what it says of the configuration",
                    ));
                }
            }
        }
        result.reload_id = committed.reload_id;
        let read = self.fetch().await.map_err(|error| SyncError { stage: Stage::ReadBack, ..error })?;
        let left = self.compare(&read.document, desired)?;
        if !left.is_empty() {
            let message =
                format!("what was written is not what is there: {}", left.plan(self.target.endpoint()));
            return Err(SyncError::new(Stage::ReadBack, message)
                .hint("somebody else may have changed it, or the API has dropped something: sync again"));
        }
        result.post_sync_version = Some(read.version);
        if committed.version.is_some_and(|version| version != read.version) {
            result.warnings.push(format!("the configuration has version {} by now", read.version));
        }
        Ok(())
    }

    /// Drops the transaction that is open, whatever became of the sync.
    async fn drop_transaction(&self) {
        let open = self.transaction.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(id) = open else { return };
        match tokio::time::timeout(ABORT_WITHIN, self.target.abort(&id)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(endpoint = self.target.endpoint(), id, %error, "a transaction can't be dropped");
            }
            Err(_) => tracing::warn!(
                endpoint = self.target.endpoint(),
                id,
                "a transaction can't be dropped in time"
            ),
        }
    }
}

/// An error that says what was changed and can't be put back.
fn partial(error: SyncError, not_restorable: &[String]) -> SyncError {
    if not_restorable.is_empty() {
        return error;
    }
    let names: Vec<&str> = not_restorable.iter().map(|file| file.trim_start_matches("~ ")).collect();
    let names = names.join(", ");
    error.hint(format!(
        "{names}: replaced already, and the API gives back no former content; sync what is to be there"
    ))
}

fn parse(config_type: ConfigType, text: &[u8]) -> Result<Document, SyncError> {
    let document = Document::parse(text);
    let Some(error) = ParseError::find(config_type, &document) else { return Ok(document) };
    let stage = match config_type {
        ConfigType::Current => Stage::ParseCurrent,
        ConfigType::Desired => Stage::ParseDesired,
    };
    let message = format!("the {config_type} configuration can't be read");
    Err(SyncError::new(stage, message)
        .caused_by(error)
        .hint("`setpoint haproxy check` shows all that is wrong with it"))
}
