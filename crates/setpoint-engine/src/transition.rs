//! How the current graph changes when an operation begins and when it ends.
//!
//! A run, a background completion and the replay of a journal all go through these functions, and so leave the same graph. What is
//! found on the managed system is recorded by `refresh.rs`.

use jiff::Timestamp;
use setpoint_graph::{Dependency, Edge, ItemHandle, SlotId, SubgraphPath};

use crate::background::Background;
use crate::op::{Damage, OpError, Operation};
use crate::retry::RetryPolicy;
use crate::state::{CurrentGraph, ItemState, LastFailure, Live, Presence, Reapply, UnfinishedOperation};

/// Marks the item as being created, and returns its slot. `link` gives slots of what it depends on, by edge,
/// where those are known.
pub(crate) fn begin_create(
    current: &mut CurrentGraph,
    item: &ItemHandle,
    path: &SubgraphPath,
    link: impl Fn(usize) -> Option<SlotId>,
    now: Timestamp,
) -> Option<SlotId> {
    // A record of an earlier failure may live elsewhere.
    let may_live_elsewhere = current.has_subgraphs() || !path.is_root();
    if may_live_elsewhere && current.path_of(item.reference()).is_some_and(|lives| lives != *path) {
        current.move_item(item.reference(), path).ok()?;
    }
    let before = current.revision();
    let slot = if path.is_root() {
        current.put_item_linked(item, link).ok()?
    } else {
        current.put_item_into(path, item.clone()).ok()?
    };
    let mut state = ItemState::present(now);
    state.presence = Presence::Absent;
    // What went wrong before is not forgotten until it went well.
    if let Some(earlier) = current.state_at_mut(slot) {
        state.last_failure = earlier.last_failure.take();
        state.drift = earlier.drift.take();
        state.since = earlier.since;
        state.reapply = earlier.reapply;
        state.protected = earlier.protected;
        // What was there before us once is not taken for ours later. What was noted of an earlier one is of no use, but for what
        // the first half of making it anew tells the second, and of what was there before.
        let is_of_use = earlier.reapply == Reapply::RecreationInterrupted || earlier.awaits_release();
        state.metadata = std::mem::take(&mut earlier.metadata);
        if !is_of_use {
            state.metadata.forget_note();
        }
    }
    state.unfinished = Some(Box::new(unfinished(Operation::Create, Some(item.clone()), now)));
    current.set_state_at(slot, state);
    if current.revision() == before {
        // Journalled all the same, so that a run that is dropped here is noticed by the next.
        current.touch_at(slot);
    }
    Some(slot)
}

/// Marks the item in a slot as being modified or deleted.
pub(crate) fn begin_change(
    current: &mut CurrentGraph,
    slot: SlotId,
    operation: Operation,
    target: Option<ItemHandle>,
    now: Timestamp,
) {
    if current.state_at(slot).is_none() {
        current.set_state_at(slot, ItemState::present(now));
    }
    if let Some(state) = current.state_at_mut(slot) {
        let unfinished = state.unfinished.replace(Box::new(unfinished(operation, target, now)));
        match unfinished.map(|unfinished| unfinished.operation) {
            None => {}
            // Nobody knows how it ended: the worst is assumed.
            Some(Operation::Modify) => state.presence = Presence::Tainted,
            Some(Operation::Create | Operation::Delete) => state.presence = Presence::Partial,
        }
    }
    current.touch_at(slot);
}

fn unfinished(operation: Operation, target: Option<ItemHandle>, started: Timestamp) -> UnfinishedOperation {
    UnfinishedOperation { operation, started, target, live: Live::default() }
}

/// Hands the item's operation over to the background.
pub(crate) fn go_on_in_background(
    current: &mut CurrentGraph,
    slot: SlotId,
    background: std::sync::Arc<Background>,
) {
    if let Some(unfinished) = current.state_at_mut(slot).and_then(|state| state.unfinished.as_mut()) {
        unfinished.live = Live(Some(background));
    }
}

/// Takes back the mark of an operation that was not started after all.
pub(crate) fn withdraw(current: &mut CurrentGraph, slot: SlotId) {
    let Some(state) = current.state_at_mut(slot) else { return };
    let unfinished = state.unfinished.take();
    let only_marked =
        state.presence == Presence::Absent && state.last_failure.is_none() && state.drift.is_none();
    if only_marked && unfinished.is_some_and(|unfinished| unfinished.operation == Operation::Create) {
        current.del_item_at(slot);
    }
}

/// Records that the item in a slot is not there, whatever its operation came to. Returns whether it is still remembered: it is to
/// be made anew, or something was there before it.
pub(crate) fn is_absent(current: &mut CurrentGraph, slot: SlotId, now: Timestamp) -> bool {
    let remembers = current.state_at_mut(slot).is_some_and(|state| {
        let unfinished = state.unfinished.take();
        let deletion = unfinished.filter(|one| one.operation == Operation::Delete);
        let returns = deletion.as_ref().is_some_and(|one| one.target.is_some());
        // One that was there is released, or somebody's by now; of one that was gone nobody knows.
        let is_released = deletion.is_some() && state.presence != Presence::Absent;
        if returns {
            state.reapply = Reapply::RecreationInterrupted;
        }
        (state.presence, state.since) = (Presence::Absent, now);
        if deletion.is_some() && !returns {
            return state.ownership().is_adopted() && !is_released;
        }
        state.reapply.is_needed() || state.ownership().is_adopted()
    });
    if !remembers {
        current.del_item_at(slot);
    }
    remembers
}

/// Records the end of the operation on the item in a slot.
pub(crate) fn end(
    current: &mut CurrentGraph,
    slot: SlotId,
    outcome: Result<(), &OpError>,
    retry: RetryPolicy,
    now: Timestamp,
) {
    let Some(state) = current.state_at_mut(slot) else { return };
    let Some(unfinished) = state.unfinished.take() else { return };
    let UnfinishedOperation { operation, started, target, .. } = *unfinished;
    state.last_operation = Some(operation);
    match (outcome, operation) {
        // The first half of making it anew: that the second is missing is not forgotten, nor how often it failed.
        (Ok(()), Operation::Delete) if target.is_some() => {
            state.presence = Presence::Absent;
            state.reapply = Reapply::RecreationInterrupted;
            state.last_failure =
                state.last_failure.take().filter(|failure| failure.operation == Operation::Create);
        }
        (Ok(()), Operation::Delete) => {
            current.del_item_at(slot);
        }
        (Ok(()), Operation::Create | Operation::Modify) => {
            state.presence = Presence::Present;
            state.reapply = Reapply::NotNeeded;
            state.last_failure = None;
            state.since = now;
            state.metadata.trim();
            if let Some(drift) = &mut state.drift {
                drift.repaired = true;
            }
            if let (Operation::Modify, Some(target)) = (operation, target) {
                let path = current.path_at(slot);
                // The same reference in the same place: such a put is never refused.
                let put = if path.is_root() {
                    current.put_item(target)
                } else {
                    current.put_item_into(&path, target)
                };
                debug_assert!(put.is_ok());
            }
            repeat_dependents(current, slot, now);
        }
        (Err(error), _) => {
            match (operation, error.damage()) {
                (Operation::Create, Damage::Untouched) => state.presence = Presence::Absent,
                (Operation::Create | Operation::Delete, Damage::Partial) => {
                    state.presence = Presence::Partial;
                }
                (Operation::Modify, Damage::Partial) => state.presence = Presence::Tainted,
                (Operation::Modify | Operation::Delete, Damage::Untouched) => {}
                // As after a crash.
                (_, Damage::Unknown) => {
                    let target = target.clone();
                    let unfinished =
                        UnfinishedOperation { operation, started, target, live: Live::default() };
                    state.unfinished = Some(Box::new(unfinished));
                }
            }
            let attempts = match &state.last_failure {
                // Another intent, or another operation, starts counting anew. Of one that was read from disk nobody knows the intent.
                Some(earlier)
                    if earlier.operation == operation
                        && (earlier.target.is_none() || earlier.target == target) =>
                {
                    earlier.attempts.saturating_add(1)
                }
                _ => 1,
            };
            if attempts == 1 {
                state.since = now;
            }
            let (due, error) = (retry.due(attempts, now), error.clone());
            state.last_failure =
                Some(Box::new(LastFailure { operation, error, attempts, at: now, due, target }));
        }
    }
}

/// Remembers what must be applied again now that the item in a slot was changed, or made anew.
pub(crate) fn repeat_dependents(current: &mut CurrentGraph, slot: SlotId, now: Timestamp) {
    let repeats = |edge: &Edge| {
        !current.is_plain_at(edge.slot)
            && current.dependency_at(edge.slot, edge.position).is_some_and(Dependency::repeats_when_changed)
    };
    let dependents: Vec<SlotId> =
        current.incoming_at(slot).iter().filter(|edge| repeats(edge)).map(|edge| edge.slot).collect();
    for dependent in dependents {
        if current.state_at(dependent).is_none() {
            current.set_state_at(dependent, ItemState::present(now));
        }
        if let Some(state) = current.state_at_mut(dependent)
            && state.presence != Presence::Absent
        {
            if !state.reapply.is_needed() {
                state.reapply = Reapply::AnotherItemChanged;
            }
            current.touch_at(dependent);
            if let Some(item) = current.reference_at(dependent).cloned() {
                current.shared_mut().open.insert(item);
            }
        }
    }
}
