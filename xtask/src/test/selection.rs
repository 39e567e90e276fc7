//! What the names on the command line stand for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::workspace::Package;

/// What one run covers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The whole workspace.
    Everything,
    /// Some packages.
    Packages(BTreeSet<String>),
    /// The tests of a group of parts: their paths contain its name.
    Group {
        /// The name of the group.
        name: String,
        /// The packages that may have such a test.
        packages: BTreeSet<String>,
    },
    /// The tests whose path contains a name.
    Tests {
        /// The name.
        name: String,
        /// The packages that may have such a test.
        packages: BTreeSet<String>,
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
                let mut chosen = BTreeSet::new();
                for (package, about) in packages {
                    if may_have(package, about, name, "")? {
                        chosen.insert(package.clone());
                    }
                }
                if chosen.is_empty() {
                    bail!("no crate, group of tests or test is called `{name}`");
                }
                let is_group = groups.contains(*name);
                let (name, packages) = ((*name).clone(), chosen);
                Ok(if is_group { Self::Group { name, packages } } else { Self::Tests { name, packages } })
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
            Self::Everything => vec!["--workspace"],
            Self::Packages(packages) | Self::Group { packages, .. } | Self::Tests { packages, .. } => {
                packages.iter().flat_map(|name| ["--package", name]).collect()
            }
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
            Self::Group { .. } | Self::Tests { .. } => None,
        }
    }

    /// Returns whether all tests of a package are run.
    pub(crate) fn has(&self, package: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Packages(packages) => packages.contains(package),
            Self::Group { .. } | Self::Tests { .. } => false,
        }
    }

    /// Returns whether one of its tests may be in a file of a package that names an environment variable.
    pub(crate) fn may_read(
        &self,
        package: &str,
        variable: &str,
        packages: &BTreeMap<String, Package>,
    ) -> Result<bool> {
        match (self, packages.get(package)) {
            (_, None) => Ok(false),
            (Self::Everything | Self::Packages(_), Some(_)) => Ok(self.has(package)),
            (Self::Group { name, .. } | Self::Tests { name, .. }, Some(about)) => {
                may_have(package, about, name, variable)
            }
        }
    }

    /// What the path of a test has to contain.
    pub(crate) fn filter(&self) -> Option<&str> {
        match self {
            Self::Everything | Self::Packages(_) => None,
            Self::Group { name, .. } | Self::Tests { name, .. } => Some(name),
        }
    }

    /// The parts and groups of parts that its tests need; all of them if `None`.
    pub(crate) fn parts(&self, packages: &BTreeMap<String, Package>) -> Option<Vec<String>> {
        match self {
            Self::Everything => None,
            Self::Group { name, .. } => Some(vec![name.clone()]),
            Self::Packages(chosen) | Self::Tests { packages: chosen, .. } => {
                let mut parts = Vec::new();
                for package in chosen.iter().filter_map(|name| packages.get(name)) {
                    parts.extend(package.parts.clone()?);
                }
                Some(parts)
            }
        }
    }
}

/// Returns whether a package may have a test whose path contains a name, in a file with some text.
fn may_have(package: &str, about: &Package, name: &str, text: &str) -> Result<bool> {
    may_have_test(&about.folder, name, text).with_context(|| format!("can't read the sources of {package}"))
}

/// Returns whether the sources of a package may have a test whose path contains a name: each word of the name stands in one
/// of its files, or in the path of that file, and that file has `wanted`. More may be found than there is; a test that there is,
/// is found.
fn may_have_test(folder: &Path, name: &str, wanted: &str) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if may_have_test(&path, name, wanted)? {
                return Ok(true);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let (text, path) = (fs::read_to_string(&path)?, path.to_string_lossy());
            let has = |word: &str| text.contains(word) || path.contains(word);
            if text.contains(wanted) && name.split("::").all(has) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    /// Three packages: of `xtask` there are sources, with one test.
    struct Packages(
        BTreeMap<String, Package>,
        #[expect(dead_code, reason = "dropping it deletes the sources")] tempfile::TempDir,
    );

    impl Packages {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let tests = folder.path().join("xtask/tests");
            let empty = folder.path().join("empty");
            fs::create_dir_all(&tests).unwrap();
            fs::create_dir(&empty).unwrap();
            fs::write(tests.join("serving.rs"), "#[test]\nfn it_serves() { var(\"SERVER\") }\n").unwrap();
            fs::write(tests.join("etcd.rs"), "#[test]\nfn it_keeps() {}\n").unwrap();
            let package = |parts: Option<&[&str]>, has_library, folder: &Path| Package {
                parts: parts.map(|parts| parts.iter().map(ToString::to_string).collect()),
                has_library,
                folder: folder.to_path_buf(),
                ..Package::default()
            };
            let packages = [
                ("setpoint", package(None, false, &empty)),
                ("setpoint-engine", package(Some(&["graphviz"]), true, &empty)),
                ("xtask", package(Some(&[]), false, &folder.path().join("xtask"))),
            ];
            Self(packages.map(|(name, package)| (name.to_owned(), package)).into(), folder)
        }

        fn parse(&self, names: &[&str]) -> Result<Selection> {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            Selection::parse(&names, &self.0, &set(&["engine", "etcd"]))
        }
    }

    fn parse(names: &[&str]) -> Result<Selection> {
        Packages::new().parse(names)
    }

    #[test]
    fn only_the_parts_that_are_needed_are_made() {
        let packages = Packages::new();
        let parts = |names: &[&str]| packages.parse(names).unwrap().parts(&packages.0);
        assert_eq!(parts(&[]), None);
        assert_eq!(parts(&["setpoint"]), None);
        assert_eq!(parts(&["xtask"]), Some(vec![]));
        assert_eq!(parts(&["engine", "xtask"]), Some(vec!["graphviz".to_owned()]));
        assert_eq!(parts(&["etcd"]), Some(vec!["etcd".to_owned()]));
        assert_eq!(parts(&["it_serves"]), Some(vec![]));
    }

    #[test]
    fn a_test_is_looked_for_in_the_packages_that_may_have_it() {
        for name in ["it_serves", "serv", "serving::it_serves", "serving::"] {
            let packages = set(&["xtask"]);
            assert_eq!(parse(&[name]).unwrap(), Selection::Tests { name: name.to_owned(), packages });
        }
        let message = parse(&["serving::it_sleeps"]).unwrap_err().to_string();
        assert_eq!(message, "no crate, group of tests or test is called `serving::it_sleeps`");
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
        let packages = set(&["xtask"]);
        assert_eq!(parse(&["etcd"]).unwrap(), Selection::Group { name: "etcd".to_owned(), packages });
    }

    #[test]
    fn only_the_packages_that_are_named_are_built() {
        assert_eq!(parse(&["engine"]).unwrap().cargo_arguments(), ["--package", "setpoint-engine"]);
        assert_eq!(parse(&["it_serves"]).unwrap().cargo_arguments(), ["--package", "xtask"]);
        assert_eq!(parse(&["etcd"]).unwrap().cargo_arguments(), ["--package", "xtask"]);
        assert_eq!(parse(&[]).unwrap().cargo_arguments(), ["--workspace"]);
    }

    #[test]
    fn a_program_has_no_documentation_tests() {
        let packages = Packages::new();
        let libraries = |names: &[&str]| packages.parse(names).unwrap().libraries(&packages.0);
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
    fn what_a_variable_tells_is_made_for_each_selection_with_a_test_that_may_read_it() {
        let packages = Packages::new();
        let may_read = |names: &[&str], package, variable| {
            packages.parse(names).unwrap().may_read(package, variable, &packages.0).unwrap()
        };
        for names in [&[][..], &["xtask"], &["it_serves"], &["serving::"]] {
            assert!(may_read(names, "xtask", "SERVER"), "{names:?}");
        }
        for names in [&["engine"][..], &["it_keeps"], &["etcd"]] {
            assert!(!may_read(names, "xtask", "SERVER"), "{names:?}");
        }
        assert!(!may_read(&["it_serves"], "xtask", "ANOTHER"));
        assert!(!may_read(&[], "nobody", "SERVER"));
    }

    #[test]
    fn several_names_are_those_of_packages() {
        let message = parse(&["engine", "enigne"]).unwrap_err().to_string();
        assert!(message.contains("`enigne`"), "{message}");
        assert!(message.contains("engine, xtask"), "{message}");
    }
}
