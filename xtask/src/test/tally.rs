//! Counting tests in what test binaries print.

use std::fmt;

use setpoint_testutils::skips::Skip;

/// How many tests ended in which way.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Tests that ran and held.
    pub(crate) passed: usize,
    /// Tests, and steps, that did not hold.
    pub(crate) failed: usize,
    /// Tests that did not run.
    pub(crate) skipped: usize,
    /// How many test binaries told how their tests ended.
    pub(crate) results: usize,
    /// How many tests they said that they would run.
    pub(crate) announced: usize,
    /// How many tests were passed over for being marked so.
    pub(crate) ignored: usize,
    /// The names of the failed tests, in the order in which they were seen.
    pub(crate) failures: Vec<String>,
}

impl Tally {
    /// Takes in one line of a test binary's output: a result line adds to the counts, a failed test's line to
    /// the names, and any other line changes nothing.
    pub(crate) fn read_line(&mut self, line: &str) {
        let line = without_colour(line);
        let line = line.trim();
        if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            self.fail(name);
        }
        // Where tests run one by one, what one prints comes between its name and its verdict.
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.fail(name);
        }
        let running = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
        self.announced += running.and_then(|(count, _)| count.parse::<usize>().ok()).unwrap_or_default();
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let Some((_, counts)) = result.split_once(". ") else { return };
        self.results += 1;
        for count in counts.split(';') {
            let mut words = count.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else { continue };
            let Ok(number) = number.parse::<usize>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => {
                    self.skipped += number;
                    self.ignored += number;
                }
                _ => {}
            }
        }
    }

    /// Notes a failed test, once.
    fn fail(&mut self, name: &str) {
        if !self.failures.iter().any(|known| known == name) {
            self.failures.push(name.to_owned());
        }
    }

    /// Notes a failure that is not one of a test.
    pub(crate) fn note(&mut self, what: String) {
        self.failed += 1;
        self.failures.push(what);
    }

    /// Counts tests that are marked as ignored as failed: a test that can't run says so itself, and why.
    pub(crate) fn refuse_ignored(&mut self, binary: &str) {
        if self.ignored > 0 {
            self.skipped -= self.ignored;
            self.failed += self.ignored - 1;
            let tests = crate::console::count(self.ignored, "test");
            self.note(format!("{binary}: {tests} marked `#[ignore]`: only `need!` skips a test"));
        }
    }

    /// Adds what another one counted.
    pub(crate) fn absorb(&mut self, other: Self) {
        let Self { passed, failed, skipped, results, announced, ignored, failures } = other;
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
        self.results += results;
        self.announced += announced;
        self.ignored += ignored;
        self.failures.extend(failures);
    }

    /// Takes in tests that ended as if they held but say that they could not run: those of which `refusal` says why they
    /// may not be skipped count as failed. They were counted among the `passed` of one binary; one that was aborted has
    /// counted none.
    pub(crate) fn skip(
        &mut self,
        skips: &[Skip],
        refusal: impl Fn(&Skip) -> Option<String>,
        mut passed: usize,
    ) {
        for skip in skips {
            if passed > 0 {
                passed -= 1;
                self.passed = self.passed.saturating_sub(1);
            }
            match refusal(skip) {
                Some(why) => self.note(why),
                None => self.skipped += 1,
            }
        }
    }

    /// How many tests there were.
    pub(crate) fn total(&self) -> usize {
        self.passed + self.failed + self.skipped
    }
}

/// The closing line.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The line without the escape sequences that colour it.
pub(super) fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.read_line(line);
        }
        tally
    }

    #[test]
    fn results_of_several_binaries_add_up() {
        let tally = tally(&[
            "running 3 tests",
            "test a::holds ... ok",
            "test a::breaks ... FAILED",
            "test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
            "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s",
        ]);
        assert_eq!(tally.to_string(), "5 passed, 1 failed, 1 skipped");
        assert_eq!(tally.failures, ["a::breaks"]);
    }

    #[test]
    fn skips_are_taken_from_the_passed_and_fail_where_they_are_refused() {
        let skip =
            |test: &str, lacks: &str| Skip { test: test.into(), reason: "no Go".into(), lacks: lacks.into() };
        let skips = [skip("a::needs_etcd", "etcd"), skip("a::needs_dataplaneapi", "dataplaneapi")];
        let counted = |required: bool| {
            let mut tally = tally(&["test result: ok. 5 passed; 0 failed; 1 ignored"]);
            tally.skip(&skips, |skip| (required && skip.lacks == "etcd").then(|| skip.test.clone()), 5);
            tally
        };
        assert_eq!(counted(false).to_string(), "3 passed, 0 failed, 3 skipped");
        assert_eq!(counted(true).to_string(), "3 passed, 1 failed, 2 skipped");
        assert!(counted(true).failures[0].contains("a::needs_etcd"));
    }

    #[test]
    fn a_skip_in_a_binary_that_was_aborted_takes_no_pass_from_another() {
        let mut tally = tally(&["test result: ok. 5 passed; 0 failed; 0 ignored"]);
        let skip = Skip { test: "a::needs_etcd".into(), reason: "no Go".into(), lacks: "etcd".into() };
        tally.skip(&[skip], |_| None, 0);
        assert_eq!(tally.to_string(), "5 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn coloured_results_count_too() {
        let tally = tally(&["test result: \x1b[32mok\x1b[m. 2 passed; 0 failed; 0 ignored; 0 measured"]);
        assert_eq!(tally.to_string(), "2 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn a_failed_test_is_named_also_where_it_printed_before_its_verdict() {
        let tally = tally(&[
            "test a::prints ... something that it said",
            "FAILED",
            "---- a::prints stdout ----",
            "test result: FAILED. 0 passed; 1 failed; 0 ignored",
        ]);
        assert_eq!((tally.failures.as_slice(), tally.failed), (["a::prints".to_owned()].as_slice(), 1));
    }

    #[test]
    fn other_lines_change_nothing() {
        let tally = tally(&["", "7 passed", "test result: ", "test result: ok", "\x1b[", "test x ... ok"]);
        assert_eq!(tally.to_string(), "0 passed, 0 failed, 0 skipped");
    }
}
