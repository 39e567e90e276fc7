//! Subjects: the items that a plan looks at, laid over the two graphs.

use rustc_hash::FxHashMap;
use setpoint_graph::SlotId;

/// No slot, subject or step.
pub(crate) const NONE: u32 = u32::MAX;

/// What becomes of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
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

/// Why it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is intended and not there.
    Intended,
    /// Its state differs from the intended one.
    Changed,
    /// A failed modification may have left it half changed.
    Tainted,
    /// It was to be applied again, and has not been.
    Again,
    /// What it comes after is changed, and it must be applied again then.
    Repeats(u32),
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

/// An item that the plan looks at.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about an item, most combinations occur")]
pub(crate) struct Subject {
    /// The slot of its reference in the current graph, and whether an item is in it.
    pub(crate) cur: u32,
    pub(crate) cur_item: bool,
    /// The same in the intended graph.
    pub(crate) int: u32,
    pub(crate) int_item: bool,

    pub(crate) fate: Fate,
    pub(crate) why: Why,

    /// It exists, and dependents can rely on it.
    pub(crate) present: bool,
    /// Something of it is there that would have to be deleted.
    pub(crate) remains: bool,
    /// The system removed it together with an external item it stood on.
    pub(crate) vanished: bool,
    /// Something else manages it.
    pub(crate) external: bool,
    /// A background operation on it is under way.
    pub(crate) busy: bool,
    /// The selection holds it.
    pub(crate) in_scope: bool,
    /// It can't be handled as declared, or has no configurator.
    pub(crate) invalid: bool,
    /// Its operation can't be run now: no configurator, or its next attempt is not due.
    pub(crate) held: bool,
    /// Its failed operation is not due; only a change of what it depends on tries it earlier.
    pub(crate) not_due: bool,
    /// If it exists in the end, then with the intended value.
    pub(crate) takes_intent: bool,
    /// It is to be created if its dependencies allow.
    pub(crate) candidate: bool,
    /// It is there and may have lost a dependency.
    pub(crate) lost: bool,
    /// A candidate, or a lost one, that turned out to have all it needs.
    pub(crate) alive: bool,
    /// It is among those that may need an operation.
    pub(crate) active: bool,
    /// It changed since the last run, so that dependents look at it anew.
    pub(crate) event: bool,
    /// It stays while its only support is replaced by another.
    pub(crate) switches: bool,
    /// How many dependencies are not satisfied yet.
    pub(crate) unmet: u32,
    /// When in the course of planning it turned out to be alive; earlier ones never need later ones.
    pub(crate) derived: u32,
    /// Who holds a resource that it claims.
    pub(crate) claimed_by: u32,
}

impl Subject {
    /// A selected item that neither graph has.
    pub(crate) fn nowhere() -> Self {
        Self {
            cur: NONE,
            cur_item: false,
            int: NONE,
            int_item: false,
            fate: Fate::Keep,
            why: Why::Intended,
            present: false,
            remains: false,
            vanished: false,
            external: false,
            busy: false,
            in_scope: true,
            invalid: false,
            held: false,
            not_due: false,
            takes_intent: false,
            candidate: false,
            lost: false,
            alive: false,
            active: false,
            event: false,
            switches: false,
            unmet: 0,
            derived: 0,
            claimed_by: NONE,
        }
    }

    pub(crate) fn cur(&self) -> Option<SlotId> {
        self.cur_item.then(|| slot(self.cur))
    }

    pub(crate) fn int(&self) -> Option<SlotId> {
        self.int_item.then(|| slot(self.int))
    }

    /// Whether it is there now and stays, so that its dependencies must hold.
    pub(crate) fn stays(&self) -> bool {
        self.present && !self.busy && !self.external && self.fate != Fate::Delete
    }

    /// Whether it is intended and will not be there in the end.
    pub(crate) fn is_stuck(&self) -> bool {
        self.int_item && !self.present && !self.external && !self.busy && !self.alive
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
