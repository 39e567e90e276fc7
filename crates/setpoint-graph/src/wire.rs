//! How slots are filled, wired to each other and freed.

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
        let slot = match self.slot_of(item.reference()) {
            Some(slot) => slot,
            None => self.new_slot(item.reference(), Content::Free),
        };
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
        let mentioned = !this.incoming.is_empty();
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
        match self.slot_of(reference) {
            Some(slot) => slot,
            None => self.new_slot(reference, Content::Mentioned(Box::new(reference.clone()))),
        }
    }

    fn new_slot(&mut self, reference: &ItemRef, content: Content) -> SlotId {
        let fresh = Slot {
            content,
            edges: SmallVec::new(),
            incoming: SmallVec::new(),
            hash: reference.hash32(),
            group: ROOT,
            member: 0,
            plain: false,
            state: None,
        };
        let id = if let Some(id) = self.free.pop() {
            self.slots[id as usize] = fresh;
            id
        } else {
            self.slots.push(fresh);
            narrow(self.slots.len() - 1)
        };
        let slots = &self.slots;
        self.index.insert_unique(spread(reference.hash32()), id, |&slot| spread(slots[slot as usize].hash));
        SlotId(id)
    }

    fn free_if_unused(&mut self, slot: SlotId) {
        let this = &mut self.slots[slot.index()];
        let Content::Mentioned(_) = &this.content else { return };
        if !this.incoming.is_empty() {
            return;
        }
        let hash = spread(this.hash);
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
            debug_assert_eq!(self.reference_at(target), derived.targets().nth(position));
            let incoming = &mut self.slots[target.index()].incoming;
            edges.push(Edge { slot: target, position: narrow(incoming.len()) });
            incoming.push(Edge { slot, position: narrow(position) });
        }
        self.slots[slot.index()].edges = edges;
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
        let mut edges = std::mem::take(&mut self.slots[slot.index()].edges);
        for i in 0..edges.len() {
            let edge = edges[i];
            let incoming = &mut self.slots[edge.slot.index()].incoming;
            incoming.swap_remove(edge.position as usize);
            if let Some(&moved) = incoming.get(edge.position as usize) {
                // The moved edge may be another one of this very slot, which are out of place meanwhile.
                let owner =
                    if moved.slot == slot { &mut edges } else { &mut self.slots[moved.slot.index()].edges };
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
