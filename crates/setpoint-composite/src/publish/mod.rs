//! The ConfigMap: who may write it, what belongs into it, and how it is written.
//!
//! ```text
//!  snapshots of Consul ──latest──┐
//!  the watch of ConfigMaps ──────┼─▶ Publisher: one pass at a time ─▶ Writer: unforced apply of a known version
//!  check interval, retries ──────┘        │                               │ conflict: read, check, force own fields
//!                                         ▼                               ▼
//!                               PublishState, for the status        fence: is this instance still the leader?
//! ```
//!
//! There is one writer for each ConfigMap, and it always takes the latest snapshot: an older payload never overwrites a newer
//! one. Whoever the label `app.kubernetes.io/managed-by` names owns the ConfigMap; see [`Ownership`].

mod desired;
mod observations;
mod ownership;
mod publisher;
mod write;

pub use desired::{
    COMPOSITE_ANNOTATION, Desired, INDEX_ANNOTATION, SCHEMA_ANNOTATION, SCHEMA_VERSION,
    TRANSITIONS_ANNOTATION, Target, payload_of,
};
pub use observations::{Observation, Observations};
pub use ownership::{MANAGED_BY, Ownership, PART_OF, ownership};
pub use publisher::{Poll, PublishState, Publisher, PublisherSettings, Standing};
pub use write::{WriteError, Writer, Written};
