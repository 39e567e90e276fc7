//! Which operation comes first.
//!
//! Each operation is a step; a *hard* edge says that one must have succeeded before another starts, a *soft*
//! edge only that they must not overlap and which is better first. What an item needs holds at every
//! instant: the old value's dependencies until it goes, the new value's from when it comes.
//!
//! A hard circle has no order. Then an item on it that would stay is deleted temporarily instead; planning
//! starts over with that. A circle through soft edges is only a matter of taste: it is broken anywhere, and
//! the run then does one thing at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use setpoint_graph::{Edge, ItemRef};

use super::fate::{Side, Support};
use super::{Fate, NONE, Planner};

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StepKind {
    Delete,
    Modify,
    Create,
    /// Nothing: the item's support changes from one alternative to another here.
    Switch,
    /// Nothing: keeps operations apart that are related through an unchanged item.
    Gate,
}

/// One step of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) subject: u32,
    pub(crate) kind: StepKind,
}

/// The steps, an order that is safe one by one, and what each waits for.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) steps: Vec<Step>,
    /// The steps in order.
    pub(crate) order: Vec<u32>,
    /// Where each step's successors begin in `successors`.
    starts: Vec<u32>,
    /// Each with whether the edge is hard.
    successors: Vec<(u32, bool)>,
    /// How many steps each waits for.
    pub(crate) waits: Vec<u32>,
    /// Overlapping steps might be related.
    pub(crate) serial: bool,
    /// Some item comes before an alternative that it might have stood on: then the order of steps does not
    /// follow the dependencies everywhere.
    pub(crate) crosses: bool,
}

impl Schedule {
    /// The steps that wait for one, each with whether they need it to succeed.
    pub(crate) fn successors(&self, step: u32) -> &[(u32, bool)] {
        let step = step as usize;
        &self.successors[self.starts[step] as usize..self.starts[step + 1] as usize]
    }

    fn new(steps: Vec<Step>, edges: &[(u32, u32, bool)]) -> Self {
        let mut starts = vec![0_u32; steps.len() + 1];
        let mut waits = vec![0_u32; steps.len()];
        for &(from, to, _) in edges {
            starts[from as usize + 1] += 1;
            waits[to as usize] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut successors = vec![(NONE, false); edges.len()];
        for &(from, to, hard) in edges {
            let at = &mut next[from as usize];
            successors[*at as usize] = (to, hard);
            *at += 1;
        }
        Self { steps, order: Vec::new(), starts, successors, waits, serial: false, crosses: false }
    }
}

/// Steps and edges while they are collected.
#[derive(Default)]
pub(super) struct Draft {
    steps: Vec<Step>,
    edges: Vec<(u32, u32, bool)>,
    /// The step at which each subject's old value ends, and the one at which its new value begins.
    down: Vec<u32>,
    up: Vec<u32>,
    crosses: bool,
}

impl Draft {
    /// A draft with one step of the same kind for each subject, and the edges that are drawn for each.
    pub(super) fn of_one_kind(kind: StepKind, subjects: usize, draw: impl Fn(u32, &mut Self)) -> Self {
        let mut draft = Self::default();
        draft.edges.reserve(subjects * 2);
        let count = u32::try_from(subjects).unwrap_or(NONE);
        draft.steps.extend((0..count).map(|subject| Step { subject, kind }));
        for subject in 0..count {
            draw(subject, &mut draft);
        }
        draft
    }

    fn step(&mut self, subject: u32, kind: StepKind) -> u32 {
        self.steps.push(Step { subject, kind });
        u32::try_from(self.steps.len() - 1).unwrap_or(NONE)
    }

    pub(super) fn edge(&mut self, from: u32, to: u32, hard: bool) {
        if from != to && from != NONE && to != NONE {
            self.edges.push((from, to, hard));
        }
    }

    fn down(&self, subject: u32) -> u32 {
        self.down.get(subject as usize).copied().unwrap_or(NONE)
    }

    fn up(&self, subject: u32) -> u32 {
        self.up.get(subject as usize).copied().unwrap_or(NONE)
    }

    fn kind(&self, step: u32) -> Option<StepKind> {
        self.steps.get(step as usize).map(|step| step.kind)
    }
}

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
            let (down, up) = match this.fate {
                Fate::Keep if this.switches => (Some(StepKind::Switch), None),
                Fate::Keep => continue,
                Fate::Create => (None, Some(StepKind::Create)),
                Fate::Modify => (Some(StepKind::Modify), None),
                Fate::Delete => (this.remains.then_some(StepKind::Delete), None),
                Fate::Recreate => (this.remains.then_some(StepKind::Delete), Some(StepKind::Create)),
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
        if self.inputs.concurrent && draft.steps.len() > 1 {
            self.keep_related_apart(&mut draft);
        }
        self.sort(draft)
    }

    /// The old value goes before what it stands on does, or changes.
    fn order_delete(&mut self, draft: &mut Draft, id: u32) {
        let this = draft.down(id);
        let plain = self.plain_edges(id, Side::Cur);
        for edge in plain.unwrap_or_default() {
            let target = self.at_cur(edge.slot);
            let (down, up) = (draft.down(target), draft.up(target));
            let gone = draft.kind(down) == Some(StepKind::Delete) && self.subject(target).present;
            draft.edge(this, if down == NONE { up } else { down }, gone);
        }
        let rich = plain.is_none().then(|| self.groups(id, Side::Cur));
        for (dependency, alternatives) in rich.into_iter().flatten() {
            let mut ends = Vec::new();
            let mut lasts = false;
            for edge in alternatives {
                let target = self.at_cur(edge.slot);
                let (down, up) = (draft.down(target), draft.up(target));
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
                    draft.edge(this, if down == NONE { up } else { down }, false);
                }
            }
            for down in ends {
                draft.edge(this, down, !lasts);
            }
        }
        // What it is to depend on later is related to it all the same.
        if self.cur_item(id) != self.int_item(id) {
            for edge in self.groups(id, Side::Int).flat_map(|(_, alternatives)| alternatives) {
                let target = self.at_int(edge.slot);
                let (down, up) = (draft.down(target), draft.up(target));
                draft.edge(this, if down == NONE { up } else { down }, false);
            }
        }
    }

    /// An item that stays leaves its old support before that goes.
    fn order_old_side(&mut self, draft: &mut Draft, id: u32) {
        let this = draft.down(id);
        let real = draft.kind(this) == Some(StepKind::Modify);
        for (dependency, alternatives) in self.groups(id, Side::Cur) {
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
            let hard = match self.support(dependency, alternatives) {
                Support::Lasts => false,
                Support::Bridged(bridge) => {
                    let up = draft.up(bridge);
                    draft.edge(up, this, true);
                    true
                }
                Support::Breaks => true,
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
                Some(StepKind::Modify) => draft.edge(up, this, !self.subject(target).present),
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
                    Some(StepKind::Modify) => !self.is_satisfied_now(target, dependency),
                    Some(StepKind::Create) => true,
                    _ => continue,
                };
                draft.edge(up, this, hard);
            }
        }
        // So is what the value depends on that could not be created.
        if self.subject(id).cur_item && !self.subject(id).remains {
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
            stable |=
                self.subject(target).fate != Fate::Recreate && self.is_satisfied_now(target, dependency);
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

    fn is_satisfied_now(&self, target: u32, dependency: &setpoint_graph::Dependency) -> bool {
        self.subject(target).present
            && self.cur_item(target).is_some_and(|item| dependency.is_satisfied_by(item))
    }

    /// Whether everything that still stands on an item stands on something else as well.
    fn is_dispensable(&mut self, id: u32, down: &[u32], placed: &[bool]) -> bool {
        let gone = |step: u32| step != NONE && placed[step as usize];
        self.dependents_cur(id).all(|edge| {
            let dependent = self.at_cur(edge.slot);
            if !self.subject(dependent).remains || gone(down.get(dependent as usize).copied().unwrap_or(NONE))
            {
                return true;
            }
            let position = self.cur.dependency_index(edge.slot, edge.position);
            let Some((dependency, alternatives)) = self.cur.dependencies_at(edge.slot).nth(position) else {
                return true;
            };
            alternatives.iter().any(|edge| {
                let other = self.at_cur(edge.slot);
                let other_down = down.get(other as usize).copied().unwrap_or(NONE);
                other != id && !gone(other_down) && self.is_satisfied_now(other, dependency)
            })
        })
    }

    fn leads_to(&mut self, id: u32, side: Side, target: u32) -> bool {
        let mut edges = self.groups(id, side).flat_map(|(_, alternatives)| alternatives);
        edges.any(|edge| self.target(side, edge.slot) == target)
    }

    /// Adds gates for unchanged items that lie between two that are operated on.
    fn keep_related_apart(&mut self, draft: &mut Draft) {
        let steps = draft.steps.len();
        let operated: Vec<u32> = draft.steps.iter().map(|step| step.subject).collect();
        // Whichever direction is exhausted first holds every item in between.
        let mut ways = [Walk::new(true), Walk::new(false)];
        for &id in &operated {
            for way in &mut ways {
                self.widen(draft, way, id);
            }
        }
        let between = loop {
            let mut exhausted = None;
            for (i, way) in ways.iter_mut().enumerate() {
                match way.todo.pop() {
                    Some(id) => self.widen(draft, way, id),
                    None => exhausted = Some(i),
                }
            }
            if let Some(i) = exhausted {
                break std::mem::take(&mut ways[i].found);
            }
        };
        if between.is_empty() {
            return;
        }
        draft.down.resize(self.subjects.len(), NONE);
        draft.up.resize(self.subjects.len(), NONE);
        for &id in &between {
            draft.down[id as usize] = draft.step(id, StepKind::Gate);
            draft.up[id as usize] = draft.step(id, StepKind::Gate);
        }
        for &id in &between {
            for target in self.targets_either(id) {
                let (down, up) = (draft.down(target), draft.up(target));
                let first = if down == NONE { up } else { down };
                let last = if up == NONE { down } else { up };
                draft.edge(draft.down(id), first, false);
                draft.edge(last, draft.up(id), false);
            }
        }
        for i in 0..steps {
            let Step { subject, kind } = draft.steps[i];
            let step = u32::try_from(i).unwrap_or(NONE);
            for target in self.targets_either(subject) {
                if draft.kind(draft.down(target)) != Some(StepKind::Gate) {
                    continue;
                }
                match kind {
                    StepKind::Delete => draft.edge(step, draft.down(target), false),
                    StepKind::Modify | StepKind::Create => draft.edge(draft.up(target), step, false),
                    StepKind::Switch | StepKind::Gate => {}
                }
            }
        }
    }

    fn widen(&mut self, draft: &Draft, way: &mut Walk, id: u32) {
        let neighbours = if way.upwards { self.targets_either(id) } else { self.dependents_either(id) };
        for neighbour in neighbours {
            if draft.down(neighbour) == NONE && draft.up(neighbour) == NONE && way.seen.insert(neighbour) {
                way.found.push(neighbour);
                way.todo.push(neighbour);
            }
        }
    }

    fn targets_either(&mut self, id: u32) -> Vec<u32> {
        let mut targets = Vec::new();
        let this = self.subject(id);
        let (cur, int) = (this.cur(), this.int());
        if let Some(slot) = cur {
            for edge in self.cur.edges_at(slot) {
                targets.push(self.at_cur(edge.slot));
            }
        }
        if let Some(slot) = int
            && self.cur_item(id) != self.int_item(id)
        {
            for edge in self.int.edges_at(slot) {
                targets.push(self.at_int(edge.slot));
            }
        }
        targets
    }

    fn dependents_either(&mut self, id: u32) -> Vec<u32> {
        let mut dependents = Vec::new();
        for edge in self.dependents_cur(id) {
            dependents.push(self.at_cur(edge.slot));
        }
        for edge in self.dependents_int(id) {
            dependents.push(self.at_int(edge.slot));
        }
        dependents
    }

    /// Sorts the steps, preferring smaller references, or names what must be split.
    pub(super) fn sort(&mut self, draft: Draft) -> Result<(), Vec<u32>> {
        let ranks = self.rank(&draft.steps);
        let mut schedule = Schedule::new(draft.steps, &draft.edges);
        let mut waits = schedule.waits.clone();
        let mut hard_waits: Option<Vec<u32>> = None;
        let mut order = Vec::with_capacity(schedule.steps.len());
        let mut placed = vec![false; schedule.steps.len()];
        let mut ready: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        let key = |step: u32| Reverse((ranks[step as usize], step));
        ready.extend((0_u32..).zip(&waits).filter(|(_, waits)| **waits == 0).map(|(step, _)| key(step)));
        loop {
            while let Some(Reverse((_, step))) = ready.pop() {
                if std::mem::replace(&mut placed[step as usize], true) {
                    continue;
                }
                order.push(step);
                for &(next, hard) in schedule.successors(step) {
                    let wait = &mut waits[next as usize];
                    *wait = wait.saturating_sub(1);
                    if *wait == 0 {
                        ready.push(key(next));
                    }
                    if let (true, Some(waits)) = (hard, &mut hard_waits) {
                        waits[next as usize] = waits[next as usize].saturating_sub(1);
                    }
                }
            }
            if order.len() == placed.len() {
                break;
            }
            // A circle: place what only soft edges hold back.
            schedule.serial = true;
            let hard_waits = hard_waits.get_or_insert_with(|| {
                let mut hard_waits = vec![0; placed.len()];
                for &(from, to, hard) in &draft.edges {
                    if hard && !placed[from as usize] {
                        hard_waits[to as usize] += 1;
                    }
                }
                hard_waits
            });
            let free = (0..placed.len()).filter(|&step| !placed[step] && hard_waits[step] == 0);
            let free = free.min_by_key(|&step| ranks[step]);
            if let Some(step) = free {
                ready.push(key(u32::try_from(step).unwrap_or(NONE)));
                continue;
            }
            let circles = circles(&placed, &draft.edges);
            let mut members: Vec<u32> = circles.iter().flatten().copied().collect();
            members.sort_by_key(|&step| ranks[step as usize]);
            let dispensable = members.iter().copied().find(|&step| {
                let Step { subject, kind } = schedule.steps[step as usize];
                kind == StepKind::Delete && self.is_dispensable(subject, &draft.down, &placed)
            });
            if dispensable.is_none() {
                let split = self.choose_splits(&schedule, &circles);
                if !split.is_empty() {
                    return Err(split);
                }
            }
            // Otherwise only deletions wait for each other: some item has to go first.
            let Some(first) = dispensable.or(members.first().copied()) else { break };
            let first = first as usize;
            hard_waits[first] = 0;
            ready.push(key(u32::try_from(first).unwrap_or(NONE)));
        }
        if schedule.serial {
            // Whatever was placed against an edge must not wait for it.
            let mut position = vec![0_u32; order.len()];
            for (at, &step) in (0_u32..).zip(&order) {
                position[step as usize] = at;
            }
            let edges: Vec<(u32, u32, bool)> = draft
                .edges
                .iter()
                .filter(|(from, to, _)| position[*from as usize] < position[*to as usize])
                .copied()
                .collect();
            schedule = Schedule { serial: true, ..Schedule::new(schedule.steps, &edges) };
        }
        schedule.order = order;
        schedule.crosses = draft.crosses;
        self.schedule = schedule;
        Ok(())
    }

    /// The position of each step's item among all, by reference.
    fn rank(&self, steps: &[Step]) -> Vec<u32> {
        let mut kinds: Vec<&setpoint_graph::Kind> = Vec::new();
        let mut keys: Vec<(usize, u128, u32)> = Vec::with_capacity(steps.len());
        for (i, step) in (0_u32..).zip(steps) {
            let reference = self.reference(step.subject);
            let kind = kinds.iter().rposition(|kind| *kind == reference.kind()).unwrap_or_else(|| {
                kinds.push(reference.kind());
                kinds.len() - 1
            });
            keys.push((kind, reference.name_prefix(), i));
        }
        let mut sorted: Vec<usize> = (0..kinds.len()).collect();
        sorted.sort_by_key(|&kind| kinds[kind]);
        let mut place = vec![0; kinds.len()];
        for (at, &kind) in sorted.iter().enumerate() {
            place[kind] = at;
        }
        for key in &mut keys {
            key.0 = place[key.0];
        }
        keys.sort_unstable_by(|a, b| {
            (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| {
                let name = |i: u32| -> &ItemRef { self.reference(steps[i as usize].subject) };
                let by_name = if steps[a.2 as usize].subject == steps[b.2 as usize].subject {
                    std::cmp::Ordering::Equal
                } else {
                    name(a.2).cmp(name(b.2))
                };
                by_name.then(a.2.cmp(&b.2))
            })
        });
        let mut ranks = vec![0; steps.len()];
        for (rank, (_, _, step)) in (0_u32..).zip(keys) {
            ranks[step as usize] = rank;
        }
        ranks
    }

    /// Of each hard circle, the item to delete temporarily: the one that takes fewest others along.
    fn choose_splits(&mut self, schedule: &Schedule, circles: &[Vec<u32>]) -> Vec<u32> {
        let mut split = Vec::new();
        for circle in circles {
            let stays = circle.iter().map(|&step| &schedule.steps[step as usize]);
            let stays = stays.filter(|step| matches!(step.kind, StepKind::Modify | StepKind::Switch));
            let stays: Vec<u32> = stays.map(|step| step.subject).collect();
            let choice =
                stays.into_iter().min_by_key(|&id| (self.dependents_cur(id).count(), self.reference(id)));
            split.extend(choice);
        }
        split.sort_unstable();
        split.dedup();
        split
    }
}

/// One direction of the search for items between others.
struct Walk {
    upwards: bool,
    todo: Vec<u32>,
    found: Vec<u32>,
    seen: rustc_hash::FxHashSet<u32>,
}

impl Walk {
    fn new(upwards: bool) -> Self {
        Self { upwards, todo: Vec::new(), found: Vec::new(), seen: rustc_hash::FxHashSet::default() }
    }
}

/// The hard circles among steps that are not placed: strongly connected components of more than one step.
fn circles(placed: &[bool], edges: &[(u32, u32, bool)]) -> Vec<Vec<u32>> {
    let mut next: Vec<Vec<u32>> = vec![Vec::new(); placed.len()];
    for &(from, to, hard) in edges {
        if hard && !placed[from as usize] && !placed[to as usize] {
            next[from as usize].push(to);
        }
    }
    // Kosaraju: order by finish, then collect along reversed edges.
    let count = placed.len();
    let mut seen = vec![false; count];
    let mut finished = Vec::new();
    for root in (0..count).filter(|&step| !placed[step]) {
        if seen[root] {
            continue;
        }
        seen[root] = true;
        let mut frames = vec![(root, 0)];
        while let Some((step, at)) = frames.last_mut() {
            if let Some(&to) = next[*step].get(*at) {
                *at += 1;
                if !std::mem::replace(&mut seen[to as usize], true) {
                    frames.push((to as usize, 0));
                }
            } else {
                finished.push(*step);
                frames.pop();
            }
        }
    }
    let mut previous: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (from, targets) in (0_u32..).zip(&next) {
        for &to in targets {
            previous[to as usize].push(from);
        }
    }
    let mut circles = Vec::new();
    let mut taken = vec![false; count];
    for &root in finished.iter().rev() {
        if std::mem::replace(&mut taken[root], true) {
            continue;
        }
        let mut circle = Vec::new();
        let mut todo = vec![u32::try_from(root).unwrap_or(NONE)];
        while let Some(step) = todo.pop() {
            circle.push(step);
            for &from in &previous[step as usize] {
                if !std::mem::replace(&mut taken[from as usize], true) {
                    todo.push(from);
                }
            }
        }
        if circle.len() > 1 {
            circle.sort_unstable();
            circles.push(circle);
        }
    }
    circles
}
