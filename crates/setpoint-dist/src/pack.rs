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
