//! `setpoint haproxy diff`: what leads from one configuration to another.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use setpoint_haproxy::compare::{Diff, Operation, compare};
use setpoint_haproxy::model::Context;
use setpoint_plan::{Action, Runtime};

use super::args::HaproxyDiffArgs;
use super::{name, read};
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
    let (current, desired) = (read(&args.current, report)?, read(&args.desired, report)?);
    let cx = Context { env: args.env.variables(), ..Context::new(args.version) };
    let diff = compare(&current, &desired, &cx)?;
    let subject = name(&args.desired);
    if args.json {
        print_json(&diff.plan(subject))?;
    } else {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = write(&mut text, &subject, &diff);
        print(&text)?;
    }
    Ok(if args.detailed_exitcode && !diff.is_empty() { CHANGES } else { 0 })
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
    let runtime = diff.operations().iter().filter(|operation| operation.runtime.is_possible()).count();
    let verdict = match diff.operations().len() - runtime {
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
