//! All artefacts of one binary.

use std::fs;
use std::path::{Path, PathBuf};

use crate::deb;
use crate::documents::Documents;
use crate::elf::Elf;
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
        let elf = Elf::read(self.binary)?;
        let version = &self.release.version;
        let name = format!("setpoint-{version}-{}", self.target);
        let package = format!("setpoint_{}_{}.deb", version.debian(), elf.machine.as_str());
        let artefacts = Artefacts {
            binary: folder.join(&name),
            package: folder.join(package),
            image: folder.join(format!("{name}.oci")),
            archive: folder.join(format!("{name}.oci.tar")),
            bill: folder.join(format!("{name}.cdx.json")),
        };
        fs::copy(self.binary, &artefacts.binary).map_err(DistError::file("write", &artefacts.binary))?;
        deb::write(self, &elf, &artefacts.package)?;
        image::write(self, &elf, &artefacts.image, &artefacts.archive)?;
        let failed = DistError::file("write", &artefacts.bill);
        fs::write(&artefacts.bill, self.bill.to_json()).map_err(failed)?;
        Ok(artefacts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksums;
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
