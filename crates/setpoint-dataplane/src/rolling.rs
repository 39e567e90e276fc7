//! Brings several targets to what is desired, some at a time, and stops where one is not well afterwards.
//!
//! ```text
//! targets ─▶ some at a time ─▶ remember text ─▶ sync ─▶ servers up? errors few? ─┬─ yes ─▶ the next ones
//!                                                                               └─ no ──▶ the text of before, and no more
//! ```

use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::client::Health;
use crate::error::{Stage, SyncError};
use crate::files::AuxiliaryFiles;
use crate::running::names_of;
use crate::sync::{Desired, FailedSync, SyncOptions, SyncResult, sync};
use crate::target::Target;

/// How often a target is looked at that is not well yet.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How targets follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rolling {
    /// How many are changed at the same time.
    pub at_a_time: usize,
    /// How long one is watched before the next ones are changed.
    pub settle: Duration,
    /// How long its servers may take to be up again.
    pub up_within: Duration,
    /// Which part of the requests, from 0 to 1, may fail while it is watched.
    pub error_rate: f64,
}

impl Default for Rolling {
    fn default() -> Self {
        Self {
            at_a_time: 1,
            settle: Duration::from_secs(5),
            up_within: Duration::from_secs(30),
            error_rate: 0.01,
        }
    }
}

/// What became of a former text.
pub type Restored = Result<SyncResult, Box<FailedSync>>;

/// What became of one target.
#[derive(Debug)]
pub enum Rolled {
    /// It was brought to what is desired, and is well.
    Done(SyncResult),
    /// The sync failed.
    Failed {
        /// Why.
        failed: Box<FailedSync>,
        /// What became of the former text; none where it was never replaced.
        restored: Option<Restored>,
    },
    /// It was not well afterwards. It has its former text again, unless that failed too.
    Unwell {
        /// In what it was not well.
        why: String,
        /// What became of the former text.
        restored: Restored,
    },
    /// Another one failed before it was its turn: it was not touched.
    Untouched,
}

impl Rolled {
    /// Returns whether it is as desired, and well.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// Brings targets to what is desired, some at a time, each with its own options. What becomes of each is told in the order of the
/// targets; `progress` is told when one begins and ends.
pub async fn roll<T: Target>(
    targets: &[T],
    desired: &Desired,
    options: &impl Fn(&T) -> SyncOptions,
    rolling: &Rolling,
    cancel: &CancellationToken,
    progress: &impl Fn(&T, Option<&Rolled>),
) -> Vec<Rolled> {
    let mut outcomes = Vec::with_capacity(targets.len());
    for some in targets.chunks(rolling.at_a_time.max(1)) {
        if cancel.is_cancelled() || outcomes.iter().any(|outcome: &Rolled| !outcome.is_done()) {
            outcomes.extend(some.iter().map(|_| Rolled::Untouched));
            continue;
        }
        let each = some.iter().map(async |target| {
            progress(target, None);
            let outcome = one(target, desired, &options(target), rolling, cancel).await;
            progress(target, Some(&outcome));
            outcome
        });
        outcomes.extend(join_all(each).await);
    }
    outcomes
}

async fn one<T: Target>(
    target: &T,
    desired: &Desired,
    options: &SyncOptions,
    rolling: &Rolling,
    cancel: &CancellationToken,
) -> Rolled {
    let before = async { Ok::<_, crate::client::ApiError>((target.read().await?.0, target.health().await?)) };
    let (text, health) = match before.await {
        Ok(before) => before,
        Err(error) => {
            let error = SyncError::new(Stage::Fetch, "what is there can't be read").caused_by(error);
            let failed = Box::new(FailedSync { error, result: SyncResult::default() });
            return Rolled::Failed { failed, restored: None };
        }
    };
    let former = Desired { text, files: AuxiliaryFiles::default() };
    // Before it is known to be well, its former text may be needed again, and the files that this names.
    let careful = SyncOptions { keep_files: true, ..options.clone() };
    let free = SyncOptions { expected_version: None, ..options.clone() };
    // Whatever happens to the others, this one gets back what it had.
    let restore = async || sync(target, &former, &free, &CancellationToken::new()).await;
    let mut result = match sync(target, desired, &careful, cancel).await {
        Ok(result) => result,
        Err(failed) if !may_have_changed(failed.error.stage) => {
            return Rolled::Failed { failed, restored: None };
        }
        Err(failed) => {
            let restored = restore().await;
            let is_untouched = restored.as_ref().is_ok_and(|restored| restored.applied_operations.is_empty());
            return Rolled::Failed { failed, restored: Some(restored).filter(|_| !is_untouched) };
        }
    };
    let is_changed = !result.applied_operations.is_empty() || !result.applied_files.is_empty();
    let watched = async {
        if !is_changed {
            return Ok(());
        }
        let wanted = names_of(&desired.text, target.context());
        let wanted: Vec<_> = health.up.into_iter().filter(|server| wanted.contains(server)).collect();
        let since = up_again(target, &wanted, rolling).await?;
        stays_well(target, &wanted, &since, rolling).await
    };
    let why = match cancel.run_until_cancelled(watched).await {
        Some(Ok(())) => {
            delete_kept(target, desired, &free, &mut result).await;
            return Rolled::Done(result);
        }
        Some(Err(why)) => why,
        None => "it was cancelled before it was known to be well".to_owned(),
    };
    Rolled::Unwell { why, restored: restore().await }
}

/// Returns whether the configuration may be another one where a step failed.
fn may_have_changed(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Apply | Stage::Commit | Stage::Fallback | Stage::ReloadVerification | Stage::ReadBack
    )
}

/// Deletes the files that nobody wants any more, now that the former text is not needed again. That it can't be done is no failure.
async fn delete_kept<T: Target>(
    target: &T,
    desired: &Desired,
    options: &SyncOptions,
    result: &mut SyncResult,
) {
    if result.kept_files.is_empty() {
        return;
    }
    match sync(target, desired, options, &CancellationToken::new()).await {
        Ok(deleted) => {
            result.applied_files.extend(deleted.applied_files);
            result.warnings.extend(deleted.warnings);
            result.kept_files.clear();
        }
        Err(failed) => {
            let files = result.kept_files.join(", ");
            result.warnings.push(format!("{files} can't be deleted: {}", failed.error.chain()));
        }
    }
}

/// A server, by backend and name.
type Server = (String, String);

/// Waits until all servers are up that were up before and are still wanted.
async fn up_again<T: Target>(target: &T, wanted: &[Server], rolling: &Rolling) -> Result<Health, String> {
    let deadline = Instant::now() + rolling.up_within;
    loop {
        let why = match health(target).await {
            Ok(now) => match down(wanted, &now) {
                None => return Ok(now),
                Some(why) => why,
            },
            Err(why) => why,
        };
        if Instant::now() >= deadline {
            return Err(why);
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Watches a target for a while. An error says that servers went down, or that too many requests failed: a check takes its time to
/// find out that a server is gone.
async fn stays_well<T: Target>(
    target: &T,
    wanted: &[Server],
    since: &Health,
    rolling: &Rolling,
) -> Result<(), String> {
    sleep(rolling.settle).await;
    let now = health(target).await?;
    if let Some(why) = down(wanted, &now) {
        return Err(why);
    }
    let (requests, errors) = traffic(since, &now);
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = if requests == 0 { 0.0 } else { errors as f64 / requests as f64 };
    if rate > rolling.error_rate {
        return Err(format!("{errors} of {requests} requests failed within {:?}", rolling.settle));
    }
    Ok(())
}

async fn health<T: Target>(target: &T) -> Result<Health, String> {
    target.health().await.map_err(|error| format!("it does not tell how it is: {error}"))
}

/// Which servers are down, in words; none if none is.
fn down(wanted: &[Server], now: &Health) -> Option<String> {
    let down: Vec<String> = wanted
        .iter()
        .filter(|server| !now.up.contains(*server))
        .map(|(backend, server)| format!("{backend}/{server}"))
        .collect();
    let noun = if down.len() == 1 { "server is" } else { "servers are" };
    (!down.is_empty()).then(|| format!("{} {noun} down that had been up: {}", down.len(), few(&down)))
}

/// How many requests there were between two looks, and how many failed. A process that was started meanwhile counts from nothing.
fn traffic(since: &Health, now: &Health) -> (u64, u64) {
    if now.requests < since.requests || now.errors < since.errors {
        return (now.requests, now.errors);
    }
    (now.requests - since.requests, now.errors - since.errors)
}

/// The first of some names, and how many more there are.
fn few(names: &[String]) -> String {
    let shown = names.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    match names.len() {
        0..=3 => shown,
        more => format!("{shown} and {} more", more - 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_started_meanwhile_counts_from_nothing() {
        let health = |requests, errors| Health { requests, errors, ..Health::default() };
        assert_eq!(traffic(&health(100, 4), &health(150, 6)), (50, 2));
        assert_eq!(traffic(&health(100, 4), &health(20, 1)), (20, 1));
    }
}
