//! One watch of Consul for each composite, however many namespaces follow it.
//!
//! Each watch holds a connection, and Consul takes 200 from one client by default. Of many composites only the first few have
//! a query of their own; one query for all others wakes those in which something changed (`overview.rs`).
//!
//! The claims are read together with the keys: a key that is claimed and not there will be put back by whoever claims it, be
//! it another operator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use jiff::Timestamp;
use setpoint_consul as consul;
use setpoint_consul::Entry;
use setpoint_consul::watch::{self as consul_watch, Doubt, Event, Snapshot};
use setpoint_loop::{Supervisor, Task, TaskHandle, latest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::leadership::restarts;
use super::metrics::{Metrics, Result as RequestResult};
use super::overview::Overview;
use super::references::{ObservedKey, References};
use super::report::ConsulState;
use crate::settings::Settings;
use setpoint_structure::declare::{claimed, structure_ref_key};
use setpoint_structure::prefix;

/// After how many failures in a row Consul counts as out of reach.
const TOLERATED: u32 = 3;
/// For how long after keys were put back others may put back theirs.
const DISTURBED: Duration = Duration::from_secs(10);
/// The bounds of the pause before a watch that panicked is started again.
const RESTARTS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// All watches of Consul.
#[derive(Debug)]
pub(super) struct Structures {
    client: consul::Client,
    settings: consul_watch::Settings,
    metrics: Arc<Metrics>,
    supervisor: Supervisor,
    followed: Mutex<BTreeMap<String, Weak<Followed>>>,
    expected: Mutex<BTreeMap<String, Weak<Expected>>>,
    references: References,
    /// Wakes the watches that hold no connection.
    overview: Overview,
    /// So many watches may hold a connection.
    watches: Arc<Semaphore>,
}

/// A structure that is followed. The watch ends with the last who holds it.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) snapshot: watch::Receiver<Option<Snapshot>>,
    pub(super) consul: watch::Receiver<ConsulState>,
    /// Lives as long as the watch, which asks it.
    _expected: Arc<Expected>,
    task: TaskHandle,
    composite: String,
    metrics: Arc<Metrics>,
    _connection: Option<OwnedSemaphorePermit>,
}

/// The keys of a structure that each namespace keeps there, with their values.
#[derive(Debug, Default)]
pub(super) struct Expected {
    keys: Mutex<BTreeMap<String, BTreeMap<String, String>>>,
    /// When keys were last put back.
    put_back: Mutex<Option<Instant>>,
}

impl Expected {
    /// Sets the keys that a namespace keeps from now on.
    pub(super) fn set(&self, namespace: &str, keys: BTreeMap<String, String>) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(namespace.to_owned(), keys);
    }

    /// Removes the keys of a namespace that keeps nothing any more.
    pub(super) fn remove(&self, namespace: &str) {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(namespace);
    }

    /// Records that keys are about to be put back.
    pub(super) fn disturb(&self) {
        *self.put_back.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Doubt for Expected {
    fn is_disturbed(&self) -> bool {
        let put_back = *self.put_back.lock().unwrap_or_else(PoisonError::into_inner);
        put_back.is_some_and(|at| at.elapsed() < DISTURBED)
    }

    fn lacks(&self, known: Option<&[Entry]>, entries: &[Entry], beside: &[Entry]) -> bool {
        let (before, now) = (known.map(by_key), by_key(entries));
        let lost = |key: &str, value: &[u8]| {
            let was_there = before.as_ref().is_none_or(|before| before.get(key) == Some(&value));
            was_there && now.get(key) != Some(&value)
        };
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let mut own = keys.values().flatten();
        own.any(|(key, value)| lost(key, value.as_bytes()))
            || claimed(beside).iter().any(|(key, value)| lost(key, value))
    }
}

/// The values of entries by their keys.
fn by_key(entries: &[Entry]) -> BTreeMap<&str, &[u8]> {
    entries.iter().map(|entry| (entry.key.as_str(), entry.value.as_deref().unwrap_or_default())).collect()
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.metrics.forget_composite(&self.composite);
        self.task.cancel();
    }
}

impl Structures {
    pub(super) fn new(
        client: consul::Client,
        settings: &Settings,
        metrics: Arc<Metrics>,
        cancel: CancellationToken,
    ) -> Self {
        let watches = Arc::new(Semaphore::new(settings.consul_watches.min(Semaphore::MAX_PERMITS)));
        let settings = consul_watch::Settings {
            wait: settings.wait_time,
            refill: settings.on_success_delay_time,
            first_retry: settings.retry_time.min(Duration::from_millis(250)),
            longest_retry: settings.retry_time,
            removal_grace: settings.removal_grace,
            ..consul_watch::Settings::default()
        };
        let supervisor =
            Supervisor::new(cancel, RESTARTS, fastrand::Rng::new()).reporting(restarts(&metrics));
        let references = References::start(&client, &settings, &supervisor);
        let overview = Overview::start(&client, &settings, &supervisor);
        let (followed, expected) = (Mutex::default(), Mutex::default());
        Self { client, settings, metrics, supervisor, followed, expected, references, overview, watches }
    }

    /// The supervisor of the watches.
    pub(super) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Follows the structure of a composite.
    pub(super) fn follow(&self, composite: &str) -> Arc<Followed> {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = followed.get(composite).and_then(Weak::upgrade) {
            return known;
        }
        followed.retain(|_, other| other.strong_count() > 0);
        let new = Arc::new(self.start(composite));
        followed.insert(composite.to_owned(), Arc::downgrade(&new));
        new
    }

    /// The keys of a structure that namespaces keep there.
    pub(super) fn expected(&self, composite: &str) -> Arc<Expected> {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.retain(|_, other| other.strong_count() > 0);
        if let Some(known) = expected.get(composite).and_then(Weak::upgrade) {
            return known;
        }
        let new = Arc::new(Expected::default());
        expected.insert(composite.to_owned(), Arc::downgrade(&new));
        new
    }

    /// Follows the key that refers to the structure of a namespace.
    pub(super) fn follow_reference(&self, namespace: &str) -> ObservedKey {
        self.references.follow(&structure_ref_key(namespace))
    }

    fn start(&self, composite: &str) -> Followed {
        let (state, consul) = watch::channel(ConsulState::default());
        let (sender, snapshot) = watch::channel(None);
        let connection = Arc::clone(&self.watches).try_acquire_owned().ok();
        let expected = self.expected(composite);
        let doubt = Arc::clone(&expected) as Arc<dyn Doubt>;
        let settings = consul_watch::Settings {
            wakes: connection.is_none().then(|| self.overview.follow(composite)),
            content: Some(prefix(composite)),
            doubt: Some(doubt),
            ..self.settings.clone()
        };
        let (client, metrics) = (self.client.clone(), Arc::clone(&self.metrics));
        let followed = composite.to_owned();
        // With the claims, which are beside the structure.
        let (prefix, composite) = (format!("composite/{composite}/"), composite.to_owned());
        let task = self.supervisor.spawn(format!("watch of {prefix}"), move |task| {
            let cancel = task.cancel.clone();
            let observer = observer(&composite, Arc::clone(&metrics), state.clone(), task);
            let (client, settings, prefix) = (client.clone(), settings.clone(), prefix.clone());
            let (slot, mut taken) = latest::channel();
            let sender = sender.clone();
            let watching = consul_watch::watch(client, prefix, settings, slot, cancel, observer);
            let passing_on = async move {
                while let Some(snapshot) = taken.recv().await {
                    sender.send_replace(Some(snapshot));
                }
            };
            async move {
                tokio::join!(watching, passing_on);
            }
        });
        Followed {
            snapshot,
            consul,
            _expected: expected,
            task,
            composite: followed,
            metrics: Arc::clone(&self.metrics),
            _connection: connection,
        }
    }
}

/// Records how watching goes, in the metrics and in the state.
fn observer(
    composite: &str,
    metrics: Arc<Metrics>,
    state: watch::Sender<ConsulState>,
    task: Task,
) -> impl Fn(Event<'_>) + Send + Sync + use<> {
    let composite = composite.to_owned();
    move |event| {
        task.beat();
        match &event {
            Event::Answered { .. } => {
                metrics.poll(&composite, RequestResult::ok);
                metrics.polled(&composite, Timestamp::now());
            }
            // One that is woken knows as much as the query that would have woken it.
            Event::Idle => metrics.polled(&composite, Timestamp::now()),
            Event::Failed { .. } => metrics.poll(&composite, RequestResult::error),
            _ => {}
        }
        tracing::debug!(composite, ?event, "Consul is watched");
        let Some(now) = reading(&event) else { return };
        state.send_if_modified(|state| {
            let news = state.reason() != now.reason();
            if news {
                *state = now;
            }
            news
        });
    }
}

/// The state of reading Consul after an event; none if the event does not change it.
fn reading(event: &Event<'_>) -> Option<ConsulState> {
    let trouble = |reason, message: String| ConsulState { trouble: Some((reason, message)) };
    match event {
        Event::Answered { .. } => Some(ConsulState::default()),
        Event::Filtered { .. } => {
            let message = "ACLs hide entries of the structure from this token; nothing is removed for it";
            Some(trouble("ConsulFiltered", message.to_owned()))
        }
        Event::Failed { error: consul::Error::Denied(why), .. } => {
            Some(trouble("ConsulDenied", format!("Consul denies to read the structure: {why}")))
        }
        Event::Failed { error, attempts, .. } if *attempts >= TOLERATED => {
            let message =
                format!("Consul can't be read, and the ConfigMap holds the last answer: {}", error.message());
            Some(trouble("ConsulUnavailable", message))
        }
        _ => None,
    }
}
