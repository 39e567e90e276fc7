//! What the history keeps of a run beside what was done: why, what was different, and what something else had changed.

use setpoint_engine::{CurrentGraph, Operation};
use setpoint_graph::{Graph, ItemRef};
use setpoint_plan::{Action, Plan};
use setpoint_state::{OperationDetails, RunDetails, RunDrift};

use super::changes::{ChangedAttribute, more_lines};
use super::preview::{DriftView, TheirChanges};

/// How much of it is kept: the history has many runs.
const MOST_ITEMS: usize = 1000;
const MOST_LINES: usize = 40;
const LONGEST_LINE: usize = 200;

/// Returns the details of a plan that is about to be carried out.
pub(crate) fn run_details(
    plan: &Plan,
    drift: &[DriftView],
    theirs: &TheirChanges,
    current: &CurrentGraph,
    intended: Option<&Graph>,
) -> RunDetails {
    let operations = plan.operations.iter().take(MOST_ITEMS).filter_map(|planned| {
        let item = ItemRef::new(planned.kind.as_str(), planned.name.as_str());
        let operation = match planned.action {
            Action::Create => Operation::Create,
            Action::Modify => Operation::Modify,
            Action::Delete => Operation::Delete,
            Action::Recreate => return None,
        };
        let new = intended.and_then(|graph| graph.item(&item));
        let action = if planned.temporary { Action::Recreate } else { planned.action };
        let changes = theirs.of(action, &item, current.item(&item), new);
        Some(OperationDetails { operation, item, reason: planned.reason.clone(), changes: lines(&changes) })
    });
    let drift = drift.iter().take(MOST_ITEMS).map(|drift| RunDrift {
        kind: drift.kind.clone(),
        name: drift.name.clone(),
        gone: drift.gone,
        changes: lines(&drift.changes),
    });
    RunDetails { operations: operations.collect(), drift: drift.collect() }
}

/// The lines that people read, as far as they are kept.
fn lines(changes: &[ChangedAttribute]) -> Vec<String> {
    let all: Vec<String> = changes.iter().flat_map(ChangedAttribute::lines).collect();
    let mut kept: Vec<String> = all.iter().take(MOST_LINES).map(|line| cut(line)).collect();
    if all.len() > MOST_LINES {
        kept.push(more_lines(all.len() - MOST_LINES));
    }
    kept
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}
