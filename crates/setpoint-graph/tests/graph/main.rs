//! Behaviour of the graph, seen from outside.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod bad_input;
mod batch;
mod cycles;
mod dependencies;
mod diff;
mod edges;
mod export;
mod items;
mod journal;
mod model;
mod selection;
mod subgraphs;
mod support;
mod types;
