//! The API in front of a real HAProxy.
#![cfg_attr(
    test,
    expect(
        clippy::unwrap_used,
        clippy::panic,
        clippy::print_stdout,
        reason = "helpers of tests fail the test, and measurements print"
    )
)]

mod compare;
mod conformance;
mod edges;
mod events;
mod faults;
mod found;
mod objects;
mod options;
mod original;
mod parallel;
mod reasons;
mod recording;
mod replay;
mod sequences;
mod specification;
mod stored;
mod tls;
mod world;
