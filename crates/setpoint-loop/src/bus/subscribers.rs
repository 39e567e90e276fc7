//! The subscribers: what waits for them, and how they take it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Correlation, Published};

/// Hands an event to one subscriber.
pub(super) trait Deliver<E>: Send {
    /// Returns whether the subscriber is still there.
    fn deliver(&self, event: &Arc<Published<E>>) -> bool;
    /// Ends it: nothing comes any more.
    fn close(&self);
}

/// A message in a [`Mailbox`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<T> {
    /// What the newest event that led to it follows from.
    pub correlation: Correlation,
    /// When that was published.
    pub at: Instant,
    /// How many earlier messages it took the place of.
    pub replaced: u64,
    /// What the subscription made of the event.
    pub message: T,
}

/// What waits for one subscriber.
struct Queue<T> {
    state: Mutex<QueueState<T>>,
    filled: Notify,
}

struct QueueState<T> {
    waiting: VecDeque<T>,
    /// Whether the bus has ended.
    closed: bool,
    /// Whether the subscriber has.
    gone: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let state = QueueState { waiting: VecDeque::new(), closed: false, gone: false };
        Self { state: Mutex::new(state), filled: Notify::new() }
    }
}

impl<T> Queue<T> {
    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what waits, and wakes the subscriber. Returns whether there is one.
    fn change(&self, change: impl FnOnce(&mut VecDeque<T>)) -> bool {
        let mut state = self.lock();
        if state.gone {
            return false;
        }
        change(&mut state.waiting);
        drop(state);
        self.filled.notify_one();
        true
    }

    fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// Nobody takes anything any more.
    fn abandon(&self) {
        let mut state = self.lock();
        state.gone = true;
        let left = std::mem::take(&mut state.waiting);
        drop(state);
        drop(left);
    }

    async fn recv(&self) -> Option<T> {
        loop {
            {
                let mut state = self.lock();
                if let Some(first) = state.waiting.pop_front() {
                    return Some(first);
                }
                if state.closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }
}

/// Makes messages of events, and puts them where a [`Mailbox`] takes them.
pub(super) struct Subscription<K, T, F> {
    select: F,
    queue: Arc<Queue<(K, Received<T>)>>,
}

impl<K, T, F> Subscription<K, T, F> {
    pub(super) fn new(select: F) -> (Self, Mailbox<K, T>) {
        let queue = Arc::new(Queue::default());
        (Self { select, queue: Arc::clone(&queue) }, Mailbox { queue })
    }
}

impl<E, K, T, F> Deliver<E> for Subscription<K, T, F>
where
    E: Send + Sync,
    K: PartialEq + Send,
    T: Send,
    F: Fn(&E) -> Option<(K, T)> + Send,
{
    fn deliver(&self, event: &Arc<Published<E>>) -> bool {
        let Some((key, message)) = (self.select)(&event.event) else {
            return !self.queue.lock().gone;
        };
        let mut received = Received { correlation: event.correlation, at: event.at, replaced: 0, message };
        self.queue.change(|waiting| {
            // What is taken next is the oldest message that still holds: a newer message goes to the end.
            if let Some(place) = waiting.iter().position(|(before, _)| *before == key)
                && let Some((_, before)) = waiting.remove(place)
            {
                received.replaced = before.replaced + 1;
            }
            waiting.push_back((key, received));
        })
    }

    fn close(&self) {
        self.queue.close();
    }
}

/// Puts events where an [`Observer`] takes them.
pub(super) struct Observation<E> {
    capacity: usize,
    queue: Arc<Queue<Arc<Published<E>>>>,
    dropped: Arc<AtomicU64>,
    all_dropped: Arc<AtomicU64>,
}

impl<E> Observation<E> {
    pub(super) fn new(capacity: usize, all_dropped: Arc<AtomicU64>) -> (Self, Observer<E>) {
        let (queue, dropped) = (Arc::new(Queue::default()), Arc::new(AtomicU64::new(0)));
        let observer = Observer { queue: Arc::clone(&queue), dropped: Arc::clone(&dropped) };
        (Self { capacity, queue, dropped, all_dropped }, observer)
    }
}

impl<E: Send + Sync> Deliver<E> for Observation<E> {
    fn deliver(&self, event: &Arc<Published<E>>) -> bool {
        self.queue.change(|waiting| {
            waiting.push_back(Arc::clone(event));
            while waiting.len() > self.capacity {
                waiting.pop_front();
                self.dropped.fetch_add(1, Ordering::Relaxed);
                self.all_dropped.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    fn close(&self) {
        self.queue.close();
    }
}

/// Takes what one subscription is about.
pub struct Mailbox<K, T> {
    queue: Arc<Queue<(K, Received<T>)>>,
}

impl<K, T> Mailbox<K, T> {
    /// Takes the message that has waited longest, waiting until there is one; none when the bus is closed and all were taken.
    ///
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<Received<T>> {
        self.queue.recv().await.map(|(_, received)| received)
    }

    /// Takes the message that has waited longest, if there is one.
    pub fn try_recv(&mut self) -> Option<Received<T>> {
        self.queue.lock().waiting.pop_front().map(|(_, received)| received)
    }
}

impl<K, T> Drop for Mailbox<K, T> {
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

impl<K, T> fmt::Debug for Mailbox<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("waiting", &self.queue.lock().waiting.len()).finish()
    }
}

/// Takes all events, as far as it is quick enough.
pub struct Observer<E> {
    queue: Arc<Queue<Arc<Published<E>>>>,
    dropped: Arc<AtomicU64>,
}

impl<E> Observer<E> {
    /// Takes the oldest event that is still there, waiting until there is one; none when the bus is closed and all were taken.
    ///
    /// Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<Arc<Published<E>>> {
        self.queue.recv().await
    }

    /// How many events were dropped before they were taken.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl<E> Drop for Observer<E> {
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

impl<E> fmt::Debug for Observer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}
