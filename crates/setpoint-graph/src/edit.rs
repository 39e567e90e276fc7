//! Mutations. Each takes a revision; a refused one changes nothing.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::graph::{Content, Edge, Group, ROOT, Slot, spread};
use crate::journal::Touched;
use crate::{Graph, GraphError, ItemHandle, ItemRef, Name, SlotId, State, SubgraphPath};

impl<S: State> Graph<S> {
    /// Puts an item into the root graph, or replaces the one there with the same reference.
    ///
    /// An equal item changes nothing. Returns the slot.
    pub fn put_item(&mut self, item: impl Into<ItemHandle>) -> Result<SlotId, GraphError> {
        self.put_into_group(ROOT, item.into())
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
        self.put_into_group(group, item)
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

    /// Makes a subgraph, and those around it, where they are not there yet.
    pub fn make_subgraph(&mut self, path: &SubgraphPath) {
        self.make_group(ROOT, path);
    }

    /// Says what a subgraph is about; it is made if it is not there.
    pub fn describe_subgraph(&mut self, path: &SubgraphPath, description: impl Into<String>) {
        let group = self.make_group(ROOT, path);
        self.group_mut(group).description = description.into();
    }

    /// Puts a whole graph, under its own name, as a subgraph below `parent`, in place of one of that name.
    ///
    /// What the replaced one held and the new one does not is removed; equal items are left alone.
    pub fn put_subgraph(&mut self, parent: &SubgraphPath, graph: Graph<S>) -> Result<(), GraphError> {
        let path = parent.join(graph.name());
        for node in graph.items() {
            if let Some(lives_in) = self.path_of(node.reference())
                && !path.is_prefix_of(&lives_in)
            {
                let put_into = path.concat(&node.path());
                return Err(GraphError::LivesElsewhere {
                    item: node.reference().clone(),
                    lives_in,
                    put_into,
                });
            }
        }
        let group = self.make_group(ROOT, &path);
        let obsolete: Vec<SlotId> = self
            .slots_below(group)
            .filter(|&slot| graph.slot_like(self, slot).and_then(|slot| graph.item_at(slot)).is_none())
            .collect();
        for slot in obsolete {
            self.remove(slot);
        }
        self.drop_groups_unlike(group, &graph, ROOT);
        self.adopt(group, graph);
        Ok(())
    }

    /// Removes a subgraph with all that is in it.
    pub fn del_subgraph(&mut self, path: &SubgraphPath) -> Result<(), GraphError> {
        if path.is_root() {
            return Err(GraphError::Root { what: "deleted" });
        }
        let Some(group) = self.group_at(path) else {
            return Err(GraphError::NoSuchSubgraph { path: path.clone() });
        };
        let inside: Vec<SlotId> = self.slots_below(group).collect();
        for slot in inside {
            self.remove(slot);
        }
        self.drop_group(group);
        Ok(())
    }

    /// Removes subgraphs below and including this one that hold nothing and that `keep` does not want.
    pub fn prune_subgraphs(&mut self, path: &SubgraphPath, keep: impl Fn(&SubgraphPath) -> bool) {
        let Some(top) = self.group_at(path) else { return };
        let mut order = vec![top];
        let mut next = 0;
        while let Some(&group) = order.get(next) {
            order.extend(self.group(group).children.values());
            next += 1;
        }
        for group in order.into_iter().rev().filter(|&group| group != ROOT) {
            let this = self.group(group);
            if this.members.is_empty() && this.children.is_empty() && !keep(&self.path_of_group(group)) {
                self.drop_group(group);
            }
        }
    }

    /// Makes several edits that are only validated together: an item may leave one subgraph and appear in
    /// another in any order. Refused edits change nothing.
    pub fn edit(&mut self, batch: Batch) -> Result<(), GraphError> {
        let mut outcome: BTreeMap<ItemRef, Option<(SubgraphPath, Option<ItemHandle>)>> = BTreeMap::new();
        for (reference, steps) in batch.steps {
            let before = self.path_of(&reference);
            let mut places: BTreeMap<SubgraphPath, Option<ItemHandle>> = BTreeMap::new();
            places.extend(before.into_iter().map(|path| (path, None)));
            for step in steps {
                match step {
                    Step::Put(path, item) => {
                        refuse_external_with_dependencies(&item)?;
                        places.insert(path, Some(item));
                    }
                    Step::Del(path) => {
                        if places.remove(&path).is_none() {
                            return Err(GraphError::NoSuchItem { item: reference, lives_in: path });
                        }
                    }
                }
            }
            let mut places = places.into_iter();
            let place = places.next();
            if let (Some((lives_in, _)), Some((put_into, _))) = (&place, places.next()) {
                return Err(GraphError::LivesElsewhere {
                    item: reference,
                    lives_in: lives_in.clone(),
                    put_into,
                });
            }
            outcome.insert(reference, place);
        }
        for (reference, place) in outcome {
            match place {
                None if !self.contains(&reference) => {}
                None => {
                    self.del_item(&reference)?;
                }
                Some((path, item)) => {
                    if self.contains(&reference) {
                        self.move_item(&reference, &path)?;
                    }
                    if let Some(item) = item {
                        self.put_item_into(&path, item)?;
                    }
                }
            }
        }
        Ok(())
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

    pub(crate) fn put_into_group(&mut self, group: u32, item: ItemHandle) -> Result<SlotId, GraphError> {
        refuse_external_with_dependencies(&item)?;
        let slot = self.slot_for(item.reference());
        match &self.slots[slot.index()].content {
            Content::Item(old) => {
                let home = self.slots[slot.index()].group;
                if home != group {
                    return Err(GraphError::LivesElsewhere {
                        item: item.reference().clone(),
                        lives_in: self.path_of_group(home),
                        put_into: self.path_of_group(group),
                    });
                }
                if *old == item {
                    return Ok(slot);
                }
                self.disconnect(slot);
            }
            _ => {
                self.len += 1;
                self.join_group(slot, group);
            }
        }
        self.slots[slot.index()].content = Content::Item(item.clone());
        self.connect(slot, &item);
        self.touch(slot);
        Ok(slot)
    }

    pub(crate) fn remove(&mut self, slot: SlotId) -> Option<ItemHandle> {
        let item = self.slots[slot.index()].item()?.clone();
        self.disconnect(slot);
        self.leave_group(slot);
        self.len -= 1;
        let this = &mut self.slots[slot.index()];
        this.state = None;
        this.content = Content::Mentioned(Box::new(item.reference().clone()));
        self.touch(slot);
        self.free_if_unused(slot);
        Some(item)
    }

    /// Finds the slot of a reference, or makes one in which it is only mentioned.
    fn slot_for(&mut self, reference: &ItemRef) -> SlotId {
        if let Some(slot) = self.slot_of(reference) {
            return slot;
        }
        let fresh = Slot {
            content: Content::Mentioned(Box::new(reference.clone())),
            edges: SmallVec::new(),
            incoming: SmallVec::new(),
            hash: reference.hash32(),
            group: ROOT,
            member: 0,
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

    /// Draws the edges of a newly put item and registers its claims.
    fn connect(&mut self, slot: SlotId, item: &ItemHandle) {
        let mut edges = SmallVec::with_capacity(item.dependencies().len());
        for (position, target) in (0_u32..).zip(item.derived().targets()) {
            let target = self.slot_for(target);
            let incoming = &mut self.slots[target.index()].incoming;
            edges.push(Edge { slot: target, position: narrow(incoming.len()) });
            incoming.push(Edge { slot, position });
        }
        self.slots[slot.index()].edges = edges;
        for key in item.claims() {
            self.claims.entry(key.clone()).or_default().push(slot);
        }
    }

    /// Removes the edges and claims of the item in a slot.
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
        let Some(item) = self.slots[slot.index()].item().cloned() else { return };
        for key in item.claims() {
            if let Some(holders) = self.claims.get_mut(key) {
                holders.retain(|holder| *holder != slot);
                if holders.is_empty() {
                    self.claims.remove(key);
                }
            }
        }
    }

    fn join_group(&mut self, slot: SlotId, group: u32) {
        let members = &mut self.group_mut(group).members;
        members.push(slot.0);
        let member = narrow(members.len() - 1);
        let this = &mut self.slots[slot.index()];
        (this.group, this.member) = (group, member);
    }

    fn leave_group(&mut self, slot: SlotId) {
        let (group, member) = (self.slots[slot.index()].group, self.slots[slot.index()].member);
        let members = &mut self.group_mut(group).members;
        members.swap_remove(member as usize);
        if let Some(&moved) = members.get(member as usize) {
            self.slots[moved as usize].member = member;
        }
    }

    fn touch(&mut self, slot: SlotId) {
        let slots = self.slots.len();
        self.journal.record(Touched::Slot(slot), slots);
    }

    pub(crate) fn make_group(&mut self, below: u32, path: &SubgraphPath) -> u32 {
        let mut group = below;
        for name in path.names() {
            group = match self.group(group).children.get(name) {
                Some(&child) => child,
                None => self.new_group(group, name),
            };
        }
        group
    }

    fn new_group(&mut self, parent: u32, name: &Name) -> u32 {
        let fresh = Some(Group { name: name.clone(), parent, ..Group::default() });
        let id = if let Some(id) = self.free_groups.pop() {
            self.groups[id as usize] = fresh;
            id
        } else {
            self.groups.push(fresh);
            narrow(self.groups.len() - 1)
        };
        self.group_mut(parent).children.insert(name.clone(), id);
        id
    }

    /// Removes an emptied group and the groups below it.
    fn drop_group(&mut self, group: u32) {
        let parent = self.group(group).parent;
        let name = self.group(group).name.clone();
        self.group_mut(parent).children.remove(&name);
        let mut doomed = vec![group];
        while let Some(group) = doomed.pop() {
            if let Some(this) = self.groups[group as usize].take() {
                doomed.extend(this.children.into_values());
                self.free_groups.push(group);
            }
        }
    }

    fn drop_groups_unlike(&mut self, group: u32, graph: &Graph<S>, theirs: u32) {
        let children = self.group(group).children.clone();
        for (name, child) in children {
            match graph.group(theirs).children.get(&name) {
                Some(&their_child) => self.drop_groups_unlike(child, graph, their_child),
                None => {
                    // What is inside and not obsolete is about to be moved: give it a home meanwhile.
                    let inside: Vec<SlotId> = self.slots_below(child).collect();
                    for slot in inside {
                        self.leave_group(slot);
                        self.join_group(slot, group);
                    }
                    self.drop_group(child);
                }
            }
        }
    }

    /// Takes over all items of a graph below a group. The caller has checked that none lives elsewhere.
    fn adopt(&mut self, group: u32, mut graph: Graph<S>) {
        let mut order = vec![(ROOT, group)];
        while let Some((theirs, ours)) = order.pop() {
            self.group_mut(ours).description.clone_from(&graph.group(theirs).description);
            for member in graph.group(theirs).members.clone() {
                let theirs = &mut graph.slots[member as usize];
                let state = theirs.state.take();
                let Some(item) = theirs.item().cloned() else { continue };
                if let Some(slot) = self.slot_of(item.reference())
                    && self.item_at(slot).is_some()
                    && self.slots[slot.index()].group != ours
                {
                    self.leave_group(slot);
                    self.join_group(slot, ours);
                    self.touch(slot);
                }
                if let Ok(slot) = self.put_into_group(ours, item)
                    && state.is_some()
                {
                    self.slots[slot.index()].state = state;
                    self.touch(slot);
                }
            }
            let children: Vec<(Name, u32)> =
                graph.group(theirs).children.iter().map(|(name, id)| (name.clone(), *id)).collect();
            for (name, theirs) in children {
                let ours = self.make_group(ours, &SubgraphPath::from([name]));
                order.push((theirs, ours));
            }
        }
    }

    pub(crate) fn slots_below(&self, group: u32) -> impl Iterator<Item = SlotId> {
        let mut groups = vec![group];
        let mut members: std::slice::Iter<'_, u32> = [].iter();
        std::iter::from_fn(move || {
            loop {
                if let Some(&slot) = members.next() {
                    return Some(SlotId(slot));
                }
                let group = self.group(groups.pop()?);
                groups.extend(group.children.values());
                members = group.members.iter();
            }
        })
    }
}

fn refuse_external_with_dependencies(item: &ItemHandle) -> Result<(), GraphError> {
    match item.dependencies().first() {
        Some(first) if item.external() => Err(GraphError::ExternalWithDependencies {
            item: item.reference().clone(),
            needs: first.to_string(),
        }),
        _ => Ok(()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a graph of four billion slots does not fit in memory")]
fn narrow(index: usize) -> u32 {
    index as u32
}

/// Edits that are made together, see [`Graph::edit`].
#[derive(Debug, Default)]
pub struct Batch {
    steps: BTreeMap<ItemRef, Vec<Step>>,
}

#[derive(Debug)]
enum Step {
    Put(SubgraphPath, ItemHandle),
    Del(SubgraphPath),
}

impl Batch {
    /// Starts an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an item into a subgraph.
    #[must_use]
    pub fn put(mut self, path: &SubgraphPath, item: impl Into<ItemHandle>) -> Self {
        let item = item.into();
        let steps = self.steps.entry(item.reference().clone()).or_default();
        steps.push(Step::Put(path.clone(), item));
        self
    }

    /// Removes an item from a subgraph.
    #[must_use]
    pub fn del(mut self, path: &SubgraphPath, reference: impl Into<ItemRef>) -> Self {
        self.steps.entry(reference.into()).or_default().push(Step::Del(path.clone()));
        self
    }
}
