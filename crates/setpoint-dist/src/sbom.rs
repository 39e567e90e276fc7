//! The bill of materials, in the form of CycloneDX 1.6: each crate that the binary is made of.
//!
//! ```text
//! cargo tree: crates, features, licences, who needs whom ─┐
//! Cargo.lock: checksums ──────────────────────────────────┴─▶ Bill ──▶ setpoint.cdx.json
//! ```
//!
//! `cargo tree` says what is built with the features of the binary; `cargo metadata` would mix in those of the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::checksums::hex;
use crate::date;
use crate::error::DistError;
use crate::json;
use crate::program;
use crate::release::Release;

/// All that a binary is made of.
#[derive(Debug, Clone)]
pub struct Bill {
    release: Release,
    /// The key of the program itself among the components.
    program: Key,
    components: BTreeMap<Key, Component>,
    /// What is linked in beside the crates.
    libraries: Vec<(String, String, String)>,
}

/// The name and the version of a crate.
type Key = (String, String);

/// One crate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Component {
    /// Whether it is linked into the binary; others only take part in the build.
    pub linked: bool,
    /// Its licence, as an SPDX expression.
    pub licence: String,
    /// Where its source is developed.
    pub repository: String,
    /// The SHA-256 of the archive that it is built from; crates of this workspace have none.
    pub checksum: Option<String>,
    /// The features that it is built with.
    pub features: BTreeSet<String>,
    /// The crates that it needs.
    pub needs: BTreeSet<Key>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// What one line of `cargo tree` looks like.
const FORMAT: &str = "{p}\t{f}\t{l}\t{r}";

impl Bill {
    /// Asks cargo what the binary `setpoint` of the workspace at `root` is made of for a target.
    pub fn read(cargo: &Path, root: &Path, target: &str, release: &Release) -> Result<Self, DistError> {
        let tree = |edges: &str| {
            let mut command = Command::new(cargo);
            command.current_dir(root).args(["tree", "--locked", "--package", "setpoint", "--target", target]);
            program::run(command.args(["--edges", edges, "--prefix", "depth", "--format", FORMAT]))
        };
        let lock = root.join("Cargo.lock");
        let lock = fs::read_to_string(&lock).map_err(DistError::file("read", &lock))?;
        Self::of(&tree("normal,build")?, &tree("normal,no-proc-macro")?, &lock, release)
    }

    /// Reads the two trees, of all that is built and of all that is linked, and `Cargo.lock`.
    fn of(built: &str, linked: &str, lock: &str, release: &Release) -> Result<Self, DistError> {
        let mut components: BTreeMap<Key, Component> = BTreeMap::new();
        let mut above: Vec<Key> = Vec::new();
        for line in built.lines() {
            let line = Line::read(line)?;
            above.truncate(line.depth);
            if let Some(parent) = above.last() {
                components.entry(parent.clone()).or_default().needs.insert(line.key.clone());
            }
            let component = components.entry(line.key.clone()).or_default();
            component.licence = line.licence;
            component.repository = line.repository;
            component.features.extend(line.features);
            above.push(line.key);
        }
        for line in linked.lines() {
            if let Some(component) = components.get_mut(&Line::read(line)?.key) {
                component.linked = true;
            }
        }
        let lock: Lock = toml::from_str(lock).map_err(|error| DistError::input("Cargo.lock", &error))?;
        for Locked { name, version, checksum } in lock.package {
            if let Some(component) = components.get_mut(&(name, version)) {
                component.checksum = checksum;
            }
        }
        let Some(program) = above.into_iter().next() else {
            return Err(DistError::input("`cargo tree`", &"it lists nothing"));
        };
        Ok(Self { release: release.clone(), program, components, libraries: Vec::new() })
    }

    /// Adds a library that is linked in and is no crate.
    pub fn add_library(&mut self, name: &str, version: &str, licence: &str) {
        self.libraries.push((name.to_owned(), version.to_owned(), licence.to_owned()));
    }

    /// The crates by name and version, the program itself included.
    pub fn components(&self) -> &BTreeMap<(String, String), Component> {
        &self.components
    }

    /// Writes it.
    pub fn to_json(&self) -> Vec<u8> {
        let mut components: Vec<Value> =
            self.components.iter().filter(|(key, _)| **key != self.program).map(Self::component).collect();
        components.extend(self.libraries.iter().map(|(name, version, licence)| {
            json!({
                "type": "library",
                "bom-ref": format!("pkg:generic/{name}@{version}"),
                "name": name,
                "version": version,
                "purl": format!("pkg:generic/{name}@{version}"),
                "scope": "required",
                "licenses": [{"expression": licence}],
            })
        }));
        let libraries =
            self.libraries.iter().map(|(name, version, _)| format!("pkg:generic/{name}@{version}"));
        let needs = |(key, component): (&Key, &Component)| {
            let mut needed: Vec<String> = component.needs.iter().map(purl).collect();
            if *key == self.program {
                needed.extend(libraries.clone());
            }
            json!({"ref": purl(key), "dependsOn": needed})
        };
        let dependencies: Vec<Value> = self.components.iter().map(needs).collect();
        let (name, number) = &self.program;
        let version = self.release.version.to_string();
        let described = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {
                "timestamp": date::rfc3339(self.release.epoch),
                "component": {
                    "type": "application",
                    "bom-ref": format!("pkg:cargo/{name}@{number}"),
                    "name": name,
                    "version": version,
                    "purl": format!("pkg:cargo/{name}@{number}"),
                    "licenses": [{"expression": "Apache-2.0"}],
                },
            },
            "components": components,
            "dependencies": dependencies,
        });
        let mut described = described;
        let serial = serial_number(&json::line(&described));
        if let Some(members) = described.as_object_mut() {
            members.insert("serialNumber".into(), json!(serial));
        }
        json::pretty(&described)
    }

    fn component((key, component): (&Key, &Component)) -> Value {
        let mut value = json!({
            "type": "library",
            "bom-ref": purl(key),
            "name": key.0,
            "version": key.1,
            "purl": purl(key),
            "scope": if component.linked { "required" } else { "excluded" },
        });
        let Some(members) = value.as_object_mut() else { return value };
        if !component.licence.is_empty() {
            members.insert("licenses".into(), json!([{"expression": component.licence}]));
        }
        if let Some(checksum) = &component.checksum {
            members.insert("hashes".into(), json!([{"alg": "SHA-256", "content": checksum}]));
        }
        if !component.repository.is_empty() {
            let source = json!([{"type": "vcs", "url": component.repository}]);
            members.insert("externalReferences".into(), source);
        }
        if !component.features.is_empty() {
            let features: Vec<&str> = component.features.iter().map(String::as_str).collect();
            let features = json!([{"name": "cargo:features", "value": features.join(",")}]);
            members.insert("properties".into(), features);
        }
        value
    }
}

#[cfg(test)]
impl Bill {
    /// A bill of a program that is made of nothing else.
    pub(crate) fn sample(release: &Release) -> Self {
        let tree = "0setpoint v0.1.0\t\tApache-2.0\t\n";
        Self::of(tree, tree, "package = []", release).unwrap()
    }
}

fn purl((name, version): &Key) -> String {
    format!("pkg:cargo/{name}@{version}")
}

/// A number that is the same for the same content: a UUID of version 8.
fn serial_number(content: &[u8]) -> String {
    let mut bytes: Vec<u8> = Sha256::digest(content).iter().copied().take(16).collect();
    if let Some(byte) = bytes.get_mut(6) {
        *byte = (*byte & 0x0f) | 0x80;
    }
    if let Some(byte) = bytes.get_mut(8) {
        *byte = (*byte & 0x3f) | 0x80;
    }
    let digits = hex(&bytes);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default().to_owned();
    format!("urn:uuid:{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

/// One line of `cargo tree`: `2serde v1.0.228 (*)`, features, licence and repository, between tabs.
struct Line {
    depth: usize,
    key: Key,
    features: Vec<String>,
    licence: String,
    repository: String,
}

impl Line {
    fn read(line: &str) -> Result<Self, DistError> {
        let wrong = || DistError::input("`cargo tree`", &format_args!("`{line}` is no crate"));
        let mut fields = line.split('\t');
        let package = fields.next().ok_or_else(wrong)?;
        let end = package.find(|character: char| !character.is_ascii_digit()).ok_or_else(wrong)?;
        let (depth, package) = package.split_at(end);
        let mut words = package.split_whitespace();
        let name = words.next().ok_or_else(wrong)?.to_owned();
        let version = words.next().and_then(|word| word.strip_prefix('v')).ok_or_else(wrong)?.to_owned();
        let features = fields.next().unwrap_or_default().split(',').filter(|name| !name.is_empty());
        let features = features.map(ToOwned::to_owned).collect();
        // An older way to write that one of several may be chosen.
        let licence = fields.next().unwrap_or_default().replace('/', " OR ").replace("  ", " ");
        // The mark of a crate whose needs were listed before stands at the end of the line.
        let repository = fields.next().unwrap_or_default().trim_end_matches("(*)").trim().to_owned();
        let depth = depth.parse().map_err(|_| wrong())?;
        Ok(Self { depth, key: (name, version), features, licence, repository })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Version;

    const BUILT: &str = "0setpoint v0.1.0 (/src/crates/setpoint)\tdefault\tApache-2.0\t\n\
                         1serde v1.0.1\tderive,std\tMIT/Apache-2.0\thttps://example.test/serde\n\
                         2serde_derive v1.0.1 (proc-macro)\t\tMIT\thttps://example.test/serde\n\
                         1cc v1.2.0\t\tMIT\t\n\
                         1other v0.2.0\t\tMIT\t\n\
                         2serde v1.0.1\tstd\tMIT/Apache-2.0\thttps://example.test/serde (*)\n";
    const LINKED: &str = "0setpoint v0.1.0 (/src/crates/setpoint)\tdefault\tApache-2.0\t\n\
                          1serde v1.0.1\tstd\tMIT/Apache-2.0\t\n\
                          1other v0.2.0\t\tMIT\t\n";
    const LOCK: &str = "[[package]]\nname = \"serde\"\nversion = \"1.0.1\"\nchecksum = \"ab\"\n\
                        [[package]]\nname = \"unused\"\nversion = \"9.0.0\"\n";

    fn bill() -> Bill {
        let release = Release { version: Version::released("0.1.0"), commit: None, epoch: 0 };
        let mut bill = Bill::of(BUILT, LINKED, LOCK, &release).unwrap();
        bill.add_library("glibc", "2.36", "LGPL-2.1-or-later");
        bill
    }

    #[test]
    fn a_crate_has_its_licence_checksum_features_and_what_it_needs() {
        let bill = bill();
        let serde = &bill.components()[&("serde".to_owned(), "1.0.1".to_owned())];
        assert_eq!(serde.licence, "MIT OR Apache-2.0");
        assert_eq!(serde.repository, "https://example.test/serde");
        assert_eq!(serde.checksum.as_deref(), Some("ab"));
        assert!(serde.linked && serde.features.contains("std") && serde.features.contains("derive"));
        let names: Vec<&str> = bill.components().keys().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["cc", "other", "serde", "serde_derive", "setpoint"]);
        let linked: Vec<bool> = bill.components().values().map(|component| component.linked).collect();
        assert_eq!(linked, [false, true, true, false, true]);
    }

    #[test]
    fn the_bill_lists_each_crate_once_and_says_who_needs_whom() {
        let text = bill().to_json();
        assert_eq!(text, bill().to_json(), "the same again");
        let json: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!((&json["bomFormat"], &json["specVersion"]), (&json!("CycloneDX"), &json!("1.6")));
        assert_eq!(json["metadata"]["component"]["purl"], "pkg:cargo/setpoint@0.1.0");
        let of = |name: &str| {
            let all = json["components"].as_array().unwrap().iter();
            all.filter(|component| component["name"] == name).cloned().collect::<Vec<_>>()
        };
        assert_eq!(of("serde").len(), 1);
        assert_eq!(of("serde")[0]["hashes"], json!([{"alg": "SHA-256", "content": "ab"}]));
        assert_eq!(of("cc")[0]["scope"], "excluded");
        assert_eq!(of("glibc")[0]["licenses"], json!([{"expression": "LGPL-2.1-or-later"}]));
        let needs = json["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .find(|needs| needs["ref"] == "pkg:cargo/setpoint@0.1.0");
        let expected = [
            "pkg:cargo/cc@1.2.0",
            "pkg:cargo/other@0.2.0",
            "pkg:cargo/serde@1.0.1",
            "pkg:generic/glibc@2.36",
        ];
        assert_eq!(needs.unwrap()["dependsOn"], json!(expected));
        let serial = json["serialNumber"].as_str().unwrap();
        assert!(serial.starts_with("urn:uuid:") && serial.len() == 45, "{serial}");
    }

    #[test]
    fn a_line_that_is_no_crate_is_shown() {
        let release = bill().release;
        let error = Bill::of("[build-dependencies]\n", "", "package = []", &release).unwrap_err();
        assert_eq!(error.to_string(), "can't use `cargo tree`: `[build-dependencies]` is no crate");
        assert!(Bill::of("", "", "package = []", &release).is_err());
    }
}
