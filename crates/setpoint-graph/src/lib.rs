//! Dependency graphs of configuration items.
//!
//! A state, current or intended, is a [`Graph`] of [`Item`]s: each is one thing with a kind and a name,
//! and its dependencies are edges to other items, which may or may not be there. Items live in nested
//! subgraphs; references are unique over the whole graph.
//!
//! ```text
//!  your struct ──impl Item──▶ ItemHandle ──put──▶ Graph ─┬─▶ view, diff, cycles
//!                             (reference,                ├─▶ DOT, JSON, SVG
//!                              dependencies)             ├─▶ serde, for registered types
//!                                                        └─▶ journal of revisions
//! ```
//!
//! The crate is pure: it does no I/O and knows nothing of who changes the state.

mod batch;
mod by_slot;
mod component;
mod cycle;
mod dependency;
mod diff;
mod edit;
mod error;
mod export;
mod graph;
mod handle;
mod item;
mod journal;
mod name;
mod node;
mod path;
mod slot;
mod state;
mod subgraph;
mod types;
mod view;
mod wire;

pub use batch::Batch;
pub use component::Components;
pub use cycle::Cycle;
pub use dependency::{Dependency, Deps};
pub use diff::{Difference, DifferenceKind};
pub use error::GraphError;
pub use export::{
    Drawing, DrawnEdge, DrawnNode, DrawnPresence, DrawnSubgraph, Layout, Mark, Marks, Point, Rect,
};
pub use graph::Graph;
pub use handle::SubgraphMut;
pub use item::{Attribute, Attributes, Comparable, Item, ItemHandle, differing};
pub use journal::{GraphId, Revision, Touched};
pub use name::{ItemRef, Kind, Name, ResourceKey};
pub use node::{DependencyEdge, Node};
pub use path::SubgraphPath;
pub use slot::{Edge, SlotId};
pub use state::{Look, State};
pub use types::{ItemTypes, TypesError};
pub use view::View;
