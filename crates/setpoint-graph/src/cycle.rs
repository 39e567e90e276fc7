//! Dependency cycles that no order of creation satisfies.
//!
//! With alternatives, a circle of edges is harmless as long as some item on it can start from elsewhere.
//! So each strongly connected component is tried out: whatever can be created, assuming that all missing
//! items are there, is. What remains waits for a cycle or is on one: the cycles are the components of what
//! remains, seen along those edges only that hold it up.

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::component::Components;
use crate::{Edge, Graph, ItemRef, SlotId, State, View};

/// Items that wait for each other, so that none of them can ever be created.
///
/// ```
/// # use setpoint_graph::*;
/// # #[derive(Debug, PartialEq)]
/// # struct Part(&'static str, &'static [&'static str]);
/// # impl Item for Part {
/// #     const KIND: Kind = Kind::from_static("part");
/// #     fn name(&self) -> Name { Name::new(self.0) }
/// #     fn dependencies(&self, deps: &mut Deps) { for n in self.1 { deps.requires(("part", *n)).because("it rests on it"); } }
/// # }
/// // A part is a name and the names of the parts it needs.
/// let mut graph: Graph = Graph::new("machine");
/// graph.put_item(Part("chicken", &["egg"]))?;
/// graph.put_item(Part("egg", &["chicken"]))?;
/// assert_eq!(graph.cycles()[0].to_string(), "part/chicken → part/egg → part/chicken");
/// # Ok::<(), GraphError>(())
/// ```
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

    /// All items on this cycle or on cycles that share items with it, in order.
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
        let inside = |slot: SlotId| self.item_at(slot).is_some() && inside(slot);
        let mut search = Search { graph: self, unfounded: FxHashSet::default(), cycles: Vec::new() };
        Components::new(|slot| self.edges_at(slot).iter().map(|edge| edge.slot).filter(|&to| inside(to)))
            .visit(roots.into_iter().filter(|&root| inside(root)), |component| search.try_out(component));
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

/// Looks at one component after the other, each after those that it depends on.
struct Search<'a, S: State> {
    graph: &'a Graph<S>,
    /// Items that can't be created, on a cycle or behind one.
    unfounded: FxHashSet<SlotId>,
    cycles: Vec<Cycle>,
}

impl<S: State> Search<'_, S> {
    /// Creates in thought whatever can be created of a component; the rest is unfounded.
    fn try_out(&mut self, component: &[SlotId]) {
        // Until they prove otherwise, all members count as not there.
        self.unfounded.extend(component);
        if let [single] = component {
            // By far the most common: no circle of edges at all.
            if self.blocking_edges(*single).next().is_none() {
                self.unfounded.remove(single);
            }
        } else {
            self.found(component);
        }
        let rest: FxHashSet<SlotId> =
            component.iter().copied().filter(|slot| self.unfounded.contains(slot)).collect();
        if rest.is_empty() {
            return;
        }
        let fellows = |slot| self.blocking_edges(slot).filter(|to| rest.contains(to));
        let mut cycles = Vec::new();
        Components::new(fellows).visit(
            component.iter().copied().filter(|slot| rest.contains(slot)),
            |members| {
                let members: FxHashSet<SlotId> = members.iter().copied().collect();
                cycles.extend(self.name_cycle(&members));
            },
        );
        self.cycles.extend(cycles);
    }

    /// Takes out of the unfounded what can be created of a component, counting what each still waits for.
    fn found(&mut self, component: &[SlotId]) {
        let mut waits: FxHashMap<SlotId, usize> = FxHashMap::default();
        let mut met: FxHashSet<(SlotId, usize)> = FxHashSet::default();
        for &slot in component {
            let mut count = 0;
            for (i, blocked) in self.dependencies(slot).map(|(blocked, _)| blocked).enumerate() {
                if blocked {
                    count += 1;
                } else {
                    met.insert((slot, i));
                }
            }
            waits.insert(slot, count);
        }
        let mut todo: Vec<SlotId> =
            component.iter().copied().filter(|slot| waits.get(slot) == Some(&0)).collect();
        while let Some(slot) = todo.pop() {
            self.unfounded.remove(&slot);
            for edge in self.graph.incoming_at(slot) {
                // Only members wait here: what else depends on them comes later.
                let Some(count) = waits.get_mut(&edge.slot) else { continue };
                if met.insert((edge.slot, self.graph.dependency_index(edge.slot, edge.position))) {
                    *count -= 1;
                    if *count == 0 {
                        todo.push(edge.slot);
                    }
                }
            }
        }
    }

    /// The dependencies of an item: whether all alternatives are unfounded, and their edges.
    fn dependencies(&self, slot: SlotId) -> impl Iterator<Item = (bool, &[Edge])> {
        let mut edges = self.graph.edges_at(slot);
        let dependencies = self.graph.item_at(slot).map_or(&[][..], |item| item.dependencies());
        dependencies.iter().map(move |dependency| {
            let (alternatives, rest) = edges.split_at(dependency.targets().len());
            edges = rest;
            // A dependency without any alternative can't be met, but that is no cycle.
            let blocked = !alternatives.is_empty()
                && alternatives.iter().all(|edge| self.unfounded.contains(&edge.slot));
            (blocked, alternatives)
        })
    }

    /// The edges of all dependencies of which no alternative can be created.
    fn blocking_edges(&self, slot: SlotId) -> impl Iterator<Item = SlotId> {
        let blocking = self.dependencies(slot).filter(|(blocked, _)| *blocked);
        blocking.flat_map(|(_, alternatives)| alternatives.iter().map(|edge| edge.slot))
    }

    /// Walks round a cycle through the smallest member; none if a single member does not wait for itself.
    fn name_cycle(&self, members: &FxHashSet<SlotId>) -> Option<Cycle> {
        let mut sorted: Vec<(&ItemRef, SlotId)> =
            members.iter().filter_map(|&slot| Some((self.graph.reference_at(slot)?, slot))).collect();
        sorted.sort();
        let &(_, start) = sorted.first()?;
        // Breadth first, so that the way round is a short one.
        let mut came_from: FxHashMap<SlotId, SlotId> = FxHashMap::default();
        let mut queue = vec![start];
        let mut next = 0;
        while let Some(&slot) = queue.get(next)
            && !came_from.contains_key(&start)
        {
            next += 1;
            for to in self.blocking_edges(slot).filter(|to| members.contains(to)) {
                came_from.entry(to).or_insert_with(|| {
                    queue.push(to);
                    slot
                });
            }
        }
        let mut path = Vec::new();
        let mut slot = *came_from.get(&start)?;
        while slot != start {
            path.push(self.graph.reference_at(slot)?.clone());
            slot = *came_from.get(&slot)?;
        }
        path.push(self.graph.reference_at(start)?.clone());
        path.reverse();
        let slots = sorted.iter().map(|&(_, slot)| slot).collect();
        let members = sorted.iter().map(|&(item, _)| item.clone()).collect();
        Some(Cycle { path, members, slots })
    }
}
