//! The Debian package: an `ar` archive of a control part and a data part.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::GzBuilder;
use flate2::write::GzEncoder;
use md5::{Digest, Md5};

use crate::checksums::hex;
use crate::date;
use crate::elf::Elf;
use crate::error::DistError;
use crate::pack::Packing;
use crate::tree::{Content, Tree};

/// Who answers for the package.
const MAINTAINER: &str = "Setpoint maintainers <maintainers@setpoint.invalid>";

/// Tells a running systemd of the units, and does nothing where a package is only unpacked into a root.
pub(crate) const TELL_SYSTEMD: &str = "#!/bin/sh
set -e
if [ -z \"$DPKG_ROOT\" ] && [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
fi
";

/// Writes the package to `path`.
pub(crate) fn write(packing: &Packing<'_>, elf: &Elf, path: &Path) -> Result<(), DistError> {
    let data = data(packing, elf)?;
    let control = control(packing, elf, &data)?;
    let epoch = packing.release.epoch;
    // Beside the package, where there has to be room for it anyway.
    let folder = path.parent().unwrap_or(Path::new("."));
    let scratch = tempfile::Builder::new().prefix(".deb-").tempdir_in(folder);
    let scratch = scratch.map_err(DistError::file("make a folder in", folder))?;
    let compressed = |tree: &Tree, name: &str| -> Result<Content, DistError> {
        let file = scratch.path().join(name);
        let write = || -> io::Result<()> {
            let out = BufWriter::new(File::create(&file)?);
            let mut zipped = zipper(out, packing.compression.level());
            tree.write_tar(&mut zipped, "./", epoch)?;
            zipped.finish()?.flush()
        };
        write().map_err(DistError::file("write", &file))?;
        Ok(Content::Of(file))
    };
    let members = [
        ("debian-binary", Content::Bytes(b"2.0\n".to_vec())),
        ("control.tar.gz", compressed(&control, "control.tar.gz")?),
        ("data.tar.gz", compressed(&data, "data.tar.gz")?),
    ];
    let failed = || DistError::file("write", path);
    let out = BufWriter::new(File::create(path).map_err(failed())?);
    write_ar(out, &members, epoch).map_err(failed())
}

/// Compresses without the time and the name of a file, which differ between runs.
pub(crate) fn zipper<W: Write>(out: W, level: u32) -> GzEncoder<W> {
    GzBuilder::new().write(out, flate2::Compression::new(level))
}

pub(crate) fn write_ar(mut out: impl Write, members: &[(&str, Content)], epoch: u64) -> io::Result<()> {
    out.write_all(b"!<arch>\n")?;
    for (name, content) in members {
        let size = content.size()?;
        writeln!(out, "{name:<16}{epoch:<12}{:<6}{:<6}{:<8}{size:<10}`", 0, 0, "100644")?;
        io::copy(&mut content.open()?, &mut out)?;
        if size % 2 == 1 {
            out.write_all(b"\n")?;
        }
    }
    out.flush()
}

/// All files that the package installs.
fn data(packing: &Packing<'_>, elf: &Elf) -> Result<Tree, DistError> {
    let mut tree = Tree::default();
    tree.file("usr/bin/setpoint", 0o755, Content::Of(packing.binary.to_path_buf()));
    tree.directory("etc/setpoint", 0o755);
    let gzip = |bytes: &[u8]| -> Result<Content, DistError> {
        let mut zipped = zipper(Vec::new(), 9);
        let zipped = zipped.write_all(bytes).and_then(|()| zipped.finish());
        zipped.map(Content::Bytes).map_err(DistError::file("compress", Path::new("a document")))
    };
    for (name, page) in &packing.documents.pages {
        tree.file(&format!("usr/share/man/man1/{name}.gz"), 0o644, gzip(page)?);
    }
    let documents = packing.documents;
    for (path, text) in [
        ("usr/share/bash-completion/completions/setpoint", &documents.bash),
        ("usr/share/zsh/vendor-completions/_setpoint", &documents.zsh),
        ("usr/share/fish/vendor_completions.d/setpoint.fish", &documents.fish),
    ] {
        tree.file(path, 0o644, Content::Bytes(text.clone().into_bytes()));
    }
    let units = packing.root.join("deploy/systemd");
    for entry in fs::read_dir(&units).map_err(DistError::file("read", &units))? {
        let unit = entry.map_err(DistError::file("read", &units))?;
        if !is_unit(&unit.path()) {
            continue;
        }
        let path = format!("usr/lib/systemd/system/{}", unit.file_name().to_string_lossy());
        let text = fs::read(unit.path()).map_err(DistError::file("read", &unit.path()))?;
        tree.file(&path, 0o644, Content::Bytes(text));
    }
    let changes = packing.root.join("CHANGELOG.md");
    let changes = fs::read(&changes).map_err(DistError::file("read", &changes))?;
    tree.file("usr/share/doc/setpoint/CHANGELOG.md.gz", 0o644, gzip(&changes)?);
    tree.file("usr/share/doc/setpoint/changelog.gz", 0o644, gzip(changelog(packing).as_bytes())?);
    tree.file("usr/share/doc/setpoint/copyright", 0o644, Content::Bytes(copyright(elf).into_bytes()));
    tree.file("usr/share/doc/setpoint/setpoint.cdx.json.gz", 0o644, gzip(&packing.bill.to_json())?);
    Ok(tree)
}

/// Returns whether a file is a unit by its name: editors and merges leave others beside them.
fn is_unit(path: &Path) -> bool {
    let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let kind = path.extension().unwrap_or_default();
    !hidden && ["service", "socket", "target", "timer"].iter().any(|known| kind == *known)
}

/// What `dpkg` knows of the package.
fn control(packing: &Packing<'_>, elf: &Elf, data: &Tree) -> Result<Tree, DistError> {
    let mut sums = String::new();
    let mut size = 0;
    for (path, content) in data.files() {
        let failed = || DistError::file("read", Path::new(path));
        let mut hash = Md5Writer(Md5::new());
        io::copy(&mut content.open().map_err(failed())?, &mut hash).map_err(failed())?;
        // Writing to a string can't fail.
        let _ = writeln!(sums, "{}  {path}", hex(&hash.0.finalize()));
        size += content.size().map_err(failed())?.div_ceil(1024);
    }
    let mut text = String::new();
    let _ = writeln!(text, "Package: setpoint\nVersion: {}", packing.release.version.debian());
    let _ = writeln!(text, "Architecture: {}\nMaintainer: {MAINTAINER}", elf.machine.as_str());
    let _ = writeln!(text, "Installed-Size: {size}");
    let needed = dependencies(packing.binary, elf)?;
    if !needed.is_empty() {
        let _ = writeln!(text, "Depends: {}", needed.join(", "));
    }
    text.push_str(
        "Section: admin
Priority: optional
Description: keeps systems in the state that was declared for them
 Setpoint compares what is there with what was declared: files, directories,
 links, processes and commands of a host, configurations of HAProxy, structures
 of Kubernetes namespaces. It plans the operations that lead from one to the
 other in an order that no dependency forbids, carries them out, repairs what
 drifts, and says what it did and why.
",
    );
    let mut tree = Tree::default();
    tree.file("control", 0o644, Content::Bytes(text.into_bytes()));
    tree.file("md5sums", 0o644, Content::Bytes(sums.into_bytes()));
    for script in ["postinst", "postrm"] {
        tree.file(script, 0o755, Content::Bytes(TELL_SYSTEMD.into()));
    }
    Ok(tree)
}

/// The packages that hold the libraries that a program asks for.
fn dependencies(binary: &Path, elf: &Elf) -> Result<Vec<String>, DistError> {
    let mut packages = Vec::new();
    for library in &elf.needed {
        let package = match library.split(".so").next().unwrap_or_default() {
            "libc" | "libm" | "libdl" | "librt" | "libpthread" | "libresolv" => match elf.glibc {
                Some((major, minor)) => format!("libc6 (>= {major}.{minor})"),
                None => "libc6".to_owned(),
            },
            name if name.starts_with("ld-linux") => "libc6".to_owned(),
            "libgcc_s" => "libgcc-s1".to_owned(),
            _ => {
                let why = format!("it needs {library}, of which no package is known");
                return Err(DistError::Binary { path: binary.to_path_buf(), why });
            }
        };
        packages.push(package);
    }
    packages.sort();
    packages.dedup();
    // One with a version says it all.
    if packages.iter().any(|package| package.starts_with("libc6 ")) {
        packages.retain(|package| package != "libc6");
    }
    Ok(packages)
}

fn changelog(packing: &Packing<'_>) -> String {
    let (version, time) = (packing.release.version.debian(), date::rfc2822(packing.release.epoch));
    let commit = packing.release.commit.as_deref().unwrap_or("unknown");
    format!(
        "setpoint ({version}) unstable; urgency=medium\n\n  * Made of the commit {commit}.\n    \
         CHANGELOG.md.gz tells what has changed.\n\n -- {MAINTAINER}  {time}\n"
    )
}

fn copyright(elf: &Elf) -> String {
    let mut text = "This is Setpoint.

Copyright: the authors of Setpoint
License: Apache-2.0

On Debian systems, the text of the Apache License, Version 2.0, is in
/usr/share/common-licenses/Apache-2.0.

The program holds crates by others. setpoint.cdx.json.gz, in this directory,
lists each of them with its version, its licence and its source.
"
    .to_owned();
    if elf.is_static() {
        text.push_str(
            "
The program is linked statically with the GNU C library, which is under the
GNU Lesser General Public License, version 2.1 or later; its text is in
/usr/share/common-licenses/LGPL-2.1. Whoever wants to link it with another
version builds it anew from the source of Setpoint with `cargo xtask dist`.
",
        );
    }
    text
}

struct Md5Writer(Md5);

impl Write for Md5Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Machine;

    fn needing(needed: &[&str], glibc: Option<(u32, u32)>) -> Result<Vec<String>, DistError> {
        let needed = needed.iter().map(|&name| name.to_owned()).collect();
        let elf = Elf { machine: Machine::Amd64, interpreter: None, needed, glibc };
        dependencies(Path::new("tool"), &elf)
    }

    #[test]
    fn a_package_depends_on_the_packages_of_the_libraries_and_on_their_versions() {
        assert_eq!(needing(&[], None).unwrap(), [""; 0]);
        let libraries = ["libgcc_s.so.1", "libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"];
        assert_eq!(needing(&libraries, Some((2, 34))).unwrap(), ["libc6 (>= 2.34)", "libgcc-s1"]);
        let error = needing(&["libssl.so.3"], None).unwrap_err();
        assert_eq!(error.to_string(), "can't pack tool: it needs libssl.so.3, of which no package is known");
    }

    #[test]
    fn only_units_are_packed_and_not_what_editors_leave_beside_them() {
        for name in ["a.service", "a@.service", "a.socket", "a.timer", "a.target"] {
            assert!(is_unit(&Path::new("deploy/systemd").join(name)), "{name}");
        }
        for name in
            ["a.service.orig", "a.service~", ".a.service.swp", "#a.service#", ".#a.service", "README.md"]
        {
            assert!(!is_unit(&Path::new("deploy/systemd").join(name)), "{name}");
        }
    }

    #[test]
    fn members_of_an_archive_begin_at_even_places() {
        let mut bytes = Vec::new();
        let members = [("odd", Content::Bytes(b"abc".to_vec())), ("even", Content::Bytes(b"de".to_vec()))];
        write_ar(&mut bytes, &members, 7).unwrap();
        let expected = "!<arch>\n\
                        odd             7           0     0     100644  3         `\nabc\n\
                        even            7           0     0     100644  2         `\nde";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
