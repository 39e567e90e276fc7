//! Edits of the tree of subgraphs.

use crate::slot::{Group, ROOT, narrow};
use crate::{Graph, GraphError, Name, SlotId, State, SubgraphPath};

impl<S: State> Graph<S> {
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
        let replaced = self.group_at(&path);
        let elsewhere = graph.items().find_map(|node| {
            let ours = self.node_of(node.reference())?;
            let home = self.slots[ours.slot().index()].group;
            (!replaced.is_some_and(|top| self.is_within(home, top))).then_some((node, ours))
        });
        if let Some((theirs, ours)) = elsewhere {
            return Err(GraphError::LivesElsewhere {
                item: ours.reference().clone(),
                lives_in: ours.path(),
                put_into: path.concat(&theirs.path()),
            });
        }
        let group = self.make_group(ROOT, &path);
        let obsolete: Vec<SlotId> = self
            .slots_below(group)
            .filter(|&slot| graph.slot_like(self, slot).and_then(|slot| graph.item_at(slot)).is_none())
            .collect();
        for slot in obsolete {
            self.remove(slot);
        }
        self.drop_groups_unlike(group, &graph);
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

    pub(crate) fn join_group(&mut self, slot: SlotId, group: u32) {
        let members = &mut self.group_mut(group).members;
        members.push(slot.0);
        let member = narrow(members.len() - 1);
        let this = &mut self.slots[slot.index()];
        (this.group, this.member) = (group, member);
    }

    pub(crate) fn leave_group(&mut self, slot: SlotId) {
        let (group, member) = (self.slots[slot.index()].group, self.slots[slot.index()].member);
        let members = &mut self.group_mut(group).members;
        members.swap_remove(member as usize);
        if let Some(&moved) = members.get(member as usize) {
            self.slots[moved as usize].member = member;
        }
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

    /// Removes the groups below a group that a graph about to be adopted there does not have.
    fn drop_groups_unlike(&mut self, group: u32, graph: &Graph<S>) {
        let mut todo = vec![(group, ROOT)];
        while let Some((ours, theirs)) = todo.pop() {
            let children: Vec<(Name, u32)> = self.group(ours).children.clone().into_iter().collect();
            for (name, child) in children {
                if let Some(&their_child) = graph.group(theirs).children.get(&name) {
                    todo.push((child, their_child));
                    continue;
                }
                // What is inside and not obsolete is about to be moved: give it a home meanwhile.
                let inside: Vec<SlotId> = self.slots_below(child).collect();
                for slot in inside {
                    self.leave_group(slot);
                    self.join_group(slot, ours);
                    self.touch(slot);
                }
                self.drop_group(child);
            }
        }
    }

    /// Returns whether a group is another one or somewhere below it.
    pub(crate) fn is_within(&self, mut group: u32, top: u32) -> bool {
        while group != top && group != ROOT {
            group = self.group(group).parent;
        }
        group == top
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
                if let Ok(slot) = self.put_into_group(ours, &item)
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
