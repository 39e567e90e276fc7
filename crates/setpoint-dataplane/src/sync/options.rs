//! What a sync is told, and what it comes to.

use std::time::Duration;

use setpoint_haproxy::compare::DiffSummary;
use setpoint_haproxy::text::Document;
use sha2::{Digest, Sha256};

use crate::costs::Weights;
use crate::error::SyncError;
use crate::files::{AuxiliaryFiles, Files};
use crate::retry::Retry;
use crate::running::RunningDifference;

/// What is desired.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    /// The text of the configuration.
    pub text: Vec<u8>,
    /// The files that it names.
    pub files: AuxiliaryFiles,
}

impl Desired {
    /// A digest of all of it: another text, another file, or a kind of files that is managed and was not, make another one.
    ///
    /// ```
    /// use setpoint_dataplane::sync::Desired;
    ///
    /// let nothing = Desired::default();
    /// let mut none = Desired::default();
    /// none.files.maps = Some(Default::default());
    /// assert_ne!(nothing.digest(), none.digest());
    /// assert_eq!(nothing.digest().len(), 64);
    /// ```
    pub fn digest(&self) -> String {
        let AuxiliaryFiles { maps, general, certificates, ca_files, crt_lists } = &self.files;
        let mut hasher = Sha256::new();
        add(&mut hasher, &self.text);
        for kind in [maps, general, certificates, ca_files, crt_lists] {
            add_files(&mut hasher, kind.as_ref());
        }
        let digest: [u8; 32] = hasher.finalize().into();
        digest.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }
}

/// Adds bytes with their number, so that where one ends and the next begins counts.
fn add(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

fn add_files(hasher: &mut Sha256, files: Option<&Files>) {
    let Some(files) = files else { return hasher.update([0]) };
    hasher.update([1]);
    hasher.update((files.len() as u64).to_be_bytes());
    for (name, bytes) in files {
        add(hasher, name.as_bytes());
        add(hasher, bytes);
    }
}

/// How a sync goes about it.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own, and most are the document's"
)]
pub struct SyncOptions {
    /// How often is planned again where somebody else changed the configuration meanwhile.
    pub max_retries: u32,
    /// How long all of it may take.
    pub timeout: Duration,
    /// Whether operations go on where one has failed; all failures are reported then.
    pub continue_on_error: bool,
    /// Whether the whole text is pushed where operations have failed.
    pub fallback_to_raw: bool,
    /// Whether is waited for reloads, and seen to it that they succeeded.
    pub verify_reload: bool,
    /// How long a reload may take.
    pub reload_verification_timeout: Duration,
    /// How often is asked what became of a reload.
    pub reload_poll_interval: Duration,
    /// How many operations run at a time; no limit if it is 0.
    pub max_parallel: usize,
    /// The whole text is pushed where there are more operations than this; never for that reason if it is 0.
    pub raw_push_threshold: usize,
    /// The configuration as it was after the last sync, with its version: not read again while it has that version.
    pub cached: Option<(Document, u64)>,
    /// A checksum of all that is desired.
    pub content_checksum: Option<String>,
    /// That checksum at the last sync that succeeded. Files are not compared where both are the same and the configuration
    /// does not differ.
    pub last_deployed_checksum: Option<String>,
    /// How often a target that can't be reached is asked for its version.
    pub connection_retry: Retry,
    /// The version that the configuration must have: with another one, nothing is done.
    pub expected_version: Option<u64>,
    /// How the way is chosen by which a difference is carried over.
    pub choice: Choice,
    /// Whether what a running HAProxy can be told is carried over first, before a transaction that reloads.
    pub runtime_first: bool,
    /// Whether files that are not wanted any more stay, so that the former configuration can be restored.
    pub keep_files: bool,
    /// Whether servers that somebody drained, or gave another weight or address, while HAProxy runs are put right too.
    pub runtime_drift: bool,
}

/// How the way is chosen by which a difference is carried over.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Choice {
    /// By the version, the threshold and the kind of operations: the whole text at first, above
    /// [`SyncOptions::raw_push_threshold`], and where no call carries an operation; one by one where only servers change; a
    /// transaction otherwise.
    #[default]
    Document,
    /// By costs: those of the target, and what somebody says of them.
    Cheapest(Weights),
    /// Always the same, whatever it costs; a difference that it can't carry over is an error.
    Always(Strategy),
}

/// One way for all differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Operations in a transaction, a call each.
    Transaction,
    /// Operations that take effect one by one.
    OneByOne,
    /// The whole text.
    Text,
}

impl Strategy {
    /// How it is said in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Transaction => "in a transaction",
            Self::OneByOne => "one by one",
            Self::Text => "by a push of the whole text",
        }
    }
}

impl Default for SyncOptions {
    fn default() -> Self {
        Self {
            max_retries: 3,
            timeout: Duration::from_mins(2),
            continue_on_error: false,
            fallback_to_raw: true,
            verify_reload: true,
            reload_verification_timeout: Duration::from_secs(10),
            reload_poll_interval: Duration::from_millis(500),
            max_parallel: 0,
            raw_push_threshold: 0,
            cached: None,
            content_checksum: None,
            last_deployed_checksum: None,
            connection_retry: Retry::default(),
            expected_version: None,
            choice: Choice::Document,
            runtime_first: false,
            keep_files: false,
            runtime_drift: false,
        }
    }
}

/// By which way a configuration was brought to a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SyncMode {
    /// By operations in a transaction.
    #[default]
    FineGrained,
    /// By operations that took effect one by one, without a reload where the target could.
    Runtime,
    /// By the whole text, because the target had no configuration of ours yet.
    RawInitial,
    /// By the whole text, because there were many operations.
    RawThreshold,
    /// By the whole text, because no call carries some of it.
    RawText,
    /// By the whole text, because it was the cheapest way, or the one that was asked for.
    RawChosen,
    /// By the whole text, because operations failed.
    RawFallback,
}

impl SyncMode {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FineGrained => "fine-grained",
            Self::Runtime => "runtime",
            Self::RawInitial => "raw-initial",
            Self::RawThreshold => "raw-threshold",
            Self::RawText => "raw-text",
            Self::RawChosen => "raw-chosen",
            Self::RawFallback => "raw-fallback",
        }
    }

    /// Returns whether the whole text is pushed.
    pub const fn is_raw(self) -> bool {
        !matches!(self, Self::FineGrained | Self::Runtime)
    }
}

/// What a sync came to.
#[derive(Clone, Debug, Default)]
pub struct SyncResult {
    /// Whether the target is as desired.
    pub success: bool,
    /// By which way.
    pub mode: SyncMode,
    /// The operations that were carried out, in the words of a plan. The push of a text carries out all of them.
    pub applied_operations: Vec<String>,
    /// The files that were made, replaced or deleted, by kind and name.
    pub applied_files: Vec<String>,
    /// The files that nobody wants any more, and that stay: [`SyncOptions::keep_files`].
    pub kept_files: Vec<String>,
    /// The certificates that were replaced by a sync that failed, and whose former content nobody has: the failure is a partial one.
    pub not_restorable: Vec<String>,
    /// Whether HAProxy reloads for it.
    pub reload_triggered: bool,
    /// The name of the reload.
    pub reload_id: Option<String>,
    /// Whether that reload was seen to succeed.
    pub reload_verified: bool,
    /// Why it was not, if it was not.
    pub reload_verification_error: Option<String>,
    /// How often was planned again.
    pub retries: u32,
    /// The version of the configuration afterwards.
    pub post_sync_version: Option<u64>,
    /// What somebody had told HAProxy while it runs, and was put right.
    pub repaired: Vec<RunningDifference>,
    /// What differed.
    pub summary: DiffSummary,
    /// What went wrong without being in the way.
    pub warnings: Vec<String>,
}

/// A sync that failed, with what it had done until then.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct FailedSync {
    /// Why.
    #[source]
    pub error: SyncError,
    /// What was done.
    pub result: SyncResult,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_counts_in_a_digest_and_so_does_each_of_its_bytes() {
        let kinds: [fn(&mut AuxiliaryFiles) -> &mut Option<Files>; 5] = [
            |files| &mut files.maps,
            |files| &mut files.general,
            |files| &mut files.certificates,
            |files| &mut files.ca_files,
            |files| &mut files.crt_lists,
        ];
        let mut digests = vec![Desired::default().digest()];
        for kind in kinds {
            for bytes in [None, Some("one"), Some("two")] {
                let mut desired = Desired::default();
                let files = bytes.map(|bytes| ("a".to_owned(), bytes.as_bytes().to_vec()));
                *kind(&mut desired.files) = Some(files.into_iter().collect());
                digests.push(desired.digest());
            }
        }
        let count = digests.len();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }
}
