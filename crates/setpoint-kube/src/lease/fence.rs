//! The check before every write of a leader.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use super::clock::boot_time;

/// The right to write, for as long as it lasts. Clones are of the same right.
#[derive(Clone, Debug)]
pub struct Fence {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    transitions: i32,
    /// Until when writing is allowed, in nanoseconds of [`boot_time`].
    deadline: AtomicU64,
    lease: Option<Held>,
}

/// The Lease behind a fence.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) leases: Api<Lease>,
    pub(super) name: String,
    pub(super) holder: String,
}

/// This process is not the leader, or can't be sure of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this instance is not the leader any more")]
pub struct Fenced;

impl Fence {
    /// A fence that is always open, for a process that is known to be alone.
    ///
    /// ```
    /// let fence = setpoint_kube::lease::Fence::open();
    /// assert!(fence.check().is_ok());
    /// fence.close();
    /// assert!(fence.check().is_err());
    /// ```
    pub fn open() -> Self {
        Self { inner: Arc::new(Inner { transitions: 0, deadline: AtomicU64::new(u64::MAX), lease: None }) }
    }

    pub(super) fn until(deadline: Duration, transitions: i32, lease: Held) -> Self {
        let deadline = AtomicU64::new(nanoseconds(deadline));
        Self { inner: Arc::new(Inner { transitions, deadline, lease: Some(lease) }) }
    }

    /// How often the Lease has changed hands: the number of this leadership.
    pub fn transitions(&self) -> i32 {
        self.inner.transitions
    }

    /// The number of this leadership; none if nobody was elected, because nobody else could lead.
    pub fn elected(&self) -> Option<i32> {
        self.inner.lease.as_ref().map(|_| self.inner.transitions)
    }

    /// Checks that writing is allowed at this moment; to be called right before each write.
    pub fn check(&self) -> Result<(), Fenced> {
        if nanoseconds(boot_time()) < self.inner.deadline.load(Ordering::SeqCst) {
            Ok(())
        } else {
            Err(Fenced)
        }
    }

    /// Asks the API server who holds the Lease. An answer that can't be had changes nothing: the deadline decides.
    pub async fn confirm(&self) -> Result<(), Fenced> {
        self.check()?;
        let Some(held) = &self.inner.lease else { return Ok(()) };
        let left =
            Duration::from_nanos(self.inner.deadline.load(Ordering::SeqCst)).saturating_sub(boot_time());
        if let Ok(Ok(found)) = tokio::time::timeout(left, held.leases.get_opt(&held.name)).await {
            let spec = found.and_then(|lease| lease.spec);
            let holder = spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
            let transitions = spec.as_ref().and_then(|spec| spec.lease_transitions);
            if holder != Some(&held.holder) || transitions != Some(self.inner.transitions) {
                self.close();
            }
        }
        self.check()
    }

    /// Ends the right to write, for all clones.
    pub fn close(&self) {
        self.inner.deadline.store(0, Ordering::SeqCst);
    }

    /// Moves the deadline; a fence that was closed stays closed.
    pub(super) fn extend(&self, deadline: Duration) {
        let _ = self.inner.deadline.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| {
            (old != 0).then(|| old.max(nanoseconds(deadline)))
        });
    }

    /// When writing ends to be allowed unless it is extended.
    pub(super) fn deadline(&self) -> Duration {
        Duration::from_nanos(self.inner.deadline.load(Ordering::SeqCst))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
