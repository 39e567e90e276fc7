//! Names of hosts to addresses, without the name service switch of the C library.
//!
//! A statically linked program can't load the modules that `getaddrinfo` asks, so nothing here calls it, however the
//! program is linked.
//!
//! ```text
//! name ──▶ /etc/hosts ──▶ localhost ──▶ the name servers of /etc/resolv.conf ──▶ addresses
//!          └─ known_here, alone ─────┘   (feature `dns`)
//! ```
//!
//! The first that knows the name answers. Both files are read for each lookup, so that a change counts from the next
//! connection on. Answers are not kept: a connection is made rarely, and to where the name points now.
//!
//! Who only wants to reach this host asks [`known_here`], which takes no crate of a network: the feature `dns` brings the rest.

mod hosts;
#[cfg(feature = "dns")]
mod resolver;

pub use hosts::known_here;
#[cfg(feature = "dns")]
pub use resolver::{NameError, Resolver};

#[cfg(test)]
mod tests;
