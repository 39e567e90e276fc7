//! Subjects: the items that a plan looks at, laid over the two graphs.

use rustc_hash::FxHashMap;
use setpoint_graph::SlotId;

use crate::state::Presence;

/// No slot, subject or step.
pub(crate) const NONE: u32 = u32::MAX;

/// What becomes of an item by the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It stays as it is, or stays away.
    Keep,
    /// It is created.
    Create,
    /// It is modified in place.
    Modify,
    /// It is deleted and stays away.
    Delete,
    /// It is deleted and created again.
    Recreate,
}

/// Why an item has its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is intended and not there.
    Intended,
    /// Its state differs from the intended one.
    Changed,
    /// A failed modification may have left it half changed.
    Tainted,
    /// An item with which it is applied again changed in an earlier run.
    AnotherItemChanged,
    /// An item with which it is applied again is changed by this plan.
    AppliedWith(u32),
    /// Its re-creation was interrupted after the deletion.
    RecreationInterrupted,
    /// It is not intended any more.
    Removed,
    /// A dependency is not satisfied any more.
    Lost,
    /// A failed operation may have left parts of it.
    Cleanup,
    /// Its configurator can't modify it in place.
    NeedsRecreate,
    /// What it depends on is deleted meanwhile.
    Cascade(u32),
    /// What it depends on is modified, and it must be made anew then.
    RequiredModified(u32),
    /// No order of operations exists that keeps it in place.
    BreaksCycle,
    /// Nobody knows how an operation on it ended.
    Unknown,
    /// The caller asked for it.
    Requested,
}

/// Where an item is in one of the graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GraphSlot {
    /// The graph does not know of it.
    Nowhere,
    /// Others depend on it, and it is not there.
    Mentioned(SlotId),
    /// It is there.
    Item(SlotId),
}

impl GraphSlot {
    pub(crate) fn new(slot: Option<SlotId>, holds_item: bool) -> Self {
        match slot {
            None => Self::Nowhere,
            Some(slot) if holds_item => Self::Item(slot),
            Some(slot) => Self::Mentioned(slot),
        }
    }

    /// Returns the slot of its reference.
    pub(crate) fn slot(self) -> Option<SlotId> {
        match self {
            Self::Nowhere => None,
            Self::Mentioned(slot) | Self::Item(slot) => Some(slot),
        }
    }

    /// Returns the slot that holds it.
    pub(crate) fn item(self) -> Option<SlotId> {
        match self {
            Self::Nowhere | Self::Mentioned(_) => None,
            Self::Item(slot) => Some(slot),
        }
    }
}

/// What is there of an item in the managed system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existence {
    /// Nothing.
    Absent,
    /// Nothing: the system removed it together with an external item that it stood on.
    Vanished,
    /// Parts of it, which would have to be deleted. Nothing can rely on them.
    Partial,
    /// It exists, and dependents can rely on it.
    Present,
}

impl From<Presence> for Existence {
    fn from(presence: Presence) -> Self {
        match presence {
            Presence::Present | Presence::Tainted => Self::Present,
            Presence::Partial => Self::Partial,
            Presence::Absent => Self::Absent,
        }
    }
}

/// Whether an item has what it needs, where that is in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Support {
    /// It is not in question: the item stays as it is, stays away, or goes.
    Settled,
    /// It is to be created, and does not have all it needs, as far as is known yet.
    Candidate,
    /// It is to be created, and has all it needs.
    Creatable,
    /// It is there, and may have lost a dependency.
    Lost,
    /// It is there, may have lost a dependency, and turned out to have all it needs.
    Retained,
}

impl Support {
    /// Forgets what was found out, so that it is found out anew.
    pub(crate) fn reset(self) -> Self {
        match self {
            Self::Candidate | Self::Creatable => Self::Candidate,
            Self::Settled | Self::Lost | Self::Retained => Self::Settled,
        }
    }

    /// The item turned out to have all it needs.
    pub(crate) fn satisfied(self) -> Self {
        match self {
            Self::Candidate | Self::Creatable => Self::Creatable,
            Self::Lost | Self::Retained => Self::Retained,
            Self::Settled => Self::Settled,
        }
    }

    /// The item is not to be created after all.
    pub(crate) fn withdrawn(self) -> Self {
        match self {
            Self::Settled | Self::Candidate | Self::Creatable => Self::Settled,
            Self::Lost | Self::Retained => self,
        }
    }
}

/// Who operates on an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// This plan.
    Plan,
    /// A background operation of an earlier run, which is under way.
    Background,
    /// Something else: the item is only observed.
    External,
}

/// How closely a plan looks at an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attention {
    /// It is there for the sake of others.
    Passive,
    /// It is among those that may need an operation.
    Active,
    /// It is active, and changed since the last run, so that dependents look at it anew.
    Changed,
}

/// Which value an item has in the end, if it exists then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndValue {
    /// That of the current graph.
    Current,
    /// That of the intended graph.
    Intended,
}

/// How an item comes to its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// By the operations of the outcome, if any.
    Direct,
    /// It stays in place while its only support is replaced by another.
    Switches,
    /// Not in this run: it has no configurator, its next attempt is not due, what it comes after is missing, or what it needs from now on
    /// has failed.
    Held,
}

/// An item that the plan looks at.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Where it is in the current graph.
    pub(crate) cur: GraphSlot,
    /// Where it is in the intended graph.
    pub(crate) int: GraphSlot,

    pub(crate) outcome: Outcome,
    pub(crate) why: Why,

    /// What is there of it in the managed system.
    pub(crate) existence: Existence,
    /// Whether it has what it needs, where that is in question.
    pub(crate) support: Support,
    /// Who operates on it.
    pub(crate) operator: Operator,
    /// How closely the plan looks at it.
    pub(crate) attention: Attention,
    /// Which value it has in the end.
    pub(crate) end: EndValue,
    /// How it comes to its outcome.
    pub(crate) course: Course,
    /// Whether the selection holds it.
    pub(crate) in_scope: bool,
    /// Whether it can't be handled as declared, or has no configurator.
    pub(crate) invalid: bool,
    /// Whether its failed operation is not due; only a change of what it depends on tries it earlier.
    pub(crate) not_due: bool,
    /// How many dependencies are not satisfied yet.
    pub(crate) unmet: u32,
    /// When in the course of planning it turned out to have what it needs; earlier ones never need later ones.
    pub(crate) derived: u32,
    /// Who holds a resource that it claims.
    pub(crate) claimed_by: u32,
}

impl Subject {
    /// A selected item that neither graph has.
    pub(crate) fn nowhere() -> Self {
        Self {
            cur: GraphSlot::Nowhere,
            int: GraphSlot::Nowhere,
            outcome: Outcome::Keep,
            why: Why::Intended,
            existence: Existence::Absent,
            support: Support::Settled,
            operator: Operator::Plan,
            attention: Attention::Passive,
            end: EndValue::Current,
            course: Course::Direct,
            in_scope: true,
            invalid: false,
            not_due: false,
            unmet: 0,
            derived: 0,
            claimed_by: NONE,
        }
    }

    /// Returns the slot of the current graph that holds it.
    pub(crate) fn cur(&self) -> Option<SlotId> {
        self.cur.item()
    }

    /// Returns the slot of the intended graph that holds it.
    pub(crate) fn int(&self) -> Option<SlotId> {
        self.int.item()
    }

    /// Returns whether the current graph holds it.
    pub(crate) fn is_known(&self) -> bool {
        self.cur().is_some()
    }

    /// Returns whether the intended graph holds it.
    pub(crate) fn is_intended(&self) -> bool {
        self.int().is_some()
    }

    /// Returns whether it exists, so that dependents can rely on it.
    pub(crate) fn is_present(&self) -> bool {
        self.existence == Existence::Present
    }

    /// Returns whether something of it is there that would have to be deleted.
    pub(crate) fn remains(&self) -> bool {
        matches!(self.existence, Existence::Partial | Existence::Present)
    }

    /// Returns whether the system removed it together with an external item that it stood on.
    pub(crate) fn is_vanished(&self) -> bool {
        self.existence == Existence::Vanished
    }

    /// Returns whether it is to be created if its dependencies allow.
    pub(crate) fn is_candidate(&self) -> bool {
        matches!(self.support, Support::Candidate | Support::Creatable)
    }

    /// Returns whether it is there and may have lost a dependency.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.support, Support::Lost | Support::Retained)
    }

    /// Returns whether it was in question, and turned out to have all it needs.
    pub(crate) fn is_satisfied(&self) -> bool {
        matches!(self.support, Support::Creatable | Support::Retained)
    }

    /// Returns whether something else manages it.
    pub(crate) fn is_external(&self) -> bool {
        self.operator == Operator::External
    }

    /// Returns whether a background operation on it is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.operator == Operator::Background
    }

    /// Returns whether it changed since the last run.
    pub(crate) fn is_changed(&self) -> bool {
        self.attention == Attention::Changed
    }

    /// Returns whether it has the intended value in the end, if it exists then.
    pub(crate) fn takes_intent(&self) -> bool {
        self.end == EndValue::Intended
    }

    /// Returns whether its operation can't be run now.
    pub(crate) fn is_held(&self) -> bool {
        self.course == Course::Held
    }

    /// Returns whether it stays as it is although something else is intended, as its intended value needs what has failed.
    pub(crate) fn is_left_for_failed(&self) -> bool {
        self.is_held() && self.is_present() && self.outcome == Outcome::Keep && !self.takes_intent()
    }

    /// Returns whether it is there now and stays, so that its dependencies must hold.
    pub(crate) fn stays(&self) -> bool {
        self.is_present() && self.operator == Operator::Plan && self.outcome != Outcome::Delete
    }

    /// Returns whether it is intended and will not be there in the end.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_intended() && !self.is_present() && self.operator == Operator::Plan && !self.is_satisfied()
    }
}

pub(crate) fn slot(index: u32) -> SlotId {
    SlotId::from_index(index)
}

/// Which subject stands for a slot: small while few are looked at, flat once many are.
#[derive(Debug)]
pub(crate) struct SlotMap {
    few: FxHashMap<u32, u32>,
    many: Vec<u32>,
    bound: usize,
}

impl SlotMap {
    pub(crate) fn new(bound: usize) -> Self {
        Self { few: FxHashMap::default(), many: Vec::new(), bound }
    }

    /// A map for which many slots are expected.
    pub(crate) fn flat(bound: usize) -> Self {
        Self { few: FxHashMap::default(), many: vec![NONE; bound], bound }
    }

    pub(crate) fn get(&self, slot: u32) -> Option<u32> {
        if self.many.is_empty() {
            self.few.get(&slot).copied()
        } else {
            self.many.get(slot as usize).copied().filter(|&subject| subject != NONE)
        }
    }

    pub(crate) fn insert(&mut self, slot: u32, subject: u32) {
        if self.many.is_empty() {
            self.few.insert(slot, subject);
            if self.few.len() > 64 && self.few.len() > self.bound / 16 {
                self.many = vec![NONE; self.bound];
                for (slot, subject) in self.few.drain() {
                    self.many[slot as usize] = subject;
                }
            }
        } else {
            self.many[slot as usize] = subject;
        }
    }
}
