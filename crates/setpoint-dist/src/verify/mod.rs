//! Tries what was packed: installs the package, unpacks the image, runs both.
//!
//! ```text
//! package ──dpkg──▶ a root of its own ──┐
//!                                       ├─▶ program: --version, apply, repair, destroy, names
//! image ──layers──▶ another root ───────┘
//! ```
//!
//! Nothing outside of a temporary folder is touched. Roots are entered with `chroot`; who is not root does so in a user
//! namespace.

mod bill;
mod image;
mod package;
mod program;
mod units;

use std::path::Path;

use crate::checksums;
use crate::elf::Elf;
use crate::error::DistError;
use crate::pack::Artefacts;
use crate::release::Release;

/// One thing that was tried.
#[derive(Debug)]
pub struct Trial {
    /// What was tried.
    pub what: &'static str,
    /// What was found, or what is wrong.
    pub result: Result<String, DistError>,
}

/// Where things come from that artefacts are compared with.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The program `cargo`.
    pub cargo: &'a Path,
    /// The workspace.
    pub root: &'a Path,
    /// The target of the binary.
    pub target: &'a str,
    /// Which release it is.
    pub release: &'a Release,
    /// Who looks at units beside us.
    pub checker: Checker,
}

/// Who looks at units beside us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checker {
    /// Nobody: the outcome is the same on every machine.
    Nobody,
    /// systemd's own checker, where this machine has it.
    Systemd,
}

/// Tries all that was packed of a binary into a folder; one that fails does not keep the others from being tried.
pub fn artefacts(folder: &Path, artefacts: &Artefacts, sources: &Sources<'_>) -> Vec<Trial> {
    let checked = checksums::check(folder).map(|count| format!("{count} files match {}", checksums::NAME));
    let linked = Elf::read(&artefacts.binary).map(|elf| {
        if elf.is_static() {
            "needs nothing but the kernel".to_owned()
        } else {
            format!("needs {}", elf.needed.join(", "))
        }
    });
    vec![
        Trial { what: "checksums", result: checked },
        Trial { what: "binary", result: linked },
        Trial { what: "package", result: package::check(&artefacts.package, sources) },
        Trial { what: "image", result: image::check(&artefacts.image) },
        Trial { what: "archive", result: image::check_archive(&artefacts.image, &artefacts.archive) },
        Trial { what: "bill", result: bill::check(&artefacts.bill, sources) },
    ]
}

/// An error of what is not as it should be.
fn wrong(why: impl Into<String>) -> DistError {
    DistError::Wrong(why.into())
}

/// Holds a condition to be true.
fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), DistError> {
    if holds { Ok(()) } else { Err(wrong(why())) }
}
