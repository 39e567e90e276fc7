//! `parts.toml`: which parts there are and where each comes from.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::workspace;

/// The whole table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// What all Debian parts share.
    pub(crate) debian: Suites,
    /// What all parts of one Go module share, by the module's folder in `parts/`.
    #[serde(default)]
    pub(crate) modules: BTreeMap<String, GoModule>,
    /// The parts, in the order in which they are made.
    #[serde(rename = "part")]
    pub(crate) parts: Vec<Part>,
}

/// The Debian suites that are searched, in order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suites {
    /// The suites.
    pub(crate) suites: Vec<Suite>,
}

/// One Debian suite.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Suite {
    /// Its name on the mirror.
    pub(crate) name: String,
    /// Other suites that its packages take their libraries from.
    #[serde(default)]
    pub(crate) with: Vec<String>,
}

impl Suite {
    /// The suite of that name.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), with: Vec::new() }
    }
}

/// One part.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// What tests ask for.
    pub(crate) name: String,
    /// The groups of tests that need it.
    pub(crate) groups: BTreeSet<String>,
    /// Whether tests may go without it even where skips are failures.
    #[serde(default)]
    pub(crate) optional: bool,
    /// Where it comes from.
    pub(crate) source: Source,
}

/// Where a part comes from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Source {
    /// Debian packages, unpacked into a folder.
    Debian(DebianRecipe),
    /// A Go program, built from a module in `parts/`.
    Go(GoRecipe),
    /// Programs that are used where they are found.
    Found(FoundRecipe),
}

/// How a part is made of Debian packages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DebianRecipe {
    /// The packages; the first one gives the part its version. Their libraries come along by themselves.
    pub(crate) packages: Vec<String>,
    /// The wanted version, or its beginning: `3.2` is any `3.2.x`. Any version will do if there is none.
    #[serde(default)]
    pub(crate) version: Option<String>,
    /// Paths of the programs inside the packages; on a suite with a merged `/usr` they may be below `usr`.
    pub(crate) programs: Vec<String>,
    /// Environment variables that the programs need, each a path inside the packages; `{triplet}` is the
    /// architecture's library folder.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Folders inside the packages that the programs write to: what is in them is no damage.
    #[serde(default)]
    pub(crate) scratch: Vec<String>,
    /// A program and its arguments to run once when the packages are unpacked.
    #[serde(default)]
    pub(crate) configure: Vec<String>,
}

/// How a part is built with Go.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoRecipe {
    /// The folder of the module in `parts/`.
    pub(crate) module: String,
    /// The package of the program.
    pub(crate) package: String,
    /// The required module that gives the part its version.
    pub(crate) version: String,
    /// The name of the program.
    pub(crate) program: String,
}

/// What the programs of one Go module share: they are built by one command.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GoModule {
    /// The required module whose version the linker writes into the programs.
    pub(crate) version: String,
    /// Variables that the linker sets; `{version}`, `{major}` and `{minor}` are filled in.
    pub(crate) stamp: Vec<String>,
}

/// Where a program that is never made is looked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FoundRecipe {
    /// Its names on the `PATH`.
    pub(crate) programs: Vec<String>,
    /// The environment variable that lists more paths.
    pub(crate) variable: String,
}

impl Table {
    /// Reads the workspace's table.
    pub(crate) fn load() -> Result<Self> {
        let path = workspace::root().join("parts.toml");
        let text = std::fs::read_to_string(&path).context("can't read parts.toml")?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let table: Self = toml::from_str(text).context("parts.toml is not understood")?;
        let mut names = BTreeSet::new();
        for part in &table.parts {
            ensure!(names.insert(&part.name), "parts.toml has two parts called `{}`", part.name);
        }
        Ok(table)
    }

    /// Whether there is a part or a group of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.parts.iter().any(|part| part.name == name || part.groups.contains(name))
    }

    /// The names of all groups.
    pub(crate) fn groups(&self) -> BTreeSet<String> {
        self.parts.iter().flat_map(|part| part.groups.iter().cloned()).collect()
    }

    /// The names of all programs that parts have.
    #[cfg(test)]
    pub(crate) fn programs(&self) -> BTreeSet<String> {
        let of = |part: &Part| match &part.source {
            Source::Debian(DebianRecipe { programs, .. }) | Source::Found(FoundRecipe { programs, .. }) => {
                programs.clone()
            }
            Source::Go(recipe) => vec![recipe.program.clone()],
        };
        let name = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
        self.parts.iter().flat_map(of).map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_parts_of_one_name_are_refused() {
        let text = |second: &str| {
            format!(
                "debian.suites = []\n\
                 [[part]]\nname = \"a\"\ngroups = []\nsource.found = {{programs = [\"a\"], variable = \"A\"}}\n\
                 [[part]]\nname = \"{second}\"\ngroups = []\nsource.found = {{programs = [\"b\"], variable = \"B\"}}\n"
            )
        };
        assert_eq!(Table::parse(&text("b")).unwrap().programs(), ["a", "b"].map(String::from).into());
        let error = Table::parse(&text("a")).unwrap_err().to_string();
        assert_eq!(error, "parts.toml has two parts called `a`");
    }
}
