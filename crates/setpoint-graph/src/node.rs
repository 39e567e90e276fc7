//! Items and edges as a reader of a graph meets them.

use std::fmt;

use crate::dependency::Dependency;
use crate::slot::Content;
use crate::{Graph, ItemHandle, ItemRef, SlotId, State, SubgraphPath};

/// An item within a graph, with what is around it.
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
/// let mut graph: Graph = Graph::new("machine");
/// graph.put_item_into(&SubgraphPath::from(["drive"]), Part("crank", &[]))?;
/// let crank = graph.node_of(&("part", "crank").into()).expect("it was put");
/// assert_eq!(crank.path().to_string(), "drive");
/// # Ok::<(), GraphError>(())
/// ```
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
/// let mut graph: Graph = Graph::new("machine");
/// graph.put_item(Part("crank", &["axle"]))?;
/// let edge = graph.outgoing(&("part", "crank").into())[0];
/// assert!(edge.dangling);
/// assert_eq!(edge.dependency.description(), "it rests on it");
/// # Ok::<(), GraphError>(())
/// ```
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

impl<S: State> Graph<S> {
    /// All edges out of an item, each with the dependency it belongs to.
    pub fn outgoing(&self, reference: &ItemRef) -> Vec<DependencyEdge<'_>> {
        self.slot_of(reference).map_or_else(Vec::new, |slot| {
            (0_u32..)
                .zip(self.edges_at(slot))
                .filter_map(|(position, edge)| self.dependency_edge(slot, position, edge.slot))
                .collect()
        })
    }

    /// All edges into a reference, also one that is only mentioned, ordered by the dependent.
    pub fn incoming(&self, reference: &ItemRef) -> Vec<DependencyEdge<'_>> {
        let mut edges: Vec<_> = self.slot_of(reference).map_or_else(Vec::new, |slot| {
            let incoming = self.incoming_at(slot).iter();
            incoming.filter_map(|edge| self.dependency_edge(edge.slot, edge.position, slot)).collect()
        });
        edges.sort_by(|a, b| a.from.cmp(b.from));
        edges
    }

    /// The references that items mention but that are not there, in order.
    pub fn missing(&self) -> Vec<&ItemRef> {
        let mentioned = self.slots.iter().filter_map(|slot| match &slot.content {
            Content::Mentioned(reference) => Some(&**reference),
            _ => None,
        });
        let mut missing: Vec<_> = mentioned.collect();
        missing.sort();
        missing
    }

    fn dependency_edge(&self, from: SlotId, position: u32, to: SlotId) -> Option<DependencyEdge<'_>> {
        Some(DependencyEdge {
            from: self.reference_at(from)?,
            to: self.reference_at(to)?,
            dangling: self.item_at(to).is_none(),
            dependency: self.dependency_at(from, position)?,
        })
    }
}
