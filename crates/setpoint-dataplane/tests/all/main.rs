//! The client and the sync, on a real HAProxy behind an API.
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod any;
mod client;
mod counting;
mod detection;
mod fake;
mod families;
mod faults;
mod files;
mod kinds;
mod originals;
mod overload;
mod read_back;
mod rolling;
mod scenarios;
mod soak;
mod sync;
mod traffic;
mod ways;
mod world;
