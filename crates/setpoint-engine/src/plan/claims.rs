//! Resources that only one item can hold: who holds them in the end.
//!
//! Whoever is there and stays keeps what it holds; of several that want a free one, the smaller reference gets it.

use setpoint_graph::{ItemRef, ResourceKey};

use super::edges::Side;
use super::{EndValue, Outcome, Planner};

impl Planner<'_> {
    /// Lets present items acquire new claims only where nobody keeps them; of two, the smaller reference.
    pub(super) fn settle_claims_of_present(&mut self) {
        if !self.int.has_claims() {
            return;
        }
        let mut acquiring: Vec<(&ItemRef, u32)> = self
            .active
            .iter()
            .filter(|&&id| {
                self.subject(id).is_present()
                    && matches!(self.subject(id).outcome, Outcome::Modify | Outcome::Recreate)
            })
            .map(|&id| (self.reference(id), id))
            .collect();
        acquiring.sort_unstable();
        // An item that has to give up its new claim keeps its old ones, which may stop another in turn.
        loop {
            self.reset_holders();
            let mut stopped = false;
            for &(_, id) in &acquiring {
                if !self.subject(id).takes_intent() {
                    continue;
                }
                if let Some(holder) = self.claim_conflict(id) {
                    let this = self.subject_mut(id);
                    this.end = EndValue::Current;
                    this.claimed_by = holder;
                    this.outcome = Outcome::Keep;
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
    pub(super) fn claim_conflict(&mut self, id: u32) -> Option<u32> {
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
                // What is busy, or can't be deleted now, still holds what it claims; so do parts of something that are not cleaned
                // up yet.
                let stays_partial =
                    !this.is_present() && this.outcome == Outcome::Keep && !this.is_candidate();
                let keeps = if this.is_busy() || this.is_held() || stays_partial {
                    this.remains()
                } else if this.is_lost() && !this.is_satisfied() {
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
    pub(super) fn taken_meanwhile(&self, id: u32) -> Option<u32> {
        let held = self.cur_item(id)?.claims();
        held.iter().filter_map(|key| self.holders.get(key)).copied().find(|&holder| holder != id)
    }

    /// Starts over with what background operations are about to hold.
    pub(super) fn reset_holders(&mut self) {
        self.holders.clear();
        if !self.int.has_claims() {
            return;
        }
        for item in &self.cur.shared().open {
            let unfinished = self.cur.state(item).and_then(|state| state.unfinished.as_ref());
            let target = unfinished
                .filter(|unfinished| unfinished.live.0.is_some())
                .and_then(|unfinished| unfinished.target.clone());
            if let (Some(target), Some(id)) = (target, self.at(item)) {
                self.holders.extend(target.claims().iter().map(|key| (key.clone(), id)));
            }
        }
    }

    pub(super) fn take_claims(&mut self, id: u32) {
        let item = match self.side(id) {
            Side::Int => self.int_item(id),
            Side::Cur => self.cur_item(id),
        };
        for key in item.map_or(&[][..], setpoint_graph::ItemHandle::claims) {
            self.holders.insert(key.clone(), id);
        }
    }

    pub(super) fn wake_claimants(&mut self, keys: &[ResourceKey], changed: bool) {
        let int = self.int;
        for &claimant in keys.iter().flat_map(|key| int.claimants(key)) {
            let id = self.at_int(claimant);
            self.wake(id, changed);
        }
    }
}
