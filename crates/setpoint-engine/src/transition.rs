//! How the current graph changes when an operation begins and when it ends.
//!
//! These are the only places where the engine writes item state, so that a run, a background completion and
//! the replay of a journal all leave the same graph.

use jiff::Timestamp;
use setpoint_graph::{Dependency, Edge, ItemHandle, SlotId, SubgraphPath};

use crate::background::Background;
use crate::op::{Damage, OpError, Operation};
use crate::retry::RetryPolicy;
use crate::state::{CurrentGraph, Flight, ItemState, Live, Presence, Trouble};

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
        state.trouble = earlier.trouble.take();
        state.drift = earlier.drift.take();
        state.since = earlier.since;
        state.again = earlier.again;
        state.protected = earlier.protected;
        // What was there before us once is not taken for ours later; what was noted of an earlier one is of no use.
        state.memory = std::mem::take(&mut earlier.memory);
        state.memory.forget_note();
    }
    state.flight = Some(Box::new(flight(Operation::Create, Some(item.clone()), now)));
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
        let unfinished = state.flight.replace(Box::new(flight(operation, target, now)));
        match unfinished.map(|flight| flight.operation) {
            None => {}
            // Nobody knows how it ended: the worst is assumed.
            Some(Operation::Modify) => state.tainted = true,
            Some(Operation::Create | Operation::Delete) => state.presence = Presence::Partial,
        }
    }
    current.touch_at(slot);
}

fn flight(operation: Operation, target: Option<ItemHandle>, started: Timestamp) -> Flight {
    Flight { operation, started, target, live: Live::default() }
}

/// Hands the item's operation over to the background.
pub(crate) fn go_on_in_background(
    current: &mut CurrentGraph,
    slot: SlotId,
    background: std::sync::Arc<Background>,
) {
    if let Some(flight) = current.state_at_mut(slot).and_then(|state| state.flight.as_mut()) {
        flight.live = Live(Some(background));
    }
}

/// Takes back the mark of an operation that was not started after all.
pub(crate) fn withdraw(current: &mut CurrentGraph, slot: SlotId) {
    let Some(state) = current.state_at_mut(slot) else { return };
    let flight = state.flight.take();
    let only_marked = state.presence == Presence::Absent && state.trouble.is_none() && state.drift.is_none();
    if only_marked && flight.is_some_and(|flight| flight.operation == Operation::Create) {
        current.del_item_at(slot);
    }
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
    let Some(flight) = state.flight.take() else { return };
    let Flight { operation, target, .. } = *flight;
    state.last_operation = Some(operation);
    match (outcome, operation) {
        // The first half of making it anew: that the second is missing is not forgotten, nor how often it failed.
        (Ok(()), Operation::Delete) if target.is_some() => {
            state.presence = Presence::Absent;
            state.tainted = false;
            state.again = true;
            state.trouble = state.trouble.take().filter(|trouble| trouble.operation == Operation::Create);
        }
        (Ok(()), Operation::Delete) => {
            current.del_item_at(slot);
        }
        (Ok(()), Operation::Create | Operation::Modify) => {
            state.presence = Presence::Present;
            state.tainted = false;
            state.again = false;
            state.trouble = None;
            state.since = now;
            state.memory.trim();
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
                (Operation::Modify, Damage::Partial) => state.tainted = true,
                (Operation::Modify | Operation::Delete, Damage::Untouched) => {}
            }
            let attempts = match &state.trouble {
                // Another intent, or another operation, starts counting anew.
                Some(earlier) if earlier.operation == operation && earlier.target == target => {
                    earlier.attempts.saturating_add(1)
                }
                _ => 1,
            };
            if attempts == 1 {
                state.since = now;
            }
            let (due, error) = (retry.due(attempts, now), error.clone());
            state.trouble = Some(Box::new(Trouble { operation, error, attempts, at: now, due, target }));
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
            state.again = true;
            current.touch_at(dependent);
            if let Some(item) = current.reference_at(dependent).cloned() {
                current.shared_mut().open.insert(item);
            }
        }
    }
}
