//! Keeps one ConfigMap as the structure in Consul is, for as long as it is ours.
//!
//! ```text
//!             ┌──────────── regained ◀───────────┐
//!             ▼                                  │
//!  Unread ─▶ Ours: polls Consul, writes ──lost──▶ Foreign: polls nothing, looks at it
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use setpoint_consul::watch::Snapshot;
use setpoint_loop::{Backoff, Repairs, latest};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::desired::{
    COMPOSITE_ANNOTATION, Desired, INDEX_ANNOTATION, TRANSITIONS_ANNOTATION, annotated, payload_of,
};
use super::observations::Observation;
use super::ownership::Ownership;
use super::write::{WriteError, Writer, Written};
use setpoint_structure::{Issue, Payload, transform};

/// Follows Consul and puts snapshots into a slot, until it is dropped.
pub type Poll = Arc<dyn Fn(latest::Sender<Snapshot>) -> BoxFuture<'static, ()> + Send + Sync>;

/// How a ConfigMap is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublisherSettings {
    /// The cloud provider that the payload names.
    pub provider: String,
    /// How often it is looked at, whatever events there were.
    pub check_interval: Duration,
    /// The first pause after a failure, and the longest.
    pub pauses: (Duration, Duration),
    /// How long a payload that lacks namespaces of what was published before this process began is held back.
    pub removal_grace: Duration,
}

/// Where a publisher is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// The ConfigMap was not read yet.
    #[default]
    Unread,
    /// It is ours, and Consul is polled.
    Ours,
    /// It is another's, and Consul is not polled.
    Foreign(Ownership),
}

/// The state of a publisher.
#[derive(Clone, Debug, Default)]
pub struct PublishState {
    /// Whether the ConfigMap is ours.
    pub standing: Standing,
    /// The latest snapshot of Consul.
    pub snapshot: Option<Snapshot>,
    /// The index that the ConfigMap was last brought to, and when.
    pub applied: Option<(u64, Timestamp)>,
    /// What could not be used of the latest snapshot.
    pub issues: Vec<Issue>,
    /// How many attempts have failed since the last that succeeded.
    pub failures: u32,
    /// Why the last attempt failed, if it did.
    pub failure: Option<String>,
    /// How many writes there were.
    pub writes: u64,
    /// How long it took from the latest answer of Consul until the ConfigMap was written.
    pub latency: Option<Duration>,
    /// The name of whoever keeps changing the ConfigMap, if somebody does.
    pub contested: Option<String>,
}

/// Keeps one ConfigMap.
#[derive(Clone)]
pub struct Publisher {
    /// What the watch of ConfigMaps observed of it.
    pub observations: watch::Receiver<Observation>,
    /// Writes it.
    pub writer: Writer,
    /// The id of the composite whose structure is published.
    pub composite: String,
    /// The Composite that it goes with.
    pub owner: OwnerReference,
    /// How it is kept.
    pub settings: PublisherSettings,
    /// Each look at the ConfigMap takes one of these, which many publishers share.
    pub turns: Arc<Semaphore>,
    /// Follows Consul.
    pub poll: Poll,
    /// Takes the state whenever it changes.
    pub state: watch::Sender<PublishState>,
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("target", self.writer.target()).finish_non_exhaustive()
    }
}

/// What is known of the ConfigMap.
enum Known {
    /// It may have changed since it was read.
    Unsure,
    /// This is what it was when it was last read or observed.
    As(Option<Box<ConfigMap>>),
}

/// What goes on inside of one run.
struct Run {
    known: Known,
    previous: Option<Payload>,
    backoff: Backoff,
    /// Follows Consul while the ConfigMap is ours. It goes on in the task of the publisher, as there may be very many of them.
    polling: Option<BoxFuture<'static, ()>>,
    sender: latest::Sender<Snapshot>,
    /// What was written last: if it has to be written again, something else changed it.
    written: Option<Desired>,
    repairs: Repairs,
    /// When a repair may be made that had to wait, or when it is to be looked whether the ConfigMap is left alone.
    repair_at: Option<Instant>,
    /// Until when a payload is held back that lacks what was published before.
    held_until: Option<Instant>,
    /// When the snapshot came that was not written yet.
    came: Option<Instant>,
}

impl Publisher {
    /// Keeps the ConfigMap until it is cancelled, or until another instance leads.
    pub async fn run(self, cancel: CancellationToken) {
        let (sender, mut snapshots) = latest::channel();
        let (first, ceiling) = self.settings.pauses;
        let mut run = Run {
            known: Known::Unsure,
            previous: None,
            backoff: Backoff::new(first, ceiling, fastrand::Rng::new()),
            polling: None,
            sender,
            written: None,
            repairs: Repairs::new(first, self.settings.check_interval),
            repair_at: None,
            held_until: None,
            came: None,
        };
        let mut observations = self.observations.clone();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Ok(()) = observations.changed() => {
                    let seen = observations.borrow_and_update().version.clone();
                    // Our own writes come back as changes; they are no news.
                    if seen.is_some() && seen.as_deref() == run.known.version() {
                        continue;
                    }
                    run.known = Known::Unsure;
                }
                () = poll(&mut run.polling) => {}
                Some(snapshot) = snapshots.recv() => {
                    run.came.get_or_insert_with(Instant::now);
                    self.state.send_modify(|state| state.snapshot = Some(snapshot));
                }
                () = sleep_until(due) => run.known = Known::Unsure,
            }
            let pass = async {
                let _turn = tokio::select! {
                    biased;
                    // Nobody closes it.
                    turn = self.turns.acquire() => turn.ok(),
                    () = poll(&mut run.polling) => None,
                };
                // Whatever came in the meantime is newer than what woke us.
                if let Some(snapshot) = snapshots.try_recv() {
                    self.state.send_modify(|state| state.snapshot = Some(snapshot));
                }
                // Only who works takes the memory for it, and few do at a time.
                Box::pin(self.pass(&mut run)).await
            };
            let Some(passed) = cancel.run_until_cancelled(pass).await else { break };
            let pause = match passed {
                Ok(()) => {
                    run.backoff.reset();
                    self.settings.check_interval
                }
                Err(error) if error.is_fenced() => break,
                Err(error) => {
                    run.known = Known::Unsure;
                    let (message, pause) = (error.to_string(), run.backoff.pause());
                    let target = self.writer.target();
                    tracing::warn!(
                        namespace = target.namespace,
                        config_map = target.name,
                        error = message,
                        "applying the ConfigMap failed; it is tried again in {} ms",
                        pause.as_millis()
                    );
                    self.state.send_modify(|state| {
                        state.failures = state.failures.saturating_add(1);
                        state.failure = Some(message);
                    });
                    pause
                }
            };
            due = Instant::now() + pause;
            if let Some(repair) = run.repair_at {
                due = due.min(repair);
            }
        }
    }

    /// Looks at everything once, and does what is to be done.
    async fn pass(&self, run: &mut Run) -> Result<(), WriteError> {
        let current = match std::mem::replace(&mut run.known, Known::Unsure) {
            Known::As(current) => current.map(|current| *current),
            Known::Unsure => self.writer.read().await?,
        };
        let found = self.writer.ownership(current.as_ref());
        if !found.is_ours() {
            return self.stop_managing(run, found, current).await;
        }
        if run.polling.is_none() {
            run.polling = Some((self.poll)(run.sender.clone()));
        }
        self.state.send_if_modified(|state| {
            let news = state.standing != Standing::Ours;
            state.standing = Standing::Ours;
            news
        });
        let snapshot = self.state.borrow().snapshot.clone();
        let complete = snapshot.as_ref().map(|snapshot| self.desired(snapshot, run, current.as_ref()));
        let held = complete.as_ref().and_then(|(desired, _)| self.hold(run, current.as_ref(), desired));
        let applies = complete.is_some() && held.is_none();
        let next = complete.filter(|_| applies).or_else(|| Some((self.stamp(current.as_ref())?, Vec::new())));
        let Some((desired, issues)) = next else {
            run.known = Known::of(current);
            run.repair_at = held;
            return Ok(());
        };
        let waits = self.must_wait(run, current.as_ref(), &desired);
        if let Some(held) = held {
            run.repair_at = Some(run.repair_at.map_or(held, |repair| repair.min(held)));
        }
        if waits {
            run.known = Known::of(current);
            return Ok(());
        }
        match self.writer.write(current, &desired).await? {
            Written::NotOurs(found, current) => return self.stop_managing(run, found, current).await,
            Written::Unchanged(current) => {
                run.known = Known::of(Some(current));
                run.came = run.came.filter(|_| !applies);
                self.settled(&desired, issues, applies, false, None);
            }
            Written::Changed(current) => {
                tracing::info!(
                    namespace = self.writer.target().namespace,
                    index = desired.index,
                    "the ConfigMap is written"
                );
                run.known = Known::of(Some(current));
                let came = run.came.take_if(|_| applies);
                self.settled(&desired, issues, applies, true, came.map(|came| came.elapsed()));
                run.written = Some(desired.clone());
            }
        }
        if applies {
            run.previous = Payload::from_json(&desired.payload).ok();
        }
        Ok(())
    }

    /// Returns whether a repair has to wait, because something else keeps changing the ConfigMap; reports it then.
    fn must_wait(&self, run: &mut Run, current: Option<&ConfigMap>, desired: &Desired) -> bool {
        let now = Instant::now();
        let met = current.is_some_and(|current| desired.is_met_by(current, self.writer.target()));
        let repair = !met && run.written.as_ref() == Some(desired);
        let waits = if repair { run.repairs.take(now).err() } else { None };
        let contested = run.repairs.is_contested(now).then(|| {
            let rival = current.and_then(|current| rival(current, &self.writer.target().managed_by));
            rival.unwrap_or_else(|| "something else, which uses the same name or deletes it,".to_owned())
        });
        run.repair_at = waits.or_else(|| contested.as_ref().and_then(|_| run.repairs.quiet_at()));
        self.state.send_if_modified(|state| {
            let news = state.contested != contested;
            state.contested = contested;
            news
        });
        waits.is_some()
    }

    /// The payload that is published of this composite, whoever published it.
    fn published(&self, current: Option<&ConfigMap>) -> Option<Payload> {
        // What another composite had in the same place says nothing about this one.
        let of = annotated::<String>(current?, COMPOSITE_ANNOTATION);
        let same = of.is_none_or(|composite| composite == self.composite);
        payload_of(current.filter(|_| same)?).and_then(|payload| Payload::from_json(payload).ok())
    }

    /// Returns until when a payload is held back: as long as this publisher has not published anything, it can't know whether
    /// what is missing was removed on purpose, or is about to be put back by whom it belongs to.
    fn hold(&self, run: &mut Run, current: Option<&ConfigMap>, desired: &Desired) -> Option<Instant> {
        if run.previous.is_some() {
            return None;
        }
        let (before, next) = (self.published(current)?, Payload::from_json(&desired.payload).ok()?);
        let next: BTreeSet<_> = next.namespaces().collect();
        if before.namespaces().all(|namespace| next.contains(namespace)) {
            return None;
        }
        let until = *run.held_until.get_or_insert_with(|| Instant::now() + self.settings.removal_grace);
        (until > Instant::now()).then_some(until)
    }

    /// What belongs into the ConfigMap by a snapshot. Groups that are ambiguous keep what was last published.
    fn desired(&self, snapshot: &Snapshot, run: &Run, current: Option<&ConfigMap>) -> (Desired, Vec<Issue>) {
        let previous = run.previous.clone().or_else(|| self.published(current));
        let (payload, issues) = transform(&snapshot.entries, &self.settings.provider, previous.as_ref());
        let desired = Desired {
            payload: payload.to_json(),
            composite: self.composite.clone(),
            index: snapshot.index,
            transitions: self.writer.fence().transitions(),
            owner: self.owner.clone(),
        };
        (desired, issues)
    }

    /// What is there already, with the mark of this leader: whatever a former one has on its way is refused then.
    fn stamp(&self, current: Option<&ConfigMap>) -> Option<Desired> {
        let current = current?;
        let transitions = self.writer.fence().transitions();
        if annotated(current, TRANSITIONS_ANNOTATION).is_none_or(|found: i32| found == transitions) {
            return None;
        }
        Some(Desired {
            payload: payload_of(current)?.to_owned(),
            composite: annotated(current, COMPOSITE_ANNOTATION)?,
            index: annotated(current, INDEX_ANNOTATION)?,
            transitions,
            owner: self.owner.clone(),
        })
    }

    /// Stops polling at once, and takes back what would tie the ConfigMap to us.
    async fn stop_managing(
        &self,
        run: &mut Run,
        found: Ownership,
        current: Option<ConfigMap>,
    ) -> Result<(), WriteError> {
        run.polling = None;
        run.sender.withdraw();
        run.previous = None;
        run.held_until = None;
        self.state.send_modify(|state| {
            *state = PublishState {
                standing: Standing::Foreign(found.clone()),
                writes: state.writes,
                ..PublishState::default()
            };
        });
        run.known = Known::Unsure;
        if let (Some(current), Ownership::HandedOver { .. }) = (current, found) {
            self.writer.release(&current).await?;
        }
        Ok(())
    }

    /// Records that the ConfigMap is as it should be.
    ///
    /// `latency` is how long after Consul's answer it was written, if it was for that.
    fn settled(
        &self,
        desired: &Desired,
        issues: Vec<Issue>,
        applied: bool,
        written: bool,
        latency: Option<Duration>,
    ) {
        self.state.send_modify(|state| {
            state.failures = 0;
            state.failure = None;
            state.writes += u64::from(written);
            if written {
                state.latency = latency;
            }
            if applied {
                state.issues = issues;
                match state.applied {
                    Some((index, _)) if index == desired.index && !written => {}
                    _ => state.applied = Some((desired.index, Timestamp::now())),
                }
            }
        });
    }
}

/// Follows Consul, if it is followed; it never ends.
async fn poll(polling: &mut Option<BoxFuture<'static, ()>>) {
    if let Some(following) = polling {
        following.await;
        *polling = None;
    }
    std::future::pending::<()>().await;
}

/// The name of whoever else manages fields of a ConfigMap: the last that wrote to it.
fn rival(current: &ConfigMap, managed_by: &str) -> Option<String> {
    let claims = current.metadata.managed_fields.iter().flatten();
    let others = claims.filter(|claim| claim.manager.as_deref() != Some(managed_by));
    let last = others.max_by_key(|claim| claim.time.as_ref().map(|time| time.0))?;
    Some(format!("`{}`", last.manager.as_deref()?))
}

impl Known {
    /// What it is, without who manages which field: that is most of it, and is looked up where something else has changed it.
    fn of(current: Option<ConfigMap>) -> Self {
        Self::As(current.map(|mut current| {
            current.metadata.managed_fields = None;
            Box::new(current)
        }))
    }

    fn version(&self) -> Option<&str> {
        match self {
            Self::As(Some(map)) => map.metadata.resource_version.as_deref(),
            Self::Unsure | Self::As(None) => None,
        }
    }
}
