//! What `dpkg` knows of the package: its fields, its checksums and its scripts.

use std::collections::{BTreeMap, BTreeSet};

use super::entries::{Entries, Kind};
use super::expected::Expected;
use super::{ensure, wrong};
use crate::deb::TELL_SYSTEMD;
use crate::elf::Elf;
use crate::error::DistError;

/// Looks at the control part of a package that installs `data`.
pub(super) fn check(
    control: &Entries,
    data: &Entries,
    maintainer: &str,
    expected: &Expected<'_>,
) -> Result<(), DistError> {
    let files = [
        ("", Kind::Directory(0o755)),
        ("control", Kind::File(0o644)),
        ("md5sums", Kind::File(0o644)),
        ("postinst", Kind::File(0o755)),
        ("postrm", Kind::File(0o755)),
    ];
    let files = files.map(|(path, kind)| (path.to_owned(), kind));
    let release = expected.sources.release;
    control.compare("the control part", &BTreeMap::from(files), release.epoch)?;
    for script in ["postinst", "postrm"] {
        let same = control.bytes(script)? == TELL_SYSTEMD.as_bytes();
        ensure(same, || format!("{script} is not the script that tells systemd of the units"))?;
    }
    check_sums(&control.text("md5sums")?, data)?;

    let text = control.text("control")?;
    let fields = fields(&text)?;
    let size: u64 = files_of(data).map(|(_, entry)| entry.size.div_ceil(1024)).sum();
    let mut wanted = BTreeMap::from([
        ("Package", "setpoint".to_owned()),
        ("Version", release.version.debian()),
        ("Architecture", expected.elf.machine.as_str().to_owned()),
        ("Maintainer", maintainer.to_owned()),
        ("Installed-Size", size.to_string()),
        ("Section", "admin".to_owned()),
        ("Priority", "optional".to_owned()),
    ]);
    let depends = dependencies(&expected.elf);
    if !depends.is_empty() {
        wanted.insert("Depends", depends);
    }
    for (name, value) in &wanted {
        let found = fields.get(name).copied().unwrap_or_default();
        ensure(found == value, || format!("the field {name} is `{found}`, and should be `{value}`"))?;
    }
    ensure(maintainer.contains(" <") && maintainer.ends_with('>') && maintainer.contains('@'), || {
        format!("the maintainer `{maintainer}` has no address")
    })?;
    ensure(fields.get("Description").is_some_and(|text| !text.is_empty()), || {
        "the package has no description".to_owned()
    })?;
    ensure(text.lines().any(|line| line.starts_with(' ')), || "the description is one line".to_owned())?;
    let known = |name: &&&str| **name == "Description" || wanted.contains_key(**name);
    match fields.keys().find(|name| !known(name)) {
        Some(name) => Err(wrong(format!("the field {name} should not be there"))),
        None => Ok(()),
    }
}

/// The fields by name; lines that go on with a field are left out.
fn fields(text: &str) -> Result<BTreeMap<&str, &str>, DistError> {
    let mut fields = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with(' ')) {
        let (name, value) =
            line.split_once(": ").ok_or_else(|| wrong(format!("`{line}` is no field of a package")))?;
        ensure(fields.insert(name, value).is_none(), || format!("the field {name} is there twice"))?;
    }
    Ok(fields)
}

fn files_of(data: &Entries) -> impl Iterator<Item = (&str, &super::entries::Entry)> {
    let files = data.0.iter().filter(|(_, entry)| matches!(entry.kind, Kind::File(_)));
    files.map(|(path, entry)| (path.as_str(), entry))
}

/// Holds each file to have its checksum: `dpkg --verify` only looks at those that are listed.
fn check_sums(text: &str, data: &Entries) -> Result<(), DistError> {
    let listed: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.split_once("  ")).map(|(sum, path)| (path, sum)).collect();
    for (path, entry) in files_of(data) {
        ensure(listed.get(path) == Some(&entry.md5.as_str()), || format!("md5sums is wrong about {path}"))?;
    }
    let count = files_of(data).count();
    ensure(listed.len() == count, || format!("md5sums lists {} files, and there are {count}", listed.len()))
}

/// The packages that Debian has the libraries in which our programs are linked with.
fn dependencies(elf: &Elf) -> String {
    let package = |library: &String| match (library.starts_with("libgcc_s."), elf.glibc) {
        (true, _) => "libgcc-s1".to_owned(),
        (false, Some((major, minor))) => format!("libc6 (>= {major}.{minor})"),
        (false, None) => "libc6".to_owned(),
    };
    let packages: BTreeSet<String> = elf.needed.iter().map(package).collect();
    packages.into_iter().collect::<Vec<_>>().join(", ")
}
