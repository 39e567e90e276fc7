//! Parts that are made of Debian packages, unpacked side by side with their libraries into a folder of their own.
//!
//! ```text
//! pinned version ──search every suite──▶ packages + libraries ──download, unpack──▶ root/
//!                                                              └─ patchelf ──▶ programs use only root/'s libraries
//! ```
//!
//! The system is not touched: each suite has an apt configuration of its own ([`apt`]), nothing is installed, and a
//! program's interpreter and library path point into its own folder ([`unpack`]).

mod apt;
mod unpack;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use setpoint_testutils::manifest::PartState;

use super::cache::{Cache, Entry, recipe_hash};
use super::diagnosis::Problem;
use super::table::{DebianRecipe, Part, Suites};
use super::{Effort, report};
use apt::{Apt, Package};

/// Changes when these files make something else of the same recipe.
const EDITION: &[u8] = b"debian 2";

/// Where Debian packages come from.
#[derive(Debug)]
pub(crate) struct Debian<'a> {
    cache: &'a Cache,
    suites: &'a Suites,
    /// The suites that were opened in this run; a suite that can't be had keeps its reason.
    opened: Mutex<BTreeMap<String, Result<Apt, Problem>>>,
}

impl<'a> Debian<'a> {
    /// Knows the suites, and opens one when it is first needed.
    pub(crate) fn new(cache: &'a Cache, suites: &'a Suites) -> Self {
        Self { cache, suites, opened: Mutex::default() }
    }

    /// Finds or makes a part.
    pub(crate) fn obtain(
        &self,
        part: &Part,
        recipe: &DebianRecipe,
        effort: Effort,
    ) -> Result<Entry, Problem> {
        let description = serde_json::to_vec(recipe).unwrap_or_default();
        let hash = recipe_hash(&[EDITION, &description]);
        if effort == Effort::Look {
            return self.cache.find(&part.name, &hash, None)?.ok_or_else(|| {
                Problem::missing(format!("it is not here yet: `cargo xtask parts {}` fetches it", part.name))
            });
        }
        let lock = self.cache.lock(&part.name)?;
        let present = self.cache.find(&part.name, &hash, Some(&lock))?;
        if let (Some(entry), Effort::Make) = (present, effort) {
            return Ok(entry);
        }
        let (apt, version) = self.search(part, recipe)?;
        if let Some(entry) = self.cache.find(&part.name, &hash, Some(&lock))?
            && entry.version == version
        {
            return Ok(entry);
        }
        report(&part.name, format_args!("fetching {version} from Debian {}", apt.suite()));
        self.cache.fill(&lock, &part.name, &version, &hash, |folder, place| {
            let packages = apt.resolve(&recipe.packages, &version)?;
            let libraries: Vec<_> =
                packages.into_iter().filter(|package| needed(package, &recipe.packages)).collect();
            unpack::make(&apt, recipe, &libraries, folder, place)
        })
    }

    /// The first suite that has the wanted version, and that version.
    ///
    /// A suite that the mirror does not have is passed over; one that can't be read right now is a problem.
    fn search(&self, part: &Part, recipe: &DebianRecipe) -> Result<(Apt, String), Problem> {
        let first = recipe.packages.first().map_or("", String::as_str);
        let mut looked = Vec::new();
        for suite in &self.suites.suites {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            let apt = opened.entry(suite.name.clone()).or_insert_with(|| {
                report(&part.name, format_args!("reading the package lists of Debian {}", suite.name));
                Apt::open(self.cache.root(), suite)
            });
            match apt {
                Ok(apt) => {
                    let versions = apt.versions(first)?;
                    let wanted = |version: &&String| satisfies(version, recipe.version.as_deref());
                    if let Some(version) = versions.iter().find(wanted) {
                        return Ok((apt.clone(), version.clone()));
                    }
                    looked.push(suite.name.as_str());
                }
                Err(problem) if problem.state == PartState::Unavailable => {}
                Err(problem) => return Err(problem.clone()),
            }
        }
        let wanted = recipe.version.as_deref().unwrap_or("in any version");
        Err(Problem::unavailable(format!(
            "no Debian suite has {first} {wanted} (searched: {}); name a suite that has it in parts.toml",
            looked.join(", ")
        )))
    }
}

/// Whether a package version is the wanted one: `3.2` wants `3.2.4-1`, with or without an epoch, not `3.20`.
fn satisfies(version: &str, wanted: Option<&str>) -> bool {
    let Some(wanted) = wanted else { return true };
    let version = version.split_once(':').map_or(version, |(_, version)| version);
    version.strip_prefix(wanted).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a package that another one depends on is needed to run a program from a folder: libraries are, the
/// machinery of an installed system is not.
fn needed(package: &Package, asked: &[String]) -> bool {
    let library = package.name.starts_with("lib") || package.name.starts_with("zlib");
    asked.contains(&package.name) || (library && !package.name.ends_with("-perl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_minor_is_satisfied_by_its_patches_alone() {
        assert!(satisfies("3.2.4-1", Some("3.2")));
        assert!(satisfies("1:3.2.4-1+deb13u1", Some("3.2")));
        assert!(satisfies("3.2~dev1-1", Some("3.2")));
        assert!(!satisfies("3.20.1-1", Some("3.2")));
        assert!(!satisfies("13.2.1", Some("3.2")));
        assert!(satisfies("anything", None));
    }

    #[test]
    fn libraries_come_along_and_the_machinery_of_a_system_does_not() {
        let asked = ["haproxy".to_owned()];
        let package = |name: &str| Package { name: name.into(), version: "1".into() };
        for name in ["haproxy", "libc6", "liblua5.3-0", "zlib1g"] {
            assert!(needed(&package(name), &asked), "{name}");
        }
        for name in ["adduser", "dpkg", "perl-base", "libtext-glob-perl"] {
            assert!(!needed(&package(name), &asked), "{name}");
        }
    }
}
