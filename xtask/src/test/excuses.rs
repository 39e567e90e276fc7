//! Which tests may be skipped: what a table says that a machine may lack, and nothing else.
//!
//! ```text
//! parts.toml ──parts, groups───┐
//! Cargo.toml ──declared parts──┤
//! tests.toml ──`without`───────┼─▶ Excuses ──a skip──▶ none, or why it counts as failed
//! parts that are there ────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet};

use setpoint_testutils::manifest::{Manifest, PartState};
use setpoint_testutils::skips::Skip;

use crate::parts::Table;

/// What a test may be skipped for.
#[derive(Debug, Default)]
pub(super) struct Excuses {
    /// The parts that there may not be, as where there is no Go, by their names and by those of their groups.
    parts: BTreeMap<String, BTreeSet<String>>,
    /// Those of them that tests may go without even where parts are required.
    optional: BTreeSet<String>,
    /// What `tests.toml` says that a machine may lack.
    listed: BTreeSet<String>,
    /// Whether a test that is skipped for want of one of these has failed.
    required: bool,
    /// The parts that are there.
    ready: BTreeSet<String>,
}

/// The parts that tests may use: those that their package declares, or all.
pub(super) type Declared<'a> = Option<&'a BTreeSet<String>>;

impl Excuses {
    /// The excuses by the table of parts, what is listed, and whether none of these counts.
    pub(super) fn new(table: &Table, listed: BTreeSet<String>, required: bool) -> Self {
        let mut parts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for part in &table.parts {
            for name in part.groups.iter().chain([&part.name]) {
                parts.entry(name.clone()).or_default().insert(part.name.clone());
            }
        }
        let optional =
            table.parts.iter().filter(|part| part.optional).map(|part| part.name.clone()).collect();
        Self { parts, optional, listed, required, ready: BTreeSet::new() }
    }

    /// Notes which parts are there: no test is skipped for want of these.
    pub(super) fn note(&mut self, made: &Manifest) {
        let ready = made.parts.iter().filter(|part| part.state == PartState::Ready);
        self.ready = ready.map(|part| part.name.clone()).collect();
    }

    /// Returns why a test that was skipped counts as failed; none if it may be.
    pub(super) fn refusal(&self, skip: &Skip, declared: Declared<'_>) -> Option<String> {
        let Skip { test, reason, lacks } = skip;
        let (exact, part) = (self.parts.get(lacks), self.part(lacks));
        if exact.is_some_and(|parts| parts.is_subset(&self.ready)) {
            Some(format!("{test} was skipped, and {lacks} is there: {reason}"))
        } else if let (Some(parts), Some(declared)) = (part, declared)
            && parts.is_disjoint(declared)
        {
            Some(format!(
                "{test} was skipped for want of {lacks}, which its package does not name in `package.metadata.setpoint.parts`: {reason}"
            ))
        } else if part.is_some_and(|parts| parts.is_subset(&self.optional)) {
            None
        } else if part.is_none() && !self.listed.contains(lacks) {
            let what = if lacks.is_empty() { "something" } else { lacks };
            Some(format!(
                "{test} was skipped for want of {what}, which tests.toml does not list as `without`: {reason}"
            ))
        } else {
            self.required.then(|| format!("{test} was skipped, and parts are required: {reason}"))
        }
    }

    /// The parts of a name. Several versions of one part may be called by the name of all.
    fn part(&self, name: &str) -> Option<&BTreeSet<String>> {
        let is_family = |part: &str| name.strip_prefix(part).is_some_and(|rest| rest.starts_with('-'));
        let family = || Some(self.parts.iter().rfind(|(part, _)| is_family(part))?.1);
        self.parts.get(name).or_else(family)
    }
}

#[cfg(test)]
mod tests {
    use setpoint_testutils::manifest::PartStatus;

    use super::*;

    const TABLE: &str = r#"
        debian.suites = []
        part = [
            { name = "etcd", groups = ["storage"], source.found = { programs = [], variable = "" } },
            { name = "consul", groups = ["consuls"], source.found = { programs = [], variable = "" } },
            { name = "dataplaneapi", groups = ["consuls"], optional = true, source.found = { programs = [], variable = "" } },
        ]
    "#;

    fn skip(lacks: &str) -> Skip {
        Skip { test: "a::b".into(), reason: "no Go".into(), lacks: lacks.into() }
    }

    fn excuses(required: bool, ready: &[&str]) -> Excuses {
        let mut excuses = Excuses::new(&toml::from_str(TABLE).unwrap(), ["root".to_owned()].into(), required);
        let there = |name: &&str| PartStatus {
            name: (*name).into(),
            version: None,
            state: PartState::Ready,
            path: None,
            why: None,
            optional: false,
        };
        excuses.note(&Manifest { parts: ready.iter().map(there).collect() });
        excuses
    }

    #[test]
    fn a_test_is_skipped_for_want_of_a_part_or_of_what_is_listed_unless_these_are_required() {
        for lacks in ["etcd", "etcd-3.5", "storage", "root"] {
            assert_eq!(excuses(false, &["consul"]).refusal(&skip(lacks), None), None, "{lacks}");
            let refusal = excuses(true, &["consul"]).refusal(&skip(lacks), None);
            assert_eq!(refusal.as_deref(), Some("a::b was skipped, and parts are required: no Go"));
        }
    }

    /// What a test writes of itself is no excuse.
    #[test]
    fn of_required_parts_a_test_is_skipped_only_for_those_that_the_table_calls_optional() {
        let required = excuses(true, &[]);
        for lacks in ["dataplaneapi", "dataplaneapi-2.9"] {
            assert_eq!(required.refusal(&skip(lacks), None), None, "{lacks}");
        }
        // Of this group, one is and the other is not.
        assert!(required.refusal(&skip("consuls"), None).is_some());
        let line = r#"{"test":"a::b","reason":"no Go","lacks":"etcd","optional":true}"#;
        assert!(required.refusal(&serde_json::from_str(line).unwrap(), None).is_some());
    }

    #[test]
    fn a_test_that_is_skipped_for_anything_else_or_for_what_is_there_has_failed() {
        for required in [false, true] {
            let refusal = |lacks: &str| excuses(required, &["consul"]).refusal(&skip(lacks), None).unwrap();
            assert!(
                refusal("luck").contains("for want of luck, which tests.toml does not list"),
                "{required}"
            );
            assert!(refusal("").contains("for want of something, which"), "{required}");
            assert_eq!(refusal("consul"), "a::b was skipped, and consul is there: no Go");
        }
    }

    #[test]
    fn a_group_is_there_when_all_its_parts_are() {
        let refusal = |ready: &[&str]| excuses(false, ready).refusal(&skip("consuls"), None);
        assert_eq!(refusal(&["consul"]), None);
        let both = refusal(&["consul", "dataplaneapi"]);
        assert_eq!(both.as_deref(), Some("a::b was skipped, and consuls is there: no Go"));
    }

    /// Whether the part happens to be made by then makes no difference.
    #[test]
    fn a_test_that_is_skipped_for_a_part_that_its_package_does_not_declare_has_failed() {
        for declared in [BTreeSet::new(), ["etcd".to_owned()].into()] {
            for lacks in ["consul", "consuls", "dataplaneapi-2.9"] {
                let refusal = excuses(false, &[]).refusal(&skip(lacks), Some(&declared));
                assert!(refusal.unwrap().contains("its package does not name in"), "{lacks}");
            }
            assert_eq!(excuses(false, &[]).refusal(&skip("root"), Some(&declared)), None);
        }
        let declared = ["dataplaneapi".to_owned()].into();
        for lacks in ["consuls", "dataplaneapi", "dataplaneapi-2.9"] {
            assert_eq!(excuses(false, &[]).refusal(&skip(lacks), Some(&declared)), None, "{lacks}");
        }
    }
}
