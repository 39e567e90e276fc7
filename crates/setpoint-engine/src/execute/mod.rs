//! Execution: drives the steps of a plan inside the caller's task.
//!
//! ```text
//!  ready steps ─▶ batch ─▶ journal ─▶ marked in progress ─▶ polled ─┬─▶ ended: graph, log, successors
//!                                                                   ├─▶ still running: polled on
//!                                                                   └─▶ background: kept in the graph
//! ```
//!
//! No task is spawned. State is marked in progress before an operation is first polled, so that the graph is
//! true at every await, also if the caller drops the run there.

mod launch;
mod ready;

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use jiff::Timestamp;
use rustc_hash::FxHashSet;
use setpoint_graph::{Graph, ItemRef, Kind, SlotId};

use launch::Launch;
pub(crate) use launch::{panicked, verify};
use ready::ReadySteps;

use crate::configurator::ConfiguratorHandle;
use crate::engine::Engine;
use crate::journal::Record;
use crate::log::LogEntry;
use crate::op::{OpCx, OpError, Operation, RunShared};
use crate::plan::{Blueprint, Dependents, NONE, Related, Step, StepKind, gains_dependencies};
use crate::state::CurrentGraph;
use crate::status::Interruption;
use crate::transition;

/// What a run has done so far.
#[derive(Debug, Default)]
pub(crate) struct RunProgress {
    pub(crate) log: Vec<LogEntry>,
    /// Items that failed in this run: not tried again in it.
    pub(crate) failed: FxHashSet<ItemRef>,
    /// How many operations failed.
    pub(crate) failures: u64,
    /// How many items that had failed in this run were operated on all the same, for the sake of others, and with success.
    pub(crate) recovered: u64,
    pub(crate) interruption: Option<Interruption>,
    operations: u64,
}

/// A plan being carried out.
pub(crate) struct Execution<'a> {
    engine: &'a Engine,
    current: &'a mut CurrentGraph,
    intended: &'a Graph,
    plan: &'a Blueprint,
    run: &'a Arc<RunShared>,
    progress: &'a mut RunProgress,
    related: Related,
    /// How many steps each step waits for.
    waits: Vec<u32>,
    /// Where each step stands.
    outcomes: Vec<StepOutcome>,
    position: Vec<u32>,
    /// The steps that may start, by their position in the order.
    ready: ReadySteps,
    running: FuturesUnordered<BoxFuture<'static, (u32, FinishedOperation)>>,
    /// What each running step's item needs, directly or not.
    needs: Vec<(u32, FxHashSet<ItemRef>)>,
    /// Steps that wait for a running one to which their item is related.
    postponed: Vec<Launch>,
    /// The current slot of each step's item, once it has started.
    slots: Vec<u32>,
    /// The current slots of items that this run created, by their intended slot.
    created: Vec<u32>,
    /// The configurator that was looked up last.
    configurator: Option<(Kind, ConfiguratorHandle)>,
    /// What depends on something that failed, where there are modifications.
    behind_failed: Dependents,
    /// What is still started.
    admission: Admission,
}

/// Which steps of a plan are still started; each state lets through less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Admission {
    /// All.
    All,
    /// A modification failed: what was to stand on its new value may stand on nothing if more is deleted.
    NoDeletions,
    /// None: the journal can't be written, or steps are done one by one and one of them goes on in the background.
    Nothing,
    /// None: the caller said so.
    Stopped,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    /// It waits for others, or is running.
    Open,
    /// It was done.
    Done,
    /// It failed, or something it needs did.
    Failed,
    /// It goes on in the background.
    Background,
    /// It can't be run now.
    Held,
}

struct FinishedOperation {
    cx: OpCx,
    started: Timestamp,
    outcome: Result<(), OpError>,
    cancelled: Option<Timestamp>,
}

impl<'a> Execution<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        current: &'a mut CurrentGraph,
        intended: &'a Graph,
        plan: &'a Blueprint,
        run: &'a Arc<RunShared>,
        progress: &'a mut RunProgress,
    ) -> Self {
        let schedule = &plan.schedule;
        let mut position = vec![0; schedule.order.len()];
        for (at, &step) in (0_u32..).zip(&schedule.order) {
            position[step as usize] = at;
        }
        let waits = schedule.waits.clone();
        let mut ready = ReadySteps::below(waits.len());
        for (&position, _) in position.iter().zip(&waits).filter(|(_, waits)| **waits == 0) {
            ready.insert(position);
        }
        progress.log.reserve(schedule.steps.len());
        let mut behind_failed = Dependents::default();
        if schedule.crosses {
            for failed in &progress.failed {
                behind_failed.add(current, intended, failed);
            }
        }
        let creations = schedule.steps.iter().filter(|step| step.kind == StepKind::Create).count();
        current.reserve(creations);
        Self {
            engine,
            current,
            intended,
            plan,
            run,
            progress,
            related: plan.related.clone(),
            outcomes: vec![StepOutcome::Open; waits.len()],
            slots: vec![NONE; waits.len()],
            created: if waits.is_empty() { Vec::new() } else { vec![NONE; intended.slot_bound()] },
            waits,
            position,
            ready,
            running: FuturesUnordered::new(),
            needs: Vec::new(),
            postponed: Vec::new(),
            configurator: None,
            behind_failed,
            admission: Admission::All,
        }
    }

    /// Carries out all that can be, and returns where each step stands in the end.
    pub(crate) async fn run(mut self) -> Vec<StepOutcome> {
        let limit = if self.plan.schedule.serial { 1 } else { self.engine.concurrency() };
        let mut batch = Vec::new();
        loop {
            self.fill(&mut batch, limit);
            if batch.is_empty() && self.running.is_empty() && self.postponed.is_empty() {
                break;
            }
            if !batch.is_empty() {
                self.start(&mut batch).await;
            }
            self.collect(limit).await;
        }
        if let Err(interruption) = self.flush().await {
            self.progress.interruption.get_or_insert(interruption);
        }
        self.outcomes
    }

    fn step(&self, step: u32) -> Step {
        self.plan.schedule.steps[step as usize]
    }

    fn reference(&self, step: u32) -> Option<&ItemRef> {
        let subject = &self.plan.subjects[self.step(step).subject as usize];
        match subject.int() {
            Some(slot) => self.intended.reference_at(slot),
            None => self.current.reference_at(subject.cur.slot()?),
        }
    }

    /// Takes ready steps until as many run as may; those that need no operation are done at once.
    fn fill(&mut self, batch: &mut Vec<u32>, limit: usize) {
        if self.admission < Admission::Nothing && (self.run.cancel.is_cancelled() || self.engine.drains()) {
            self.admission = Admission::Stopped;
            if self.run.cancel.is_cancelled() && !self.running.is_empty() {
                self.progress.interruption.get_or_insert(Interruption::Cancelled);
            }
        }
        while self.running.len() + self.postponed.len() + batch.len() < limit {
            let Some(at) = self.ready.pop() else { return };
            let step = self.plan.schedule.order[at as usize];
            if self.outcomes[step as usize] != StepOutcome::Open {
                continue;
            }
            let Step { subject, kind } = self.step(step);
            if matches!(kind, StepKind::Switch | StepKind::Gate) {
                self.close(step, StepOutcome::Done);
                continue;
            }
            // The next plan knows what failed, and says what may still go.
            let held = self.admission >= Admission::Nothing
                || self.admission == Admission::NoDeletions && kind == StepKind::Delete
                || kind == StepKind::Modify && self.gains_what_failed(step)
                || self.plan.subjects[subject as usize].is_held()
                || !self.related.is_empty()
                    && self.reference(step).is_some_and(|item| self.related.to(item).is_some());
            if held {
                if self.admission == Admission::Stopped {
                    // A run that had nothing left to start was not interrupted.
                    self.progress.interruption.get_or_insert(Interruption::Cancelled);
                }
                self.close(step, StepOutcome::Held);
            } else {
                batch.push(step);
            }
        }
    }

    /// Lets through no more than this from now on.
    fn admit_at_most(&mut self, most: Admission) {
        self.admission = self.admission.max(most);
    }

    /// Returns whether a step lets an item depend on more than before, and with that on something that failed.
    fn gains_what_failed(&self, step: u32) -> bool {
        if self.behind_failed.is_empty() {
            return false;
        }
        let subject = &self.plan.subjects[self.step(step).subject as usize];
        let (Some(cur), Some(int)) = (subject.cur(), subject.int()) else { return false };
        let (Some(old), Some(new)) = (self.current.item_at(cur), self.intended.item_at(int)) else {
            return false;
        };
        self.behind_failed.contains(new.reference()) && gains_dependencies(old, new)
    }

    /// Settles a step, and with it those that only waited for it.
    fn close(&mut self, step: u32, outcome: StepOutcome) {
        if outcome == StepOutcome::Done {
            self.outcomes[step as usize] = outcome;
            for (next, _) in self.plan.schedule.successors(step) {
                self.waits[next as usize] -= 1;
                if self.waits[next as usize] == 0 && self.outcomes[next as usize] == StepOutcome::Open {
                    self.ready.insert(self.position[next as usize]);
                }
            }
            return;
        }
        let mut todo = vec![(step, outcome)];
        while let Some((step, outcome)) = todo.pop() {
            if self.outcomes[step as usize] != StepOutcome::Open {
                continue;
            }
            self.outcomes[step as usize] = outcome;
            for (next, hard) in self.plan.schedule.successors(step) {
                let wait = &mut self.waits[next as usize];
                *wait -= 1;
                if hard && outcome != StepOutcome::Done {
                    let inherited =
                        if outcome == StepOutcome::Failed { StepOutcome::Failed } else { StepOutcome::Held };
                    todo.push((next, inherited));
                } else if outcome == StepOutcome::Background {
                    // It may not overlap with what is still going on.
                    todo.push((next, StepOutcome::Held));
                } else if *wait == 0 && self.outcomes[next as usize] == StepOutcome::Open {
                    self.ready.insert(self.position[next as usize]);
                }
            }
        }
    }

    /// Waits for running operations where nothing else can be done meanwhile.
    async fn collect(&mut self, limit: usize) {
        let must_wait = self.ready.is_empty() || self.running.len() + self.postponed.len() >= limit;
        let mut over = false;
        if must_wait && let Some((step, ended)) = self.running.next().await {
            over = true;
            self.finish_step(step, ended);
        }
        // Whatever else is over already.
        while let Some(Some((step, ended))) = self.running.next().now_or_never() {
            over = true;
            self.finish_step(step, ended);
        }
        if over || self.running.is_empty() {
            for launch in std::mem::take(&mut self.postponed) {
                let now = self.run.clock.now();
                self.launch_or_postpone(launch, now).await;
            }
        }
    }

    fn finish_step(&mut self, step: u32, ended: FinishedOperation) {
        self.needs.retain(|(other, _)| *other != step);
        self.record_end(step, ended);
    }

    /// Records the end of an operation, or that it goes on in the background.
    fn record_end(&mut self, step: u32, ended: FinishedOperation) {
        let now = self.run.clock.now();
        let FinishedOperation { cx, started, mut outcome, cancelled } = ended;
        let slot = self.slots[step as usize];
        if slot == NONE {
            self.close(step, StepOutcome::Failed);
            return;
        }
        let slot = SlotId::from_index(slot);
        let Some(operation) = cx.operation() else { return };
        if let Some(background) = cx.background() {
            if outcome.is_err() {
                background.cancel(now);
                background.abandon();
            } else if let Some(finished) = background.take_outcome() {
                outcome = finished;
            } else {
                transition::go_on_in_background(self.current, slot, Arc::clone(background));
                let item = cx.item().clone();
                if self.engine.journal().is_some() {
                    self.current
                        .shared_mut()
                        .unwritten
                        .push(Record::InBackground { item: item.clone(), at: now });
                }
                self.log(slot, operation, started, None, cancelled, None);
                self.related.add(self.current, self.intended, &item);
                if self.plan.schedule.serial {
                    self.admit_at_most(Admission::Nothing);
                }
                self.close(step, StepOutcome::Background);
                return;
            }
        }
        let error = outcome.as_ref().err().cloned();
        self.log(slot, operation, started, Some(now), cancelled, error);
        let retry = self.engine.retry(cx.item().kind());
        transition::end(self.current, slot, outcome.as_ref().copied(), retry, now);
        if self.engine.journal().is_some() {
            let (item, outcome) = (cx.item().clone(), outcome.clone());
            self.current.shared_mut().unwritten.push(Record::Ended { item, outcome, at: now });
        }
        if outcome.is_ok() {
            if self.progress.failed.remove(cx.item()) {
                // What was kept back because of it is planned once more.
                self.progress.recovered += 1;
            }
            self.close(step, StepOutcome::Done);
        } else {
            self.progress.failures += 1;
            if operation == Operation::Modify && self.plan.schedule.crosses {
                self.admit_at_most(Admission::NoDeletions);
            }
            if self.plan.schedule.crosses {
                self.behind_failed.add(self.current, self.intended, cx.item());
            }
            self.progress.failed.insert(cx.item().clone());
            self.close(step, StepOutcome::Failed);
        }
    }

    fn log(
        &mut self,
        slot: SlotId,
        operation: Operation,
        start: Timestamp,
        end: Option<Timestamp>,
        cancelled: Option<Timestamp>,
        error: Option<OpError>,
    ) {
        if let Some(entry) = log_entry(self.current, slot, operation, start, end, cancelled, error) {
            self.engine.hooks_after(&entry);
            self.progress.log.push(entry);
        }
    }

    /// Writes what is not in the journal yet.
    async fn flush(&mut self) -> Result<(), Interruption> {
        flush(self.engine, self.current).await
    }
}

/// Writes what is not in the journal yet.
pub(crate) async fn flush(engine: &Engine, current: &mut CurrentGraph) -> Result<(), Interruption> {
    let Some(journal) = engine.journal().filter(|_| !current.shared().unwritten.is_empty()) else {
        return Ok(());
    };
    let written = journal.record(&current.shared().unwritten).await;
    written.map_err(|error| Interruption::Journal(error.to_string()))?;
    current.shared_mut().unwritten.clear();
    Ok(())
}

/// Makes the log entry of an operation from the item's state, before that changes.
pub(crate) fn log_entry(
    current: &CurrentGraph,
    slot: SlotId,
    operation: Operation,
    start: Timestamp,
    end: Option<Timestamp>,
    cancelled: Option<Timestamp>,
    error: Option<OpError>,
) -> Option<LogEntry> {
    let state = current.state_at(slot);
    let unfinished = state.and_then(|state| state.unfinished.as_ref());
    // For a modification the new value is what the operation is about.
    let target = unfinished
        .and_then(|unfinished| unfinished.target.as_ref())
        .filter(|_| operation == Operation::Modify);
    let item = target.or_else(|| current.item_at(slot))?.clone();
    let ownership = state.map(|state| state.metadata.ownership()).unwrap_or_default();
    let anew = match operation {
        Operation::Delete => unfinished.is_some_and(|unfinished| unfinished.target.is_some()),
        Operation::Create => state.is_some_and(|state| state.reapply.is_needed()),
        Operation::Modify => false,
    };
    // What was taken over before, and is gone since, is created.
    let was_lost = state.is_some_and(|state| state.drift.is_some());
    let adopts = operation == Operation::Create && ownership.is_adopted() && !anew && !was_lost;
    let mut entry = LogEntry::new(item, operation, ownership, start, end).anew(anew).adopts(adopts);
    let previous = state.and_then(|state| state.last_failure.as_ref()).map(|failure| failure.error.clone());
    if cancelled.is_some() || error.is_some() || previous.is_some() {
        let details = entry.details_mut();
        (details.cancelled, details.error, details.previous_error) = (cancelled, error, previous);
    }
    Some(entry)
}
