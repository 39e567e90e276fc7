//! The journal of the run under way: a file that is only ever appended to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use jiff::Timestamp;
use setpoint_engine::{Journal, JournalError, Record};
use setpoint_graph::{ItemRef, ItemTypes};

use crate::entry::{JournalEntry, Line, RunBegin};
use crate::lock::Lock;
use crate::{RunDetails, StateError};

/// What was read from a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalContent {
    pub(crate) command: String,
    pub(crate) began: Option<Timestamp>,
    pub(crate) records: Vec<Record>,
    /// Whether items may be deleted: as the run has it, whenever it made them.
    pub(crate) protection: BTreeMap<ItemRef, bool>,
    /// Where the items are, as the run has it.
    pub(crate) location: Option<String>,
    /// The files that declare the items, as the run has it.
    pub(crate) manifests: Option<BTreeSet<String>>,
    /// Why the run was about to do what.
    pub(crate) details: RunDetails,
    /// How many bytes of it are whole lines.
    pub(crate) length: u64,
}

/// What came of reading a journal.
#[derive(Debug, Default)]
pub(crate) struct ReadJournal {
    /// What it has that goes on from a checkpoint; none if there is nothing.
    pub(crate) content: Option<JournalContent>,
    /// Where it is damaged, in words: what comes after that is not known.
    pub(crate) damaged: Option<String>,
}

/// The journal of a writer.
///
/// It is an engine's [`Journal`]: what [`Journal::record`] has returned from is in the file.
#[derive(Debug)]
pub struct JournalFile {
    path: PathBuf,
    types: Arc<ItemTypes>,
    lock: Arc<Lock>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Open once something was written.
    file: Option<File>,
    begin: Option<Line>,
}

impl JournalFile {
    pub(crate) fn new(path: PathBuf, types: Arc<ItemTypes>, lock: Arc<Lock>) -> Self {
        Self { path, types, lock, inner: Mutex::new(Inner { file: None, begin: None }) }
    }

    /// Says which checkpoint the next lines go on from; written with the first of them.
    pub(crate) fn begin(&self, begin: RunBegin) {
        self.inner().begin = Some(Line::Begin(begin));
    }

    /// Empties the journal: a checkpoint holds all of it.
    pub(crate) fn clear(&self) -> io::Result<()> {
        self.inner().file = None;
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Cuts off what was not written whole, so that more can be appended.
    pub(crate) fn cut(&self, length: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(&self.path)?.set_len(length)
    }

    fn append(&self, lines: &[Line]) -> io::Result<()> {
        let mut inner = self.inner();
        let mut text = Vec::new();
        if inner.file.is_none() {
            self.lock.check()?;
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
            inner.file = Some(file);
        }
        for line in inner.begin.iter().chain(lines) {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        if let Some(file) = &mut inner.file {
            let before = file.metadata()?.len();
            if let Err(error) = file.write_all(&text) {
                // Half a line would spoil what comes after it.
                let _ = file.set_len(before);
                return Err(error);
            }
        }
        inner.begin = None;
        Ok(())
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, records: &[Record]) -> Result<(), JournalError> {
        let failed = |error: &dyn std::fmt::Display| {
            JournalError(format!("can't write {}: {error}", self.path.display()))
        };
        let lines: Result<Vec<Line>, _> =
            records.iter().map(|record| Line::of(record, &self.types)).collect();
        let lines = lines.map_err(|error| failed(&error))?;
        self.append(&lines).map_err(|error| failed(&error))
    }
}

impl Journal for JournalFile {
    fn record<'a>(&'a self, records: &'a [Record]) -> BoxFuture<'a, Result<(), JournalError>> {
        // A short write into the page cache: not worth a thread of its own.
        let written = self.write(records);
        Box::pin(async move { written })
    }
}

/// Reads what a journal has that goes on from a checkpoint; nothing if there is none, or if it goes on from others only. What goes
/// on from an earlier one is part of it, and could not be removed.
///
/// A last line without its end was never written whole: what it says was not begun. A line that can't be understood, as after a
/// failure of power, ends what is known.
pub(crate) fn read(path: &Path, serial: u64, types: &ItemTypes) -> Result<ReadJournal, StateError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ReadJournal::default()),
        Err(error) => return Err(StateError::file("read", path)(error)),
    };
    let (mut content, mut damaged): (Option<JournalContent>, _) = (None, None);
    let (mut number, mut whole) = (0, 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        number += 1;
        let entry = match entry(line, types) {
            Ok(entry) => entry,
            Err(why) => {
                damaged = Some(format!("{} is damaged: line {number}: {why}", path.display()));
                break;
            }
        };
        whole += line.len();
        match (entry, &mut content) {
            (JournalEntry::Begin(begin), content) => {
                if begin.serial != serial {
                    *content = None;
                    continue;
                }
                let content = content.get_or_insert_default();
                (content.command, content.began) = (begin.command, Some(begin.at));
                content.location = begin.location.or(content.location.take());
                content.manifests = begin.manifests.or(content.manifests.take());
                content.protection.extend(begin.protection);
                content.details.operations.extend(begin.details.operations);
                content.details.drift.extend(begin.details.drift);
            }
            (JournalEntry::Record(_), None) => {}
            (JournalEntry::Record(record), Some(content)) => content.records.push(*record),
        }
    }
    if let Some(content) = &mut content {
        content.length = whole as u64;
    }
    Ok(ReadJournal { content, damaged })
}

/// What a line says; why it can't be understood, in words.
fn entry(line: &[u8], types: &ItemTypes) -> Result<JournalEntry, String> {
    let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    line.read(types).map_err(|error| error.to_string())
}
