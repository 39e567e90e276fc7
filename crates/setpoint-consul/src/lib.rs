//! Consul's key-value store: a client of its HTTP API, and a watch of what is below a prefix.
//!
//! ```text
//!  Settings ──▶ Client ──list, read, transact──▶ Consul
//!                  │                               │ blocking queries
//!               Auth: a token, a file that is      ▼
//!               read for each request, a login   watch ──▶ Snapshot
//! ```
//!
//! A [`Response`] has all that Consul reports of its own reliability: its index, whether ACLs filtered it, whether
//! there is a leader and how far behind the server was. What to make of it is up to the caller, such as [`watch`].
//! Denied, overloaded, away and empty are four different things: see [`Error`].

mod auth;
mod client;
mod connections;
mod error;
mod settings;
pub mod watch;
mod wire;

pub use auth::{Auth, Login, Secret};
pub use client::{Client, Read, Response};
pub use error::Error;
pub use setpoint_kv::{Entry, MAX_OPERATIONS, Operation};
pub use settings::{ClientCertificate, Settings, Tls};
pub use watch::Cursor;
pub use wire::entries;
