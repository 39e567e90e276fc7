//! The log of a run: every operation that was started, and how it ended.

use std::fmt;

use jiff::Timestamp;
use setpoint_graph::ItemHandle;

use crate::op::{OpError, Operation};

/// One operation of a run.
///
/// An operation that goes on in the background has two entries: one in the run that started it, and one in
/// the run that collected its end.
#[derive(Clone, Debug)]
pub struct LogEntry {
    pub(crate) item: ItemHandle,
    pub(crate) operation: Operation,
    pub(crate) start: Timestamp,
    pub(crate) end: Option<Timestamp>,
    /// Boxed because almost no entry has any of it.
    pub(crate) trouble: Option<Box<LogTrouble>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LogTrouble {
    pub(crate) cancelled: Option<Timestamp>,
    pub(crate) error: Option<OpError>,
    pub(crate) previous_error: Option<OpError>,
}

impl LogEntry {
    /// The item: for a modification, its new value.
    pub fn item(&self) -> &ItemHandle {
        &self.item
    }

    /// What was done.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// When it started.
    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// When it ended; none if it goes on in the background.
    pub fn end(&self) -> Option<Timestamp> {
        self.end
    }

    /// Whether it goes on in the background.
    pub fn in_progress(&self) -> bool {
        self.end.is_none()
    }

    /// When it was asked to stop.
    pub fn cancelled(&self) -> Option<Timestamp> {
        self.trouble.as_ref()?.cancelled
    }

    /// Why it failed.
    pub fn error(&self) -> Option<&OpError> {
        self.trouble.as_ref()?.error.as_ref()
    }

    /// Why the attempt before it failed.
    pub fn previous_error(&self) -> Option<&OpError> {
        self.trouble.as_ref()?.previous_error.as_ref()
    }

    pub(crate) fn trouble_mut(&mut self) -> &mut LogTrouble {
        self.trouble.get_or_insert_default()
    }
}

impl fmt::Display for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.item.reference())?;
        if self.in_progress() {
            f.write_str(", goes on in the background")?;
        }
        if let Some(error) = self.error() {
            write!(f, ", failed: {error}")?;
        }
        if let Some(error) = self.previous_error() {
            write!(f, " (before that: {error})")?;
        }
        if self.cancelled().is_some() {
            f.write_str(", cancelled")?;
        }
        Ok(())
    }
}
