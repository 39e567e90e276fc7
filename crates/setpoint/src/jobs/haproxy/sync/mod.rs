//! `setpoint haproxy plan` and `setpoint haproxy sync`: brings the HAProxy behind a Dataplane API to a configuration.

mod args;
#[cfg(feature = "dataplane")]
mod local;
mod planfile;

use std::fmt::Write as _;

use futures::future::join_all;
use serde_json::{Value as Json, json};
use setpoint_dataplane::client::{Client, FileKind};
use setpoint_dataplane::error::{Stage, SyncError};
use setpoint_dataplane::files::FileDiffs;
use setpoint_dataplane::sync::{self, FailedSync, SyncMode, SyncPlan, SyncResult};
use setpoint_dataplane::target::{ApiTarget, Target as _};
use tokio_util::sync::CancellationToken;

use args::TargetArgs;
pub(crate) use args::{HaproxyPlanArgs, HaproxySyncArgs};
#[cfg(feature = "dataplane")]
use local::{Local, Purpose};
use planfile::PlanFile;

use super::{diff, error::Error, read};
use crate::error::CliError;
use crate::report::{Report, print};
use crate::service::{Signals, runtime};

/// What `--detailed-exitcode` says of a target that differs.
const CHANGES: u8 = 2;

/// What was found out, or done, at one URL.
type Outcome<T> = (String, Result<T, Box<FailedSync>>);

pub(crate) fn plan(args: &HaproxyPlanArgs, report: Report) -> Result<u8, CliError> {
    let desired = args.target.desired(read(&args.target.desired, report)?.print())?;
    let options = args.target.options();
    let work = async |target: ApiTarget, cancel: &CancellationToken| {
        let plan = sync::plan(&target, &desired, &options, cancel).await;
        plan.map_err(|error| Box::new(FailedSync { error, result: SyncResult::default() }))
    };
    let outcomes = each(&args.target, None, report, &work, &|_, _| None)?;
    let is_changed = outcomes.iter().any(|(_, plan)| plan.as_ref().is_ok_and(|plan| !plan.is_empty()));
    if let Some(path) = &args.out {
        // A plan for some of them is none.
        let plans: Option<Vec<_>> =
            outcomes.iter().map(|(endpoint, plan)| Some((endpoint.as_str(), plan.as_ref().ok()?))).collect();
        if let Some(plans) = plans {
            PlanFile::new(&desired, plans, planned_json).write(path)?;
        }
    }
    let code = tell(&args.target, outcomes, planned, planned_json)?;
    Ok(if code == 0 && args.detailed_exitcode && is_changed { CHANGES } else { code })
}

pub(crate) fn sync(args: &HaproxySyncArgs, report: Report) -> Result<u8, CliError> {
    let desired = args.target.desired(read(&args.target.desired, report)?.print())?;
    let planned = args.plan.as_deref().map(|path| PlanFile::read(path, &desired)).transpose()?;
    let work = async |target: ApiTarget, cancel: &CancellationToken| {
        let endpoint = target.endpoint().to_owned();
        report.detail(|| format!("{endpoint}: begun"));
        let mut options = args.options();
        if let Some(planned) = &planned {
            options.expected_version = planned.version(&endpoint);
            if options.expected_version.is_none() {
                let error = SyncError::new(Stage::Compare, "the plan is not for this one")
                    .hint("make a plan with the same --url, or --local");
                return Err(Box::new(FailedSync { error, result: SyncResult::default() }));
            }
        }
        sync::sync(&target, &desired, &options, cancel).await
    };
    let outcomes = each(&args.target, Some(&desired.text), report, &work, &undone)?;
    tell(&args.target, outcomes, done, done_json)
}

/// Does something with each HAProxy that was named. With a text, they may be changed, and it is the first configuration of one that
/// has none.
fn each<T>(
    args: &TargetArgs,
    first: Option<&[u8]>,
    report: Report,
    work: &impl AsyncFn(ApiTarget, &CancellationToken) -> Result<T, Box<FailedSync>>,
    undone: &impl Fn(&T, u64) -> Option<SyncError>,
) -> Result<Vec<Outcome<T>>, CliError> {
    #[cfg(feature = "dataplane")]
    if args.local.local {
        let purpose = first.map_or(Purpose::Look, Purpose::Change);
        return Ok(vec![locally(args, purpose, report, work, undone)?]);
    }
    #[cfg(not(feature = "dataplane"))]
    let _ = (first, report, undone);
    run(args, work)
}

/// Why a sync that seemed to succeed did not: what HAProxy was told while it runs is asked about afterwards, and taken back where it
/// refuses it.
fn undone(result: &SyncResult, version: u64) -> Option<SyncError> {
    result.post_sync_version.filter(|written| *written != version).map(|_| {
        SyncError::new(Stage::ReadBack, "HAProxy refuses the configuration, and the former one is back")
            .hint("`haproxy -c` says why; `setpoint haproxy check` shows all that is wrong with a file")
    })
}

/// Does something with the HAProxy of this machine. A signal cancels it.
#[cfg(feature = "dataplane")]
fn locally<T>(
    args: &TargetArgs,
    purpose: Purpose<'_>,
    report: Report,
    work: &impl AsyncFn(ApiTarget, &CancellationToken) -> Result<T, Box<FailedSync>>,
    undone: &impl Fn(&T, u64) -> Option<SyncError>,
) -> Result<Outcome<T>, CliError> {
    runtime()?.block_on(async {
        let (cancel, mut signals) = (CancellationToken::new(), Signals::new()?);
        let local = Local::open(&args.local, purpose, report).await?;
        let name = local.name.clone();
        let mut outcome = {
            let mut working = std::pin::pin!(work(local.target.clone(), &cancel));
            loop {
                tokio::select! {
                    outcome = &mut working => break outcome,
                    // What is cancelled ends by itself.
                    () = signals.next() => cancel.cancel(),
                }
            }
        };
        if let (Some(version), Ok(done)) = (local.close().await, &outcome)
            && let Some(error) = undone(done, version)
        {
            outcome = Err(Box::new(FailedSync { error, result: SyncResult::default() }));
        }
        Ok((name, outcome))
    })
}

/// Does something at each URL, all at once: one that fails holds up no other. A signal cancels all of it.
fn run<T>(
    args: &TargetArgs,
    work: &impl AsyncFn(ApiTarget, &CancellationToken) -> Result<T, Box<FailedSync>>,
) -> Result<Vec<Outcome<T>>, CliError> {
    if args.urls.is_empty() {
        return Err(Error::NoTarget.into());
    }
    let mut settings = Vec::new();
    for url in &args.urls {
        settings.push((url, args.settings(url)?));
    }
    runtime()?.block_on(async {
        let (cancel, mut signals) = (CancellationToken::new(), Signals::new()?);
        let each = settings.into_iter().map(async |(url, settings)| match connect(settings).await {
            Ok(target) => (target.endpoint().to_owned(), work(target, &cancel).await),
            Err(error) => (shown(url), Err(Box::new(FailedSync { error, result: SyncResult::default() }))),
        });
        let all = join_all(each);
        let stops = async {
            signals.next().await;
            cancel.cancel();
            // What is cancelled ends by itself.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            outcomes = all => Ok(outcomes),
            () = stops => Ok(Vec::new()),
        }
    })
}

/// A URL without a password.
fn shown(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => url.to_owned(),
    }
}

async fn connect(settings: setpoint_dataplane::client::Settings) -> Result<ApiTarget, SyncError> {
    let client = Client::connect(settings).await.map_err(|error| unanswered(Box::new(error)))?;
    ApiTarget::new(client).await.map_err(|error| unanswered(Box::new(error)))
}

fn unanswered(error: setpoint_dataplane::error::Cause) -> SyncError {
    SyncError::new(Stage::Connect, "no Dataplane API answers as it should")
        .caused_by(error)
        .hint("check the address, the user and the password, and that the API runs there")
}

/// An error of a target as one of the command.
fn reported(endpoint: &str, error: &SyncError) -> CliError {
    let message = format!("{endpoint}: {}", error.chain());
    Error::Sync { message, hints: error.hints.join("; ") }.into()
}

/// Prints what came of all URLs. Returns what the process exits with.
fn tell<T>(
    args: &TargetArgs,
    outcomes: Vec<Outcome<T>>,
    text: impl Fn(&str, &T) -> String,
    json: impl Fn(&str, &T) -> Json,
) -> Result<u8, CliError> {
    let mut failed = Vec::new();
    for (endpoint, outcome) in outcomes {
        match outcome {
            Ok(value) if args.json => print(&format!("{}\n", json(&endpoint, &value)))?,
            Ok(value) => print(&text(&endpoint, &value))?,
            Err(failure) => {
                if args.json {
                    print(&format!("{}\n", failed_json(&endpoint, &failure)))?;
                }
                failed.push((endpoint, failure.error));
            }
        }
    }
    let count = failed.len();
    let Some((endpoint, error)) = failed.into_iter().next() else { return Ok(0) };
    let message = format!("{endpoint}: {}", error.chain());
    let more = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
    Err(Error::Sync { message: message + &more, hints: error.hints.join("; ") }.into())
}

fn words(mode: SyncMode) -> &'static str {
    match mode {
        SyncMode::FineGrained => "in one transaction",
        SyncMode::Runtime => "server by server",
        SyncMode::RawInitial => "by a push of the whole text, the first one",
        SyncMode::RawThreshold => "by a push of the whole text: there are many operations",
        SyncMode::RawText => "by a push of the whole text: no call carries some of it",
        SyncMode::RawFallback => "by a push of the whole text: operations failed",
    }
}

/// The files of a plan, a line each.
fn files(diffs: &FileDiffs) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in FileKind::ALL {
        let diff = diffs.of(kind);
        lines.extend(diff.to_create.keys().map(|name| format!("+ {kind} {name}")));
        lines.extend(diff.to_update.keys().map(|name| format!("~ {kind} {name}")));
        lines.extend(diff.to_delete.iter().map(|name| format!("- {kind} {name}")));
    }
    lines
}

fn planned(endpoint: &str, plan: &SyncPlan) -> String {
    if plan.is_empty() {
        return format!("{endpoint}: nothing to do.\n");
    }
    let mut text = String::new();
    if !plan.diff.is_empty() {
        // Writing to a string can't fail.
        let _ = diff::write(&mut text, endpoint, &plan.diff);
    }
    for line in files(&plan.files) {
        let _ = writeln!(text, "  {line}");
    }
    if let Some(mode) = plan.mode {
        let _ = writeln!(text, "{endpoint}: {}.", words(mode));
    }
    let _ = match &plan.reload {
        Some(why) => writeln!(text, "{endpoint}: one reload: {why}."),
        None => writeln!(text, "{endpoint}: no reload."),
    };
    text
}

fn planned_json(endpoint: &str, plan: &SyncPlan) -> Json {
    json!({
        "endpoint": endpoint,
        "version": plan.version,
        "mode": plan.mode.map(SyncMode::as_str),
        "plan": plan.diff.plan(endpoint),
        "files": files(&plan.files),
        "reloads": u8::from(plan.reload.is_some()),
        "reload_reason": plan.reload,
    })
}

fn done(endpoint: &str, result: &SyncResult) -> String {
    let mut text = String::new();
    let (operations, files) = (&result.applied_operations, &result.applied_files);
    for line in operations.iter().chain(files) {
        let _ = writeln!(text, "  {line}");
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "{endpoint}: warning: {warning}.");
    }
    let count = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let mut parts = Vec::new();
    if !operations.is_empty() {
        parts.push(format!("{} {}", count(operations.len(), "operation"), words(result.mode)));
    }
    if !files.is_empty() {
        parts.push(count(files.len(), "file"));
    }
    let _ = if parts.is_empty() {
        writeln!(text, "{endpoint}: nothing to do.")
    } else {
        let reload = match (result.reload_triggered, result.reload_verified) {
            (false, _) => "no reload",
            (true, true) => "one reload, which succeeded",
            (true, false) => "one reload",
        };
        let version =
            result.post_sync_version.map(|version| format!(", version {version}")).unwrap_or_default();
        writeln!(text, "{endpoint}: {}; {reload}{version}.", parts.join(", "))
    };
    text
}

fn done_json(endpoint: &str, result: &SyncResult) -> Json {
    json!({
        "endpoint": endpoint,
        "success": result.success,
        "mode": result.mode.as_str(),
        "operations": result.applied_operations,
        "files": result.applied_files,
        "reload_triggered": result.reload_triggered,
        "reload_id": result.reload_id,
        "reload_verified": result.reload_verified,
        "reload_verification_error": result.reload_verification_error,
        "retries": result.retries,
        "version": result.post_sync_version,
        "warnings": result.warnings,
    })
}

fn failed_json(endpoint: &str, failed: &FailedSync) -> Json {
    let mut json = done_json(endpoint, &failed.result);
    let error = &failed.error;
    let told = json!({ "stage": error.stage.as_str(), "message": error.chain(), "hints": error.hints });
    if let Some(properties) = json.as_object_mut() {
        properties.insert("error".to_owned(), told);
    }
    json
}
