//! Items that wait for themselves: they are named and left out.

use rustc_hash::FxHashSet;
use setpoint_graph::{ItemRef, SlotId};

use super::edges::Side;
use super::{Fate, Planner, Why};

impl Planner<'_> {
    /// Leaves modified items as they are whose new dependencies close a cycle.
    pub(super) fn exclude_cycles_of_modified(&mut self) {
        let roots: Vec<SlotId> = self
            .active
            .iter()
            .filter(|&&id| {
                self.subject(id).present && matches!(self.subject(id).fate, Fate::Modify | Fate::Recreate)
            })
            .filter(|&&id| self.adds_dependencies(id))
            .filter_map(|&id| self.subject(id).int())
            .collect();
        if roots.is_empty() {
            return;
        }
        self.leave_out_cycles(roots);
    }

    /// Whether an item that is there would close a cycle with its intended value; then it is left out.
    pub(super) fn would_close_a_cycle(&mut self, id: u32) -> bool {
        if !self.adds_dependencies(id) {
            return false;
        }
        let root = self.subject(id).int();
        self.leave_out_cycles(root);
        self.subject(id).invalid
    }

    fn leave_out_cycles(&mut self, roots: impl IntoIterator<Item = SlotId>) {
        for cycle in self.int.cycles_from(roots) {
            for &member in cycle.slots() {
                let id = self.at_int(member);
                self.cycle_of.insert(id, self.cycles.len());
                let this = self.subject_mut(id);
                this.invalid = true;
                this.candidate = false;
                this.takes_intent = false;
                if this.fate != Fate::Delete {
                    this.fate = Fate::Keep;
                }
                if this.remains && !this.present && !this.busy {
                    // What a failed creation left of it is of no use to anyone.
                    self.delete(id, Why::Cleanup);
                }
                self.activate(id);
            }
            self.cycles.push(cycle);
        }
    }

    fn adds_dependencies(&self, id: u32) -> bool {
        let old: FxHashSet<&ItemRef> = self.groups(id, Side::Cur).flat_map(|(d, _)| d.targets()).collect();
        self.groups(id, Side::Int).flat_map(|(d, _)| d.targets()).any(|target| !old.contains(target))
    }

    /// Tells the stuck ones that wait for each other from those that wait for something else.
    pub(super) fn name_cycles_of_stuck(&mut self) {
        let stuck = self.active.iter().filter(|&&id| {
            let this = self.subject(id);
            this.candidate && !this.alive && !self.cycle_of.contains_key(&id)
        });
        let stuck: Vec<SlotId> = stuck.filter_map(|&id| self.subject(id).int()).collect();
        if stuck.is_empty() {
            return;
        }
        for cycle in self.int.cycles_from(stuck) {
            let number = self.cycles.len();
            for &member in cycle.slots() {
                let id = self.at_int(member);
                if let std::collections::hash_map::Entry::Vacant(e) = self.cycle_of.entry(id) {
                    e.insert(number);
                    self.subject_mut(id).invalid = true;
                    self.activate(id);
                }
            }
            if !self.cycles.contains(&cycle) {
                self.cycles.push(cycle);
            }
        }
    }

    pub(super) fn cycle_of(&self, id: u32) -> Option<&setpoint_graph::Cycle> {
        self.cycle_of.get(&id).and_then(|&number| self.cycles.get(number))
    }
}
