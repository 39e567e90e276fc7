//! What is known of the running HAProxy, kept between two runs of this program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Signature;
use crate::process::Start;

/// Which worker loaded which text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The version that the API says of the text with this hash.
    pub(crate) version: u64,
    /// The text of all files, hashed. It may be that of an earlier version: it is made beside commits, not in them.
    pub(crate) text: String,
    /// What tells the files from others: it is noted with each commit.
    #[serde(default)]
    pub(crate) files: Vec<Option<Signature>>,
    /// The worker's process id.
    pub(crate) worker: Option<u32>,
    /// When the worker started, in ticks since the system did.
    pub(crate) started: Option<u64>,
    /// About when it started, in seconds since 1970, if only HAProxy sees it.
    #[serde(default)]
    pub(crate) started_about: Option<u64>,
    /// The text that the worker runs, hashed.
    pub(crate) loaded: Option<String>,
}

impl Record {
    /// Reads the record of a folder; none if there is none, or if it can't be read: what it says can be found out anew.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(path(folder)).ok()?).ok()
    }

    /// Writes it. A crash may lose it, and never tears it.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let draft = folder.join("state.json.new");
        fs::write(&draft, serde_json::to_vec(self)?)?;
        fs::rename(draft, path(folder))
    }

    /// Notes the worker.
    pub(crate) fn set_worker(&mut self, pid: u32, start: Option<Start>) {
        self.worker = Some(pid);
        (self.started, self.started_about) = match start {
            Some(Start::At(ticks)) => (Some(ticks), None),
            Some(Start::About(seconds)) => (None, Some(seconds)),
            None => (None, None),
        };
    }

    /// Returns whether a worker is the one that is noted.
    pub(crate) fn is_of(&self, pid: u32, start: Option<Start>) -> bool {
        let is_then = match start {
            Some(Start::At(ticks)) => self.started == Some(ticks),
            Some(Start::About(seconds)) => {
                self.started_about.is_some_and(|noted| noted.abs_diff(seconds) <= ABOUT)
            }
            None => self.started.is_none() && self.started_about.is_none(),
        };
        self.worker == Some(pid) && is_then
    }
}

/// By how many seconds two answers differ at most that say about when a process started, on a busy machine.
const ABOUT: u64 = 3;

fn path(folder: &Path) -> PathBuf {
    folder.join("state.json")
}

/// A hash of a text.
pub(crate) fn hash(text: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string can't fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_torn_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = Record {
            version: 3,
            text: hash(b"a"),
            files: vec![None],
            worker: None,
            started: None,
            started_about: None,
            loaded: Some(hash(b"b")),
        };
        record.set_worker(5, Some(Start::At(700)));
        record.write(folder.path()).unwrap();
        assert_eq!(Record::read(folder.path()), Some(record.clone()));
        let is_of = |record: &Record, pid: u32, start: Start| record.is_of(pid, Some(start));
        assert!(is_of(&record, 5, Start::At(700)) && !is_of(&record, 6, Start::At(700)));
        // One that has the same id in another container, or later, is another.
        assert!(!is_of(&record, 5, Start::At(701)) && !is_of(&record, 5, Start::About(700)));
        assert!(!record.is_of(5, None));
        record.set_worker(5, Some(Start::About(700)));
        assert!(is_of(&record, 5, Start::About(701)) && !is_of(&record, 5, Start::About(710)));
        assert!(!is_of(&record, 5, Start::At(700)) && !record.is_of(5, None));
        fs::write(path(folder.path()), "{").unwrap();
        assert_eq!(Record::read(folder.path()), None);
    }
}
