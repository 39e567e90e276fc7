//! Protection from deletion: declared by `prevent_destroy`, and kept when the declaration is gone.

use setpoint_engine::{CurrentGraph, ItemState};
use setpoint_graph::ItemRef;
use setpoint_host::{Manifest, is_activity};
use setpoint_plan::{Action, Plan, PlannedOperation, ReasonCode};

use super::error::Error;
use crate::error::CliError;

/// What is to be remembered, and is not yet, of what may be deleted. A declaration that stands without `prevent_destroy` ends
/// the protection, one that is gone does not.
pub(crate) fn changes(manifest: &Manifest, current: &CurrentGraph) -> Vec<(ItemRef, bool)> {
    let is_protected = |item| current.state(item).is_some_and(ItemState::is_protected);
    let declared = manifest.all_declared().map(|(item, declared)| (item, declared.prevent_destroy));
    let changes = declared.filter(|(item, protected)| is_protected(item) != *protected);
    changes.map(|(item, protected)| (item.clone(), protected)).collect()
}

/// Remembers what is protected of what is there. Returns whether that is news.
pub(crate) fn remember(manifest: &Manifest, current: &mut CurrentGraph) -> bool {
    let mut changed = false;
    for (item, protected) in changes(manifest, current) {
        let Some(slot) = current.slot_of(&item) else { continue };
        let Some(state) = current.state_at_mut(slot) else { continue };
        state.protect(protected);
        current.touch_at(slot);
        changed = true;
    }
    changed
}

/// Refuses a plan as a whole that deletes what is protected.
pub(crate) fn check(manifest: &Manifest, current: &CurrentGraph, plan: &Plan) -> Result<(), CliError> {
    let deletes = plan.operations.iter().filter(|operation| operation.action == Action::Delete);
    // A restart takes nothing away, and what makes room comes back with what nobody declared of it. Who wants it made anew from
    // nothing is refused, also where that is asked for something that it is in.
    let requested = |operation: &PlannedOperation| operation.code == Some(ReasonCode::Requested);
    let any_requested = plan.operations.iter().any(requested);
    let made_anew_with_another = |operation: &PlannedOperation| {
        any_requested && operation.code == Some(ReasonCode::DependencyRecreated)
    };
    let comes_back = |operation: &PlannedOperation| {
        let from_nothing = requested(operation) || made_anew_with_another(operation);
        operation.temporary && (is_activity(&operation.kind) || !from_nothing)
    };
    let lasting = deletes.filter(|operation| !comes_back(operation));
    let protected: Vec<(ItemRef, bool)> = lasting
        .map(|operation| ItemRef::new(operation.kind.as_str(), operation.name.as_str()))
        .filter(|item| is_protected(manifest, current, item))
        .map(|item| (item.clone(), manifest.declared(&item).is_some()))
        .collect();
    if protected.is_empty() { Ok(()) } else { Err(Error::Protected(protected).into()) }
}

/// Returns whether an item may not be deleted, by its declaration or, without one, by what is remembered.
pub(crate) fn is_protected(manifest: &Manifest, current: &CurrentGraph, item: &ItemRef) -> bool {
    match manifest.declared(item) {
        Some(declared) => declared.prevent_destroy,
        None => current.state(item).is_some_and(ItemState::is_protected),
    }
}
