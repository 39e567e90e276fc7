//! What the current graph remembers of its runs, brought up to date.

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use setpoint_graph::{Graph, ItemRef, SlotId, Touched};
use setpoint_plan::Standing;

use super::ExecutedPlan;
use crate::execute::StepOutcome;
use crate::plan::{NONE, Outcome, StepKind};
use crate::state::{CurrentGraph, Waiting};
use crate::status::{Failure, RunningOperation};

/// What a pass came to.
pub(super) struct PassResult {
    /// All steps were done.
    pub(super) finished: bool,
    /// Something that was claimed may have become free.
    pub(super) released: bool,
}

/// Updates what the current graph remembers.
pub(super) fn update_planning_state(
    current: &mut CurrentGraph,
    intended: &Graph,
    pass: &ExecutedPlan,
    outcomes: &[StepOutcome],
    now: Timestamp,
) -> PassResult {
    let plan = &pass.blueprint;
    let mut planning = std::mem::take(current.shared_mut());
    let mut result = PassResult { finished: true, released: false };
    let quiet = planning.dirty.is_empty() && planning.waiting.is_empty() && planning.open.is_empty();
    let name = |id: u32| -> Option<&ItemRef> {
        let subject = &plan.subjects[id as usize];
        match subject.int() {
            Some(slot) => intended.reference_at(slot),
            None => None,
        }
    };
    if !quiet {
        for &id in &pass.active {
            let subject = &plan.subjects[id as usize];
            let item = name(id).or_else(|| current.reference_at(subject.cur.slot()?));
            if let Some(item) = item {
                let item = item.clone();
                planning.dirty.remove(&item);
                if subject.is_present() || !subject.is_intended() || subject.is_satisfied() {
                    planning.waiting.remove(&item);
                }
            }
        }
        planning.open.retain(|item| current.state(item).is_some_and(crate::ItemState::is_open));
        planning.waiting.retain(|item, _| intended.contains(item));
        planning.dirty.retain(|item| intended.contains(item) || current.contains(item));
    }
    // What waits for something that failed is looked at in each run: nothing says when that succeeds.
    for &id in &pass.active {
        let subject = &plan.subjects[id as usize];
        if subject.is_left_for_failed()
            && let Some(item) = name(id).or_else(|| current.reference_at(subject.cur.slot()?))
        {
            planning.dirty.insert(item.clone());
        }
    }
    for (step, outcome) in plan.schedule.steps.iter().zip(outcomes) {
        if *outcome == StepOutcome::Done {
            continue;
        }
        result.finished = false;
        let subject = &plan.subjects[step.subject as usize];
        let cur = subject.cur.slot();
        let Some(item) = name(step.subject).or_else(|| current.reference_at(cur?)).cloned() else { continue };
        // An item that was to change its support may have lost the old one: it is looked at again.
        if step.kind == StepKind::Gate {
            continue;
        }
        if current.state(&item).is_some_and(crate::ItemState::is_open) {
            planning.open.insert(item.clone());
        }
        planning.dirty.insert(item);
    }
    for (item, standing) in &pass.left {
        if current.state(item).is_some_and(crate::ItemState::is_open) {
            planning.open.insert(item.clone());
        }
        match standing {
            None => {
                planning.dirty.insert(item.clone());
            }
            Some(standing) => {
                let standing = *standing;
                planning
                    .waiting
                    .entry(item.clone())
                    .and_modify(|waiting| waiting.standing = standing)
                    .or_insert(Waiting { since: now, standing });
            }
        }
    }
    // Intended items that were deleted, and not created again, wait from now on.
    for (step, outcome) in plan.schedule.steps.iter().zip(outcomes) {
        let subject = &plan.subjects[step.subject as usize];
        if step.kind == StepKind::Delete
            && subject.is_intended()
            && *outcome == StepOutcome::Done
            && subject.outcome == Outcome::Delete
            && let Some(item) = name(step.subject)
        {
            // Its intended value may have all it needs, or what it claims may have become free by this very
            // plan: it is looked at once more.
            planning.dirty.insert(item.clone());
            result.released |= subject.in_scope && (subject.claimed_by != NONE || subject.not_due);
            let standing = Standing::Pending;
            planning.waiting.entry(item.clone()).or_insert(Waiting { since: now, standing });
        }
    }
    // Whoever was kept from a claim by an item that this plan deletes looks again as well.
    result.released |= pass.active.iter().map(|&id| &plan.subjects[id as usize]).any(|subject| {
        let holder = plan.subjects.get(subject.claimed_by as usize);
        subject.outcome == Outcome::Keep
            && holder.is_some_and(|holder| holder.outcome == Outcome::Delete && holder.remains())
    });
    *current.shared_mut() = planning;
    result
}

/// Finds all items that each run must look at: those touched since the last run, which may have been dropped
/// half-way, or all of a graph that was loaded or copied.
pub(crate) fn update_index(current: &mut CurrentGraph) {
    let seen = current.shared().own.filter(|(id, _)| *id == current.id()).map(|(_, revision)| revision);
    let touched = seen.and_then(|seen| current.touched_since(seen)).map(|touched| {
        let slots = touched.filter_map(|touched| match touched {
            Touched::Slot(slot) => Some(*slot),
            Touched::Gone(_) => None,
        });
        slots.collect::<Vec<SlotId>>()
    });
    let (slots, mut open) = match touched {
        Some(slots) => (slots, std::mem::take(&mut current.shared_mut().open)),
        None => (current.slots().collect(), FxHashSet::default()),
    };
    let is_open = |slot: &SlotId| current.state_at(*slot).is_some_and(crate::ItemState::is_open);
    open.extend(
        slots.iter().filter(|slot| is_open(slot)).filter_map(|&slot| current.reference_at(slot).cloned()),
    );
    current.shared_mut().open = open;
}

fn busy_items(current: &CurrentGraph) -> Vec<ItemRef> {
    let open = current.shared().open.iter();
    let mut busy: Vec<ItemRef> = open
        .filter(|item| current.state(item).is_some_and(|state| state.live().is_some()))
        .cloned()
        .collect();
    busy.sort();
    busy
}

pub(super) fn running(current: &CurrentGraph) -> Vec<RunningOperation> {
    let running = |item: &ItemRef| {
        let background = current.state(item)?.live()?.clone();
        Some(RunningOperation { background, path: current.path_of(item).unwrap_or_default() })
    };
    busy_items(current).iter().filter_map(running).collect()
}

pub(super) fn failures(current: &CurrentGraph) -> Vec<Failure> {
    let open = current.shared().open.iter();
    let failed = open.filter_map(|item| {
        let failure = current.state(item)?.last_failure.as_ref()?;
        Some(Failure {
            item: item.clone(),
            operation: failure.operation,
            error: failure.error.clone(),
            attempts: failure.attempts,
            due: failure.due,
        })
    });
    let mut failures: Vec<Failure> = failed.collect();
    failures.sort_by(|a, b| a.item.cmp(&b.item));
    failures
}
