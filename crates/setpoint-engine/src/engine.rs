//! The engine: its settings, planning and reconciliation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use setpoint_graph::ItemRef;
use setpoint_graph::{Graph, Item, ItemHandle, Kind, SubgraphPath};
use setpoint_plan::Plan;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, SystemClock};
use crate::configurator::{Configurator, ConfiguratorHandle, DefaultRegistry, Registry};
use crate::hooks::Hooks;
use crate::journal::Journal;
use crate::log::LogEntry;
use crate::op::{OpError, Operation};
use crate::plan::{Inputs, Planner};
use crate::retry::RetryPolicy;
use crate::selection::Selection;
use crate::state::CurrentGraph;
use crate::status::{EngineError, InvalidItem};

/// Moves a set of dependent items from the current state to the intended one.
///
/// It is stateless: it can be made anew for each run. All that must survive is in the current graph.
///
/// ```
/// use setpoint_engine::{Configurator, CurrentGraph, DefaultRegistry, Engine, OpCx, OpError, Selection};
/// use setpoint_graph::{Deps, Graph, Item, ItemRef, Kind, Name};
///
/// #[derive(Debug, PartialEq)]
/// struct Service { name: String, needs: Vec<String> }
///
/// impl Item for Service {
///     const KIND: Kind = Kind::from_static("service");
///     fn name(&self) -> Name { Name::new(&self.name) }
///     fn dependencies(&self, deps: &mut Deps) {
///         for other in &self.needs {
///             deps.requires(ItemRef::of::<Service>(other.as_str()));
///         }
///     }
/// }
///
/// struct Services;
///
/// impl Configurator<Service> for Services {
///     async fn create(&self, _: &OpCx, new: &Service) -> Result<(), OpError> {
///         println!("start {}", new.name);
///         Ok(())
///     }
///     async fn delete(&self, _: &OpCx, old: &Service) -> Result<(), OpError> {
///         println!("stop {}", old.name);
///         Ok(())
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let engine = Engine::new(DefaultRegistry::new().with(Services));
/// let mut intended = Graph::new("services");
/// intended.put_item(Service { name: "web".into(), needs: vec!["db".into()] })?;
/// intended.put_item(Service { name: "db".into(), needs: vec![] })?;
///
/// let mut current: Option<CurrentGraph> = None;
/// let status = engine.reconcile(&mut current, Some(&intended), &Selection::all()).await?;
/// let log: Vec<String> = status.log().iter().map(ToString::to_string).collect();
/// assert_eq!(log, ["create service/db", "create service/web"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings, each named by its own method")]
pub struct Engine {
    registry: Arc<dyn Registry>,
    clock: Arc<dyn Clock>,
    concurrency: usize,
    retry: RetryPolicy,
    retry_by_kind: BTreeMap<Kind, RetryPolicy>,
    timeout: Option<Duration>,
    timeout_by_kind: BTreeMap<Kind, Duration>,
    grace: Duration,
    refuse_invalid: bool,
    retry_now: bool,
    verify: bool,
    revert: bool,
    replace: BTreeSet<ItemRef>,
    journal: Option<Arc<dyn Journal>>,
    hooks: Vec<Arc<dyn Hooks>>,
    drain: Option<CancellationToken>,
}

impl Engine {
    /// Makes an engine with default settings.
    pub fn new(registry: impl Registry) -> Self {
        Self {
            registry: Arc::new(registry),
            clock: Arc::new(SystemClock),
            concurrency: 8,
            retry: RetryPolicy::default(),
            retry_by_kind: BTreeMap::new(),
            timeout: Some(Duration::from_mins(10)),
            timeout_by_kind: BTreeMap::new(),
            grace: Duration::from_secs(30),
            refuse_invalid: false,
            retry_now: false,
            verify: false,
            revert: false,
            replace: BTreeSet::new(),
            journal: None,
            hooks: Vec::new(),
            drain: None,
        }
    }

    /// Makes an engine for the items of one configurator, with default settings.
    ///
    /// For several kinds of items, [`Engine::new`] takes a [`DefaultRegistry`] with a configurator for each.
    pub fn for_items<T: Item>(configurator: impl Configurator<T>) -> Self {
        Self::new(DefaultRegistry::new().with(configurator))
    }

    /// Takes time from another clock than the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Runs at most that many operations at a time; at least one.
    #[must_use]
    pub fn with_concurrency(mut self, limit: usize) -> Self {
        self.concurrency = limit.max(1);
        self
    }

    /// Retries failed operations by this policy.
    #[must_use]
    pub fn with_retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Retries failed operations on one kind of item by this policy.
    #[must_use]
    pub fn with_retry_for(mut self, kind: impl Into<Kind>, policy: RetryPolicy) -> Self {
        self.retry_by_kind.insert(kind.into(), policy);
        self
    }

    /// Tries failed operations at once, whatever the policy says: for a person who asks.
    #[must_use]
    pub fn retrying_now(mut self) -> Self {
        self.retry_now = true;
        self
    }

    /// Cancels an operation that takes longer; none for no limit.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Cancels an operation on one kind of item that takes longer.
    #[must_use]
    pub fn with_timeout_for(mut self, kind: impl Into<Kind>, timeout: Duration) -> Self {
        self.timeout_by_kind.insert(kind.into(), timeout);
        self
    }

    /// Gives a cancelled operation that much time to stop, then gives up on it.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Refuses the whole where any item is invalid, instead of leaving that item out.
    #[must_use]
    pub fn refusing_invalid(mut self) -> Self {
        self.refuse_invalid = true;
        self
    }

    /// Reads each item back after its operation and compares.
    #[must_use]
    pub fn verifying(mut self) -> Self {
        self.verify = true;
        self
    }

    /// Goes back to the state at the start of a run in which anything failed.
    #[must_use]
    pub fn reverting(mut self) -> Self {
        self.revert = true;
        self
    }

    /// Makes these items anew although nothing demands it.
    #[must_use]
    pub fn replacing<R: Into<ItemRef>>(mut self, items: impl IntoIterator<Item = R>) -> Self {
        self.replace.extend(items.into_iter().map(Into::into));
        self
    }

    /// Records every operation before it starts and after it ended.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Calls these hooks before and after each operation.
    #[must_use]
    pub fn with_hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks.push(hooks);
        self
    }

    /// Starts nothing more once this token is cancelled, and lets what runs come to its end.
    ///
    /// The token of [`Engine::reconcile_until`] asks what runs to stop as well.
    #[must_use]
    pub fn draining_on(mut self, stop: CancellationToken) -> Self {
        self.drain = Some(stop);
        self
    }

    /// Plans the way from the current state to the intended one. Changes nothing; equal input gives an
    /// equal plan.
    ///
    /// No current graph means that nothing exists, no intended graph that nothing should.
    pub fn plan(
        &self,
        current: Option<&CurrentGraph>,
        intended: Option<&Graph>,
        selection: &Selection,
        now: Timestamp,
    ) -> Result<Plan, EngineError> {
        let (no_current, no_intended);
        let (current, intended) = match (current, intended) {
            (None, None) => return Ok(Plan::new("")),
            (Some(current), Some(intended)) => (current, intended),
            (None, Some(intended)) => {
                no_current = CurrentGraph::new(intended.name());
                (&no_current, intended)
            }
            (Some(current), None) => {
                no_intended = Graph::new(current.name());
                (current, &no_intended)
            }
        };
        same_name(current, intended)?;
        let nothing_failed = FxHashSet::default();
        let mut planner = self.planner(current, intended, selection, now, &nothing_failed);
        self.refuse_if_invalid(&mut planner)?;
        Ok(planner.envelope())
    }

    pub(crate) fn planner<'a>(
        &'a self,
        current: &'a CurrentGraph,
        intended: &'a Graph,
        selection: &'a Selection,
        now: Timestamp,
        failed: &'a FxHashSet<ItemRef>,
    ) -> Planner<'a> {
        let inputs = Inputs {
            selection,
            now,
            retry_now: self.retry_now,
            failed,
            replace: &self.replace,
            concurrent: self.concurrency > 1,
        };
        Planner::plan(current, intended, &*self.registry, inputs)
    }

    pub(crate) fn refuse_if_invalid(&self, planner: &mut Planner<'_>) -> Result<(), EngineError> {
        let invalid = if self.refuse_invalid { planner.invalid() } else { Vec::new() };
        if invalid.is_empty() { Ok(()) } else { Err(EngineError::Invalid(invalid)) }
    }

    pub(crate) fn refuses_invalid(&self) -> bool {
        self.refuse_invalid
    }

    pub(crate) fn drains(&self) -> bool {
        self.drain.as_ref().is_some_and(CancellationToken::is_cancelled)
    }

    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// Returns where the engine gets its time from: whoever waits for what a run says is due waits by the same.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.journal.as_ref()
    }

    pub(crate) fn registry(&self) -> &dyn Registry {
        &*self.registry
    }

    pub(crate) fn configurator(&self, kind: &Kind) -> Option<ConfiguratorHandle> {
        self.registry.configurator(kind)
    }

    pub(crate) fn retry(&self, kind: &Kind) -> RetryPolicy {
        self.retry_by_kind.get(kind).copied().unwrap_or(self.retry)
    }

    /// How long an operation on an item, or reading it, may take: its own limit wins.
    pub(crate) fn limit(
        &self,
        configurator: &ConfiguratorHandle,
        operation: Option<Operation>,
        item: &ItemHandle,
    ) -> Option<Duration> {
        configurator.limit(operation, item).or_else(|| self.timeout(item.kind()))
    }

    pub(crate) fn timeout(&self, kind: &Kind) -> Option<Duration> {
        self.timeout_by_kind.get(kind).copied().or(self.timeout)
    }

    /// Returns how long a cancelled operation is given to stop.
    pub fn grace(&self) -> Duration {
        self.grace
    }

    pub(crate) fn verifies(&self) -> bool {
        self.verify
    }

    pub(crate) fn reverts(&self) -> bool {
        self.revert
    }

    /// The same engine for the way back: it neither reverts again nor makes anything anew.
    pub(crate) fn for_revert(&self) -> Self {
        Self { revert: false, retry_now: true, replace: BTreeSet::new(), ..self.clone() }
    }

    /// The same engine after its first pass: what was asked for has been made anew.
    pub(crate) fn without_replacing(&self) -> Self {
        Self { replace: BTreeSet::new(), ..self.clone() }
    }

    pub(crate) fn replaces(&self) -> bool {
        !self.replace.is_empty()
    }

    pub(crate) fn hooks_before(&self, operation: Operation, item: &ItemHandle) -> Result<(), OpError> {
        self.hooks.iter().try_for_each(|hooks| hooks.before(operation, item))
    }

    pub(crate) fn hooks_after(&self, entry: &LogEntry) {
        for hooks in &self.hooks {
            hooks.after(entry);
        }
    }

    /// Makes a subgraph of the current graph as the intended one has it, descriptions included.
    #[expect(clippy::unused_self, reason = "part of what the engine does to the current graph")]
    pub(crate) fn mirror_subgraph(&self, current: &mut CurrentGraph, intended: &Graph, path: &SubgraphPath) {
        let mut at = SubgraphPath::root();
        for name in path.names() {
            at = at.join(name);
            let description = intended.subgraph(&at).map_or("", |view| view.description());
            if current.subgraph(&at).is_none_or(|view| view.description() != description) {
                current.describe_subgraph(&at, description);
            }
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("kinds", &self.registry.kinds())
            .field("concurrency", &self.concurrency)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

pub(crate) fn same_name(current: &CurrentGraph, intended: &Graph) -> Result<(), EngineError> {
    if current.name() == intended.name() {
        return Ok(());
    }
    Err(EngineError::Names { current: current.name().clone(), intended: intended.name().clone() })
}

impl Planner<'_> {
    /// The items that can't be handled as declared, in order.
    pub(crate) fn invalid(&mut self) -> Vec<InvalidItem> {
        let active = self.active().to_vec();
        let mut invalid = Vec::new();
        for id in active.into_iter().filter(|&id| self.subject(id).invalid).collect::<Vec<_>>() {
            if let Some((_, causes)) = self.standing(id, false) {
                invalid.push(InvalidItem { item: self.reference(id).clone(), why: causes.join("; ") });
            }
        }
        invalid.sort_by(|a, b| a.item.cmp(&b.item));
        invalid
    }
}
