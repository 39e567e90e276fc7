//! Which operation comes first.
//!
//! Each operation is a step; a *hard* edge says that one must have succeeded before another starts, a *soft*
//! edge only that they must not overlap and which is better first. What an item needs holds at every
//! instant: the old value's dependencies until it goes, the new value's from when it comes.
//!
//! A hard circle has no order. Then an item on it that would stay is deleted temporarily instead; planning
//! starts over with that. A circle through soft edges is only a matter of taste: it is broken anywhere, and
//! the run then does one thing at a time.

use rustc_hash::FxHashSet;
use setpoint_graph::{Components, Edge};

use super::cascade::Continuity;
use super::edges::Side;
use super::schedule::{Draft, Schedule, Step, StepKind};
use super::{Course, NONE, Outcome, Planner};

impl Planner<'_> {
    /// Orders the steps, or names the items that must be deleted temporarily for an order to exist.
    pub(super) fn order(&mut self) -> Result<(), Vec<u32>> {
        let mut draft = Draft {
            down: vec![NONE; self.subjects.len()],
            up: vec![NONE; self.subjects.len()],
            ..Draft::default()
        };
        for &id in &self.active {
            let this = &self.subjects[id as usize];
            let (down, up) = match this.outcome {
                Outcome::Keep if this.course == Course::Switches => (Some(StepKind::Switch), None),
                Outcome::Keep => continue,
                Outcome::Create => (None, Some(StepKind::Create)),
                Outcome::Modify => (Some(StepKind::Modify), None),
                Outcome::Delete => (this.remains().then_some(StepKind::Delete), None),
                Outcome::Recreate => (this.remains().then_some(StepKind::Delete), Some(StepKind::Create)),
            };
            if let Some(kind) = down {
                let step = draft.step(id, kind);
                draft.down[id as usize] = step;
                if kind != StepKind::Delete {
                    draft.up[id as usize] = step;
                }
            }
            if let Some(kind) = up {
                let step = draft.step(id, kind);
                draft.up[id as usize] = step;
                let down = draft.down(id);
                draft.edge(down, step, true);
            }
        }
        if draft.steps.is_empty() {
            self.schedule = Schedule::default();
            return Ok(());
        }
        for i in 0..draft.steps.len() {
            let Step { subject, kind } = draft.steps[i];
            match kind {
                StepKind::Delete => self.order_delete(&mut draft, subject),
                StepKind::Modify | StepKind::Switch => {
                    self.order_old_side(&mut draft, subject);
                    if kind == StepKind::Modify {
                        self.order_new_side(&mut draft, subject);
                    }
                }
                StepKind::Create => self.order_new_side(&mut draft, subject),
                StepKind::Gate => {}
            }
        }
        self.order_circles(&mut draft);
        self.order_after(&mut draft);
        let first = draft.steps.first().map(|step| step.kind);
        draft.crosses |=
            draft.steps.iter().any(|step| Some(step.kind) != first || step.kind == StepKind::Modify);
        if self.inputs.concurrent && draft.steps.len() > 1 {
            self.separate_related(&mut draft);
        }
        let (schedule, down) = draft.finish();
        self.sort(schedule, &down)
    }

    /// The old value goes before what it stands on does, or changes so that it can't stand on it.
    fn order_delete(&mut self, draft: &mut Draft, id: u32) {
        let this = draft.down(id);
        let returns = self.subject(id).outcome == Outcome::Recreate;
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let plain = self.plain_edges(id, Side::Cur);
        for edge in plain.unwrap_or_default() {
            let target = self.at_cur(edge.slot);
            seen.insert(target);
            if draft.kind(draft.down(target)) == Some(StepKind::Delete) && self.subject(target).is_present() {
                draft.edge(this, draft.down(target), true);
            } else {
                self.order_delete_beside(draft, id, target);
            }
        }
        let rich = plain.is_none().then(|| self.groups(id, Side::Cur));
        let existence = rich.into_iter().flatten().filter(|(dependency, _)| !dependency.is_order());
        for (dependency, alternatives) in existence {
            let mut ends = Vec::new();
            let mut lasts = false;
            for edge in alternatives {
                let target = self.at_cur(edge.slot);
                seen.insert(target);
                let down = draft.down(target);
                let holds_now = self.is_satisfied_now(target, dependency);
                let kept = match draft.kind(down) {
                    Some(StepKind::Delete) => false,
                    Some(StepKind::Modify) => {
                        !dependency.recreates_when_modified()
                            && self.end_value(target).is_some_and(|item| dependency.is_satisfied_by(item))
                    }
                    _ => true,
                };
                lasts |= holds_now && kept;
                if holds_now && !kept {
                    ends.push(down);
                } else {
                    self.order_delete_beside(draft, id, target);
                }
            }
            for down in ends {
                draft.edge(this, down, !lasts);
            }
        }
        // What it is to depend on later is related to it all the same.
        if self.cur_item(id) != self.int_item(id) {
            let later = self.groups(id, Side::Int);
            let later = later.filter(|(dependency, _)| !(returns && dependency.is_order()));
            for edge in later.flat_map(|(_, alternatives)| alternatives) {
                let target = self.at_int(edge.slot);
                if seen.insert(target) {
                    self.order_delete_beside(draft, id, target);
                }
            }
        }
    }

    /// Orders the deletion of an item and the steps of another that it does not end with. One that comes back goes after
    /// the other was modified: while that may fail, it stays.
    fn order_delete_beside(&mut self, draft: &mut Draft, id: u32, target: u32) {
        let (this, first) = (draft.down(id), draft.first(target));
        let waits = self.subject(id).outcome == Outcome::Recreate
            && draft.kind(first) == Some(StepKind::Modify)
            && self.leads_to(id, Side::Int, target);
        if waits {
            draft.edge(first, this, false);
        } else {
            draft.edge(this, first, false);
        }
    }

    /// An item that stays leaves its old support before that goes.
    fn order_old_side(&mut self, draft: &mut Draft, id: u32) {
        let this = draft.down(id);
        let real = draft.kind(this) == Some(StepKind::Modify);
        let existence = self.groups(id, Side::Cur).filter(|(dependency, _)| !dependency.is_order());
        for (dependency, alternatives) in existence {
            if !dependency.is_any_of() {
                for edge in alternatives {
                    let target = self.at_cur(edge.slot);
                    let down = draft.down(target);
                    match draft.kind(down) {
                        Some(StepKind::Delete) => draft.edge(this, down, true),
                        Some(StepKind::Modify) => {
                            if !self.end_value(target).is_some_and(|item| dependency.is_satisfied_by(item)) {
                                draft.edge(this, down, true);
                            } else if !self.leads_to(id, Side::Int, target) {
                                draft.edge(this, down, false);
                            }
                        }
                        _ => {}
                    }
                }
                continue;
            }
            let hard = match self.support(id, dependency, alternatives) {
                Continuity::Lasts => false,
                Continuity::Bridged(bridge) => {
                    let up = draft.up(bridge);
                    draft.edge(up, this, true);
                    true
                }
                Continuity::Breaks => true,
            };
            if !hard && !real {
                continue;
            }
            for edge in alternatives {
                let target = self.at_cur(edge.slot);
                let down = draft.down(target);
                let ends = match draft.kind(down) {
                    Some(StepKind::Delete) => true,
                    Some(StepKind::Modify) => {
                        !self.end_value(target).is_some_and(|item| dependency.is_satisfied_by(item))
                    }
                    _ => false,
                };
                if ends {
                    draft.edge(this, down, hard);
                } else if real && !self.leads_to(id, Side::Int, target) {
                    let first = if down == NONE { draft.up(target) } else { down };
                    draft.edge(this, first, false);
                }
            }
        }
    }

    /// The new value comes after what it stands on, and after whoever held what it claims let go.
    fn order_new_side(&mut self, draft: &mut Draft, id: u32) {
        let this = draft.up(id);
        let plain = self.plain_edges(id, Side::Int);
        for edge in plain.unwrap_or_default() {
            let target = self.at_int(edge.slot);
            let up = draft.up(target);
            match draft.kind(up) {
                Some(StepKind::Create) => draft.edge(up, this, true),
                Some(StepKind::Modify) => draft.edge(up, this, !self.subject(target).is_present()),
                _ => {}
            }
        }
        let rich = plain.is_none().then(|| self.groups(id, Side::Int));
        for (dependency, alternatives) in rich.into_iter().flatten() {
            if dependency.is_any_of() {
                self.order_alternatives(draft, id, dependency, alternatives);
                continue;
            }
            for edge in alternatives {
                let target = self.at_int(edge.slot);
                let up = draft.up(target);
                let hard = match draft.kind(up) {
                    // What is there already need not wait for what waits for it.
                    Some(StepKind::Modify | StepKind::Create) if dependency.is_order() => {
                        self.subject(id).is_candidate() || !self.may_wait_for(draft, target, id)
                    }
                    Some(StepKind::Modify) => !self.is_satisfied_now(target, dependency),
                    Some(StepKind::Create) => true,
                    _ => continue,
                };
                draft.edge(up, this, hard);
            }
        }
        // So is what the value depends on that could not be created.
        if self.subject(id).is_known() && !self.subject(id).remains() {
            for edge in self.groups(id, Side::Cur).flat_map(|(_, alternatives)| alternatives) {
                let target = self.at_cur(edge.slot);
                let (down, up) = (draft.down(target), draft.up(target));
                draft.edge(if up == NONE { down } else { up }, this, false);
            }
        }
        if !self.cur.has_claims() {
            return;
        }
        let (cur, Some(new)) = (self.cur, self.int_item(id)) else { return };
        for key in new.claims() {
            for &claimant in cur.claimants(key) {
                let holder = self.at_cur(claimant);
                draft.edge(draft.down(holder), this, true);
            }
        }
    }

    /// Returns whether an item that changes in this plan may have to wait for another one, by what both are to depend on.
    fn may_wait_for(&mut self, draft: &Draft, from: u32, id: u32) -> bool {
        let mut seen: FxHashSet<u32> = FxHashSet::from_iter([from]);
        let mut todo = vec![from];
        while let Some(at) = todo.pop() {
            for edge in self.groups(at, Side::Int).flat_map(|(_, alternatives)| alternatives) {
                let target = self.at_int(edge.slot);
                if target == id {
                    return true;
                }
                if draft.up(target) != NONE && seen.insert(target) {
                    todo.push(target);
                }
            }
        }
        false
    }

    fn order_alternatives(
        &mut self,
        draft: &mut Draft,
        id: u32,
        dependency: &setpoint_graph::Dependency,
        alternatives: &[Edge],
    ) {
        let this = draft.up(id);
        let mut chosen: Option<(u32, u32)> = None;
        let mut stable = false;
        for edge in alternatives {
            let target = self.at_int(edge.slot);
            if !self.end_value(target).is_some_and(|item| dependency.is_satisfied_by(item)) {
                continue;
            }
            stable |= self.subject(target).outcome != Outcome::Recreate
                && self.is_satisfied_now(target, dependency);
            let candidate = (self.subject(target).derived, target);
            if draft.up(target) != NONE && chosen.is_none_or(|chosen| candidate < chosen) {
                chosen = Some(candidate);
            }
        }
        let needed = chosen.filter(|_| !stable).map_or(NONE, |(_, target)| target);
        for edge in alternatives {
            let target = self.at_int(edge.slot);
            let (down, up) = (draft.down(target), draft.up(target));
            if target == needed {
                draft.edge(up, this, true);
            } else if up == NONE {
                draft.edge(down, this, false);
            } else if draft.kind(up) != Some(StepKind::Switch) {
                let (mine, theirs) = (self.subject(id).derived, self.subject(target).derived);
                if mine == 0 || theirs <= mine {
                    draft.edge(up, this, false);
                } else {
                    draft.crosses = true;
                    draft.edge(this, up, false);
                    if down != up {
                        draft.edge(down, this, false);
                    }
                }
            }
        }
    }

    /// An item that comes to need what may stand on it does so when that has something else to stand on.
    ///
    /// I stands on E or H. While H is made anew, I only stands on E; if E were modified then to need I, and H did
    /// not come back, the two would hold each other up.
    fn order_circles(&mut self, draft: &mut Draft) {
        let modified = draft.steps.iter().filter(|step| step.kind == StepKind::Modify);
        let gaining: FxHashSet<u32> =
            modified.map(|step| step.subject).filter(|subject| self.gains.contains(subject)).collect();
        if gaining.is_empty() {
            return;
        }
        let mut roots: Vec<u32> = gaining.iter().copied().collect();
        roots.sort_unstable();
        let mut circles: Vec<FxHashSet<u32>> = Vec::new();
        Components::new(|id| self.held_up_by(id).into_iter()).visit(roots, |component| {
            if component.len() > 1 {
                circles.push(component.iter().copied().collect());
            }
        });
        for circle in circles {
            let mut bridges: Vec<u32> =
                circle.iter().filter_map(|&id| self.bridge(draft, &circle, id)).collect();
            bridges.sort_unstable();
            for bridge in bridges {
                for &id in circle.intersection(&gaining) {
                    draft.edge(draft.up(bridge), draft.up(id), true);
                }
            }
        }
    }

    /// What comes in this plan for an item of a circle to stand on, where it has nothing else outside of it.
    fn bridge(&mut self, draft: &Draft, circle: &FxHashSet<u32>, id: u32) -> Option<u32> {
        let side = self.side(id);
        for (dependency, alternatives) in
            self.groups(id, side).filter(|(dependency, _)| dependency.is_any_of())
        {
            let (mut lasts, mut inside) = (false, false);
            let mut bridge: Option<(u32, u32)> = None;
            for edge in alternatives {
                let target = self.target(side, edge.slot);
                if circle.contains(&target) {
                    inside = true;
                } else if self.end_value(target).is_some_and(|item| dependency.is_satisfied_by(item)) {
                    let comes = draft.kind(draft.up(target)) == Some(StepKind::Create);
                    let candidate = (self.subject(target).derived, target);
                    lasts |= !comes;
                    if comes && bridge.is_none_or(|earlier| candidate < earlier) {
                        bridge = Some(candidate);
                    }
                }
            }
            if let (true, false, Some((_, target))) = (inside, lasts, bridge) {
                return Some(target);
            }
        }
        None
    }

    pub(super) fn is_satisfied_now(&self, target: u32, dependency: &setpoint_graph::Dependency) -> bool {
        self.subject(target).is_present()
            && self.cur_item(target).is_some_and(|item| dependency.is_satisfied_by(item))
    }

    fn leads_to(&mut self, id: u32, side: Side, target: u32) -> bool {
        let mut edges = self.groups(id, side).flat_map(|(_, alternatives)| alternatives);
        edges.any(|edge| self.target(side, edge.slot) == target)
    }
}
