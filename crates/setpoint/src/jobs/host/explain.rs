//! `setpoint explain`: why an item is as it is, followed to its causes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;

use jiff::Timestamp;
use serde::Serialize;
use setpoint_engine::{ConditionKind, CurrentGraph, Engine, Explanation, Operation, Selection, condition};
use setpoint_graph::{Graph, ItemHandle, ItemRef};
use setpoint_host::{Because, Command, Directory, Process, RootPath, Started, path_of, registry};

use super::args::ExplainArgs;
use super::set::{self, Set, is_adopted};
use super::unreadable::{self, Readable, Unreadable};
use super::{preview, progress, protect};
use crate::error::CliError;
use crate::report::{Report, print, print_json};
use crate::service::runtime;

#[derive(Debug, Serialize)]
struct Explained {
    kind: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    declared_in: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    adopted: bool,
    /// Whether no plan may delete it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    protected: bool,
    /// Why it can't be read: what is known of it is then from when it could be.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
    #[serde(flatten)]
    explanation: Explanation,
    /// The process that runs for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    /// What it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needs: Vec<Needed>,
    /// What needs it, as `kind/name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    needed_by: Vec<String>,
    /// What was done to it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_change: Option<LastChange>,
}

/// One thing that an item needs.
#[derive(Debug, Serialize)]
struct Needed {
    /// What, as `kind/name`.
    item: String,
    /// Why.
    reason: String,
    /// How that stands; none if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    /// The verb of a sentence that says so.
    #[serde(skip)]
    verb: &'static str,
}

/// The last operation on an item that the history has.
#[derive(Debug, Serialize)]
struct LastChange {
    run: u64,
    command: String,
    operation: Operation,
    /// Whether it was there before: it was then adopted, or released.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    adopted: bool,
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// How many runs are looked through for the last change.
const RUNS: usize = 200;

pub(crate) fn run(args: &ExplainArgs, report: Report) -> Result<u8, CliError> {
    let mut set = Set::load(&args.set)?;
    let mut snapshot = set.read_state(report)?;
    let host = set.host(&snapshot.graph)?;
    progress::name_slow_checks(&host, report);
    set::recognise(&host, &mut snapshot.graph, Some(set.intended()));
    set.adjust(&host, &mut snapshot.graph)?;
    host.set_unwanted(set.unwanted(&snapshot.graph));
    let engine = Engine::new(registry(&host));
    let item = &args.item;
    // What is on the host now is part of the explanation; an item that can't be read is explained by what is remembered.
    let of_declared = set::requirements(set.intended(), [item]);
    let only = Selection::items(of_declared.into_iter().chain(set::requirements(&snapshot.graph, [item])));
    let mut refreshed = runtime()?.block_on(engine.refresh(&mut snapshot.graph, &only));
    set.adjust_read(&mut snapshot.graph, &mut refreshed)?;
    let mut explanation = engine
        .explain(&snapshot.graph, set.intended(), item, Timestamp::now())
        .ok_or_else(|| set::no_such_item(item, set.intended(), &snapshot.graph))?;
    let is_watched = set.state.holder().is_some_and(|holder| holder.is_command("watch"));
    if !is_watched {
        explanation = explanation.retried_by("setpoint apply", "setpoint destroy");
    }
    let (current, intended, all) = (&snapshot.graph, Some(Cow::Borrowed(set.intended())), Selection::all());
    let readable = unreadable::leave(&engine, current, intended, all, &unreadable::errors(&refreshed))?;
    leave_unreadable(&mut explanation, &readable);
    let now = Timestamp::now();
    let plan = engine.plan(Some(current), readable.intended.as_deref(), &readable.selection, now)?;
    let refused = preview::refuse(&plan, &host, &set.manifest, current, readable.intended.as_deref());
    if let Err(error) = refused {
        leave_refused(&mut explanation, &error);
    }
    let declared = set.manifest.declared(item);
    let declared_in = declared.map(|declared| format!("{}:{}", declared.file.display(), declared.line));
    let adopted = is_adopted(&snapshot.graph, item);
    let protected = protect::is_protected(&set.manifest, current, item);
    let mut text = explanation.to_string();
    let unreadable = refreshed.unreadable.iter().find(|(unreadable, _)| unreadable == item);
    let unreadable = unreadable.map(|(_, why)| why.to_string());
    if unreadable.is_some() {
        // What is remembered may not be true any more.
        text = format!("{item} can't be read; when it could be read last: {text}");
    }
    let pid =
        current.state(item).and_then(Started::of).filter(Started::is_running).map(|process| process.pid());
    let last_change = last_change(&set, item)?;
    let (mut needs, needed_by) =
        (needs(current, set.intended(), item), needed_by(current, set.intended(), item));
    for needed in &mut needs {
        if refreshed.unreadable.iter().any(|(unreadable, _)| unreadable.to_string() == needed.item) {
            (needed.condition, needed.verb) = (Some("unreadable".to_owned()), "is");
        }
    }
    if args.json {
        let (kind, name) = (item.kind().to_string(), item.name().to_string());
        print_json(&Explained {
            kind,
            name,
            declared_in,
            adopted,
            protected,
            unreadable,
            explanation,
            pid,
            needs,
            needed_by,
            last_change,
        })?;
        return Ok(0);
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let implicit = set.intended().item(item).and_then(|item| item.get::<Directory>());
    let implicit = implicit.is_some_and(|directory| directory.implicit);
    let _ = match declared_in {
        Some(location) => writeln!(text, "  it is declared in {location}"),
        None if implicit => {
            writeln!(text, "  it is not declared, and is there for what is declared inside of it")
        }
        None => writeln!(text, "  it is not declared"),
    };
    if adopted {
        let put_back = preview::put_back(&host, current, item).is_some();
        let then = if put_back { "what it was then is put back" } else { "stays" };
        let _ = writeln!(text, "  it was there before Setpoint, and {then} when it is not declared any more");
    }
    if protected {
        text.push_str("  it is protected by `prevent_destroy`: a plan that deletes it is refused\n");
    }
    if let Some(pid) = pid {
        let _ = writeln!(text, "  it runs as process {pid}");
    }
    for Needed { item, reason, condition, verb } in &needs {
        let how = condition.as_deref().unwrap_or("unknown");
        let _ = writeln!(text, "  needs {item}, which {verb} {how}: {reason}");
    }
    if !needed_by.is_empty() {
        let _ = writeln!(text, "  is needed by {}", needed_by.join(", "));
    }
    if let Some(LastChange { run, command, operation, adopted, at, reason, error }) = &last_change {
        let what = match (error, operation) {
            (Some(_), Operation::Create) => "its creation failed in",
            (Some(_), Operation::Modify) => "its modification failed in",
            (Some(_), Operation::Delete) => "its deletion failed in",
            (None, Operation::Create) if *adopted => "it was adopted by",
            (None, Operation::Delete) if *adopted => "it was released by",
            (None, Operation::Create) => "it was created by",
            (None, Operation::Modify) => "it was modified by",
            (None, Operation::Delete) => "it was deleted by",
        };
        let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        let _ = writeln!(text, "  last, {what} run {run} ({command}) at {at:.0}{reason}");
    }
    print(&text)?;
    Ok(0)
}

/// Says of what can't be read, and of what is left for that reason, that no run does anything to it.
fn leave_unreadable(explanation: &mut Explanation, readable: &Readable<'_>) {
    let Selection::Items(readable_items) = &readable.selection else { return };
    for cause in explanation.causes.iter_mut().filter(|cause| !readable_items.contains(&cause.item)) {
        let item = cause.item.to_string();
        cause.next = None;
        for unreadable in &readable.unreadable {
            let Unreadable { kind, name, error, leaves } = unreadable;
            if format!("{kind}/{name}") == item {
                cause.left_because.push(format!("it can't be read, and is left as it is: {error}"));
            } else if leaves.contains(&item) {
                cause
                    .left_because
                    .push(format!("it is left as it is, as {kind}/{name} can't be read: {error}"));
            }
        }
    }
}

/// Says that nothing is done, where something should be, as the plan as a whole is refused.
fn leave_refused(explanation: &mut Explanation, why: &CliError) {
    let causes = &mut explanation.causes;
    let steps = causes.iter_mut().filter_map(|cause| cause.next.take()).count();
    if steps > 0
        && let Some(cause) = causes.first_mut()
    {
        let hint = why.hint().map_or_else(String::new, |hint| format!("; {hint}"));
        cause.left_because.push(format!("the next run is refused as a whole: {why}{hint}"));
    }
}

/// What an item needs, as it is declared, or else as it is.
fn needs(current: &CurrentGraph, intended: &Graph, item: &ItemRef) -> Vec<Needed> {
    let Some(value) = intended.item(item).or_else(|| current.item(item)) else { return Vec::new() };
    let target_path = |target| intended.item(target).or_else(|| current.item(target)).and_then(path_of);
    let how = |target| condition(current, intended, target).map(|condition| condition.kind);
    let needed = value.dependencies().iter().flat_map(|dependency| {
        dependency.targets().iter().map(|target| Needed {
            item: target.to_string(),
            reason: reason(value, dependency.description(), target_path(target)).to_owned(),
            condition: how(target).map(|kind| kind.to_string()),
            verb: how(target).map_or("is", ConditionKind::verb),
        })
    });
    needed.collect()
}

/// Why an item needs another: what is inside of a directory is a process's log, and not the process.
fn reason<'a>(item: &ItemHandle, why: &'a str, needed: Option<&RootPath>) -> &'a str {
    let cwd = match (item.get::<Process>(), item.get::<Command>()) {
        (Some(process), _) => process.cwd.as_ref(),
        (_, Some(command)) => command.cwd.as_ref(),
        _ => return why,
    };
    match why == Because::Inside.words() {
        true if cwd.is_some() && cwd == needed => "it runs in it",
        true => "its log is inside of it",
        false => why,
    }
}

/// What needs an item.
fn needed_by(current: &CurrentGraph, intended: &Graph, item: &ItemRef) -> Vec<String> {
    let needs_it =
        |value: &ItemHandle| value.dependencies().iter().any(|needed| needed.targets().contains(item));
    let declared =
        intended.items().filter(|node| needs_it(node.item())).map(|node| node.reference().to_string());
    let there = current.items().filter(|node| needs_it(node.item())).map(|node| node.reference().to_string());
    declared.chain(there).collect::<BTreeSet<String>>().into_iter().collect()
}

/// What was done to an item last.
fn last_change(set: &Set, item: &ItemRef) -> Result<Option<LastChange>, CliError> {
    let runs = set.state.runs(RUNS)?.value;
    Ok(runs.iter().find_map(|run| {
        let mut of_it = run
            .entries
            .iter()
            .rev()
            .filter(|entry| entry.kind == item.kind().as_str() && entry.name == item.name().as_str());
        let entry = of_it.next()?;
        Some(LastChange {
            run: run.number,
            command: run.command.clone(),
            operation: entry.operation,
            adopted: entry.adopted,
            at: entry.ended.unwrap_or(entry.started),
            reason: entry.reason.clone(),
            error: entry.error.clone(),
        })
    }))
}
