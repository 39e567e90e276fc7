//! Carrying a plan out: journalled, watched by a person, stoppable, remembered.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use setpoint_engine::{CurrentGraph, Engine, Failure, Interruption, LogEntry, Operation, Selection, Status};
use setpoint_graph::{Graph, Item as _};
use setpoint_host::{Command, Host, Manifest};
use setpoint_plan::{Action, Plan, PlannedOperation};
use setpoint_state::{Run, RunDetails, RunEntry, RunOutcome, Writer};

use super::protect;
use super::set::declaring;
use super::stop::Stop;
use crate::error::CliError;
use crate::report::Report;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: Status,
    pub(crate) run: Run,
    /// How many items could not be read, and were left as they are.
    pub(crate) unreadable: usize,
}

/// Something that failed, as data.
#[derive(Debug, Serialize)]
pub(crate) struct FailureView {
    kind: String,
    name: String,
    operation: Operation,
    error: String,
    attempts: u32,
}

impl From<&Failure> for FailureView {
    fn from(failure: &Failure) -> Self {
        Self {
            kind: failure.item.kind().to_string(),
            name: failure.item.name().to_string(),
            operation: failure.operation,
            error: failure.error.to_string(),
            attempts: failure.attempts,
        }
    }
}

/// A run that is about to be made: by whom, on what, and where it is remembered.
pub(crate) struct PlannedRun<'a> {
    pub(crate) command: &'a str,
    pub(crate) engine: Engine,
    pub(crate) host: &'a Host,
    pub(crate) manifest: &'a Manifest,
    pub(crate) writer: &'a Writer,
    /// What is to be remembered of it.
    pub(crate) details: RunDetails,
    /// How many items could not be read: each counts as failed.
    pub(crate) unreadable: usize,
    pub(crate) stop: Stop,
    pub(crate) report: Report,
}

impl PlannedRun<'_> {
    /// Reconciles, and saves what came of it if anything was done, or had been by a lost run. The first signal finishes what
    /// runs, the second cancels it.
    pub(crate) async fn carry_out(
        self,
        current: &mut Option<CurrentGraph>,
        intended: Option<&Graph>,
        selection: &Selection,
    ) -> Result<Done, CliError> {
        let Self { command, engine, host, manifest, writer, details, unreadable, stop, report } = self;
        if let Some(current) = current {
            checkpoint(host, writer, current)?;
        }
        let started = Timestamp::now();
        let is_news = remember_manifests(manifest, writer, selection);
        let protection = current.as_ref().map(|current| protect::changes(manifest, current));
        let number = writer.begin(command, started, protection.unwrap_or_default(), details.clone());
        let engine = engine.with_journal(writer.journal()).draining_on(stop.drain().clone());
        let announcer = tokio::spawn(stop.clone().announce(report));
        let status = engine.reconcile_until(current, intended, selection, stop.cancel()).await;
        announcer.abort();
        let status = status?;
        let outcome = match status.interruption() {
            Some(Interruption::Cancelled) => RunOutcome::Cancelled,
            _ if status.result().is_ok() && unreadable == 0 => RunOutcome::Done,
            _ => RunOutcome::Failed,
        };
        let mut entries: Vec<RunEntry> = status.log().iter().map(RunEntry::from).collect();
        details.complete(&mut entries);
        let run = Run {
            number,
            command: command.to_owned(),
            started,
            ended: Timestamp::now(),
            outcome,
            entries,
            drift: details.drift,
        };
        if let Some(current) = current {
            host.settle(current);
            let protects = protect::remember(manifest, current);
            if !run.entries.is_empty() {
                writer.save(current, Some(run.clone()))?;
            } else if is_news || protects || writer.has_unsaved_runs() {
                // What the lost run had done is known now.
                writer.save(current, None)?;
            }
        }
        Ok(Done { status, run, unreadable })
    }
}

/// Remembers which files declare anything, as of a change that was asked for. Returns whether that is news.
pub(crate) fn remember_manifests(manifest: &Manifest, writer: &Writer, selection: &Selection) -> bool {
    let mut manifests = declaring(manifest);
    if !matches!(selection, Selection::All) {
        // Of what it is not about, nobody has seen that it would go.
        manifests.extend(writer.manifests().unwrap_or_default());
    }
    writer.set_manifests(manifests)
}

/// Saves what was found out about a run that was cut off, before anything else is done: a run that is cut off as well is then
/// taken over from there. Where nobody knows yet how an operation ended, the journal stays.
pub(crate) fn checkpoint(host: &Host, writer: &Writer, current: &mut CurrentGraph) -> Result<(), CliError> {
    let is_known = current.items().all(|node| node.state().is_none_or(|state| !state.is_unknown()));
    if writer.has_unsaved_runs() && is_known {
        host.settle(current);
        writer.save(current, None)?;
    }
    Ok(())
}

/// One operation in a line.
pub(crate) fn line(entry: &LogEntry) -> String {
    let took = entry
        .end()
        .map(|end| end.duration_since(entry.start()))
        .map_or(Duration::ZERO, |took| Duration::try_from(took).unwrap_or_default());
    let took = if took < Duration::from_millis(100) { String::new() } else { format!(" in {}", time(took)) };
    let item = entry.item().reference();
    match (entry.error(), entry.operation()) {
        (Some(error), operation) => format!("  ! {item} failed to {operation}{took}: {error}\n"),
        (None, Operation::Create) if entry.is_anew() => format!("  + {item} made anew{took}\n"),
        (None, Operation::Create) if entry.is_adoption() => format!("  + {item} adopted{took}\n"),
        (None, Operation::Create) => format!("  + {item} created{took}\n"),
        (None, Operation::Modify) => format!("  ~ {item} modified{took}\n"),
        // Nothing is undone of a command that is about to be applied again.
        (None, Operation::Delete) if entry.is_anew() && item.kind() == &Command::KIND => {
            format!("  - {item} will be re-applied{took}\n")
        }
        (None, Operation::Delete) if entry.is_anew() => format!("  - {item} removed for re-creation{took}\n"),
        (None, Operation::Delete) if entry.is_release() => format!("  - {item} released{took}\n"),
        (None, Operation::Delete) => format!("  - {item} deleted{took}\n"),
    }
}

/// What was done of a plan, in one sentence.
pub(crate) fn summary(done: &Done, plan: &Plan) -> String {
    let entries = done.status.log();
    let word = |entry: &LogEntry| match entry.operation() {
        Operation::Create if entry.is_anew() => "made anew",
        Operation::Create if entry.is_adoption() => "adopted",
        Operation::Create => "created",
        Operation::Modify => "modified",
        // What came of it is counted when it is back.
        Operation::Delete if entry.is_anew() => "",
        Operation::Delete if entry.is_release() => "released",
        Operation::Delete => "deleted",
    };
    let mut parts: Vec<String> = Vec::new();
    for counted in ["created", "adopted", "modified", "made anew", "deleted", "released"] {
        let count = entries.iter().filter(|entry| entry.error().is_none() && word(entry) == counted).count();
        if count > 0 {
            parts.push(format!("{count} {counted}"));
        }
    }
    let failed = entries.iter().filter(|entry| entry.error().is_some()).count() + done.unreadable;
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    if parts.is_empty() {
        parts.push("nothing done".to_owned());
    }
    let took = time(done.run.took());
    let mut text = format!("Run {}: {} in {took}.\n", done.run.number, parts.join(", "));
    if done.run.outcome == RunOutcome::Cancelled {
        text.push_str("It was stopped before all was done; run it again to go on.\n");
    }
    match done.status.pending() {
        0 => {}
        1 => text.push_str("1 item waits for something that is not there.\n"),
        count => {
            let _ = writeln!(text, "{count} items wait for something that is not there.");
        }
    }
    let untouched = untouched(done, plan);
    if done.run.outcome == RunOutcome::Failed && !untouched.is_empty() {
        let (names, many) = (untouched.iter().cloned().collect::<Vec<_>>().join(", "), untouched.len() > 1);
        let verbs = if many { ("wait", "are as they were") } else { ("waits", "is as it was") };
        let _ = writeln!(text, "{names} {} for what failed, and {}.", verbs.0, verbs.1);
    }
    text
}

/// What is there, was to be changed, and was not touched.
fn untouched(done: &Done, plan: &Plan) -> BTreeSet<String> {
    let is_there = |operation: &&PlannedOperation| operation.action != Action::Create || operation.temporary;
    let planned = plan.operations.iter().filter(is_there);
    let mut items: BTreeSet<String> =
        planned.map(|operation| format!("{}/{}", operation.kind, operation.name)).collect();
    for entry in done.status.log() {
        items.remove(&entry.item().reference().to_string());
    }
    items
}

/// A time as people like to read it.
pub(crate) fn time(time: Duration) -> String {
    match time.as_millis() {
        0 => "under 1 ms".to_owned(),
        ms @ 1..1000 => format!("{ms} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}
