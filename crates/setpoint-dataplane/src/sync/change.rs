//! Changes the configuration of a target, by the way that was chosen.

use std::borrow::Cow;
use std::sync::PoisonError;

use setpoint_haproxy::compare::{Diff, Operation};
use setpoint_haproxy::text::Document;

use super::execute::execute;
use super::failure::{Failed, both, failed, first_of};
use super::steps::Step;
use super::ways::{Route, Way};
use super::{Current, Run, SyncMode, SyncOptions, SyncResult, normalised};
use crate::client::{ApiError, Changed, For};
use crate::error::Stage;
use crate::target::Target;

/// What a change begins with.
struct From<'f> {
    operations: &'f [Operation],
    version: u64,
    /// Whether files wait for a reload.
    files_wait: bool,
    desired: &'f Document,
}

/// What a change of the configuration came to.
#[derive(Default)]
pub(super) struct Committed {
    pub(super) version: Option<u64>,
    pub(super) reload_id: Option<String>,
    /// Whether HAProxy reloads, or has.
    pub(super) reloads: bool,
}

impl Committed {
    fn of(changed: Changed) -> Self {
        let reloads = changed.is_delayed || changed.reload_id.is_some();
        Self { version: changed.version, reload_id: changed.reload_id, reloads }
    }
}

impl<T: Target> Run<'_, T> {
    /// Changes the configuration, by the way that is decided on. Where files wait for a reload, one comes.
    pub(super) async fn change(
        &self,
        diff: &Diff,
        current: &Current,
        desired: &Document,
        files_wait: bool,
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let way = self.way(diff, current.version, desired, files_wait).map_err(Failed::Error)?;
        let committed = if let Some(way) = way {
            let from = From { operations: diff.operations(), version: current.version, files_wait, desired };
            self.change_by(way, from, result).await?
        } else {
            result.mode = SyncMode::FineGrained;
            Committed { version: Some(current.version), ..Committed::default() }
        };
        if !files_wait || committed.reloads {
            return Ok(committed);
        }
        // Only a commit reloads whatever has changed. It writes the text, too.
        self.can_be_kept(desired).map_err(Failed::Error)?;
        let version = self.version_of(&committed).await?;
        self.transaction(&[], version, true, result).await
    }

    async fn change_by(
        &self,
        way: Way<'_>,
        from: From<'_>,
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let (Way { mode, route, .. }, From { operations, version, files_wait, desired }) = (way, from);
        result.mode = mode;
        let is_text = matches!(route, Route::Text);
        let told = match &route {
            Route::Transaction(_) | Route::Text if self.options.runtime_first => {
                self.tell_first(operations, version, result).await
            }
            _ => Ok(None),
        };
        if let Ok(Some((_, later))) = &told {
            let is_later = |operation: &&Operation| {
                later
                    .iter()
                    .any(|step| step.operations().iter().any(|later| std::ptr::eq(*later, *operation)))
            };
            let now = operations.iter().filter(|operation| !is_later(operation));
            self.read_back_running(now, desired).await.map_err(Failed::Error)?;
        }
        let changed = match (told, route) {
            (Err(failed), _) => return self.or_fall_back(Err(failed), operations, result).await,
            (Ok(Some((version, _))), Route::Text) => {
                self.push(version, operations, Stage::Commit, result).await
            }
            (Ok(Some((version, later))), _) => self.transaction(&later, version, files_wait, result).await,
            (Ok(None), Route::Transaction(steps)) => {
                self.transaction(&steps, version, files_wait, result).await
            }
            (Ok(None), Route::OneByOne) => self.one_by_one(operations.iter(), version, result).await,
            (Ok(None), Route::Actions(actions)) => {
                self.push_with_actions(version, &actions, operations, result).await
            }
            (Ok(None), Route::Text) => self.push(version, operations, Stage::Commit, result).await,
        };
        if is_text { changed } else { self.or_fall_back(changed, operations, result).await }
    }

    /// The version after a change.
    async fn version_of(&self, committed: &Committed) -> Result<u64, Failed> {
        if let Some(version) = committed.version {
            return Ok(version);
        }
        let version = self.target.version().await;
        version.map_err(|error| failed(Stage::Apply, "the version can't be read", error))
    }

    /// Pushes the whole text where a change failed, if that is wanted.
    async fn or_fall_back(
        &self,
        changed: Result<Committed, Failed>,
        operations: &[Operation],
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
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

    /// Tells a running HAProxy what it can be told, so that nobody who waits for a server waits for the reload of all else.
    /// Returns the version afterwards, and what is left; nothing where there is nothing of either.
    async fn tell_first<'o>(
        &self,
        operations: &'o [Operation],
        version: u64,
        result: &mut SyncResult,
    ) -> Result<Option<(u64, Vec<Step<'o>>)>, Failed> {
        let is_told = |operation: &&Operation| {
            operation.runtime.is_possible() && self.target.needs_text(operation).is_none()
        };
        let (now, later): (Vec<&Operation>, Vec<&Operation>) = operations.iter().partition(is_told);
        if now.is_empty() || later.is_empty() {
            return Ok(None);
        }
        let told = if self.target.always_reloads() {
            self.one_by_one(now.into_iter(), version, result).await?
        } else {
            let steps: Vec<Step<'_>> = now.into_iter().map(Step::One).collect();
            self.transaction(&steps, version, false, result).await?
        };
        let version = self.version_of(&told).await?;
        Ok(Some((version, later.into_iter().map(Step::One).collect())))
    }

    async fn transaction(
        &self,
        steps: &[Step<'_>],
        version: u64,
        reloads: bool,
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let id = self
            .target
            .begin(version)
            .await
            .map_err(|error| failed(Stage::Apply, "a transaction can't be begun", error))?;
        *self.transaction.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
        let SyncOptions { max_parallel, continue_on_error, .. } = *self.options;
        let failures = execute(steps, max_parallel, continue_on_error, async |step| {
            let made_for = For::Transaction(&id);
            let done = match step {
                Step::One(operation) => self.target.operate(operation, made_for).await,
                Step::Several { bundle, .. } => self.target.operate_bundle(bundle, made_for).await,
            };
            done.map(|_| ()).map_err(|error| (step.leading().clone(), error))
        });
        if let Some(failure) = first_of(failures.await) {
            return Err(failure);
        }
        let changed = self.target.commit(&id, reloads).await;
        let changed =
            changed.map_err(|error| failed(Stage::Commit, "the transaction can't be committed", error))?;
        *self.transaction.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let applied = steps.iter().flat_map(Step::operations);
        result.applied_operations.extend(applied.map(ToString::to_string));
        let committed = Committed::of(changed);
        Ok(Committed { reloads: reloads || committed.reloads, ..committed })
    }

    /// Carries out changes of servers one after the other, each of which takes effect by itself.
    async fn one_by_one(
        &self,
        operations: impl Iterator<Item = &Operation>,
        mut version: u64,
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let mut committed = Committed { version: Some(version), ..Committed::default() };
        let mut failures = Vec::new();
        for operation in operations {
            let changed = match self.target.operate(operation, For::Version(version)).await {
                Ok(changed) => changed,
                Err(error) => {
                    let goes_on = self.options.continue_on_error && !error.is_conflict();
                    failures.push((operation.clone(), error));
                    if goes_on {
                        continue;
                    }
                    break;
                }
            };
            version = changed.version.unwrap_or(version + 1);
            committed.version = Some(version);
            committed.reloads |= changed.is_delayed;
            committed.reload_id = changed.reload_id.or(committed.reload_id);
            result.applied_operations.push(operation.to_string());
        }
        first_of(failures).map_or(Ok(committed), Err)
    }

    /// The text that is pushed.
    fn text(&self) -> Cow<'_, [u8]> {
        let text = &self.desired.text;
        if self.target.rewrites() {
            normalised::to_push(&Document::parse(text)).print().into()
        } else {
            text.into()
        }
    }

    /// Writes the text without a reload, and tells a running HAProxy what has changed.
    async fn push_with_actions(
        &self,
        version: u64,
        actions: &str,
        operations: &[Operation],
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let pushed = self.target.push_with_actions(&self.text(), version, actions).await;
        self.pushed(pushed, version, operations, Stage::Commit, result).await
    }

    async fn push(
        &self,
        version: u64,
        operations: &[Operation],
        stage: Stage,
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let pushed = self.target.push(&self.text(), version).await;
        self.pushed(pushed, version, operations, stage, result).await
    }

    /// What the push of a text came to. Any version but the next is somebody else's.
    async fn pushed(
        &self,
        pushed: Result<Changed, ApiError>,
        version: u64,
        operations: &[Operation],
        stage: Stage,
        result: &mut SyncResult,
    ) -> Result<Committed, Failed> {
        let pushed = pushed.map_err(|error| failed(stage, "the text can't be pushed", error))?;
        let committed = Committed::of(pushed);
        let actual = self.version_of(&committed).await?;
        if actual != version + 1 {
            return Err(Failed::Conflict(Some(actual)));
        }
        result.applied_operations = operations.iter().map(ToString::to_string).collect();
        Ok(Committed { version: Some(actual), ..committed })
    }
}
