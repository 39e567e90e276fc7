//! What a plan says besides its steps: moves, records to drop, cancellations, and what is left as it is.

use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use setpoint_graph::{Graph, ItemRef, SubgraphPath};
use setpoint_plan::Standing;

use crate::background::Background;
use crate::journal::Record;
use crate::plan::{Blueprint, NONE, Outcome, Planner, StepKind};
use crate::state::CurrentGraph;

/// What a plan says besides its steps, in terms that do not borrow the graphs.
pub(super) struct PlanEffects {
    moves: Vec<(ItemRef, SubgraphPath)>,
    forget: Vec<ItemRef>,
    cancel: Vec<Arc<Background>>,
    acknowledged: Vec<ItemRef>,
    overcome: Vec<ItemRef>,
    pub(super) left: Vec<(ItemRef, Option<Standing>)>,
    pub(super) active: Vec<u32>,
}

impl PlanEffects {
    pub(super) fn take(planner: &Planner<'_>) -> Self {
        let mut effects = Self {
            moves: Vec::new(),
            forget: Vec::new(),
            cancel: Vec::new(),
            acknowledged: Vec::new(),
            overcome: Vec::new(),
            left: Vec::new(),
            active: planner.active().to_vec(),
        };
        for &id in &effects.active {
            let this = planner.subject(id);
            let item = planner.reference(id);
            let state = this.cur().and_then(|slot| planner.cur.state_at(slot));
            if this.remains() && matches!(this.outcome, Outcome::Keep | Outcome::Modify) {
                effects.moves.extend(planner.moves_to(id).map(|path| (item.clone(), path)));
            }
            if state.is_some_and(|state| state.externally_modified) {
                effects.acknowledged.push(item.clone());
            }
            if this.outcome == Outcome::Keep
                && this.is_present()
                && this.takes_intent()
                && state.is_some_and(|s| s.last_failure.is_some())
                // What was asked for in this very run, and failed, is not overcome by nobody asking for it again.
                && !planner.inputs.failed.contains(item)
            {
                // It is as intended after all: the intent came back to it, or it was found so.
                effects.overcome.push(item.clone());
            }
            // Only the failure to create it is remembered, and it is not to be created now.
            let lasts = state.is_some_and(|state| state.reapply.is_needed() || state.awaits_release());
            let needless =
                !this.is_intended() && this.in_scope || this.is_candidate() && !this.is_satisfied();
            let needless =
                needless && this.outcome == Outcome::Keep && !this.remains() && !this.is_external();
            if this.is_known() && needless && lasts && this.is_intended() {
                // That it is to be made anew stays, and that something was there before it.
                effects.overcome.push(item.clone());
            } else if this.is_known() && (this.is_vanished() || needless) {
                effects.forget.push(item.clone());
            }
            if this.outcome != Outcome::Keep {
                continue;
            }
            // What has no step and is not as intended is looked at again: when it is woken, or each time.
            if !this.in_scope {
                let differs =
                    this.is_present() != this.is_intended() || planner.cur_item(id) != planner.int_item(id);
                let elsewhere = this.cur().zip(this.int());
                let elsewhere =
                    elsewhere.is_some_and(|(cur, int)| !planner.cur.same_place(cur, planner.int, int));
                if differs || elsewhere || this.is_lost() || this.remains() && !this.is_present() {
                    effects.left.push((item.clone(), None));
                }
            } else if this.invalid {
                // A change elsewhere can make it valid: it is looked at each time.
                effects.left.push((item.clone(), None));
                effects.left.push((item.clone(), Some(Standing::Invalid)));
            } else if this.claimed_by != NONE {
                effects.left.push((item.clone(), None));
                if !this.is_present() {
                    effects.left.push((item.clone(), Some(Standing::Pending)));
                }
            } else if this.is_external() {
                if this.is_intended() && !this.is_present() {
                    effects.left.push((item.clone(), Some(Standing::External)));
                }
            } else if this.is_busy() || this.not_due || this.is_lost() && this.is_satisfied() {
                // What is to hold it up from now on may never come.
                effects.left.push((item.clone(), None));
            } else if this.is_stuck() {
                effects.left.push((item.clone(), Some(Standing::Pending)));
            }
        }
        for &id in &planner.obsolete {
            let state = planner.subject(id).cur().and_then(|slot| planner.cur.state_at(slot));
            effects.cancel.extend(state.and_then(|state| state.live()).cloned());
        }
        effects
    }

    pub(super) fn apply(&self, current: &mut CurrentGraph, intended: &Graph, journals: bool, now: Timestamp) {
        for background in &self.cancel {
            background.cancel(now);
        }
        for item in &self.forget {
            if current.del_item(item).is_ok() {
                let planning = current.shared_mut();
                planning.open.remove(item);
                if journals {
                    planning.unwritten.push(Record::Gone { item: item.clone(), at: now });
                }
            }
        }
        let mut left = Vec::new();
        for (item, path) in &self.moves {
            left.extend(current.path_of(item));
            // The item is there and the subgraph is made: such a move is never refused.
            let moved = current.move_item(item, path);
            debug_assert!(moved.is_ok());
            if journals {
                let (item, path) = (item.clone(), path.clone());
                current.shared_mut().unwritten.push(Record::Moved { item, path, at: now });
            }
        }
        for item in &self.acknowledged {
            if let Some(slot) = current.node_of(item).map(|node| node.slot())
                && let Some(state) = current.state_at_mut(slot)
            {
                state.externally_modified = false;
            }
        }
        for item in &self.overcome {
            if let Some(slot) = current.node_of(item).map(|node| node.slot())
                && let Some(state) = current.state_at_mut(slot)
                && state.last_failure.take().is_some()
            {
                state.since = now;
            }
        }
        for path in left {
            prune(current, intended, path);
        }
    }
}

/// The paths of items that a plan deletes, if they do not live in the root.
pub(super) fn deletions(current: &CurrentGraph, blueprint: &Blueprint) -> FxHashSet<SubgraphPath> {
    let steps = blueprint.schedule.steps.iter().filter(|step| step.kind == StepKind::Delete);
    let slots = steps.filter_map(|step| blueprint.subjects[step.subject as usize].cur());
    slots.filter(|&slot| !current.is_at_root(slot)).map(|slot| current.path_at(slot)).collect()
}

/// Removes subgraphs that are empty and not intended, from the inside out.
pub(super) fn prune(current: &mut CurrentGraph, intended: &Graph, mut path: SubgraphPath) {
    while let Some(parent) = path.parent() {
        let unused = current
            .subgraph(&path)
            .is_some_and(|view| view.own_items().is_empty() && view.subgraphs().next().is_none());
        if !unused || intended.subgraph(&path).is_some() || current.del_subgraph(&path).is_err() {
            return;
        }
        path = parent;
    }
}
