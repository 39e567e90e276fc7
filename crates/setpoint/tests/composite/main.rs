//! `setpoint composite run` as a process, with a real API server and a real Consul: the example of its documentation, and
//! all that can happen to a process.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod chart;
mod crashes;
mod endpoints;
mod example;
mod manifests;
mod many;
mod once;
mod parameters;
mod release;
mod world;
