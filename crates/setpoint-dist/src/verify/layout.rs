//! The settings and the layers of the image beside what they have to be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::entries::{Entries, Kind, expect_file};
use super::expected::Expected;
use super::image::{blob, list, read};
use super::{ensure, wrong};
use crate::checksums;
use crate::date;
use crate::error::DistError;

const PROGRAM: &str = "usr/bin/setpoint";

/// Looks at all that the image holds, without running it.
pub(super) fn check(folder: &Path, expected: &Expected<'_>) -> Result<(), DistError> {
    let index = read(&folder.join("index.json"))?;
    let described = &index["manifests"][0];
    let manifest = read(&blob(folder, described)?)?;
    let config = read(&blob(folder, &manifest["config"])?)?;
    let (version, labels) = (expected.sources.release.version.to_string(), labels(expected));
    let kind = |name: &str| json!(format!("application/vnd.oci.image.{name}"));
    let platform = json!({"architecture": expected.elf.machine.as_str(), "os": "linux"});
    for (what, found, wanted) in [
        ("schemaVersion of the index", &index["schemaVersion"], json!(2)),
        ("mediaType of the index", &index["mediaType"], kind("index.v1+json")),
        ("mediaType that the index names", &described["mediaType"], kind("manifest.v1+json")),
        ("platform that the index names", &described["platform"], platform),
        (
            "annotations in the index",
            &described["annotations"],
            json!({"org.opencontainers.image.ref.name": version}),
        ),
        ("schemaVersion of the manifest", &manifest["schemaVersion"], json!(2)),
        ("mediaType of the manifest", &manifest["mediaType"], kind("manifest.v1+json")),
        ("mediaType of the config", &manifest["config"]["mediaType"], kind("config.v1+json")),
        ("annotations of the manifest", &manifest["annotations"], labels.clone()),
    ] {
        compare(what, found, &wanted)?;
    }
    check_config(&config, labels, expected)?;
    let layers = list(&manifest["layers"]);
    let history = list(&config["history"]).len();
    ensure(history == layers.len(), || format!("{} layers have a history of {history}", layers.len()))?;
    let mut entries = Entries::default();
    for layer in layers {
        compare("mediaType of a layer", &layer["mediaType"], &kind("layer.v1.tar+gzip"))?;
        let path = blob(folder, layer)?;
        let file = File::open(&path).map_err(DistError::file("read", &path))?;
        let layer = Entries::read(GzDecoder::new(file)).map_err(DistError::file("unpack", &path))?;
        entries.0.extend(layer.0);
    }
    check_files(&entries, expected)?;
    let digests = [described, &manifest["config"]].into_iter().chain(layers);
    let named: BTreeSet<String> = digests
        .filter_map(|named| {
            Some(format!("blobs/sha256/{}", named["digest"].as_str()?.strip_prefix("sha256:")?))
        })
        .chain(["index.json", "oci-layout"].map(ToOwned::to_owned))
        .collect();
    match checksums::files(folder)?.iter().find(|path| !named.contains(*path)) {
        Some(path) => Err(wrong(format!("the image holds {path}, which nothing names"))),
        None => Ok(()),
    }
}

fn compare(what: &str, found: &Value, wanted: &Value) -> Result<(), DistError> {
    ensure(found == wanted, || format!("{what} is {found}, and should be {wanted}"))
}

/// What the image says of itself.
fn labels(expected: &Expected<'_>) -> Value {
    let release = expected.sources.release;
    let mut labels = json!({
        "org.opencontainers.image.title": "setpoint",
        "org.opencontainers.image.description": "Keeps systems in the state that was declared for them.",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": release.version.to_string(),
        "org.opencontainers.image.created": date::rfc3339(release.epoch),
    });
    if let (Some(labels), Some(commit)) = (labels.as_object_mut(), &release.commit) {
        labels.insert("org.opencontainers.image.revision".into(), json!(commit));
    }
    labels
}

/// Looks at how the image is run.
fn check_config(config: &Value, labels: Value, expected: &Expected<'_>) -> Result<(), DistError> {
    let settings = &config["config"];
    for (what, found, wanted) in [
        ("os", &config["os"], json!("linux")),
        ("architecture", &config["architecture"], json!(expected.elf.machine.as_str())),
        ("created", &config["created"], json!(date::rfc3339(expected.sources.release.epoch))),
        ("type of rootfs", &config["rootfs"]["type"], json!("layers")),
        ("User", &settings["User"], json!("65532:65532")),
        (
            "Env",
            &settings["Env"],
            json!(["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]),
        ),
        ("Entrypoint", &settings["Entrypoint"], json!(["/usr/bin/setpoint"])),
        ("Cmd", &settings["Cmd"], json!(["--help"])),
        ("WorkingDir", &settings["WorkingDir"], json!("/")),
        ("Labels", &settings["Labels"], labels),
    ] {
        compare(&format!("{what} in the config"), found, &wanted)?;
    }
    Ok(())
}

/// Looks at the files of all layers: the program, two users, `/tmp`, and the libraries of a dynamic program.
fn check_files(entries: &Entries, expected: &Expected<'_>) -> Result<(), DistError> {
    let mut paths = BTreeMap::from([("tmp".to_owned(), Kind::Directory(0o1777))]);
    expect_file(&mut paths, PROGRAM, 0o755);
    expect_file(&mut paths, "etc/passwd", 0o644);
    expect_file(&mut paths, "etc/group", 0o644);
    if !expected.elf.is_static() {
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let libraries: Vec<&String> = entries.0.keys().filter(|path| name(path).contains(".so")).collect();
        let loader = expected.elf.interpreter.iter();
        for needed in expected.elf.needed.iter().chain(loader).map(|path| name(path)) {
            let there = libraries.iter().any(|path| name(path) == needed);
            ensure(there, || format!("the image lacks {needed}, which the program needs"))?;
        }
        for path in libraries {
            expect_file(&mut paths, path, 0o755);
        }
    }
    entries.compare("the image", &paths, expected.sources.release.epoch)?;
    let same = entries.0.get(PROGRAM).is_some_and(|program| program.sha256 == expected.sha256);
    ensure(same, || format!("{PROGRAM} in the image is not the binary of the release"))?;
    for (path, line) in [("etc/passwd", "setpoint:x:65532:65532:"), ("etc/group", "setpoint:x:65532:")] {
        let known = entries.text(path)?.lines().any(|found| found.starts_with(line));
        ensure(known, || format!("{path} in the image does not know the user 65532"))?;
    }
    Ok(())
}
