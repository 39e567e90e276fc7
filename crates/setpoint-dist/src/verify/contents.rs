//! The files of the Debian package beside what the binary and the workspace have.
//!
//! The list of paths is written here anew and not taken from what packs them, so that a file that is forgotten there is
//! missed here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::entries::{Entries, Kind, expect_file};
use super::expected::Expected;
use super::{control, ensure};
use crate::date;
use crate::error::DistError;
use crate::program;

const PROGRAM: &str = "usr/bin/setpoint";
const PAGES: &str = "usr/share/man/man1";
const UNITS: [&str; 3] =
    ["setpoint-composite.service", "setpoint-haproxy.service", "setpoint-watch@.service"];
const DOCUMENTS: &str = "usr/share/doc/setpoint";
/// Where each shell looks for completions, and what only a file for this shell has.
const COMPLETIONS: [(&str, &str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/setpoint", "complete -F _setpoint"),
    ("zsh", "usr/share/zsh/vendor-completions/_setpoint", "#compdef setpoint"),
    ("fish", "usr/share/fish/vendor_completions.d/setpoint.fish", "complete -c setpoint"),
];

/// Looks at all that the package holds, without installing it.
pub(super) fn check(package: &Path, bill: &Path, expected: &Expected<'_>) -> Result<(), DistError> {
    let data = part(package, "--fsys-tarfile")?;
    let epoch = expected.sources.release.epoch;
    data.compare("the package", &paths(expected), epoch)?;
    let same = data.0.get(PROGRAM).is_some_and(|program| program.sha256 == expected.sha256);
    ensure(same, || format!("{PROGRAM} is not the binary of the release"))?;
    check_pages(&data, expected)?;
    check_completions(&data, expected)?;
    for unit in UNITS {
        let source = expected.sources.root.join("deploy/systemd").join(unit);
        compare(&source, data.bytes(&format!("usr/lib/systemd/system/{unit}"))?)?;
    }
    let maintainer = check_changelog(&data, expected)?;
    let changes = data.unzipped(&format!("{DOCUMENTS}/CHANGELOG.md.gz"))?;
    compare(&expected.sources.root.join("CHANGELOG.md"), &changes)?;
    compare(bill, &data.unzipped(&format!("{DOCUMENTS}/setpoint.cdx.json.gz"))?)?;
    check_copyright(&data.text(&format!("{DOCUMENTS}/copyright"))?, expected)?;
    control::check(&part(package, "--ctrl-tarfile")?, &data, &maintainer, expected)
}

/// Reads one of the two archives of a package.
fn part(package: &Path, option: &str) -> Result<Entries, DistError> {
    let bytes = program::bytes(Command::new("dpkg-deb").arg(option).arg(package))?;
    Entries::read(&bytes[..]).map_err(DistError::file("unpack", package))
}

/// All that the package has to hold.
fn paths(expected: &Expected<'_>) -> BTreeMap<String, Kind> {
    let directory = Kind::Directory(0o755);
    let mut paths = BTreeMap::new();
    for path in ["", "etc", "etc/setpoint"] {
        paths.insert(path.to_owned(), directory);
    }
    expect_file(&mut paths, PROGRAM, 0o755);
    for page in expected.documents.pages.keys() {
        expect_file(&mut paths, &format!("{PAGES}/{page}.gz"), 0o644);
    }
    for (_, path, _) in COMPLETIONS {
        expect_file(&mut paths, path, 0o644);
    }
    for unit in UNITS {
        expect_file(&mut paths, &format!("usr/lib/systemd/system/{unit}"), 0o644);
    }
    for name in ["CHANGELOG.md.gz", "changelog.gz", "copyright", "setpoint.cdx.json.gz"] {
        expect_file(&mut paths, &format!("{DOCUMENTS}/{name}"), 0o644);
    }
    paths
}

/// Compares the pages with those that the binary writes, and holds those that they refer to be there.
fn check_pages(data: &Entries, expected: &Expected<'_>) -> Result<(), DistError> {
    for (name, page) in &expected.documents.pages {
        let packed = data.unzipped(&format!("{PAGES}/{name}.gz"))?;
        ensure(packed == *page, || format!("{name} is not the page that the binary writes"))?;
        for other in references(&String::from_utf8_lossy(page)) {
            let path = format!("{PAGES}/{other}.1.gz");
            ensure(data.0.contains_key(&path), || {
                format!("{name} refers to {other}(1), which is not there")
            })?;
        }
    }
    Ok(())
}

/// The pages of ours that a page refers to, such as `setpoint\-plan(1)`.
fn references(page: &str) -> Vec<String> {
    let plain = page.replace("\\-", "-");
    let before = plain.split("(1)").collect::<Vec<_>>();
    let word = |text: &&str| {
        let inside = |character: char| character.is_ascii_alphanumeric() || character == '-';
        let start = text.rfind(|character: char| !inside(character)).map_or(0, |at| at + 1);
        text.get(start..).filter(|word| word.starts_with("setpoint")).map(ToOwned::to_owned)
    };
    before.split_last().map_or(&[][..], |(_, before)| before).iter().filter_map(word).collect()
}

fn check_completions(data: &Entries, expected: &Expected<'_>) -> Result<(), DistError> {
    let documents = &expected.documents;
    let written = [&documents.bash, &documents.zsh, &documents.fish];
    for ((shell, path, mark), written) in COMPLETIONS.into_iter().zip(written) {
        let text = data.text(path)?;
        ensure(text.contains(mark), || format!("{path} holds no completions for {shell}"))?;
        ensure(text == *written, || format!("{path} is not what the binary writes for {shell}"))?;
    }
    Ok(())
}

/// Holds the changelog of Debian to name version, commit and time, and returns who made it.
fn check_changelog(data: &Entries, expected: &Expected<'_>) -> Result<String, DistError> {
    let release = expected.sources.release;
    let text = data.unzipped(&format!("{DOCUMENTS}/changelog.gz"))?;
    let text = String::from_utf8_lossy(&text);
    let version = release.version.debian();
    ensure(text.starts_with(&format!("setpoint ({version}) ")), || {
        format!("changelog.gz is not of {version}")
    })?;
    let commit = release.commit.as_deref().unwrap_or("unknown");
    ensure(text.contains(commit), || format!("changelog.gz does not name the commit {commit}"))?;
    let made = text.lines().find_map(|line| line.strip_prefix(" -- ")?.split_once("  "));
    let (maintainer, time) = made.unwrap_or_default();
    let epoch = date::rfc2822(release.epoch);
    ensure(time == epoch, || format!("changelog.gz is of `{time}`, and the release of {epoch}"))?;
    Ok(maintainer.to_owned())
}

fn check_copyright(text: &str, expected: &Expected<'_>) -> Result<(), DistError> {
    for words in [
        "Copyright: ",
        "License: Apache-2.0",
        "/usr/share/common-licenses/Apache-2.0",
        "setpoint.cdx.json.gz",
    ] {
        ensure(text.contains(words), || format!("copyright does not say `{words}`"))?;
    }
    let lesser = text.contains("/usr/share/common-licenses/LGPL-2.1");
    ensure(lesser || !expected.elf.is_static(), || {
        "copyright does not name the licence of the C library, which is linked in".to_owned()
    })?;
    ensure(!lesser || expected.elf.is_static(), || {
        "copyright names the licence of the C library, which is not linked in".to_owned()
    })
}

/// Compares what was packed with the file that it was packed from.
fn compare(source: &Path, packed: &[u8]) -> Result<(), DistError> {
    let bytes = fs::read(source).map_err(DistError::file("read", source))?;
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    ensure(bytes == packed, || format!("{name} in the package differs from {name} beside it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_a_page_refers_to_are_found() {
        let page = "See \\fBsetpoint\\-plan\\fR(1), setpoint\\-state\\-show(1) and systemd(1).\n";
        assert_eq!(references(page), ["setpoint-state-show"]);
    }
}
