//! The crate as its callers use it, and beside the real HAProxy.
#![expect(clippy::unwrap_used, clippy::panic, clippy::format_collect, reason = "tests")]

mod accepted;
mod actions;
mod added;
mod apply;
mod attributes;
mod check;
mod compare;
mod configurations;
mod conformance;
mod differences;
mod edit;
mod found;
mod found_lines;
mod fuzz;
mod growth;
mod keywords;
mod lists;
mod model;
mod printer;
mod refused;
mod repeated_options;
mod repetition;
mod runtime;
mod samples;
mod schema;
mod secrets;
mod text;
mod values;
mod words;
