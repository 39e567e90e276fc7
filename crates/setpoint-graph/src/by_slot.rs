//! Edits and questions by slot, for whoever works on many items at once and has their slots at hand.

use crate::graph::spread;
use crate::slot::{Content, ROOT};
use crate::{Graph, ItemHandle, SlotId, State, SubgraphPath};

impl<S: State> Graph<S> {
    /// Puts an item into the root graph where the slots of what it depends on may be known.
    ///
    /// `link` gives the slot of the edge at a position, or none; a wrong one is a mistake that is noticed
    /// only in debug builds.
    pub fn put_item_linked(
        &mut self,
        item: &ItemHandle,
        link: impl Fn(usize) -> Option<SlotId>,
    ) -> Result<SlotId, crate::GraphError> {
        self.put_linked(ROOT, item, link)
    }

    /// Makes room for that many more items at once.
    pub fn reserve(&mut self, items: usize) {
        let fresh = items.saturating_sub(self.free.len());
        self.slots.reserve(fresh);
        self.wires.reserve(fresh);
        let hashes = &self.wires.hashes;
        self.index.reserve(items, |&slot| spread(hashes[slot as usize]));
    }

    /// Removes the item in a slot and returns it.
    pub fn del_item_at(&mut self, slot: SlotId) -> Option<ItemHandle> {
        self.remove(slot)
    }

    /// Journals a reference as changed although its item is the same: something around it is not.
    pub fn touch_item(&mut self, item: &crate::ItemRef) {
        if let Some(slot) = self.slot_of(item) {
            self.touch(slot);
        }
    }

    /// Like [`Graph::touch_item`], by slot.
    pub fn touch_at(&mut self, slot: SlotId) {
        self.touch(slot);
    }

    /// Where the item in a slot lives.
    pub fn path_at(&self, slot: SlotId) -> SubgraphPath {
        self.path_of_group(self.slots[slot.index()].group)
    }

    /// Returns whether there is any subgraph.
    pub fn has_subgraphs(&self) -> bool {
        !self.group(ROOT).children.is_empty()
    }

    /// Returns whether the item in a slot lives in the root graph itself.
    pub fn is_at_root(&self, slot: SlotId) -> bool {
        self.slots[slot.index()].group == ROOT
    }

    /// Returns whether two items of two graphs live in subgraphs of the same path.
    pub fn same_place<O: State>(&self, slot: SlotId, other: &Graph<O>, theirs: SlotId) -> bool {
        let (mut a, mut b) = (self.slots[slot.index()].group, other.slots[theirs.index()].group);
        while a != ROOT && b != ROOT {
            let (ours, theirs) = (self.group(a), other.group(b));
            if ours.name != theirs.name {
                return false;
            }
            (a, b) = (ours.parent, theirs.parent);
        }
        a == ROOT && b == ROOT
    }

    /// Returns whether the item in a slot only wants other items to exist: then each edge is a dependency of its own.
    pub fn is_plain_at(&self, slot: SlotId) -> bool {
        self.slots[slot.index()].plain
    }

    /// The dependencies of the item in a slot, each with the slots of its alternatives.
    pub fn dependencies_at(
        &self,
        slot: SlotId,
    ) -> impl Iterator<Item = (&crate::Dependency, &[crate::Edge])> + Clone {
        let mut edges = self.edges_at(slot);
        self.item_at(slot).map_or(&[][..], ItemHandle::dependencies).iter().map(move |dependency| {
            let (alternatives, rest) = edges.split_at(dependency.targets().len());
            edges = rest;
            (dependency, alternatives)
        })
    }

    /// The slots whose reference is only mentioned, in no particular order.
    pub fn mentioned(&self) -> impl Iterator<Item = SlotId> {
        let slots = (0_u32..).zip(&self.slots);
        slots.filter(|(_, slot)| matches!(slot.content, Content::Mentioned(_))).map(|(id, _)| SlotId(id))
    }
}
