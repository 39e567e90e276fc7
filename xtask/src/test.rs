//! `cargo xtask test [NAME…]`: everything that has to hold before a change lands.
//!
//! ```text
//! names ──▶ selection ──▶ steps (format, clippy, documentation, tests) ──▶ tally ──▶ closing line
//! ```
//!
//! A failing step does not stop the next one: a person sees all that is wrong in one run. The last line is
//! always `N passed, N failed, N skipped`. Tests count as what they are; a failed step in which no test failed
//! (a format difference, a compile error, an aborted test binary) counts as one failure.

mod selection;
mod step;
mod tally;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::{console, workspace};
use selection::Selection;
use tally::Tally;

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Crates (`engine` is `setpoint-engine`) or groups of tests to run; everything if none is named.
    names: Vec<String>,
}

/// Groups of tests that are named after what they need, across crates: `haproxy::serves_a_request` belongs to
/// the group `haproxy`.
const GROUPS: &[&str] = &[];

/// Runs the steps and prints the closing line.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let started = Instant::now();
    let groups: BTreeSet<String> = GROUPS.iter().map(ToString::to_string).collect();
    let selection = Selection::parse(&args.names, &workspace::packages()?, &groups)?;

    let mut tally = Tally::default();
    let mut failed_steps = Vec::new();
    for mut step in step::steps(&selection) {
        let outcome = step.run()?;
        tally.add(&outcome.tally);
        if !outcome.succeeded {
            failed_steps.push(step.name);
        }
    }

    console::heading(format_args!("summary ({})", console::human(started.elapsed())));
    for step in &failed_steps {
        println!("failed: {step}");
    }
    for test in &tally.failures {
        println!("failed: {test}");
    }
    println!("{tally}");
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
