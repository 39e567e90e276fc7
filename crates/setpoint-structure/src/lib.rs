//! The structure of a composite: from what Composites declare to entries in Consul ([`declare`]), and from these to the payload of
//! a ConfigMap ([`transform`]).
//!
//! Everything here is a function of its arguments: the crate depends on nothing that reads, writes, waits or knows Kubernetes.
//!
//! ```text
//!  entries ──key──▶ namespaces: compositeRole, bluegreenRole, controllerNamespace
//!                        │ group
//!                        ▼
//!            baseline, satellites by name ──roles──▶ Payload ──to_json──▶ compact, byte-stable
//!                        │                              ▲
//!                        └── ambiguous: never guessed, kept from the previous payload
//! ```
//!
//! [`transform`] never fails. What it can't use it leaves out, and reports as an [`Issue`]; all the rest goes on.
//!
//! ```
//! use setpoint_structure::{Entry, transform};
//!
//! let entries = [
//!     Entry::new("composite/shop/structure/shop/compositeRole", "baseline"),
//!     Entry::new("composite/shop/structure/cart/compositeRole", "satellite"),
//!     Entry::new("composite/shop/structure/blog/compositeRole", "sattelite"),
//! ];
//! let (payload, issues) = transform(&entries, "OnPrem", None);
//! assert_eq!(
//!     payload.to_json(),
//!     r#"{"cloudProvider":"OnPrem","composite":{"baseline":{"origin":"shop"},"satellites":[{"origin":"cart"}]}}"#,
//! );
//! assert_eq!(issues[0].subject, "composite/shop/structure/blog/compositeRole");
//! ```

pub mod declare;
mod group;
mod issue;
mod key;
mod namespace;
mod payload;
mod transform;

pub use issue::{Issue, IssueKind};
pub use key::{Attribute, Key, prefix};
pub use payload::{Payload, Roles, Structure};
pub use setpoint_kv::Entry;
pub use transform::transform;
