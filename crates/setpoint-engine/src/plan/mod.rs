//! Planning: from two graphs to an ordered set of operations. Pure and deterministic.
//!
//! ```text
//!  journals ─▶ seeds ─▶ outcomes ───────────────────────────▶ order ─▶ schedule ─▶ execution
//!              what     what becomes of each item:            which    steps and   or the plan
//!              may      lost ⇄ supported ⇄ re-created          step     what each   envelope
//!              differ   until nothing changes                 first    waits for
//! ```
//!
//! A plan is an overlay: a list of [`Subject`]s over the two graphs, which are never copied. Only what may
//! differ, and what that touches, becomes a subject.

mod after;
mod bulk;
mod cascade;
mod claims;
mod cycles;
mod edges;
mod envelope;
mod independence;
mod order;
mod outcome;
mod relation;
mod schedule;
mod seeds;
mod sort;
mod subject;
mod support;

use std::collections::BTreeSet;

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::{Cycle, Graph, ItemHandle, ItemRef, Kind, ResourceKey, SlotId};

use crate::configurator::{ConfiguratorHandle, Registry};
use crate::op::Operation;
use crate::selection::Selection;
use crate::state::CurrentGraph;

pub(crate) use relation::{Dependents, Related, all_it_needs, gains_dependencies};
pub(crate) use schedule::{Schedule, Step, StepKind};
use subject::SlotMap;
use subject::{Attention, Course, EndValue, Existence, GraphSlot, Operator, Support};
pub(crate) use subject::{NONE, Outcome, Subject, Why, slot};

/// What a plan is made for, besides the two graphs.
#[derive(Clone, Debug)]
pub(crate) struct Inputs<'a> {
    pub(crate) selection: &'a Selection,
    pub(crate) now: Timestamp,
    /// Try what failed before its time.
    pub(crate) retry_now: bool,
    /// Items that failed in this very run: not again.
    pub(crate) failed: &'a FxHashSet<ItemRef>,
    /// Items that are made anew although nothing demands it.
    pub(crate) replace: &'a BTreeSet<ItemRef>,
    /// Whether steps may overlap: then operations on items that are related through unchanged ones are separated.
    pub(crate) concurrent: bool,
}

/// A plan in the making.
pub(crate) struct Planner<'a> {
    pub(crate) cur: &'a CurrentGraph,
    pub(crate) int: &'a Graph,
    pub(crate) inputs: Inputs<'a>,
    configurators: Configurators<'a>,
    pub(crate) subjects: Vec<Subject>,
    by_cur: SlotMap,
    by_int: SlotMap,
    /// Subjects that may need an operation.
    active: Vec<u32>,
    /// Subjects that became candidates in the course of planning.
    woken: Vec<u32>,
    /// Dependencies with several alternatives of which one is satisfied, while counting.
    met: FxHashSet<(u32, u32)>,
    /// Who holds a claimed resource in the end.
    holders: FxHashMap<ResourceKey, u32>,
    /// While planning: items that may have lost a dependency may still turn out to stay.
    lost_may_stay: bool,
    pub(crate) cycles: Vec<Cycle>,
    cycle_of: FxHashMap<u32, usize>,
    /// Items whose intended value needs something that this plan leaves alone and that needs their present value.
    tangled: FxHashSet<u32>,
    /// Items that are there and gain dependencies with their intended value.
    gains: FxHashSet<u32>,
    /// Items that are there and stay as they are, because their intended value needs something that failed; and what these need.
    left_for_failed: FxHashSet<u32>,
    /// Background operations that the new intent made pointless.
    pub(crate) obsolete: Vec<u32>,
    pub(crate) schedule: Schedule,
    /// What background operations keep waiting.
    pub(crate) related: Related,
    pub(crate) compared_all: bool,
}

impl<'a> Planner<'a> {
    /// Makes the whole plan.
    pub(crate) fn plan(
        cur: &'a CurrentGraph,
        int: &'a Graph,
        registry: &'a dyn Registry,
        inputs: Inputs<'a>,
    ) -> Self {
        let mut planner = Self {
            cur,
            int,
            inputs,
            configurators: Configurators { registry, known: Vec::new() },
            subjects: Vec::new(),
            by_cur: SlotMap::new(cur.slot_bound()),
            by_int: SlotMap::new(int.slot_bound()),
            active: Vec::new(),
            woken: Vec::new(),
            met: FxHashSet::default(),
            holders: FxHashMap::default(),
            lost_may_stay: true,
            cycles: Vec::new(),
            cycle_of: FxHashMap::default(),
            tangled: FxHashSet::default(),
            gains: FxHashSet::default(),
            left_for_failed: FxHashSet::default(),
            obsolete: Vec::new(),
            schedule: Schedule::default(),
            related: Related::default(),
            compared_all: false,
        };
        if !planner.plan_in_bulk() {
            planner.gather_seeds();
            planner.find_vanished();
            planner.decide_and_order();
            planner.find_kept_waiting();
        }
        planner
    }

    /// Finds what background operations keep waiting.
    fn find_kept_waiting(&mut self) {
        if self.schedule.steps.is_empty() {
            return;
        }
        let open = self.cur.shared().open.iter();
        let busy = open.filter(|item| self.cur.state(item).is_some_and(|state| state.live().is_some()));
        let mut busy: Vec<&ItemRef> = busy.collect();
        busy.sort();
        for item in busy {
            self.related.add(self.cur, self.int, item);
        }
    }

    /// The finished plan, free of the graphs it was made from.
    pub(crate) fn finish(self) -> Blueprint {
        Blueprint { subjects: self.subjects, schedule: self.schedule, related: self.related }
    }

    pub(crate) fn subject(&self, subject: u32) -> &Subject {
        &self.subjects[subject as usize]
    }

    fn subject_mut(&mut self, subject: u32) -> &mut Subject {
        &mut self.subjects[subject as usize]
    }

    /// The subject of a slot of the current graph.
    fn at_cur(&mut self, slot: SlotId) -> u32 {
        if let Some(subject) = self.by_cur.get(slot.to_index()) {
            return subject;
        }
        let int = self.int.slot_like(self.cur, slot);
        self.new_subject(Some(slot), int)
    }

    /// The subject of a slot of the intended graph.
    fn at_int(&mut self, slot: SlotId) -> u32 {
        if let Some(subject) = self.by_int.get(slot.to_index()) {
            return subject;
        }
        let cur = self.cur.slot_like(self.int, slot);
        self.new_subject(cur, Some(slot))
    }

    /// The subject of a reference that either graph holds or mentions.
    pub(crate) fn at(&mut self, item: &ItemRef) -> Option<u32> {
        if let Some(slot) = self.int.slot_of(item) {
            return Some(self.at_int(slot));
        }
        self.cur.slot_of(item).map(|slot| self.at_cur(slot))
    }

    fn new_subject(&mut self, cur: Option<SlotId>, int: Option<SlotId>) -> u32 {
        let cur_item = cur.and_then(|slot| self.cur.item_at(slot));
        let int_item = int.and_then(|slot| self.int.item_at(slot));
        let mut existence = if cur_item.is_some() { Existence::Present } else { Existence::Absent };
        let mut busy = false;
        if let Some(state) = cur.filter(|_| cur_item.is_some()).and_then(|slot| self.cur.state_at(slot)) {
            existence = match &state.unfinished {
                Some(unfinished) if unfinished.operation == Operation::Modify => Existence::Present,
                Some(_) => Existence::Partial,
                None if int_item.is_none() && state.awaits_release() => Existence::Partial,
                None => state.presence.into(),
            };
            busy = state.live().is_some();
        }
        let operator = if int_item.or(cur_item).is_some_and(ItemHandle::external) {
            Operator::External
        } else if busy {
            Operator::Background
        } else {
            Operator::Plan
        };
        let selection = self.inputs.selection;
        let in_scope = cur.filter(|_| cur_item.is_some()).is_some_and(|slot| selection.holds(self.cur, slot))
            || int.filter(|_| int_item.is_some()).is_some_and(|slot| selection.holds(self.int, slot));
        let id = u32::try_from(self.subjects.len()).unwrap_or(NONE);
        self.subjects.push(Subject {
            cur: GraphSlot::new(cur, cur_item.is_some()),
            int: GraphSlot::new(int, int_item.is_some()),
            existence,
            operator,
            in_scope,
            ..Subject::nowhere()
        });
        if let Some(slot) = cur {
            self.by_cur.insert(slot.to_index(), id);
        }
        if let Some(slot) = int {
            self.by_int.insert(slot.to_index(), id);
        }
        id
    }

    pub(crate) fn reference(&self, subject: u32) -> &'a ItemRef {
        let this = self.subject(subject);
        let reference = match this.int.slot() {
            Some(slot) => self.int.reference_at(slot),
            None => this.cur.slot().and_then(|slot| self.cur.reference_at(slot)),
        };
        // A subject is only made for a slot that holds or mentions a reference.
        reference.unwrap_or_else(|| unreachable!("subject {subject} without a reference"))
    }

    pub(crate) fn cur_item(&self, subject: u32) -> Option<&'a ItemHandle> {
        self.subject(subject).cur().and_then(|slot| self.cur.item_at(slot))
    }

    pub(crate) fn int_item(&self, subject: u32) -> Option<&'a ItemHandle> {
        self.subject(subject).int().and_then(|slot| self.int.item_at(slot))
    }

    /// The value the item has in the end, as far as that is known yet; none if it is not there then.
    pub(crate) fn end_value(&self, subject: u32) -> Option<&'a ItemHandle> {
        let this = self.subject(subject);
        if !self.is_there_in_the_end(subject) {
            None
        } else if this.takes_intent() && this.operator == Operator::Plan {
            self.int_item(subject)
        } else {
            self.cur_item(subject)
        }
    }

    /// Returns whether the item is there in the end, as far as that is known yet.
    pub(crate) fn is_there_in_the_end(&self, subject: u32) -> bool {
        let this = self.subject(subject);
        if this.operator != Operator::Plan {
            this.is_present()
        } else if this.is_present() {
            this.outcome != Outcome::Delete && (!this.is_lost() || this.is_satisfied())
        } else {
            this.is_candidate() && this.is_satisfied()
        }
    }

    fn configurator_for(&mut self, item: &ItemHandle) -> Option<&ConfiguratorHandle> {
        self.configurators.get(item.kind()).filter(|configurator| configurator.accepts(item))
    }
}

/// A finished plan. Slots of the current graph stay valid as long as the items in them do.
#[derive(Debug)]
pub(crate) struct Blueprint {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) schedule: Schedule,
    /// What background operations keep waiting.
    pub(crate) related: Related,
}

/// The configurators that the registry returned, by kind: most items are of few kinds.
struct Configurators<'a> {
    registry: &'a dyn Registry,
    known: Vec<(Kind, Option<ConfiguratorHandle>)>,
}

impl Configurators<'_> {
    fn get(&mut self, kind: &Kind) -> Option<&ConfiguratorHandle> {
        let position = self.known.iter().position(|(known, _)| known == kind).unwrap_or_else(|| {
            self.known.push((kind.clone(), self.registry.configurator(kind)));
            self.known.len() - 1
        });
        self.known[position].1.as_ref()
    }
}
