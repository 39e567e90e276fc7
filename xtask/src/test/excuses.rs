//! Which tests may be skipped: what a table says that a machine may lack, and nothing else.
//!
//! ```text
//! parts.toml ──names of parts──┐
//! tests.toml ──`without`───────┼─▶ Excuses ──a skip──▶ none, or why it counts as failed
//! parts that are there ────────┘
//! ```

use std::collections::BTreeSet;

use setpoint_testutils::manifest::{Manifest, PartState};
use setpoint_testutils::skips::Skip;

/// What a test may be skipped for.
#[derive(Debug, Default)]
pub(super) struct Excuses {
    /// The names of all parts: there may be none, as where there is no Go.
    parts: BTreeSet<String>,
    /// What `tests.toml` says that a machine may lack.
    listed: BTreeSet<String>,
    /// Whether a test that is skipped for want of one of these has failed.
    required: bool,
    /// The parts that are there.
    ready: BTreeSet<String>,
}

impl Excuses {
    /// The excuses by the names of parts, those that are listed, and whether none of these counts.
    pub(super) fn new(parts: BTreeSet<String>, listed: BTreeSet<String>, required: bool) -> Self {
        Self { parts, listed, required, ready: BTreeSet::new() }
    }

    /// Notes which parts are there: no test is skipped for want of these.
    pub(super) fn note(&mut self, made: &Manifest) {
        let ready = made.parts.iter().filter(|part| part.state == PartState::Ready);
        self.ready = ready.map(|part| part.name.clone()).collect();
    }

    /// Returns why a test that was skipped counts as failed; none if it may be.
    pub(super) fn refusal(&self, skip: &Skip) -> Option<String> {
        let Skip { test, reason, lacks, optional } = skip;
        // Several versions of one part may be called by the name of all.
        let is_part = self.parts.iter().any(|part| part == lacks || lacks.starts_with(&format!("{part}-")));
        if self.ready.contains(lacks) {
            Some(format!("{test} was skipped, and {lacks} is there: {reason}"))
        } else if *optional {
            None
        } else if !is_part && !self.listed.contains(lacks) {
            let what = if lacks.is_empty() { "something" } else { lacks };
            Some(format!(
                "{test} was skipped for want of {what}, which tests.toml does not list as `without`: {reason}"
            ))
        } else {
            self.required.then(|| format!("{test} was skipped, and parts are required: {reason}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_testutils::manifest::PartStatus;

    use super::*;

    fn skip(lacks: &str, optional: bool) -> Skip {
        Skip { test: "a::b".into(), reason: "no Go".into(), lacks: lacks.into(), optional }
    }

    fn excuses(required: bool) -> Excuses {
        let names = |name: &str| BTreeSet::from([name.to_owned()]);
        let mut excuses = Excuses::new(names("etcd"), names("root"), required);
        excuses.parts.insert("consul".to_owned());
        let there = PartStatus {
            name: "consul".into(),
            version: None,
            state: PartState::Ready,
            path: None,
            why: None,
            optional: true,
        };
        excuses.note(&Manifest { parts: vec![there] });
        excuses
    }

    #[test]
    fn a_test_is_skipped_for_want_of_a_part_or_of_what_is_listed_unless_these_are_required() {
        for lacks in ["etcd", "etcd-3.5", "root"] {
            assert_eq!(excuses(false).refusal(&skip(lacks, false)), None, "{lacks}");
            let refusal = excuses(true).refusal(&skip(lacks, false));
            assert_eq!(refusal.as_deref(), Some("a::b was skipped, and parts are required: no Go"));
            assert_eq!(excuses(true).refusal(&skip(lacks, true)), None, "{lacks}");
        }
    }

    #[test]
    fn a_test_that_is_skipped_for_anything_else_or_for_what_is_there_has_failed() {
        for required in [false, true] {
            let refusal = |lacks: &str| excuses(required).refusal(&skip(lacks, false)).unwrap();
            assert!(
                refusal("luck").contains("for want of luck, which tests.toml does not list"),
                "{required}"
            );
            assert!(refusal("").contains("for want of something, which"), "{required}");
            assert_eq!(refusal("consul"), "a::b was skipped, and consul is there: no Go");
        }
    }
}
