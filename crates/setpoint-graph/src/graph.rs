//! The graph: slots, edges and the tree of subgraphs.
//!
//! ```text
//!  reference ──index──▶ slot ─┬─ item (shared) or nothing: the reference is then only mentioned
//!                             ├─ edges ────▶ slots it depends on      each edge knows its position at
//!                             ├─ incoming ─▶ slots that depend on it  the other end: O(1) removal
//!                             └─ group ────▶ the subgraph it lives in
//! ```
//!
//! Everything lives at the root; a subgraph is a set of slots with a name. Order is made on demand.

use std::fmt;

use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::dependency::Dependency;
use crate::journal::{GraphId, Journal, Revision, Touched};
use crate::slot::{Group, ROOT, Slot, Wires};
use crate::{Edge, ItemHandle, ItemRef, Name, Node, ResourceKey, SlotId, State, SubgraphPath};

/// A dependency graph of items, with nested subgraphs and data beside the items.
///
/// ```
/// use setpoint_graph::{Deps, Graph, Item, ItemRef, Kind, Name};
///
/// #[derive(Debug, PartialEq)]
/// struct Directory(String);
/// impl Item for Directory {
///     const KIND: Kind = Kind::from_static("directory");
///     fn name(&self) -> Name { Name::new(&self.0) }
///     fn dependencies(&self, deps: &mut Deps) {
///         if let Some((parent, _)) = self.0.rsplit_once('/') {
///             deps.requires(("directory", parent)).because("a directory stands in its parent");
///         }
///     }
/// }
///
/// let mut graph: Graph = Graph::new("files");
/// graph.put_item(Directory("etc/ssl".into()))?;
/// assert!(!graph.contains(&ItemRef::new("directory", "etc")), "only mentioned: a dangling edge");
/// graph.put_item(Directory("etc".into()))?;
/// let names: Vec<_> = graph.items().map(|node| node.reference().to_string()).collect();
/// assert_eq!(names, ["directory/etc", "directory/etc/ssl"]);
/// # Ok::<(), setpoint_graph::GraphError>(())
/// ```
pub struct Graph<S: State = ()> {
    pub(crate) id: GraphId,
    pub(crate) slots: Vec<Slot<S>>,
    pub(crate) wires: Wires,
    pub(crate) index: HashTable<u32>,
    pub(crate) free: Vec<u32>,
    pub(crate) groups: Vec<Option<Group>>,
    pub(crate) free_groups: Vec<u32>,
    pub(crate) claims: FxHashMap<ResourceKey, SmallVec<[SlotId; 1]>>,
    pub(crate) journal: Journal,
    pub(crate) shared: S::Shared,
    pub(crate) len: usize,
}

impl<S: State> Graph<S> {
    /// Makes an empty graph.
    pub fn new(name: impl Into<Name>) -> Self {
        Self {
            id: GraphId::next(),
            slots: Vec::new(),
            wires: Wires::default(),
            index: HashTable::new(),
            free: Vec::new(),
            groups: vec![Some(Group { name: name.into(), ..Group::default() })],
            free_groups: Vec::new(),
            claims: FxHashMap::default(),
            journal: Journal::default(),
            shared: S::Shared::default(),
            len: 0,
        }
    }

    /// What the graph is called.
    pub fn name(&self) -> &Name {
        &self.group(ROOT).name
    }

    /// What the graph is about; empty if there is no description.
    pub fn description(&self) -> &str {
        &self.group(ROOT).description
    }

    /// Says what the graph is about.
    pub fn set_description(&mut self, description: impl Into<String>) {
        self.group_mut(ROOT).description = description.into();
    }

    /// How many items it holds, nested subgraphs included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it holds no item at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Tells this graph from every other, also from its clones.
    pub fn id(&self) -> GraphId {
        self.id
    }

    /// How many mutations there have been.
    pub fn revision(&self) -> Revision {
        self.journal.revision()
    }

    /// What was touched after that revision; none if the journal does not reach back so far.
    pub fn touched_since(&self, seen: Revision) -> Option<impl Iterator<Item = &Touched>> {
        self.journal.since(seen)
    }

    /// The data kept once for the whole graph.
    pub fn shared(&self) -> &S::Shared {
        &self.shared
    }

    /// The data kept once for the whole graph, to change it. Takes no revision.
    pub fn shared_mut(&mut self) -> &mut S::Shared {
        &mut self.shared
    }

    /// Returns whether an item with this reference is there, in any subgraph.
    pub fn contains(&self, reference: &ItemRef) -> bool {
        self.node_of(reference).is_some()
    }

    /// The item with this reference, wherever it lives.
    pub fn item(&self, reference: &ItemRef) -> Option<&ItemHandle> {
        self.slots[self.slot_of(reference)?.index()].item()
    }

    /// The item with this reference and what is around it.
    pub fn node_of(&self, reference: &ItemRef) -> Option<Node<'_, S>> {
        self.node(self.slot_of(reference)?)
    }

    /// The data beside the item with this reference.
    pub fn state(&self, reference: &ItemRef) -> Option<&S> {
        self.slots[self.slot_of(reference)?.index()].state.as_ref()
    }

    /// Where the item with this reference lives.
    pub fn path_of(&self, reference: &ItemRef) -> Option<SubgraphPath> {
        Some(self.node_of(reference)?.path())
    }

    /// The slot of a reference that is held or mentioned.
    pub fn slot_of(&self, reference: &ItemRef) -> Option<SlotId> {
        self.index
            .find(spread(reference.hash32()), |&slot| {
                self.wires.hashes[slot as usize] == reference.hash32()
                    && self.slots[slot as usize].reference() == Some(reference)
            })
            .map(|&slot| SlotId(slot))
    }

    /// The slot that holds the same reference as a slot of another graph.
    pub fn slot_like<O: State>(&self, other: &Graph<O>, slot: SlotId) -> Option<SlotId> {
        self.slot_of(other.reference_at(slot)?)
    }

    /// One more than the largest slot index.
    pub fn slot_bound(&self) -> usize {
        self.slots.len()
    }

    /// All slots that hold an item, in no particular order.
    pub fn slots(&self) -> impl Iterator<Item = SlotId> {
        (0_u32..).zip(&self.slots).filter(|(_, slot)| slot.item().is_some()).map(|(id, _)| SlotId(id))
    }

    /// The reference of a slot.
    pub fn reference_at(&self, slot: SlotId) -> Option<&ItemRef> {
        self.slots.get(slot.index())?.reference()
    }

    /// The item in a slot; none if its reference is only mentioned.
    pub fn item_at(&self, slot: SlotId) -> Option<&ItemHandle> {
        self.slots.get(slot.index())?.item()
    }

    /// The data beside the item in a slot.
    pub fn state_at(&self, slot: SlotId) -> Option<&S> {
        self.slots.get(slot.index())?.state.as_ref()
    }

    /// The item in a slot and what is around it.
    pub fn node(&self, slot: SlotId) -> Option<Node<'_, S>> {
        let item = self.slots.get(slot.index())?.item()?;
        Some(Node::new(self, slot, item))
    }

    /// The edges from the item in a slot to what it depends on, in the order of its dependencies.
    pub fn edges_at(&self, slot: SlotId) -> &[Edge] {
        self.wires.edges.get(slot.index()).map_or(&[], |edges| edges)
    }

    /// The edges from the dependents of a slot; an edge's position is that among its owner's edges.
    pub fn incoming_at(&self, slot: SlotId) -> &[Edge] {
        self.wires.incoming.get(slot.index()).map_or(&[], |edges| edges)
    }

    /// The dependency that the edge at this position, out of the item in this slot, belongs to.
    pub fn dependency_at(&self, slot: SlotId, position: u32) -> Option<&Dependency> {
        let item = self.item_at(slot)?;
        item.dependencies().get(item.derived().dependency_of_edge(position as usize))
    }

    /// The position among the item's dependencies of the one that an edge belongs to.
    pub fn dependency_index(&self, slot: SlotId, position: u32) -> usize {
        self.item_at(slot).map_or(0, |item| item.derived().dependency_of_edge(position as usize))
    }

    /// The items that claim a resource, as slots, whoever claimed it first coming first.
    pub fn claimants(&self, key: &ResourceKey) -> &[SlotId] {
        self.claims.get(key).map_or(&[], |slots| slots)
    }

    /// Returns whether any item claims a resource.
    pub fn has_claims(&self) -> bool {
        !self.claims.is_empty()
    }

    /// All items with nested subgraphs included, ordered by path and reference.
    pub fn items(&self) -> impl Iterator<Item = Node<'_, S>> {
        self.view_of(ROOT).into_items()
    }

    #[expect(clippy::expect_used, reason = "group ids are only held while their group lives")]
    pub(crate) fn group(&self, group: u32) -> &Group {
        self.groups[group as usize].as_ref().expect("a live group")
    }

    #[expect(clippy::expect_used, reason = "group ids are only held while their group lives")]
    pub(crate) fn group_mut(&mut self, group: u32) -> &mut Group {
        self.groups[group as usize].as_mut().expect("a live group")
    }

    pub(crate) fn group_at(&self, path: &SubgraphPath) -> Option<u32> {
        self.group_below(ROOT, path)
    }

    pub(crate) fn group_below(&self, group: u32, path: &SubgraphPath) -> Option<u32> {
        path.names().iter().try_fold(group, |group, name| self.group(group).children.get(name).copied())
    }

    pub(crate) fn path_of_group(&self, mut group: u32) -> SubgraphPath {
        let mut names = Vec::new();
        while group != ROOT {
            let this = self.group(group);
            names.push(this.name.clone());
            group = this.parent;
        }
        names.into_iter().rev().collect()
    }
}

/// Spreads a stored hash over 64 bits, as the table wants it.
pub(crate) fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<S: State> Clone for Graph<S>
where
    S: Clone,
    S::Shared: Clone,
{
    /// Copies the graph; the items themselves stay shared. The copy has an identity and a journal of its own.
    fn clone(&self) -> Self {
        Self {
            id: GraphId::next(),
            slots: self.slots.clone(),
            wires: self.wires.clone(),
            index: self.index.clone(),
            free: self.free.clone(),
            groups: self.groups.clone(),
            free_groups: self.free_groups.clone(),
            claims: self.claims.clone(),
            journal: Journal::default(),
            shared: self.shared.clone(),
            len: self.len,
        }
    }
}

impl<S: State> fmt::Debug for Graph<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for node in self.items() {
            map.entry(&format_args!("{}:{}", node.path(), node.reference()), &(node.item(), node.state()));
        }
        map.finish()
    }
}
