//! How slots are filled, wired to each other and freed.

use hashbrown::hash_table::Entry;
use smallvec::SmallVec;

use crate::edit::refuse_external_with_dependencies;
use crate::graph::spread;
use crate::journal::Touched;
use crate::slot::{Content, Edge, ROOT, Slot, narrow};
use crate::{Graph, GraphError, ItemHandle, ItemRef, ResourceKey, SlotId, State};

impl<S: State> Graph<S> {
    pub(crate) fn put_into_group(&mut self, group: u32, item: &ItemHandle) -> Result<SlotId, GraphError> {
        self.put_linked(group, item, |_| None)
    }

    /// Puts an item whose dependencies' slots may be known: `link` gives them by the position of the edge.
    pub(crate) fn put_linked(
        &mut self,
        group: u32,
        item: &ItemHandle,
        link: impl Fn(usize) -> Option<SlotId>,
    ) -> Result<SlotId, GraphError> {
        refuse_external_with_dependencies(item)?;
        let slot = self.slot_or_new(item.reference(), || Content::Free);
        let old = self.slots[slot.index()].item().cloned();
        if let Some(old) = &old {
            let home = self.slots[slot.index()].group;
            if home != group {
                return Err(GraphError::LivesElsewhere {
                    item: item.reference().clone(),
                    lives_in: self.path_of_group(home),
                    put_into: self.path_of_group(group),
                });
            }
            if old == item {
                return Ok(slot);
            }
            self.disconnect(slot);
            self.release_claims(slot, old.claims(), item.claims());
        } else {
            self.len += 1;
            self.join_group(slot, group);
        }
        let this = &mut self.slots[slot.index()];
        this.content = Content::Item(item.clone());
        this.plain = item.derived().is_plain();
        self.connect(slot, item, link);
        self.claim(slot, item.claims(), old.as_ref().map_or(&[], ItemHandle::claims));
        self.touch(slot);
        Ok(slot)
    }

    pub(crate) fn remove(&mut self, slot: SlotId) -> Option<ItemHandle> {
        let item = self.slots[slot.index()].item()?.clone();
        self.disconnect(slot);
        self.release_claims(slot, item.claims(), &[]);
        self.leave_group(slot);
        self.len -= 1;
        let this = &mut self.slots[slot.index()];
        (this.state, this.group, this.member) = (None, ROOT, 0);
        let mentioned = !self.wires.incoming[slot.index()].is_empty();
        this.content = Content::Mentioned(Box::new(item.reference().clone()));
        if mentioned {
            self.touch(slot);
        } else {
            // Its going is journalled by its reference.
            self.free_if_unused(slot);
        }
        Some(item)
    }

    /// Finds the slot of a reference, or makes one in which it is only mentioned.
    fn slot_for(&mut self, reference: &ItemRef) -> SlotId {
        self.slot_or_new(reference, || Content::Mentioned(Box::new(reference.clone())))
    }

    /// Finds the slot of a reference, or makes one with that content.
    fn slot_or_new(&mut self, reference: &ItemRef, content: impl FnOnce() -> Content) -> SlotId {
        let hash = reference.hash32();
        let (slots, hashes) = (&self.slots, &self.wires.hashes);
        let is_it = |&slot: &u32| {
            hashes[slot as usize] == hash && slots[slot as usize].reference() == Some(reference)
        };
        let vacant = match self.index.entry(spread(hash), is_it, |&slot| spread(hashes[slot as usize])) {
            Entry::Occupied(slot) => return SlotId(*slot.get()),
            Entry::Vacant(vacant) => vacant,
        };
        let id = self.free.pop();
        vacant.insert(id.unwrap_or(narrow(self.slots.len())));
        let fresh = Slot { content: content(), group: ROOT, member: 0, plain: false, state: None };
        if let Some(id) = id {
            self.slots[id as usize] = fresh;
            self.wires.hashes[id as usize] = hash;
            return SlotId(id);
        }
        self.slots.push(fresh);
        self.wires.push(hash);
        SlotId(narrow(self.slots.len() - 1))
    }

    fn free_if_unused(&mut self, slot: SlotId) {
        // Whether it is mentioned is nearer at hand than what is in it.
        if !self.wires.incoming[slot.index()].is_empty() {
            return;
        }
        let this = &mut self.slots[slot.index()];
        let Content::Mentioned(_) = &this.content else { return };
        let hash = spread(self.wires.hashes[slot.index()]);
        if let Content::Mentioned(reference) = std::mem::replace(&mut this.content, Content::Free) {
            if let Ok(entry) = self.index.find_entry(hash, |&id| id == slot.0) {
                entry.remove();
            }
            self.free.push(slot.0);
            let slots = self.slots.len();
            self.journal.record(Touched::Gone(reference), slots);
        }
    }

    /// Draws the edges of a newly put item.
    fn connect(&mut self, slot: SlotId, item: &ItemHandle, link: impl Fn(usize) -> Option<SlotId>) {
        let derived = item.derived();
        let mut edges = SmallVec::with_capacity(derived.edges());
        // The required items themselves are only looked at where their slots are not known.
        let mut targets = None;
        for position in 0..derived.edges() {
            let target = if let Some(known) = link(position) {
                known
            } else {
                let targets =
                    targets.get_or_insert_with(|| derived.targets().collect::<SmallVec<[&ItemRef; 4]>>());
                self.slot_for(targets[position])
            };
            let incoming = &mut self.wires.incoming[target.index()];
            edges.push(Edge { slot: target, position: narrow(incoming.len()) });
            incoming.push(Edge { slot, position: narrow(position) });
        }
        debug_assert!(
            edges.iter().map(|edge: &Edge| self.reference_at(edge.slot)).eq(derived.targets().map(Some)),
            "each edge leads to what it was derived from"
        );
        self.wires.edges[slot.index()] = edges;
    }

    /// Registers the claims of a newly put item; those it had before stay in their place.
    fn claim(&mut self, slot: SlotId, claims: &[ResourceKey], had: &[ResourceKey]) {
        // Both are sorted.
        for key in claims.iter().filter(|key| had.binary_search(key).is_err()) {
            self.claims.entry(key.clone()).or_default().push(slot);
        }
    }

    /// Removes the edges of the item in a slot.
    fn disconnect(&mut self, slot: SlotId) {
        let mut edges = std::mem::take(&mut self.wires.edges[slot.index()]);
        for i in 0..edges.len() {
            let edge = edges[i];
            let incoming = &mut self.wires.incoming[edge.slot.index()];
            incoming.swap_remove(edge.position as usize);
            if let Some(&moved) = incoming.get(edge.position as usize) {
                // The moved edge may be another one of this very slot, which are out of place meanwhile.
                let owner =
                    if moved.slot == slot { &mut edges } else { &mut self.wires.edges[moved.slot.index()] };
                owner[moved.position as usize].position = edge.position;
            }
        }
        // Only now, since a slot that is freed half-way could be mentioned by a later edge again.
        for edge in &edges {
            self.free_if_unused(edge.slot);
        }
    }

    /// Gives up the claims of a replaced or removed item, but for those that its successor holds on to: whoever
    /// claimed first stays first.
    fn release_claims(&mut self, slot: SlotId, claims: &[ResourceKey], kept: &[ResourceKey]) {
        // Both are sorted.
        for key in claims.iter().filter(|key| kept.binary_search(key).is_err()) {
            if let Some(holders) = self.claims.get_mut(key) {
                if let Some(at) = holders.iter().position(|&holder| holder == slot) {
                    holders.remove(at);
                }
                if holders.is_empty() {
                    self.claims.remove(key);
                }
            }
        }
    }

    /// Notes in the journal that something about a slot changed.
    pub(crate) fn touch(&mut self, slot: SlotId) {
        let slots = self.slots.len();
        self.journal.record(Touched::Slot(slot), slots);
    }
}
