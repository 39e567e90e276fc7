//! Which parts this machine has: written by `cargo xtask parts`, read by tests.
//!
//! ```text
//! parts.toml ──cargo xtask parts──▶ cache folder + manifest (one JSON object a part) ──▶ tests
//! ```

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The environment variable that names the manifest file; set by `cargo xtask test`.
pub const MANIFEST_VARIABLE: &str = "SETPOINT_PARTS";

/// The name of the manifest inside a cache folder.
pub const MANIFEST_FILE: &str = "parts.json";

/// What is known of one part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartStatus {
    /// What tests ask for, such as `haproxy-3.2`.
    pub name: String,
    /// The resolved version, where it is known.
    pub version: Option<String>,
    /// Whether it can be used.
    pub state: PartState,
    /// The folder that holds it; its programs are in `bin` inside.
    pub path: Option<PathBuf>,
    /// Why it can't be used.
    pub why: Option<String>,
    /// Whether a test may go without it even where skips are failures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// Whether a part can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartState {
    /// It is in the cache and whole.
    Ready,
    /// This machine can have it, but it is not there: not made yet, or making it failed.
    Missing,
    /// This machine can't have it.
    Unavailable,
}

/// All parts of one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// One entry a part, in the order of `parts.toml`.
    pub parts: Vec<PartStatus>,
}

impl Manifest {
    /// Reads a manifest file: one JSON object a line.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let parts = text.lines().filter(|line| !line.trim().is_empty()).map(serde_json::from_str);
        Ok(Self { parts: parts.collect::<Result<_, _>>()? })
    }

    /// The manifest as text: one JSON object a line.
    pub fn to_json_lines(&self) -> io::Result<String> {
        let mut text = String::new();
        for part in &self.parts {
            text.push_str(&serde_json::to_string(part)?);
            text.push('\n');
        }
        Ok(text)
    }

    /// The part of that name.
    pub fn get(&self, name: &str) -> Option<&PartStatus> {
        self.parts.iter().find(|part| part.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_reads_back_as_written() {
        let manifest = Manifest {
            parts: vec![
                PartStatus {
                    name: "etcd".into(),
                    version: Some("3.6.1".into()),
                    state: PartState::Ready,
                    path: Some("/cache/etcd".into()),
                    why: None,
                    optional: false,
                },
                PartStatus {
                    name: "dataplaneapi".into(),
                    version: None,
                    state: PartState::Unavailable,
                    path: None,
                    why: Some("not found".into()),
                    optional: true,
                },
            ],
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(MANIFEST_FILE);
        std::fs::write(&file, manifest.to_json_lines().unwrap()).unwrap();
        let read = Manifest::read(&file).unwrap();
        assert_eq!(read, manifest);
        assert_eq!(read.get("dataplaneapi").unwrap().why.as_deref(), Some("not found"));
        assert_eq!(read.get("haproxy-3.2"), None);
    }
}
