//! The bill of materials beside what `cargo tree` and `Cargo.lock` list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::expected::Expected;
use super::image::list;
use super::{Sources, ensure, wrong};
use crate::date;
use crate::error::DistError;
use crate::program;

/// One crate as cargo knows it.
#[derive(Debug, Clone, Default)]
struct Crate {
    licence: String,
    repository: String,
    features: BTreeSet<String>,
    linked: bool,
    checksum: Option<String>,
    /// Whether it is a crate of the workspace, which has no checksum.
    own: bool,
}

/// The crates that the binary is made of, by `name@version`.
#[derive(Debug)]
pub(super) struct Crates(BTreeMap<String, Crate>);

impl Crates {
    /// Asks cargo, and reads the checksums.
    pub(super) fn read(sources: &Sources<'_>) -> Result<Self, DistError> {
        let tree = |edges: &str| {
            let mut command = Command::new(sources.cargo);
            command.current_dir(sources.root).args(["tree", "--locked", "--package", "setpoint"]);
            command.args(["--target", sources.target, "--edges", edges, "--prefix", "none"]);
            program::run(command.args(["--format", "{p}|{l}|{r}|{f}"]))
        };
        let mut crates: BTreeMap<String, Crate> = BTreeMap::new();
        for line in tree("normal,build")?.lines() {
            // The mark of a crate whose needs were listed before.
            let fields: Vec<&str> = line.trim_end_matches(" (*)").split('|').collect();
            let [package, licence, repository, features] = fields[..] else {
                return Err(DistError::input("`cargo tree`", &line));
            };
            let Some(name) = name_and_version(package) else {
                return Err(DistError::input("`cargo tree`", &line));
            };
            let known = crates.entry(name).or_default();
            let alternatives: Vec<&str> = licence.split('/').map(str::trim).collect();
            known.licence = alternatives.join(" OR ");
            repository.clone_into(&mut known.repository);
            known.features.extend(features.split(',').filter(|name| !name.is_empty()).map(ToOwned::to_owned));
            known.own = package.contains(" (/");
        }
        for line in tree("normal,no-proc-macro")?.lines() {
            let known = line.split('|').next().and_then(name_and_version);
            if let Some(known) = known.and_then(|name| crates.get_mut(&name)) {
                known.linked = true;
            }
        }
        let lock = sources.root.join("Cargo.lock");
        let lock = fs::read_to_string(&lock).map_err(DistError::file("read", &lock))?;
        for (name, checksum) in locked(&lock) {
            if let Some(known) = crates.get_mut(&name) {
                known.checksum = checksum;
            }
        }
        Ok(Self(crates))
    }
}

/// `name@version` of a package as `cargo tree` writes it: `serde v1.0.228 (proc-macro)`.
fn name_and_version(package: &str) -> Option<String> {
    let mut words = package.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some(format!("{name}@{version}"))
}

/// The packages of `Cargo.lock` and their checksums, line by line.
fn locked(lock: &str) -> Vec<(String, Option<String>)> {
    let value = |package: &str, key: &str| {
        let mut lines = package.lines();
        lines.find_map(|line| {
            Some(line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
        })
    };
    let packages = lock.split("[[package]]").skip(1).filter_map(|package| {
        let name = format!("{}@{}", value(package, "name")?, value(package, "version")?);
        Some((name, value(package, "checksum")))
    });
    packages.collect()
}

/// Compares the bill with what cargo says of each crate, and with the release.
pub(super) fn check(bill: &Path, crates: &Crates, expected: &Expected<'_>) -> Result<String, DistError> {
    let bytes = fs::read(bill).map_err(DistError::file("read", bill))?;
    let bill: Value = serde_json::from_slice(&bytes).map_err(|error| DistError::input("the bill", &error))?;
    let release = expected.sources.release;
    let program = &bill["metadata"]["component"];
    let own = format!("pkg:cargo/setpoint@{}", release.version.number());
    for (what, found, wanted) in [
        ("bomFormat", &bill["bomFormat"], json!("CycloneDX")),
        ("specVersion", &bill["specVersion"], json!("1.6")),
        ("timestamp", &bill["metadata"]["timestamp"], json!(date::rfc3339(release.epoch))),
        ("name of the program", &program["name"], json!("setpoint")),
        ("version of the program", &program["version"], json!(release.version.to_string())),
        ("purl of the program", &program["purl"], json!(own)),
        ("licence of the program", &program["licenses"], json!([{"expression": "Apache-2.0"}])),
    ] {
        ensure(*found == wanted, || format!("{what} in the bill is {found}, and should be {wanted}"))?;
    }
    let serial = bill["serialNumber"].as_str().unwrap_or_default();
    ensure(serial.starts_with("urn:uuid:") && serial.len() == 45, || {
        format!("`{serial}` is no serial number of a bill")
    })?;
    let mut found = BTreeMap::new();
    for component in list(&bill["components"]).iter().chain([program]) {
        let purl = component["purl"].as_str().unwrap_or_default();
        ensure(found.insert(purl, component).is_none(), || format!("the bill lists {purl} twice"))?;
    }
    check_crates(&found, crates, &own)?;
    check_libraries(&found, expected)?;
    check_needs(&bill, &found, &own)?;
    Ok(format!("lists the {} crates of `cargo tree`", crates.0.len()))
}

/// Compares each crate.
fn check_crates(found: &BTreeMap<&str, &Value>, crates: &Crates, own: &str) -> Result<(), DistError> {
    for purl in found.keys().filter_map(|purl| purl.strip_prefix("pkg:cargo/")) {
        ensure(crates.0.contains_key(purl), || format!("the bill lists {purl}, which cargo does not"))?;
    }
    for (name, known) in &crates.0 {
        let purl = format!("pkg:cargo/{name}");
        let component = found.get(purl.as_str()).ok_or_else(|| wrong(format!("the bill lacks {name}")))?;
        if purl == own {
            continue;
        }
        ensure(!known.licence.is_empty(), || format!("{name} has no licence"))?;
        ensure(known.own || known.checksum.is_some(), || format!("{name} has no checksum in Cargo.lock"))?;
        let or_null = |there: bool, value: Value| if there { value } else { Value::Null };
        let features = known.features.iter().cloned().collect::<Vec<_>>().join(",");
        for (what, wanted) in [
            ("bom-ref", json!(purl)),
            ("type", json!("library")),
            ("scope", json!(if known.linked { "required" } else { "excluded" })),
            ("licenses", json!([{"expression": known.licence}])),
            (
                "hashes",
                or_null(known.checksum.is_some(), json!([{"alg": "SHA-256", "content": known.checksum}])),
            ),
            (
                "externalReferences",
                or_null(!known.repository.is_empty(), json!([{"type": "vcs", "url": known.repository}])),
            ),
            (
                "properties",
                or_null(!features.is_empty(), json!([{"name": "cargo:features", "value": features}])),
            ),
        ] {
            let found = &component[what];
            ensure(*found == wanted, || {
                format!("{what} of {name} in the bill is {found}, and should be {wanted}")
            })?;
        }
        let stated = format!("{}@{}", text(component, "name"), text(component, "version"));
        ensure(stated == *name, || format!("the bill calls {name} {stated}"))?;
    }
    Ok(())
}

/// Holds what is linked in beside the crates to be listed.
fn check_libraries(found: &BTreeMap<&str, &Value>, expected: &Expected<'_>) -> Result<(), DistError> {
    let mut wanted = vec!["rust-std"];
    if expected.elf.is_static() && expected.sources.target.ends_with("-gnu") {
        wanted.push("glibc");
    }
    let listed: Vec<&&Value> = found
        .iter()
        .filter(|(purl, _)| !purl.starts_with("pkg:cargo/"))
        .map(|(_, library)| library)
        .collect();
    for name in &wanted {
        let library = listed.iter().find(|library| library["name"] == *name);
        let library = library.ok_or_else(|| wrong(format!("the bill lacks {name}")))?;
        let licence = library["licenses"][0]["expression"].as_str().unwrap_or_default();
        ensure(!licence.is_empty(), || format!("{name} has no licence in the bill"))?;
        ensure(!text(library, "version").is_empty(), || format!("{name} has no version in the bill"))?;
    }
    let extra = listed.iter().find(|library| !wanted.contains(&text(library, "name")));
    ensure(extra.is_none(), || format!("the bill lists {extra:?}, which is not linked in"))
}

/// Holds all that is listed to be needed, by way of others, by the program.
fn check_needs(bill: &Value, found: &BTreeMap<&str, &Value>, own: &str) -> Result<(), DistError> {
    let needs: BTreeMap<&str, &[Value]> = list(&bill["dependencies"])
        .iter()
        .map(|needs| (text(needs, "ref"), list(&needs["dependsOn"])))
        .collect();
    let (mut reached, mut todo) = (BTreeSet::from([own]), vec![own]);
    while let Some(next) = todo.pop() {
        for needed in needs.get(next).copied().unwrap_or_default().iter().filter_map(Value::as_str) {
            ensure(found.contains_key(needed), || format!("{next} needs {needed}, which the bill lacks"))?;
            if reached.insert(needed) {
                todo.push(needed);
            }
        }
    }
    let idle = found.keys().find(|purl| !reached.contains(*purl));
    ensure(idle.is_none(), || format!("nothing in the bill needs {}", idle.unwrap_or(&"")))
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}
