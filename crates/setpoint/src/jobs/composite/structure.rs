//! A structure as people read it: a tree, its issues, and how a ConfigMap differs from it.

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use setpoint_plan::{Action, AttributeChange, Plan, PlannedOperation};
use setpoint_structure::{Issue, Payload, Roles};

use crate::report::Report;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default();

/// An issue as data.
#[derive(Debug, Serialize)]
pub(super) struct IssueView {
    kind: &'static str,
    subject: String,
    message: String,
}

impl From<&Issue> for IssueView {
    fn from(issue: &Issue) -> Self {
        Self { kind: issue.kind.as_str(), subject: issue.subject.clone(), message: issue.message.clone() }
    }
}

/// Warns of what is wrong with a structure.
pub(super) fn warn(issues: &[Issue], report: Report) {
    for issue in issues {
        report.warn(&issue.to_string());
    }
}

/// Writes a structure as a tree.
pub(super) fn write_tree(out: &mut String, payload: &Payload) -> fmt::Result {
    let composite = &payload.composite;
    let groups: Vec<_> = composite
        .baseline
        .iter()
        .map(|roles| ("baseline", roles))
        .chain(composite.satellites.iter().map(|roles| ("satellite", roles)))
        .collect();
    if groups.is_empty() {
        return writeln!(out, "└── {DIM}nothing{DIM:#}");
    }
    let last = groups.len() - 1;
    for (number, (name, roles)) in groups.into_iter().enumerate() {
        let (branch, below) = if number == last { ("└──", "    ") } else { ("├──", "│   ") };
        writeln!(out, "{branch} {name}")?;
        write_roles(out, below, roles)?;
    }
    Ok(())
}

fn write_roles(out: &mut String, indent: &str, roles: &Roles) -> fmt::Result {
    let named: Vec<_> = roles.named().collect();
    let last = named.len().saturating_sub(1);
    for (number, (role, name)) in named.into_iter().enumerate() {
        let branch = if number == last { "└──" } else { "├──" };
        writeln!(out, "{indent}{branch} {role}: {BOLD}{name}{BOLD:#}")?;
    }
    Ok(())
}

/// Writes a plan.
pub(super) fn write_plan(out: &mut String, plan: &Plan) -> fmt::Result {
    if !plan.is_empty() {
        writeln!(out, "{BOLD}Plan{BOLD:#} for {}:", plan.subject)?;
        for operation in &plan.operations {
            let style = match operation.action {
                Action::Create => GREEN,
                Action::Delete => RED,
                Action::Modify | Action::Recreate => YELLOW,
            };
            let (sign, reason) = (operation.action.sign(), &operation.reason);
            writeln!(
                out,
                "  {style}{sign}{style:#} {}/{}  {DIM}{reason}{DIM:#}",
                operation.kind, operation.name
            )?;
            write_detail(out, operation)?;
        }
        writeln!(out)?;
    }
    if !plan.left.is_empty() {
        writeln!(out, "{BOLD}Left as they are{BOLD:#}:")?;
        for left in &plan.left {
            writeln!(out, "  {YELLOW}?{YELLOW:#} {}/{} is {}", left.kind, left.name, left.standing)?;
            for cause in &left.causes {
                writeln!(out, "      {DIM}{cause}{DIM:#}")?;
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "{}: {}.", plan.subject, plan.summary())
}

/// Writes what an operation changes; what is created or deleted as a whole needs no sign.
fn write_detail(out: &mut String, operation: &PlannedOperation) -> fmt::Result {
    if operation.action == Action::Modify {
        return write_changes(out, "      ", &operation.detail);
    }
    for AttributeChange { attribute, old, new } in &operation.detail {
        let value = new.as_ref().or(old.as_ref()).map_or("", String::as_str);
        writeln!(out, "      {attribute}: {value}")?;
    }
    Ok(())
}

/// Writes changes one a line, with a sign: what is not there yet, what is too much, what is something else.
pub(super) fn write_changes(out: &mut String, indent: &str, changes: &[AttributeChange]) -> fmt::Result {
    for AttributeChange { attribute, old, new } in changes {
        match (old, new) {
            (Some(old), Some(new)) => {
                writeln!(out, "{indent}{YELLOW}~{YELLOW:#} {attribute}: {old} → {new}")?;
            }
            (None, Some(new)) => writeln!(out, "{indent}{GREEN}+{GREEN:#} {attribute}: {new}")?,
            (Some(old), None) => writeln!(out, "{indent}{RED}-{RED:#} {attribute}: {old}")?,
            (None, None) => {}
        }
    }
    Ok(())
}
