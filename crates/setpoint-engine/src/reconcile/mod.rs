//! Reconciliation: collect, plan, execute, until nothing more can be done now.

mod effects;
mod planning_state;

use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use setpoint_graph::{Graph, ItemRef, SlotId};
use setpoint_plan::Standing;
use tokio_util::sync::CancellationToken;

use effects::{PlanEffects, deletions, prune};
pub(crate) use planning_state::update_index;
use planning_state::{failures, running, update_planning_state};

use crate::clock::after;
use crate::configurator::Observed;
use crate::engine::{Engine, same_name};
use crate::execute::{Execution, RunProgress, StepOutcome, flush, log_entry, panicked, verify};
use crate::journal::Record;
use crate::metadata::SharedMetadata;
use crate::op::{OpCx, OpError, OpInputs, Operation, RunShared};
use crate::plan::Blueprint;
use crate::selection::Selection;
use crate::state::{CurrentGraph, Presence};
use crate::status::{EngineError, InvalidItem, Status};
use crate::transition;

/// The most often that a run plans; the next run does what is left then.
const PASSES: usize = 16;

impl Engine {
    /// Brings the selected part of the current state to the intended one, as far as that can be done now.
    ///
    /// No current graph means that nothing exists: one is made. No intended graph means that nothing should
    /// exist: all is deleted in order. The current graph always says what is true, also when this future is
    /// dropped half-way.
    pub async fn reconcile(
        &self,
        current: &mut Option<CurrentGraph>,
        intended: Option<&Graph>,
        selection: &Selection,
    ) -> Result<Status, EngineError> {
        self.reconcile_until(current, intended, selection, &CancellationToken::new()).await
    }

    /// Like [`Engine::reconcile`], until a token is cancelled: then nothing new is started, and what runs is
    /// asked to stop.
    pub async fn reconcile_until(
        &self,
        current: &mut Option<CurrentGraph>,
        intended: Option<&Graph>,
        selection: &Selection,
        cancel: &CancellationToken,
    ) -> Result<Status, EngineError> {
        let nothing;
        let intended = match (current.as_ref(), intended) {
            (None, None) => {
                let current = current.insert(CurrentGraph::new(""));
                nothing = Graph::new(current.name());
                &nothing
            }
            (Some(current), None) => {
                nothing = Graph::new(current.name());
                &nothing
            }
            (_, Some(intended)) => intended,
        };
        let current = current.get_or_insert_with(|| CurrentGraph::new(intended.name()));
        same_name(current, intended)?;
        let start = self.reverts().then(|| snapshot(current));
        let mut status = self.run(current, intended, selection, cancel).await?;
        if let Some(start) = start
            && !status.failures.is_empty()
            && status.interruption.is_none()
        {
            let back = self.for_revert();
            status.reverted = Some(Box::new(back.run(current, &start, selection, cancel).await?));
            status.failures.clear();
            status.failures.extend(failures(current));
        }
        Ok(status)
    }

    async fn run(
        &self,
        current: &mut CurrentGraph,
        intended: &Graph,
        selection: &Selection,
        cancel: &CancellationToken,
    ) -> Result<Status, EngineError> {
        let name = current.name().clone();
        let wake = current.shared_mut().wake(&name);
        let run = Arc::new(self.run_shared(cancel.child_token(), wake));
        let mut progress = RunProgress::default();
        update_index(current);
        let now = run.clock.now();
        {
            let nothing_failed = FxHashSet::default();
            let engine = self;
            if engine.refuses_invalid() {
                let mut planner = engine.planner(current, intended, selection, now, &nothing_failed);
                engine.refuse_if_invalid(&mut planner)?;
            }
        }
        run.wake.forget_ends(selection);
        self.collect_background(current, selection, &run, &mut progress).await;
        self.read_back_unknown(current, &Selection::All, &run).await;

        let first = self;
        let later = first.replaces().then(|| first.without_replacing());
        let mut engine = first;
        let mut invalid = Vec::new();
        let mut planned_at = now;
        for _ in 0..PASSES {
            let (failures, recovered, done) = (progress.failures, progress.recovered, progress.log.len());
            planned_at = run.clock.now();
            let (pass, outcome) = engine.pass(current, intended, selection, &run, &mut progress).await;
            let result = update_planning_state(current, intended, &pass, &outcome, run.clock.now());
            invalid = pass.invalid;
            // Only a failure, the success of what had failed, or a claim that was let go, can have opened another way.
            let failed = !result.finished && progress.failures > failures;
            let recovered = progress.recovered > recovered;
            // What could not be run may be possible after what was done.
            let advanced = !result.finished && progress.log.len() > done;
            if !(failed || recovered || advanced || result.released) || progress.interruption.is_some() {
                break;
            }
            engine = later.as_ref().unwrap_or(first);
        }
        current.shared_mut().lost.clear();
        current.shared_mut().own = Some((current.id(), current.revision()));
        current.shared_mut().intended = Some((intended.id(), intended.revision()));
        if let Err(interruption) = flush(self, current).await {
            progress.interruption.get_or_insert(interruption);
        }
        Ok(self.report(current, progress, invalid, planned_at, &run))
    }

    /// Plans once and carries out what can be.
    async fn pass(
        &self,
        current: &mut CurrentGraph,
        intended: &Graph,
        selection: &Selection,
        run: &Arc<RunShared>,
        progress: &mut RunProgress,
    ) -> (ExecutedPlan, Vec<StepOutcome>) {
        let now = run.clock.now();
        let failed = progress.failed.clone();
        let mut planner = self.planner(current, intended, selection, now, &failed);
        let invalid = planner.invalid();
        let effects = PlanEffects::take(&planner);
        let compared_all = planner.compared_all;
        let blueprint = planner.finish();
        effects.apply(current, intended, self.journal().is_some(), now);
        if compared_all && *selection == Selection::All {
            for path in intended.subgraph_paths() {
                self.mirror_subgraph(current, intended, &path);
            }
        }
        let deleted_paths = deletions(current, &blueprint);
        let outcome = Execution::new(self, current, intended, &blueprint, run, progress).run().await;
        for path in deleted_paths {
            prune(current, intended, path);
        }
        if compared_all && *selection == Selection::All {
            let mut paths = current.subgraph_paths();
            paths.reverse();
            for path in paths {
                prune(current, intended, path);
            }
        }
        (ExecutedPlan { blueprint, left: effects.left, invalid, active: effects.active }, outcome)
    }

    /// Collects background operations that have ended, and gives up on those that ignore their cancellation.
    async fn collect_background(
        &self,
        current: &mut CurrentGraph,
        selection: &Selection,
        run: &Arc<RunShared>,
        progress: &mut RunProgress,
    ) {
        let mut items: Vec<ItemRef> = current.shared().open.iter().cloned().collect();
        items.sort();
        for item in items {
            let Some(slot) = current.node_of(&item).map(|node| node.slot()) else { continue };
            let Some(unfinished) = current.state_at(slot).and_then(|state| state.unfinished.as_ref()) else {
                continue;
            };
            let Some(background) = unfinished.live.0.clone() else { continue };
            let (operation, started) = (unfinished.operation, unfinished.started);
            let target = unfinished.target.clone();
            let cancelled = background.cancelled_at();
            let mut outcome = if let Some(outcome) = background.take_outcome() {
                outcome
            } else {
                let now = run.clock.now();
                if cancelled.is_none() && self.deadline(current, slot).is_some_and(|deadline| deadline <= now)
                {
                    // Nobody waits for it, and it takes too long all the same.
                    background.cancel(now);
                }
                if cancelled.is_none_or(|at| after(at, self.grace()) > now) {
                    continue;
                }
                background.abandon();
                Err(OpError::new("the operation was cancelled and did not stop"))
            };
            if self.verifies()
                && outcome.is_ok()
                && operation != Operation::Delete
                && let (Some(wanted), Some(configurator)) = (target, self.configurator(item.kind()))
            {
                let limit = self.limit(&configurator, None, &wanted);
                let inputs = OpInputs { metadata: metadata(current, slot), ..OpInputs::default() };
                let cx = OpCx::new(item.clone(), None, inputs, Arc::clone(run));
                let verified = Box::pin(verify(&configurator, cx, wanted));
                let verified = self.within_time(limit, "reading the item back", verified).await;
                // Whatever went wrong with the read, the operation has been done.
                outcome = verified.map_err(|error| OpError::new(error.to_string()));
            }
            let path = current.path_at(slot);
            if !selection.covers(&item, &path) {
                run.wake.note_unselected(&item, path);
            }
            let now = run.clock.now();
            let error = outcome.as_ref().err().cloned();
            let entry = log_entry(current, slot, operation, started, Some(now), cancelled, error);
            if let Some(entry) = entry {
                self.hooks_after(&entry);
                progress.log.push(entry);
            }
            transition::end(current, slot, outcome.as_ref().copied(), self.retry(item.kind()), now);
            current.touch_item(&item);
            if outcome.is_err() {
                progress.failed.insert(item.clone());
            }
            if self.journal().is_some() {
                current.shared_mut().unwritten.push(Record::Ended { item, outcome, at: now });
            }
        }
    }

    /// When the background operation on the item in a slot has taken too long.
    fn deadline(&self, current: &CurrentGraph, slot: SlotId) -> Option<Timestamp> {
        let (item, unfinished) = (current.item_at(slot)?, current.state_at(slot)?.unfinished.as_ref()?);
        let configurator = self.configurator(item.kind())?;
        let item = unfinished.target.as_ref().unwrap_or(item);
        let limit = self.limit(&configurator, Some(unfinished.operation), item)?;
        Some(after(unfinished.started, limit))
    }

    /// Reads back items of which nobody knows how an operation on them ended, where that can be done. Returns those that could not
    /// be read, and why.
    pub(crate) async fn read_back_unknown(
        &self,
        current: &mut CurrentGraph,
        selection: &Selection,
        run: &Arc<RunShared>,
    ) -> Vec<(ItemRef, OpError)> {
        let mut unreadable = Vec::new();
        let open = current.shared().open.iter();
        let unknown = open.filter(|item| current.state(item).is_some_and(crate::ItemState::is_unknown));
        let unknown =
            unknown.filter(|item| current.slot_of(item).is_some_and(|slot| selection.holds(current, slot)));
        let mut unknown: Vec<ItemRef> = unknown.cloned().collect();
        unknown.sort();
        for item in unknown {
            let (Some(handle), Some(configurator)) =
                (current.item(&item).cloned(), self.configurator(item.kind()))
            else {
                continue;
            };
            let metadata = current.slot_of(&item).map(|slot| metadata(current, slot)).unwrap_or_default();
            let unfinished = current.state(&item).and_then(|state| state.unfinished.as_ref());
            let target = unfinished.and_then(|unfinished| unfinished.target.clone());
            let unfinished = unfinished.map(|unfinished| unfinished.operation);
            let inputs = OpInputs { unfinished, metadata, ..OpInputs::default() };
            let cx = || OpCx::new(item.clone(), None, inputs.clone(), Arc::clone(run));
            let mut observed = match self.read(&configurator, cx(), handle.clone()).await {
                Ok(observed) => observed,
                Err(why) => {
                    unreadable.push((item, why));
                    continue;
                }
            };
            // If it is not as it was, the modification may have come to its end.
            if let Some(target) =
                target.filter(|_| !matches!(&observed, Observed::Present(f) if *f == handle))
                && let Ok(Observed::Present(found)) = self.read(&configurator, cx(), target.clone()).await
                && found == target
            {
                observed = Observed::Present(found);
            }
            apply_reading(current, &item, observed, run.clock.now());
        }
        unreadable
    }

    /// Reads an item; a panic or a time-out is an error.
    pub(crate) async fn read(
        &self,
        configurator: &crate::ConfiguratorHandle,
        cx: OpCx,
        item: setpoint_graph::ItemHandle,
    ) -> Result<Observed<setpoint_graph::ItemHandle>, OpError> {
        let limit = self.limit(configurator, None, &item);
        self.within_time(limit, "reading the item", configurator.read(cx, item)).await
    }

    /// Waits for a configurator no longer than it may take.
    pub(crate) async fn within_time<T>(
        &self,
        limit: Option<std::time::Duration>,
        what: &str,
        work: impl Future<Output = Result<T, OpError>> + Unpin,
    ) -> Result<T, OpError> {
        use futures::FutureExt;
        use futures::future::{Either, select};
        let work = std::panic::AssertUnwindSafe(work).catch_unwind();
        let outcome = match limit {
            None => work.await,
            Some(timeout) => match select(work, self.clock().sleep(timeout)).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right(_) => return Err(OpError::untouched(format!("{what} took too long"))),
            },
        };
        outcome.unwrap_or_else(|panic| Err(panicked(&*panic)))
    }

    fn report(
        &self,
        current: &CurrentGraph,
        progress: RunProgress,
        invalid: Vec<InvalidItem>,
        planned_at: Timestamp,
        run: &Arc<RunShared>,
    ) -> Status {
        let failures = failures(current);
        let running = running(current);
        // What was due and not tried is held back, or was not selected: it waits for something else than its time.
        let is_ahead = |item: &ItemRef, due: Timestamp| due > planned_at || progress.failed.contains(item);
        let retries =
            failures.iter().filter_map(|failure| failure.due.filter(|&due| is_ahead(&failure.item, due)));
        let given_up = running.iter().filter_map(|running| running.background.cancelled_at());
        let given_up = given_up.map(|at| after(at, self.grace()));
        let busy = current.shared().open.iter().filter_map(|item| current.slot_of(item));
        let busy = busy.filter(|&slot| current.state_at(slot).is_some_and(|state| state.live().is_some()));
        let too_long = busy.filter_map(|slot| self.deadline(current, slot));
        let contested = current.shared().open.iter().chain(&current.shared().dirty);
        let contested = contested.filter_map(|item| current.state(item)?.drift.as_ref());
        let contested = contested.filter(|drift| !drift.repaired && drift.due > planned_at);
        let contested = contested.map(|drift| drift.due);
        let next_retry = retries.chain(given_up).chain(too_long).chain(contested).min();
        Status {
            log: progress.log,
            pending: current.shared().waiting.len(),
            failures,
            invalid,
            interruption: progress.interruption,
            next_retry,
            running,
            reverted: None,
            wake: Arc::clone(&run.wake),
            clock: Arc::clone(self.clock()),
        }
    }
}

/// One plan as it was carried out.
struct ExecutedPlan {
    blueprint: Blueprint,
    /// Items that stay as they are against the intent, and why in one word.
    left: Vec<(ItemRef, Option<Standing>)>,
    invalid: Vec<InvalidItem>,
    active: Vec<u32>,
}

/// What is remembered of the item in a slot, for whoever works on it.
pub(crate) fn metadata(current: &mut CurrentGraph, slot: SlotId) -> Arc<SharedMetadata> {
    current.state_at_mut(slot).map(|state| state.metadata.share()).unwrap_or_default()
}

/// Takes over what reading an item showed.
pub(crate) fn apply_reading(
    current: &mut CurrentGraph,
    item: &ItemRef,
    observed: Observed<setpoint_graph::ItemHandle>,
    now: Timestamp,
) {
    let Some(slot) = current.node_of(item).map(|node| node.slot()) else { return };
    match observed {
        Observed::Unsupported => {}
        Observed::Absent => {
            if transition::is_absent(current, slot, now) {
                current.touch_item(item);
            } else {
                current.shared_mut().open.remove(item);
            }
        }
        Observed::Present(found) => {
            if found.reference() != item {
                return;
            }
            let mut unfinished = None;
            if let Some(state) = current.state_at_mut(slot) {
                state.presence = Presence::Present;
                unfinished = state.unfinished.take().map(|unfinished| unfinished.operation);
                state.since = now;
                state.metadata.trim();
            }
            if matches!(unfinished, Some(Operation::Create | Operation::Modify)) {
                transition::repeat_dependents(current, slot, now);
            }
            let path = current.path_at(slot);
            // The same reference in the same place: such a put is never refused.
            let put = current.put_item_into(&path, found);
            debug_assert!(put.is_ok());
            current.touch_item(item);
        }
    }
}

/// The state at the start of a run as an intent to go back to.
fn snapshot(current: &CurrentGraph) -> Graph {
    let mut graph = Graph::new(current.name());
    for path in current.subgraph_paths() {
        graph.make_subgraph(&path);
    }
    for node in current.items() {
        let there = node.state().is_none_or(|state| state.presence.exists());
        if there {
            // References are unique in the graph they come from.
            let put = graph.put_item_into(&node.path(), node.item().clone());
            debug_assert!(put.is_ok());
        }
    }
    graph
}
