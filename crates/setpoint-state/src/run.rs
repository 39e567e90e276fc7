//! The history: what each run did.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use setpoint_engine::{LogEntry, Operation};
use setpoint_graph::ItemRef;

/// One run, as the history keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its number, from 1.
    pub number: u64,
    /// The command that made it, for instance `apply`.
    pub command: String,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// How it ended.
    pub outcome: RunOutcome,
    /// What it found that something else had changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<RunDrift>,
    /// What it did, in order.
    pub entries: Vec<RunEntry>,
}

impl Run {
    /// How long it took.
    pub fn took(&self) -> Duration {
        Duration::try_from(self.ended.duration_since(self.started)).unwrap_or_default()
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunOutcome {
    /// All was done.
    Done,
    /// Something failed.
    Failed,
    /// It was asked to stop.
    Cancelled,
    /// Its process ended before it did; what it had begun was found in the journal.
    Lost,
}

impl std::fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        })
    }
}

/// An item that a run found changed by something else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDrift {
    /// Of which kind the item is.
    pub kind: String,
    /// What it is called.
    pub name: String,
    /// Whether it was gone.
    pub gone: bool,
    /// What was different about it, in lines for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

/// One operation of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// What was done.
    pub operation: Operation,
    /// To which item: its kind and its name.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether the item was there before: it is then adopted and not created, or released and not deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopted: bool,
    /// When it began.
    pub started: Timestamp,
    /// When it ended; none if nobody knows, or if it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it changed, in lines for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

/// What is known of a run before it does anything, for the history.
///
/// It is journalled when the run begins, so that the history has it also of a run that its process did not live to finish.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDetails {
    /// What it is about to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationDetails>,
    /// What it found that something else had changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<RunDrift>,
}

/// Why an operation is about to be done, and what it changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationDetails {
    /// What is done.
    pub operation: Operation,
    /// To which item.
    pub item: ItemRef,
    /// Why.
    pub reason: String,
    /// What it changes, in lines for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
}

impl RunDetails {
    /// Returns whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.drift.is_empty()
    }

    /// Adds to each operation that was done why, and what it changed, where that is known.
    pub fn complete(&self, entries: &mut [RunEntry]) {
        let key = |details: &OperationDetails| {
            (details.item.kind().to_string(), details.item.name().to_string(), details.operation)
        };
        let known: BTreeMap<(String, String, Operation), &OperationDetails> =
            self.operations.iter().map(|details| (key(details), details)).collect();
        for entry in entries {
            let done = (entry.kind.clone(), entry.name.clone(), entry.operation);
            if let Some(details) = known.get(&done) {
                entry.reason = Some(details.reason.clone());
                entry.changes.clone_from(&details.changes);
            }
        }
    }
}

impl From<&LogEntry> for RunEntry {
    fn from(entry: &LogEntry) -> Self {
        let item = entry.item().reference();
        Self {
            operation: entry.operation(),
            kind: item.kind().to_string(),
            name: item.name().to_string(),
            adopted: entry.is_adoption() || entry.is_release(),
            started: entry.start(),
            ended: entry.end(),
            error: entry.error().map(ToString::to_string),
            reason: None,
            changes: Vec::new(),
        }
    }
}
