//! `cargo xtask keywords`: asks each HAProxy which words it knows, and writes the list of them anew.
//!
//! The questions are a test of `setpoint-haproxy`, which otherwise holds the committed list to the answers.

use std::process::ExitCode;

use anyhow::Result;

use crate::{one_test, workspace};

const PACKAGE: &str = "setpoint-haproxy";
const TEST: &str = "keywords::the_listed_keywords_are_those_that_each_haproxy_knows";

/// Arguments of `cargo xtask keywords`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Asks for every word in every section of every version, which takes some minutes.
pub(crate) fn run(_: &Args) -> Result<ExitCode> {
    let mut command = workspace::cargo();
    command
        .args(["test", "--package", PACKAGE, "--test", "all"])
        .args(["--", "--exact", TEST, "--nocapture"])
        .env("SETPOINT_WRITE_KEYWORDS", "1");
    one_test::run(command, PACKAGE, TEST)
}
