//! What can be wrong with an edit.

use crate::{ItemRef, SubgraphPath};

/// Why an edit of a graph was refused. A refused edit changes nothing.
///
/// ```
/// use setpoint_graph::{Graph, SubgraphPath};
/// let mut graph: Graph = Graph::new("machine");
/// let error = graph.del_subgraph(&SubgraphPath::from(["gears"])).unwrap_err();
/// assert_eq!(error.to_string(), "there is no subgraph gears");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// The item is in another subgraph: a reference is unique over the whole graph, and putting an item does not move it.
    #[error(
        "{item} already lives in {}, and can't be put into {} as well; use move_item to move it",
        place(lives_in),
        place(put_into)
    )]
    LivesElsewhere {
        /// The item that was put.
        item: ItemRef,
        /// Where it lives.
        lives_in: SubgraphPath,
        /// Where it was put.
        put_into: SubgraphPath,
    },
    /// External items are only observed: they wait for nothing.
    #[error("{item} is external and can't have dependencies (it names {needs})")]
    ExternalWithDependencies {
        /// The external item.
        item: ItemRef,
        /// What it claims to depend on.
        needs: String,
    },
    /// There is no such item.
    #[error("there is no item {item}{}", if lives_in.is_root() { String::new() } else { format!(" in {}", place(lives_in)) })]
    NoSuchItem {
        /// The item that was named.
        item: ItemRef,
        /// Where it was looked for.
        lives_in: SubgraphPath,
    },
    /// There is no such subgraph.
    #[error("there is no {}", place(path))]
    NoSuchSubgraph {
        /// The path that was named.
        path: SubgraphPath,
    },
    /// The root is the graph itself.
    #[error("the root graph can't be {what}; name a subgraph")]
    Root {
        /// What was asked of it.
        what: &'static str,
    },
}

fn place(path: &SubgraphPath) -> String {
    if path.is_root() { "the root graph".to_owned() } else { format!("subgraph {path}") }
}
