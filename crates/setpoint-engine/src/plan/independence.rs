//! Independence: operations on related items never overlap, also where only items that stay as they are connect them.
//! Gates between them see to that.

use super::schedule::{Draft, Step, StepKind};
use super::{NONE, Planner};

impl Planner<'_> {
    /// Adds gates for unchanged items that connect two that are operated on.
    pub(super) fn separate_related(&mut self, draft: &mut Draft) {
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
