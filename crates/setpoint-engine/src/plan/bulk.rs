//! The two plans that touch everything: creating all where nothing exists, and deleting all.
//!
//! There nothing has to be decided about any single item as long as all of them only want others to exist:
//! counting edges is enough. Whatever is not that simple is left to the general way, which gives the same plan.

use setpoint_graph::{Edge, Graph, SlotId, State};

use super::schedule::StepKind;
use super::subject::{EndValue, Existence, GraphSlot, NONE, Outcome, SlotMap, Subject, Support, Why};
use super::{Planner, Schedule};
use crate::selection::Selection;

impl Planner<'_> {
    /// Plans to create or delete everything, if that is all there is to do; returns whether it did.
    pub(super) fn plan_in_bulk(&mut self) -> bool {
        let planning = self.cur.shared();
        let simple = *self.inputs.selection == Selection::All
            && self.inputs.replace.is_empty()
            && self.inputs.failed.is_empty()
            && planning.open.is_empty()
            && planning.waiting.is_empty()
            && planning.dirty.is_empty();
        let planned = simple
            && match (self.cur.is_empty(), self.int.is_empty()) {
                (true, false) => self.plan_to_create_all(),
                (false, true) => self.plan_to_delete_all(),
                _ => false,
            };
        if !planned {
            self.subjects.clear();
            self.by_cur = SlotMap::new(self.cur.slot_bound());
            self.by_int = SlotMap::new(self.int.slot_bound());
            self.schedule = Schedule::default();
        }
        planned
    }

    fn plan_to_create_all(&mut self) -> bool {
        let int = self.int;
        if int.has_claims() || int.mentioned().next().is_some() || self.cur.slot_bound() > 0 {
            return false;
        }
        let subjects = self.subjects_of_all(int, |slot| Subject {
            int: GraphSlot::Item(slot),
            support: Support::Creatable,
            end: EndValue::Intended,
            outcome: Outcome::Create,
            why: Why::Intended,
            ..Subject::nowhere()
        });
        let Some(by_int) = subjects else { return false };
        let schedule = self.schedule_of_all(StepKind::Create, &by_int, |planner, id| {
            let slot = planner.subject(id).int.slot();
            slot.map_or((&[][..], &[][..]), |slot| (int.edges_at(slot), int.incoming_at(slot)))
        });
        self.by_int = by_int;
        self.accept(schedule)
    }

    fn plan_to_delete_all(&mut self) -> bool {
        let cur = self.cur;
        if cur.slots().any(|slot| cur.state_at(slot).is_some_and(crate::ItemState::is_open)) {
            return false;
        }
        let subjects = self.subjects_of_all(cur, |slot| Subject {
            cur: GraphSlot::Item(slot),
            existence: Existence::Present,
            outcome: Outcome::Delete,
            why: Why::Removed,
            ..Subject::nowhere()
        });
        let Some(by_cur) = subjects else { return false };
        let schedule = self.schedule_of_all(StepKind::Delete, &by_cur, |planner, id| {
            let slot = planner.subject(id).cur.slot();
            slot.map_or((&[][..], &[][..]), |slot| (cur.incoming_at(slot), cur.edges_at(slot)))
        });
        self.by_cur = by_cur;
        self.accept(schedule)
    }

    /// Makes a subject of every item, unless one of them is not simple.
    fn subjects_of_all<S: State>(
        &mut self,
        graph: &Graph<S>,
        subject: impl Fn(SlotId) -> Subject,
    ) -> Option<SlotMap> {
        let mut by_slot = SlotMap::flat(graph.slot_bound());
        self.subjects.reserve(graph.len());
        for slot in graph.slots() {
            let Some(item) = graph.item_at(slot) else { continue };
            if item.external() || !graph.is_plain_at(slot) || self.configurator_for(item).is_none() {
                return None;
            }
            by_slot.insert(slot.to_index(), u32::try_from(self.subjects.len()).unwrap_or(NONE));
            self.subjects.push(subject(slot));
        }
        Some(by_slot)
    }

    /// A step for every subject, given the edges to what comes before it and to what comes after.
    fn schedule_of_all<'g>(
        &self,
        kind: StepKind,
        by_slot: &SlotMap,
        around: impl Fn(&Self, u32) -> (&'g [Edge], &'g [Edge]),
    ) -> Option<Schedule> {
        let mut needs_itself = false;
        let step_of = |edge: &Edge| by_slot.get(edge.slot.to_index());
        let schedule = Schedule::of_one_kind(kind, self.subjects.len(), |id, successor| {
            let (before, after) = around(self, id);
            let mut waits = 0;
            for other in before.iter().filter_map(step_of) {
                needs_itself |= other == id;
                waits += 1;
            }
            after.iter().filter_map(step_of).for_each(successor);
            waits
        });
        (!needs_itself).then_some(schedule)
    }

    /// Takes a schedule if it has an order. A circle has none: then some items can't be created, and the
    /// general way says which.
    fn accept(&mut self, schedule: Option<Schedule>) -> bool {
        schedule.is_some_and(|schedule| self.sort(schedule, &[]).is_ok()) && !self.schedule.serial
    }
}
