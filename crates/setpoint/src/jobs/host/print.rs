//! A preview as people read it.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use setpoint_engine::CurrentGraph;
use setpoint_graph::{Graph, ItemRef};
use setpoint_plan::{Action, PlannedOperation, Standing};

use super::preview::{DriftView, Preview, TheirChanges};
use super::rename::Renamed;
use super::unreadable::Unreadable;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// The text of a preview; all that is needed beside it are the values to compare.
pub(crate) fn preview(preview: &Preview, current: &CurrentGraph, intended: Option<&Graph>) -> String {
    let mut text = String::new();
    write_preview(&mut text, preview, current, intended).unwrap_or_default();
    text
}

/// What something else changed, and nothing of what would be done about it.
pub(crate) fn drift(drift: &[DriftView]) -> String {
    let mut text = String::new();
    write_drifts(&mut text, drift).unwrap_or_default();
    text
}

fn write_drifts(text: &mut String, drift: &[DriftView]) -> std::fmt::Result {
    if drift.is_empty() {
        return Ok(());
    }
    writeln!(text, "{BOLD}Drift{BOLD:#}: something else changed these since the last run.")?;
    drift.iter().try_for_each(|drift| write_drift(text, drift))?;
    writeln!(text)
}

fn write_preview(
    text: &mut String,
    preview: &Preview,
    current: &CurrentGraph,
    intended: Option<&Graph>,
) -> std::fmt::Result {
    let Preview { drift, warnings, plan, unreadable, renamed, theirs } = preview;
    write_drifts(text, drift)?;
    if !unreadable.is_empty() {
        writeln!(text, "{BOLD}Can't be read{BOLD:#}, and left as they are with what needs them:")?;
        for Unreadable { kind, name, error, leaves } in unreadable {
            writeln!(text, "  {RED}!{RED:#} {kind}/{name}: {error}")?;
            for item in leaves {
                writeln!(text, "      {DIM}{item} needs it{DIM:#}")?;
            }
        }
        writeln!(text)?;
    }
    if !renamed.is_empty() {
        writeln!(text, "{BOLD}Renamed{BOLD:#}: these have other names now, and stay as they are.")?;
        for Renamed { from, to } in renamed {
            writeln!(text, "  {CYAN}={CYAN:#} {from} is {to}")?;
        }
        writeln!(text)?;
    }
    if !plan.operations.is_empty() {
        writeln!(text, "{BOLD}Plan{BOLD:#} for {}:", plan.subject)?;
        for operation in &plan.operations {
            write_operation(text, operation, theirs, current, intended)?;
        }
        writeln!(text)?;
    }
    if !plan.left.is_empty() {
        writeln!(text, "{BOLD}Left as they are{BOLD:#}:")?;
        for left in &plan.left {
            let how = match left.standing {
                Standing::Failed => "failed before".to_owned(),
                standing => format!("is {standing}"),
            };
            writeln!(text, "  {YELLOW}?{YELLOW:#} {}/{} {how}", left.kind, left.name)?;
            for cause in &left.causes {
                writeln!(text, "      {DIM}{cause}{DIM:#}")?;
            }
        }
        writeln!(text)?;
    }
    for warning in warnings {
        writeln!(text, "{YELLOW}warning{YELLOW:#}: {warning}")?;
    }
    if !warnings.is_empty() {
        writeln!(text)?;
    }
    writeln!(text, "{}: {}.", plan.subject, plan.summary())
}

fn write_drift(text: &mut String, drift: &DriftView) -> std::fmt::Result {
    let DriftView { kind, name, gone, contested, changes, .. } = drift;
    let (style, sign) = if *gone { (RED, '-') } else { (YELLOW, '~') };
    let what = match (*gone, *contested) {
        (true, false) => " is gone",
        (true, true) => " is gone, again and again",
        (false, false) => " is changed",
        (false, true) => " is changed, again and again",
    };
    writeln!(text, "  {style}{sign}{style:#} {kind}/{name}{what}")?;
    for line in changes.iter().flat_map(super::changes::ChangedAttribute::lines) {
        write_change(text, &line)?;
    }
    Ok(())
}

fn write_operation(
    text: &mut String,
    operation: &PlannedOperation,
    theirs: &TheirChanges,
    current: &CurrentGraph,
    intended: Option<&Graph>,
) -> std::fmt::Result {
    // An item that is made anew is shown once, where it is created.
    if operation.temporary && operation.action == Action::Delete {
        return Ok(());
    }
    let action = if operation.temporary { Action::Recreate } else { operation.action };
    let style = match action {
        Action::Create => GREEN,
        Action::Modify => YELLOW,
        Action::Delete => RED,
        Action::Recreate => CYAN,
    };
    let PlannedOperation { kind, name, reason, .. } = operation;
    writeln!(text, "  {style}{}{style:#} {kind}/{name}  {DIM}{reason}{DIM:#}", action.sign())?;
    let item = ItemRef::new(kind.as_str(), name.as_str());
    let new = intended.and_then(|graph| graph.item(&item));
    let changes = theirs.of(action, &item, current.item(&item), new);
    for line in changes.iter().flat_map(super::changes::ChangedAttribute::lines) {
        write_change(text, &line)?;
    }
    Ok(())
}

fn write_change(text: &mut String, line: &str) -> std::fmt::Result {
    let inner = line.trim_start();
    let style = match inner.chars().next() {
        Some('+') => GREEN,
        Some('-') => RED,
        Some('@') => CYAN,
        _ => Style::new(),
    };
    writeln!(text, "      {style}{line}{style:#}")
}

/// How many items, in words that fit the number.
pub(crate) fn counted(items: usize) -> String {
    if items == 1 { "1 item".to_owned() } else { format!("{items} items") }
}
