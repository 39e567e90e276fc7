//! `setpoint haproxy sync --rolling N`: some targets at a time.

use setpoint_dataplane::error::{Stage, SyncError};
use setpoint_dataplane::rolling::{Rolled, Rolling, roll};
use setpoint_dataplane::sync::{Desired, FailedSync, SyncOptions, SyncResult};
use setpoint_dataplane::target::{ApiTarget, Target as _};
use tokio_util::sync::CancellationToken;

use super::args::HaproxySyncArgs;
use super::planfile::PlanFile;
use super::print::{done, done_json};
use super::targets::{Outcome, connect_all, failed, until_signal};
use super::tell::Teller;
use crate::error::CliError;
use crate::report::Report;

/// Brings targets to a configuration, some at a time. None is changed before all of them answer.
pub(super) fn sync(
    args: &HaproxySyncArgs,
    desired: &Desired,
    options: &SyncOptions,
    rolling: &Rolling,
    planned: Option<&PlanFile>,
    report: Report,
) -> Result<u8, CliError> {
    let outcomes = until_signal(async |cancel| {
        let connected = connect_all(&args.target).await?;
        if connected.iter().any(|(_, target)| target.is_err()) {
            return Ok(connected.into_iter().map(|(endpoint, target)| (endpoint, refused(target))).collect());
        }
        let targets: Vec<ApiTarget> = connected.into_iter().filter_map(|(_, target)| target.ok()).collect();
        if let Some(planned) = planned
            && let Some(outcomes) = moved(&targets, planned).await
        {
            return Ok(outcomes);
        }
        // It may move while others are changed.
        let options = |target: &ApiTarget| SyncOptions {
            expected_version: planned.and_then(|planned| planned.version(target.endpoint())),
            ..options.clone()
        };
        Ok(rolled(&targets, desired, &options, rolling, report, cancel).await)
    })?;
    let teller = Teller::new(&args.target, report, done, done_json);
    for (endpoint, outcome) in &outcomes {
        teller.ended(endpoint, outcome)?;
    }
    teller.end(outcomes)
}

/// What is said of targets of which some do not answer: none is changed.
fn refused(target: Result<ApiTarget, Box<FailedSync>>) -> Result<SyncResult, Box<FailedSync>> {
    let Err(error) = target else {
        return Err(failed(SyncError::new(
            Stage::Connect,
            "another one does not answer: nothing was changed",
        )));
    };
    Err(error)
}

/// What is said where a plan in a file is not about what is there; none where it is.
async fn moved(targets: &[ApiTarget], planned: &PlanFile) -> Option<Vec<Outcome<SyncResult>>> {
    let mut outcomes = Vec::new();
    for target in targets {
        let version = target.version().await.ok();
        if version.is_none() || version != planned.version(target.endpoint()) {
            let error =
                SyncError::new(Stage::Compare, "the plan is not about what is there: nothing was changed");
            let error = error.hint("make a new plan with the same --url, and look at it");
            outcomes.push((target.endpoint().to_owned(), Err(failed(error))));
        }
    }
    (!outcomes.is_empty()).then_some(outcomes)
}

async fn rolled(
    targets: &[ApiTarget],
    desired: &Desired,
    options: &impl Fn(&ApiTarget) -> SyncOptions,
    rolling: &Rolling,
    report: Report,
    cancel: &CancellationToken,
) -> Vec<Outcome<SyncResult>> {
    let progress = |target: &ApiTarget, outcome: Option<&Rolled>| {
        let words = match outcome {
            None => "begun",
            Some(Rolled::Done(_)) => "done, and well",
            Some(Rolled::Untouched) => "not touched",
            Some(Rolled::Failed { .. } | Rolled::Unwell { .. }) => "failed",
        };
        report.detail(|| format!("{}: {words}", target.endpoint()));
    };
    let outcomes = roll(targets, desired, options, rolling, cancel, &progress).await;
    let named = targets.iter().map(|target| target.endpoint().to_owned());
    named.zip(outcomes.into_iter().map(outcome)).collect()
}

/// What became of one, as what became of a sync.
fn outcome(rolled: Rolled) -> Result<SyncResult, Box<FailedSync>> {
    match rolled {
        Rolled::Done(result) => Ok(result),
        Rolled::Failed { failed, restored: None } => Err(failed),
        Rolled::Failed { mut failed, restored: Some(restored) } => {
            failed.error.hints.push(match restored {
                Ok(_) => "it has its former configuration again".to_owned(),
                Err(error) => {
                    format!("its former configuration could not be restored: {}", error.error.chain())
                }
            });
            Err(failed)
        }
        Rolled::Untouched => {
            let error = SyncError::new(Stage::Apply, "not touched, because one before it failed");
            Err(failed(error))
        }
        Rolled::Unwell { why, restored: Ok(_) } => {
            let error =
                SyncError::new(Stage::Verify, format!("{why}; it has its former configuration again"));
            Err(failed(error.hint("look at its servers and at its log before it is tried again")))
        }
        Rolled::Unwell { why, restored: Err(error) } => {
            let message = format!("{why}; and its former configuration could not be restored");
            let error = SyncError::new(Stage::Verify, message).caused_by(error.error);
            Err(failed(error.hint("it is left with the new configuration")))
        }
    }
}
