//! The edge to Consul: its HTTP API, as far as a structure needs it.
//!
//! ```text
//!  Settings ──▶ Client ──list, read, apply──▶ Consul
//!                  │
//!               Auth: a token, a file that is read for each request, a login with a service account
//! ```
//!
//! A [`Response`] says all that Consul says of its own reliability: its index, whether ACLs filtered it, whether
//! there is a leader and how far behind the server was. What to make of it is up to the caller ([`crate::watch`]).
//! Denied, overloaded, away and empty are four different things: see [`Error`].

mod auth;
mod client;
mod connections;
mod error;
mod settings;
mod wire;

pub use auth::{Auth, Login, Secret};
pub use client::{Client, Read, Response};
pub use error::Error;
pub use settings::{ClientCertificate, Settings, Tls};
pub use wire::entries;
