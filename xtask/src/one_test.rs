//! Runs one test of a crate, which does what a command asks for.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::exit;

/// Runs one test and shows what it says. A run in which the test was not found is a failure.
pub fn run(command: Command, package: &str, test: &str) -> Result<ExitCode> {
    run_with(command, package, test, |_| true)
}

/// The same, and shows only some lines.
pub fn run_with(
    mut command: Command,
    package: &str,
    test: &str,
    mut is_shown: impl FnMut(&str) -> bool,
) -> Result<ExitCode> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("can't run `cargo test`")?;
    let mut ran = false;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.context("can't read what the test says")?;
            if is_shown(&line) {
                println!("{line}");
            }
            ran |= passed_one(&line);
        }
    }
    let status = child.wait().context("can't wait for `cargo test`")?;
    if status.success() && !ran {
        bail!("{package} has no test {test}");
    }
    Ok(exit::like(status))
}

/// Whether the line is the closing one of a test binary in which exactly our test ran.
fn passed_one(line: &str) -> bool {
    line.starts_with("test result: ok. 1 passed;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_the_test_is_not_taken_for_a_passed_one() {
        assert!(passed_one("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out"));
        assert!(!passed_one("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 10 filtered out"));
    }
}
