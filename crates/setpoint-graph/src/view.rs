//! Read views of a part of a graph: a subgraph with all that is nested in it, or a single item.

use std::fmt;

use crate::slot::ROOT;
use crate::{DependencyEdge, Graph, ItemHandle, ItemRef, Kind, Name, Node, SlotId, State, SubgraphPath};

/// A part of a graph, seen as a graph of its own. Paths are relative to it.
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
/// graph.put_item_into(&SubgraphPath::from(["drive", "front"]), Part("crank", &[]))?;
/// let drive = graph.subgraph(&SubgraphPath::from(["drive"])).expect("it was made");
/// assert_eq!(drive.len(), 1);
/// assert_eq!(drive.relative_path(&("part", "crank").into()), Some(SubgraphPath::from(["front"])));
/// # Ok::<(), GraphError>(())
/// ```
pub struct View<'a, S: State> {
    graph: &'a Graph<S>,
    scope: Scope,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Group(u32),
    Item(SlotId),
}

impl<S: State> Graph<S> {
    /// The whole graph as a view.
    pub fn view(&self) -> View<'_, S> {
        self.view_of(ROOT)
    }

    /// A subgraph, seen as a graph of its own.
    pub fn subgraph(&self, path: &SubgraphPath) -> Option<View<'_, S>> {
        self.group_at(path).map(|group| self.view_of(group))
    }

    /// A single item, seen as a graph of its own.
    pub fn item_as_graph(&self, reference: &ItemRef) -> Option<View<'_, S>> {
        let slot = self.node_of(reference)?.slot();
        Some(View { graph: self, scope: Scope::Item(slot) })
    }

    /// The paths of all subgraphs, outer before inner, in order.
    pub fn subgraph_paths(&self) -> Vec<SubgraphPath> {
        let mut paths = Vec::new();
        let mut todo = vec![(ROOT, SubgraphPath::root())];
        while let Some((group, path)) = todo.pop() {
            for (name, &child) in self.group(group).children.iter().rev() {
                todo.push((child, path.join(name)));
            }
            if group != ROOT {
                paths.push(path);
            }
        }
        paths
    }

    pub(crate) fn view_of(&self, group: u32) -> View<'_, S> {
        View { graph: self, scope: Scope::Group(group) }
    }
}

impl<S: State> Clone for View<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: State> Copy for View<'_, S> {}

impl<S: State> fmt::Debug for View<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.items().map(|node| node.reference().clone())).finish()
    }
}

impl<'a, S: State> View<'a, S> {
    /// The name of the subgraph, or of the single item.
    pub fn name(&self) -> &'a Name {
        match self.scope {
            Scope::Group(group) => &self.graph.group(group).name,
            Scope::Item(slot) => self.graph.item_at(slot).map_or_else(|| self.graph.name(), ItemHandle::name),
        }
    }

    /// What the subgraph is about.
    pub fn description(&self) -> &'a str {
        match self.scope {
            Scope::Group(group) => &self.graph.group(group).description,
            Scope::Item(_) => "",
        }
    }

    /// Where the view stands in the graph: for a single item, the subgraph it lives in.
    pub fn path(&self) -> SubgraphPath {
        match self.scope {
            Scope::Group(group) => self.graph.path_of_group(group),
            Scope::Item(slot) => self.graph.path_of_group(self.graph.slots[slot.index()].group),
        }
    }

    /// The graph this is a part of.
    pub fn graph(&self) -> &'a Graph<S> {
        self.graph
    }

    /// The subgraph around this one; none for the root.
    pub fn parent(&self) -> Option<View<'a, S>> {
        match self.scope {
            Scope::Group(ROOT) => None,
            Scope::Group(group) => Some(self.graph.view_of(self.graph.group(group).parent)),
            Scope::Item(slot) => Some(self.graph.view_of(self.graph.slots[slot.index()].group)),
        }
    }

    /// The subgraphs directly below, in order of name.
    pub fn subgraphs(&self) -> impl Iterator<Item = View<'a, S>> + use<'a, S> {
        let (graph, children) = (
            self.graph,
            match self.scope {
                Scope::Group(group) => Some(self.graph.group(group).children.values()),
                Scope::Item(_) => None,
            },
        );
        children.into_iter().flatten().map(|&group| graph.view_of(group))
    }

    /// The subgraph at a path below this one.
    pub fn subgraph(&self, path: &SubgraphPath) -> Option<View<'a, S>> {
        let Scope::Group(group) = self.scope else { return None };
        self.graph.group_below(group, path).map(|group| self.graph.view_of(group))
    }

    /// The items directly in this subgraph, in order of reference.
    pub fn own_items(&self) -> Vec<Node<'a, S>> {
        let slots: Vec<SlotId> = match self.scope {
            Scope::Group(group) => self.graph.group(group).members.iter().map(|&slot| SlotId(slot)).collect(),
            Scope::Item(slot) => vec![slot],
        };
        // Most comparisons are decided by the prefix, which needs no look at the texts, wherever they are.
        let mut nodes: Vec<(&Kind, u128, Node<'a, S>)> = slots
            .into_iter()
            .filter_map(|slot| self.graph.node(slot))
            .map(|node| (node.reference().kind(), node.reference().name_prefix(), node))
            .collect();
        nodes.sort_unstable_by(|(kind, prefix, node), (other_kind, other_prefix, other)| {
            let order = kind.cmp(other_kind).then_with(|| prefix.cmp(other_prefix));
            order.then_with(|| node.reference().cmp(other.reference()))
        });
        nodes.into_iter().map(|(_, _, node)| node).collect()
    }

    /// All items, nested subgraphs included, ordered by path and reference.
    pub fn items(&self) -> impl Iterator<Item = Node<'a, S>> + use<'a, S> {
        self.into_items()
    }

    pub(crate) fn into_items(self) -> impl Iterator<Item = Node<'a, S>> + use<'a, S> {
        // Depth first with an explicit stack: nesting may be deeper than the call stack allows.
        let mut todo = vec![self];
        let mut nodes = Vec::new().into_iter();
        std::iter::from_fn(move || {
            loop {
                if let Some(node) = nodes.next() {
                    return Some(node);
                }
                let view = todo.pop()?;
                let first_child = todo.len();
                todo.extend(view.subgraphs());
                todo[first_child..].reverse();
                nodes = view.own_items().into_iter();
            }
        })
    }

    /// How many items there are, nested subgraphs included.
    pub fn len(&self) -> usize {
        match self.scope {
            Scope::Group(ROOT) => self.graph.len(),
            Scope::Group(group) => self.graph.slots_below(group).count(),
            Scope::Item(_) => 1,
        }
    }

    /// Returns whether there is no item at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item with this reference, if it is inside this view.
    pub fn item(&self, reference: &ItemRef) -> Option<Node<'a, S>> {
        self.graph.node_of(reference).filter(|node| self.contains_slot(node.slot()))
    }

    /// Where below this view an item lives; none if it is not inside.
    pub fn relative_path(&self, reference: &ItemRef) -> Option<SubgraphPath> {
        let node = self.item(reference)?;
        match self.scope {
            Scope::Item(_) => Some(SubgraphPath::root()),
            Scope::Group(_) => node.path().strip_prefix(&self.path()),
        }
    }

    /// The edges out of an item of this view, in the order of its dependencies.
    pub fn outgoing(&self, reference: &ItemRef) -> Vec<DependencyEdge<'a>> {
        self.item(reference).map_or_else(Vec::new, |node| self.graph.outgoing(node.reference()))
    }

    /// The edges into an item of this view, from anywhere in the graph, ordered by the dependent.
    pub fn incoming(&self, reference: &ItemRef) -> Vec<DependencyEdge<'a>> {
        self.item(reference).map_or_else(Vec::new, |node| self.graph.incoming(node.reference()))
    }

    /// Returns whether the item in a slot is inside this view.
    pub fn contains_slot(&self, slot: SlotId) -> bool {
        match self.scope {
            Scope::Item(only) => only == slot,
            Scope::Group(top) => {
                self.graph.item_at(slot).is_some()
                    && self.graph.is_within(self.graph.slots[slot.index()].group, top)
            }
        }
    }
}
