//! Tests that could not run: each leaves a line in a file that `cargo xtask test` reads at the end.

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The environment variable that names the file of skips; set by `cargo xtask test`.
pub const SKIPS_VARIABLE: &str = "SETPOINT_SKIPS";

/// One test that could not run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Skip {
    /// The test's path, crate included.
    pub test: String,
    /// Why it could not run.
    pub reason: String,
    /// What is not there: a part, or what `tests.toml` says that a machine may lack.
    #[serde(default)]
    pub lacks: String,
}

impl Skip {
    /// Appends the skip to a file, in one write, so that lines of tests that run at once never mix.
    pub fn append_to(&self, path: &Path) -> io::Result<()> {
        let mut line = serde_json::to_string(self)?;
        line.push('\n');
        std::fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
    }

    /// Reads all skips of a file, in order and each test once; none if there is no such file.
    pub fn read_all(path: &Path) -> io::Result<Vec<Self>> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut skips = text.lines().map(serde_json::from_str).collect::<Result<Vec<Self>, _>>()?;
        skips.sort();
        skips.dedup_by(|a, b| a.test == b.test);
        Ok(skips)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_are_read_back_sorted_and_each_test_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skips");
        assert_eq!(Skip::read_all(&file).unwrap(), []);

        let skip =
            |test: &str| Skip { test: test.into(), reason: "no Go\nat all".into(), lacks: "etcd".into() };
        for test in ["b", "a", "b"] {
            skip(test).append_to(&file).unwrap();
        }
        assert_eq!(Skip::read_all(&file).unwrap(), [skip("a"), skip("b")]);
    }
}
