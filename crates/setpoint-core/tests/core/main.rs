//! The loop around the engine, in simulated time.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod controller;
mod example;
mod polled;
mod world;
