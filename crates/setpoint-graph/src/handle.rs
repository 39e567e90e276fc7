//! A handle that edits one subgraph.

use crate::slot::ROOT;
use crate::{Graph, GraphError, ItemHandle, ItemRef, Name, SlotId, State, SubgraphPath, View};

impl<S: State> Graph<S> {
    /// A handle that edits one subgraph; it is made if it is not there.
    pub fn edit_subgraph(&mut self, path: &SubgraphPath) -> SubgraphMut<'_, S> {
        self.make_subgraph(path);
        SubgraphMut { graph: self, path: path.clone(), highest: 0 }
    }
}

/// A handle that edits one subgraph. It borrows the graph, so that it can't outlive the subgraph.
///
/// ```
/// use setpoint_graph::{Graph, SubgraphPath};
///
/// let mut graph: Graph = Graph::new("host");
/// let mut network = graph.edit_subgraph(&SubgraphPath::from(["network"]));
/// network.edit_subgraph(&SubgraphPath::from(["eth0"]));
/// network.del_subgraph("eth0")?;
/// assert_eq!(graph.subgraph_paths(), [SubgraphPath::from(["network"])]);
/// # Ok::<(), setpoint_graph::GraphError>(())
/// ```
///
/// A handle into a subgraph that is deleted meanwhile does not compile:
///
/// ```compile_fail,E0499
/// use setpoint_graph::{Graph, SubgraphPath};
///
/// let mut graph: Graph = Graph::new("host");
/// let mut inner = graph.edit_subgraph(&SubgraphPath::from(["network", "eth0"]));
/// graph.del_subgraph(&SubgraphPath::from(["network"]));
/// inner.del_subgraph("ghost");
/// ```
///
/// Nor does going up leave a handle behind that the parent could delete:
///
/// ```compile_fail,E0382
/// use setpoint_graph::{Graph, SubgraphPath};
///
/// let mut graph: Graph = Graph::new("host");
/// let mut inner = graph.edit_subgraph(&SubgraphPath::from(["network", "eth0"]));
/// inner.edit_parent().unwrap().del_subgraph("eth0");
/// inner.del_subgraph("ghost");
/// ```
#[derive(Debug)]
pub struct SubgraphMut<'a, S: State> {
    graph: &'a mut Graph<S>,
    path: SubgraphPath,
    /// How deep the handle is that this one was made from: going up ends there, as that one must not lose
    /// its subgraph.
    highest: usize,
}

impl<'a, S: State> SubgraphMut<'a, S> {
    /// The subgraph to read from.
    pub fn view(&self) -> View<'_, S> {
        // It is there: whatever could delete it needs this handle.
        let group = self.graph.group_at(&self.path).unwrap_or(ROOT);
        self.graph.view_of(group)
    }

    /// Puts an item directly into this subgraph.
    pub fn put_item(&mut self, item: impl Into<ItemHandle>) -> Result<SlotId, GraphError> {
        self.graph.put_item_into(&self.path, item)
    }

    /// Removes an item that lives directly in this subgraph.
    pub fn del_item(&mut self, reference: &ItemRef) -> Result<ItemHandle, GraphError> {
        if self.graph.path_of(reference).as_ref() != Some(&self.path) {
            let (item, lives_in) = (reference.clone(), self.path.clone());
            return Err(GraphError::NoSuchItem { item, lives_in });
        }
        self.graph.del_item(reference)
    }

    /// Puts a whole graph as a subgraph below this one.
    pub fn put_subgraph(&mut self, graph: Graph<S>) -> Result<(), GraphError> {
        self.graph.put_subgraph(&self.path, graph)
    }

    /// Removes a subgraph directly below this one.
    pub fn del_subgraph(&mut self, name: impl Into<Name>) -> Result<(), GraphError> {
        self.graph.del_subgraph(&self.path.join(name))
    }

    /// Edits a subgraph below this one; it is made if it is not there.
    pub fn edit_subgraph(&mut self, path: &SubgraphPath) -> SubgraphMut<'_, S> {
        let highest = self.path.names().len();
        SubgraphMut { highest, ..self.graph.edit_subgraph(&self.path.concat(path)) }
    }

    /// Edits the subgraph around this one. None for the root, and for the subgraph of the handle that this
    /// one was made from.
    pub fn edit_parent(self) -> Option<SubgraphMut<'a, S>> {
        let path = self.path.parent().filter(|parent| parent.names().len() >= self.highest)?;
        Some(SubgraphMut { path, ..self })
    }
}
