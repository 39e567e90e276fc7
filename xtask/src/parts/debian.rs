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
mod suites;
mod unpack;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use setpoint_testutils::manifest::PartState;
use tempfile::TempDir;

use super::cache::{Cache, Entry, recipe_hash};
use super::diagnosis::Problem;
use super::table::{DebianRecipe, Part, Suite, Suites};
use super::{Effort, report};
pub(crate) use apt::Apt;
use apt::Package;

/// Changes when these files make something else of the same recipe.
const EDITION: &[u8] = b"debian 2";

/// What the names of the folders for apt's lists begin with, in the cache folder; the process follows.
const FOLDER: &str = "apt-";

/// Where Debian packages come from.
#[derive(Debug)]
pub(crate) struct Debian<'a> {
    cache: &'a Cache,
    suites: &'a Suites,
    opened: Mutex<Opened>,
}

/// What this run has read. It is this run's alone, and removed with it: apt can't share its lists.
#[derive(Debug, Default)]
struct Opened {
    folder: Option<TempDir>,
    /// A suite that can't be had keeps its reason.
    suites: BTreeMap<String, Result<Apt, Problem>>,
    /// Suites that the mirror has beyond the listed ones, once they have been asked for.
    beyond: Option<Vec<Suite>>,
}

impl Opened {
    /// The folder for apt's lists, made when it is first needed.
    fn folder(&mut self, cache: &Cache) -> Result<PathBuf, Problem> {
        if let Some(folder) = &self.folder {
            return Ok(folder.path().to_path_buf());
        }
        remove_stale(cache.root());
        let folder = tempfile::Builder::new()
            .prefix(&format!("{FOLDER}{}-", std::process::id()))
            .tempdir_in(cache.root())
            .map_err(|error| Problem::from_io("can't make a folder in", cache.root(), &error))?;
        Ok(self.folder.insert(folder).path().to_path_buf())
    }
}

/// Removes what runs that were killed have left.
fn remove_stale(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(FOLDER).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
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
        let scratch: Vec<PathBuf> =
            recipe.scratch.iter().map(|folder| Path::new(unpack::ROOT).join(folder)).collect();
        let entry = (part.name.as_str(), version.as_str(), hash.as_str());
        self.cache.fill(&lock, entry, &scratch, |folder, place| {
            let mut wanted = recipe.packages.clone();
            if let Some(first) = wanted.first_mut() {
                *first = format!("{first}={version}");
            }
            let packages = apt.resolve(&wanted)?;
            let libraries: Vec<_> =
                packages.into_iter().filter(|package| needed(package, &recipe.packages)).collect();
            unpack::make(&apt, recipe, &libraries, folder, place)
        })
    }

    /// The first suite that has the wanted version, and that version: the listed suites in their order, and if none of
    /// them has it, all others that the mirror has, by name.
    ///
    /// A listed suite that the mirror does not have is passed over; one that can't be read right now is a problem. Of
    /// the others, those that can't be read are passed over: nobody asked for them.
    fn search(&self, part: &Part, recipe: &DebianRecipe) -> Result<(Apt, String), Problem> {
        let (mut looked, mut refusal) = (Vec::new(), None);
        for suite in &self.suites.suites {
            match self.search_in(suite, part, recipe) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => looked.push(suite.name.clone()),
                Err(problem) if problem.state == PartState::Unavailable => refusal = Some(problem),
                Err(problem) => return Err(problem),
            }
        }
        // A mirror that has no suite at all is no mirror, or refuses.
        if let (Some(refusal), true) = (refusal, looked.is_empty()) {
            return Err(refusal);
        }
        for suite in self.beyond(part)? {
            match self.search_in(&suite, part, recipe) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => looked.push(suite.name),
                Err(_) => looked.push(format!("{}, which can't be read", suite.name)),
            }
        }
        let first = recipe.packages.first().map_or("", String::as_str);
        let wanted = recipe.version.as_deref().unwrap_or("in any version");
        Err(Problem::unavailable(format!(
            "no Debian suite has {first} {wanted} (searched: {}); change the version in parts.toml to one that a suite \
             has, or set up a mirror that has it in apt's sources",
            looked.join(", ")
        )))
    }

    /// The wanted version in one suite, if it has it.
    fn search_in(
        &self,
        suite: &Suite,
        part: &Part,
        recipe: &DebianRecipe,
    ) -> Result<Option<(Apt, String)>, Problem> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = opened.folder(self.cache)?;
        let apt = opened.suites.entry(suite.name.clone()).or_insert_with(|| {
            report(&part.name, format_args!("reading the package lists of Debian {}", suite.name));
            Apt::open(&folder, suite)
        });
        let apt = apt.as_ref().map_err(Clone::clone)?;
        let versions = apt.versions(recipe.packages.first().map_or("", String::as_str))?;
        let wanted = |version: &String| satisfies(version, recipe.version.as_deref());
        Ok(versions.into_iter().find(wanted).map(|version| (apt.clone(), version)))
    }

    /// The suites that the mirror has beyond the listed ones; it is asked once.
    fn beyond(&self, part: &Part) -> Result<Vec<Suite>, Problem> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(suites) = &opened.beyond {
            return Ok(suites.clone());
        }
        let folder = opened.folder(self.cache)?;
        report(&part.name, "no listed suite of Debian has it; asking the mirror for others");
        let suites = apt::suites_beyond(&folder, &self.suites.suites)?;
        Ok(opened.beyond.insert(suites).clone())
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
    fn what_killed_runs_left_is_removed() {
        let root = tempfile::tempdir().unwrap();
        // No process has this number: it is above the kernel's highest limit.
        let [stale, own, part] = ["apt-99999999-x", &format!("apt-{}-x", std::process::id()), "etcd"]
            .map(|name| root.path().join(name));
        for folder in [&stale, &own, &part] {
            std::fs::create_dir(folder).unwrap();
        }
        remove_stale(root.path());
        assert_eq!([stale.exists(), own.exists(), part.exists()], [false, true, true]);
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
