//! Edits of single items. Each takes a revision; a refused one changes nothing.

use crate::slot::ROOT;
use crate::{Graph, GraphError, ItemHandle, ItemRef, Name, SlotId, State, SubgraphPath};

impl<S: State> Graph<S> {
    /// Makes a graph of items.
    pub fn with_items<I: Into<ItemHandle>>(
        name: impl Into<Name>,
        items: impl IntoIterator<Item = I>,
    ) -> Result<Self, GraphError> {
        let mut graph = Self::new(name);
        for item in items {
            graph.put_item(item)?;
        }
        Ok(graph)
    }

    /// Puts an item into the root graph, or replaces the one there with the same reference.
    ///
    /// An equal item changes nothing. Returns the slot.
    pub fn put_item(&mut self, item: impl Into<ItemHandle>) -> Result<SlotId, GraphError> {
        self.put_into_group(ROOT, &item.into())
    }

    /// Puts an item into a subgraph, which is made if it is not there.
    pub fn put_item_into(
        &mut self,
        path: &SubgraphPath,
        item: impl Into<ItemHandle>,
    ) -> Result<SlotId, GraphError> {
        let item = item.into();
        self.check_put(&item, path)?;
        let group = self.make_group(ROOT, path);
        self.put_into_group(group, &item)
    }

    /// Puts an item with data beside it into a subgraph, which is made if it is not there.
    pub fn put_item_with_state(
        &mut self,
        path: &SubgraphPath,
        item: impl Into<ItemHandle>,
        state: S,
    ) -> Result<SlotId, GraphError> {
        let slot = self.put_item_into(path, item)?;
        self.slots[slot.index()].state = Some(state);
        self.touch(slot);
        Ok(slot)
    }

    /// Removes an item, wherever it lives, and returns it.
    pub fn del_item(&mut self, reference: &ItemRef) -> Result<ItemHandle, GraphError> {
        let slot = self.slot_of(reference).filter(|&slot| self.item_at(slot).is_some());
        let Some(slot) = slot else {
            return Err(GraphError::NoSuchItem { item: reference.clone(), lives_in: SubgraphPath::root() });
        };
        self.remove(slot)
            .ok_or_else(|| GraphError::NoSuchItem { item: reference.clone(), lives_in: SubgraphPath::root() })
    }

    /// Moves an item into another subgraph, which is made if it is not there.
    pub fn move_item(&mut self, reference: &ItemRef, path: &SubgraphPath) -> Result<(), GraphError> {
        let Some(slot) = self.slot_of(reference).filter(|&slot| self.item_at(slot).is_some()) else {
            return Err(GraphError::NoSuchItem { item: reference.clone(), lives_in: SubgraphPath::root() });
        };
        let group = self.make_group(ROOT, path);
        if self.slots[slot.index()].group != group {
            self.leave_group(slot);
            self.join_group(slot, group);
            self.touch(slot);
        }
        Ok(())
    }

    /// Sets the data beside an item. Counts as a mutation of the item.
    pub fn set_state(&mut self, reference: &ItemRef, state: S) -> Result<(), GraphError> {
        let Some(slot) = self.slot_of(reference).filter(|&slot| self.item_at(slot).is_some()) else {
            return Err(GraphError::NoSuchItem { item: reference.clone(), lives_in: SubgraphPath::root() });
        };
        self.slots[slot.index()].state = Some(state);
        self.touch(slot);
        Ok(())
    }

    /// The data beside the item in a slot, to change it. Takes no revision: for whoever owns that data.
    pub fn state_at_mut(&mut self, slot: SlotId) -> Option<&mut S> {
        self.slots.get_mut(slot.index())?.state.as_mut()
    }

    /// Sets the data beside the item in a slot. Takes no revision: for whoever owns that data.
    pub fn set_state_at(&mut self, slot: SlotId, state: S) {
        if let Some(slot) = self.slots.get_mut(slot.index())
            && slot.item().is_some()
        {
            slot.state = Some(state);
        }
    }

    fn check_put(&self, item: &ItemHandle, path: &SubgraphPath) -> Result<(), GraphError> {
        refuse_external_with_dependencies(item)?;
        match self.path_of(item.reference()) {
            Some(lives_in) if lives_in != *path => Err(GraphError::LivesElsewhere {
                item: item.reference().clone(),
                lives_in,
                put_into: path.clone(),
            }),
            _ => Ok(()),
        }
    }
}

pub(crate) fn refuse_external_with_dependencies(item: &ItemHandle) -> Result<(), GraphError> {
    match item.external().then(|| item.dependencies().first()).flatten() {
        Some(first) => Err(GraphError::ExternalWithDependencies {
            item: item.reference().clone(),
            needs: first.to_string(),
        }),
        None => Ok(()),
    }
}
