//! The Debian package, installed into a root of its own with nothing else in it.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;

use super::program::{Installed, Way};
use super::{Sources, ensure, units, wrong};
use crate::elf::Elf;
use crate::error::DistError;
use crate::image::ENTRY_POINT;
use crate::program::{self, as_root};

/// Sections that each manual page has.
const SECTIONS: [&str; 5] = ["NAME", "SYNOPSIS", "\"EXIT STATUS\"", "FILES", "EXAMPLES"];

/// Installs the package, looks at what came, runs it, and removes it.
pub(super) fn check(package: &Path, sources: &Sources<'_>) -> Result<String, DistError> {
    let release = sources.release;
    let scratch = tempfile::tempdir().map_err(DistError::file("make", Path::new("a temporary folder")))?;
    let root = Root { path: scratch.path().join("root") };
    root.make(package)?;
    root.dpkg(&["--install", &package.to_string_lossy()])?;
    let state = root.dpkg(&["--status", "setpoint"])?;
    for line in ["Status: install ok installed".to_owned(), format!("Version: {}", release.version.debian())]
    {
        ensure(state.lines().any(|found| found == line), || format!("dpkg does not say `{line}`:\n{state}"))?;
    }
    let changed = root.dpkg(&["--verify", "setpoint"])?;
    ensure(changed.is_empty(), || format!("files differ from the package's checksums:\n{changed}"))?;

    let pages = check_pages(&root.path)?;
    check_completions(&root.path)?;
    let elf = Elf::read(&root.path.join(ENTRY_POINT.trim_start_matches('/')))?;
    let way = if elf.is_static() { Way::Inside(0) } else { Way::Outside };
    let installed = Installed { root: &root.path, way };
    let version = installed.try_out(sources)?;
    if elf.is_static() {
        installed.try_names()?;
    }
    let units = units::check(&installed, sources.checker)?;

    root.dpkg(&["--purge", "setpoint"])?;
    for left in ["usr", "etc/setpoint"] {
        ensure(!root.path.join(left).exists(), || format!("purging the package left /{left} behind"))?;
    }
    let place = if elf.is_static() { "in it" } else { "beside it" };
    Ok(format!("installed into a root; {version} ran {place}; {pages} pages, {units}"))
}

/// A root that `dpkg` installs into.
struct Root {
    path: PathBuf,
}

impl Root {
    /// Makes the files of `dpkg`, and what the package depends on as far as this machine has it.
    fn make(&self, package: &Path) -> Result<(), DistError> {
        for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log", "etc"] {
            let folder = self.path.join(folder);
            fs::create_dir_all(&folder).map_err(DistError::file("make", &folder))?;
        }
        let mut status = String::new();
        for name in dependencies(package)? {
            let mut query = Command::new("dpkg-query");
            let version = program::run(query.args(["--show", "--showformat", "${Version}", &name]))?;
            // Writing to a string can't fail.
            let _ = write!(
                status,
                "Package: {name}\nStatus: install ok installed\nVersion: {version}\nArchitecture: {}\n\
                 Maintainer: nobody\nDescription: here for its version\n\n",
                program::run(Command::new("dpkg").arg("--print-architecture"))?.trim()
            );
        }
        for (path, text) in [
            ("var/lib/dpkg/status", status.as_str()),
            ("var/lib/dpkg/available", ""),
            ("etc/passwd", "root:x:0:0:root:/:/bin/sh\n"),
            ("etc/group", "root:x:0:\n"),
        ] {
            let path = self.path.join(path);
            fs::write(&path, text).map_err(DistError::file("write", &path))?;
        }
        Ok(())
    }

    /// Runs `dpkg` on this root. Scripts of packages are run outside of it, for there is no shell in it.
    fn dpkg(&self, arguments: &[&str]) -> Result<String, DistError> {
        let mut command = as_root("dpkg");
        command.arg("--root").arg(&self.path).arg("--log").arg(self.path.join("var/log/dpkg.log"));
        program::run(command.arg("--force-script-chrootless").args(arguments).env("LC_ALL", "C"))
    }
}

/// The names of the packages that a package depends on.
fn dependencies(package: &Path) -> Result<Vec<String>, DistError> {
    let mut command = Command::new("dpkg-deb");
    let depends = program::run(command.arg("--field").arg(package).arg("Depends"))?;
    let names = depends.split(',').filter_map(|dependency| dependency.split_whitespace().next());
    Ok(names.map(ToOwned::to_owned).collect())
}

/// Looks at the manual pages: all sections are there, and files of the package that they name are too. Returns how many
/// there are.
fn check_pages(root: &Path) -> Result<usize, DistError> {
    let folder = root.join("usr/share/man/man1");
    let mut count = 0;
    for entry in fs::read_dir(&folder).map_err(DistError::file("read", &folder))? {
        let path = entry.map_err(DistError::file("read", &folder))?.path();
        let bytes = fs::read(&path).map_err(DistError::file("read", &path))?;
        let mut page = String::new();
        GzDecoder::new(&bytes[..]).read_to_string(&mut page).map_err(DistError::file("unpack", &path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for section in SECTIONS {
            ensure(page.contains(&format!(".SH {section}\n")), || {
                format!("{name} has no section {section}")
            })?;
        }
        for named in named_files(&page).filter(|named| named.starts_with("/usr/")) {
            let there = root.join(named.trim_start_matches('/')).exists();
            ensure(there, || format!("{name} names {named}, which the package does not have"))?;
        }
        count += 1;
    }
    ensure(count > 0, || "the package has no manual pages".to_owned())?;
    Ok(count)
}

/// The paths in the section FILES of a page.
fn named_files(page: &str) -> impl Iterator<Item = String> {
    let files = page.split_once(".SH FILES\n").map_or("", |(_, files)| files);
    let files = files.split(".SH ").next().unwrap_or_default();
    let path =
        |line: &str| line.strip_prefix("\\fI")?.strip_suffix("\\fR").map(|path| path.replace("\\-", "-"));
    files.lines().filter_map(path).collect::<Vec<_>>().into_iter()
}

fn check_completions(root: &Path) -> Result<(), DistError> {
    for path in [
        "usr/share/bash-completion/completions/setpoint",
        "usr/share/zsh/vendor-completions/_setpoint",
        "usr/share/fish/vendor_completions.d/setpoint.fish",
    ] {
        let path = root.join(path);
        let text = fs::read_to_string(&path).map_err(DistError::file("read", &path))?;
        if !text.contains("detailed-exitcode") {
            return Err(wrong(format!("{} does not complete the options of `plan`", path.display())));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_the_section_of_files_alone() {
        let page = ".SH NAME\n\\fI/usr/no\\fR\n.SH FILES\n.TP\n\\fI/usr/lib/a\\-b@.service\\fR\nA unit.\n.SH EXAMPLES\n";
        assert_eq!(named_files(page).collect::<Vec<_>>(), ["/usr/lib/a-b@.service"]);
    }
}
