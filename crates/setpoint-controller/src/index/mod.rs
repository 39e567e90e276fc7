//! What is known of the watched resources: one index for each kind of them, and what templates see of it.
//!
//! ```text
//!  source ──put, remove──▶ Index ──snapshot──▶ Snapshot: immutable, shared ──▶ one rendering
//!                            └ keys: what `indexBy` finds in a resource
//! ```
//!
//! A snapshot costs nothing until the index changes while it is in use: then the index goes on with a copy.

mod path;
mod resource;
mod store;

pub use path::{Path, PathError};
pub use resource::{NotAResource, Resource, ResourceId};
pub use store::{Changed, Index, Keys, Snapshot};
