//! Which part of the graphs a run is about.

use std::collections::BTreeSet;

use setpoint_graph::{Graph, ItemRef, SlotId, State, SubgraphPath};

/// The part of the graphs that a plan or a run may bring to its intended state.
///
/// What is outside is never modified. It is deleted and created again where a dependency demands it, and
/// created where it only waited for what the selection brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Everything.
    #[default]
    All,
    /// A subgraph with all that is nested in it.
    Subgraph(SubgraphPath),
    /// These items.
    Items(BTreeSet<ItemRef>),
}

impl Selection {
    /// Everything.
    pub fn all() -> Self {
        Self::All
    }

    /// A subgraph with all that is nested in it.
    pub fn subgraph(path: impl Into<SubgraphPath>) -> Self {
        Self::Subgraph(path.into())
    }

    /// A single item.
    pub fn item(item: impl Into<ItemRef>) -> Self {
        Self::Items(BTreeSet::from([item.into()]))
    }

    /// Several items.
    pub fn items<R: Into<ItemRef>>(items: impl IntoIterator<Item = R>) -> Self {
        Self::Items(items.into_iter().map(Into::into).collect())
    }

    /// Returns whether an item in a subgraph is selected.
    pub(crate) fn covers(&self, item: &ItemRef, path: &SubgraphPath) -> bool {
        match self {
            Self::All => true,
            Self::Subgraph(selected) => selected.is_prefix_of(path),
            Self::Items(items) => items.contains(item),
        }
    }

    /// Returns whether the item in this slot of a graph is selected.
    pub(crate) fn holds<S: State>(&self, graph: &Graph<S>, slot: SlotId) -> bool {
        match self {
            Self::All => true,
            Self::Subgraph(path) => graph.subgraph(path).is_some_and(|view| view.contains_slot(slot)),
            Self::Items(items) => graph.reference_at(slot).is_some_and(|item| items.contains(item)),
        }
    }
}
