//! Items and edges as a reader of a graph meets them.

use std::fmt;

use crate::dependency::Dependency;
use crate::{Graph, ItemHandle, ItemRef, SlotId, State, SubgraphPath};

/// An item within a graph, with what is around it.
pub struct Node<'a, S: State> {
    graph: &'a Graph<S>,
    slot: SlotId,
    item: &'a ItemHandle,
}

impl<S: State> Clone for Node<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: State> Copy for Node<'_, S> {}

impl<S: State> fmt::Debug for Node<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.item, f)
    }
}

impl<'a, S: State> Node<'a, S> {
    pub(crate) fn new(graph: &'a Graph<S>, slot: SlotId, item: &'a ItemHandle) -> Self {
        Self { graph, slot, item }
    }

    /// The graph-wide reference.
    pub fn reference(&self) -> &'a ItemRef {
        self.item.reference()
    }

    /// The item.
    pub fn item(&self) -> &'a ItemHandle {
        self.item
    }

    /// The data beside it.
    pub fn state(&self) -> Option<&'a S> {
        self.graph.slots[self.slot.index()].state.as_ref()
    }

    /// The slot that holds it.
    pub fn slot(&self) -> SlotId {
        self.slot
    }

    /// The subgraph it lives in.
    pub fn path(&self) -> SubgraphPath {
        self.graph.path_of_group(self.graph.slots[self.slot.index()].group)
    }
}

/// An edge with the dependency it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct DependencyEdge<'a> {
    /// The item that depends.
    pub from: &'a ItemRef,
    /// What it depends on.
    pub to: &'a ItemRef,
    /// Whether what it depends on is missing from the graph.
    pub dangling: bool,
    /// The dependency itself.
    pub dependency: &'a Dependency,
}
