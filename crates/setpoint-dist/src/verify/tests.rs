//! Damages a packed release in one way at a time: each has to be named.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tar::{EntryType, Header};

use super::damage::{Image, Item, add, edit_image, edit_package, find, gzip, remove};
use super::expected::{self, Expected};
use super::{Checker, Sources, bill, contents, image, layout};
use crate::documents::Documents;
use crate::elf::Elf;
use crate::pack::{Artefacts, Compression, Packing};
use crate::release::{Release, Version};
use crate::sbom::Bill;

/// Something wrong that is done to a release.
struct Damage {
    /// Who has to notice.
    by: Trial,
    /// What has to be said.
    words: String,
    inflict: Box<dyn Fn(&Artefacts)>,
}

/// What looks at a release.
#[derive(Debug, Clone, Copy)]
enum Trial {
    Binary,
    Package,
    Image,
    Archive,
    Bill,
}

/// A release of a small program of the system, and what it is compared with.
struct Packed {
    folder: tempfile::TempDir,
    artefacts: Artefacts,
    release: Release,
    documents: Documents,
    target: String,
    root: PathBuf,
    cargo: PathBuf,
}

impl Packed {
    /// A release of a dynamic program.
    fn new() -> Self {
        Self::of(Path::new("/bin/true"), &[])
    }

    /// A release of a program that is linked with libraries beside those that all have.
    fn of(binary: &Path, libraries: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let version = Version::released(env!("CARGO_PKG_VERSION"));
        let release = Release { version, commit: Some("abc".to_owned()), epoch: 1_000_000_000 };
        let documents = Documents {
            pages: BTreeMap::from([
                ("setpoint.1".to_owned(), b"see setpoint\\-plan(1)\n".to_vec()),
                ("setpoint-plan.1".to_owned(), b"plans\n".to_vec()),
            ]),
            bash: "complete -F _setpoint setpoint\n".to_owned(),
            zsh: "#compdef setpoint\n".to_owned(),
            fish: "complete -c setpoint\n".to_owned(),
        };
        let mut bill = Bill::read(&cargo, &root, &target, &release).unwrap();
        bill.add_library("rust-std", "1.95.0", "MIT OR Apache-2.0");
        for library in libraries {
            bill.add_library(library, "2.36", "LGPL-2.1-or-later");
        }
        let packing = Packing {
            binary,
            target: &target,
            release: &release,
            documents: &documents,
            bill: &bill,
            root: &root,
            compression: Compression::Fast,
        };
        let folder = tempfile::tempdir().unwrap();
        let artefacts = packing.pack(folder.path()).unwrap();
        Self { folder, artefacts, release, documents, target, root, cargo }
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            cargo: &self.cargo,
            root: &self.root,
            target: &self.target,
            release: &self.release,
            checker: Checker::Nobody,
        }
    }

    /// A copy, in a folder that is removed with it.
    fn copy(&self) -> (tempfile::TempDir, Artefacts) {
        let scratch = tempfile::tempdir().unwrap();
        let copy = scratch.path().join("copy");
        let copied = Command::new("cp").arg("-a").arg(self.folder.path()).arg(&copy).status().unwrap();
        assert!(copied.success());
        (scratch, self.artefacts.moved_to(&copy))
    }

    /// What is wrong with artefacts, as far as one trial sees it.
    fn problem(&self, trial: Trial, artefacts: &Artefacts, crates: &bill::Crates) -> Option<String> {
        let sources = self.sources();
        let expected = Expected::with(&artefacts.binary, &sources, self.documents.clone()).unwrap();
        let result = match trial {
            Trial::Binary => expected::check_file(&artefacts.binary, &self.target),
            Trial::Package => contents::check(&artefacts.package, &artefacts.bill, &expected),
            Trial::Image => layout::check(&artefacts.image, &expected),
            Trial::Archive => image::check_archive(&artefacts.image, &artefacts.archive).map(|_| ()),
            Trial::Bill => bill::check(&artefacts.bill, crates, &expected).map(|_| ()),
        };
        result.err().map(|error| error.with_causes())
    }
}

/// Damages a copy in each way, and looks for the words that name it.
fn each_is_named(damages: Vec<Damage>) {
    each_is_named_of(&Packed::new(), damages);
}

fn each_is_named_of(packed: &Packed, damages: Vec<Damage>) {
    let crates = bill::Crates::read(&packed.sources()).unwrap();
    for trial in [Trial::Binary, Trial::Package, Trial::Image, Trial::Archive, Trial::Bill] {
        assert_eq!(packed.problem(trial, &packed.artefacts, &crates), None);
    }
    let mut missed = Vec::new();
    for Damage { by, words, inflict } in damages {
        let (_scratch, artefacts) = packed.copy();
        inflict(&artefacts);
        let problem = packed.problem(by, &artefacts, &crates).unwrap_or_default();
        if !problem.contains(&words) {
            missed.push(format!("{words}: {by:?} says `{problem}`"));
        }
    }
    assert_eq!(missed, [""; 0]);
}

fn row(by: Trial, words: &str, inflict: impl Fn(&Artefacts) + 'static) -> Damage {
    Damage { by, words: words.to_owned(), inflict: Box::new(inflict) }
}

/// Does something to the files that the package installs.
fn data(words: &str, edit: impl Fn(&mut Vec<Item>) + 'static) -> Damage {
    row(Trial::Package, words, move |artefacts| edit_package(&artefacts.package, |_, data| edit(data)))
}

/// Does something to the control part of the package.
fn control(words: &str, edit: impl Fn(&mut Vec<Item>) + 'static) -> Damage {
    row(Trial::Package, words, move |artefacts| edit_package(&artefacts.package, |control, _| edit(control)))
}

/// Does something to the image.
fn oci(words: &str, edit: impl Fn(&mut Image) + 'static) -> Damage {
    row(Trial::Image, words, move |artefacts| edit_image(&artefacts.image, &edit))
}

/// Does something to the bill.
fn listed(words: &str, edit: impl Fn(&mut Value) + 'static) -> Damage {
    row(Trial::Bill, words, move |artefacts| {
        let mut bill: Value = serde_json::from_slice(&fs::read(&artefacts.bill).unwrap()).unwrap();
        edit(&mut bill);
        fs::write(&artefacts.bill, bill.to_string()).unwrap();
    })
}

fn header(items: &mut [Item], path: &str, edit: impl Fn(&mut Header)) {
    edit(&mut find(items, path).header);
}

#[test]
fn a_damaged_binary_is_named() {
    each_is_named(vec![
        row(Trial::Binary, "is no file of mode 0755", |artefacts| {
            fs::set_permissions(&artefacts.binary, fs::Permissions::from_mode(0o600)).unwrap();
        }),
        row(Trial::Package, "usr/bin/setpoint is not the binary", |artefacts| append(&artefacts.binary)),
        row(Trial::Image, "usr/bin/setpoint in the image is not the binary", |artefacts| {
            append(&artefacts.binary);
        }),
        row(Trial::Archive, "the archive does not hold index.json", |artefacts| {
            fs::write(artefacts.image.join("index.json"), "{}").unwrap();
        }),
        row(Trial::Package, "dpkg-deb", |artefacts| fs::write(&artefacts.package, "").unwrap()),
    ]);
}

fn append(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    bytes.push(0);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_file_that_the_package_lacks_has_in_excess_or_has_changed_is_named() {
    const PROGRAM: &str = "usr/bin/setpoint";
    const PAGE: &str = "usr/share/man/man1/setpoint-plan.1.gz";
    let mut damages = Vec::new();
    for path in [
        "etc/setpoint",
        PROGRAM,
        "usr/lib/systemd/system/setpoint-composite.service",
        "usr/lib/systemd/system/setpoint-haproxy.service",
        "usr/lib/systemd/system/setpoint-watch@.service",
        "usr/share/bash-completion/completions/setpoint",
        "usr/share/zsh/vendor-completions/_setpoint",
        "usr/share/fish/vendor_completions.d/setpoint.fish",
        "usr/share/doc/setpoint/CHANGELOG.md.gz",
        "usr/share/doc/setpoint/changelog.gz",
        "usr/share/doc/setpoint/copyright",
        "usr/share/doc/setpoint/setpoint.cdx.json.gz",
        PAGE,
    ] {
        damages.push(data(&format!("the package lacks {path}"), move |items| remove(items, path)));
    }
    for (words, path, mode) in [
        ("usr/bin/setpoint is a file of mode 4755", PROGRAM, 0o4755),
        ("usr/bin/setpoint is a file of mode 0644", PROGRAM, 0o644),
        ("setpoint-plan.1.gz is a file of mode 0600", PAGE, 0o600),
        ("etc/setpoint is a directory of mode 0777", "etc/setpoint", 0o777),
    ] {
        damages.push(data(words, move |items| header(items, path, |header| header.set_mode(mode))));
    }
    damages.extend([
        data("usr/bin/setpoint does not belong to root", |items| {
            header(items, PROGRAM, |header| header.set_uid(1000));
        }),
        data("usr/bin/setpoint does not belong to root", |items| {
            header(items, PROGRAM, |header| header.set_groupname("staff").unwrap());
        }),
        data("setpoint-plan.1.gz has the time 0", |items| header(items, PAGE, |header| header.set_mtime(0))),
        data("usr/bin/setpoint is neither a file nor a directory", |items| {
            let program = find(items, PROGRAM);
            program.header.set_entry_type(EntryType::Symlink);
            program.header.set_link_name("/bin/sh").unwrap();
            program.bytes.clear();
        }),
        data("usr/bin/setpoint has extended attributes", |items| {
            let at = items.iter().position(|item| item.path == PROGRAM).unwrap();
            let mut header = items[at].header.clone();
            header.set_entry_type(EntryType::XHeader);
            let bytes = b"37 SCHILY.xattr.security.capability=1\n".to_vec();
            items.insert(at, Item { path: String::new(), header, bytes });
        }),
        data("the package holds usr/bin/more", |items| add(items, "usr/bin/more", PROGRAM)),
        data("the package holds usr/lib/systemd/system/a.service.orig", |items| {
            add(items, "usr/lib/systemd/system/a.service.orig", PAGE);
        }),
    ]);
    for (words, path, text) in [
        ("usr/bin/setpoint is not the binary", PROGRAM, "other"),
        (
            "holds no completions for bash",
            "usr/share/bash-completion/completions/setpoint",
            "#compdef setpoint\n",
        ),
        (
            "holds no completions for zsh",
            "usr/share/zsh/vendor-completions/_setpoint",
            "complete -c setpoint\n",
        ),
        (
            "is not what the binary writes for fish",
            "usr/share/fish/vendor_completions.d/setpoint.fish",
            "complete -c setpoint -l odd\n",
        ),
        (
            "setpoint-watch@.service in the package differs",
            "usr/lib/systemd/system/setpoint-watch@.service",
            "[Unit]\n",
        ),
        ("copyright does not say", "usr/share/doc/setpoint/copyright", "This is Setpoint.\n"),
        ("setpoint-plan.1.gz can't be unpacked", PAGE, "no archive"),
    ] {
        damages.push(data(words, move |items| find(items, path).bytes = text.into()));
    }
    for (words, path, text) in [
        ("setpoint-plan.1 is not the page", PAGE, "other\n"),
        ("changelog.gz is not of", "usr/share/doc/setpoint/changelog.gz", "setpoint (9) unstable\n"),
        ("CHANGELOG.md in the package differs", "usr/share/doc/setpoint/CHANGELOG.md.gz", ""),
        (".cdx.json in the package differs", "usr/share/doc/setpoint/setpoint.cdx.json.gz", "{}"),
    ] {
        damages.push(data(words, move |items| find(items, path).bytes = gzip(text.as_bytes())));
    }
    for (words, from, to) in [
        ("does not name the commit abc", "commit abc", "commit"),
        ("changelog.gz is of `Thu, 01 Jan 1970", "Sun, 09 Sep 2001 01:46:40", "Thu, 01 Jan 1970 00:00:00"),
    ] {
        damages.push(data(words, move |items| {
            let changelog = find(items, "usr/share/doc/setpoint/changelog.gz");
            let mut text = String::new();
            GzDecoder::new(&changelog.bytes[..]).read_to_string(&mut text).unwrap();
            assert!(text.contains(from), "{text}");
            changelog.bytes = gzip(text.replace(from, to).as_bytes());
        }));
    }
    each_is_named(damages);
}

#[test]
fn a_damaged_control_part_is_named() {
    let mut damages = Vec::new();
    for path in ["md5sums", "postinst", "postrm"] {
        damages.push(control(&format!("the control part lacks {path}"), move |items| remove(items, path)));
    }
    for (words, from, to) in [
        ("the field Version is `9`", "Version: ", "Version: 9\nX-Was: "),
        ("the field Architecture is `all`", "Architecture: ", "Architecture: all\nX-Was: "),
        ("the field Maintainer is `nobody", "Maintainer: Setpoint maintainers", "Maintainer: nobody"),
        ("the field Installed-Size is `1`", "Installed-Size: ", "Installed-Size: 1\nX-Was: "),
        ("the field Installed-Size is ``", "Installed-Size: ", "X-Was: "),
        ("the field Depends is `libc6`", "Depends: ", "Depends: libc6\nX-Was: "),
        ("the field Depends is ``", "Depends: ", "X-Was: "),
        ("the field Section is `games`", "Section: admin", "Section: games"),
        ("the field Priority is `required`", "Priority: optional", "Priority: required"),
        ("the field Essential should not be there", "Priority: ", "Essential: yes\nPriority: "),
    ] {
        damages.push(control(words, move |items| {
            let control = find(items, "control");
            let text = String::from_utf8(control.bytes.clone()).unwrap();
            assert!(text.contains(from), "{text}");
            control.bytes = text.replace(from, to).into_bytes();
        }));
    }
    damages.extend([
        control("the package has no description", |items| {
            let control = find(items, "control");
            let text = String::from_utf8(control.bytes.clone()).unwrap();
            let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("Description")).collect();
            control.bytes = format!("{}\n", kept.join("\n")).into_bytes();
        }),
        control("postinst is not the script", |items| {
            find(items, "postinst").bytes = b"#!/bin/sh\n".to_vec();
        }),
        control("postrm is a file of mode 0644", |items| {
            header(items, "postrm", |header| header.set_mode(0o644));
        }),
        control("md5sums is wrong about usr/", |items| {
            let sums = find(items, "md5sums");
            let text = String::from_utf8(sums.bytes.clone()).unwrap();
            sums.bytes = text.split_once('\n').unwrap().1.into();
        }),
    ]);
    each_is_named(damages);
}

#[test]
fn a_damaged_image_is_named() {
    const PROGRAM: &str = "usr/bin/setpoint";
    let mut damages = Vec::new();
    for (words, pointer, value) in [
        ("os in the config", "/os", json!("windows")),
        ("architecture in the config", "/architecture", json!("s390x")),
        ("created in the config", "/created", json!("1970-01-01T00:00:00Z")),
        ("User in the config", "/config/User", json!("0:0")),
        ("User in the config", "/config/User", json!("65532")),
        ("Env in the config", "/config/Env", json!([])),
        ("Entrypoint in the config", "/config/Entrypoint", json!(["/bin/sh"])),
        ("Cmd in the config", "/config/Cmd", json!(null)),
        ("WorkingDir in the config", "/config/WorkingDir", json!("/tmp")),
        ("Labels in the config", "/config/Labels/org.opencontainers.image.version", json!("9")),
        ("Labels in the config", "/config/Labels/org.opencontainers.image.revision", json!("def")),
        ("layers have a history of 0", "/history", json!([])),
    ] {
        damages.push(oci(words, move |image| *image.config.pointer_mut(pointer).unwrap() = value.clone()));
    }
    for (words, pointer, value) in [
        ("mediaType of the manifest", "/mediaType", json!("text/plain")),
        ("schemaVersion of the manifest", "/schemaVersion", json!(1)),
        ("annotations of the manifest", "/annotations", json!({})),
    ] {
        damages.push(oci(words, move |image| *image.manifest.pointer_mut(pointer).unwrap() = value.clone()));
    }
    for (words, pointer, value) in [
        ("platform that the index names", "/manifests/0/platform/os", json!("windows")),
        ("annotations in the index", "/manifests/0/annotations", json!({})),
        ("mediaType of the index", "/mediaType", json!("text/plain")),
    ] {
        damages.push(oci(words, move |image| *image.index.pointer_mut(pointer).unwrap() = value.clone()));
    }
    for (words, layer, path, mode) in [
        ("tmp is a directory of mode 0755", 0, "tmp", 0o755),
        ("etc/passwd is a file of mode 0600", 0, "etc/passwd", 0o600),
        ("usr/bin/setpoint is a file of mode 4755", 1, PROGRAM, 0o4755),
        ("usr/bin/setpoint is a file of mode 0644", 1, PROGRAM, 0o644),
    ] {
        damages.push(oci(words, move |image| {
            header(&mut image.layers[layer], path, |header| header.set_mode(mode));
        }));
    }
    damages.extend([
        oci("usr/bin/setpoint does not belong to root", |image| {
            header(&mut image.layers[1], PROGRAM, |header| header.set_gid(7));
        }),
        oci("the image lacks tmp", |image| remove(&mut image.layers[0], "tmp")),
        oci("the image lacks etc/group", |image| remove(&mut image.layers[0], "etc/group")),
        oci("etc/passwd in the image does not know", |image| {
            find(&mut image.layers[0], "etc/passwd").bytes = b"root:x:0:0:\n".to_vec();
        }),
        oci("libc.so.6, which the program needs", |image| {
            image.layers[0].retain(|item| !item.path.ends_with("libc.so.6"));
        }),
        oci("the image holds bin/sh", |image| add(&mut image.layers[0], "bin/sh", "etc/passwd")),
        oci("usr/bin/setpoint in the image is not the binary", |image| {
            find(&mut image.layers[1], PROGRAM).bytes.push(0);
        }),
        row(Trial::Image, "which nothing names", |artefacts| {
            fs::write(artefacts.image.join("blobs/sha256/00"), "").unwrap();
        }),
        row(Trial::Archive, "the archive does not hold oci-layout", |artefacts| {
            fs::write(artefacts.image.join("oci-layout"), "{\"imageLayoutVersion\": \"1.0.0\"}").unwrap();
        }),
        row(Trial::Archive, "can't read", |artefacts| {
            let bytes = fs::read(&artefacts.archive).unwrap();
            fs::write(&artefacts.archive, &bytes[..bytes.len() / 2]).unwrap();
        }),
    ]);
    each_is_named(damages);
}

#[test]
fn a_damaged_bill_is_named() {
    /// A crate of another in the bill that has all that can be said of one.
    fn serde(bill: &mut Value) -> &mut Value {
        let mut components = bill["components"].as_array_mut().unwrap().iter_mut();
        components.find(|component| component["name"] == "serde").unwrap()
    }
    let mut damages = Vec::new();
    for (words, member, value) in [
        ("licenses of serde@", "licenses", json!([{"expression": ""}])),
        ("licenses of serde@", "licenses", json!([])),
        ("licenses of serde@", "licenses", json!([{"expression": "WTFPL"}])),
        ("hashes of serde@", "hashes", json!(null)),
        ("hashes of serde@", "hashes", json!([{"alg": "SHA-256", "content": "00"}])),
        ("externalReferences of serde@", "externalReferences", json!(null)),
        ("properties of serde@", "properties", json!([{"name": "cargo:features", "value": ""}])),
        ("scope of serde@", "scope", json!("excluded")),
        ("the bill calls serde@", "version", json!("0.0.1")),
        ("the bill lacks serde@", "purl", json!("pkg:generic/serde@1")),
        ("the bill lists serde@0.0.1, which cargo does not", "purl", json!("pkg:cargo/serde@0.0.1")),
    ] {
        damages.push(listed(words, move |bill| serde(bill)[member] = value.clone()));
    }
    for (words, pointer, value) in [
        ("timestamp in the bill", "/metadata/timestamp", json!("1970-01-01T00:00:00Z")),
        ("version of the program in the bill", "/metadata/component/version", json!("9")),
        ("licence of the program in the bill", "/metadata/component/licenses", json!([])),
        ("specVersion in the bill", "/specVersion", json!("1.4")),
        ("is no serial number", "/serialNumber", json!("")),
        ("nothing in the bill needs", "/dependencies", json!([])),
        ("the bill lacks", "/components", json!([])),
    ] {
        damages.push(listed(words, move |bill| *bill.pointer_mut(pointer).unwrap() = value.clone()));
    }
    damages.extend([
        listed("the bill lacks rust-std", |bill| {
            bill["components"].as_array_mut().unwrap().retain(|component| component["name"] != "rust-std");
        }),
        listed("twice", |bill| {
            let again = serde(bill).clone();
            bill["components"].as_array_mut().unwrap().push(again);
        }),
    ]);
    each_is_named(damages);
}

#[test]
fn the_c_library_in_a_static_program_is_missed_where_it_is_not_named() {
    // Every Debian has it, and it is static there.
    let program = Path::new("/sbin/ldconfig");
    assert!(Elf::read(program).is_ok_and(|elf| elf.is_static()), "{}", program.display());
    let packed = Packed::of(program, &["glibc"]);
    each_is_named_of(
        &packed,
        vec![
            listed("the bill lacks glibc", |bill| {
                bill["components"].as_array_mut().unwrap().retain(|component| component["name"] != "glibc");
            }),
            data("copyright does not name the licence of the C library", |items| {
                let copyright = find(items, "usr/share/doc/setpoint/copyright");
                let text = String::from_utf8(copyright.bytes.clone()).unwrap();
                copyright.bytes = text.replace("LGPL-2.1", "LGPL").into_bytes();
            }),
            control("the field Depends should not be there", |items| {
                let control = find(items, "control");
                control.bytes.splice(0..0, *b"Depends: libc6\n");
            }),
            oci("the image holds lib", |image| {
                add(&mut image.layers[0], "lib/libc.so.6", "etc/passwd");
            }),
        ],
    );
}

#[test]
fn a_program_of_another_version_is_named() {
    let packed = Packed::new();
    let number = env!("CARGO_PKG_VERSION");
    let printed = |text: &str| expected::check_version(text, &packed.sources());
    assert_eq!(printed(&format!("setpoint {number}\nwith: host\n")).unwrap(), format!("setpoint {number}"));
    for other in ["setpoint 0.0.1\n", "true (GNU coreutils) 9.1\n", ""] {
        assert!(printed(other).unwrap_err().to_string().contains("and should print"), "{other}");
    }
}
