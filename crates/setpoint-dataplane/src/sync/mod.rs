//! Brings a target to what is desired.
//!
//! ```text
//! 1 fetch ─▶ 2 parse ─▶ 3 compare ─▶ 4 compare files ─▶ 5 anything to do? ─▶ 6 by which way?
//!   ▲                                                                              │
//!   └───────── somebody else changed it: plan again ◀──── 7 files, configuration ◀─┘
//!                                                                 │
//!                      files that go ◀── read back ◀── 8 reload ◀─┘
//! ```

mod change;
mod execute;
mod failure;
mod options;
mod runtime;
mod steps;
mod verify;
mod ways;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::try_join;
use setpoint_haproxy::compare::{Diff, compare};
use setpoint_haproxy::text::Document;
use setpoint_plan::Runtime;
use tokio_util::sync::CancellationToken;

use crate::client::{ApiError, FileKind, Process};
use crate::costs::Costs;
use crate::error::{ConfigType, ParseError, Stage, SyncError};
use crate::files::{self, DIGESTS, FileDiffs};
use crate::retry::RetryError;
use crate::running::RunningDifference;
use crate::target::{Effect, Target};
use change::Committed;
use failure::{Failed, conflict, flat, moved, not_written};
pub use options::{Choice, Desired, FailedSync, Strategy, SyncMode, SyncOptions, SyncResult};
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
    /// What the ways cost that lead there, the chosen one first; nothing where costs did not decide.
    pub ways: Vec<PlannedWay>,
    /// The costs that decided; none where they did not.
    pub costs: Option<Costs>,
    /// Why HAProxy will reload; none if it will not.
    pub reload: Option<String>,
    /// What somebody has told HAProxy while it runs, and is put right; nothing unless [`SyncOptions::runtime_drift`] is set.
    pub running: Vec<RunningDifference>,
}

impl SyncPlan {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.diff.is_empty() && self.files.is_empty() && self.running.is_empty()
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
    let way = run.way(&diff, current.version, &wanted)?;
    let (mode, ways) = way.map(|way| (way.mode, way.planned)).unzip();
    let reload = run.why_it_reloads(mode, &diff, &files);
    let running = run.running_differences(&wanted, &diff).await?;
    let costs = match options.choice {
        Choice::Cheapest(weights) => Some(weights.over(target.costs())),
        _ => None,
    };
    Ok(SyncPlan {
        running,
        costs,
        version: current.version,
        diff,
        files,
        mode,
        ways: ways.unwrap_or_default(),
        reload,
    })
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
                    self.wait_for_pending(result).await?;
                    return self.repair_running(&desired, result).await;
                }
                reload_for_files = self.write_files(&found, result).await?;
                files = Some(found);
            }
            match self.change(&diff, &current, &desired, reload_for_files, result).await {
                Ok(committed) => {
                    let files = files.unwrap_or_default();
                    self.finish(committed, before.as_ref(), &desired, result).await?;
                    if !result.reload_triggered {
                        self.read_back_running(&diff, &desired).await?;
                    }
                    self.repair_running(&desired, result).await?;
                    self.delete_files(&files, result).await;
                    return Ok(());
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
    fn way<'d>(
        &'d self,
        diff: &'d Diff,
        version: u64,
        desired: &'d Document,
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
        };
        let way = question.choose(&self.options.choice);
        way.map(Some).map_err(|error| SyncError::new(Stage::Compare, error.to_string()))
    }

    /// Why HAProxy reloads for a difference, if it does.
    fn why_it_reloads(&self, mode: Option<SyncMode>, diff: &Diff, files: &FileDiffs) -> Option<String> {
        let for_operation = diff.operations().iter().find_map(|operation| match &operation.runtime {
            Runtime::Yes => None,
            Runtime::No { why } => Some(format!("{operation}: {why}")),
        });
        let for_text = mode
            .filter(|mode| *mode != SyncMode::Runtime && self.target.always_reloads())
            .map(|_| "the Dataplane API reloads for every commit");
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

    /// Sees to it that a change has taken effect.
    async fn finish(
        &self,
        committed: Committed,
        before: Option<&Process>,
        desired: &Document,
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
