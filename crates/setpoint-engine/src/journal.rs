//! The journal of operations, for durability and history.
//!
//! The starts of a batch are recorded before any of it runs, its results with the next. So whatever a crash
//! leaves behind, the journal names every operation that may have touched the system.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use futures::future::BoxFuture;
use jiff::Timestamp;
use setpoint_graph::{ItemHandle, ItemRef, Name, SubgraphPath};

use crate::metadata::ItemMetadata;
use crate::op::{OpError, Operation};
use crate::retry::RetryPolicy;
use crate::state::CurrentGraph;
use crate::transition;

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// An operation is about to start.
    Started {
        /// Its number within the run.
        number: u64,
        /// What is done.
        operation: Operation,
        /// The item as it is now: for a creation, as it will be.
        item: ItemHandle,
        /// What the item becomes, where that is known.
        target: Option<ItemHandle>,
        /// Where the item lives.
        path: SubgraphPath,
        /// When.
        at: Timestamp,
    },
    /// An operation ended.
    Ended {
        /// The item.
        item: ItemRef,
        /// How.
        outcome: Result<(), OpError>,
        /// When.
        at: Timestamp,
    },
    /// An operation goes on in the background.
    InBackground {
        /// The item.
        item: ItemRef,
        /// When.
        at: Timestamp,
    },
    /// An operation was not started after all.
    Withdrawn {
        /// The item.
        item: ItemRef,
        /// When.
        at: Timestamp,
    },
    /// An item left the graph without an operation: it vanished with an external item it stood on, or only
    /// the failure to create it was remembered.
    Gone {
        /// The item.
        item: ItemRef,
        /// When.
        at: Timestamp,
    },
    /// Something is remembered of an item that is operated on.
    Noted {
        /// The item.
        item: ItemRef,
        /// All that is remembered of it.
        metadata: ItemMetadata,
        /// When.
        at: Timestamp,
    },
    /// An item lives in another subgraph from now on.
    Moved {
        /// The item.
        item: ItemRef,
        /// Where it lives.
        path: SubgraphPath,
        /// When.
        at: Timestamp,
    },
}

/// Where records go. What [`Journal::record`] has returned from must survive a crash.
pub trait Journal: Send + Sync + 'static {
    /// Writes some records, all or none.
    fn record<'a>(&'a self, records: &'a [Record]) -> BoxFuture<'a, Result<(), JournalError>>;
}

/// Why the journal could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JournalError(pub String);

/// A journal in memory: the history of runs as data.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    records: Mutex<Vec<Record>>,
}

impl MemoryJournal {
    /// Makes an empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything recorded so far.
    pub fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Journal for MemoryJournal {
    fn record<'a>(&'a self, records: &'a [Record]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(records);
        Box::pin(async { Ok(()) })
    }
}

/// Replays records onto a graph: the current graph as it was when the last of them was written.
///
/// An operation whose end is not among them is unknown in the result; the next run reads the item back or
/// cleans it up.
pub fn replay(graph: impl Into<Name>, base: Option<CurrentGraph>, records: &[Record]) -> CurrentGraph {
    let mut current = base.unwrap_or_else(|| CurrentGraph::new(graph));
    for record in records {
        match record {
            Record::Started { operation: Operation::Create, item, path, at, .. } => {
                transition::begin_create(&mut current, item, path, |_| None, *at);
            }
            Record::Started { operation, item, target, at, .. } => {
                if let Some(node) = current.node_of(item.reference()) {
                    let (slot, path) = (node.slot(), node.path());
                    if node.item() != item {
                        // It was read as this before: what reading shows is in no record of its own.
                        let put = current.put_item_into(&path, item.clone());
                        debug_assert!(put.is_ok());
                    }
                    transition::begin_change(&mut current, slot, *operation, target.clone(), *at);
                }
            }
            Record::Ended { item, outcome, at } => {
                if let Some(slot) = current.node_of(item).map(|node| node.slot()) {
                    let outcome = outcome.as_ref().copied();
                    transition::end(&mut current, slot, outcome, RetryPolicy::default(), *at);
                }
            }
            Record::InBackground { .. } => {}
            Record::Withdrawn { item, .. } => {
                if let Some(slot) = current.node_of(item).map(|node| node.slot()) {
                    transition::withdraw(&mut current, slot);
                }
            }
            Record::Noted { item, metadata, .. } => {
                let slot = current.node_of(item).map(|node| node.slot());
                if let Some(state) = slot.and_then(|slot| current.state_at_mut(slot)) {
                    state.metadata.set(metadata.clone());
                }
            }
            Record::Gone { item, .. } => {
                if let Some(slot) = current.node_of(item).map(|node| node.slot()) {
                    current.del_item_at(slot);
                }
            }
            Record::Moved { item, path, .. } => {
                // An item that the base does not have is external: those are not ours to move.
                let _ = current.move_item(item, path);
            }
        }
    }
    current
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { operation, item, at, .. } => {
                write!(f, "{at} {operation} {} started", item.reference())
            }
            Self::Ended { item, outcome: Ok(()), at } => write!(f, "{at} {item} done"),
            Self::Ended { item, outcome: Err(error), at } => write!(f, "{at} {item} failed: {error}"),
            Self::InBackground { item, at } => write!(f, "{at} {item} goes on in the background"),
            Self::Withdrawn { item, at } => write!(f, "{at} {item} not started after all"),
            Self::Noted { item, at, .. } => write!(f, "{at} something is noted of {item}"),
            Self::Gone { item, at } => write!(f, "{at} {item} is gone"),
            Self::Moved { item, path, at } => write!(f, "{at} {item} moved to {path}"),
        }
    }
}

/// What a list of records says of each item: how many operations were started and how many ended.
pub fn balance(records: &[Record]) -> BTreeMap<ItemRef, (usize, usize)> {
    let mut balance: BTreeMap<ItemRef, (usize, usize)> = BTreeMap::new();
    for record in records {
        match record {
            Record::Started { item, .. } => balance.entry(item.reference().clone()).or_default().0 += 1,
            Record::Ended { item, .. } | Record::Withdrawn { item, .. } => {
                balance.entry(item.clone()).or_default().1 += 1;
            }
            Record::InBackground { .. }
            | Record::Noted { .. }
            | Record::Gone { .. }
            | Record::Moved { .. } => {}
        }
    }
    balance
}
