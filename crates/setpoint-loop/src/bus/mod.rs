//! An event bus: publishers and subscribers do not know each other.
//!
//! ```text
//!                    before the start: kept, and replayed
//!  publish ─▶ Bus ─┬─ subscribe ─▶ Mailbox: one message for each key, the newest ──▶ a component
//!                  └─ observe ───▶ Observer: the last so many, counts what it dropped ──▶ metrics, a log
//! ```
//!
//! Publishing never waits, whatever subscribers do. What has to be acted on can't be lost and can't pile up: a [`Mailbox`] holds
//! one message for each key, and a newer one takes the place of an older. That is enough where events notify and the state that
//! they speak of is read elsewhere. An [`Observer`], which acts on none, may miss some, and learns how many.

mod request;
mod subscribers;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use request::{Answers, Reply};
use subscribers::{Deliver, Observation, Subscription};
pub use subscribers::{Mailbox, Observer, Received};

/// Ties together what follows from one event: each event that is published because of another has the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Correlation(u64);

impl fmt::Display for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::str::FromStr for Correlation {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

/// An event as it was published.
#[derive(Debug)]
pub struct Published<E> {
    /// Its place among all events of its bus, from 1.
    pub number: u64,
    /// When it was published.
    pub at: Instant,
    /// What it follows from.
    pub correlation: Correlation,
    /// What happened.
    pub event: E,
}

/// What a bus has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that were published.
    pub published: u64,
    /// The subscribers.
    pub subscribers: usize,
    /// Events that observers were too slow for, counted once for each.
    pub dropped: u64,
}

/// An event bus. Clones are the same bus.
///
/// ```
/// use setpoint_loop::Bus;
///
/// enum Event {
///     Changed { resource: &'static str },
///     Rendered,
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let bus = Bus::new(100, fastrand::Rng::with_seed(1));
/// let mut changes = bus.subscribe(|event| match event {
///     Event::Changed { resource } => Some((*resource, *resource)),
///     Event::Rendered => None,
/// });
/// let correlation = bus.correlation();
/// for resource in ["services", "ingresses", "services"] {
///     bus.publish(correlation, Event::Changed { resource });
/// }
/// bus.publish(correlation, Event::Rendered);
/// bus.start();
/// assert_eq!(changes.recv().await.unwrap().message, "ingresses");
/// let services = changes.recv().await.unwrap();
/// assert_eq!((services.message, services.replaced), ("services", 1), "one message stands for both");
/// # });
/// ```
pub struct Bus<E> {
    shared: Arc<Shared<E>>,
}

struct Shared<E> {
    state: Mutex<State<E>>,
    dropped: Arc<AtomicU64>,
}

struct State<E> {
    /// Events from before the start; none once it has started.
    early: Option<Vec<Arc<Published<E>>>>,
    subscribers: Vec<Box<dyn Deliver<E>>>,
    published: u64,
    closed: bool,
    random: Rng,
}

impl<E: Send + Sync + 'static> Bus<E> {
    /// Makes a bus that keeps what is published until it is started; `capacity` is how many events it has room for at first.
    pub fn new(capacity: usize, random: Rng) -> Self {
        let state = State {
            early: Some(Vec::with_capacity(capacity)),
            subscribers: Vec::new(),
            published: 0,
            closed: false,
            random,
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), dropped: Arc::default() }) }
    }

    /// Returns a correlation for an event that follows from no other.
    pub fn correlation(&self) -> Correlation {
        Correlation(self.state().random.u64(..))
    }

    /// Passes an event to all subscribers, or keeps it until the bus is started. Never waits. Once the bus is closed, nobody gets it.
    pub fn publish(&self, correlation: Correlation, event: E) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        state.published += 1;
        let event = Arc::new(Published { number: state.published, at: Instant::now(), correlation, event });
        match &mut state.early {
            Some(early) => early.push(event),
            None => state.subscribers.retain(|subscriber| subscriber.deliver(&event)),
        }
    }

    /// Begins: passes what was published so far to all subscribers, in its order, and from then on everything at once.
    pub fn start(&self) {
        let mut state = self.state();
        for event in state.early.take().unwrap_or_default() {
            state.subscribers.retain(|subscriber| subscriber.deliver(&event));
        }
    }

    /// Ends: nothing is published any more, and a subscriber that has taken what is left learns that nothing more comes.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.early = None;
        for subscriber in state.subscribers.drain(..) {
            subscriber.close();
        }
    }

    /// Subscribes to what has to be acted on.
    ///
    /// `select` returns what an event means to the subscriber, with a key: a message takes the place of an earlier one with the
    /// same key that was not taken yet, so that there are never more than there are keys. It is called while the event is
    /// published, and must neither wait nor use the bus.
    pub fn subscribe<K, T>(&self, select: impl Fn(&E) -> Option<(K, T)> + Send + 'static) -> Mailbox<K, T>
    where
        K: PartialEq + Send + 'static,
        T: Send + 'static,
    {
        let (subscription, mailbox) = Subscription::new(select);
        self.add(Box::new(subscription));
        mailbox
    }

    /// Looks on: every event, but at most the last `capacity` that were not taken yet.
    pub fn observe(&self, capacity: usize) -> Observer<E> {
        let (observation, observer) = Observation::new(capacity, Arc::clone(&self.shared.dropped));
        self.add(Box::new(observation));
        observer
    }

    /// Asks something of others, and waits for their answers: until all of `expected` have answered, nobody is left who
    /// could, or the time is up.
    ///
    /// The event that `make` makes carries the [`Reply`] to those who answer.
    pub async fn request<R>(
        &self,
        correlation: Correlation,
        expected: &[&'static str],
        limit: Duration,
        make: impl FnOnce(Reply<R>) -> E,
    ) -> Answers<R> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        self.publish(correlation, make(Reply::new(sender)));
        let until = Instant::now() + limit;
        let mut given = BTreeMap::new();
        let is_missing =
            |given: &BTreeMap<&'static str, R>| expected.iter().any(|name| !given.contains_key(name));
        while is_missing(&given) {
            let Ok(Some((name, answer))) = tokio::time::timeout_at(until, receiver.recv()).await else {
                break;
            };
            given.insert(name, answer);
        }
        let missing = expected.iter().copied().filter(|name| !given.contains_key(name)).collect();
        Answers { given, missing }
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        let state = self.state();
        Counts {
            published: state.published,
            subscribers: state.subscribers.len(),
            dropped: self.shared.dropped.load(Ordering::Relaxed),
        }
    }

    fn add(&self, subscriber: Box<dyn Deliver<E>>) {
        let mut state = self.state();
        if state.closed {
            subscriber.close();
        } else {
            state.subscribers.push(subscriber);
        }
    }

    /// Every change under this lock is whole, so a panic elsewhere does not spoil it.
    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E> Clone for Bus<E> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<E> fmt::Debug for Bus<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
