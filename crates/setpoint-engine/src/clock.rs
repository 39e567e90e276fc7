//! Time, injected: the engine itself never asks the system for it and never sleeps on its own account.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;

/// Where the engine gets its time from.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Completes when that much time has passed. Used for the timeouts of operations only.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// The system's time. Its sleeps need a tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Time that starts at the epoch and follows tokio's clock: simulated where that is paused.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedClock {
    start: tokio::time::Instant,
}

impl SimulatedClock {
    /// Starts at the epoch. Must be called within a tokio runtime.
    pub fn start() -> Self {
        Self { start: tokio::time::Instant::now() }
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        after(Timestamp::UNIX_EPOCH, self.start.elapsed())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A time that much later, or the latest there is.
pub(crate) fn after(at: Timestamp, delay: Duration) -> Timestamp {
    jiff::SignedDuration::try_from(delay)
        .ok()
        .and_then(|delay| at.checked_add(delay).ok())
        .unwrap_or(Timestamp::MAX)
}
