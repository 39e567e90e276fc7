//! Strongly connected components, found without recursion.

use rustc_hash::FxHashMap;

use crate::SlotId;

/// Tarjan's search, with a stack of its own: a chain of dependencies may be longer than the call stack.
pub(crate) struct Components<N, I> {
    /// Where the edges of a slot lead.
    neighbours: N,
    visits: FxHashMap<SlotId, Visit>,
    /// Visited slots that are not yet in a component.
    open: Vec<SlotId>,
    /// The way down from the root, with the edges that are still to be followed.
    way: Vec<(SlotId, I)>,
}

#[derive(Clone, Copy)]
struct Visit {
    order: usize,
    low: usize,
    /// Whether the slot is not yet in a component.
    open: bool,
}

impl<N: Fn(SlotId) -> I, I: Iterator<Item = SlotId>> Components<N, I> {
    /// Prepares a search along these edges.
    pub(crate) fn new(neighbours: N) -> Self {
        Self { neighbours, visits: FxHashMap::default(), open: Vec::new(), way: Vec::new() }
    }

    /// Hands over all components reachable from the roots, each after those that its edges lead to.
    pub(crate) fn visit(mut self, roots: impl Iterator<Item = SlotId>, mut component: impl FnMut(&[SlotId])) {
        for root in roots {
            if !self.visits.contains_key(&root) {
                self.enter(root);
                self.walk(&mut component);
            }
        }
    }

    fn walk(&mut self, component: &mut impl FnMut(&[SlotId])) {
        while let Some((slot, edges)) = self.way.last_mut() {
            let slot = *slot;
            if let Some(target) = edges.next() {
                match self.visits.get(&target).copied() {
                    None => self.enter(target),
                    Some(visit) if visit.open => self.lower(slot, visit.order),
                    Some(_) => {}
                }
                continue;
            }
            self.way.pop();
            let Some(visit) = self.visits.get(&slot).copied() else { continue };
            if let Some(&(parent, _)) = self.way.last() {
                self.lower(parent, visit.low);
            }
            if visit.low == visit.order {
                let start = self.open.iter().rposition(|&open| open == slot).unwrap_or(0);
                for member in &self.open[start..] {
                    if let Some(visit) = self.visits.get_mut(member) {
                        visit.open = false;
                    }
                }
                component(&self.open[start..]);
                self.open.truncate(start);
            }
        }
    }

    fn enter(&mut self, slot: SlotId) {
        let order = self.visits.len();
        self.visits.insert(slot, Visit { order, low: order, open: true });
        self.open.push(slot);
        self.way.push((slot, (self.neighbours)(slot)));
    }

    fn lower(&mut self, slot: SlotId, low: usize) {
        if let Some(visit) = self.visits.get_mut(&slot) {
            visit.low = visit.low.min(low);
        }
    }
}
