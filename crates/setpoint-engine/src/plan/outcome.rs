//! The outcome of each item: whether it is kept, created, modified, deleted or re-created.
//!
//! 1. *Classify*: what each seed wants by itself, from its own two values.
//! 2. *Lost*: what is there and may have lost a dependency, transitively. This overestimates.
//! 3. *Support*: of the lost and of those to be created, all that can be reached from what stays. Items that
//!    only hold each other up are not reached.
//! 4. *Cascade*: what must go and come back because something it needs does.
//!
//! 2 to 4 are repeated where a cascade changes what is there in the end, where an item is left as it is because its intended value
//! needs something that failed, and after an item was chosen to be deleted temporarily because no order of operations keeps it in
//! place.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::edges::Side;
use super::{Course, EndValue, Operator, Outcome, Planner, Support, Why};
use crate::metadata::Ownership;
use crate::op::Operation;
use crate::state::{Presence, Reapply};

impl Planner<'_> {
    pub(super) fn decide_and_order(&mut self) {
        let seeds = self.active.len();
        for i in 0..seeds {
            self.classify(self.active[i]);
        }
        self.exclude_cycles_of_modified();
        self.settle_claims_of_present();
        loop {
            self.find_lost();
            if self.find_supported() || self.cascade() {
                continue;
            }
            self.hold_back();
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
        if this.is_external() || !this.in_scope {
            return;
        }
        if this.is_busy() {
            if self.is_obsolete(id) {
                self.obsolete.push(id);
            }
            return;
        }
        let (present, remains) = (this.is_present(), this.remains());
        let Some(new) = self.int_item(id) else {
            if remains {
                let state = this.cur().and_then(|slot| self.cur.state_at(slot));
                let awaits_release = state.is_some_and(crate::ItemState::awaits_release);
                // Of what was there before and is gone, nothing failed.
                let why = if present || awaits_release { Why::Removed } else { Why::Cleanup };
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
        let tainted = state.is_some_and(|state| state.presence == Presence::Tainted);
        let reapply = state.map_or(Reapply::NotNeeded, |state| state.reapply);
        let unknown = state.is_some_and(crate::ItemState::is_unknown);
        let requested = self.inputs.replace.contains(new.reference());
        let (outcome, why) = if requested {
            (Outcome::Recreate, Why::Requested)
        } else if unknown && self.inputs.failed.contains(new.reference()) {
            // Nobody could see what came of it in this very run: the next one reads it back.
            return;
        } else if unknown {
            (Outcome::Recreate, Why::Unknown)
        } else if old == new && !tainted && !reapply.is_needed() {
            (Outcome::Keep, Why::Intended)
        } else if not_due {
            return;
        } else {
            match self.needs_recreate(id, reapply.is_needed()) {
                None => {
                    self.subject_mut(id).invalid = true;
                    return;
                }
                Some(recreate) => {
                    let why = match reapply {
                        _ if old != new && recreate => Why::NeedsRecreate,
                        _ if old != new => Why::Changed,
                        _ if tainted => Why::Tainted,
                        Reapply::RecreationInterrupted => Why::RecreationInterrupted,
                        Reapply::AnotherItemChanged | Reapply::NotNeeded => Why::AnotherItemChanged,
                    };
                    (if recreate { Outcome::Recreate } else { Outcome::Modify }, why)
                }
            }
        };
        let this = self.subject_mut(id);
        this.end = EndValue::Intended;
        (this.outcome, this.why) = (outcome, why);
    }

    /// Applies an item again that stays. Returns whether that changes its outcome.
    pub(super) fn repeat(&mut self, id: u32, why: Why) -> bool {
        let Some(recreate) = self.needs_recreate(id, true) else { return false };
        let outcome = if recreate { Outcome::Recreate } else { Outcome::Modify };
        if self.subject(id).outcome == outcome {
            return false;
        }
        self.activate(id);
        let this = self.subject_mut(id);
        this.end = EndValue::Intended;
        (this.outcome, this.why) = (outcome, why);
        true
    }

    /// Holds back changes of items that come after something that is missing, or failed.
    fn hold_back(&mut self) {
        for i in 0..self.active.len() {
            let id = self.active[i];
            let this = self.subject(id);
            let by_itself = matches!(
                this.why,
                Why::NeedsRecreate
                    | Why::Requested
                    | Why::Tainted
                    | Why::AnotherItemChanged
                    | Why::AppliedWith(_)
                    | Why::RecreationInterrupted
            );
            let changes = this.outcome == Outcome::Modify || this.outcome == Outcome::Recreate && by_itself;
            if !this.is_present() || !changes || self.plain_edges(id, Side::Int).is_some() {
                continue;
            }
            let mut order = self.groups(id, Side::Int).filter(|(dependency, _)| dependency.is_order());
            if order.any(|(dependency, alternatives)| !self.is_met(Side::Int, dependency, alternatives)) {
                self.subject_mut(id).course = Course::Held;
            }
        }
        // What is not modified now makes nothing anew, and has nothing applied again.
        for i in 0..self.active.len() {
            let id = self.active[i];
            let this = self.subject(id);
            if matches!(this.outcome, Outcome::Recreate | Outcome::Modify)
                && let Why::RequiredModified(of) | Why::AppliedWith(of) = this.why
                && self.subject(of).is_held()
            {
                self.subject_mut(id).course = Course::Held;
            }
        }
    }

    /// Asks the configurator whether an item is made anew to become as intended, or to be applied again; none if that panicked.
    fn needs_recreate(&mut self, id: u32, again: bool) -> Option<bool> {
        let (old, new) = (self.cur_item(id)?, self.int_item(id)?);
        let state = self.subject(id).cur().and_then(|slot| self.cur.state_at(slot));
        let ownership = state.map_or(Ownership::Owned, crate::ItemState::ownership);
        let configurator = self.configurator_for(new)?;
        let asks = || {
            configurator.needs_recreate(ownership, old, new)
                || again && configurator.recreates_to_reapply(new)
        };
        catch_unwind(AssertUnwindSafe(asks)).ok()
    }

    /// Returns whether a background operation leads somewhere the intent does not want to go any more.
    fn is_obsolete(&self, id: u32) -> bool {
        let unfinished = self.subject(id).cur().and_then(|slot| self.cur.state_at(slot)?.unfinished.as_ref());
        let intended = self.int_item(id);
        unfinished.is_some_and(|unfinished| match unfinished.operation {
            Operation::Delete => intended.is_some() && intended == self.cur_item(id),
            Operation::Create | Operation::Modify => match (&unfinished.target, intended) {
                (Some(target), Some(intended)) => target != intended,
                (_, None) => true,
                (None, Some(_)) => false,
            },
        })
    }

    /// Returns whether the item's failed operation must wait for its time.
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
        let Some(failure) = &state.last_failure else { return false };
        // Another intent than the one that failed is tried at once.
        let target = failure.target.as_ref().or((failure.operation == Operation::Create).then_some(item));
        let same_intent = match (target, self.int_item(id)) {
            (Some(target), Some(intended)) => target == intended,
            (None, Some(_)) => failure.operation != Operation::Delete,
            (_, None) => false,
        };
        same_intent && failure.due.is_none_or(|due| due > self.inputs.now)
    }

    /// Returns whether a deletion that failed must wait for its time.
    fn is_delete_not_due(&self, id: u32) -> bool {
        let Some(slot) = self.subject(id).cur() else { return false };
        let (Some(state), Some(item)) = (self.cur.state_at(slot), self.cur.item_at(slot)) else {
            return false;
        };
        if self.inputs.failed.contains(item.reference()) {
            return true;
        }
        let failed = state.last_failure.as_ref().filter(|failure| failure.operation == Operation::Delete);
        failed.is_some_and(|failure| {
            !self.inputs.retry_now && failure.due.is_none_or(|due| due > self.inputs.now)
        })
    }

    pub(super) fn delete(&mut self, id: u32, why: Why) {
        let not_due = self.is_delete_not_due(id);
        let handled = match self.cur_item(id) {
            Some(item) => self.configurator_for(item).is_some(),
            None => true,
        };
        let this = self.subject_mut(id);
        (this.outcome, this.why) = (Outcome::Delete, why);
        this.end = EndValue::Current;
        this.course = if not_due || !handled { Course::Held } else { Course::Direct };
        this.invalid |= !handled;
        this.not_due |= not_due;
        self.activate(id);
    }

    fn make_candidate(&mut self, id: u32) {
        let state = self.subject(id).cur().and_then(|slot| self.cur.state_at(slot));
        let interrupted = state.is_some_and(|state| state.reapply == Reapply::RecreationInterrupted);
        let this = self.subject_mut(id);
        this.support = Support::Candidate;
        this.end = EndValue::Intended;
        // It is tried now: what comes after it need not wait for a later run.
        this.not_due = false;
        let why = match interrupted {
            _ if this.remains() => Why::Cleanup,
            true => Why::RecreationInterrupted,
            false => Why::Intended,
        };
        (this.outcome, this.why) = (Outcome::Keep, why);
        self.activate(id);
    }

    /// Lets an item that is not there look again whether it can be created. Where what it needs did change,
    /// also before the time of its next attempt.
    pub(super) fn wake(&mut self, id: u32, changed: bool) {
        let this = self.subject(id);
        if this.is_candidate()
            || this.is_present()
            || this.operator != Operator::Plan
            || !this.is_intended()
            || this.invalid
        {
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
    pub(super) fn recreate(&mut self, id: u32, why: Why) -> bool {
        self.activate(id);
        let mut comes_back = match self.int_item(id) {
            Some(new) => !self.subject(id).invalid && self.configurator_for(new).is_some(),
            None => false,
        };
        if comes_back && !self.subject(id).takes_intent() && self.would_close_a_cycle(id) {
            comes_back = false;
        }
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
        let changes = !self.subject(id).takes_intent() && self.cur_item(id) != self.int_item(id);
        let this = self.subject_mut(id);
        this.end = EndValue::Intended;
        if this.course == Course::Switches {
            this.course = Course::Direct;
        }
        (this.outcome, this.why) = (Outcome::Recreate, why);
        if self.int.has_claims() {
            self.take_claims(id);
        }
        changes
    }
}
