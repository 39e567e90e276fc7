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
use setpoint_dataplane::sync::{self, SyncResult};
use setpoint_dataplane::target::{ApiTarget, Target as _};

pub(crate) use args::{HaproxyPlanArgs, HaproxySyncArgs, HaproxyWatchArgs};
use planfile::PlanFile;
use print::{done, done_json, planned, planned_json};
use targets::{Connections, Work, each, failed, until_signal};
use tell::Teller;
pub(crate) use watch::watch;

use super::read;
use crate::error::CliError;
use crate::report::Report;

/// What `--detailed-exitcode` says of a HAProxy that differs.
const CHANGES: u8 = 2;

pub(crate) fn plan(args: &HaproxyPlanArgs, report: Report) -> Result<u8, CliError> {
    let desired = args.target.desired(read(&args.target.desired, report)?.print())?;
    let options = args.target.options()?;
    let teller = Teller::new(&args.target, report, planned, planned_json);
    let outcomes = until_signal(async |cancel| {
        let work =
            async |target: ApiTarget| sync::plan(&target, &desired, &options, cancel).await.map_err(failed);
        let work = Work {
            run: &work,
            undone: &|_, _| None,
            ended: &|endpoint, outcome| teller.ended(endpoint, outcome),
        };
        each(&args.target, &Connections::default(), None, report, cancel, &work).await
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
        let work = async |target: ApiTarget| {
            let endpoint = target.endpoint().to_owned();
            report.detail(|| format!("{endpoint}: begun"));
            let mut options = options.clone();
            if let Some(planned) = &planned {
                options.expected_version = planned.version(&endpoint);
                if options.expected_version.is_none() {
                    let error = SyncError::new(Stage::Compare, "the plan is not for this one");
                    return Err(failed(error.hint("make a plan with the same --url, or --local")));
                }
            }
            sync::sync(&target, &desired, &options, cancel).await
        };
        let work =
            Work { run: &work, undone: &undone, ended: &|endpoint, outcome| teller.ended(endpoint, outcome) };
        each(&args.target, &Connections::default(), Some(&desired.text), report, cancel, &work).await
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
