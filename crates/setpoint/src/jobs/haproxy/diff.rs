//! `setpoint haproxy diff`: what leads from one configuration to another.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use setpoint_haproxy::compare::{CompareError, Diff, Operation, compare};
use setpoint_haproxy::model::Context;
use setpoint_haproxy::text::{Document, Severity};
use setpoint_plan::{Action, Plan, Runtime};

use super::args::HaproxyDiffArgs;
use super::error::Error;
use super::{name, read, read_once};
use crate::error::CliError;
use crate::report::{Report, print, print_json};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default();

/// What `--detailed-exitcode` says of configurations that differ.
const CHANGES: u8 = 2;

pub(crate) fn run(args: &HaproxyDiffArgs, report: Report) -> Result<u8, CliError> {
    read_once([&args.current, &args.desired])?;
    let (current, desired) = (read(&args.current, report)?, read(&args.desired, report)?);
    let cx = Context { env: args.env.variables(), ..Context::new(args.version) };
    let subject = name(&args.desired);
    let diff = compare(&current, &desired, &cx).map_err(|error| unlike(error, &subject, &desired))?;
    if args.json {
        let (at_runtime, with_reload) = counts(&diff);
        print_json(&Shown { plan: diff.plan(subject), at_runtime, with_reload })?;
    } else {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = write(&mut text, &subject, &diff);
        print(&text)?;
    }
    Ok(if args.detailed_exitcode && !diff.is_empty() { CHANGES } else { 0 })
}

/// A plan, and how much of it needs a reload.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    plan: Plan,
    at_runtime: usize,
    with_reload: usize,
}

/// How many operations can be done at runtime, and how many come with a reload.
fn counts(diff: &Diff) -> (usize, usize) {
    let runtime = diff.operations().iter().filter(|operation| operation.runtime.is_possible()).count();
    (runtime, diff.operations().len() - runtime)
}

/// Why two configurations can't be compared: one without sections has an error, if its first line was to open one.
fn unlike(error: CompareError, subject: &str, desired: &Document) -> CliError {
    let wrong = desired.diagnostics().into_iter().find(|found| found.severity == Severity::Error);
    match (error, wrong) {
        (CompareError::EmptyDesired, Some(first)) => {
            Error::NoSection { file: subject.to_owned(), first: first.to_string() }.into()
        }
        (error, _) => error.into(),
    }
}

/// Writes the operations of a difference, each with its verdict.
pub(super) fn write(out: &mut String, subject: &str, diff: &Diff) -> std::fmt::Result {
    if diff.is_empty() {
        return writeln!(out, "{subject}: nothing to do.");
    }
    writeln!(out, "{BOLD}Plan{BOLD:#} for {subject}:")?;
    for operation in diff.operations() {
        write_operation(out, operation)?;
    }
    let (runtime, reload) = counts(diff);
    let verdict = match reload {
        0 => "all of it at runtime, without a reload".to_owned(),
        rest if runtime == 0 => {
            format!("{} with a reload", if rest == 1 { "it comes" } else { "all of it comes" })
        }
        rest => format!("{runtime} could be done at runtime, {rest} with a reload"),
    };
    writeln!(out, "\n{subject}: {}; {verdict}.", diff.plan(subject).summary())
}

fn write_operation(out: &mut String, operation: &Operation) -> std::fmt::Result {
    let style = match operation.action {
        Action::Create => GREEN,
        Action::Delete => RED,
        Action::Modify | Action::Recreate => YELLOW,
    };
    let line = operation.to_string();
    let what = line.get(operation.action.sign().len_utf8()..).unwrap_or_default();
    let verdict = match &operation.runtime {
        Runtime::Yes => "at runtime".to_owned(),
        Runtime::No { why } => format!("reload: {why}"),
    };
    writeln!(out, "  {style}{}{style:#}{what}  {DIM}{verdict}{DIM:#}", operation.action.sign())?;
    // What a new thing is made of is in its text; what changes is shown.
    for change in operation.changes.iter().filter(|_| operation.action == Action::Modify) {
        if operation.is_text() {
            for (sign, style, line) in [('-', RED, &change.old), ('+', GREEN, &change.new)] {
                if let Some(line) = line {
                    writeln!(out, "      {style}{sign} {line}{style:#}")?;
                }
            }
        } else {
            writeln!(out, "      {change}")?;
        }
    }
    Ok(())
}
