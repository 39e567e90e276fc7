//! The bill of materials beside what cargo lists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Sources, ensure};
use crate::error::DistError;
use crate::program;

/// Compares the crates of the bill with those of `cargo tree`, and holds each to have a licence and, unless it is of the
/// workspace, a checksum.
pub(super) fn check(bill: &Path, sources: &Sources<'_>) -> Result<String, DistError> {
    let bytes = fs::read(bill).map_err(DistError::file("read", bill))?;
    let bill: Value = serde_json::from_slice(&bytes).map_err(|error| DistError::input("the bill", &error))?;
    let components = bill["components"].as_array().map_or(&[][..], Vec::as_slice);
    let program = &bill["metadata"]["component"];
    let purls = components.iter().chain([program]).filter_map(|component| component["purl"].as_str());
    let found: BTreeSet<&str> = purls.filter_map(|purl| purl.strip_prefix("pkg:cargo/")).collect();

    let mut command = Command::new(sources.cargo);
    command.current_dir(sources.root).args(["tree", "--locked", "--package", "setpoint"]);
    command.args(["--target", sources.target, "--edges", "normal,build", "--prefix", "none"]);
    let tree = program::run(&mut command)?;
    let listed: BTreeSet<String> = tree.lines().filter_map(listed).collect();
    let listed: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    let missing: Vec<&&str> = listed.difference(&found).collect();
    let extra: Vec<&&str> = found.difference(&listed).collect();
    ensure(missing.is_empty() && extra.is_empty(), || {
        format!("the bill lacks {missing:?}, and has {extra:?} that cargo does not list")
    })?;
    for component in components {
        let name = &component["name"];
        ensure(component["licenses"].is_array(), || format!("{name} has no licence"))?;
        let own = name.as_str().is_some_and(|name| name.starts_with("setpoint"));
        let crates = component["purl"].as_str().is_some_and(|purl| purl.starts_with("pkg:cargo/"));
        ensure(own || !crates || component["hashes"].is_array(), || format!("{name} has no checksum"))?;
    }
    Ok(format!("lists the {} crates of `cargo tree`", found.len()))
}

/// `name@version` of a line of `cargo tree`.
fn listed(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some(format!("{name}@{version}"))
}
