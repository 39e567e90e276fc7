//! The log of a run: every operation that was started, and how it ended.

use std::fmt;

use jiff::Timestamp;
use setpoint_graph::ItemHandle;

use crate::metadata::Ownership;
use crate::op::{OpError, Operation};

/// One operation of a run.
///
/// An operation that goes on in the background has two entries: one in the run that started it, and one in
/// the run that collected its end.
#[derive(Clone, Debug)]
pub struct LogEntry {
    pub(crate) item: ItemHandle,
    pub(crate) operation: Operation,
    pub(crate) ownership: Ownership,
    anew: bool,
    adopts: bool,
    start: Compact,
    end: Compact,
    /// Boxed because almost no entry has any of it.
    pub(crate) details: Option<Box<LogDetails>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LogDetails {
    pub(crate) cancelled: Option<Timestamp>,
    pub(crate) error: Option<OpError>,
    pub(crate) previous_error: Option<OpError>,
}

/// A time in half the space: a run may have a million entries. Nanoseconds since the epoch, as far as they
/// reach (some three centuries); none is the smallest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Compact(i64);

impl From<Option<Timestamp>> for Compact {
    fn from(at: Option<Timestamp>) -> Self {
        let nanoseconds = at.map(|at| i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX));
        Self(nanoseconds.unwrap_or(i64::MIN))
    }
}

impl Compact {
    fn get(self) -> Option<Timestamp> {
        (self.0 != i64::MIN).then(|| Timestamp::from_nanosecond(i128::from(self.0)).unwrap_or(Timestamp::MAX))
    }
}

impl LogEntry {
    pub(crate) fn new(
        item: ItemHandle,
        operation: Operation,
        ownership: Ownership,
        start: Timestamp,
        end: Option<Timestamp>,
    ) -> Self {
        let (start, end) = (Some(start).into(), end.into());
        Self { item, operation, ownership, anew: false, adopts: false, start, end, details: None }
    }

    /// Sets whether it is one half of making the item anew.
    pub(crate) fn anew(mut self, anew: bool) -> Self {
        self.anew = anew;
        self
    }

    /// Sets whether it takes over what is there.
    pub(crate) fn adopts(mut self, adopts: bool) -> Self {
        self.adopts = adopts;
        self
    }

    /// The item: for a modification, its new value.
    pub fn item(&self) -> &ItemHandle {
        &self.item
    }

    /// What was done.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Whose the item is: one that was there before is not deleted but let go.
    pub fn ownership(&self) -> Ownership {
        self.ownership
    }

    /// Returns whether it is one half of making the item anew: the deletion of what comes back, or the creation of what was
    /// there before.
    pub fn is_anew(&self) -> bool {
        self.anew
    }

    /// Returns whether it is a creation that found the item there, and took it over.
    pub fn is_adoption(&self) -> bool {
        self.adopts
    }

    /// Returns whether it is a deletion that lets go of an item that was there before.
    pub fn is_release(&self) -> bool {
        self.operation == Operation::Delete && self.ownership.is_adopted() && !self.anew
    }

    /// When it started.
    pub fn start(&self) -> Timestamp {
        self.start.get().unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// When it ended; none if it goes on in the background.
    pub fn end(&self) -> Option<Timestamp> {
        self.end.get()
    }

    /// Returns whether it goes on in the background.
    pub fn in_progress(&self) -> bool {
        self.end.get().is_none()
    }

    /// When it was asked to stop.
    pub fn cancelled(&self) -> Option<Timestamp> {
        self.details.as_ref()?.cancelled
    }

    /// Why it failed.
    pub fn error(&self) -> Option<&OpError> {
        self.details.as_ref()?.error.as_ref()
    }

    /// Why the attempt before it failed.
    pub fn previous_error(&self) -> Option<&OpError> {
        self.details.as_ref()?.previous_error.as_ref()
    }

    pub(crate) fn details_mut(&mut self) -> &mut LogDetails {
        self.details.get_or_insert_default()
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
