//! Brings a target to what is desired.
//!
//! ```text
//! 1 fetch ─▶ 2 parse ─▶ 3 compare ─▶ 4 compare files ─▶ 5 anything to do? ─▶ 6 by which way?
//!   ▲                                                                              │
//!   └───────── somebody else changed it: plan again ◀──── 7 files, configuration ◀─┘
//!                                                                 │
//!                      files that go ◀── read back ◀── 8 reload ◀─┘
//! ```

mod execute;
mod failure;
mod options;
mod verify;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::try_join;
use setpoint_haproxy::compare::{Diff, Operation, compare};
use setpoint_haproxy::text::Document;
use setpoint_plan::Runtime;
use tokio_util::sync::CancellationToken;

use crate::client::{ApiError, FileKind, For, Process};
use crate::error::{ConfigType, ParseError, Stage, SyncError};
use crate::files::{self, DIGESTS, FileDiffs};
use crate::retry::RetryError;
use crate::target::{Effect, Target};
use failure::{Failed, both, conflict, failed, first_of, flat, moved, not_written};
pub use options::{Desired, FailedSync, SyncMode, SyncOptions, SyncResult};

/// How long a transaction that nobody wants any more may take to be dropped.
const ABORT_WITHIN: Duration = Duration::from_secs(5);

/// Brings a target to what is desired.
pub async fn sync<T: Target>(
    target: &T,
    desired: &Desired,
    options: &SyncOptions,
    cancel: &CancellationToken,
) -> Result<SyncResult, Box<FailedSync>> {
    let run = Run { target, desired, options, cancel, transaction: Mutex::new(None) };
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
    match ended {
        Ok(()) => {
            result.success = true;
            Ok(result)
        }
        Err(error) => Err(Box::new(FailedSync { error, result })),
    }
}

/// What a sync would do.
#[derive(Clone, Debug)]
pub struct SyncPlan {
    /// The version of the configuration that is there.
    pub version: u64,
    /// What leads to the desired configuration, each with the verdict of this target.
    pub diff: Diff,
    /// What leads to the desired files.
    pub files: FileDiffs,
    /// By which way; none if the configuration does not differ.
    pub mode: Option<SyncMode>,
    /// Why HAProxy will reload; none if it will not.
    pub reload: Option<String>,
}

impl SyncPlan {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.diff.is_empty() && self.files.is_empty()
    }
}

/// Finds out what a sync would do, and changes nothing.
pub async fn plan<T: Target>(
    target: &T,
    desired: &Desired,
    options: &SyncOptions,
    cancel: &CancellationToken,
) -> Result<SyncPlan, SyncError> {
    let run = Run { target, desired, options, cancel, transaction: Mutex::new(None) };
    let wanted = parse(ConfigType::Desired, &desired.text)?;
    let current = run.current().await?;
    let diff = run.compare(&current.document, &wanted)?;
    let files = run.compare_files(&diff).await?;
    let mode = run.mode(&diff, current.version);
    let reload = run.why_it_reloads(mode, &diff, &files);
    Ok(SyncPlan { version: current.version, diff, files, mode, reload })
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
}

/// What a change of the configuration came to.
#[derive(Default)]
struct Committed {
    version: Option<u64>,
    reload_id: Option<String>,
    /// Whether HAProxy reloads, or has.
    reloads: bool,
}

impl<T: Target> Run<'_, T> {
    async fn steps(&self, result: &mut SyncResult) -> Result<(), SyncError> {
        let desired = parse(ConfigType::Desired, &self.desired.text)?;
        let mut current = self.current().await?;
        if let Some(expected) = self.options.expected_version.filter(|expected| *expected != current.version)
        {
            return Err(moved(expected, Some(current.version)));
        }
        let mut files: Option<FileDiffs> = None;
        let mut reload_for_files = false;
        let before = self.target.process().await.ok();
        loop {
            let diff = self.compare(&current.document, &desired)?;
            result.summary = diff.summary().clone();
            if files.is_none() {
                let found = self.compare_files(&diff).await?;
                if diff.is_empty() && found.is_empty() {
                    result.post_sync_version = Some(current.version);
                    return Ok(());
                }
                reload_for_files = self.write_files(&found, result).await?;
                files = Some(found);
            }
            match self.change(&diff, &current, reload_for_files, result).await {
                Ok(committed) => {
                    return self
                        .finish(committed, before.as_ref(), &desired, files.unwrap_or_default(), result)
                        .await;
                }
                Err(Failed::Error(error)) => return Err(error),
                Err(Failed::Conflict(actual)) => {
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
                    current = self.fetch().await?;
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
            SyncError::new(stage, "the current configuration can't be read")
                .caused_by(flat(error))
                .hint("check that the Dataplane API runs there, and that the credentials are right")
        })?;
        Ok(Current { document: parse(ConfigType::Current, &text)?, version })
    }

    fn compare(&self, current: &Document, desired: &Document) -> Result<Diff, SyncError> {
        let mut diff = compare(current, desired, self.target.context())
            .map_err(|error| SyncError::new(Stage::Compare, error.to_string()))?;
        diff.narrow(|operation| self.target.needs_reload(operation));
        Ok(diff)
    }

    async fn compare_files(&self, diff: &Diff) -> Result<FileDiffs, SyncError> {
        let SyncOptions { content_checksum, last_deployed_checksum, .. } = self.options;
        if diff.is_empty() && content_checksum.is_some() && content_checksum == last_deployed_checksum {
            return Ok(FileDiffs::default());
        }
        files::compare(self.target, &self.desired.files).await.map_err(|error| {
            SyncError::new(Stage::CompareFiles, "the files can't be compared").caused_by(error)
        })
    }

    /// Makes and replaces files before a configuration may name them: certificates first, all else at once. Returns whether some
    /// take effect with the next reload only.
    async fn write_files(&self, files: &FileDiffs, result: &mut SyncResult) -> Result<bool, SyncError> {
        let mut effects = self.write_kind(FileKind::Certificate, files).await?;
        if !(files.certificates.to_create.is_empty() && files.certificates.to_update.is_empty()) {
            self.note_digests(files).await?;
        }
        let others =
            try_join(self.write_kind(FileKind::General, files), self.write_kind(FileKind::Map, files))
                .await?;
        effects.extend(others.0);
        effects.extend(others.1);
        let mut waits = false;
        for (name, effect) in effects {
            match effect {
                Effect::Now => {}
                Effect::NextReload => waits = true,
                Effect::Ordered(id) => {
                    result.reload_triggered = true;
                    if self.options.verify_reload {
                        self.verify(&id, None).await.map_err(|why| {
                            let message = format!("the reload for {name} did not succeed: {why}");
                            SyncError::new(Stage::AuxiliaryReloadVerification, message).hint(
                                "the configuration was not changed; look at what HAProxy says of the file",
                            )
                        })?;
                    }
                }
            }
            result.applied_files.push(name);
        }
        Ok(waits)
    }

    async fn write_kind(
        &self,
        kind: FileKind,
        files: &FileDiffs,
    ) -> Result<Vec<(String, Effect)>, SyncError> {
        let diff = files.of(kind);
        let mut effects = Vec::new();
        for (name, bytes) in &diff.to_create {
            let effect = self.target.create_file(kind, name, bytes).await;
            effects
                .push((format!("+ {kind} {name}"), effect.map_err(|error| not_written(kind, name, error))?));
        }
        for (name, bytes) in &diff.to_update {
            let effect = self.target.replace_file(kind, name, bytes).await;
            effects
                .push((format!("~ {kind} {name}"), effect.map_err(|error| not_written(kind, name, error))?));
        }
        Ok(effects)
    }

    /// Notes which certificates were written.
    async fn note_digests(&self, files: &FileDiffs) -> Result<(), SyncError> {
        let written = self.target.create_file(FileKind::General, DIGESTS, &files.digests()).await;
        written.map_err(|error| not_written(FileKind::General, DIGESTS, error))?;
        Ok(())
    }

    /// By which way a difference is carried over; none if there is none.
    fn mode(&self, diff: &Diff, version: u64) -> Option<SyncMode> {
        let needs_text = |operation: &Operation| self.target.needs_text(operation).is_some();
        let threshold = self.options.raw_push_threshold;
        (!diff.is_empty()).then(|| SyncMode::decide(version, diff.operations(), threshold, needs_text))
    }

    /// Why HAProxy reloads for a difference, if it does.
    fn why_it_reloads(&self, mode: Option<SyncMode>, diff: &Diff, files: &FileDiffs) -> Option<String> {
        let for_operation = diff.operations().iter().find_map(|operation| match &operation.runtime {
            Runtime::Yes => None,
            Runtime::No { why } => Some(format!("{operation}: {why}")),
        });
        let for_text = mode
            .filter(|mode| mode.is_raw() && self.target.reloads_for_texts())
            .map(|_| "the whole text is pushed");
        let for_file = || {
            let replaced = FileKind::ALL.into_iter().flat_map(|kind| {
                files
                    .of(kind)
                    .to_update
                    .keys()
                    .filter(move |_| self.target.reloads_for(kind))
                    .map(move |name| (kind, name))
            });
            replaced.map(|(kind, name)| format!("{kind} {name} is replaced")).next()
        };
        for_operation.or(for_text.map(str::to_owned)).or_else(for_file)
    }

    /// Changes the configuration, by the way that is decided on.
    async fn change(
        &self,
        diff: &Diff,
        current: &Current,
        reload_for_files: bool,
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let operations = diff.operations();
        let mode = self.mode(diff, current.version).unwrap_or_default();
        result.mode = mode;
        let changed = match mode {
            SyncMode::FineGrained if operations.is_empty() && !reload_for_files => {
                return Ok(Committed { version: Some(current.version), ..Committed::default() });
            }
            SyncMode::FineGrained => self.transaction(operations, current, reload_for_files, result).await,
            SyncMode::Runtime => self.one_by_one(operations, current, result).await,
            _ => return self.push(current.version, operations, Stage::Commit, result).await,
        };
        match changed {
            Err(Failed::Error(original)) if self.options.fallback_to_raw => {
                self.drop_transaction().await;
                result.mode = SyncMode::RawFallback;
                match self.fall_back(operations, result).await {
                    Err(Failed::Error(fallback)) => Err(Failed::Error(both(original, fallback))),
                    pushed => pushed,
                }
            }
            changed => changed,
        }
    }

    /// Pushes the whole text where operations failed. Files are written already.
    async fn fall_back(
        &self,
        operations: &[Operation],
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let version = self.target.version().await;
        let version = version.map_err(|error| failed(Stage::Fallback, "the version can't be read", error))?;
        self.push(version, operations, Stage::Fallback, result).await
    }

    async fn transaction(
        &self,
        operations: &[Operation],
        current: &Current,
        reloads: bool,
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let id = self
            .target
            .begin(current.version)
            .await
            .map_err(|error| failed(Stage::Apply, "a transaction can't be begun", error))?;
        *self.transaction.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
        let SyncOptions { max_parallel, continue_on_error, .. } = *self.options;
        let failures = execute::execute(operations, max_parallel, continue_on_error, async |operation| {
            self.target
                .operate(operation, For::Transaction(&id))
                .await
                .map(|_| ())
                .map_err(|error| (operation.clone(), error))
        });
        if let Some(failure) = first_of(failures.await) {
            return Err(failure);
        }
        let changed = self.target.commit(&id, reloads).await;
        let changed =
            changed.map_err(|error| failed(Stage::Commit, "the transaction can't be committed", error))?;
        *self.transaction.lock().unwrap_or_else(PoisonError::into_inner) = None;
        result.applied_operations = operations.iter().map(ToString::to_string).collect();
        let reloads = reloads || changed.is_delayed || changed.reload_id.is_some();
        Ok(Committed { version: changed.version, reload_id: changed.reload_id, reloads })
    }

    /// Carries out changes of servers one after the other, each of which takes effect by itself.
    async fn one_by_one(
        &self,
        operations: &[Operation],
        current: &Current,
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let mut committed = Committed { version: Some(current.version), ..Committed::default() };
        let mut version = current.version;
        for operation in operations {
            let changed = self.target.operate(operation, For::Version(version)).await;
            let changed = changed.map_err(|error| first_of(vec![(operation.clone(), error)]));
            let changed = match changed {
                Ok(changed) => changed,
                Err(failure) => return Err(failure.unwrap_or(Failed::Conflict(None))),
            };
            version = changed.version.unwrap_or(version + 1);
            committed.version = Some(version);
            committed.reloads |= changed.is_delayed;
            committed.reload_id = changed.reload_id.or(committed.reload_id);
            result.applied_operations.push(operation.to_string());
        }
        Ok(committed)
    }

    async fn push(
        &self,
        version: u64,
        operations: &[Operation],
        stage: Stage,
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let pushed = self.target.push(&self.desired.text, version).await;
        let pushed = pushed.map_err(|error| failed(stage, "the text can't be pushed", error))?;
        if let Some(actual) = pushed.version.filter(|actual| *actual != version + 1) {
            return Err(Failed::Conflict(Some(actual)));
        }
        result.applied_operations = operations.iter().map(ToString::to_string).collect();
        let reloads = pushed.is_delayed || pushed.reload_id.is_some();
        Ok(Committed { version: Some(version + 1), reload_id: pushed.reload_id, reloads })
    }

    /// Sees to it that a change has taken effect, and deletes the files that nothing names any more.
    async fn finish(
        &self,
        committed: Committed,
        before: Option<&Process>,
        desired: &Document,
        files: FileDiffs,
        result: &mut SyncResult,
    ) -> Result<(), SyncError> {
        result.reload_triggered |= committed.reloads;
        result.reload_id.clone_from(&committed.reload_id);
        if let Some(id) = committed.reload_id.filter(|_| self.options.verify_reload) {
            match self.verify(&id, before).await {
                Ok(()) => result.reload_verified = true,
                Err(why) => {
                    result.reload_verification_error = Some(why.clone());
                    let message = format!("the reload {id} did not succeed: {why}");
                    return Err(SyncError::new(Stage::ReloadVerification, message).hint(
                        "HAProxy goes on with what it ran before; look at what it says of the configuration",
                    ));
                }
            }
        }
        let read = self.fetch().await?;
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
        self.delete_files(&files, result).await;
        Ok(())
    }

    /// Deletes files that nothing names any more. That it can't be done is no failure.
    async fn delete_files(&self, files: &FileDiffs, result: &mut SyncResult) {
        for kind in FileKind::ALL {
            for name in &files.of(kind).to_delete {
                match self.target.delete_file(kind, name).await {
                    Ok(()) => result.applied_files.push(format!("- {kind} {name}")),
                    Err(error) => {
                        tracing::warn!(endpoint = self.target.endpoint(), name, %error, "a file can't be deleted");
                        result.warnings.push(format!("{kind} {name} can't be deleted: {error}"));
                    }
                }
            }
        }
        if !files.certificates.to_delete.is_empty()
            && let Err(error) = self.note_digests(files).await
        {
            result.warnings.push(error.to_string());
        }
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
