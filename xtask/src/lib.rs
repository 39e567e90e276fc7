//! What the development commands share: where the workspace is, how one test is run, what a person sees meanwhile.
//!
//! ```text
//! cargo xtask ──▶ xtask ──test, parts, up, bench, …──▶ done
//!                   └──conformance, dist, schema──▶ cargo run --package xtask-product ──▶ done
//! ```
//!
//! `xtask` is made of no crate of the product, so that `cargo xtask test` says what is wrong also where one can't be compiled.
#![expect(clippy::print_stdout, reason = "a command line talks to the terminal")]

pub mod console;
pub mod exit;
pub mod one_test;
pub mod optimised;
pub mod product;
pub mod workspace;
