//! The two plans that touch everything: creating all where nothing exists, and deleting all.
//!
//! There nothing has to be decided about any single item as long as all of them only want others to exist:
//! counting edges is enough. Whatever is not that simple is left to the general way, which gives the same plan.

use setpoint_graph::SlotId;

use super::schedule::{Draft, StepKind};
use super::subject::{Fate, NONE, SlotMap, Subject, Why};
use super::{Planner, Schedule};
use crate::selection::Selection;

impl Planner<'_> {
    /// Plans to create or delete everything, if that is all there is to do; returns whether it did.
    pub(super) fn plan_in_bulk(&mut self) -> bool {
        let ledger = self.cur.shared();
        let simple = *self.inputs.selection == Selection::All
            && self.inputs.replace.is_empty()
            && self.inputs.failed.is_empty()
            && ledger.open.is_empty()
            && ledger.waiting.is_empty()
            && ledger.dirty.is_empty();
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
        self.by_int = SlotMap::flat(int.slot_bound());
        self.subjects.reserve(int.len());
        for slot in int.slots() {
            let Some(item) = int.item_at(slot) else { continue };
            let needs_itself = int.edges_at(slot).iter().any(|edge| edge.slot == slot);
            if needs_itself
                || item.external()
                || !int.is_plain_at(slot)
                || self.configurator_for(item).is_none()
            {
                return false;
            }
            let id = u32::try_from(self.subjects.len()).unwrap_or(NONE);
            self.by_int.insert(slot.to_index(), id);
            self.subjects.push(Subject {
                int: slot.to_index(),
                int_item: true,
                candidate: true,
                takes_intent: true,
                alive: true,
                fate: Fate::Create,
                why: Why::Intended,
                ..Subject::nowhere()
            });
        }
        let by_int = std::mem::replace(&mut self.by_int, SlotMap::new(0));
        let of = |slot: SlotId| by_int.get(slot.to_index());
        let draft = Draft::of_one_kind(StepKind::Create, self.subjects.len(), |id, draft| {
            let edges = self.subjects[id as usize].int().map_or(&[][..], |slot| int.edges_at(slot));
            for target in edges.iter().filter_map(|edge| of(edge.slot)) {
                draft.edge(target, id, true);
            }
        });
        self.by_int = by_int;
        // A circle has no order: then some items can't be created, and the general way says which.
        self.sort(draft).is_ok() && !self.schedule.serial
    }

    fn plan_to_delete_all(&mut self) -> bool {
        let cur = self.cur;
        self.by_cur = SlotMap::flat(cur.slot_bound());
        self.subjects.reserve(cur.len());
        for slot in cur.slots() {
            let Some(item) = cur.item_at(slot) else { continue };
            let open = cur.state_at(slot).is_some_and(crate::ItemState::is_open);
            if open || item.external() || !cur.is_plain_at(slot) || self.configurator_for(item).is_none() {
                return false;
            }
            let id = u32::try_from(self.subjects.len()).unwrap_or(NONE);
            self.by_cur.insert(slot.to_index(), id);
            self.subjects.push(Subject {
                cur: slot.to_index(),
                cur_item: true,
                present: true,
                remains: true,
                fate: Fate::Delete,
                why: Why::Removed,
                ..Subject::nowhere()
            });
        }
        let by_cur = std::mem::replace(&mut self.by_cur, SlotMap::new(0));
        let of = |slot: SlotId| by_cur.get(slot.to_index());
        let draft = Draft::of_one_kind(StepKind::Delete, self.subjects.len(), |id, draft| {
            let edges = self.subjects[id as usize].cur().map_or(&[][..], |slot| cur.edges_at(slot));
            for target in edges.iter().filter_map(|edge| of(edge.slot)) {
                draft.edge(id, target, true);
            }
        });
        self.by_cur = by_cur;
        self.sort(draft).is_ok() && !self.schedule.serial
    }
}
