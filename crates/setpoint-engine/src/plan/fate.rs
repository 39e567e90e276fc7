//! What becomes of each item.
//!
//! 1. *Classify*: what each seed wants by itself, from its own two values.
//! 2. *Lost*: what is there and may have lost a dependency, transitively. This overestimates.
//! 3. *Alive*: of the lost and of those to be created, all that can be reached from what stays. Items that
//!    only hold each other up are not reached.
//! 4. *Cascade*: what must go and come back because something it needs does.
//!
//! 2 to 4 are repeated where a cascade changes what is there in the end, and after an item was chosen to be
//! deleted temporarily because no order of operations keeps it in place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustc_hash::FxHashSet;
use setpoint_graph::{Dependency, Edge, ItemRef, SlotId};

use super::{Fate, NONE, Planner, Why, slot};
use crate::op::Operation;

/// Whose edges count for an item in the end: those of its current value or of its intended one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Cur,
    Int,
}

impl<'a> Planner<'a> {
    pub(super) fn decide_and_order(&mut self) {
        let seeds = self.active.len();
        for i in 0..seeds {
            self.classify(self.active[i]);
        }
        self.exclude_cycles_of_modified();
        self.settle_claims_of_present();
        loop {
            self.find_lost();
            self.find_alive();
            if self.cascade() {
                continue;
            }
            let Err(split) = self.order() else { break };
            for subject in split {
                self.recreate(subject, Why::BreaksCycle);
            }
        }
        self.name_cycles_of_stuck();
    }

    /// What the item wants by itself.
    fn classify(&mut self, id: u32) {
        let this = self.subject(id);
        if this.external || !this.in_scope {
            return;
        }
        if this.busy {
            if self.is_obsolete(id) {
                self.obsolete.push(id);
            }
            return;
        }
        let (present, remains) = (this.present, this.remains);
        let Some(new) = self.int_item(id) else {
            if remains {
                let why = if present { Why::Removed } else { Why::Cleanup };
                self.delete(id, why);
            }
            return;
        };
        if self.configurator_for(new).is_none() {
            self.subject_mut(id).invalid = true;
            return;
        }
        let not_due = self.is_not_due(id);
        self.subject_mut(id).not_due = not_due;
        if !present {
            if !not_due {
                self.make_candidate(id);
            }
            return;
        }
        let Some(old) = self.cur_item(id) else { return };
        let state = self.subject(id).cur().and_then(|slot| self.cur.state_at(slot));
        let tainted = state.is_some_and(|state| state.tainted);
        let unknown = state.is_some_and(crate::ItemState::is_unknown);
        let requested = self.inputs.replace.contains(new.reference());
        let (fate, why) = if requested {
            (Fate::Recreate, Why::Requested)
        } else if unknown {
            (Fate::Recreate, Why::Unknown)
        } else if old == new && !tainted {
            (Fate::Keep, Why::Intended)
        } else if not_due {
            return;
        } else {
            match self.needs_recreate(id) {
                None => {
                    self.subject_mut(id).invalid = true;
                    return;
                }
                Some(true) => (Fate::Recreate, Why::NeedsRecreate),
                Some(false) if old == new => (Fate::Modify, Why::Tainted),
                Some(false) => (Fate::Modify, Why::Changed),
            }
        };
        let this = self.subject_mut(id);
        this.takes_intent = true;
        (this.fate, this.why) = (fate, why);
    }

    /// Asks the configurator; none if that panicked.
    fn needs_recreate(&mut self, id: u32) -> Option<bool> {
        let (old, new) = (self.cur_item(id)?, self.int_item(id)?);
        let configurator = self.configurator_for(new)?;
        catch_unwind(AssertUnwindSafe(|| configurator.needs_recreate(old, new))).ok()
    }

    /// Whether a background operation leads somewhere the intent does not want to go any more.
    fn is_obsolete(&self, id: u32) -> bool {
        let flight = self.subject(id).cur().and_then(|slot| self.cur.state_at(slot)?.flight.as_ref());
        let intended = self.int_item(id);
        flight.is_some_and(|flight| match flight.operation {
            Operation::Delete => intended.is_some() && intended == self.cur_item(id),
            Operation::Create | Operation::Modify => match (&flight.target, intended) {
                (Some(target), Some(intended)) => target != intended,
                (_, None) => true,
                (None, Some(_)) => false,
            },
        })
    }

    /// Whether the item's failed operation must wait for its time.
    fn is_not_due(&self, id: u32) -> bool {
        let Some(slot) = self.subject(id).cur() else { return false };
        let (Some(state), Some(item)) = (self.cur.state_at(slot), self.cur.item_at(slot)) else {
            return false;
        };
        if self.inputs.failed.contains(item.reference()) {
            return true;
        }
        if self.inputs.retry_now {
            return false;
        }
        if let Some(drift) = &state.drift
            && !drift.repaired
            && drift.due > self.inputs.now
        {
            return true;
        }
        let Some(trouble) = &state.trouble else { return false };
        // Another intent than the one that failed is tried at once.
        let target = trouble.target.as_ref().or((trouble.operation == Operation::Create).then_some(item));
        let same_intent = match (target, self.int_item(id)) {
            (Some(target), Some(intended)) => target == intended,
            (None, Some(_)) => trouble.operation != Operation::Delete,
            (_, None) => false,
        };
        same_intent && trouble.due.is_none_or(|due| due > self.inputs.now)
    }

    /// Whether a deletion that failed must wait for its time.
    fn is_delete_not_due(&self, id: u32) -> bool {
        let Some(slot) = self.subject(id).cur() else { return false };
        let (Some(state), Some(item)) = (self.cur.state_at(slot), self.cur.item_at(slot)) else {
            return false;
        };
        if self.inputs.failed.contains(item.reference()) {
            return true;
        }
        let failed = state.trouble.as_ref().filter(|trouble| trouble.operation == Operation::Delete);
        failed.is_some_and(|trouble| {
            !self.inputs.retry_now && trouble.due.is_none_or(|due| due > self.inputs.now)
        })
    }

    fn delete(&mut self, id: u32, why: Why) {
        let not_due = self.is_delete_not_due(id);
        let handled = match self.cur_item(id) {
            Some(item) => self.configurator_for(item).is_some(),
            None => true,
        };
        let this = self.subject_mut(id);
        (this.fate, this.why) = (Fate::Delete, why);
        this.takes_intent = false;
        this.held = not_due || !handled;
        this.invalid |= !handled;
        this.not_due |= not_due;
        self.activate(id);
    }

    fn make_candidate(&mut self, id: u32) {
        let this = self.subject_mut(id);
        this.candidate = true;
        this.takes_intent = true;
        (this.fate, this.why) = (Fate::Keep, if this.remains { Why::Cleanup } else { Why::Intended });
        self.activate(id);
    }

    /// Lets an item that is not there look again whether it can be created. Where what it needs did change,
    /// also before the time of its next attempt.
    fn wake(&mut self, id: u32, changed: bool) {
        let this = self.subject(id);
        if this.candidate || this.present || this.busy || this.external || !this.int_item || this.invalid {
            return;
        }
        let Some(item) = self.int_item(id) else { return };
        if self.inputs.failed.contains(item.reference()) || !changed && self.is_not_due(id) {
            return;
        }
        if self.configurator_for(item).is_none() {
            self.subject_mut(id).invalid = true;
            self.activate(id);
            return;
        }
        self.make_candidate(id);
        self.woken.push(id);
    }

    /// Deletes and re-creates an item that stays; or only deletes it where it can't come back.
    /// Returns whether that changes what is there in the end.
    fn recreate(&mut self, id: u32, why: Why) -> bool {
        self.activate(id);
        let mut comes_back = match self.int_item(id) {
            Some(new) => !self.subject(id).invalid && self.configurator_for(new).is_some(),
            None => false,
        };
        if comes_back
            && self.int.has_claims()
            && let Some(holder) = self.claim_conflict(id)
        {
            self.subject_mut(id).claimed_by = holder;
            comes_back = false;
        }
        if !comes_back {
            self.delete(id, Why::Lost);
            return true;
        }
        let changes = !self.subject(id).takes_intent && self.cur_item(id) != self.int_item(id);
        let this = self.subject_mut(id);
        this.takes_intent = true;
        this.switches = false;
        (this.fate, this.why) = (Fate::Recreate, why);
        if self.int.has_claims() {
            self.take_claims(id);
        }
        changes
    }

    pub(super) fn side(&self, id: u32) -> Side {
        if self.subject(id).takes_intent { Side::Int } else { Side::Cur }
    }

    /// The dependencies of an item's value on one side, each with its alternatives.
    pub(super) fn groups(
        &self,
        id: u32,
        side: Side,
    ) -> impl Iterator<Item = (&'a Dependency, &'a [Edge])> + Clone + use<'a> {
        let this = self.subject(id);
        let (cur, int) = (this.cur(), this.int());
        let of_cur = (side == Side::Cur).then_some(cur).flatten().map(|slot| self.cur.dependencies_at(slot));
        let of_int = (side == Side::Int).then_some(int).flatten().map(|slot| self.int.dependencies_at(slot));
        of_cur.into_iter().flatten().chain(of_int.into_iter().flatten())
    }

    /// The edges of an item's value on one side, where it only wants other items to exist.
    pub(super) fn plain_edges(&self, id: u32, side: Side) -> Option<&'a [Edge]> {
        let this = self.subject(id);
        match side {
            Side::Cur => {
                this.cur().filter(|&slot| self.cur.is_plain_at(slot)).map(|slot| self.cur.edges_at(slot))
            }
            Side::Int => {
                this.int().filter(|&slot| self.int.is_plain_at(slot)).map(|slot| self.int.edges_at(slot))
            }
        }
    }

    pub(super) fn target(&mut self, side: Side, slot: SlotId) -> u32 {
        match side {
            Side::Cur => self.at_cur(slot),
            Side::Int => self.at_int(slot),
        }
    }

    /// Whether a dependency is satisfied by what is there in the end, as far as that is known yet.
    fn is_met(&mut self, side: Side, dependency: &Dependency, alternatives: &[Edge]) -> bool {
        alternatives.iter().any(|edge| {
            let target = self.target(side, edge.slot);
            self.end_value(target).is_some_and(|value| dependency.is_satisfied_by(value))
        })
    }

    /// The dependents of an item by its slot in the current graph.
    pub(super) fn dependents_cur(&mut self, id: u32) -> impl Iterator<Item = Edge> + use<'a> {
        let this = self.subject(id).cur;
        let edges = if this == NONE { &[][..] } else { self.cur.incoming_at(slot(this)) };
        edges.iter().copied()
    }

    pub(super) fn dependents_int(&self, id: u32) -> impl Iterator<Item = Edge> + use<'a> {
        let this = self.subject(id).int;
        let edges = if this == NONE { &[][..] } else { self.int.incoming_at(slot(this)) };
        edges.iter().copied()
    }

    /// Leaves modified items as they are whose new dependencies close a cycle.
    fn exclude_cycles_of_modified(&mut self) {
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
                self.activate(id);
            }
            self.cycles.push(cycle);
        }
    }

    fn adds_dependencies(&self, id: u32) -> bool {
        let old: FxHashSet<&ItemRef> = self.groups(id, Side::Cur).flat_map(|(d, _)| d.targets()).collect();
        self.groups(id, Side::Int).flat_map(|(d, _)| d.targets()).any(|target| !old.contains(target))
    }

    /// Lets present items acquire new claims only where nobody keeps them; of two, the smaller reference.
    fn settle_claims_of_present(&mut self) {
        if !self.int.has_claims() {
            return;
        }
        let mut acquiring: Vec<(&ItemRef, u32)> = self
            .active
            .iter()
            .filter(|&&id| {
                self.subject(id).present && matches!(self.subject(id).fate, Fate::Modify | Fate::Recreate)
            })
            .map(|&id| (self.reference(id), id))
            .collect();
        acquiring.sort_unstable();
        // An item that has to give up its new claim keeps its old ones, which may stop another in turn.
        loop {
            self.reset_holders();
            let mut stopped = false;
            for &(_, id) in &acquiring {
                if !self.subject(id).takes_intent {
                    continue;
                }
                if let Some(holder) = self.claim_conflict(id) {
                    let this = self.subject_mut(id);
                    this.takes_intent = false;
                    this.claimed_by = holder;
                    this.fate = Fate::Keep;
                    stopped = true;
                } else {
                    self.take_claims(id);
                }
            }
            if !stopped {
                return;
            }
        }
    }

    /// Who else holds, in the end, a resource that the item's intended value claims.
    fn claim_conflict(&mut self, id: u32) -> Option<u32> {
        let (cur, wanted) = (self.cur, self.int_item(id)?.claims());
        for key in wanted {
            if let Some(&holder) = self.holders.get(key)
                && holder != id
            {
                return Some(holder);
            }
            for &claimant in cur.claimants(key) {
                let holder = self.at_cur(claimant);
                let this = self.subject(holder);
                // What is busy, or can't be deleted now, still holds what it claims.
                let keeps = if this.busy || this.held {
                    this.remains
                } else if this.lost && !this.alive {
                    // As long as it may still turn out to stay, nobody takes what it holds.
                    self.lost_may_stay
                } else {
                    self.end_value(holder).is_some_and(|value| value.claims().contains(key))
                };
                if holder != id && keeps {
                    return Some(holder);
                }
            }
        }
        None
    }

    /// Who took, in the course of planning, what the item's present value holds.
    fn taken_meanwhile(&self, id: u32) -> Option<u32> {
        let held = self.cur_item(id)?.claims();
        held.iter().filter_map(|key| self.holders.get(key)).copied().find(|&holder| holder != id)
    }

    /// Starts over with what background operations are about to hold.
    fn reset_holders(&mut self) {
        self.holders.clear();
        if !self.int.has_claims() {
            return;
        }
        for item in &self.cur.shared().open {
            let flight = self.cur.state(item).and_then(|state| state.flight.as_ref());
            let target =
                flight.filter(|flight| flight.live.0.is_some()).and_then(|flight| flight.target.clone());
            if let (Some(target), Some(id)) = (target, self.at(item)) {
                self.holders.extend(target.claims().iter().map(|key| (key.clone(), id)));
            }
        }
    }

    fn take_claims(&mut self, id: u32) {
        let item = match self.side(id) {
            Side::Int => self.int_item(id),
            Side::Cur => self.cur_item(id),
        };
        for key in item.map_or(&[][..], setpoint_graph::ItemHandle::claims) {
            self.holders.insert(key.clone(), id);
        }
    }

    /// Marks what is there and may have lost a dependency.
    fn find_lost(&mut self) {
        let mut todo: Vec<u32> = Vec::new();
        let mut suspects: Vec<u32> = Vec::new();
        for i in 0..self.active.len() {
            let id = self.active[i];
            let this = self.subject_mut(id);
            (this.lost, this.alive) = (false, false);
        }
        for i in 0..self.active.len() {
            let id = self.active[i];
            let this = self.subject(id);
            if this.stays() {
                todo.push(id);
            }
            if this.fate == Fate::Delete || this.fate == Fate::Modify || this.takes_intent || this.event {
                self.push_present_dependents(id, &mut todo);
            }
        }
        loop {
            while let Some(id) = todo.pop() {
                let this = self.subject(id);
                if this.lost || !this.remains || this.busy || this.external {
                    continue;
                }
                if this.fate == Fate::Delete || this.candidate {
                    continue;
                }
                let mut suspect = false;
                if self.has_lost_a_dependency(id, &mut suspect) {
                    if self.subject(id).present {
                        self.subject_mut(id).lost = true;
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
            // What lost one of several alternatives may stand on one that stands on itself.
            for id in std::mem::take(&mut suspects) {
                if !self.subject(id).lost && self.stands_on_itself(id) {
                    self.subject_mut(id).lost = true;
                    self.activate(id);
                    self.push_present_dependents(id, &mut todo);
                }
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
            if !this.lost && this.fate != Fate::Delete && this.remains {
                todo.push(dependent);
            }
        }
        // Also those that are to depend on it from now on.
        for edge in self.dependents_int(id) {
            let dependent = self.at_int(edge.slot);
            let this = self.subject(dependent);
            if !this.lost && this.takes_intent && this.stays() {
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
        for (dependency, alternatives) in self.groups(id, side) {
            if !self.is_met(side, dependency, alternatives) {
                return true;
            }
            *suspect |= dependency.is_any_of();
        }
        false
    }

    /// Whether all that holds the item up is, in the end, held up by it.
    fn stands_on_itself(&mut self, id: u32) -> bool {
        let mut seen = FxHashSet::default();
        let mut todo = vec![id];
        while let Some(at) = todo.pop() {
            let side = self.side(at);
            for (dependency, alternatives) in self.groups(at, side) {
                for edge in alternatives {
                    let target = self.target(side, edge.slot);
                    if target == id {
                        return true;
                    }
                    let holds = self.end_value(target).is_some_and(|value| dependency.is_satisfied_by(value));
                    if holds && seen.insert(target) {
                        todo.push(target);
                    }
                }
            }
        }
        false
    }

    /// Finds what can be there in the end, of the lost and of those to be created.
    fn find_alive(&mut self) {
        self.met.clear();
        self.reset_holders();
        let claims = self.int.has_claims();
        for i in 0..self.active.len() {
            let id = self.active[i];
            self.wake_dependents_of_change(id);
            let this = self.subject(id);
            if claims && this.stays() && !this.lost && this.takes_intent {
                self.take_claims(id);
            }
        }
        // Where it matters who comes first, that does not depend on how the graphs were made.
        let ordered = claims
            || self.active.iter().any(|&id| {
                let this = self.subject(id);
                (this.candidate || this.lost) && self.plain_edges(id, self.side(id)).is_none()
            });
        let mut ready = Ready { ordered, heap: BinaryHeap::new(), stack: Vec::new() };
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
                if (this.candidate || this.lost) && !this.alive {
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
            if self.subject(id).alive || self.subject(id).unmet > 0 {
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
            this.alive = true;
            this.derived = derived;
            if this.candidate {
                this.claimed_by = NONE;
            }
            self.satisfy_dependents(id, &mut ready);
        }
        for i in 0..self.active.len() {
            let id = self.active[i];
            let this = self.subject(id);
            match (this.alive, this.lost, this.candidate) {
                (false, true, _) => self.delete(id, Why::Lost),
                (true, _, true) => {
                    let remains = this.remains;
                    self.subject_mut(id).fate = if remains { Fate::Recreate } else { Fate::Create };
                }
                // It can't be created now: what is left of it is in the way of others.
                (false, _, true) if this.remains => self.delete(id, Why::Cleanup),
                (false, _, true) => self.subject_mut(id).fate = Fate::Keep,
                _ => {}
            }
        }
    }

    /// Lets items look again that are not there and may have waited for this one.
    fn wake_dependents_of_change(&mut self, id: u32) {
        let this = self.subject(id);
        if this.present && this.fate != Fate::Delete {
            let changed = this.event || matches!(this.fate, Fate::Modify | Fate::Recreate);
            for edge in self.dependents_int(id) {
                let dependent = self.at_int(edge.slot);
                self.wake(dependent, changed);
            }
        }
        if self.int.has_claims() {
            let this = self.subject(id);
            let changed = this.event || this.fate != Fate::Keep;
            if let (true, Some(old)) = (changed || !this.present, self.cur_item(id)) {
                self.wake_claimants(old.claims(), changed);
            } else if self.subject(id).event
                && let Some(new) = self.int_item(id)
            {
                self.wake_claimants(new.claims(), changed);
            }
        }
    }

    fn wake_claimants(&mut self, keys: &[setpoint_graph::ResourceKey], changed: bool) {
        let int = self.int;
        for &claimant in keys.iter().flat_map(|key| int.claimants(key)) {
            let id = self.at_int(claimant);
            self.wake(id, changed);
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
        for (position, (dependency, alternatives)) in (0_u32..).zip(self.groups(id, side)) {
            if !self.is_met(side, dependency, alternatives) {
                unmet += 1;
            } else if dependency.is_any_of() {
                self.met.insert((id, position));
            }
        }
        self.subject_mut(id).unmet = unmet;
    }

    /// Tells those that wait that this one is there in the end.
    fn satisfy_dependents(&mut self, id: u32, ready: &mut Ready<'a>) {
        let Some(value) = self.end_value(id) else { return };
        let created = self.subject(id).candidate;
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
        ready: &mut Ready<'a>,
    ) {
        let this = self.subject(dependent);
        // Those not counted yet will see the value when they are.
        if this.alive || this.unmet == 0 || !(this.candidate || this.lost) || self.side(dependent) != side {
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
        let Some(dependency) = dependency.filter(|dependency| dependency.is_satisfied_by(value)) else {
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

    /// Re-creates what stands on something that goes and comes back.
    /// Returns whether that changes what is there in the end.
    fn cascade(&mut self) -> bool {
        let mut changed = false;
        let mut todo: Vec<u32> = Vec::new();
        for &id in &self.active {
            let this = self.subject(id);
            let disturbs = this.vanished && this.alive
                || (this.present || this.external)
                    && (this.fate != Fate::Keep || this.external && this.event);
            if disturbs {
                todo.push(id);
            }
        }
        while let Some(id) = todo.pop() {
            for edge in self.dependents_cur(id) {
                let dependent = self.at_cur(edge.slot);
                let this = self.subject(dependent);
                if !this.stays() || this.fate == Fate::Recreate {
                    continue;
                }
                if let Some(why) = self.must_be_recreated(dependent, id, edge) {
                    changed |= self.recreate(dependent, why);
                    todo.push(dependent);
                }
            }
        }
        changed
    }

    /// Whether an item that stays must be deleted meanwhile, because of one that it stands on.
    fn must_be_recreated(&mut self, id: u32, disturbed: u32, edge: Edge) -> Option<Why> {
        let dependency = self.cur.dependency_at(edge.slot, edge.position)?;
        let this = self.subject(disturbed);
        let modified = this.fate == Fate::Modify
            || this.external
                && this
                    .cur()
                    .and_then(|slot| self.cur.state_at(slot))
                    .is_some_and(|state| state.externally_modified);
        if modified && dependency.recreates_when_modified() {
            return Some(Why::RequiredModified(disturbed));
        }
        if this.external {
            return None;
        }
        if !dependency.is_any_of() {
            let gone = (this.fate == Fate::Recreate || this.vanished)
                && (self.subject(id).fate == Fate::Keep || self.depends_in_the_end(id, disturbed));
            return gone.then_some(Why::Cascade(disturbed));
        }
        let position = self.cur.dependency_index(edge.slot, edge.position);
        let slot = self.subject(id).cur()?;
        let (dependency, alternatives) = self.cur.dependencies_at(slot).nth(position)?;
        match self.support(dependency, alternatives) {
            Support::Lasts => None,
            Support::Bridged(_) => {
                if self.subject(id).fate == Fate::Keep {
                    self.subject_mut(id).switches = true;
                    self.activate(id);
                }
                None
            }
            Support::Breaks => {
                let modified_away =
                    self.subject(id).fate == Fate::Modify && !self.depends_in_the_end(id, disturbed);
                (!modified_away).then_some(Why::Cascade(disturbed))
            }
        }
    }

    fn depends_in_the_end(&mut self, id: u32, on: u32) -> bool {
        let side = self.side(id);
        self.groups(id, side)
            .flat_map(|(_, alternatives)| alternatives)
            .any(|edge| self.target(side, edge.slot) == on)
    }

    /// What becomes of the alternatives, by the current graph, that a dependency stands on.
    pub(super) fn support(&mut self, dependency: &Dependency, alternatives: &[Edge]) -> Support {
        let mut bridge: Option<(u32, u32)> = None;
        for edge in alternatives {
            let id = self.at_cur(edge.slot);
            let this = self.subject(id);
            let old = this.present && self.cur_item(id).is_some_and(|item| dependency.is_satisfied_by(item));
            let new = self.end_value(id).is_some_and(|item| dependency.is_satisfied_by(item));
            let derived = this.derived;
            match (old, new) {
                (true, true) if this.fate != Fate::Recreate => return Support::Lasts,
                (false, true) if bridge.is_none_or(|(earlier, _)| derived < earlier) => {
                    bridge = Some((derived, id));
                }
                _ => {}
            }
        }
        bridge.map_or(Support::Breaks, |(_, id)| Support::Bridged(id))
    }

    /// Tells the stuck ones that wait for each other from those that wait for something else.
    fn name_cycles_of_stuck(&mut self) {
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

/// Whether a dependency with alternatives holds all the way.
pub(super) enum Support {
    /// One alternative is there from beginning to end.
    Lasts,
    /// All alternatives end, but this other one is there before.
    Bridged(u32),
    /// There is a time without any.
    Breaks,
}

/// Items whose dependencies are all satisfied: by reference where claims make the order matter.
struct Ready<'a> {
    ordered: bool,
    heap: BinaryHeap<Reverse<(bool, &'a ItemRef, u32)>>,
    stack: Vec<u32>,
}

impl<'a> Ready<'a> {
    fn push(&mut self, planner: &Planner<'a>, id: u32) {
        if self.ordered {
            // What is there already goes before what would be new.
            self.heap.push(Reverse((planner.subject(id).candidate, planner.reference(id), id)));
        } else {
            self.stack.push(id);
        }
    }

    fn pop(&mut self) -> Option<u32> {
        if self.ordered { self.heap.pop().map(|Reverse((_, _, id))| id) } else { self.stack.pop() }
    }
}
