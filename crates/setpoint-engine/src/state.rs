//! What the current graph keeps beside each item, and once for the whole graph.
//!
//! The engine itself is stateless: all that must survive between two runs is here.

use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use setpoint_graph::{Graph, GraphId, ItemHandle, ItemRef, Look, Name, Revision, State};
use setpoint_plan::Standing;

use crate::background::{Background, Wake};
use crate::journal::Record;
use crate::metadata::{ItemMetadata, OptionalMetadata, Ownership};
use crate::op::{OpError, Operation};

/// A graph of the current state.
pub type CurrentGraph = Graph<ItemState>;

/// Whether an item is there in the managed system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// It exists.
    Present,
    /// It exists, and a failed modification may have left it unlike any known value.
    Tainted,
    /// A failed operation may have left parts of it: they are deleted before anything else.
    Partial,
    /// It does not exist: only the failure to create it is remembered.
    Absent,
}

impl Presence {
    /// Returns whether the item exists, so that others can rely on it.
    pub fn exists(self) -> bool {
        matches!(self, Self::Present | Self::Tainted)
    }
}

/// Why an item is applied again although it has its intended value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reapply {
    /// It is not.
    #[default]
    NotNeeded,
    /// An item changed with which it is applied again.
    AnotherItemChanged,
    /// It was deleted to be re-created, and its creation has not succeeded yet.
    RecreationInterrupted,
}

impl Reapply {
    /// Returns whether the item is applied again.
    pub fn is_needed(self) -> bool {
        self != Self::NotNeeded
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_not_needed(&self) -> bool {
        !self.is_needed()
    }
}

/// The state of one item of the current graph.
///
/// The engine keeps it up to date. Whoever reads the managed system himself puts items with
/// [`ItemState::present`] beside them; an item without any state counts as present too.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemState {
    pub(crate) presence: Presence,
    pub(crate) last_operation: Option<Operation>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) externally_modified: bool,
    /// Since when it has been like this.
    pub(crate) since: Timestamp,
    /// Why it is applied again whatever it looks like.
    #[serde(default, skip_serializing_if = "Reapply::is_not_needed")]
    pub(crate) reapply: Reapply,
    /// It may not be deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) protected: bool,
    /// Whose it is, and what its configurator noted.
    #[serde(default, alias = "remembered", skip_serializing_if = "OptionalMetadata::is_empty")]
    pub(crate) metadata: OptionalMetadata,
    #[serde(default, alias = "trouble", skip_serializing_if = "Option::is_none")]
    pub(crate) last_failure: Option<Box<LastFailure>>,
    #[serde(default, alias = "flight", skip_serializing_if = "Option::is_none")]
    pub(crate) unfinished: Option<Box<UnfinishedOperation>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) drift: Option<Box<Drift>>,
}

/// A failure that has not been overcome yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LastFailure {
    /// What failed.
    pub operation: Operation,
    /// Why.
    pub error: OpError,
    /// How often in a row.
    pub attempts: u32,
    /// When it failed last.
    pub at: Timestamp,
    /// When it may be tried again; none if not until the intent changes.
    pub due: Option<Timestamp>,
    /// What the item was to become: another intent is tried at once. Not kept on disk.
    #[serde(skip)]
    pub(crate) target: Option<ItemHandle>,
}

/// An operation that was started and whose end is not recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnfinishedOperation {
    /// What is done.
    pub operation: Operation,
    /// When it started.
    pub started: Timestamp,
    /// What the item becomes. Whoever stores the state stores it beside: [`ItemState::unfinished_target`].
    #[serde(skip)]
    pub(crate) target: Option<ItemHandle>,
    #[serde(skip)]
    pub(crate) live: Live,
}

/// Something else changed the item, and keeps changing it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Drift {
    /// How often in a row it was found changed soon after it had been put right.
    pub times: u32,
    /// When it was found changed last.
    pub at: Timestamp,
    /// When it is put right again.
    pub due: Timestamp,
    /// Whether it is as it should be for the time being.
    pub repaired: bool,
}

/// The handle of a background operation: neither copied nor stored, since there is only one such operation.
#[derive(Debug, Default)]
pub(crate) struct Live(pub(crate) Option<Arc<Background>>);

impl Clone for Live {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl ItemState {
    /// The state of an item that exists and with which all is well.
    pub fn present(since: Timestamp) -> Self {
        Self {
            presence: Presence::Present,
            last_operation: None,
            externally_modified: false,
            since,
            reapply: Reapply::NotNeeded,
            protected: false,
            metadata: OptionalMetadata::default(),
            last_failure: None,
            unfinished: None,
            drift: None,
        }
    }

    /// Says that something else modified the external item since the last run: items that are to be
    /// re-created when it is modified are. The next run resets it.
    #[must_use]
    pub fn externally_modified(mut self) -> Self {
        self.externally_modified = true;
        self
    }

    /// Says that the item was there before: it is looked after, and left in place in the end.
    #[must_use]
    pub fn adopted(mut self) -> Self {
        self.metadata.set(ItemMetadata { ownership: Ownership::Adopted, ..self.metadata.get() });
        self
    }

    /// Says that the item was made here: it is deleted in the end.
    pub fn own(&mut self) {
        self.metadata.set(ItemMetadata { ownership: Ownership::Owned, ..self.metadata.get() });
    }

    /// Sets whether the item may not be deleted. The engine keeps this and does not act on it: its caller does.
    pub fn protect(&mut self, protected: bool) {
        self.protected = protected;
    }

    /// Notes something of the item, in the place of what was noted of it before, as its configurator would.
    pub fn note(&mut self, note: &impl Serialize) {
        // What can't be written as JSON is not a note.
        if let Ok(note) = serde_json::to_value(note) {
            self.metadata.set(ItemMetadata { note: Some(note), ..self.metadata.get() });
        }
    }

    /// Forgets what the configurator noted of the item.
    pub fn forget_note(&mut self) {
        self.metadata.forget_note();
    }

    /// Records a failure the caller knows of: the next run retries the operation.
    #[must_use]
    pub fn failed(mut self, operation: Operation, error: OpError) -> Self {
        if operation == Operation::Create {
            self.presence = match error.damage() {
                crate::Damage::Untouched => Presence::Absent,
                crate::Damage::Partial | crate::Damage::Unknown => Presence::Partial,
            };
        }
        let at = self.since;
        self.last_failure =
            Some(Box::new(LastFailure { operation, error, attempts: 1, at, due: Some(at), target: None }));
        self
    }

    /// Returns whether the item is there in the managed system.
    pub fn presence(&self) -> Presence {
        self.presence
    }

    /// Whose the item is.
    pub fn ownership(&self) -> Ownership {
        self.metadata.ownership()
    }

    /// What the configurator noted of the item; none if nothing, or something else.
    pub fn noted<T: DeserializeOwned>(&self) -> Option<T> {
        self.metadata.noted()
    }

    /// Returns why the item is applied again whatever it looks like.
    pub fn reapply(&self) -> Reapply {
        self.reapply
    }

    /// Returns whether the item may not be deleted.
    pub fn is_protected(&self) -> bool {
        self.protected
    }

    /// What the engine did to it last.
    pub fn last_operation(&self) -> Option<Operation> {
        self.last_operation
    }

    /// The failure that has not been overcome yet.
    pub fn last_failure(&self) -> Option<&LastFailure> {
        self.last_failure.as_deref()
    }

    /// The operation that is under way.
    pub fn unfinished_operation(&self) -> Option<&UnfinishedOperation> {
        self.unfinished.as_deref()
    }

    /// What the operation that is under way makes of the item, if that is something else than the item.
    pub fn unfinished_target(&self) -> Option<&ItemHandle> {
        self.unfinished.as_ref()?.target.as_ref()
    }

    /// Says what the operation makes of the item that was under way when this was stored.
    #[must_use]
    pub fn with_unfinished_target(mut self, target: Option<ItemHandle>) -> Self {
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.target = target;
        }
        self
    }

    /// The record of changes by someone else.
    pub fn drift(&self) -> Option<&Drift> {
        self.drift.as_deref()
    }

    /// Returns whether an external item was marked as modified since the last run.
    pub fn is_externally_modified(&self) -> bool {
        self.externally_modified
    }

    /// Since when the item has been like this.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns whether an operation was started whose end nobody will report any more.
    pub fn is_unknown(&self) -> bool {
        self.unfinished.as_ref().is_some_and(|unfinished| unfinished.live.0.is_none())
    }

    /// The background operation, if it is one of this process.
    pub(crate) fn live(&self) -> Option<&Arc<Background>> {
        self.unfinished.as_ref()?.live.0.as_ref()
    }

    /// Returns whether something is left to be done about an item that is not there, once it is not intended any more: what was
    /// there before it is to be put back.
    pub(crate) fn awaits_release(&self) -> bool {
        self.presence == Presence::Absent && self.ownership().is_adopted()
    }

    /// Returns whether a run must look at the item whatever changed.
    pub(crate) fn is_open(&self) -> bool {
        self.presence != Presence::Present
            || self.reapply.is_needed()
            || self.externally_modified
            || self.last_failure.is_some()
            || self.unfinished.is_some()
    }
}

impl State for ItemState {
    type Shared = PlanningState;

    fn look(&self) -> Look {
        Look {
            created: self.presence.exists(),
            in_transition: self.unfinished.is_some(),
            error: self.last_failure.as_ref().map(|failure| failure.error.to_string()),
        }
    }
}

/// What the current graph remembers of the runs it has been through. Owned by the engine.
#[derive(Debug, Default)]
pub struct PlanningState {
    /// Which graph this state belongs to and what of it has been seen: a clone starts anew.
    pub(crate) own: Option<(GraphId, Revision)>,
    /// The intended graph, and what of it has been compared.
    pub(crate) intended: Option<(GraphId, Revision)>,
    /// Items with a failure, an operation under way, or anything else that each run must look at.
    pub(crate) open: FxHashSet<ItemRef>,
    /// Items that were found different and not brought to their intended state.
    pub(crate) dirty: FxHashSet<ItemRef>,
    /// Items that were found to be gone since the last run.
    pub(crate) lost: FxHashSet<ItemRef>,
    /// Intended items that are not there, since when and why in one word.
    pub(crate) waiting: FxHashMap<ItemRef, Waiting>,
    pub(crate) wake: Option<Arc<Wake>>,
    /// Records that go into the journal with the next batch: also of a run that was dropped.
    pub(crate) unwritten: Vec<Record>,
}

/// Since when, and why in one word, an intended item is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) since: Timestamp,
    pub(crate) standing: Standing,
}

impl Clone for PlanningState {
    /// A copied graph has been through nothing: it compares everything.
    fn clone(&self) -> Self {
        Self { waiting: self.waiting.clone(), ..Self::default() }
    }
}

impl PlanningState {
    pub(crate) fn wake(&mut self, graph: &Name) -> Arc<Wake> {
        Arc::clone(self.wake.get_or_insert_with(|| Arc::new(Wake::new(graph.clone()))))
    }
}
