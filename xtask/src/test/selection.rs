//! What the names on the command line stand for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::workspace::Package;

/// What one run covers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The whole workspace.
    Everything,
    /// Some packages.
    Packages(BTreeSet<String>),
    /// The tests, wherever they are, whose path contains a name: a group's, or any.
    Tests {
        /// The name.
        name: String,
        /// Whether it is a group of parts, which then are all that is needed.
        group: bool,
    },
}

impl Selection {
    /// Reads the names of one command line. A name is a package, with or without its `setpoint-`, or else a group, or else
    /// a part of the names of tests.
    pub(crate) fn parse(
        names: &[String],
        packages: &BTreeMap<String, Package>,
        groups: &BTreeSet<String>,
    ) -> Result<Self> {
        let package_of = |name: &String| {
            [name.clone(), format!("setpoint-{name}")].into_iter().find(|name| packages.contains_key(name))
        };
        let chosen: BTreeSet<_> = names.iter().filter_map(package_of).collect();
        let others: Vec<_> = names.iter().filter(|name| package_of(name).is_none()).collect();
        match others.as_slice() {
            [] if chosen.is_empty() => Ok(Self::Everything),
            [] => Ok(Self::Packages(chosen)),
            [name] if chosen.is_empty() => {
                Ok(Self::Tests { name: (*name).clone(), group: groups.contains(*name) })
            }
            [name, ..] => {
                let known: Vec<_> = packages
                    .keys()
                    .map(|package| package.strip_prefix("setpoint-").unwrap_or(package))
                    .collect();
                bail!(
                    "no crate is called `{name}`, and the name of a group or a test stands alone; crates: {}",
                    known.join(", ")
                )
            }
        }
    }

    /// The arguments by which cargo builds what is selected, and nothing else.
    pub(crate) fn cargo_arguments(&self) -> Vec<&str> {
        match self {
            Self::Everything | Self::Tests { .. } => vec!["--workspace"],
            Self::Packages(packages) => packages.iter().flat_map(|name| ["--package", name]).collect(),
        }
    }

    /// What of it has documentation tests; none if nothing has.
    pub(crate) fn libraries(&self, packages: &BTreeMap<String, Package>) -> Option<Self> {
        let has_library = |name: &&String| packages.get(*name).is_some_and(|package| package.has_library);
        match self {
            Self::Everything => Some(Self::Everything),
            Self::Packages(chosen) => {
                let chosen: BTreeSet<_> = chosen.iter().filter(has_library).cloned().collect();
                (!chosen.is_empty()).then_some(Self::Packages(chosen))
            }
            Self::Tests { .. } => None,
        }
    }

    /// Returns whether all tests of a package are run.
    pub(crate) fn has(&self, package: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Packages(packages) => packages.contains(package),
            Self::Tests { .. } => false,
        }
    }

    /// What the path of a test has to contain.
    pub(crate) fn filter(&self) -> Option<&str> {
        match self {
            Self::Everything | Self::Packages(_) => None,
            Self::Tests { name, .. } => Some(name),
        }
    }

    /// The parts and groups of parts that its tests need; all of them if `None`.
    pub(crate) fn parts(&self, packages: &BTreeMap<String, Package>) -> Option<Vec<String>> {
        match self {
            Self::Everything | Self::Tests { group: false, .. } => None,
            Self::Tests { name, .. } => Some(vec![name.clone()]),
            Self::Packages(chosen) => {
                let mut parts = Vec::new();
                for package in chosen.iter().filter_map(|name| packages.get(name)) {
                    parts.extend(package.parts.clone()?);
                }
                Some(parts)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn parse(names: &[&str]) -> Result<Selection> {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        Selection::parse(&names, &packages(), &set(&["engine", "etcd"]))
    }

    fn packages() -> BTreeMap<String, Package> {
        let needs = |parts: &[&str]| Package {
            parts: Some(parts.iter().map(ToString::to_string).collect()),
            ..Package::default()
        };
        [
            ("setpoint", Package::default()),
            ("setpoint-engine", Package { has_library: true, ..needs(&["graphviz"]) }),
            ("xtask", needs(&[])),
        ]
        .map(|(name, package)| (name.to_owned(), package))
        .into()
    }

    fn tests(name: &str, group: bool) -> Selection {
        Selection::Tests { name: name.to_owned(), group }
    }

    #[test]
    fn only_the_parts_that_are_needed_are_made() {
        let parts = |names: &[&str]| parse(names).unwrap().parts(&packages());
        assert_eq!(parts(&[]), None);
        assert_eq!(parts(&["setpoint"]), None);
        assert_eq!(parts(&["xtask"]), Some(vec![]));
        assert_eq!(parts(&["engine", "xtask"]), Some(vec!["graphviz".to_owned()]));
        assert_eq!(parts(&["etcd"]), Some(vec!["etcd".to_owned()]));
        assert_eq!(parts(&["a_test"]), None);
    }

    #[test]
    fn no_name_means_everything() {
        assert_eq!(parse(&[]).unwrap(), Selection::Everything);
    }

    #[test]
    fn a_name_is_a_package_with_or_without_prefix_or_a_group_or_a_test() {
        assert_eq!(parse(&["engine"]).unwrap(), Selection::Packages(set(&["setpoint-engine"])));
        assert_eq!(
            parse(&["xtask", "setpoint-engine"]).unwrap(),
            Selection::Packages(set(&["setpoint-engine", "xtask"]))
        );
        assert_eq!(parse(&["etcd"]).unwrap(), tests("etcd", true));
        assert_eq!(parse(&["it_serves"]).unwrap(), tests("it_serves", false));
    }

    #[test]
    fn only_the_packages_that_are_named_are_built() {
        assert_eq!(parse(&["engine"]).unwrap().cargo_arguments(), ["--package", "setpoint-engine"]);
        assert_eq!(parse(&["it_serves"]).unwrap().cargo_arguments(), ["--workspace"]);
    }

    #[test]
    fn a_program_has_no_documentation_tests() {
        let libraries = |names: &[&str]| parse(names).unwrap().libraries(&packages());
        assert_eq!(libraries(&["xtask"]), None);
        assert_eq!(libraries(&["xtask", "engine"]), Some(Selection::Packages(set(&["setpoint-engine"]))));
        assert_eq!(libraries(&[]), Some(Selection::Everything));
        assert_eq!(libraries(&["it_serves"]), None);
    }

    #[test]
    fn a_package_is_had_whole_or_not() {
        assert!(parse(&[]).unwrap().has("xtask") && parse(&["xtask"]).unwrap().has("xtask"));
        assert!(!parse(&["engine"]).unwrap().has("xtask") && !parse(&["it_serves"]).unwrap().has("xtask"));
    }

    #[test]
    fn several_names_are_those_of_packages() {
        let message = parse(&["engine", "enigne"]).unwrap_err().to_string();
        assert!(message.contains("`enigne`"), "{message}");
        assert!(message.contains("engine, xtask"), "{message}");
    }
}
