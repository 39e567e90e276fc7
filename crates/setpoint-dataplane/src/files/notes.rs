//! What is noted of files beside them, because nobody else tells: digests of certificates, which the API does not give back; which
//! general files are authorities or lists of certificates; and which files wait for a reload.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The file in general storage that holds the notes.
pub(crate) const NOTES: &str = "setpoint-digests.json";

/// The notes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notes {
    /// Sha-256 of each certificate that was written.
    #[serde(default)]
    pub(super) ssl_certificates: BTreeMap<String, String>,
    /// The general files that are authorities.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) ca_files: BTreeSet<String>,
    /// The general files that are lists of certificates.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) crt_lists: BTreeSet<String>,
    /// The files, by kind and name, that hold something else than what HAProxy has loaded.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) awaiting_reload: BTreeSet<String>,
}

impl Notes {
    /// Reads what was noted. What can't be read is nothing: certificates are written anew then.
    pub(super) fn read(bytes: Option<&[u8]>) -> Self {
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
    }

    /// The same, with more files that wait for a reload.
    pub(crate) fn awaiting(mut self, files: Vec<String>) -> Self {
        self.awaiting_reload.extend(files);
        self
    }

    /// What the file holds.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }
}

pub(super) fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
