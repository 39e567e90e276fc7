//! A trigger that coalesces: however often it is fired before somebody looks, it is one reason to look.

use tokio::sync::watch;

/// Makes a trigger and its only listener.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let (trigger, mut listener) = setpoint_loop::trigger();
/// trigger.fire();
/// trigger.fire();
/// assert_eq!(listener.fired().await, Some(2), "two firings, one reason to look");
/// drop(trigger);
/// assert_eq!(listener.fired().await, None, "nobody is left who could fire");
/// # });
/// ```
pub fn trigger() -> (Trigger, Listener) {
    let (sender, receiver) = watch::channel(0);
    (Trigger { count: sender }, Listener { count: receiver, seen: 0 })
}

/// Fires; clones fire the same listener.
#[derive(Clone, Debug)]
pub struct Trigger {
    count: watch::Sender<u64>,
}

impl Trigger {
    /// Gives the listener a reason to look. Never waits, and may be called from anywhere.
    pub fn fire(&self) {
        self.count.send_modify(|count| *count += 1);
    }
}

/// Waits for a [`Trigger`].
#[derive(Debug)]
pub struct Listener {
    count: watch::Receiver<u64>,
    seen: u64,
}

impl Listener {
    /// Waits until the trigger has been fired since the last call; gives how often, or none when no trigger
    /// is left and every firing has been reported.
    ///
    /// Dropping the future loses nothing.
    pub async fn fired(&mut self) -> Option<u64> {
        let now = *self.count.wait_for(|count| *count != self.seen).await.ok()?;
        let new = now - self.seen;
        self.seen = now;
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_firing_before_anybody_waits_is_not_lost() {
        let (trigger, mut listener) = trigger();
        trigger.fire();
        assert_eq!(listener.fired().await, Some(1));
        assert!(timeout(Duration::from_secs(1), listener.fired()).await.is_err(), "it is reported once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_was_given_up_loses_nothing() {
        let (trigger, mut listener) = trigger();
        assert!(timeout(Duration::from_secs(1), listener.fired()).await.is_err());
        trigger.fire();
        assert_eq!(listener.fired().await, Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_fired_before_the_end_is_still_reported() {
        let (trigger, mut listener) = trigger();
        let other = trigger.clone();
        drop(trigger);
        other.fire();
        drop(other);
        assert_eq!(listener.fired().await, Some(1));
        assert_eq!(listener.fired().await, None);
    }
}
