//! Consul's key-value store as plain data: the entries that are read, and the operations of a transaction.
//!
//! This crate depends on nothing, so that what is computed from entries needs no client. The client is in
//! `setpoint-consul`.
//!
//! ```
//! use setpoint_kv::{Entry, Operation};
//!
//! let entry = Entry { modify_index: 7, ..Entry::new("color", "red") };
//! let change = Operation::Set { key: &entry.key, value: "blue", flags: 0, index: entry.modify_index };
//! assert!(matches!(change, Operation::Set { index: 7, .. }), "it is refused if the key has changed since");
//! ```

mod entry;
mod operation;

pub use entry::Entry;
pub use operation::{MAX_OPERATIONS, Operation};
