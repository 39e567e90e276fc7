//! The crate as its callers use it, and beside the real HAProxy.
#![expect(clippy::unwrap_used, reason = "tests")]

mod conformance;
mod compare;
mod configurations;
mod fuzz;
mod text;
mod words;
