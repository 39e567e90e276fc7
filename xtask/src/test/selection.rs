//! What the names on the command line stand for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::workspace::Package;

/// What one run covers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The whole workspace.
    Everything,
    /// Some packages, and tests of a group wherever they are. Not both are empty.
    Some {
        /// Names of packages.
        packages: BTreeSet<String>,
        /// Names of groups; a test belongs to a group if its path contains the name.
        groups: BTreeSet<String>,
    },
}

impl Selection {
    /// Reads the names of one command line. A name may be a package, with or without its `setpoint-`, and a
    /// group at the same time.
    pub(crate) fn parse(
        names: &[String],
        packages: &BTreeMap<String, Package>,
        groups: &BTreeSet<String>,
    ) -> Result<Self> {
        if names.is_empty() {
            return Ok(Self::Everything);
        }
        let (mut chosen_packages, mut chosen_groups) = (BTreeSet::new(), BTreeSet::new());
        for name in names {
            let package = [name.clone(), format!("setpoint-{name}")]
                .into_iter()
                .find(|name| packages.contains_key(name));
            let group = groups.get(name);
            if package.is_none() && group.is_none() {
                let known: Vec<_> = packages
                    .keys()
                    .map(|package| package.strip_prefix("setpoint-").unwrap_or(package))
                    .chain(groups.iter().map(String::as_str))
                    .collect();
                bail!("no crate or group is called `{name}`; there are: {}", known.join(", "));
            }
            chosen_packages.extend(package);
            chosen_groups.extend(group.cloned());
        }
        Ok(Self::Some { packages: chosen_packages, groups: chosen_groups })
    }

    /// The parts and groups of parts that its tests need; all of them if `None`.
    pub(crate) fn parts(&self, packages: &BTreeMap<String, Package>) -> Option<Vec<String>> {
        let Self::Some { packages: chosen, groups } = self else { return None };
        let mut parts: Vec<_> = groups.iter().cloned().collect();
        for package in chosen.iter().filter_map(|name| packages.get(name)) {
            parts.extend(package.parts.clone()?);
        }
        Some(parts)
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
        let needs = |parts: &[&str]| Package { parts: Some(parts.iter().map(ToString::to_string).collect()) };
        [
            ("setpoint", Package { parts: None }),
            ("setpoint-engine", needs(&["graphviz"])),
            ("xtask", needs(&[])),
        ]
        .map(|(name, package)| (name.to_owned(), package))
        .into()
    }

    #[test]
    fn only_the_parts_that_are_needed_are_made() {
        let parts = |names: &[&str]| parse(names).unwrap().parts(&packages());
        assert_eq!(parts(&[]), None);
        assert_eq!(parts(&["setpoint"]), None);
        assert_eq!(parts(&["xtask"]), Some(vec![]));
        assert_eq!(
            parts(&["engine", "etcd"]),
            Some(["engine", "etcd", "graphviz"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn no_name_means_everything() {
        assert_eq!(parse(&[]).unwrap(), Selection::Everything);
    }

    #[test]
    fn a_name_is_a_package_with_or_without_prefix_and_a_group() {
        assert_eq!(
            parse(&["engine"]).unwrap(),
            Selection::Some { packages: set(&["setpoint-engine"]), groups: set(&["engine"]) }
        );
        assert_eq!(
            parse(&["xtask", "etcd"]).unwrap(),
            Selection::Some { packages: set(&["xtask"]), groups: set(&["etcd"]) }
        );
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let message = parse(&["enigne"]).unwrap_err().to_string();
        assert!(message.contains("`enigne`"), "{message}");
        assert!(message.contains("engine, xtask"), "{message}");
    }
}
