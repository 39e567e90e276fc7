//! Operations that outlive the run that started them.
//!
//! ```text
//!  configurator ── Completion ──finish──▶ Background ◀──live handle── item state in the current graph
//!                                             └── Wake: which operations have ended
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use setpoint_graph::{ItemRef, Name, SubgraphPath};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::op::OpError;
use crate::selection::Selection;

/// An operation that goes on in the background.
pub(crate) struct Background {
    item: ItemRef,
    cancel: CancellationToken,
    wake: Arc<Wake>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    outcome: Option<Result<(), OpError>>,
    /// Once true, whatever the operation still says is ignored.
    over: bool,
    cancelled_at: Option<Timestamp>,
}

impl Background {
    pub(crate) fn new(item: ItemRef, cancel: CancellationToken, wake: Arc<Wake>) -> Arc<Self> {
        Arc::new(Self { item, cancel, wake, progress: Mutex::default() })
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, outcome: Result<(), OpError>) {
        let mut progress = self.progress();
        if !progress.over {
            progress.over = true;
            progress.outcome = Some(outcome);
            drop(progress);
            self.wake.note_end(&self.item);
        }
    }

    pub(crate) fn item(&self) -> &ItemRef {
        &self.item
    }

    /// Takes the outcome, once there is one.
    pub(crate) fn take_outcome(&self) -> Option<Result<(), OpError>> {
        self.progress().outcome.take()
    }

    /// Returns whether the operation is still under way.
    pub(crate) fn is_running(&self) -> bool {
        !self.progress().over
    }

    /// Asks the operation to stop; remembers when it was first asked.
    pub(crate) fn cancel(&self, now: Timestamp) {
        self.progress().cancelled_at.get_or_insert(now);
        self.cancel.cancel();
    }

    pub(crate) fn cancelled_at(&self) -> Option<Timestamp> {
        self.progress().cancelled_at
    }

    /// Gives up on the operation: it was asked to stop and did not.
    pub(crate) fn abandon(&self) {
        self.progress().over = true;
        self.wake.notify();
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background")
            .field("item", &self.item)
            .field("running", &self.is_running())
            .finish_non_exhaustive()
    }
}

/// The duty to say how a background operation ended.
///
/// Finishing consumes it, so that it can't be done twice; dropping it unfinished fails the operation.
#[must_use = "dropping it fails the operation"]
#[derive(Debug)]
pub struct Completion {
    background: Arc<Background>,
}

impl Completion {
    pub(crate) fn new(background: Arc<Background>) -> Self {
        Self { background }
    }

    /// Ends the operation.
    pub fn finish(self, outcome: Result<(), OpError>) {
        self.background.finish(outcome);
    }

    /// The token that is cancelled when the operation should stop as soon as it can.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.background.cancel
    }

    /// Completes when the operation should stop as soon as it can.
    pub async fn cancelled(&self) {
        self.background.cancel.cancelled().await;
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.background.finish(Err(OpError::new("the operation was dropped before it finished")));
    }
}

/// Lets callers wait for the end of background operations. Level-triggered: no end is ever missed.
pub(crate) struct Wake {
    /// The items whose operations ended, and on which no run has acted yet. A run that collected one and did not select it
    /// says where the item is.
    ended: Mutex<BTreeMap<ItemRef, Option<SubgraphPath>>>,
    notify: Notify,
    graph: Name,
}

impl Wake {
    pub(crate) fn new(graph: Name) -> Self {
        Self { ended: Mutex::default(), notify: Notify::new(), graph }
    }

    pub(crate) fn graph(&self) -> &Name {
        &self.graph
    }

    fn ended(&self) -> std::sync::MutexGuard<'_, BTreeMap<ItemRef, Option<SubgraphPath>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an operation on an item ended.
    fn note_end(&self, item: &ItemRef) {
        self.ended().insert(item.clone(), None);
        self.notify.notify_waiters();
    }

    /// Lets whoever waits for a condition look again; there is nothing to collect.
    fn notify(&self) {
        self.notify.notify_waiters();
    }

    /// Forgets the ends that a run with this selection is about to act on.
    pub(crate) fn forget_ends(&self, selection: &Selection) {
        self.ended().retain(|item, path| path.as_ref().is_some_and(|path| !selection.covers(item, path)));
    }

    /// Notes that an operation ended and was collected by a run that did not select its item: another one has to.
    pub(crate) fn note_unselected(&self, item: &ItemRef, path: SubgraphPath) {
        self.ended().insert(item.clone(), Some(path));
        self.notify.notify_waiters();
    }

    /// Completes when operations have ended on which no run has acted; gives the items, and where they are if that is known.
    pub(crate) async fn ready(&self) -> BTreeMap<ItemRef, Option<SubgraphPath>> {
        self.until(|| !self.ended().is_empty()).await;
        self.ended().clone()
    }

    /// Completes when a condition holds that only changes when this is notified.
    pub(crate) async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            let notified = self.notify.notified();
            tokio::pin!(notified);
            // Registered before the condition is looked at: a notification in between is not missed.
            notified.as_mut().enable();
            if holds() {
                return;
            }
            notified.await;
        }
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wake").field("graph", &self.graph).field("ended", &self.ended).finish_non_exhaustive()
    }
}
