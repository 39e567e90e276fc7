//! What comes with the binary, and is written by it: manual pages and completions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::DistError;
use crate::program;

/// Manual pages and completions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// The manual pages by the names of their files, such as `setpoint-plan.1`.
    pub pages: BTreeMap<String, Vec<u8>>,
    /// The completions for bash.
    pub bash: String,
    /// The completions for zsh.
    pub zsh: String,
    /// The completions for fish.
    pub fish: String,
}

impl Documents {
    /// Lets a binary that runs on this machine write its documents.
    pub fn of(binary: &Path) -> Result<Self, DistError> {
        let folder = tempfile::tempdir().map_err(DistError::file("make", Path::new("a temporary folder")))?;
        program::run(Command::new(binary).arg("man").arg(folder.path()))?;
        let failed = || DistError::file("read", folder.path());
        let mut pages = BTreeMap::new();
        for entry in fs::read_dir(folder.path()).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            pages.insert(name, fs::read(&path).map_err(DistError::file("read", &path))?);
        }
        let completions = |shell: &str| program::run(Command::new(binary).args(["completions", shell]));
        Ok(Self { pages, bash: completions("bash")?, zsh: completions("zsh")?, fish: completions("fish")? })
    }
}
