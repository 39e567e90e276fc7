//! From edges between steps to an order; circles are broken or named.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::ItemRef;

use super::edges::Side;
use super::schedule::{Schedule, Step, StepKind};
use super::{NONE, Planner};

impl Planner<'_> {
    /// Returns whether everything that still stands on an item stands on something else as well.
    fn is_dispensable(&mut self, id: u32, down: &[u32], placed: &[bool]) -> bool {
        let gone = |step: u32| step != NONE && placed[step as usize];
        self.dependents_cur(id).all(|edge| {
            let dependent = self.at_cur(edge.slot);
            if !self.subject(dependent).remains()
                || gone(down.get(dependent as usize).copied().unwrap_or(NONE))
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

    /// In which order the items of some deletions could come into being one after the other, beside what is
    /// there. Unlike an order in which they go, that is found without ever turning back. Items that only hold
    /// each other up have none.
    fn rebuilt(
        &mut self,
        deletions: impl Iterator<Item = u32>,
        schedule: &Schedule,
        down: &[u32],
        placed: &[bool],
    ) -> FxHashMap<u32, usize> {
        let subject_of = |step: u32| schedule.steps[step as usize].subject;
        let mut waiting: Vec<u32> = deletions.collect();
        let mut missing: FxHashSet<u32> = waiting.iter().map(|&step| subject_of(step)).collect();
        let mut order = FxHashMap::default();
        loop {
            let possible = |planner: &mut Self, id: u32, missing: &FxHashSet<u32>| {
                planner.groups(id, Side::Cur).all(|(dependency, alternatives)| {
                    alternatives.iter().any(|edge| {
                        let other = planner.at_cur(edge.slot);
                        let other_down = down.get(other as usize).copied().unwrap_or(NONE);
                        let gone = other_down != NONE && placed[other_down as usize];
                        !gone && !missing.contains(&other) && planner.is_satisfied_now(other, dependency)
                    })
                })
            };
            let before = waiting.len();
            waiting.retain(|&step| {
                let id = subject_of(step);
                let now = possible(self, id, &missing);
                if now {
                    missing.remove(&id);
                    order.insert(step, order.len());
                }
                !now
            });
            if waiting.len() == before {
                return order;
            }
        }
    }

    /// Sorts the steps, preferring smaller references, or names what must be split.
    ///
    /// `down` is the step at which each subject's old value ends, where there are deletions that others may
    /// stand on.
    pub(super) fn sort(&mut self, mut schedule: Schedule, down: &[u32]) -> Result<(), Vec<u32>> {
        let ranks = self.rank(&schedule.steps);
        let deletions = schedule.steps.iter().filter(|step| step.kind == StepKind::Delete).count();
        let of_one_direction = deletions == 0 || deletions == schedule.steps.len();
        if of_one_direction && schedule.edges().all(|(from, to, _)| ranks[from as usize] < ranks[to as usize])
        {
            // The preferred order is a possible one: it is what the search would find.
            let mut order = vec![0; ranks.len()];
            for (step, &rank) in (0_u32..).zip(&ranks) {
                order[rank as usize] = step;
            }
            schedule.order = order;
            self.schedule = schedule;
            return Ok(());
        }
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
                for (next, hard) in schedule.successors(step) {
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
                for (from, to, hard) in schedule.edges() {
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
            let circles = circles(&placed, &schedule);
            let mut members: Vec<u32> = circles.iter().flatten().copied().collect();
            members.sort_by_key(|&step| ranks[step as usize]);
            let deletes = |step: &u32| schedule.steps[*step as usize].kind == StepKind::Delete;
            let rebuilt = self.rebuilt(members.iter().copied().filter(deletes), &schedule, down, &placed);
            // What would be created last among them goes first, so that the others still find their way.
            let mut preferred: Vec<u32> = members.iter().copied().filter(deletes).collect();
            preferred.sort_by_key(|step| Reverse(rebuilt.get(step).copied().unwrap_or(usize::MAX)));
            let dispensable = preferred
                .into_iter()
                .find(|&step| self.is_dispensable(schedule.steps[step as usize].subject, down, &placed));
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
            schedule = schedule.only(|from, to| position[from as usize] < position[to as usize]);
        }
        schedule.order = order;
        self.schedule = schedule;
        Ok(())
    }

    /// The position of each step's item among all, by reference.
    fn rank(&self, steps: &[Step]) -> Vec<u32> {
        let last = u32::try_from(steps.len()).unwrap_or(NONE) - 1;
        // Deletions mirror creations: what would be created last goes first.
        let mirrored = |step: u32, rank: u32| {
            if steps[step as usize].kind == StepKind::Delete { last - rank } else { rank }
        };
        let references = steps.iter().map(|step| self.reference(step.subject));
        if references.is_sorted_by(|a, b| {
            a.kind() == b.kind() && (a.name_prefix() < b.name_prefix() || a.name() < b.name())
        }) {
            // As they mostly are where everything is created or deleted.
            return (0..=last).map(|step| mirrored(step, step)).collect();
        }
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
            ranks[step as usize] = mirrored(step, rank);
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

/// The hard circles among steps that are not placed: strongly connected components of more than one step.
fn circles(placed: &[bool], schedule: &Schedule) -> Vec<Vec<u32>> {
    let mut next: Vec<Vec<u32>> = vec![Vec::new(); placed.len()];
    for (from, to, hard) in schedule.edges() {
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
