//! What a plan and a sync look like, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use setpoint_dataplane::client::FileKind;
use setpoint_dataplane::costs::Estimate;
use setpoint_dataplane::files::FileDiffs;
use setpoint_dataplane::sync::{FailedSync, PlannedWay, SyncMode, SyncPlan, SyncResult};

use crate::jobs::haproxy::diff;

fn words(mode: SyncMode) -> &'static str {
    match mode {
        SyncMode::FineGrained => "in one transaction",
        SyncMode::Runtime => "server by server",
        SyncMode::RawInitial => "by a push of the whole text, the first one",
        SyncMode::RawThreshold => "by a push of the whole text: there are many operations",
        SyncMode::RawText => "by a push of the whole text: no call carries some of it",
        SyncMode::RawChosen => "by a push of the whole text",
        SyncMode::RawFallback => "by a push of the whole text: operations failed",
    }
}

/// A way, with what it is expected to take.
fn way(way: &PlannedWay) -> String {
    let Estimate { calls, seconds, reloads, .. } = way.estimate;
    let reload = if reloads > 0 { " and a reload" } else { "" };
    format!("{} ({}, about {}{reload})", words(way.mode), count(calls, "call"), duration(seconds))
}

/// A time in words that nobody takes for a measurement.
fn duration(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", (seconds * 1000.0).max(1.0)) } else { format!("{seconds:.1} s") }
}

fn count(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
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

pub(super) fn planned(endpoint: &str, plan: &SyncPlan) -> String {
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
    for difference in &plan.running {
        let _ = writeln!(text, "  ! {difference}");
    }
    if let Some(mode) = plan.mode {
        let _ = match plan.ways.split_first() {
            None => writeln!(text, "{endpoint}: {}.", words(mode)),
            Some((chosen, others)) => {
                let others: Vec<String> = others.iter().map(way).collect();
                let others = match &others[..] {
                    [] => String::new(),
                    others => format!(" rather than {}", others.join(" or ")),
                };
                writeln!(text, "{endpoint}: {}{others}.", way(chosen))
            }
        };
    }
    let _ = match &plan.reload {
        Some(why) => writeln!(text, "{endpoint}: one reload: {why}."),
        None => writeln!(text, "{endpoint}: no reload."),
    };
    for cause in &plan.reload_causes {
        if let Some(avoid) = &cause.avoid {
            let _ = writeln!(text, "{endpoint}: hint: {} would take no reload {avoid}.", cause.what);
        }
    }
    text
}

pub(super) fn planned_json(endpoint: &str, plan: &SyncPlan) -> Json {
    json!({
        "endpoint": endpoint,
        "version": plan.version,
        "mode": plan.mode.map(SyncMode::as_str),
        "ways": plan.ways.iter().map(|way| json!({ "mode": way.mode.as_str(), "estimate": way.estimate })).collect::<Vec<_>>(),
        "costs": plan.costs,
        "running": plan.running,
        "plan": plan.diff.plan(endpoint),
        "files": files(&plan.files),
        "reloads": u8::from(plan.reload.is_some()),
        "reload_reason": plan.reload,
        "reload_causes": plan.reload_causes,
    })
}

pub(super) fn done(endpoint: &str, result: &SyncResult) -> String {
    let mut text = String::new();
    let (operations, files) = (&result.applied_operations, &result.applied_files);
    for line in operations.iter().chain(files) {
        let _ = writeln!(text, "  {line}");
    }
    for difference in &result.repaired {
        let _ = writeln!(text, "  ! {difference}: put right");
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "{endpoint}: warning: {warning}.");
    }
    let mut parts = Vec::new();
    if !operations.is_empty() {
        parts.push(format!("{} {}", count(operations.len(), "operation"), words(result.mode)));
    }
    if !files.is_empty() {
        parts.push(count(files.len(), "file"));
    }
    if !result.repaired.is_empty() {
        parts.push(format!("{} put right at runtime", count(result.repaired.len(), "difference")));
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

/// What a sync had done that failed; nothing if that is nothing.
pub(super) fn failed_text(endpoint: &str, result: &SyncResult) -> String {
    let mut text = String::new();
    for line in result.applied_operations.iter().chain(&result.applied_files) {
        let _ = writeln!(text, "  {line}");
    }
    if !text.is_empty() {
        let _ = writeln!(text, "{endpoint}: done before it failed.");
    }
    for warning in &result.warnings {
        let _ = writeln!(text, "{endpoint}: warning: {warning}.");
    }
    text
}

pub(super) fn done_json(endpoint: &str, result: &SyncResult) -> Json {
    json!({
        "endpoint": endpoint,
        "success": result.success,
        "mode": result.mode.as_str(),
        "operations": result.applied_operations,
        "files": result.applied_files,
        "not_restorable": result.not_restorable,
        "repaired": result.repaired,
        "reload_triggered": result.reload_triggered,
        "reload_id": result.reload_id,
        "reload_verified": result.reload_verified,
        "reload_verification_error": result.reload_verification_error,
        "retries": result.retries,
        "version": result.post_sync_version,
        "warnings": result.warnings,
    })
}

pub(super) fn failed_json(endpoint: &str, failed: &FailedSync) -> Json {
    let mut json = done_json(endpoint, &failed.result);
    let error = &failed.error;
    let told = json!({ "stage": error.stage.as_str(), "message": error.chain(), "hints": error.hints });
    if let Some(properties) = json.as_object_mut() {
        properties.insert("error".to_owned(), told);
    }
    json
}
