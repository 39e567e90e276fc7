//! Operations that outlive the run that started them.
//!
//! ```text
//!  configurator ── Completion ──finish──▶ Background ◀──live handle── item state in the current graph
//!                                             └── Wake: says that a run has something to collect
//! ```

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use setpoint_graph::{ItemRef, Name};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::op::OpError;

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
            self.wake.ring();
        }
    }

    pub(crate) fn item(&self) -> &ItemRef {
        &self.item
    }

    /// Takes the outcome, once there is one.
    pub(crate) fn take_outcome(&self) -> Option<Result<(), OpError>> {
        self.progress().outcome.take()
    }

    /// Whether the operation is still under way.
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
        self.wake.nudge();
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

/// Tells whoever waits that background operations have ended. Level-triggered: nothing is ever missed.
pub(crate) struct Wake {
    ended: AtomicBool,
    notify: Notify,
    graph: Name,
}

impl Wake {
    pub(crate) fn new(graph: Name) -> Self {
        Self { ended: AtomicBool::new(false), notify: Notify::new(), graph }
    }

    fn ring(&self) {
        self.ended.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Lets whoever waits for a condition look again; there is nothing to collect.
    fn nudge(&self) {
        self.notify.notify_waiters();
    }

    /// Called when all that has ended is about to be collected.
    pub(crate) fn hush(&self) {
        self.ended.store(false, Ordering::Release);
    }

    /// Completes when there is something to collect; says for which graph.
    pub(crate) async fn ready(&self) -> Name {
        self.until(|| self.ended.load(Ordering::Acquire)).await;
        self.graph.clone()
    }

    /// Completes when a condition holds that only changes when the bell rings.
    pub(crate) async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            let rung = self.notify.notified();
            tokio::pin!(rung);
            // Registered before the condition is looked at: a ring in between is not missed.
            rung.as_mut().enable();
            if holds() {
                return;
            }
            rung.await;
        }
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wake").field("graph", &self.graph).field("ended", &self.ended).finish_non_exhaustive()
    }
}
