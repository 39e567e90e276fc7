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
    /// Lets a binary that runs on this machine write its documents. Fails if it is not Setpoint.
    pub fn of(binary: &Path) -> Result<Self, DistError> {
        let wrong = |why: String| DistError::Binary { path: binary.to_path_buf(), why };
        let version = program::run(Command::new(binary).arg("--version"))?;
        if !version.starts_with("setpoint ") {
            let line = version.lines().next().unwrap_or_default();
            return Err(wrong(format!("it is not Setpoint: `--version` printed `{line}`")));
        }
        let folder = tempfile::tempdir().map_err(DistError::file("make", Path::new("a temporary folder")))?;
        program::run(Command::new(binary).arg("man").arg(folder.path()))?;
        let failed = || DistError::file("read", folder.path());
        let mut pages = BTreeMap::new();
        for entry in fs::read_dir(folder.path()).map_err(failed())? {
            let path = entry.map_err(failed())?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            pages.insert(name, fs::read(&path).map_err(DistError::file("read", &path))?);
        }
        if !pages.contains_key("setpoint.1") {
            return Err(wrong("`man` wrote no manual page `setpoint.1`".to_owned()));
        }
        let completions = |shell: &str| program::run(Command::new(binary).args(["completions", shell]));
        Ok(Self { pages, bash: completions("bash")?, zsh: completions("zsh")?, fish: completions("fish")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_program_that_is_not_setpoint_or_writes_no_pages_is_refused() {
        let error = Documents::of(Path::new("/bin/true")).unwrap_err().to_string();
        assert!(
            error.starts_with("can't pack /bin/true: it is not Setpoint: `--version` printed `true "),
            "{error}"
        );

        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("setpoint");
        fs::write(&script, "#!/bin/sh\necho setpoint 0.1.0\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let error = Documents::of(&script).unwrap_err().to_string();
        assert!(error.ends_with("`man` wrote no manual page `setpoint.1`"), "{error}");
    }
}
