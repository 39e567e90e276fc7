//! Keeps one namespace: its Composites, their keys in Consul, and the ConfigMap.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::runtime::events::{Event, EventType};
use kube::{Resource, ResourceExt};
use setpoint_loop::{Backoff, Supervisor, Task};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::composites::Composites;
use super::keys::{Keys, KeysError, declaration, intact, owned, reason};
use super::publishing::Publishing;
use super::record::{RecordError, Records};
use super::references::{Sighted, next_sight};
use super::report::{Facts, event, events, not_oldest, published, status_of};
use super::roster::{Roster, roster};
use super::term::Shared;
use crate::api::{Composite, CompositeStatus, Finding, RELEASE_ANNOTATION};
use crate::declare::structure_ref_key;
use crate::observe::RequestResult;
use crate::structure::{IssueKind, prefix};

/// The bound of the first pause after something failed.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// How much later than Consul may be asked again keys that were written are looked at once more.
const MARGIN: Duration = Duration::from_secs(1);
/// How long an Event may take to be told. Nothing depends on it.
const EVENT_LIMIT: Duration = Duration::from_secs(3);

/// Keeps one namespace.
#[derive(Clone, Debug)]
pub(super) struct Keeper {
    shared: Arc<Shared>,
    composites: Composites,
    namespace: String,
    poke: Arc<Notify>,
    records: Records,
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
    /// Whether something was written to Consul that was not looked at since.
    wrote: bool,
}

impl Memory {
    /// Whether the latest snapshot shows our own keys as they should be.
    fn is_structure_intact(&self) -> bool {
        let (Some(publishing), Some(winner)) = (&self.publishing, &self.winner) else { return true };
        let (state, _) = publishing.state();
        let Some(snapshot) = &state.snapshot else { return true };
        intact(&self.declared, &prefix(winner.declared().composite_id()), &snapshot.entries)
    }
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
            KeysError::Consul(error) => Self::Failed(error.told()),
        }
    }
}

impl Keeper {
    pub(super) fn new(
        shared: &Arc<Shared>,
        composites: &Composites,
        namespace: &str,
        poke: &Arc<Notify>,
    ) -> Self {
        let limit = shared.settings.request_timeout;
        Self {
            shared: Arc::clone(shared),
            composites: composites.clone(),
            namespace: namespace.to_owned(),
            poke: Arc::clone(poke),
            records: Records::new(shared.client.clone(), namespace, shared.fence.clone(), limit),
        }
    }

    /// Keeps the namespace until it is cancelled, or until another instance leads.
    pub(super) async fn run(self, task: Task) {
        let settings = &self.shared.settings;
        let pauses = (FIRST_PAUSE, settings.retry_time);
        let children = Supervisor::new(task.cancel.clone(), pauses, fastrand::Rng::new());
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
                    if let Unfinished::Failed(error) = &why {
                        tracing::warn!(
                            namespace = self.namespace,
                            error,
                            "a Composite is not as it should be"
                        );
                    }
                    let (now, retry) = (Instant::now(), Instant::now() + backoff.pause());
                    // A time that has come is over: only one that is still to come may be sooner than the retry.
                    due = if due > now { due.min(retry) } else { retry };
                }
            }
            let sooner = second_look.map_or(due, |second_look| second_look.min(due));
            let Some(next) = self.next(&mut memory, &task, sooner).await else { break };
            need = next;
            second_look = second_look.filter(|second_look| *second_look > Instant::now());
        }
        children.shutdown(Duration::from_secs(1)).await;
        self.shared.metrics.forget(&self.namespace, &IssueKind::ALL.map(IssueKind::as_str));
    }

    /// Waits until there is something to look at; none if nothing is to be looked at any more.
    async fn next(&self, memory: &mut Memory, task: &Task, due: Instant) -> Option<Need> {
        loop {
            let Memory { publishing, reference, declared, .. } = &mut *memory;
            tokio::select! {
                () = task.cancel.cancelled() => return None,
                () = self.poke.notified() => return Some(Need::Everything),
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

    async fn pass(&self, need: Need, memory: &mut Memory, children: &Supervisor) -> Result<(), Unfinished> {
        if need == Need::Report && memory.is_structure_intact() {
            return self.report(memory).await;
        }
        self.reconcile(memory, children).await
    }

    /// Looks at everything once, and does what is to be done. What fails for one Composite holds up no other.
    async fn reconcile(&self, memory: &mut Memory, children: &Supervisor) -> Result<(), Unfinished> {
        // Nobody closes it.
        let _turn = self.shared.passes.acquire().await;
        let Roster { winner, others, leaving } = roster(self.composites.of(&self.namespace));
        let mut result = Ok(());
        if winner.is_none() {
            memory.winner = None;
            memory.reference = None;
            if let Some(publishing) = memory.publishing.take() {
                publishing.stop().await;
            }
        }
        for composite in &leaving {
            result = worse(result, self.part_with(composite).await);
        }
        if let Some(winner) = &winner {
            for other in &others {
                result = worse(result, self.turn_down(other, winner).await);
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
            return self.tell(composite, &refused).await.map(drop);
        }
        let composite = self.records.guard(composite).await?;
        let declaration = declaration(&self.namespace, composite.declared());
        memory.declared = declaration.keys();
        // Before the keys are read: whatever changes after that is seen.
        memory.reference.get_or_insert_with(|| self.shared.structures.follow_reference(&self.namespace));
        Publishing::ensure(&mut memory.publishing, &self.shared, &self.namespace, &composite, children).await;
        let (composite, synced, failed) = match self.keys().write(composite, &memory.declared).await {
            Ok((composite, wrote)) => {
                memory.wrote |= wrote;
                if wrote {
                    self.shared.metrics.transaction(&self.namespace, RequestResult::ok);
                }
                let count = memory.declared.len();
                (composite, Finding::holds("Written", format!("Consul holds its {count} keys")), None)
            }
            Err((composite, KeysError::Consul(error))) => {
                self.shared.metrics.transaction(&self.namespace, RequestResult::error);
                (composite, Finding::fails(reason(&error), error.told()), Some(error))
            }
            Err((_, error)) => return Err(error.into()),
        };
        let facts = Facts {
            owned: failed.is_none().then(|| memory.declared.keys().cloned().collect()),
            synced: Some(synced),
            ..self.facts(memory)
        };
        memory.winner = Some(self.tell(composite, &facts).await?);
        failed.map_or(Ok(()), |error| Err(Unfinished::Failed(error.told())))
    }

    /// Says what the publisher says.
    async fn report(&self, memory: &mut Memory) -> Result<(), Unfinished> {
        let news =
            memory.publishing.as_mut().and_then(|publishing| publishing.take_stock(&self.shared.metrics));
        let Some(winner) = memory.winner.take() else { return Ok(()) };
        if let Some(trouble) = news {
            self.say(&winner, &event(EventType::Warning, "ApplyRetried", &trouble)).await;
        }
        let facts = self.facts(memory);
        memory.winner = Some(self.tell(winner, &facts).await?);
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
    async fn turn_down(&self, seen: &Composite, winner: &Composite) -> Result<(), Unfinished> {
        let composite = self.records.read(seen).await?;
        let mine = owned(&composite);
        if !mine.is_empty() {
            self.keys().remove(&composite, &mine, &self.declared_by_others(&composite)).await?;
        }
        let facts = Facts { owned: Some(BTreeSet::new()), ..Facts::refused("NotOldest", not_oldest(winner)) };
        let composite = self.tell(composite, &facts).await?;
        Ok(self.records.unguard(&composite).await?)
    }

    /// Removes the keys of a Composite that is being deleted, and lets it go.
    async fn part_with(&self, seen: &Composite) -> Result<(), Unfinished> {
        let composite = match self.records.read(seen).await {
            Err(RecordError::Overtaken) => return Ok(()),
            other => other?,
        };
        if !composite.is_guarded() {
            return Ok(());
        }
        let mine = owned(&composite);
        match self.keys().remove(&composite, &mine, &self.declared_by_others(&composite)).await {
            Ok(()) => {
                self.say(
                    &composite,
                    &event(EventType::Normal, "KeysRemoved", "its keys are removed from Consul"),
                )
                .await;
            }
            Err(KeysError::Consul(error)) if composite.is_released() => {
                let note = format!("its keys are left in Consul, as its annotation asks: {}", error.told());
                self.say(&composite, &event(EventType::Warning, "KeysLeft", &note)).await;
            }
            Err(KeysError::Consul(error)) => {
                let message = format!(
                    "the deletion waits until its keys can be removed from Consul; the annotation `{RELEASE_ANNOTATION}: \"true\"` lets it go without: {}",
                    error.told()
                );
                let facts = Facts {
                    accepted: Finding::holds("Deleting", "it is being deleted"),
                    synced: Some(Finding::fails("DeletionWaits", message)),
                    published: None,
                    owned: None,
                    publisher: None,
                };
                self.tell(composite, &facts).await?;
                return Err(Unfinished::Failed(error.told()));
            }
            Err(error) => return Err(error.into()),
        }
        match self.records.unguard(&composite).await {
            Err(RecordError::Overtaken) => Err(Unfinished::Again),
            other => Ok(other?),
        }
    }

    /// The keys that the Composites that count declare, this one's excepted: they stay whatever becomes of it.
    fn declared_by_others(&self, composite: &Composite) -> BTreeSet<String> {
        let mut namespaces: BTreeMap<String, Vec<Arc<Composite>>> = BTreeMap::new();
        for other in self.composites.all().filter(|other| other.uid() != composite.uid()) {
            namespaces.entry(other.namespace().unwrap_or_default()).or_default().push(other);
        }
        let winners =
            namespaces.into_iter().filter_map(|(namespace, all)| Some((namespace, roster(all).winner?)));
        winners
            .filter(|(_, winner)| winner.declared().validate().is_ok())
            .flat_map(|(namespace, winner)| declaration(&namespace, winner.declared()).keys().into_keys())
            .collect()
    }

    /// Writes the status that follows from what was found out, if it differs, and tells what changed.
    async fn tell(&self, composite: Composite, facts: &Facts) -> Result<Composite, Unfinished> {
        let status = status_of(&composite, facts, &self.shared.settings, Timestamp::now());
        let before: Option<CompositeStatus> = composite.status.clone();
        let told = events(before.as_ref(), &status);
        let composite = self.records.tell(composite, status).await?;
        for event in &told {
            self.say(&composite, event).await;
        }
        Ok(composite)
    }

    async fn say(&self, composite: &Composite, event: &Event) {
        let reference = composite.object_ref(&());
        let said = timeout(EVENT_LIMIT, self.shared.recorder.publish(event, &reference)).await;
        if let Ok(Err(error)) = said {
            tracing::debug!(namespace = self.namespace, %error, "an Event can't be told");
        }
    }

    fn keys(&self) -> Keys<'_> {
        Keys { consul: &self.shared.consul, records: &self.records, fence: &self.shared.fence }
    }
}

/// The worse of two results: what ends the keeper, then what failed, then what is to be looked at again.
fn worse(one: Result<(), Unfinished>, other: Result<(), Unfinished>) -> Result<(), Unfinished> {
    let rank = |result: &Result<(), Unfinished>| match result {
        Ok(()) => 0,
        Err(Unfinished::Again) => 1,
        Err(Unfinished::Failed(_)) => 2,
        Err(Unfinished::Fenced) => 3,
    };
    if rank(&other) > rank(&one) { other } else { one }
}
