//! What a run reports.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_graph::{ItemRef, Name, SubgraphPath};

use crate::background::{Background, Wake};
use crate::clock::Clock;
use crate::log::LogEntry;
use crate::op::{OpError, Operation};
use crate::selection::Selection;

/// A failure that has not been overcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which item.
    pub item: ItemRef,
    /// What failed.
    pub operation: Operation,
    /// Why.
    pub error: OpError,
    /// How often in a row.
    pub attempts: u32,
    /// When it may be tried again; none if not until the intent changes.
    pub due: Option<Timestamp>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.operation, self.item, self.error)
    }
}

/// An item that was left out because it can't be handled as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidItem {
    /// Which item.
    pub item: ItemRef,
    /// Why.
    pub why: String,
}

impl fmt::Display for InvalidItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.item, self.why)
    }
}

/// Why a run stopped before it had done all it could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The caller asked for it.
    Cancelled,
    /// The journal could not be written: nothing is started that it does not know of.
    Journal(String),
}

/// What can be reconciled further, since background operations have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumable {
    /// The name of the graph.
    pub graph: Name,
    /// The innermost subgraph that holds all items whose operations have ended; the root if they have only that in common.
    pub subgraph: SubgraphPath,
}

impl Resumable {
    /// Returns the selection of this part of the graphs.
    pub fn selection(&self) -> Selection {
        if self.subgraph.is_root() { Selection::All } else { Selection::Subgraph(self.subgraph.clone()) }
    }
}

/// A background operation, and the subgraph that its item is in.
#[derive(Debug)]
pub(crate) struct RunningOperation {
    pub(crate) background: Arc<Background>,
    pub(crate) path: SubgraphPath,
}

/// How a run went.
pub struct Status {
    pub(crate) log: Vec<LogEntry>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) invalid: Vec<InvalidItem>,
    pub(crate) pending: usize,
    pub(crate) interruption: Option<Interruption>,
    pub(crate) next_retry: Option<Timestamp>,
    pub(crate) running: Vec<RunningOperation>,
    pub(crate) reverted: Option<Box<Status>>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Status {
    /// Every operation that this run started, or whose end it collected, in order.
    pub fn log(&self) -> &[LogEntry] {
        &self.log
    }

    /// Every failure that has not been overcome, also of earlier runs, by reference.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// The items that were left out because they can't be handled as declared.
    pub fn invalid(&self) -> &[InvalidItem] {
        &self.invalid
    }

    /// How many intended items wait for something that is not there.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Why the run stopped before it had done all it could.
    pub fn interruption(&self) -> Option<&Interruption> {
        self.interruption.as_ref()
    }

    /// When the next failed operation, or one that ignores its cancellation, is due. The engine never
    /// sleeps: whoever calls it does so again then.
    ///
    /// What was due in this run and was not tried does not count: it is held back by something else, whose time counts, or was
    /// not selected.
    pub fn next_retry(&self) -> Option<Timestamp> {
        self.next_retry
    }

    /// The run back to where this one started, where it failed and that was wanted.
    pub fn reverted(&self) -> Option<&Status> {
        self.reverted.as_deref()
    }

    /// Returns whether operations go on in the background. Then the current graph must be kept.
    pub fn background_in_progress(&self) -> bool {
        !self.running.is_empty()
    }

    /// The items on which operations go on in the background, by reference.
    pub fn background_items(&self) -> Vec<&ItemRef> {
        self.running.iter().map(|running| running.background.item()).collect()
    }

    /// Completes when a background operation has ended and the next run has something to act on; says for which part
    /// of which graph. Completes at once if one has ended already: no end is ever missed.
    ///
    /// Ends that a run collected and did not select are still to be acted on.
    pub async fn ready_to_resume(&self) -> Resumable {
        let ended = self.wake.ready().await;
        let paths = ended.into_iter().map(|(item, path)| {
            let running = || self.running.iter().find(|running| *running.background.item() == item);
            path.or_else(|| Some(running()?.path.clone())).unwrap_or_default()
        });
        let subgraph = paths.reduce(|one, two| one.common(&two)).unwrap_or_default();
        Resumable { graph: self.wake.graph().clone(), subgraph }
    }

    /// Asks all background operations to stop.
    pub fn cancel_background(&self) {
        self.cancel_background_where(|_| true);
    }

    /// Asks the background operations on some items to stop.
    pub fn cancel_background_where(&self, wanted: impl Fn(&ItemRef) -> bool) {
        let now = self.clock.now();
        for RunningOperation { background, .. } in &self.running {
            if wanted(background.item()) {
                background.cancel(now);
            }
        }
    }

    /// Completes when all background operations have ended.
    pub async fn wait_for_background(&self) {
        self.wake.until(|| !self.running.iter().any(|running| running.background.is_running())).await;
    }

    /// Returns whether everything went well: no failure, nothing invalid, nothing interrupted.
    pub fn result(&self) -> Result<(), ReconcileError> {
        if self.failures.is_empty() && self.invalid.is_empty() && self.interruption.is_none() {
            return Ok(());
        }
        Err(ReconcileError {
            failures: self.failures.clone(),
            invalid: self.invalid.clone(),
            interruption: self.interruption.clone(),
        })
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("log", &self.log)
            .field("failures", &self.failures)
            .field("invalid", &self.invalid)
            .field("pending", &self.pending)
            .field("interruption", &self.interruption)
            .field("next_retry", &self.next_retry)
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

/// Everything that kept a run from reaching the intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileError {
    /// The failures that have not been overcome.
    pub failures: Vec<Failure>,
    /// The items that can't be handled as declared.
    pub invalid: Vec<InvalidItem>,
    /// Why the run stopped early.
    pub interruption: Option<Interruption>,
}

impl fmt::Display for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self.failures.iter().map(ToString::to_string).collect();
        parts.extend(self.invalid.iter().map(|invalid| format!("invalid {invalid}")));
        match &self.interruption {
            None => {}
            Some(Interruption::Cancelled) => parts.push("the run was cancelled".to_owned()),
            Some(Interruption::Journal(why)) => {
                parts.push(format!("the journal could not be written: {why}"));
            }
        }
        f.write_str(&parts.join("; "))
    }
}

impl std::error::Error for ReconcileError {}

/// Why a run, or a plan, was refused. Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The graphs are about different things.
    #[error(
        "the current graph is {current} and the intended one is {intended}: they must have the same name"
    )]
    Names {
        /// The name of the current graph.
        current: Name,
        /// The name of the intended graph.
        intended: Name,
    },
    /// Items can't be handled as declared, and the engine was set to refuse the whole then.
    #[error("{} invalid: {}", if .0.len() == 1 { "1 item is".to_owned() } else { format!("{} items are", .0.len()) }, .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<InvalidItem>),
}
