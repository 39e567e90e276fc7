//! The difference between two graphs, or between two parts of graphs.

use std::fmt;

use serde::Serialize;

use crate::{Graph, ItemRef, State, SubgraphPath, View};

/// How one item differs between two graphs.
///
/// ```
/// use setpoint_graph::{DifferenceKind, Mark};
/// assert_eq!(Mark::from(DifferenceKind::Modified), Mark::Changed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceKind {
    /// Only the second graph has it.
    Added,
    /// Only the first graph has it.
    Removed,
    /// Its state differs.
    Modified,
    /// Its state is equal, but it lives in another subgraph.
    Moved,
}

/// One item that differs between two graphs.
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
/// let (mut one, mut two): (Graph, Graph) = (Graph::new("old"), Graph::new("new"));
/// one.put_item(Part("crank", &[]))?;
/// two.put_item(Part("motor", &[]))?;
/// let signs: Vec<_> = one.diff(&two).iter().map(ToString::to_string).collect();
/// assert_eq!(signs, ["- part/crank", "+ part/motor"]);
/// # Ok::<(), GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which item.
    pub item: ItemRef,
    /// How it differs.
    pub change: DifferenceKind,
    /// Where it lives in the first graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<SubgraphPath>,
    /// Where it lives in the second graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<SubgraphPath>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.change {
            DifferenceKind::Added => '+',
            DifferenceKind::Removed => '-',
            DifferenceKind::Modified => '~',
            DifferenceKind::Moved => '>',
        };
        write!(f, "{sign} {}", self.item)
    }
}

impl<S: State> Graph<S> {
    /// All items that differ on the way from this graph to another, ordered by reference.
    pub fn diff<O: State>(&self, other: &Graph<O>) -> Vec<Difference> {
        self.view().diff(&other.view())
    }
}

impl<S: State> View<'_, S> {
    /// All items that differ on the way from this part to another, ordered by reference.
    ///
    /// Paths are taken relative to the two parts, so that parts at different depths compare.
    pub fn diff<O: State>(&self, other: &View<'_, O>) -> Vec<Difference> {
        let mut differences = Vec::new();
        for node in self.items() {
            let item = node.reference();
            let from = self.relative_path(item);
            let theirs = other.item(item);
            let to = theirs.and_then(|_| other.relative_path(item));
            let change = match &theirs {
                None => DifferenceKind::Removed,
                Some(theirs) if theirs.item() != node.item() => DifferenceKind::Modified,
                Some(_) if from != to => DifferenceKind::Moved,
                Some(_) => continue,
            };
            differences.push(Difference { item: item.clone(), change, from, to });
        }
        for node in other.items().filter(|node| self.item(node.reference()).is_none()) {
            let item = node.reference();
            let to = other.relative_path(item);
            differences.push(Difference {
                item: item.clone(),
                change: DifferenceKind::Added,
                from: None,
                to,
            });
        }
        differences.sort_by(|a, b| a.item.cmp(&b.item));
        differences
    }
}
