//! The structure of a composite: from the entries in Consul to the payload of the ConfigMap. Pure.
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
//! [`transform`] never fails. What it can't use it leaves out, and says so in an [`Issue`]; all the rest goes on.
//!
//! ```
//! use setpoint_composite::structure::{Entry, transform};
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

mod entry;
mod group;
mod issue;
mod namespace;
mod payload;
mod transform;

pub use entry::{Attribute, Key, prefix};
pub use issue::{Issue, IssueKind};
pub use payload::{Payload, Roles, Structure};
pub use setpoint_consul::Entry;
pub use transform::transform;
