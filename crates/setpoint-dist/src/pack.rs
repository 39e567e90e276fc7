//! All artefacts of one binary.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::checksums;
use crate::deb;
use crate::documents::Documents;
use crate::elf::{Elf, Machine};
use crate::error::DistError;
use crate::image;
use crate::release::Release;
use crate::sbom::Bill;

/// How hard to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// In little time, for tests.
    Fast,
    /// In little space, for people.
    Small,
}

impl Compression {
    pub(crate) fn level(self) -> u32 {
        match self {
            Self::Fast => 1,
            Self::Small => 9,
        }
    }
}

/// What is packed, and how.
#[derive(Debug, Clone, Copy)]
pub struct Packing<'a> {
    /// The program.
    pub binary: &'a Path,
    /// The target that it was built for, such as `x86_64-unknown-linux-gnu`.
    pub target: &'a str,
    /// Which release it is.
    pub release: &'a Release,
    /// What comes with it.
    pub documents: &'a Documents,
    /// What it is made of.
    pub bill: &'a Bill,
    /// The workspace, in which units and changelog are.
    pub root: &'a Path,
    /// How hard to compress.
    pub compression: Compression,
}

/// What was packed of one binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artefacts {
    /// The program.
    pub binary: PathBuf,
    /// The Debian package.
    pub package: PathBuf,
    /// The folder of the image.
    pub image: PathBuf,
    /// The image as one archive.
    pub archive: PathBuf,
    /// The bill of materials.
    pub bill: PathBuf,
}

impl Packing<'_> {
    /// Packs the binary into a folder, which is there.
    pub fn pack(&self, folder: &Path) -> Result<Artefacts, DistError> {
        self.release.check_time()?;
        let elf = Elf::read(self.binary)?;
        let artefacts = Artefacts::named(folder, self.release, self.target, elf.machine);
        fs::copy(self.binary, &artefacts.binary).map_err(DistError::file("write", &artefacts.binary))?;
        deb::write(self, &elf, &artefacts.package)?;
        image::write(self, &elf, &artefacts.image, &artefacts.archive)?;
        let failed = DistError::file("write", &artefacts.bill);
        fs::write(&artefacts.bill, self.bill.to_json()).map_err(failed)?;
        artefacts.set_modes()?;
        Ok(artefacts)
    }
}

impl Artefacts {
    /// What the artefacts of a release are called in a folder.
    pub fn named(folder: &Path, release: &Release, target: &str, machine: Machine) -> Self {
        let version = &release.version;
        let name = format!("setpoint-{version}-{target}");
        Self {
            binary: folder.join(&name),
            package: folder.join(format!("setpoint_{}_{}.deb", version.debian(), machine.as_str())),
            image: folder.join(format!("{name}.oci")),
            archive: folder.join(format!("{name}.oci.tar")),
            bill: folder.join(format!("{name}.cdx.json")),
        }
    }

    /// The same artefacts after their folder was renamed.
    #[must_use]
    pub fn moved_to(&self, folder: &Path) -> Self {
        let moved = |path: &Path| folder.join(path.file_name().unwrap_or_default());
        Self {
            binary: moved(&self.binary),
            package: moved(&self.package),
            image: moved(&self.image),
            archive: moved(&self.archive),
            bill: moved(&self.bill),
        }
    }

    /// Lets everyone read all of it and run the program, whatever the mask of this process and the mode of the binary.
    fn set_modes(&self) -> Result<(), DistError> {
        let set = |path: &Path, mode: u32| {
            let result = fs::set_permissions(path, fs::Permissions::from_mode(mode));
            result.map_err(DistError::file("set the mode of", path))
        };
        set(&self.binary, 0o755)?;
        for file in [&self.package, &self.archive, &self.bill] {
            set(file, 0o644)?;
        }
        for folder in ["", "blobs", "blobs/sha256"] {
            set(&self.image.join(folder), 0o755)?;
        }
        for file in checksums::files(&self.image)? {
            set(&self.image.join(file), 0o644)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Version;
    use std::collections::BTreeMap;
    use std::process::Command;

    /// Packs a small program of the system as if it were ours, and returns the checksums.
    fn pack(folder: &Path, version: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let release = Release {
            version: Version::released(version),
            commit: Some("abc".to_owned()),
            epoch: 1_000_000_000,
        };
        let documents = Documents {
            pages: BTreeMap::from([("setpoint.1".to_owned(), b".TH setpoint 1\n".to_vec())]),
            bash: "bash".to_owned(),
            zsh: "zsh".to_owned(),
            fish: "fish".to_owned(),
        };
        let packing = Packing {
            binary: Path::new("/bin/true"),
            target: "any-unknown-linux-gnu",
            release: &release,
            documents: &documents,
            bill: &Bill::sample(&release),
            root: &root,
            compression: Compression::Small,
        };
        packing.pack(folder).unwrap();
        fs::read_to_string(checksums::write(folder).unwrap()).unwrap()
    }

    #[test]
    fn the_same_binary_gives_the_same_bytes_wherever_and_whenever_it_is_packed() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = pack(one.path(), "1.2.3");
        // Archives would show when a file was written: by the second.
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        assert_eq!(pack(other.path(), "1.2.3"), first);
        assert_eq!(first.lines().count(), 10, "{first}");
        let third = tempfile::tempdir().unwrap();
        assert_ne!(pack(third.path(), "1.2.4"), first);
    }

    #[test]
    fn everyone_may_read_what_is_packed_whatever_the_mask_of_the_process() {
        let folder = tempfile::tempdir().unwrap();
        if std::env::var_os("STRICT_MASK").is_none() {
            // In a process of its own, as the mask belongs to all tests of one.
            let mut command = Command::new("sh");
            command.args(["-c", "umask 077; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
            let name = "everyone_may_read_what_is_packed_whatever_the_mask_of_the_process";
            command.args(["--exact", &format!("pack::tests::{name}")]).env("STRICT_MASK", "1");
            let printed = crate::program::run(&mut command).unwrap();
            assert!(printed.contains("1 passed"), "{printed}");
            return;
        }
        pack(folder.path(), "1.2.3");
        for path in checksums::files(folder.path()).unwrap() {
            let mode = folder.path().join(&path).metadata().unwrap().permissions().mode() & 0o7777;
            let expected = if path.ends_with("-gnu") { 0o755 } else { 0o644 };
            assert_eq!(mode, expected, "{path} has {mode:o}");
        }
    }

    #[test]
    fn dpkg_reads_the_package() {
        let folder = tempfile::tempdir().unwrap();
        pack(folder.path(), "1.2.3");
        let package = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let package =
            package.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb")).unwrap();
        let field = |name: &str| {
            crate::program::run(Command::new("dpkg-deb").arg("--field").arg(&package).arg(name)).unwrap()
        };
        assert_eq!(field("Package"), "setpoint\n");
        assert_eq!(field("Version"), "1.2.3\n");
        assert!(field("Depends").starts_with("libc6 (>= 2."), "{}", field("Depends"));
        let listed = crate::program::run(Command::new("dpkg-deb").arg("--contents").arg(&package)).unwrap();
        for path in [
            "./etc/setpoint/",
            "./usr/bin/setpoint",
            "./usr/lib/systemd/system/setpoint-watch@.service",
            "./usr/share/doc/setpoint/copyright",
            "./usr/share/man/man1/setpoint.1.gz",
        ] {
            let line = listed.lines().find(|line| line.ends_with(&format!(" {path}"))).unwrap_or_default();
            assert!(line.contains(" root/root ") && line.contains(" 2001-09-09 "), "{path}: {listed}");
        }
    }
}
