//! The steps of a test run, each one `cargo` command.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result};

use super::limited::Runner;
use super::selection::Selection;
use super::tally::Tally;
use crate::{console, workspace};

/// One command that has to succeed.
#[derive(Debug)]
pub(crate) struct Step {
    /// What the step is called in headings and in the summary.
    pub(crate) name: String,
    /// What it is to the steps around it.
    pub(crate) kind: Kind,
    command: Command,
}

/// What a step is to the steps around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It stands for itself.
    Checks,
    /// It builds the tests that the next step runs, which is done while parts are still being made.
    Builds,
    /// It runs tests, and needs the parts.
    Tests,
}

/// How a step ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Whether the command exited with status 0.
    pub(crate) succeeded: bool,
    /// The tests that were counted in its output; a failure without a failed test counts as one.
    pub(crate) tally: Tally,
}

/// The steps for a selection, in the order in which they are run; test binaries are started by the runner.
pub(crate) fn steps(selection: &Selection, runner: &Runner) -> Vec<Step> {
    let mut steps = vec![Step::new("format", &["fmt", "--all", "--check"], &[])];
    match selection {
        Selection::Everything => {
            steps.extend(checks(&["--workspace"]));
            steps.extend(tests("tests", &["--workspace"], None, runner));
        }
        Selection::Some { packages, groups } => {
            let chosen: Vec<&str> = packages.iter().flat_map(|name| ["--package", name]).collect();
            if !chosen.is_empty() {
                steps.extend(checks(&chosen));
                steps.extend(tests("tests", &chosen, None, runner));
            }
            // A group's tests in the packages that were not just run.
            let mut others = vec!["--workspace"];
            others.extend(packages.iter().flat_map(|name| ["--exclude", name]));
            for group in groups {
                steps.extend(tests(&format!("tests of group {group}"), &others, Some(group), runner));
            }
        }
    }
    steps
}

/// Lints and documentation of the packages that `packages` selects.
fn checks(packages: &[&str]) -> [Step; 2] {
    let clippy = Step::new("clippy", &["clippy", "--all-targets"], packages).then(&["--", "-D", "warnings"]);
    let mut documentation = Step::new("documentation", &["doc", "--no-deps"], packages);
    let flags = std::env::var("RUSTDOCFLAGS").unwrap_or_default();
    documentation.command.env("RUSTDOCFLAGS", format!("{flags} -D warnings"));
    [clippy, documentation]
}

/// All tests, documentation tests included, of the packages that `packages` selects: first built, then run.
fn tests(name: &str, packages: &[&str], filter: Option<&str>, runner: &Runner) -> [Step; 2] {
    let mut build = Step::new(&format!("build of {name}"), &["test", "--no-run"], packages);
    build.kind = Kind::Builds;
    let mut run = Step::new(name, &["test", "--no-fail-fast", "--config", &runner.setting()], packages);
    run.kind = Kind::Tests;
    [build, if let Some(filter) = filter { run.then(&["--", filter]) } else { run }]
}

impl Step {
    fn new(name: &str, arguments: &[&str], packages: &[&str]) -> Self {
        let mut command = workspace::cargo();
        command.args(arguments).args(packages).stdin(Stdio::null());
        Self { name: name.to_owned(), kind: Kind::Checks, command }
    }

    fn then(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets an environment variable of the command.
    pub(crate) fn environment(&mut self, name: &str, value: &Path) {
        self.command.env(name, value);
    }

    /// Runs the command, showing its output as it comes and counting the tests in it.
    pub(crate) fn run(&mut self) -> Result<Outcome> {
        console::heading(&self.name);
        let started = Instant::now();
        let outcome = self.run_into(&mut std::io::stdout())?;
        let verdict = if outcome.succeeded { "ok" } else { "FAILED" };
        println!("{}: {verdict} ({})", self.name, console::human(started.elapsed()));
        Ok(outcome)
    }

    /// Runs the command, passing its standard output on line by line.
    fn run_into(&mut self, shown: &mut impl Write) -> Result<Outcome> {
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("can't start the step `{}`", self.name))?;

        let mut tally = Tally::default();
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line)? > 0 {
                shown.write_all(&line)?;
                shown.flush()?;
                tally.read_line(&String::from_utf8_lossy(&line));
                line.clear();
            }
        }
        let status = child.wait().with_context(|| format!("lost the step `{}`", self.name))?;
        if !status.success() && tally.failed == 0 {
            tally.failed = 1;
        }
        Ok(Outcome { succeeded: status.success(), tally })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn run(script: &str) -> Outcome {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Step { name: "script".into(), kind: Kind::Tests, command }.run_into(&mut std::io::sink()).unwrap()
    }

    #[test]
    fn a_step_that_fails_without_a_failed_test_counts_as_one_failure() {
        let outcome = run("echo 'test result: ok. 2 passed; 0 failed; 0 ignored'; exit 101");
        assert!(!outcome.succeeded);
        assert_eq!((outcome.tally.passed, outcome.tally.failed), (2, 1));
    }

    #[test]
    fn a_step_that_fails_with_failed_tests_counts_just_those() {
        let outcome = run("echo 'test result: FAILED. 2 passed; 3 failed; 0 ignored'; exit 101");
        assert_eq!((outcome.tally.passed, outcome.tally.failed), (2, 3));
    }

    #[test]
    fn a_step_that_succeeds_adds_the_tests_of_every_binary() {
        let outcome = run("echo 'test result: ok. 2 passed; 0 failed; 1 ignored';
             printf 'noise \\377\\ntest result: ok. 5 passed; 0 failed; 0 ignored'");
        assert!(outcome.succeeded);
        assert_eq!((outcome.tally.passed, outcome.tally.failed, outcome.tally.skipped), (7, 0, 1));
    }

    #[test]
    fn a_package_of_a_group_is_not_run_twice() {
        let selection = Selection::Some {
            packages: std::iter::once("setpoint-engine".into()).collect(),
            groups: std::iter::once("engine".into()).collect(),
        };
        let runner = Runner::new(Duration::from_mins(15)).unwrap();
        let steps = steps(&selection, &runner);
        let last = steps.last().unwrap();
        let arguments: Vec<_> = last.command.get_args().map(|a| a.to_str().unwrap()).collect();
        assert_eq!(arguments[..3], ["test", "--no-fail-fast", "--config"]);
        assert!(arguments[3].contains("run-test"), "{arguments:?}");
        assert_eq!(arguments[4..], ["--workspace", "--exclude", "setpoint-engine", "--", "engine"]);
    }
}
