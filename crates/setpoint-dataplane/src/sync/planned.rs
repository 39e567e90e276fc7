//! What a sync would do, and why HAProxy would reload for it.

use std::fmt;

use serde::Serialize;
use setpoint_haproxy::compare::Diff;
use setpoint_haproxy::text::Document;
use setpoint_plan::Runtime;
use tokio_util::sync::CancellationToken;

use super::auxiliary::Writes;
use super::avoid::Trial;
use super::{Choice, Desired, PlannedWay, Run, SyncMode, SyncOptions, parse};
use crate::costs::Costs;
use crate::error::{ConfigType, SyncError};
use crate::files::FileDiffs;
use crate::running::RunningDifference;
use crate::target::Target;

/// For how many operations an edit is looked for with which HAProxy would not reload.
const MOST_EDITS: usize = 20;

/// One thing for which HAProxy reloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReloadCause {
    /// What it is: an operation, a file, or how the API goes about it.
    pub what: String,
    /// Why HAProxy can't be told; none where that is all.
    pub why: Option<String>,
    /// The edit of what is desired with which it could be told, if one was found.
    pub avoid: Option<String>,
}

impl fmt::Display for ReloadCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.why.iter().try_for_each(|why| write!(f, ": {why}"))
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
    /// All for which it will, whatever there is beside: one reload is for all of them.
    pub reload_causes: Vec<ReloadCause>,
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
    let run = Run::new(target, desired, options, cancel);
    let wanted = parse(ConfigType::Desired, &desired.text)?;
    let current = run.current().await?;
    let diff = run.compare(&current.document, &wanted)?;
    let files = run.compare_files(&diff).await?;
    let writes = run.writes(&files, &current.document, &diff);
    if !diff.is_empty() || writes.take_reload() {
        run.can_be_kept(&wanted)?;
    }
    let way = run.way(&diff, current.version, &wanted, writes.take_reload())?;
    let (mode, ways) = way.map(|way| (way.mode, way.planned)).unzip();
    let reload_causes = run.reload_causes(mode, &diff, &writes, [&current.document, &wanted]);
    let reload = reload_causes.first().map(ToString::to_string);
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
        reload_causes,
    })
}

impl<T: Target> Run<'_, T> {
    /// All for which HAProxy reloads.
    fn reload_causes(
        &self,
        mode: Option<SyncMode>,
        diff: &Diff,
        writes: &Writes<'_>,
        documents: [&Document; 2],
    ) -> Vec<ReloadCause> {
        let mut causes = Vec::new();
        for operation in diff.operations() {
            let Runtime::No { why } = &operation.runtime else { continue };
            let narrow = |operation: &_| self.target.needs_reload(operation);
            let trial = (causes.len() < MOST_EDITS)
                .then(|| Trial::new(documents, self.target.context(), operation, &narrow));
            let avoid = trial.and_then(|trial| trial.edit());
            causes.push(ReloadCause { what: operation.to_string(), why: Some(why.clone()), avoid });
        }
        let is_told = mode.is_none_or(|mode| mode == SyncMode::Runtime);
        if causes.is_empty() && !is_told && self.target.always_reloads() {
            let what = "the Dataplane API reloads for every commit".to_owned();
            causes.push(ReloadCause { what, why: None, avoid: None });
        }
        let of_files = writes.why_they_reload();
        causes.extend(of_files.map(|(what, why)| ReloadCause { what, why: Some(why), avoid: None }));
        causes
    }
}
