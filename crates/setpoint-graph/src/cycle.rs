//! Dependency cycles that no order of creation satisfies.
//!
//! With alternatives, a circle of edges is harmless as long as some item on it can start from elsewhere.
//! So each strongly connected component is tried out: whatever can be created, assuming that all outside
//! it is there, is; what remains is a cycle.

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Edge, Graph, ItemRef, SlotId, State, View};

/// Items that wait for each other, so that none of them can ever be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    path: Vec<ItemRef>,
    members: Vec<ItemRef>,
    slots: Vec<SlotId>,
}

impl Cycle {
    /// One way round: each item depends on the next, and the last on the first. Starts with the smallest.
    pub fn path(&self) -> &[ItemRef] {
        &self.path
    }

    /// All items that the cycle, or cycles that share items with it, keep from being created, in order.
    pub fn members(&self) -> &[ItemRef] {
        &self.members
    }

    /// The slots of the members.
    pub fn slots(&self) -> &[SlotId] {
        &self.slots
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in &self.path {
            write!(f, "{item} → ")?;
        }
        self.path.first().map_or(Ok(()), |first| write!(f, "{first}"))
    }
}

impl<S: State> Graph<S> {
    /// All cycles of the graph.
    pub fn cycles(&self) -> Vec<Cycle> {
        self.cycles_among(self.slots(), |_| true)
    }

    /// All cycles that can be reached from these items along their dependencies.
    pub fn cycles_from(&self, roots: impl IntoIterator<Item = SlotId>) -> Vec<Cycle> {
        self.cycles_among(roots, |_| true)
    }

    fn cycles_among(
        &self,
        roots: impl IntoIterator<Item = SlotId>,
        inside: impl Fn(SlotId) -> bool,
    ) -> Vec<Cycle> {
        let mut search = Search {
            graph: self,
            inside,
            visits: FxHashMap::default(),
            path: Vec::new(),
            unfounded: FxHashSet::default(),
            cycles: Vec::new(),
        };
        for root in roots {
            if self.item_at(root).is_some() && (search.inside)(root) && !search.visits.contains_key(&root) {
                search.visit(root);
            }
        }
        search.cycles.sort_by(|a, b| a.path.cmp(&b.path));
        search.cycles
    }
}

impl<S: State> View<'_, S> {
    /// All cycles within this part of the graph; what is outside counts as being there.
    pub fn cycles(&self) -> Vec<Cycle> {
        self.graph().cycles_among(self.items().map(|node| node.slot()), |slot| self.contains_slot(slot))
    }
}

/// Tarjan's search for strongly connected components, with a stack of its own.
struct Search<'a, S: State, I> {
    graph: &'a Graph<S>,
    inside: I,
    visits: FxHashMap<SlotId, Visit>,
    /// Visited slots that are not yet in a component.
    path: Vec<SlotId>,
    /// Items that can't be created, on a cycle or behind one.
    unfounded: FxHashSet<SlotId>,
    cycles: Vec<Cycle>,
}

#[derive(Clone, Copy)]
struct Visit {
    order: usize,
    low: usize,
    /// Whether the slot is still on the path.
    open: bool,
}

impl<S: State, I: Fn(SlotId) -> bool> Search<'_, S, I> {
    fn visit(&mut self, root: SlotId) {
        let mut frames: Vec<(SlotId, usize)> = vec![(root, 0)];
        self.open(root);
        while let Some((slot, next)) = frames.last_mut() {
            let slot = *slot;
            if let Some(Edge { slot: target, .. }) = self.graph.edges_at(slot).get(*next).copied() {
                *next += 1;
                if !self.follows(target) {
                    continue;
                }
                match self.visits.get(&target).copied() {
                    None => {
                        self.open(target);
                        frames.push((target, 0));
                    }
                    Some(visit) if visit.open => self.lower(slot, visit.order),
                    Some(_) => {}
                }
                continue;
            }
            frames.pop();
            let Some(visit) = self.visits.get(&slot).copied() else { continue };
            if let Some(&(parent, _)) = frames.last() {
                self.lower(parent, visit.low);
            }
            if visit.low == visit.order {
                let start = self.path.iter().rposition(|&open| open == slot).unwrap_or(0);
                let component = self.path.split_off(start);
                for member in &component {
                    if let Some(visit) = self.visits.get_mut(member) {
                        visit.open = false;
                    }
                }
                self.try_out(&component);
            }
        }
    }

    fn follows(&self, target: SlotId) -> bool {
        self.graph.item_at(target).is_some() && (self.inside)(target)
    }

    fn open(&mut self, slot: SlotId) {
        let order = self.visits.len();
        self.visits.insert(slot, Visit { order, low: order, open: true });
        self.path.push(slot);
    }

    fn lower(&mut self, slot: SlotId, low: usize) {
        if let Some(visit) = self.visits.get_mut(&slot) {
            visit.low = visit.low.min(low);
        }
    }

    /// Creates in thought whatever can be created of a component; the rest is unfounded.
    fn try_out(&mut self, component: &[SlotId]) {
        // Until they prove otherwise, all members count as not there.
        self.unfounded.extend(component);
        let mut todo: Vec<SlotId> = component.to_vec();
        while let Some(slot) = todo.pop() {
            if self.unfounded.contains(&slot) && self.blocking_edge(slot, &FxHashSet::default()).is_none() {
                self.unfounded.remove(&slot);
                // Of these only members can be unfounded: what else depends on them comes later.
                todo.extend(self.graph.incoming_at(slot).iter().map(|edge| edge.slot));
            }
        }
        let rest: Vec<SlotId> =
            component.iter().copied().filter(|slot| self.unfounded.contains(slot)).collect();
        self.name_cycle(&rest);
    }

    /// Where a dependency leads of which no alternative can be created; preferably to one of `fellows`.
    fn blocking_edge(&self, slot: SlotId, fellows: &FxHashSet<SlotId>) -> Option<SlotId> {
        let mut edges = self.graph.edges_at(slot);
        let mut elsewhere = None;
        for dependency in self.graph.item_at(slot)?.dependencies() {
            let (alternatives, rest) = edges.split_at(dependency.targets().len());
            edges = rest;
            // A dependency without any alternative can't be met, but that is no cycle.
            if !alternatives.iter().all(|edge| self.unfounded.contains(&edge.slot)) {
                continue;
            }
            let fellow = alternatives.iter().find(|edge| fellows.contains(&edge.slot));
            if let Some(edge) = fellow {
                return Some(edge.slot);
            }
            elsewhere = elsewhere.or(alternatives.first().map(|edge| edge.slot));
        }
        elsewhere
    }

    fn name_cycle(&mut self, rest: &[SlotId]) {
        let members: FxHashSet<SlotId> = rest.iter().copied().collect();
        let mut sorted: Vec<(&ItemRef, SlotId)> =
            rest.iter().filter_map(|&slot| Some((self.graph.reference_at(slot)?, slot))).collect();
        sorted.sort();
        for &(_, start) in &sorted {
            let mut walk: Vec<SlotId> = Vec::new();
            let mut seen: FxHashMap<SlotId, usize> = FxHashMap::default();
            let mut next = Some(start);
            while let Some(slot) = next.filter(|slot| members.contains(slot)) {
                if let Some(&first) = seen.get(&slot) {
                    let path =
                        walk[first..].iter().filter_map(|&slot| self.graph.reference_at(slot).cloned());
                    let mut path: Vec<ItemRef> = path.collect();
                    let smallest = (0..path.len()).min_by_key(|&i| &path[i]).unwrap_or(0);
                    path.rotate_left(smallest);
                    let slots = sorted.iter().map(|&(_, slot)| slot).collect();
                    let members = sorted.iter().map(|&(item, _)| item.clone()).collect();
                    self.cycles.push(Cycle { path, members, slots });
                    return;
                }
                seen.insert(slot, walk.len());
                walk.push(slot);
                next = self.blocking_edge(slot, &members);
            }
        }
    }
}
