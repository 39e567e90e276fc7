//! Keeps one namespace: its Composites, their keys in Consul, and the ConfigMap.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::runtime::events::{Event, EventType};
use kube::{Resource, ResourceExt};
use setpoint_kube::conditions::Finding;
use setpoint_kube::known::News;
use setpoint_kube::lease::Fence;
use setpoint_kube::records::{RecordError, Records};
use setpoint_loop::{Backoff, Pokes, Supervisor, Task};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::composites::Composites;
use super::keys::{Kept, Keys, KeysError, Written, claimant, declaration, intact, owned, reason};
use super::leadership::{Shared, restarts};
use super::memory::{Memory, Structure};
use super::metrics::Result as RequestResult;
use super::namespace::{NamespaceComposites, sort_composites};
use super::publishing::Publishing;
use super::references::next_observation;
use super::report::{Facts, conflict, event, events, not_oldest, published, status_of};
use super::summary::NamespaceSummary;
use crate::api::{Composite, CompositeStatus, FINALIZER, RELEASE_ANNOTATION};
use setpoint_structure::declare::structure_ref_key;
use setpoint_structure::{IssueKind, prefix};

/// The bound of the first pause after something failed.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// How much later than Consul may be asked again keys that were written are looked at once more.
const MARGIN: Duration = Duration::from_secs(1);
/// How long a reconciler gives no sign of life while it waits.
const BEAT: Duration = Duration::from_secs(20);
/// How long writing an Event may take. Nothing depends on it.
const EVENT_LIMIT: Duration = Duration::from_secs(3);

/// Keeps one namespace.
#[derive(Clone, Debug)]
pub(super) struct NamespaceReconciler {
    shared: Arc<Shared>,
    composites: Composites,
    namespace: String,
    pokes: Pokes,
    records: Records<Composite>,
}

/// How much there is to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Everything.
    Everything,
    /// The state of the publisher.
    Report,
}

/// Why a pass did not do all that was to do.
#[derive(Debug)]
enum Unfinished {
    /// Another instance leads.
    Fenced,
    /// Something changed meanwhile: it is looked at again.
    Again,
    /// It failed, and is tried again later.
    Failed(Failure),
}

/// A step that failed.
#[derive(Debug)]
struct Failure {
    /// The name of the Composite that the step was for.
    composite: String,
    step: &'static str,
    error: String,
}

/// Makes of an error why a step for a Composite was not completed.
fn at<E: Into<KeysError>>(step: &'static str, composite: &Composite) -> impl Fn(E) -> Unfinished + use<E> {
    let composite = composite.name_any();
    move |error| {
        let error = match error.into() {
            KeysError::Fenced(_) | KeysError::Record(RecordError::Fenced(_)) => return Unfinished::Fenced,
            KeysError::Record(RecordError::Overtaken) => return Unfinished::Again,
            KeysError::Record(error) => error.to_string(),
            KeysError::Consul(error) => error.message(),
        };
        Unfinished::Failed(Failure { composite: composite.clone(), step, error })
    }
}

// The steps of a pass, as the log names them.
const READ: &str = "reading the Composite";
const SET_FINALIZER: &str = "setting the finalizer";
const REMOVE_FINALIZER: &str = "removing the finalizer";
const WRITE_KEYS: &str = "writing the keys to Consul";
const REMOVE_KEYS: &str = "removing the keys from Consul";
const WRITE_STATUS: &str = "writing the status";

impl NamespaceReconciler {
    pub(super) fn new(shared: &Arc<Shared>, composites: &Composites, namespace: &str, pokes: Pokes) -> Self {
        let limit = shared.settings.request_timeout;
        Self {
            shared: Arc::clone(shared),
            composites: composites.clone(),
            namespace: namespace.to_owned(),
            pokes,
            records: Records::new(shared.client.clone(), namespace, FINALIZER, shared.fence.clone(), limit),
        }
    }

    /// Keeps the namespace until it is cancelled, or until another instance leads.
    pub(super) async fn run(self, task: Task) {
        // However this ends, and be it because the leadership is lost.
        let _forgets = Forgets { shared: Arc::clone(&self.shared), namespace: self.namespace.clone() };
        let settings = &self.shared.settings;
        let pauses = (FIRST_PAUSE, settings.retry_time);
        let children = Supervisor::new(task.cancel.clone(), pauses, fastrand::Rng::new())
            .reporting(restarts(&self.shared.metrics));
        let mut backoff = Backoff::new(pauses.0, pauses.1, fastrand::Rng::new());
        let mut memory = Memory::new(settings);
        let mut need = Need::Everything;
        let mut due = Instant::now() + settings.check_interval;
        let mut second_look: Option<Instant> = None;
        loop {
            let pass = self.pass(need, &mut memory, &children, &task);
            let Some(result) = task.cancel.run_until_cancelled(pass).await else { break };
            match result {
                Ok(()) => {
                    if need == Need::Everything {
                        backoff.reset();
                        due = Instant::now() + settings.check_interval;
                    }
                    if std::mem::take(&mut memory.wrote) {
                        // What is removed right after it was written may look as it did before, and is no news then.
                        second_look = Some(Instant::now() + settings.on_success_delay_time * 2 + MARGIN);
                    }
                }
                Err(Unfinished::Fenced) => break,
                Err(why) => {
                    let pause = backoff.pause();
                    if let Unfinished::Failed(Failure { composite, step, error }) = &why {
                        tracing::warn!(
                            namespace = self.namespace,
                            composite,
                            error,
                            "{step} failed; it is tried again in {} ms",
                            pause.as_millis()
                        );
                    }
                    let (now, retry) = (Instant::now(), Instant::now() + pause);
                    // A time that has come is over: only one that is still to come may be sooner than the retry.
                    due = if due > now { due.min(retry) } else { retry };
                }
            }
            let sooner = second_look.map_or(due, |second_look| due.min(second_look));
            let Some(next) = self.next(&mut memory, &task, sooner).await else { break };
            need = next;
            second_look = second_look.filter(|second_look| *second_look > Instant::now());
        }
        children.shutdown(Duration::from_secs(1)).await;
        self.expect(&mut memory, None);
    }

    /// Waits until there is something to look at; none if nothing is to be looked at any more.
    async fn next(&self, memory: &mut Memory, task: &Task, due: Instant) -> Option<Need> {
        loop {
            task.beat();
            let due = memory.due().map_or(due, |sooner| due.min(sooner));
            let waits = memory.keys().waits(Instant::now());
            let Memory { publishing, reference, structure, declared, .. } = &mut *memory;
            tokio::select! {
                () = task.cancel.cancelled() => return None,
                () = self.pokes.next() => {
                    let all = self.composites.of(&self.namespace);
                    let news = memory.known.news::<Composite>(all.iter().map(|one| &**one));
                    memory.note(news);
                    if news == News::Declared {
                        return Some(Need::Everything);
                    }
                }
                () = sleep_until(due) => return Some(Need::Everything),
                () = sleep(BEAT) => {}
                () = Publishing::news(publishing.as_mut()) => return Some(Need::Report),
                () = Structure::changed(structure.as_mut()) => {
                    if !memory.is_structure_intact() {
                        return Some(Need::Everything);
                    }
                }
                seen = next_observation(reference.as_mut()) => {
                    if !waits && !intact(declared, &structure_ref_key(&self.namespace), &seen) {
                        return Some(Need::Everything);
                    }
                }
            }
        }
    }

    /// Looks at what is to be looked at, when it is its turn.
    async fn pass(
        &self,
        need: Need,
        memory: &mut Memory,
        children: &Supervisor,
        task: &Task,
    ) -> Result<(), Unfinished> {
        let mut turn = std::pin::pin!(self.pokes.turn());
        let _turn = loop {
            // Waiting for others is a sign of life.
            task.beat();
            if let Ok(turn) = timeout(BEAT, turn.as_mut()).await {
                break turn;
            }
        };
        task.beat();
        if need == Need::Report && memory.is_structure_intact() {
            return Box::pin(self.report(memory)).await;
        }
        memory.begin_repair();
        // Only who works takes the memory for it, and few do at a time.
        Box::pin(self.reconcile(memory, children)).await
    }

    /// Looks at everything once, and does what is to be done. What fails for one Composite holds up no other.
    async fn reconcile(&self, memory: &mut Memory, children: &Supervisor) -> Result<(), Unfinished> {
        let all = self.composites.of(&self.namespace);
        memory.known.look::<Composite>(all.iter().map(|one| &**one));
        let NamespaceComposites { winner, others, leaving } = sort_composites(all);
        let mut result = Ok(());
        if winner.is_none() {
            memory.winner = None;
            memory.reference = None;
            memory.structure = None;
            self.expect(memory, None);
            if let Some(publishing) = memory.publishing.take() {
                publishing.stop().await;
            }
        }
        for composite in &leaving {
            result = worse(result, self.release_composite(composite, winner.as_deref()).await);
        }
        if let Some(winner) = &winner {
            for other in &others {
                result = worse(result, self.refuse(other, winner).await);
            }
            result = worse(result, self.keep(winner, memory, children).await);
        }
        self.report_contests(memory).await;
        result
    }

    /// Reports what something else keeps changing, apart from what a condition shows.
    async fn report_contests(&self, memory: &mut Memory) {
        let now = Instant::now();
        let contested = memory.status.contested(now).is_some();
        self.shared.metrics.status_contested(&self.namespace, contested);
        self.shared.metrics.keys_contested(&self.namespace, memory.keys().contested(now).is_some());
        let reported = std::mem::replace(&mut memory.status_reported, contested);
        if let Some(winner) = memory.winner.as_ref().filter(|_| contested && !reported) {
            let note = "something else keeps changing its status, which is written anew less and less often: is there a second operator, or core-operator, in this namespace?";
            tracing::warn!(namespace = self.namespace, composite = winner.name_any(), "{note}");
            self.publish_event(winner, &event(EventType::Warning, "StatusContested", note)).await;
        }
    }

    /// Does what the Composite that counts asks for.
    async fn keep(
        &self,
        seen: &Composite,
        memory: &mut Memory,
        children: &Supervisor,
    ) -> Result<(), Unfinished> {
        let composite = self.records.read(seen).await.map_err(at(READ, seen))?;
        if composite.is_leaving() {
            return Err(Unfinished::Again);
        }
        if let Err(invalid) = composite.declared().validate() {
            let refused = Facts::refused("Invalid", invalid.to_string());
            memory.winner = None;
            memory.structure = None;
            self.expect(memory, None);
            memory.known.remember(&self.report_status(composite, &refused).await?);
            return Ok(());
        }
        let composite = self.records.add_finalizer(composite).await.map_err(at(SET_FINALIZER, seen))?;
        let declaration = declaration(&self.namespace, composite.declared());
        let before = std::mem::replace(&mut memory.declared, declaration.keys());
        self.expect(memory, Some(composite.declared().composite_id()));
        // Before the keys are read: whatever changes after that is seen.
        memory.reference.get_or_insert_with(|| self.shared.structures.follow_reference(&self.namespace));
        memory.follow(&self.shared.structures, composite.declared().composite_id());
        let turns = self.pokes.turns();
        Publishing::ensure(
            &mut memory.publishing,
            (&self.shared, &turns),
            &self.namespace,
            &composite,
            children,
        )
        .await;
        let kept = memory.expected.as_ref().map(|(_, expected)| Kept {
            expected: expected.as_ref(),
            before: &before,
            contest: &memory.keys,
        });
        let (composite, synced, failed) = match self.keys_after(kept).write(composite, &memory.declared).await
        {
            Ok(Written { composite, wrote, conflicts, expected }) => {
                memory.wrote |= wrote;
                if wrote {
                    self.shared.metrics.transaction(&self.namespace, RequestResult::ok);
                }
                self.shared.metrics.conflicts(&self.namespace, conflicts.len());
                memory.declared = expected;
                self.expect(memory, Some(composite.declared().composite_id()));
                let contested = memory.keys().contested(Instant::now()).map(|change| {
                    format!("{change}; it is put back less and less often, until it is left alone")
                });
                let synced = match (contested, conflicts.first()) {
                    (Some(contested), _) => Finding::fails("Contested", contested),
                    (None, None) => {
                        let count = memory.declared.len();
                        Finding::holds("Written", format!("Consul holds its {count} keys"))
                    }
                    (None, Some(first)) => {
                        let claimant = claimant(&composite);
                        Finding::fails("KeyConflict", conflict(&claimant, first, conflicts.len()))
                    }
                };
                (composite, synced, None)
            }
            Err((composite, KeysError::Consul(error))) => {
                self.shared.metrics.transaction(&self.namespace, RequestResult::error);
                (composite, Finding::fails(reason(&error), error.message()), Some(error))
            }
            Err((_, error)) => return Err(at(WRITE_KEYS, seen)(error)),
        };
        let facts = Facts {
            owned: failed.is_none().then(|| memory.declared.keys().cloned().collect()),
            synced: Some(synced),
            ..self.facts(memory)
        };
        let composite = self.report_status(composite, &facts).await?;
        memory.known.remember(&composite);
        memory.winner = Some(composite);
        failed.map_or(Ok(()), |error| Err(at(WRITE_KEYS, seen)(error)))
    }

    /// Registers which keys of the structure this namespace keeps there, so that all who follow it doubt their absence.
    fn expect(&self, memory: &mut Memory, composite: Option<&str>) {
        if let Some((_, before)) = memory.expected.take_if(|(before, _)| Some(before.as_str()) != composite) {
            before.remove(&self.namespace);
        }
        let Some(composite) = composite else { return };
        let prefix = prefix(composite);
        let keys = memory.declared.iter().filter(|(key, _)| key.starts_with(&prefix));
        let keys = keys.map(|(key, value)| (key.clone(), value.clone())).collect();
        let (_, expected) = memory
            .expected
            .get_or_insert_with(|| (composite.to_owned(), self.shared.structures.expected(composite)));
        expected.set(&self.namespace, keys);
    }

    /// Reports the state of the publisher.
    async fn report(&self, memory: &mut Memory) -> Result<(), Unfinished> {
        let news =
            memory.publishing.as_mut().and_then(|publishing| publishing.update_metrics(&self.shared.metrics));
        let Some(winner) = memory.winner.take() else { return Ok(()) };
        if let Some(trouble) = news {
            self.publish_event(&winner, &event(EventType::Warning, "ApplyRetried", &trouble)).await;
        }
        let facts = self.facts(memory);
        let winner = self.report_status(winner, &facts).await?;
        memory.known.remember(&winner);
        memory.winner = Some(winner);
        Ok(())
    }

    /// What is known of the Composite that counts, apart from its keys.
    fn facts(&self, memory: &Memory) -> Facts {
        let (state, consul) = memory.publishing.as_ref().map(Publishing::state).unzip();
        let consul = consul.unwrap_or_default();
        Facts {
            accepted: Finding::holds("Valid", "it is the oldest of its namespace, and valid"),
            synced: None,
            published: published(&self.shared.settings, state.as_ref(), &consul),
            owned: None,
            publisher: state,
        }
    }

    /// Refuses a Composite because an older one counts, and removes what it wrote when there was none.
    async fn refuse(&self, seen: &Composite, winner: &Composite) -> Result<(), Unfinished> {
        let composite = self.records.read(seen).await.map_err(at(READ, seen))?;
        if !owned(&composite).is_empty() {
            let removed = self.keys().remove(&composite, &self.kept(Some(winner))).await;
            removed.map_err(at(REMOVE_KEYS, seen))?;
        }
        let facts = Facts { owned: Some(BTreeSet::new()), ..Facts::refused("NotOldest", not_oldest(winner)) };
        let composite = self.report_status(composite, &facts).await?;
        self.records.remove_finalizer(&composite).await.map_err(at(REMOVE_FINALIZER, seen))
    }

    /// Removes the keys of a Composite that is being deleted, and lets it go.
    async fn release_composite(
        &self,
        seen: &Composite,
        winner: Option<&Composite>,
    ) -> Result<(), Unfinished> {
        let composite = match self.records.read(seen).await {
            Err(RecordError::Overtaken) => return Ok(()),
            other => other.map_err(at(READ, seen))?,
        };
        if !composite.is_guarded() {
            return Ok(());
        }
        match self.keys().remove(&composite, &self.kept(winner)).await {
            Ok(()) => {
                self.publish_event(
                    &composite,
                    &event(EventType::Normal, "KeysRemoved", "its keys are removed from Consul"),
                )
                .await;
            }
            Err(KeysError::Consul(error)) if composite.is_released() => {
                let note =
                    format!("its keys are left in Consul, as its annotation asks: {}", error.message());
                self.publish_event(&composite, &event(EventType::Warning, "KeysLeft", &note)).await;
            }
            Err(KeysError::Consul(error)) => {
                let message = format!(
                    "the deletion waits until its keys can be removed from Consul; the annotation `{RELEASE_ANNOTATION}: \"true\"` lets it go without: {}",
                    error.message()
                );
                let facts = Facts {
                    accepted: Finding::holds("Deleting", "it is being deleted"),
                    synced: Some(Finding::fails("DeletionWaits", message)),
                    published: None,
                    owned: None,
                    publisher: None,
                };
                self.report_status(composite, &facts).await?;
                return Err(at(REMOVE_KEYS, seen)(error));
            }
            Err(error) => return Err(at(REMOVE_KEYS, seen)(error)),
        }
        self.records.remove_finalizer(&composite).await.map_err(at(REMOVE_FINALIZER, seen))
    }

    /// The keys that stay whatever becomes of a Composite that does not count: the reference is that of the one that does.
    fn kept(&self, winner: Option<&Composite>) -> BTreeSet<String> {
        let valid = winner.filter(|winner| winner.declared().validate().is_ok());
        valid.map(|_| structure_ref_key(&self.namespace)).into_iter().collect()
    }

    /// Writes the status that follows from what was found out, if it differs, and reports what changed.
    async fn report_status(&self, composite: Composite, facts: &Facts) -> Result<Composite, Unfinished> {
        let status = status_of(&composite, facts, &self.shared.settings, Timestamp::now());
        let before: Option<CompositeStatus> = composite.status.clone();
        let changes = events(before.as_ref(), &status);
        let mut summary = NamespaceSummary::of(&composite.name_any(), &status);
        if facts.published.is_none() {
            summary.not_published_yet();
        }
        let failed = at(WRITE_STATUS, &composite);
        let written = write_status(&self.records, &self.shared.fence, composite, status).await;
        let composite = written.map_err(failed)?;
        // Of those that do not count nobody waits for anything.
        if facts.accepted.reason != "NotOldest" {
            self.shared.summary.set(&self.namespace, &summary);
        }
        for event in &changes {
            self.publish_event(&composite, event).await;
        }
        Ok(composite)
    }

    async fn publish_event(&self, composite: &Composite, event: &Event) {
        let reference = composite.object_ref(&());
        let published = timeout(EVENT_LIMIT, self.shared.events.recorder().publish(event, &reference)).await;
        if let Ok(Err(error)) = published {
            tracing::debug!(namespace = self.namespace, %error, "an Event can't be reported");
        }
    }

    fn keys(&self) -> Keys<'_> {
        self.keys_after(None)
    }

    /// Works on keys of which some were seen before.
    fn keys_after<'a>(&'a self, kept: Option<Kept<'a>>) -> Keys<'a> {
        Keys { consul: &self.shared.consul, records: &self.records, fence: &self.shared.fence, kept }
    }
}

/// Removes a namespace from the metrics and the summary when its reconciler ends.
struct Forgets {
    shared: Arc<Shared>,
    namespace: String,
}

impl Drop for Forgets {
    fn drop(&mut self) {
        self.shared.metrics.forget(&self.namespace, &IssueKind::ALL.map(IssueKind::as_str));
        self.shared.summary.forget(&self.namespace);
    }
}

/// Writes the status, with the number of this leadership, if it differs.
pub(super) async fn write_status(
    records: &Records<Composite>,
    fence: &Fence,
    mut composite: Composite,
    mut status: CompositeStatus,
) -> Result<Composite, RecordError> {
    status.lease_transitions = fence.elected();
    if composite.status.as_ref() == Some(&status) {
        return Ok(composite);
    }
    composite.status = Some(status);
    records.write_status(composite).await
}

/// The worse of two results: what ends the reconciler, then what failed, then what is to be looked at again.
fn worse(one: Result<(), Unfinished>, other: Result<(), Unfinished>) -> Result<(), Unfinished> {
    let rank = |result: &Result<(), Unfinished>| match result {
        Ok(()) => 0,
        Err(Unfinished::Again) => 1,
        Err(Unfinished::Failed(_)) => 2,
        Err(Unfinished::Fenced) => 3,
    };
    if rank(&other) > rank(&one) { other } else { one }
}
