//! `setpoint haproxy plan`, `sync` and `watch`: bring HAProxy to a configuration, on this machine or behind a Dataplane API.

mod args;
#[cfg(feature = "dataplane")]
mod local;
mod planfile;
mod print;
mod rolling;
mod targets;
mod tell;
mod watch;

use setpoint_dataplane::error::{Stage, SyncError};
use setpoint_dataplane::sync::{self, Desired, FailedSync, SyncOptions, SyncPlan, SyncResult};
use setpoint_dataplane::target::Target;
use tokio_util::sync::CancellationToken;

pub(crate) use args::{HaproxyPlanArgs, HaproxySyncArgs, HaproxyWatchArgs};
use planfile::PlanFile;
use print::{done, done_json, planned, planned_json};
use targets::{Connections, Job, Tools, Work, each, failed, until_signal};
use tell::Teller;
pub(crate) use watch::watch;

use super::read;
use crate::error::CliError;
use crate::report::Report;

/// What `--detailed-exitcode` says of a HAProxy that differs.
const CHANGES: u8 = 2;

/// Finding out what a sync would do.
struct Plan<'j> {
    desired: &'j Desired,
    options: &'j SyncOptions,
    cancel: &'j CancellationToken,
}

impl Job for Plan<'_> {
    type Done = SyncPlan;

    async fn run<T: Target>(&self, target: &T) -> Result<SyncPlan, Box<FailedSync>> {
        sync::plan(target, self.desired, self.options, self.cancel).await.map_err(failed)
    }
}

/// A sync; of what was planned, if a plan is given.
struct Sync<'j> {
    desired: &'j Desired,
    options: &'j SyncOptions,
    planned: Option<&'j PlanFile>,
    cancel: &'j CancellationToken,
    report: Report,
}

impl Job for Sync<'_> {
    type Done = SyncResult;

    async fn run<T: Target>(&self, target: &T) -> Result<SyncResult, Box<FailedSync>> {
        let endpoint = target.endpoint();
        self.report.detail(|| format!("{endpoint}: begun"));
        let mut options = self.options.clone();
        if let Some(planned) = self.planned {
            options.expected_version = planned.version(endpoint);
            if options.expected_version.is_none() {
                let error = SyncError::new(Stage::Compare, "the plan is not for this one");
                return Err(failed(error.hint("make a plan with the same --url, or --local")));
            }
        }
        sync::sync(target, self.desired, &options, self.cancel).await
    }
}

pub(crate) fn plan(args: &HaproxyPlanArgs, report: Report) -> Result<u8, CliError> {
    let desired = args.target.desired(read(&args.target.desired, report)?.print())?;
    let options = args.target.options()?;
    let teller = Teller::new(&args.target, report, planned, planned_json);
    let outcomes = until_signal(async |cancel| {
        let work = Work {
            job: &Plan { desired: &desired, options: &options, cancel },
            undone: &|_, _| None,
            ended: &|endpoint, outcome| teller.ended(endpoint, outcome),
        };
        let tools = Tools { args: &args.target, connections: &Connections::default(), report, cancel };
        each(tools, None, &work).await
    })?;
    let is_changed = outcomes.iter().any(|(_, plan)| plan.as_ref().is_ok_and(|plan| !plan.is_empty()));
    if let Some(path) = &args.out {
        // A plan for some of them is none.
        let plans: Option<Vec<_>> =
            outcomes.iter().map(|(endpoint, plan)| Some((endpoint.as_str(), plan.as_ref().ok()?))).collect();
        if let Some(plans) = plans {
            PlanFile::new(&desired, plans, planned_json).write(path)?;
        }
    }
    let code = teller.end(outcomes)?;
    Ok(if code == 0 && args.detailed_exitcode && is_changed { CHANGES } else { code })
}

pub(crate) fn sync(args: &HaproxySyncArgs, report: Report) -> Result<u8, CliError> {
    let desired = args.target.desired(read(&args.target.desired, report)?.print())?;
    let planned = args.plan.as_deref().map(|path| PlanFile::read(path, &desired)).transpose()?;
    let options = args.change.options(&args.target)?;
    if let Some(rolling) = args.rolling.rolling() {
        return rolling::sync(args, &desired, &options, &rolling, planned.as_ref(), report);
    }
    let teller = Teller::new(&args.target, report, done, done_json);
    let outcomes = until_signal(async |cancel| {
        let planned = planned.as_ref();
        let job = Sync { desired: &desired, options: &options, planned, cancel, report };
        let work =
            Work { job: &job, undone: &undone, ended: &|endpoint, outcome| teller.ended(endpoint, outcome) };
        let tools = Tools { args: &args.target, connections: &Connections::default(), report, cancel };
        each(tools, Some(&desired.text), &work).await
    })?;
    teller.end(outcomes)
}

/// Why a sync that seemed to succeed did not: what HAProxy was told while it runs is asked about afterwards, and taken back where it
/// refuses it.
fn undone(result: &SyncResult, version: u64) -> Option<SyncError> {
    result.post_sync_version.filter(|written| *written != version).map(|_| {
        SyncError::new(Stage::ReadBack, "HAProxy refuses the configuration, and the former one is back")
            .hint("`haproxy -c` says why; `setpoint haproxy check` shows all that is wrong with a file")
    })
}
