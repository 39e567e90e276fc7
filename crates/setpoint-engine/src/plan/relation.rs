//! Which items are related: one reaches the other along dependencies, in either graph.

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::{Dependency, Graph, ItemHandle, ItemRef};

use crate::state::CurrentGraph;

/// Returns whether a new value of an item depends on more than the old one: on other items, or on one for which there
/// was an alternative.
pub(crate) fn gains_dependencies(old: &ItemHandle, new: &ItemHandle) -> bool {
    let known: FxHashSet<&[ItemRef]> = old.dependencies().iter().map(Dependency::targets).collect();
    new.dependencies().iter().map(Dependency::targets).any(|targets| {
        let one_was_needed = targets.iter().any(|target| known.contains(std::slice::from_ref(target)));
        !one_was_needed && !known.contains(targets)
    })
}

/// All that an item depends on, directly or not, in either graph.
pub(crate) fn all_it_needs(cur: &CurrentGraph, int: &Graph, item: &ItemRef) -> FxHashSet<ItemRef> {
    let mut seen = FxHashMap::default();
    spread(&mut seen, item, |item, found| needs(cur, int, item, found));
    seen.into_keys().collect()
}

fn needs(cur: &CurrentGraph, int: &Graph, item: &ItemRef, found: &mut Vec<ItemRef>) {
    found.extend(cur.outgoing(item).into_iter().map(|edge| edge.to.clone()));
    found.extend(int.outgoing(item).into_iter().map(|edge| edge.to.clone()));
    // What is being made of it may be in neither graph: the intent may have changed meanwhile.
    let target = cur
        .state(item)
        .and_then(|state| state.unfinished.as_ref())
        .and_then(|unfinished| unfinished.target.as_ref());
    found.extend(
        target.into_iter().flat_map(ItemHandle::dependencies).flat_map(|d| d.targets().iter().cloned()),
    );
}

/// All items that are related to some items, found step by step as those are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Related {
    /// What the added items depend on, and what depends on them, each with the one it was found from.
    up: FxHashMap<ItemRef, ItemRef>,
    down: FxHashMap<ItemRef, ItemRef>,
}

impl Related {
    /// Adds an item and all that is related to it.
    pub(crate) fn add(&mut self, cur: &CurrentGraph, int: &Graph, item: &ItemRef) {
        spread(&mut self.up, item, |item, found| needs(cur, int, item, found));
        spread(&mut self.down, item, |item, found| dependents(cur, int, item, found));
    }

    /// The added item that this one is related to.
    pub(crate) fn to(&self, item: &ItemRef) -> Option<&ItemRef> {
        self.up.get(item).or_else(|| self.down.get(item))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.up.is_empty()
    }
}

/// All that depends on some items, directly or not, in either graph; found step by step as those are added.
#[derive(Debug, Default)]
pub(crate) struct Dependents {
    seen: FxHashMap<ItemRef, ItemRef>,
}

impl Dependents {
    /// Adds an item and all that depends on it.
    pub(crate) fn add(&mut self, cur: &CurrentGraph, int: &Graph, item: &ItemRef) {
        spread(&mut self.seen, item, |item, found| dependents(cur, int, item, found));
    }

    pub(crate) fn contains(&self, item: &ItemRef) -> bool {
        self.seen.contains_key(item)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

fn dependents(cur: &CurrentGraph, int: &Graph, item: &ItemRef, found: &mut Vec<ItemRef>) {
    found.extend(cur.incoming(item).into_iter().map(|edge| edge.from.clone()));
    found.extend(int.incoming(item).into_iter().map(|edge| edge.from.clone()));
}

fn spread(
    seen: &mut FxHashMap<ItemRef, ItemRef>,
    origin: &ItemRef,
    neighbours: impl Fn(&ItemRef, &mut Vec<ItemRef>),
) {
    let mut todo = vec![origin.clone()];
    let mut found = Vec::new();
    while let Some(item) = todo.pop() {
        if seen.contains_key(&item) {
            continue;
        }
        neighbours(&item, &mut found);
        todo.append(&mut found);
        seen.insert(item, origin.clone());
    }
}
