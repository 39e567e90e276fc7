//! How long each test binary took the last time: the longest begin first, so that none is left running alone at the end.
//!
//! ```text
//! target folder ──▶ Durations ──order──▶ binaries, the longest first
//!       ▲                                        │
//!       └──────────── what they took ◀───────────┘
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

/// What is known of earlier runs, by the names of binaries, in seconds.
#[derive(Debug)]
pub(super) struct Durations {
    file: PathBuf,
    seconds: BTreeMap<String, f64>,
}

impl Durations {
    /// Reads what is known. What can't be read is not known: it decides about the order alone.
    pub(super) fn load(target_directory: &Path) -> Self {
        let file = target_directory.join("xtask-test-durations.json");
        let seconds = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Self { file, seconds: seconds.unwrap_or_default() }
    }

    /// Puts what took longest first; what never ran comes before it, in the order in which it is.
    pub(super) fn longest_first<B: ToString, M>(&self, mut binaries: Vec<(B, M)>) -> Vec<(B, M)> {
        binaries.sort_by_cached_key(|(binary, _)| {
            let seconds = self.seconds.get(&binary.to_string()).copied().unwrap_or(f64::MAX);
            Reverse(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
        });
        binaries
    }

    /// Notes how long a binary took.
    pub(super) fn note(&mut self, name: String, took: Duration) {
        self.seconds.insert(name, took.as_secs_f64());
    }

    /// Writes what is known, whole or not at all.
    pub(super) fn save(&self) -> Result<()> {
        let folder = self.file.parent().context("the target folder has no name")?;
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(&serde_json::to_vec_pretty(&self.seconds)?)?;
            file.persist(&self.file)?;
            std::io::Result::Ok(())
        };
        write().with_context(|| format!("can't write {}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_longest_comes_first_and_what_never_ran_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut known = Durations::load(folder.path());
        known.note("short".into(), Duration::from_secs(1));
        known.note("long".into(), Duration::from_secs(9));
        known.save().unwrap();
        let binaries = ["short", "new", "long", "newer"].map(|name| (name, ())).to_vec();
        let ordered = Durations::load(folder.path()).longest_first(binaries);
        assert_eq!(ordered, ["new", "newer", "long", "short"].map(|name| (name, ())));
    }

    #[test]
    fn what_is_damaged_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let known = Durations::load(folder.path());
        fs::write(&known.file, "{\"a\": ").unwrap();
        let binaries = vec![("b", ()), ("a", ())];
        assert_eq!(Durations::load(folder.path()).longest_first(binaries.clone()), binaries);
    }
}
