//! What a graph is stored in: slots for references, edges between them, groups for subgraphs.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::{ItemHandle, ItemRef, Name};

/// The position of a reference within one graph: small, fast, and only valid for that graph.
///
/// A slot lives as long as its reference is held or mentioned by an item.
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
/// let crank = graph.put_item(Part("crank", &["axle"]))?;
/// let axle = graph.edges_at(crank)[0].slot;
/// assert!(graph.item_at(axle).is_none(), "only mentioned");
/// assert_eq!(graph.incoming_at(axle)[0].slot, crank);
/// # Ok::<(), GraphError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub(crate) u32);

impl SlotId {
    /// The position as an index below [`slot_bound`](crate::Graph::slot_bound).
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The position as a small number.
    pub fn to_index(self) -> u32 {
        self.0
    }

    /// The slot at a position that [`SlotId::to_index`] gave.
    pub fn from_index(index: u32) -> Self {
        Self(index)
    }
}

/// One end of a dependency edge: where it leads, and its position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The slot at the other end.
    pub slot: SlotId,
    /// The position among the other end's edges.
    pub position: u32,
}

pub(crate) type Edges = SmallVec<[Edge; 2]>;

#[derive(Clone)]
pub(crate) enum Content {
    Free,
    Mentioned(Box<ItemRef>),
    Item(ItemHandle),
}

#[derive(Clone)]
pub(crate) struct Slot<S> {
    pub(crate) content: Content,
    pub(crate) group: u32,
    /// The position among the group's members.
    pub(crate) member: u32,
    /// Every dependency only wants one item to exist.
    pub(crate) plain: bool,
    pub(crate) state: Option<S>,
}

impl<S> Slot<S> {
    pub(crate) fn reference(&self) -> Option<&ItemRef> {
        match &self.content {
            Content::Free => None,
            Content::Mentioned(reference) => Some(reference),
            Content::Item(item) => Some(item.reference()),
        }
    }

    pub(crate) fn item(&self) -> Option<&ItemHandle> {
        match &self.content {
            Content::Item(item) => Some(item),
            _ => None,
        }
    }
}

/// What is looked at across many slots at once: each kind in an array of its own, so that it stays close
/// together in memory. Positions are those of the slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wires {
    /// From each slot to what its item depends on.
    pub(crate) edges: Vec<Edges>,
    /// From each slot to what depends on it.
    pub(crate) incoming: Vec<Edges>,
    /// The hash of each slot's reference.
    pub(crate) hashes: Vec<u32>,
}

impl Wires {
    pub(crate) fn reserve(&mut self, slots: usize) {
        self.edges.reserve(slots);
        self.incoming.reserve(slots);
        self.hashes.reserve(slots);
    }

    /// Adds a slot without edges.
    pub(crate) fn push(&mut self, hash: u32) {
        self.edges.push(Edges::new());
        self.incoming.push(Edges::new());
        self.hashes.push(hash);
    }
}

/// A subgraph: a name, a place in the tree and the slots that live in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) name: Name,
    pub(crate) description: String,
    pub(crate) parent: u32,
    pub(crate) children: BTreeMap<Name, u32>,
    pub(crate) members: Vec<u32>,
}

/// The root graph's group.
pub(crate) const ROOT: u32 = 0;

#[expect(clippy::cast_possible_truncation, reason = "a graph of four billion slots does not fit in memory")]
pub(crate) fn narrow(index: usize) -> u32 {
    index as u32
}
