//! What must go and come back because something it stands on does.

use rustc_hash::FxHashSet;
use setpoint_graph::{Dependency, Edge};

use super::{Course, Outcome, Planner, Why};

impl Planner<'_> {
    /// Re-creates what stands on something that goes and comes back.
    /// Returns whether that changes what is there in the end.
    pub(super) fn cascade(&mut self) -> bool {
        let mut changed = false;
        let mut todo: Vec<u32> = Vec::new();
        for &id in &self.active {
            // What a failed operation left parts of comes back too.
            if self.disturbs(id) || self.subject(id).outcome == Outcome::Recreate {
                todo.push(id);
            }
        }
        while let Some(id) = todo.pop() {
            for edge in self.dependents_cur(id) {
                let dependent = self.at_cur(edge.slot);
                let this = self.subject(dependent);
                if !this.stays() || this.outcome == Outcome::Recreate {
                    continue;
                }
                if self.must_be_repeated(dependent, id, edge) && self.repeat(dependent, Why::AppliedWith(id))
                {
                    todo.push(dependent);
                }
                if self.disturbs(id)
                    && let Some(why) = self.must_be_recreated(dependent, id, edge)
                {
                    changed |= self.recreate(dependent, why);
                    todo.push(dependent);
                }
            }
        }
        changed
    }

    /// Returns whether something becomes of an item that those who stand on it may not outlast.
    fn disturbs(&self, id: u32) -> bool {
        let this = self.subject(id);
        this.is_vanished() && this.is_satisfied()
            || this.outcome == Outcome::Create
            || (this.is_present() || this.is_external())
                && (this.outcome != Outcome::Keep || this.is_external() && this.is_changed())
    }

    /// Returns whether an item that stays must be applied again, because of one that it comes after.
    fn must_be_repeated(&mut self, id: u32, changed: u32, edge: Edge) -> bool {
        let comes =
            matches!(self.subject(changed).outcome, Outcome::Create | Outcome::Modify | Outcome::Recreate);
        let this = self.subject(id);
        let open = match this.outcome {
            Outcome::Keep => self.cur_item(id) == self.int_item(id),
            outcome => outcome == Outcome::Modify,
        };
        comes
            && open
            && this.in_scope
            && !this.not_due
            && self.cur.dependency_at(edge.slot, edge.position).is_some_and(Dependency::repeats_when_changed)
    }

    /// Returns whether an item that stays must be deleted meanwhile, because of one that it stands on.
    fn must_be_recreated(&mut self, id: u32, disturbed: u32, edge: Edge) -> Option<Why> {
        let dependency = self.cur.dependency_at(edge.slot, edge.position)?;
        if dependency.is_order() {
            return None;
        }
        let this = self.subject(disturbed);
        let modified = this.outcome == Outcome::Modify
            || this.is_external()
                && this
                    .cur()
                    .and_then(|slot| self.cur.state_at(slot))
                    .is_some_and(|state| state.externally_modified);
        if modified && dependency.recreates_when_modified() {
            return Some(Why::RequiredModified(disturbed));
        }
        if this.outcome == Outcome::Create && dependency.recreates_when_modified() {
            // Something else took it away: what comes back is not what the dependent has known.
            return Some(Why::Cascade(disturbed));
        }
        if this.is_external() || this.outcome == Outcome::Create && !this.is_vanished() {
            return None;
        }
        if !dependency.is_any_of() {
            let gone = (this.outcome == Outcome::Recreate || this.is_vanished())
                && (self.subject(id).outcome == Outcome::Keep || self.depends_in_the_end(id, disturbed));
            return gone.then_some(Why::Cascade(disturbed));
        }
        let position = self.cur.dependency_index(edge.slot, edge.position);
        let slot = self.subject(id).cur()?;
        let (dependency, alternatives) = self.cur.dependencies_at(slot).nth(position)?;
        match self.support(id, dependency, alternatives) {
            Continuity::Lasts => None,
            Continuity::Bridged(_) => {
                if self.subject(id).outcome == Outcome::Keep {
                    self.subject_mut(id).course = Course::Switches;
                    self.activate(id);
                }
                None
            }
            Continuity::Breaks => {
                let modified_away =
                    self.subject(id).outcome == Outcome::Modify && !self.depends_in_the_end(id, disturbed);
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

    /// Returns whether one item may need another in the end, directly or not: then it is nothing for that to stand on.
    fn needs_in_the_end(&mut self, from: u32, id: u32) -> bool {
        // Mostly nothing needs it at all.
        if self.dependents_cur(id).next().is_none() && self.dependents_int(id).next().is_none() {
            return false;
        }
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([from]);
        let mut todo = vec![from];
        while let Some(at) = todo.pop() {
            for target in self.held_up_by(at) {
                if target == id {
                    return true;
                }
                if seen.insert(target) {
                    todo.push(target);
                }
            }
        }
        false
    }

    /// What becomes of the alternatives, by the current graph, that a dependency of an item stands on.
    pub(super) fn support(&mut self, id: u32, dependency: &Dependency, alternatives: &[Edge]) -> Continuity {
        let mut bridge: Option<(u32, u32)> = None;
        for edge in alternatives {
            let other = self.at_cur(edge.slot);
            let this = self.subject(other);
            let old = this.is_present()
                && self.cur_item(other).is_some_and(|item| dependency.is_satisfied_by(item));
            let new = self.end_value(other).is_some_and(|item| dependency.is_satisfied_by(item));
            let derived = this.derived;
            match (old, new) {
                (true, true) if this.outcome != Outcome::Recreate && !self.needs_in_the_end(other, id) => {
                    return Continuity::Lasts;
                }
                (false, true)
                    if bridge.is_none_or(|(earlier, _)| derived < earlier)
                        && !self.needs_in_the_end(other, id) =>
                {
                    bridge = Some((derived, other));
                }
                _ => {}
            }
        }
        bridge.map_or(Continuity::Breaks, |(_, id)| Continuity::Bridged(id))
    }
}

/// Whether a dependency with alternatives holds all the way.
pub(super) enum Continuity {
    /// One alternative is there from beginning to end.
    Lasts,
    /// All alternatives end, but this other one is there before.
    Bridged(u32),
    /// There is a time without any.
    Breaks,
}
