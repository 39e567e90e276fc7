//! Items that wait for themselves: they are named and left out.

use rustc_hash::FxHashSet;
use setpoint_graph::{ItemHandle, SlotId};

use super::relation::gains_dependencies;
use super::{EndValue, Outcome, Planner, Why};
use crate::selection::Selection;

impl Planner<'_> {
    /// Leaves modified items as they are whose new dependencies close a cycle.
    pub(super) fn exclude_cycles_of_modified(&mut self) {
        let roots: Vec<SlotId> = self
            .active
            .iter()
            .filter(|&&id| {
                self.subject(id).is_present()
                    && matches!(self.subject(id).outcome, Outcome::Modify | Outcome::Recreate)
            })
            .filter(|&&id| self.adds_dependencies(id))
            .filter_map(|&id| self.subject(id).int())
            .collect();
        if roots.is_empty() {
            return;
        }
        for &root in &roots {
            let id = self.at_int(root);
            self.gains.insert(id);
        }
        self.leave_out_cycles(roots.iter().copied());
        if *self.inputs.selection == Selection::All && !self.active.iter().any(|&id| self.is_kept_back(id)) {
            return;
        }
        for root in roots {
            let id = self.at_int(root);
            if !self.subject(id).takes_intent() {
                continue;
            }
            let fallen = self.fallen_with(id);
            if fallen.iter().any(|&other| self.is_kept_back(other)) {
                // What it is to need is not changed by this run, and needs its present value.
                self.tangled.insert(id);
                let this = self.subject_mut(id);
                (this.invalid, this.end, this.outcome) = (true, EndValue::Current, Outcome::Keep);
            }
        }
    }

    /// Returns whether this plan leaves an item with another value than the intended one: it is not selected, or not due.
    fn is_kept_back(&self, id: u32) -> bool {
        let this = self.subject(id);
        this.is_present()
            && !this.takes_intent()
            && this.outcome == Outcome::Keep
            && this.is_intended()
            && self.cur_item(id) != self.int_item(id)
    }

    /// The item and what it needs that would fall if the item were not there; nothing if it could do without.
    fn fallen_with(&mut self, id: u32) -> FxHashSet<u32> {
        let mut needed = vec![id];
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([id]);
        let mut next = 0;
        while let Some(&at) = needed.get(next) {
            next += 1;
            let side = self.side(at);
            for edge in self.groups(at, side).flat_map(|(_, alternatives)| alternatives) {
                let target = self.target(side, edge.slot);
                if self.value_if_it_comes(target).is_some() && seen.insert(target) {
                    needed.push(target);
                }
            }
        }
        let mut standing: FxHashSet<u32> = FxHashSet::default();
        loop {
            let before = standing.len();
            // What is needed comes after what needs it: seen from behind, most stand at the first look.
            for &at in needed[1..].iter().rev() {
                if !standing.contains(&at) && self.stands_on(at, &standing) {
                    standing.insert(at);
                }
            }
            if standing.len() == before {
                break;
            }
        }
        if self.stands_on(id, &standing) {
            return FxHashSet::default();
        }
        needed.into_iter().filter(|at| !standing.contains(at)).collect()
    }

    /// Returns whether these items satisfy every dependency of an item.
    fn stands_on(&mut self, id: u32, standing: &FxHashSet<u32>) -> bool {
        let side = self.side(id);
        self.groups(id, side).all(|(dependency, alternatives)| {
            alternatives.iter().any(|edge| {
                let target = self.target(side, edge.slot);
                standing.contains(&target)
                    && self.value_if_it_comes(target).is_some_and(|value| dependency.is_satisfied_by(value))
            })
        })
    }

    /// The value an item has in the end, or would have if it could be created.
    fn value_if_it_comes(&self, id: u32) -> Option<&ItemHandle> {
        let comes = self.subject(id).is_candidate().then(|| self.int_item(id)).flatten();
        self.end_value(id).or(comes)
    }

    /// Returns whether an item that is there would close a cycle with its intended value; then it is left out.
    pub(super) fn would_close_a_cycle(&mut self, id: u32) -> bool {
        if !self.adds_dependencies(id) {
            return false;
        }
        self.gains.insert(id);
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
                this.support = this.support.withdrawn();
                this.end = EndValue::Current;
                if this.outcome != Outcome::Delete {
                    this.outcome = Outcome::Keep;
                }
                if this.remains() && !this.is_present() && !this.is_busy() {
                    // What a failed creation left of it is of no use to anyone.
                    self.delete(id, Why::Cleanup);
                }
                self.activate(id);
            }
            self.cycles.push(cycle);
        }
    }

    fn adds_dependencies(&self, id: u32) -> bool {
        let values = self.cur_item(id).zip(self.int_item(id));
        values.is_some_and(|(old, new)| gains_dependencies(old, new))
    }

    /// Tells the stuck ones that wait for each other from those that wait for something else.
    pub(super) fn name_cycles_of_stuck(&mut self) {
        let stuck = self.active.iter().filter(|&&id| {
            let this = self.subject(id);
            this.is_candidate() && !this.is_satisfied() && !self.cycle_of.contains_key(&id)
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
