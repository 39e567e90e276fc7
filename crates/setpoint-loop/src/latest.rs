//! A slot for the latest value: a queue of one, in which a newer value takes the place of an older.
//!
//! A receiver is never behind, and never works on something that is out of date. That is
//! what makes a single writer safe: an older state can't be written after a newer one.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Makes a slot.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let (sender, mut receiver) = setpoint_loop::latest::channel();
/// assert_eq!(sender.send("old"), Ok(None));
/// assert_eq!(sender.send("new"), Ok(Some("old")), "what was never taken comes back");
/// assert_eq!(receiver.recv().await, Some("new"));
/// drop(sender);
/// assert_eq!(receiver.recv().await, None);
/// # });
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let slot = Arc::new(Slot {
        state: Mutex::new(State { value: None, senders: 1, receiving: true }),
        filled: Notify::new(),
        closed: Notify::new(),
    });
    (Sender { slot: Arc::clone(&slot) }, Receiver { slot })
}

struct Slot<T> {
    state: Mutex<State<T>>,
    /// The receiver waits here: a permit says that it should look.
    filled: Notify,
    /// Senders wait here for the receiver's end.
    closed: Notify,
}

struct State<T> {
    value: Option<T>,
    senders: usize,
    receiving: bool,
}

impl<T> Slot<T> {
    /// Every change under this lock is whole, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The receiver is gone; holds the value that was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed<T>(pub T);

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody takes values any more")
    }
}

impl<T: fmt::Debug> std::error::Error for Closed<T> {}

/// Puts values into the slot; clones put them into the same one.
pub struct Sender<T> {
    slot: Arc<Slot<T>>,
}

impl<T> Sender<T> {
    /// Puts a value, and gives back the one that was there and never taken. Never waits.
    pub fn send(&self, value: T) -> Result<Option<T>, Closed<T>> {
        let mut state = self.slot.lock();
        if !state.receiving {
            return Err(Closed(value));
        }
        let old = state.value.replace(value);
        drop(state);
        self.slot.filled.notify_one();
        Ok(old)
    }

    /// Takes the value back out, if it is still there.
    pub fn withdraw(&self) -> Option<T> {
        self.slot.lock().value.take()
    }

    /// Waits until nobody takes values any more.
    pub async fn closed(&self) {
        loop {
            let closed = self.slot.closed.notified();
            if !self.slot.lock().receiving {
                return;
            }
            closed.await;
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.slot.lock().senders += 1;
        Self { slot: Arc::clone(&self.slot) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        state.senders -= 1;
        if state.senders == 0 {
            drop(state);
            self.slot.filled.notify_one();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("full", &self.slot.lock().value.is_some()).finish()
    }
}

/// Takes values out of the slot.
pub struct Receiver<T> {
    slot: Arc<Slot<T>>,
}

impl<T> Receiver<T> {
    /// Takes the latest value, waiting until there is one; none when no sender is left and nothing is there.
    ///
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<T> {
        loop {
            {
                let mut state = self.slot.lock();
                if let Some(value) = state.value.take() {
                    return Some(value);
                }
                if state.senders == 0 {
                    return None;
                }
            }
            self.slot.filled.notified().await;
        }
    }

    /// Takes the latest value, if there is one: for a writer that wants to know, before each attempt, whether
    /// what it is about to write is still the newest.
    pub fn try_recv(&mut self) -> Option<T> {
        self.slot.lock().value.take()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        state.receiving = false;
        let left = state.value.take();
        drop(state);
        drop(left);
        self.slot.closed.notify_waiters();
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("full", &self.slot.lock().value.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slow_receiver_sees_only_values_that_are_newer_than_the_last() {
        let (sender, mut receiver) = channel();
        let producer = tokio::spawn(async move {
            for value in 1..=1_000 {
                sender.send(value).unwrap();
                sleep(Duration::from_millis(1)).await;
            }
        });
        let mut seen = Vec::new();
        while let Some(value) = receiver.recv().await {
            seen.push(value);
            sleep(Duration::from_millis(97)).await;
        }
        producer.await.unwrap();
        assert!(seen.is_sorted() && seen.len() < 20, "{seen:?}");
        assert_eq!(seen.last(), Some(&1_000), "it ends on the last value");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_was_given_up_loses_nothing() {
        let (sender, mut receiver) = channel();
        assert!(timeout(Duration::from_secs(1), receiver.recv()).await.is_err());
        sender.send(1).unwrap();
        assert_eq!(receiver.recv().await, Some(1));
        assert!(timeout(Duration::from_secs(1), receiver.recv()).await.is_err(), "it is taken once");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_value_is_received_after_the_senders_are_gone() {
        let (sender, mut receiver) = channel();
        let other = sender.clone();
        sender.send(1).unwrap();
        drop(sender);
        other.send(2).unwrap();
        drop(other);
        assert_eq!(receiver.recv().await, Some(2));
        assert_eq!(receiver.recv().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_learns_that_nobody_receives() {
        let (sender, receiver) = channel();
        let waiting = {
            let sender = sender.clone();
            tokio::spawn(async move { sender.closed().await })
        };
        tokio::task::yield_now().await;
        drop(receiver);
        waiting.await.unwrap();
        sender.closed().await;
        assert_eq!(sender.send(1), Err(Closed(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_that_is_withdrawn_is_not_received() {
        let (sender, mut receiver) = channel();
        sender.send(1).unwrap();
        assert_eq!(sender.withdraw(), Some(1));
        assert_eq!(receiver.try_recv(), None);
    }
}
