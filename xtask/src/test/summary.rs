//! What a run came to, and how a person sees it.
//!
//! ```text
//! test binary ──lines──▶ Ran ──▶ Summary ──▶ closing line
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use setpoint_testutils::skips::Skip;

use super::build::Binary;
use super::excuses::{Declared, Excuses};
use super::limited::Runner;
use super::tally::Tally;
use crate::console;

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) tally: Tally,
    skips: BTreeSet<Skip>,
    /// Tests that the test runner found slow.
    slow: BTreeSet<String>,
    /// The closing line as it would be now, for a run that is interrupted.
    pub(super) shown: Arc<Mutex<String>>,
}

impl Summary {
    /// Notes a failure that is not one of a test.
    pub(super) fn fail(&mut self, what: String) {
        self.tally.note(what);
    }

    /// Does one step under its heading, and says how it ended.
    pub(super) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        console::heading(name);
        let started = Instant::now();
        let outcome = work();
        let elapsed = console::human(started.elapsed());
        match outcome {
            Ok(()) => println!("{name}: ok ({elapsed})"),
            Err(error) => {
                println!("{name}: FAILED ({elapsed}): {error:#}");
                self.fail(format!("{name}: {error:#}"));
            }
        }
    }

    /// Keeps the closing line of a run that would be interrupted now.
    pub(super) fn show(&self) {
        let mut line = Tally::default();
        (line.passed, line.failed, line.skipped) =
            (self.tally.passed, self.tally.failed + 1, self.tally.skipped);
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = line.to_string();
    }

    /// Takes in what some tests came to, which may use these parts. A test that was skipped without an excuse has failed.
    pub(super) fn take(&mut self, ran: Ran, excuses: &Excuses, declared: Declared<'_>) {
        let Ran { tally, slow, skips, .. } = ran;
        let passed = tally.passed;
        self.tally.absorb(tally);
        self.slow.extend(slow);
        match skips {
            Ok(skips) => {
                let refusal = |skip: &Skip| excuses.refusal(skip, declared);
                self.tally.skip(&skips, refusal, passed);
                self.skips.extend(skips.into_iter().filter(|skip| refusal(skip).is_none()));
            }
            Err(error) => self.fail(format!("can't read which tests were skipped: {error}")),
        }
        self.show();
    }

    /// Prints the summary, the closing line last.
    pub(super) fn close(self, elapsed: Duration, rounds: u32) -> ExitCode {
        console::heading(format_args!("summary ({})", console::human(elapsed)));
        for skip in &self.skips {
            println!("skipped: {}: {}", skip.test, skip.reason.replace('\n', "\n  "));
        }
        for slow in &self.slow {
            println!("slow: {slow}: more than 60 s beside others");
        }
        let mut failures: BTreeMap<&str, usize> = BTreeMap::new();
        for failure in &self.tally.failures {
            *failures.entry(failure).or_default() += 1;
        }
        for (failure, times) in failures {
            match rounds {
                1 => println!("failed: {failure}"),
                _ => println!("failed: {failure} (in {times} of {rounds} rounds)"),
            }
        }
        println!("{}", self.tally);
        if self.tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// What the tests of one binary came to.
#[derive(Debug)]
pub(super) struct Ran {
    tally: Tally,
    /// Tests that the test runner found slow.
    pub(super) slow: BTreeSet<String>,
    /// Tests that could not run.
    skips: io::Result<Vec<Skip>>,
    /// How long they took.
    pub(super) elapsed: Duration,
}

impl Default for Ran {
    fn default() -> Self {
        Self {
            tally: Tally::default(),
            slow: BTreeSet::new(),
            skips: Ok(Vec::new()),
            elapsed: Duration::ZERO,
        }
    }
}

impl Ran {
    /// Runs one test binary. Which of its tests could not run is in a file of its own.
    ///
    /// What it prints is not believed for itself: a test, or what a test starts, may print anything. It has to tell once
    /// how its tests ended, and of as many as it announced.
    pub(super) fn binary(
        runner: &Runner,
        binary: &Binary,
        filter: Option<&str>,
        skips: &Path,
        on_line: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Self {
        let started = Instant::now();
        let mut ran = Self::default();
        let arguments: Vec<_> = filter.map(OsString::from).into_iter().collect();
        let status = runner.run(&binary.path, &binary.folder, &arguments, &mut |line| {
            ran.read_line(line);
            on_line(line)
        });
        let own = &mut ran.tally;
        let reported = own.total();
        if own.failed == 0 {
            // What is named without being counted was aborted before the runner could count it.
            own.failed = own.failures.len();
        }
        let wrong = match status {
            Err(error) => Some(format!("{error:#}")),
            Ok(Some(status)) if !status.success() => Some(format!("ended with {status}")),
            Ok(Some(_)) if own.results == 0 => Some("ended without telling how its tests ended".to_owned()),
            Ok(Some(_)) if own.results > 1 => Some("told more than once how its tests ended".to_owned()),
            Ok(Some(_)) if own.announced != reported => {
                Some(format!("announced {} and told of {reported}", console::count(own.announced, "test")))
            }
            // Where it had to be ended, that is told in its place.
            Ok(_) => None,
        };
        if let Some(wrong) = wrong.filter(|_| own.failed == 0) {
            own.note(format!("{binary}: {wrong}"));
        }
        own.refuse_ignored(&binary.to_string());
        ran.take_skips(skips);
        ran.elapsed = started.elapsed();
        ran
    }

    /// Takes in what documentation tests printed, whose process ended so.
    pub(super) fn documentation(
        lines: impl Iterator<Item = io::Result<Vec<u8>>>,
        status: impl FnOnce() -> io::Result<ExitStatus>,
        skips: &Path,
    ) -> io::Result<Self> {
        let mut ran = Self::default();
        for line in lines {
            let mut line = line?;
            line.push(b'\n');
            ran.read_line(&line);
            show(&line)?;
        }
        let (status, own) = (status()?, &mut ran.tally);
        if !status.success() && own.failed == 0 {
            own.note(format!("documentation tests: ended with {status}"));
        } else if own.results == 0 {
            own.note("documentation tests: ended without telling how they ended".to_owned());
        }
        own.refuse_ignored("documentation tests");
        ran.take_skips(skips);
        Ok(ran)
    }

    /// Takes in one line of what tests print.
    fn read_line(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        self.tally.read_line(&text);
        let slow = text.strip_prefix("test ").and_then(|rest| rest.trim_end().strip_suffix(" seconds"));
        self.slow.extend(
            slow.and_then(|rest| rest.split_once(" has been running for")).map(|(name, _)| name.to_owned()),
        );
    }

    /// Takes in which tests could not run, and forgets the file.
    fn take_skips(&mut self, file: &Path) {
        self.skips = Skip::read_all(file);
        let _ = std::fs::remove_file(file);
    }
}

/// Shows what tests print.
pub(super) fn show(bytes: &[u8]) -> io::Result<()> {
    let mut shown = io::stdout().lock();
    shown.write_all(bytes).and_then(|()| shown.flush())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_file_of_skips_that_is_not_understood_is_a_failure_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skips");
        std::fs::write(&file, "every_name_is_drawn: graphviz not installed\n").unwrap();
        let mut summary = Summary::default();
        let script = "echo 'running 3 tests'; echo 'test result: ok. 3 passed; 0 failed; 0 ignored'";
        summary.take(ran(script, &file), &Excuses::default(), None);
        assert_eq!(summary.tally.to_string(), "3 passed, 1 failed, 0 skipped");
        assert!(summary.tally.failures[0].starts_with("can't read which tests were skipped"), "{summary:?}");
        assert!(!file.exists(), "the next round starts anew");
    }

    #[test]
    fn a_step_that_fails_does_not_stop_the_next_and_counts_once() {
        let mut summary = Summary::default();
        summary.step("format", || bail!("it ended with exit status: 1"));
        summary.step("build", || Ok(()));
        assert_eq!(summary.tally.to_string(), "0 passed, 1 failed, 0 skipped");
        assert_eq!(summary.tally.failures, ["format: it ended with exit status: 1"]);
    }

    fn run(summary: &mut Summary, script: &str) {
        summary.take(ran(script, Path::new("/nonexistent/skips")), &Excuses::default(), None);
    }

    /// Runs a script in the place of a test binary.
    fn ran(script: &str, skips: &Path) -> Ran {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tests");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let binary =
            Binary { package: "p".into(), folder: folder.path().into(), target: "test all".into(), path };
        let runner = Runner { environment: None, limit: Duration::from_mins(1) };
        Ran::binary(&runner, &binary, None, skips, &mut |_| Ok(()))
    }

    #[test]
    fn a_binary_that_ends_well_without_a_result_is_a_failure() {
        let mut summary = Summary::default();
        run(&mut summary, "echo 'running 3 tests'; exit 0");
        assert_eq!(summary.tally.to_string(), "0 passed, 1 failed, 0 skipped");
        assert!(summary.tally.failures[0].contains("without telling how"), "{summary:?}");
    }

    #[test]
    fn a_binary_that_is_aborted_counts_as_one_failure() {
        let mut summary = Summary::default();
        run(&mut summary, "echo 'test a ... ok'; kill -ABRT $$");
        assert_eq!(summary.tally.failed, 1, "{summary:?}");
        assert!(summary.tally.failures[0].starts_with("p: test all: ended with signal: 6"), "{summary:?}");
    }

    #[test]
    fn a_failed_test_counts_once() {
        let mut summary = Summary::default();
        run(
            &mut summary,
            "echo 'running 3 tests'; echo 'test a ... FAILED'; echo 'test result: FAILED. 2 passed; 1 failed; 0 ignored'; exit 101",
        );
        assert_eq!(summary.tally.to_string(), "2 passed, 1 failed, 0 skipped");
        assert_eq!(summary.tally.failures, ["a"]);
    }

    /// A test, or what it starts, may print anything.
    #[test]
    fn results_that_something_else_printed_are_not_believed() {
        for (script, said) in [
            (
                "echo 'running 2 tests'; echo 'test result: ok. 999 passed; 0 failed; 0 ignored'
                 echo 'test result: ok. 2 passed; 0 failed; 0 ignored'",
                "told more than once",
            ),
            (
                "echo 'running 3 tests'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'",
                "announced 3 tests and told of 1",
            ),
        ] {
            let mut summary = Summary::default();
            run(&mut summary, script);
            assert_eq!(summary.tally.failed, 1, "{script}");
            assert!(summary.tally.failures[0].contains(said), "{summary:?}");
        }
    }

    #[test]
    fn a_test_that_is_marked_as_ignored_is_a_failure() {
        let mut summary = Summary::default();
        run(&mut summary, "echo 'running 2 tests'; echo 'test result: ok. 1 passed; 0 failed; 1 ignored'");
        assert_eq!(summary.tally.to_string(), "1 passed, 1 failed, 0 skipped");
        assert!(summary.tally.failures[0].contains("#[ignore]"), "{summary:?}");
    }

    #[test]
    fn a_slow_test_is_named() {
        let mut ran = Ran::default();
        ran.read_line(b"test a::b has been running for over 60 seconds\n");
        assert_eq!(ran.slow.iter().collect::<Vec<_>>(), ["a::b"]);
    }
}
