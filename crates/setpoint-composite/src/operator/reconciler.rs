//! Keeps one namespace: its Composites, their keys in Consul, and the ConfigMap.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::runtime::events::{Event, EventType};
use kube::{Resource, ResourceExt};
use setpoint_kube::conditions::Finding;
use setpoint_kube::lease::Fence;
use setpoint_kube::records::{RecordError, Records};
use setpoint_loop::{Backoff, Pokes, Supervisor, Task};
use tokio::time::{Instant, sleep_until, timeout};

use super::composites::Composites;
use super::keys::{Keys, KeysError, Written, claimant, declaration, intact, owned, reason};
use super::leadership::{Shared, log_restart};
use super::metrics::Result as RequestResult;
use super::namespace::{NamespaceComposites, sort_composites};
use super::publishing::Publishing;
use super::references::{Sighted, next_sight};
use super::report::{Facts, conflict, event, events, not_oldest, published, status_of};
use super::structures::Expected;
use crate::api::{Composite, CompositeStatus, FINALIZER, RELEASE_ANNOTATION};
use crate::declare::structure_ref_key;
use crate::structure::{IssueKind, prefix};

/// The bound of the first pause after something failed.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// How much later than Consul may be asked again keys that were written are looked at once more.
const MARGIN: Duration = Duration::from_secs(1);
/// How long a status that something else changed is left as it is.
const STATUS_REPAIR: Duration = Duration::from_secs(5);
/// How long an Event may take to be told. Nothing depends on it.
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

/// What is known between two passes.
#[derive(Debug, Default)]
struct Memory {
    publishing: Option<Publishing>,
    /// What is seen of the key that refers to the structure.
    reference: Option<Sighted>,
    /// The Composite that counts, as it was last read or written.
    winner: Option<Composite>,
    declared: BTreeMap<String, String>,
    /// The Composites of the namespace as they were last looked at, or written.
    known: BTreeMap<String, Composite>,
    /// When a status is repaired that something else changed.
    repair_at: Option<Instant>,
    /// What the namespace keeps in which structure, as all that follow it are told.
    expected: Option<(String, Arc<Expected>)>,
    /// Whether something was written to Consul that was not looked at since.
    wrote: bool,
}

impl Memory {
    /// Remembers a Composite as it was just written.
    fn remember(&mut self, composite: &Composite) {
        self.known.insert(composite.uid().unwrap_or_default(), composite.clone());
    }

    /// Whether the latest snapshot shows our own keys as they should be.
    fn is_structure_intact(&self) -> bool {
        let (Some(publishing), Some(winner)) = (&self.publishing, &self.winner) else { return true };
        let (state, _) = publishing.state();
        let Some(snapshot) = &state.snapshot else { return true };
        intact(&self.declared, &prefix(winner.declared().composite_id()), snapshot.present())
    }
}

/// What is new about the Composites of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// Nothing: it was our own write.
    None,
    /// Something else wrote a status.
    Status,
    /// One was made, changed or deleted.
    Declared,
}

/// How much there is to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Everything.
    Everything,
    /// What the publisher says.
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
    Failed(String),
}

impl From<RecordError> for Unfinished {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Fenced(_) => Self::Fenced,
            RecordError::Overtaken => Self::Again,
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<KeysError> for Unfinished {
    fn from(error: KeysError) -> Self {
        match error {
            KeysError::Fenced(_) => Self::Fenced,
            KeysError::Record(error) => error.into(),
            KeysError::Consul(error) => Self::Failed(error.message()),
        }
    }
}

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
        let settings = &self.shared.settings;
        let pauses = (FIRST_PAUSE, settings.retry_time);
        let children =
            Supervisor::new(task.cancel.clone(), pauses, fastrand::Rng::new()).reporting(log_restart);
        let mut backoff = Backoff::new(pauses.0, pauses.1, fastrand::Rng::new());
        let mut memory = Memory::default();
        let mut need = Need::Everything;
        let mut due = Instant::now() + settings.check_interval;
        let mut second_look: Option<Instant> = None;
        loop {
            task.beat();
            let pass = Box::pin(self.pass(need, &mut memory, &children));
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
                    if let Unfinished::Failed(error) = &why {
                        let composite = memory.winner.as_ref().map(ResourceExt::name_any);
                        tracing::warn!(
                            namespace = self.namespace,
                            composite,
                            error,
                            "reconciling the Composite failed; it is tried again in {} ms",
                            pause.as_millis()
                        );
                    }
                    let (now, retry) = (Instant::now(), Instant::now() + pause);
                    // A time that has come is over: only one that is still to come may be sooner than the retry.
                    due = if due > now { due.min(retry) } else { retry };
                }
            }
            let sooner = [second_look, memory.repair_at].into_iter().flatten().fold(due, Instant::min);
            let Some(next) = self.next(&mut memory, &task, sooner).await else { break };
            need = next;
            second_look = second_look.filter(|second_look| *second_look > Instant::now());
            if need == Need::Everything {
                memory.repair_at = None;
            }
        }
        children.shutdown(Duration::from_secs(1)).await;
        self.expect(&mut memory, None);
        self.shared.metrics.forget(&self.namespace, &IssueKind::ALL.map(IssueKind::as_str));
    }

    /// Waits until there is something to look at; none if nothing is to be looked at any more.
    async fn next(&self, memory: &mut Memory, task: &Task, mut due: Instant) -> Option<Need> {
        loop {
            let Memory { publishing, reference, declared, .. } = &mut *memory;
            tokio::select! {
                () = task.cancel.cancelled() => return None,
                () = self.pokes.next() => match self.news(memory) {
                    News::Declared => return Some(Need::Everything),
                    News::Status => {
                        // Not at once: another that does the same would answer for ever.
                        let repair = Instant::now() + STATUS_REPAIR;
                        memory.repair_at.get_or_insert(repair);
                        due = due.min(repair);
                    }
                    News::None => {}
                },
                () = sleep_until(due) => return Some(Need::Everything),
                () = Publishing::news(publishing.as_mut()) => return Some(Need::Report),
                seen = next_sight(reference.as_mut()) => {
                    if !intact(declared, &structure_ref_key(&self.namespace), &seen) {
                        return Some(Need::Everything);
                    }
                }
            }
        }
    }

    /// Returns what is new about the Composites of the namespace, compared with how they were last looked at or written.
    fn news(&self, memory: &Memory) -> News {
        let now = self.composites.of(&self.namespace);
        if now.len() != memory.known.len() {
            return News::Declared;
        }
        let mut news = News::None;
        for composite in now {
            let Some(known) = memory.known.get(&composite.uid().unwrap_or_default()) else {
                return News::Declared;
            };
            let declared = |one: &Composite| {
                let metadata = one.meta();
                let deleted = metadata.deletion_timestamp.is_some();
                (metadata.generation, deleted, metadata.finalizers.clone(), metadata.annotations.clone())
            };
            if declared(&composite) != declared(known) {
                return News::Declared;
            }
            if composite.status != known.status {
                news = News::Status;
            }
        }
        news
    }

    async fn pass(&self, need: Need, memory: &mut Memory, children: &Supervisor) -> Result<(), Unfinished> {
        if need == Need::Report && memory.is_structure_intact() {
            return self.report(memory).await;
        }
        self.reconcile(memory, children).await
    }

    /// Looks at everything once, and does what is to be done. What fails for one Composite holds up no other.
    async fn reconcile(&self, memory: &mut Memory, children: &Supervisor) -> Result<(), Unfinished> {
        let _turn = self.pokes.turn().await;
        let all = self.composites.of(&self.namespace);
        memory.known = all.iter().map(|one| (one.uid().unwrap_or_default(), Composite::clone(one))).collect();
        let NamespaceComposites { winner, others, leaving } = sort_composites(all);
        let mut result = Ok(());
        if winner.is_none() {
            memory.winner = None;
            memory.reference = None;
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
        result
    }

    /// Does what the Composite that counts asks for.
    async fn keep(
        &self,
        seen: &Composite,
        memory: &mut Memory,
        children: &Supervisor,
    ) -> Result<(), Unfinished> {
        let composite = self.records.read(seen).await?;
        if composite.is_leaving() {
            return Err(Unfinished::Again);
        }
        if let Err(invalid) = composite.declared().validate() {
            let refused = Facts::refused("Invalid", invalid.to_string());
            memory.winner = None;
            self.expect(memory, None);
            memory.remember(&self.report_status(composite, &refused).await?);
            return Ok(());
        }
        let composite = self.records.add_finalizer(composite).await?;
        let declaration = declaration(&self.namespace, composite.declared());
        let before = std::mem::replace(&mut memory.declared, declaration.keys());
        self.expect(memory, Some(composite.declared().composite_id()));
        // Before the keys are read: whatever changes after that is seen.
        memory.reference.get_or_insert_with(|| self.shared.structures.follow_reference(&self.namespace));
        Publishing::ensure(&mut memory.publishing, &self.shared, &self.namespace, &composite, children).await;
        let (composite, synced, failed) = match self
            .keys_after(memory.expected.as_ref().map(|(_, kept)| (kept.as_ref(), &before)))
            .write(composite, &memory.declared)
            .await
        {
            Ok(Written { composite, wrote, conflicts, expected }) => {
                memory.wrote |= wrote;
                if wrote {
                    self.shared.metrics.transaction(&self.namespace, RequestResult::ok);
                }
                self.shared.metrics.conflicts(&self.namespace, conflicts.len());
                memory.declared = expected;
                self.expect(memory, Some(composite.declared().composite_id()));
                let synced = match conflicts.first() {
                    None => {
                        let count = memory.declared.len();
                        Finding::holds("Written", format!("Consul holds its {count} keys"))
                    }
                    Some(first) => {
                        Finding::fails("KeyConflict", conflict(&claimant(&composite), first, conflicts.len()))
                    }
                };
                (composite, synced, None)
            }
            Err((composite, KeysError::Consul(error))) => {
                self.shared.metrics.transaction(&self.namespace, RequestResult::error);
                (composite, Finding::fails(reason(&error), error.message()), Some(error))
            }
            Err((_, error)) => return Err(error.into()),
        };
        let facts = Facts {
            owned: failed.is_none().then(|| memory.declared.keys().cloned().collect()),
            synced: Some(synced),
            ..self.facts(memory)
        };
        let composite = self.report_status(composite, &facts).await?;
        memory.remember(&composite);
        memory.winner = Some(composite);
        failed.map_or(Ok(()), |error| Err(Unfinished::Failed(error.message())))
    }

    /// Tells all that follow the structure which keys of it this namespace keeps there, so that their absence is doubted.
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

    /// Says what the publisher says.
    async fn report(&self, memory: &mut Memory) -> Result<(), Unfinished> {
        let news =
            memory.publishing.as_mut().and_then(|publishing| publishing.update_metrics(&self.shared.metrics));
        let Some(winner) = memory.winner.take() else { return Ok(()) };
        if let Some(trouble) = news {
            self.publish_event(&winner, &event(EventType::Warning, "ApplyRetried", &trouble)).await;
        }
        let facts = self.facts(memory);
        let winner = self.report_status(winner, &facts).await?;
        memory.remember(&winner);
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

    /// Tells a Composite that another stands before it, and removes what it wrote when it did not.
    async fn refuse(&self, seen: &Composite, winner: &Composite) -> Result<(), Unfinished> {
        let composite = self.records.read(seen).await?;
        if !owned(&composite).is_empty() {
            self.keys().remove(&composite, &self.kept(Some(winner))).await?;
        }
        let facts = Facts { owned: Some(BTreeSet::new()), ..Facts::refused("NotOldest", not_oldest(winner)) };
        let composite = self.report_status(composite, &facts).await?;
        Ok(self.records.remove_finalizer(&composite).await?)
    }

    /// Removes the keys of a Composite that is being deleted, and lets it go.
    async fn release_composite(
        &self,
        seen: &Composite,
        winner: Option<&Composite>,
    ) -> Result<(), Unfinished> {
        let composite = match self.records.read(seen).await {
            Err(RecordError::Overtaken) => return Ok(()),
            other => other?,
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
                return Err(Unfinished::Failed(error.message()));
            }
            Err(error) => return Err(error.into()),
        }
        match self.records.remove_finalizer(&composite).await {
            Err(RecordError::Overtaken) => Err(Unfinished::Again),
            other => Ok(other?),
        }
    }

    /// The keys that stay whatever becomes of a Composite that does not count: the reference is that of the one that does.
    fn kept(&self, winner: Option<&Composite>) -> BTreeSet<String> {
        let valid = winner.filter(|winner| winner.declared().validate().is_ok());
        valid.map(|_| structure_ref_key(&self.namespace)).into_iter().collect()
    }

    /// Writes the status that follows from what was found out, if it differs, and tells what changed.
    async fn report_status(&self, composite: Composite, facts: &Facts) -> Result<Composite, Unfinished> {
        let status = status_of(&composite, facts, &self.shared.settings, Timestamp::now());
        let before: Option<CompositeStatus> = composite.status.clone();
        let told = events(before.as_ref(), &status);
        let composite = write_status(&self.records, &self.shared.fence, composite, status).await?;
        for event in &told {
            self.publish_event(&composite, event).await;
        }
        Ok(composite)
    }

    async fn publish_event(&self, composite: &Composite, event: &Event) {
        let reference = composite.object_ref(&());
        let said = timeout(EVENT_LIMIT, self.shared.recorder.publish(event, &reference)).await;
        if let Ok(Err(error)) = said {
            tracing::debug!(namespace = self.namespace, %error, "an Event can't be told");
        }
    }

    fn keys(&self) -> Keys<'_> {
        self.keys_after(None)
    }

    /// Works on keys of which some were seen before.
    fn keys_after<'a>(&'a self, kept: Option<(&'a Expected, &'a BTreeMap<String, String>)>) -> Keys<'a> {
        Keys { consul: &self.shared.consul, records: &self.records, fence: &self.shared.fence, kept }
    }
}

/// Writes the status, with the number of this term, if it differs.
pub(super) async fn write_status(
    records: &Records<Composite>,
    fence: &Fence,
    mut composite: Composite,
    mut status: CompositeStatus,
) -> Result<Composite, RecordError> {
    status.lease_transitions = fence.term();
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
