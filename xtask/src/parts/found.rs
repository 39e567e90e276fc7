//! Parts that are never fetched or built: used where they are found, each asked for its version.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use setpoint_testutils::manifest::{Manifest, PartState, PartStatus};

use super::command;
use super::table::{FoundRecipe, Part};

/// One status for each version that is found, or one that says that there is none.
pub(crate) fn statuses(part: &Part, recipe: &FoundRecipe) -> Vec<PartStatus> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let listed = std::env::var_os(&recipe.variable).unwrap_or_default();
    let on_path = std::env::split_paths(&path)
        .flat_map(|folder| recipe.programs.iter().map(move |program| folder.join(program)));
    statuses_of(part, recipe, std::env::split_paths(&listed).chain(on_path))
}

fn statuses_of(
    part: &Part,
    recipe: &FoundRecipe,
    candidates: impl Iterator<Item = PathBuf>,
) -> Vec<PartStatus> {
    let mut seen = BTreeSet::new();
    let mut statuses = Vec::new();
    for program in candidates.filter_map(|path| path.canonicalize().ok()).filter(|path| path.is_file()) {
        if !seen.insert(program.clone()) {
            continue;
        }
        let mut status = match version_of(&program) {
            Ok(version) => PartStatus {
                name: format!("{}-{}", part.name, minor_of(&version)),
                version: Some(version),
                state: PartState::Ready,
                path: Some(program),
                why: None,
                optional: part.optional,
            },
            Err(why) => PartStatus {
                name: part.name.clone(),
                version: None,
                state: PartState::Unavailable,
                path: Some(program),
                why: Some(why),
                optional: part.optional,
            },
        };
        if statuses.iter().any(|other: &PartStatus| other.name == status.name && other.version.is_some()) {
            // The first of a version wins, as on any PATH.
            continue;
        }
        status.optional = part.optional;
        statuses.push(status);
    }
    if statuses.is_empty() {
        statuses.push(PartStatus {
            name: part.name.clone(),
            version: None,
            state: PartState::Unavailable,
            path: None,
            why: Some(format!(
                "it is in no registry and was not found: put {} on the PATH or list it in {}",
                recipe.programs.join(" or "),
                recipe.variable
            )),
            optional: part.optional,
        });
    }
    statuses
}

/// A line that says which of the found parts there are.
pub(crate) fn summary(manifest: &Manifest) -> String {
    let found: Vec<_> = manifest
        .parts
        .iter()
        .filter(|part| part.name.starts_with("dataplaneapi") && part.state == PartState::Ready)
        .filter_map(|part| part.version.as_deref())
        .collect();
    if found.is_empty() {
        "Dataplane API: none found".to_owned()
    } else {
        format!("Dataplane API: {}", found.join(", "))
    }
}

/// Asks a program for its version: the first word with dots that starts with a digit, or `v` and a digit.
fn version_of(program: &Path) -> Result<String, String> {
    let doing = format!("asking {} for its version", program.display());
    let text = command::run(&doing, Command::new(program).arg("--version"), Duration::from_secs(20), |_| {})
        .map_err(|problem| problem.why)?;
    text.split_whitespace()
        .map(|word| word.trim_start_matches('v').trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
        .ok_or_else(|| format!("{doing}: no version in what it printed"))
}

fn minor_of(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn part() -> (Part, FoundRecipe) {
        let recipe = || FoundRecipe { programs: vec!["dataplaneapi".into()], variable: "LIST".into() };
        let part = Part {
            name: "dataplaneapi".into(),
            groups: BTreeSet::new(),
            optional: true,
            source: super::super::table::Source::Found(recipe()),
        };
        (part, recipe())
    }

    fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn each_version_that_is_found_is_a_part() {
        let folder = tempfile::tempdir().unwrap();
        let (part, recipe) = part();
        let candidates = [
            folder.path().join("absent"),
            program(folder.path(), "a", "echo HAProxy Data Plane API v3.2.1 4a5b6c7"),
            program(folder.path(), "b", "echo HAProxy Data Plane API v3.2.9"),
            program(folder.path(), "c", "echo Data Plane API 3.0.4"),
            program(folder.path(), "d", "exit 1"),
        ];
        let parts = statuses_of(&part, &recipe, candidates.into_iter());
        let seen: Vec<_> = parts.iter().map(|part| (part.name.as_str(), part.version.as_deref())).collect();
        assert_eq!(
            seen,
            [
                ("dataplaneapi-3.2", Some("3.2.1")),
                ("dataplaneapi-3.0", Some("3.0.4")),
                ("dataplaneapi", None)
            ]
        );
        assert_eq!(summary(&Manifest { parts }), "Dataplane API: 3.2.1, 3.0.4");
    }

    #[test]
    fn when_none_is_found_the_reason_says_where_it_was_looked_for() {
        let (part, recipe) = part();
        let parts = statuses_of(&part, &recipe, std::iter::empty());
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].state, PartState::Unavailable);
        assert!(parts[0].why.as_ref().unwrap().contains("LIST"));
        assert_eq!(summary(&Manifest { parts }), "Dataplane API: none found");
    }
}
