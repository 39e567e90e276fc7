//! Behaviour of the engine, on a simulated system that notices every violated rule.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail by panicking and tell what happened"
)]

mod after;
mod bench;
mod beyond;
mod circles;
mod dice;
mod drift;
mod promises;
mod reasons;
mod regressions;
mod schedule;
mod schedules;
mod seed;
mod world;
