//! What the artefacts are compared with: the binary of the release, and what it writes when it is run.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::{Sources, ensure};
use crate::checksums;
use crate::documents::Documents;
use crate::elf::{Elf, Machine};
use crate::error::DistError;
use crate::program;

/// The binary of a release, and what is known from it.
pub(super) struct Expected<'a> {
    pub(super) sources: &'a Sources<'a>,
    pub(super) sha256: String,
    pub(super) elf: Elf,
    pub(super) documents: Documents,
}

impl<'a> Expected<'a> {
    /// Looks at the binary, runs it, and lets it write its documents.
    pub(super) fn of(binary: &Path, sources: &'a Sources<'a>) -> Result<Self, DistError> {
        check_file(binary, sources.target)?;
        let printed = program::run(Command::new(binary).arg("--version"))?;
        check_version(&printed, sources)?;
        Self::with(binary, sources, Documents::of(binary)?)
    }

    /// The same with documents that are known.
    pub(super) fn with(
        binary: &Path,
        sources: &'a Sources<'a>,
        documents: Documents,
    ) -> Result<Self, DistError> {
        let (sha256, elf) = (checksums::of_file(binary)?, Elf::read(binary)?);
        Ok(Self { sources, sha256, elf, documents })
    }

    /// Says what the binary needs.
    pub(super) fn describe(&self) -> String {
        if self.elf.is_static() {
            "needs nothing but the kernel".to_owned()
        } else {
            format!("needs {}", self.elf.needed.join(", "))
        }
    }
}

/// Holds the binary to be a program for the target that everyone may run.
pub(super) fn check_file(binary: &Path, target: &str) -> Result<(), DistError> {
    let metadata = binary.symlink_metadata().map_err(DistError::file("read", binary))?;
    let mode = metadata.permissions().mode() & 0o7777;
    ensure(metadata.is_file() && mode == 0o755, || {
        format!("{} is no file of mode 0755, but of mode {mode:04o}", binary.display())
    })?;
    let found = Elf::read(binary)?.machine;
    ensure(Machine::of_target(target).is_none_or(|machine| machine == found), || {
        format!("{} is for {}, and not for {target}", binary.display(), found.as_str())
    })
}

/// Holds what `--version` printed to be the version of the release, and returns its first line.
pub(super) fn check_version(printed: &str, sources: &Sources<'_>) -> Result<String, DistError> {
    let line = printed.lines().next().unwrap_or_default();
    let expected = format!("setpoint {}", sources.release.version.number());
    ensure(line == expected, || format!("`--version` printed `{line}`, and should print `{expected}`"))?;
    Ok(line.to_owned())
}
