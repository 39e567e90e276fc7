//! What a running HAProxy is told and asked, without a reload.
//!
//! ```text
//!  Worker ── ask, tell ──▶ the worker's own socket, or its master's
//!    ├─ servers: `show servers state`
//!    ├─ lists: entries of maps and ACLs, replaced as a whole
//!    └─ apply: operations of a comparison ──▶ commands ──▶ done, or the first refusal
//! ```

pub(crate) mod apply;
mod lists;
mod servers;
mod worker;

pub use apply::{Leftover, Refused};
pub use lists::{ListEntry, ListKind, LoadedList, names_of};
pub use servers::{AdminState, ServerState, ServersError};
pub use worker::{Reply, Worker};
