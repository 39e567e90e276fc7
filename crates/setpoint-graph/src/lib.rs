//! Dependency graphs of configuration items.
//!
//! A state, current or intended, is a [`Graph`] of [`Item`]s: each is one thing with a kind and a name,
//! and its dependencies are edges to other items, which may or may not be there. Items live in nested
//! subgraphs; references are unique over the whole graph.
//!
//! ```text
//!  your struct ──impl Item──▶ ItemHandle ──put──▶ Graph ─┬─▶ view, diff, cycles
//!                             (reference,                ├─▶ DOT, JSON, SVG
//!                              dependencies)             └─▶ journal of revisions
//! ```
//!
//! The crate is pure: it does no I/O and knows nothing of who changes the state.

mod cycle;
mod dependency;
mod diff;
mod edit;
mod error;
mod graph;
mod item;
mod journal;
mod name;
mod path;
mod slot;
mod view;

pub use cycle::Cycle;
pub use dependency::{Dependency, Deps};
pub use diff::{Change, Difference};
pub use edit::Batch;
pub use error::GraphError;
pub use graph::{DependencyEdge, Edge, Graph, Look, Node, SlotId, State};
pub use item::{Attribute, Attributes, Item, ItemHandle};
pub use journal::{GraphId, Revision, Touched};
pub use name::{ItemRef, Kind, Name, ResourceKey};
pub use path::SubgraphPath;
pub use view::{SubgraphMut, View};
