//! Seeds: the items that may differ from their intent.
//!
//! Each graph journals its changes and the current graph's planning state remembers what has been compared, so that
//! only later entries are looked at. Where a journal does not reach, or the graph is another one, all items
//! are compared.

use setpoint_graph::{Dependency, Graph, GraphId, Revision, SlotId, State, Touched};

use super::edges::Side;
use super::subject::Existence;
use super::{Attention, Planner, slot};

impl Planner<'_> {
    pub(super) fn gather_seeds(&mut self) {
        let planning = self.cur.shared();
        let own = planning.own.filter(|(id, _)| *id == self.cur.id());
        let seen_cur = own.map(|(_, revision)| revision);
        let seen_int = planning
            .intended
            .filter(|(id, _): &(GraphId, Revision)| own.is_some() && *id == self.int.id())
            .map(|(_, revision)| revision);

        let cur_changes = seen_cur.and_then(|seen| changes(self.cur, seen));
        let int_changes = seen_int.and_then(|seen| changes(self.int, seen));
        let (Some(cur_changes), Some(int_changes)) = (cur_changes, int_changes) else {
            self.compared_all = true;
            self.compare_all();
            return;
        };
        for touched in cur_changes {
            if let Some(subject) = self.touched(touched, Self::touched_slot_cur) {
                self.mark_changed(subject);
            }
        }
        for touched in int_changes {
            if let Some(subject) = self.touched(touched, Self::touched_slot_int) {
                self.activate(subject);
            }
        }
        let planning = self.cur.shared();
        for item in planning.open.iter().chain(&planning.dirty).chain(self.inputs.replace) {
            if let Some(subject) = self.at(item) {
                self.activate(subject);
            }
        }
    }

    fn touched_slot_cur(&mut self, slot: SlotId) -> Option<u32> {
        self.cur.reference_at(slot)?;
        Some(self.at_cur(slot))
    }

    fn touched_slot_int(&mut self, slot: SlotId) -> Option<u32> {
        self.int.reference_at(slot)?;
        Some(self.at_int(slot))
    }

    fn touched(&mut self, touched: Touched, at: fn(&mut Self, SlotId) -> Option<u32>) -> Option<u32> {
        match touched {
            Touched::Slot(slot) => at(self, slot),
            Touched::Gone(item) => self.at(&item),
        }
    }

    fn compare_all(&mut self) {
        let (cur, int) = (self.cur, self.int);
        let mut matched = 0;
        // Graphs with the same content were mostly filled in the same order: guess the next slot first.
        let mut guess = 0;
        for theirs in int.slots() {
            let Some(item) = int.item_at(theirs) else { continue };
            let guessed = slot(guess);
            let ours = if cur.item_at(guessed).is_some_and(|ours| ours.reference() == item.reference()) {
                Some(guessed)
            } else {
                cur.slot_of(item.reference()).filter(|&ours| cur.item_at(ours).is_some())
            };
            let same = ours.is_some_and(|ours| {
                matched += 1;
                guess = ours.to_index() + 1;
                cur.item_at(ours) == Some(item)
                    && cur.same_place(ours, int, theirs)
                    && !cur.state_at(ours).is_some_and(crate::ItemState::is_open)
            });
            if !same || item.external() {
                let subject = match ours {
                    Some(ours) => self.at_cur(ours),
                    None => self.at_int(theirs),
                };
                if item.external() {
                    self.mark_changed(subject);
                } else {
                    self.activate(subject);
                }
            }
        }
        if matched < cur.len() {
            for ours in cur.slots() {
                let subject = self.by_cur.get(ours.to_index());
                if subject.is_none()
                    && int.slot_like(cur, ours).and_then(|theirs| int.item_at(theirs)).is_none()
                {
                    let subject = self.at_cur(ours);
                    self.mark_changed(subject);
                }
            }
        }
        // External items that are gone leave dependents with a dangling edge: those must notice.
        for mentioned in cur.mentioned() {
            let subject = self.at_cur(mentioned);
            self.mark_changed(subject);
        }
        for item in self.inputs.replace {
            if let Some(subject) = self.at(item) {
                self.activate(subject);
            }
        }
    }

    /// Finds items that went by themselves because an external item did.
    pub(super) fn find_vanished(&mut self) {
        for i in 0..self.active.len() {
            let id = self.active[i];
            if let Some(slot) = self.subject(id).cur() {
                // It may have been worked on in the background when what it stands on went.
                if !self.cur.is_plain_at(slot) && self.groups(id, Side::Cur).any(|(d, _)| self.took_along(d))
                {
                    self.vanish(id);
                }
                continue;
            }
            for edge in self.dependents_cur(id) {
                let dependency = self.cur.dependency_at(edge.slot, edge.position);
                if dependency.is_some_and(|dependency| self.took_along(dependency)) {
                    let dependent = self.at_cur(edge.slot);
                    self.vanish(dependent);
                }
            }
        }
    }

    /// Returns whether whoever depends like this is gone, because the external item it stood on is.
    fn took_along(&self, dependency: &Dependency) -> bool {
        dependency.is_auto_deleted_by_external()
            && dependency.targets().iter().all(|target| !self.cur.contains(target))
    }

    fn vanish(&mut self, id: u32) {
        let this = self.subject_mut(id);
        if this.is_present() && !this.is_busy() {
            this.existence = Existence::Vanished;
            self.mark_changed(id);
        }
    }

    pub(super) fn activate(&mut self, subject: u32) {
        let this = self.subject_mut(subject);
        if this.attention == Attention::Passive {
            this.attention = Attention::Active;
            self.active.push(subject);
        }
    }

    /// Looks at an item that changed since the last run.
    fn mark_changed(&mut self, subject: u32) {
        self.activate(subject);
        self.subject_mut(subject).attention = Attention::Changed;
    }
}

/// What was touched in a graph since it was seen; none if its journal does not reach back so far.
fn changes<S: State>(graph: &Graph<S>, seen: Revision) -> Option<Vec<Touched>> {
    Some(graph.touched_since(seen)?.cloned().collect())
}
