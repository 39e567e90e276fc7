//! Records of the engine's journal as lines of text.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use setpoint_engine::{ItemMetadata, OpError, Operation, Record};
use setpoint_graph::{ItemHandle, ItemRef, ItemTypes, Kind, Name, SubgraphPath, TypesError};

use crate::RunDetails;

/// One line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// The first one.
    Begin(RunBegin),
    Started {
        number: u64,
        operation: Operation,
        kind: Kind,
        item: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<Value>,
        #[serde(default, skip_serializing_if = "SubgraphPath::is_root")]
        path: SubgraphPath,
        at: Timestamp,
    },
    Ended {
        kind: Kind,
        name: Name,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<OpError>,
        at: Timestamp,
    },
    InBackground {
        kind: Kind,
        name: Name,
        at: Timestamp,
    },
    Withdrawn {
        kind: Kind,
        name: Name,
        at: Timestamp,
    },
    Gone {
        kind: Kind,
        name: Name,
        at: Timestamp,
    },
    Moved {
        kind: Kind,
        name: Name,
        path: SubgraphPath,
        at: Timestamp,
    },
    Noted {
        kind: Kind,
        name: Name,
        #[serde(alias = "remembered")]
        metadata: ItemMetadata,
        at: Timestamp,
    },
}

/// Which checkpoint a run goes on from, and what it is about.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunBegin {
    pub(crate) serial: u64,
    pub(crate) command: String,
    pub(crate) at: Timestamp,
    /// Where the items are: nothing else says so until the first run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) location: Option<String>,
    /// The files that declare the items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) manifests: Option<BTreeSet<String>>,
    /// The items of which it changes whether they may be deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) protection: Vec<(ItemRef, bool)>,
    /// Why it is about to do what, for the history.
    #[serde(default, skip_serializing_if = "RunDetails::is_empty")]
    pub(crate) details: RunDetails,
}

/// What a line says.
#[derive(Debug)]
pub(crate) enum JournalEntry {
    Begin(RunBegin),
    Record(Box<Record>),
}

impl Line {
    pub(crate) fn of(record: &Record, types: &ItemTypes) -> Result<Self, TypesError> {
        let named = |item: &ItemRef| (item.kind().clone(), item.name().clone());
        Ok(match record {
            Record::Started { number, operation, item, target, path, at } => Self::Started {
                number: *number,
                operation: *operation,
                kind: item.kind().clone(),
                item: types.item_to_value(item)?,
                target: target.as_ref().map(|target| types.item_to_value(target)).transpose()?,
                path: path.clone(),
                at: *at,
            },
            Record::Ended { item, outcome, at } => {
                let (kind, name) = named(item);
                Self::Ended { kind, name, error: outcome.clone().err(), at: *at }
            }
            Record::InBackground { item, at } => {
                let (kind, name) = named(item);
                Self::InBackground { kind, name, at: *at }
            }
            Record::Withdrawn { item, at } => {
                let (kind, name) = named(item);
                Self::Withdrawn { kind, name, at: *at }
            }
            Record::Noted { item, metadata, at } => {
                let (kind, name) = named(item);
                Self::Noted { kind, name, metadata: metadata.clone(), at: *at }
            }
            Record::Gone { item, at } => {
                let (kind, name) = named(item);
                Self::Gone { kind, name, at: *at }
            }
            Record::Moved { item, path, at } => {
                let (kind, name) = named(item);
                Self::Moved { kind, name, path: path.clone(), at: *at }
            }
        })
    }

    pub(crate) fn read(self, types: &ItemTypes) -> Result<JournalEntry, TypesError> {
        let item = |kind: Kind, name: Name| ItemRef::new(kind, name);
        let record = match self {
            Self::Begin(begin) => return Ok(JournalEntry::Begin(begin)),
            Self::Started { number, operation, kind, item, target, path, at } => {
                let read =
                    |value: Value| -> Result<ItemHandle, TypesError> { types.item_from_value(&kind, value) };
                Record::Started {
                    number,
                    operation,
                    item: read(item)?,
                    target: target.map(read).transpose()?,
                    path,
                    at,
                }
            }
            Self::Ended { kind, name, error, at } => {
                Record::Ended { item: item(kind, name), outcome: error.map_or(Ok(()), Err), at }
            }
            Self::InBackground { kind, name, at } => Record::InBackground { item: item(kind, name), at },
            Self::Withdrawn { kind, name, at } => Record::Withdrawn { item: item(kind, name), at },
            Self::Noted { kind, name, metadata, at } => {
                Record::Noted { item: item(kind, name), metadata, at }
            }
            Self::Gone { kind, name, at } => Record::Gone { item: item(kind, name), at },
            Self::Moved { kind, name, path, at } => Record::Moved { item: item(kind, name), path, at },
        };
        Ok(JournalEntry::Record(Box::new(record)))
    }
}
