//! Tries what was packed: compares it with what it was made from, installs the package, unpacks the image, runs both.
//!
//! ```text
//! binary, workspace, `cargo tree` ──▶ what is expected ──compare──▶ contents, control, layout, bill
//!
//! package ──dpkg──▶ a root of its own ──┐
//!                                       ├─▶ program: --version, apply, repair, destroy, names
//! image ──layers──▶ another root ───────┘
//! ```
//!
//! What is expected is written here anew, and not taken from what packs: paths, modes, fields, settings. Both have to be
//! changed together, and a mistake in one shows.
//!
//! Nothing outside of a temporary folder is touched. Roots are entered with `chroot`; who is not root does so in a user
//! namespace.

mod bill;
mod contents;
mod control;
#[cfg(test)]
mod damage;
mod entries;
mod expected;
mod image;
mod layout;
mod package;
mod program;
#[cfg(test)]
mod tests;
mod units;

use std::path::Path;

use crate::checksums;
use crate::error::DistError;
use crate::pack::Artefacts;
use crate::release::Release;
use expected::Expected;

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
    let expected = Expected::of(&artefacts.binary, sources);
    // What can't be run has nothing that the others could be compared with.
    let against = || expected.as_ref().map_err(|_| wrong("there is no binary to compare it with"));
    let package = against().and_then(|expected| {
        contents::check(&artefacts.package, &artefacts.bill, expected)?;
        package::check(&artefacts.package, sources)
    });
    let image = against().and_then(|expected| {
        layout::check(&artefacts.image, expected)?;
        image::check(&artefacts.image, sources)
    });
    let archive = image::check_archive(&artefacts.image, &artefacts.archive);
    let bill =
        against().and_then(|expected| bill::check(&artefacts.bill, &bill::Crates::read(sources)?, expected));
    let binary = expected.map(|expected| expected.describe());
    vec![
        Trial { what: "checksums", result: checked },
        Trial { what: "binary", result: binary },
        Trial { what: "package", result: package },
        Trial { what: "image", result: image },
        Trial { what: "archive", result: archive },
        Trial { what: "bill", result: bill },
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
