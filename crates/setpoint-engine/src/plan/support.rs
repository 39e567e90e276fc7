//! Support: which items are there in the end. First all that may have lost a dependency are marked; then those of them,
//! and of the items to be created, that have what they need.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;
use setpoint_graph::{Components, Dependency, Edge, ItemRef};

use super::edges::Side;
use super::{Course, EndValue, NONE, Operator, Outcome, Planner, Support, Why};

impl<'a> Planner<'a> {
    /// Marks what is there and may have lost a dependency.
    pub(super) fn find_lost(&mut self) {
        let mut todo: Vec<u32> = Vec::new();
        let mut suspects: Vec<u32> = Vec::new();
        for i in 0..self.active.len() {
            let id = self.active[i];
            let this = self.subject_mut(id);
            this.support = this.support.reset();
        }
        for i in 0..self.active.len() {
            let id = self.active[i];
            let this = self.subject(id);
            if this.stays() {
                todo.push(id);
            }
            if this.outcome == Outcome::Delete
                || this.outcome == Outcome::Modify
                || this.takes_intent()
                || this.is_changed()
            {
                self.push_present_dependents(id, &mut todo);
            }
        }
        loop {
            while let Some(id) = todo.pop() {
                let this = self.subject(id);
                if this.is_lost() || !this.remains() || this.operator != Operator::Plan {
                    continue;
                }
                if this.outcome == Outcome::Delete || this.is_candidate() {
                    continue;
                }
                let mut suspect = self.gains.contains(&id);
                if self.has_lost_a_dependency(id, &mut suspect) {
                    if self.subject(id).is_present() {
                        self.subject_mut(id).support = Support::Lost;
                        self.activate(id);
                        self.push_present_dependents(id, &mut todo);
                    } else {
                        // Parts of it are left, and what it stood on goes.
                        self.delete(id, Why::Cleanup);
                    }
                } else if suspect {
                    suspects.push(id);
                }
            }
            // What lost one of several alternatives, or gained a dependency, may stand on itself now.
            let suspects = std::mem::take(&mut suspects);
            for id in self.standing_on_themselves(suspects) {
                self.subject_mut(id).support = Support::Lost;
                self.activate(id);
                self.push_present_dependents(id, &mut todo);
            }
            if todo.is_empty() {
                return;
            }
        }
    }

    fn push_present_dependents(&mut self, id: u32, todo: &mut Vec<u32>) {
        for edge in self.dependents_cur(id) {
            let dependent = self.at_cur(edge.slot);
            let this = self.subject(dependent);
            if !this.is_lost() && this.outcome != Outcome::Delete && this.remains() {
                todo.push(dependent);
            }
        }
        // Also those that are to depend on it from now on.
        for edge in self.dependents_int(id) {
            let dependent = self.at_int(edge.slot);
            let this = self.subject(dependent);
            if !this.is_lost() && this.takes_intent() && this.stays() {
                todo.push(dependent);
            }
        }
    }

    fn has_lost_a_dependency(&mut self, id: u32, suspect: &mut bool) -> bool {
        let side = self.side(id);
        if let Some(edges) = self.plain_edges(id, side) {
            return edges.iter().any(|edge| {
                let target = self.target(side, edge.slot);
                !self.is_there_in_the_end(target)
            });
        }
        let existence = self.groups(id, side).filter(|(dependency, _)| !dependency.is_order());
        for (dependency, alternatives) in existence {
            if !self.is_met(side, dependency, alternatives) {
                return true;
            }
            *suspect |= dependency.is_any_of();
        }
        false
    }

    /// Which of these items may be held up, in the end, by what they hold up.
    fn standing_on_themselves(&mut self, mut suspects: Vec<u32>) -> Vec<u32> {
        suspects.retain(|&id| !self.subject(id).is_lost());
        let mut in_circles: FxHashSet<u32> = FxHashSet::default();
        let mut on_itself: FxHashSet<u32> = FxHashSet::default();
        let held_up_by = |id| {
            let others = self.held_up_by(id);
            if others.contains(&id) {
                on_itself.insert(id);
            }
            others.into_iter()
        };
        Components::new(held_up_by).visit(suspects.iter().copied(), |component| {
            if component.len() > 1 {
                in_circles.extend(component);
            }
        });
        suspects.retain(|id| in_circles.contains(id) || on_itself.contains(id));
        suspects
    }

    /// What satisfies a dependency of the item in the end.
    pub(super) fn held_up_by(&mut self, id: u32) -> Vec<u32> {
        let side = self.side(id);
        let mut found = Vec::new();
        let creates = self.subject(id).is_candidate();
        let counts = |dependency: &Dependency| creates || !dependency.is_order();
        for (dependency, alternatives) in self.groups(id, side).filter(|(dependency, _)| counts(dependency)) {
            for edge in alternatives {
                let target = self.target(side, edge.slot);
                if self.end_value(target).is_some_and(|value| dependency.is_satisfied_by(value)) {
                    found.push(target);
                }
            }
        }
        found
    }

    /// Finds what can be there in the end, of the lost and of those to be created. Returns whether something is left as it is that was
    /// to change, so that all of it has to be found anew.
    pub(super) fn find_supported(&mut self) -> bool {
        self.met.clear();
        self.reset_holders();
        let claims = self.int.has_claims();
        for i in 0..self.active.len() {
            let id = self.active[i];
            if self.subject(id).is_candidate() {
                // It may have been given up in an earlier round: if it comes, then as it is intended.
                self.subject_mut(id).end = EndValue::Intended;
            }
            self.wake_dependents_of_change(id);
            let this = self.subject(id);
            if claims && this.stays() && !this.is_lost() && this.takes_intent() {
                self.take_claims(id);
            }
        }
        // Where it matters who comes first, that does not depend on how the graphs were made.
        let ordered = claims
            || self.active.iter().any(|&id| {
                let this = self.subject(id);
                (this.is_candidate() || this.is_lost()) && self.plain_edges(id, self.side(id)).is_none()
            });
        let mut ready = ReadySubjects { ordered, heap: BinaryHeap::new(), stack: Vec::new() };
        let mut derived = 0;
        let mut counted = 0;
        let mut deferred: Vec<u32> = Vec::new();
        self.lost_may_stay = true;
        loop {
            // Waking adds to those that are looked at: they are counted as they come.
            loop {
                let id = if let Some(&id) = self.active.get(counted) {
                    counted += 1;
                    id
                } else if let Some(id) = self.woken.pop() {
                    id
                } else {
                    break;
                };
                let this = self.subject(id);
                if (this.is_candidate() || this.is_lost()) && !this.is_satisfied() {
                    self.count_unmet(id);
                    if self.subject(id).unmet == 0 {
                        ready.push(self, id);
                    }
                }
            }
            let Some(id) = ready.pop() else {
                // Nothing more can make the lost ones stay: what they hold is free.
                if std::mem::replace(&mut self.lost_may_stay, false) && !deferred.is_empty() {
                    for id in std::mem::take(&mut deferred) {
                        ready.push(self, id);
                    }
                    continue;
                }
                break;
            };
            if self.subject(id).is_satisfied() || self.subject(id).unmet > 0 {
                continue;
            }
            if claims {
                let conflict = match self.side(id) {
                    Side::Int => self.claim_conflict(id),
                    Side::Cur => self.taken_meanwhile(id),
                };
                if let Some(holder) = conflict {
                    self.subject_mut(id).claimed_by = holder;
                    deferred.push(id);
                    continue;
                }
                self.take_claims(id);
            }
            derived += 1;
            let this = self.subject_mut(id);
            this.support = this.support.satisfied();
            this.derived = derived;
            if this.is_candidate() {
                this.claimed_by = NONE;
            }
            self.satisfy_dependents(id, &mut ready);
        }
        if self.leave_what_needs_what_failed() {
            return true;
        }
        for i in 0..self.active.len() {
            let id = self.active[i];
            let this = self.subject(id);
            match this.support {
                Support::Lost => self.delete(id, Why::Lost),
                Support::Creatable => {
                    let remains = this.remains();
                    self.subject_mut(id).outcome = if remains { Outcome::Recreate } else { Outcome::Create };
                }
                // It can't be created now: what is left of it is in the way of others.
                Support::Candidate if this.remains() => self.delete(id, Why::Cleanup),
                Support::Candidate => self.subject_mut(id).outcome = Outcome::Keep,
                Support::Settled | Support::Retained => {}
            }
        }
        false
    }

    /// Leaves items as they are whose intended value needs something that failed. A failure takes nothing away: they go only if what
    /// their present value needs goes, too.
    fn leave_what_needs_what_failed(&mut self) -> bool {
        let mut lost = Vec::new();
        for i in 0..self.active.len() {
            let id = self.active[i];
            let this = self.subject(id);
            let loses = this.support == Support::Lost && this.is_present() && this.takes_intent();
            if loses && !self.left_for_failed.contains(&id) && self.needs_what_failed(id) {
                lost.push(id);
            }
        }
        // What is as intended lost something because of others: it has it again where these stay as they are.
        let (changed, others): (Vec<u32>, Vec<u32>) =
            lost.into_iter().partition(|&id| self.cur_item(id) != self.int_item(id));
        let left = if changed.is_empty() { others } else { changed };
        for &id in &left {
            self.leave(id, Why::Changed);
        }
        !left.is_empty()
    }

    /// Leaves an item as it is, with what its present value needs and nobody wants any more.
    fn leave(&mut self, id: u32, why: Why) {
        let mut todo = vec![(id, why)];
        while let Some((id, why)) = todo.pop() {
            self.left_for_failed.insert(id);
            let this = self.subject_mut(id);
            (this.outcome, this.why) = (Outcome::Keep, why);
            (this.end, this.course) = (EndValue::Current, Course::Held);
            for (dependency, alternatives) in self.groups(id, Side::Cur) {
                if dependency.is_order() || self.is_met(Side::Cur, dependency, alternatives) {
                    continue;
                }
                for edge in alternatives {
                    let target = self.at_cur(edge.slot);
                    let this = self.subject(target);
                    let removed = this.outcome == Outcome::Delete && this.why == Why::Removed;
                    if removed && this.is_present() && !self.left_for_failed.contains(&target) {
                        todo.push((target, Why::Removed));
                    }
                }
            }
        }
    }

    /// Returns whether something failed that the intended value of an item needs, or that what it needs waits for in turn.
    fn needs_what_failed(&mut self, id: u32) -> bool {
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            let present = self.subject(id).is_present();
            for (dependency, alternatives) in self.groups(id, Side::Int) {
                if dependency.is_order() && present || self.is_met(Side::Int, dependency, alternatives) {
                    continue;
                }
                for edge in alternatives {
                    let target = self.at_int(edge.slot);
                    if self.subject(target).is_external() || !self.subject(target).is_intended() {
                        continue;
                    }
                    if self.has_failed(target) {
                        return true;
                    }
                    if seen.insert(target) {
                        todo.push(target);
                    }
                }
            }
        }
        false
    }

    fn has_failed(&self, id: u32) -> bool {
        self.subject(id).not_due || self.inputs.failed.contains(self.reference(id))
    }

    /// Lets items look again that are not there and may have waited for this one.
    fn wake_dependents_of_change(&mut self, id: u32) {
        let this = self.subject(id);
        if this.is_present() && this.outcome != Outcome::Delete {
            let changed = this.is_changed() || matches!(this.outcome, Outcome::Modify | Outcome::Recreate);
            for edge in self.dependents_int(id) {
                let dependent = self.at_int(edge.slot);
                self.wake(dependent, changed);
            }
        }
        if self.int.has_claims() {
            let this = self.subject(id);
            let changed = this.is_changed() || this.outcome != Outcome::Keep;
            if let (true, Some(old)) = (changed || !this.is_present(), self.cur_item(id)) {
                self.wake_claimants(old.claims(), changed);
            } else if self.subject(id).is_changed()
                && let Some(new) = self.int_item(id)
            {
                self.wake_claimants(new.claims(), changed);
            }
        }
    }

    fn count_unmet(&mut self, id: u32) {
        let side = self.side(id);
        let mut unmet = 0;
        if let Some(edges) = self.plain_edges(id, side) {
            for edge in edges {
                let target = self.target(side, edge.slot);
                unmet += u32::from(!self.is_there_in_the_end(target));
            }
            self.subject_mut(id).unmet = unmet;
            return;
        }
        // What is there already stays, whatever becomes of what it came after.
        let creates = self.subject(id).is_candidate();
        for (position, (dependency, alternatives)) in (0_u32..).zip(self.groups(id, side)) {
            if dependency.is_order() && !creates {
                continue;
            }
            if !self.is_met(side, dependency, alternatives) {
                unmet += 1;
            } else if dependency.is_any_of() {
                self.met.insert((id, position));
            }
        }
        self.subject_mut(id).unmet = unmet;
    }

    /// Counts this item, which is there in the end, as a satisfied dependency of those that wait for it.
    fn satisfy_dependents(&mut self, id: u32, ready: &mut ReadySubjects<'a>) {
        let Some(value) = self.end_value(id) else { return };
        let created = self.subject(id).is_candidate();
        for edge in self.dependents_int(id) {
            let dependent = self.at_int(edge.slot);
            if created {
                self.wake(dependent, true);
            }
            self.satisfy(dependent, Side::Int, edge, value, ready);
        }
        for edge in self.dependents_cur(id) {
            let dependent = self.at_cur(edge.slot);
            self.satisfy(dependent, Side::Cur, edge, value, ready);
        }
    }

    fn satisfy(
        &mut self,
        dependent: u32,
        side: Side,
        edge: Edge,
        value: &setpoint_graph::ItemHandle,
        ready: &mut ReadySubjects<'a>,
    ) {
        let this = self.subject(dependent);
        // Those not counted yet will see the value when they are.
        if this.is_satisfied()
            || this.unmet == 0
            || !(this.is_candidate() || this.is_lost())
            || self.side(dependent) != side
        {
            return;
        }
        let plain = match side {
            Side::Cur => self.cur.is_plain_at(edge.slot),
            Side::Int => self.int.is_plain_at(edge.slot),
        };
        if plain {
            let this = self.subject_mut(dependent);
            this.unmet -= 1;
            if this.unmet == 0 {
                ready.push(self, dependent);
            }
            return;
        }
        let (dependency, position) = match side {
            Side::Cur => (
                self.cur.dependency_at(edge.slot, edge.position),
                self.cur.dependency_index(edge.slot, edge.position),
            ),
            Side::Int => (
                self.int.dependency_at(edge.slot, edge.position),
                self.int.dependency_index(edge.slot, edge.position),
            ),
        };
        let counts = |dependency: &&Dependency| this.is_candidate() || !dependency.is_order();
        let Some(dependency) =
            dependency.filter(counts).filter(|dependency| dependency.is_satisfied_by(value))
        else {
            return;
        };
        let position = u32::try_from(position).unwrap_or(NONE);
        if dependency.is_any_of() && !self.met.insert((dependent, position)) {
            return;
        }
        let this = self.subject_mut(dependent);
        this.unmet -= 1;
        if this.unmet == 0 {
            ready.push(self, dependent);
        }
    }
}

/// Items whose dependencies are all satisfied: by reference where claims make the order matter.
struct ReadySubjects<'a> {
    ordered: bool,
    heap: BinaryHeap<Reverse<(bool, &'a ItemRef, u32)>>,
    stack: Vec<u32>,
}

impl<'a> ReadySubjects<'a> {
    fn push(&mut self, planner: &Planner<'a>, id: u32) {
        if self.ordered {
            // What is there already goes before what would be new.
            self.heap.push(Reverse((planner.subject(id).is_candidate(), planner.reference(id), id)));
        } else {
            self.stack.push(id);
        }
    }

    fn pop(&mut self) -> Option<u32> {
        if self.ordered { self.heap.pop().map(|Reverse((_, _, id))| id) } else { self.stack.pop() }
    }
}
