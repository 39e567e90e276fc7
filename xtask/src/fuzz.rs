//! `cargo xtask fuzz NAME --minutes N`: mutates a corpus for as long as asked.
//!
//! The mutations are a test of the crate they are about, on stable Rust and built as all tests are; this command tells it
//! how long to go on. A failing input is printed with its seed and kept in a file.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::{one_test, soak, workspace};

/// Arguments of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to feed.
    #[arg(value_enum, default_value = "haproxy")]
    name: Fuzz,
    /// For how long; parts of a minute are fine.
    #[arg(long, value_name = "N", default_value = "1", value_parser = soak::parse_minutes)]
    minutes: Duration,
    /// A folder of further configurations to mutate, such as real ones.
    #[arg(long, value_name = "DIR")]
    corpus: Option<PathBuf>,
    /// The seed of the first input; the next ones count up from it.
    #[arg(long)]
    seed: Option<u64>,
}

/// What can be fed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Fuzz {
    /// The reader of HAProxy configurations, its edits and its comparator.
    Haproxy,
}

impl Fuzz {
    /// The package, its test binary, and the tests in it.
    fn tests(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self {
            Self::Haproxy => (
                "setpoint-haproxy",
                "all",
                &[
                    "fuzz::mutated_configurations_are_read_without_panic_hang_or_loss",
                    "fuzz::haproxy_reads_the_same_before_and_after_formatting",
                    "fuzz::haproxy_accepts_what_is_applied_where_it_accepts_what_is_desired",
                ],
            ),
        }
    }
}

/// Runs the mutations. A run in which the test was not found is a failure.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (package, binary, tests) = args.name.tests();
    let corpus = args.corpus.as_ref().map(std::fs::canonicalize).transpose().context("the corpus")?;
    let share = args.minutes / u32::try_from(tests.len()).unwrap_or(1);
    for test in tests {
        let mut command = workspace::cargo();
        command
            .args(["test", "--package", package, "--test", binary])
            .args(["--", "--exact", test, "--nocapture"])
            .env("SETPOINT_FUZZ_SECONDS", share.as_secs().max(1).to_string())
            .env_remove("SETPOINT_SEED");
        if let Some(seed) = args.seed {
            command.env("SETPOINT_SEED", seed.to_string());
        }
        if let Some(corpus) = &corpus {
            command.env("SETPOINT_FUZZ_CORPUS", corpus);
        }
        let status = one_test::run(command, package, test)?;
        if status != ExitCode::SUCCESS {
            return Ok(status);
        }
    }
    Ok(ExitCode::SUCCESS)
}
