//! Execution: drives the steps of a plan inside the caller's task.
//!
//! ```text
//!  ready steps ─▶ batch ─▶ journal ─▶ marked in flight ─▶ polled ─┬─▶ ended: graph, log, successors
//!                                                                 ├─▶ still running: polled on
//!                                                                 └─▶ background: kept in the graph
//! ```
//!
//! No task is spawned. State is marked in flight before an operation is first polled, so that the graph is
//! true at every await, also if the caller drops the run there.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::future::{BoxFuture, Either, FutureExt, select};
use futures::stream::{FuturesUnordered, StreamExt};
use jiff::Timestamp;
use rustc_hash::FxHashSet;
use setpoint_graph::{Graph, ItemHandle, ItemRef, SlotId};

use crate::configurator::{ConfiguratorHandle, Observed};
use crate::engine::Engine;
use crate::journal::Record;
use crate::log::LogEntry;
use crate::op::{OpCx, OpError, Operation, RunShared};
use crate::plan::{Blueprint, NONE, Related, Step, StepKind, all_it_needs, slot};
use crate::state::CurrentGraph;
use crate::status::Interruption;
use crate::transition;

/// What a run has done so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) log: Vec<LogEntry>,
    /// Items that failed in this run: not tried again in it.
    pub(crate) failed: FxHashSet<ItemRef>,
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
    progress: &'a mut Progress,
    related: Related,
    /// How many steps each step waits for.
    waits: Vec<u32>,
    /// Where each step stands.
    fates: Vec<StepFate>,
    position: Vec<u32>,
    ready: BinaryHeap<Reverse<u32>>,
    running: FuturesUnordered<BoxFuture<'static, (u32, Ended)>>,
    /// What each running step's item needs, directly or not.
    needs: Vec<(u32, FxHashSet<ItemRef>)>,
    /// Steps that wait for a running one to which their item is related.
    postponed: Vec<Launch>,
    slots: Vec<Option<SlotId>>,
    /// The current slots of items that this run created, by their intended slot.
    created: Vec<u32>,
    stopped: bool,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepFate {
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

struct Ended {
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
        progress: &'a mut Progress,
    ) -> Self {
        let schedule = &plan.schedule;
        let mut position = vec![0; schedule.order.len()];
        for (at, &step) in (0_u32..).zip(&schedule.order) {
            position[step as usize] = at;
        }
        let waits = schedule.waits.clone();
        let ready = schedule.order.iter().filter(|&&step| waits[step as usize] == 0);
        let ready = ready.map(|&step| Reverse(position[step as usize])).collect();
        progress.log.reserve(schedule.steps.len());
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
            fates: vec![StepFate::Open; waits.len()],
            slots: vec![None; waits.len()],
            created: if waits.is_empty() { Vec::new() } else { vec![NONE; intended.slot_bound()] },
            waits,
            position,
            ready,
            running: FuturesUnordered::new(),
            needs: Vec::new(),
            postponed: Vec::new(),
            stopped: false,
        }
    }

    /// Carries out all that can be, and returns where each step stands in the end.
    pub(crate) async fn run(mut self) -> Vec<StepFate> {
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
        self.fates
    }

    fn step(&self, step: u32) -> Step {
        self.plan.schedule.steps[step as usize]
    }

    fn reference(&self, step: u32) -> Option<&ItemRef> {
        let subject = &self.plan.subjects[self.step(step).subject as usize];
        match subject.int() {
            Some(slot) => self.intended.reference_at(slot),
            None => self.current.reference_at(slot(subject.cur)),
        }
    }

    /// Takes ready steps until as many run as may; those that need no operation are done at once.
    fn fill(&mut self, batch: &mut Vec<u32>, limit: usize) {
        while self.running.len() + self.postponed.len() + batch.len() < limit {
            if self.run.cancel.is_cancelled() && !self.stopped {
                self.stopped = true;
                self.progress.interruption.get_or_insert(Interruption::Cancelled);
            }
            let Some(Reverse(at)) = self.ready.pop() else { return };
            let step = self.plan.schedule.order[at as usize];
            if self.fates[step as usize] != StepFate::Open {
                continue;
            }
            let Step { subject, kind } = self.step(step);
            if matches!(kind, StepKind::Switch | StepKind::Gate) {
                self.close(step, StepFate::Done);
                continue;
            }
            let held = self.stopped
                || self.plan.subjects[subject as usize].held
                || !self.related.is_empty()
                    && self.reference(step).is_some_and(|item| self.related.to(item).is_some());
            if held {
                self.close(step, StepFate::Held);
            } else {
                batch.push(step);
            }
        }
    }

    /// Settles a step, and with it those that only waited for it.
    fn close(&mut self, step: u32, fate: StepFate) {
        if fate == StepFate::Done {
            self.fates[step as usize] = fate;
            for &(next, _) in self.plan.schedule.successors(step) {
                self.waits[next as usize] -= 1;
                if self.waits[next as usize] == 0 && self.fates[next as usize] == StepFate::Open {
                    self.ready.push(Reverse(self.position[next as usize]));
                }
            }
            return;
        }
        let mut todo = vec![(step, fate)];
        while let Some((step, fate)) = todo.pop() {
            if self.fates[step as usize] != StepFate::Open {
                continue;
            }
            self.fates[step as usize] = fate;
            for &(next, hard) in self.plan.schedule.successors(step) {
                let wait = &mut self.waits[next as usize];
                *wait -= 1;
                if hard && fate != StepFate::Done {
                    let inherited = if fate == StepFate::Failed { StepFate::Failed } else { StepFate::Held };
                    todo.push((next, inherited));
                } else if fate == StepFate::Background {
                    // It may not overlap with what is still going on.
                    todo.push((next, StepFate::Held));
                } else if *wait == 0 && self.fates[next as usize] == StepFate::Open {
                    self.ready.push(Reverse(self.position[next as usize]));
                }
            }
        }
    }

    /// Records the starts of a batch, marks them in flight, and polls each once.
    async fn start(&mut self, batch: &mut Vec<u32>) {
        let now = self.run.clock.now();
        let mut launches = Vec::with_capacity(batch.len());
        let before = self.progress.operations;
        for step in batch.drain(..) {
            match self.prepare(step, now) {
                Ok(launch) => launches.push(launch),
                Err(error) => self.refuse(step, error, now),
            }
        }
        if let Err(interruption) = self.flush().await {
            self.progress.interruption.get_or_insert(interruption);
            self.stopped = true;
            // What the journal does not know is not started.
            let unwritten = &mut self.current.shared_mut().unwritten;
            unwritten.retain(|record| !matches!(record, Record::Started { number, .. } if *number > before));
            for launch in launches {
                self.close(launch.step, StepFate::Held);
            }
            return;
        }
        for launch in launches {
            self.launch_or_postpone(launch).await;
        }
    }

    /// Takes back an operation that was recorded and not started: one of its batch goes on in the background,
    /// and is related to it.
    fn withdraw(&mut self, launch: &Launch) {
        if self.engine.journal().is_some() {
            let (item, at) = (launch.item.reference().clone(), self.run.clock.now());
            self.current.shared_mut().unwritten.push(Record::Withdrawn { item, at });
        }
        self.close(launch.step, StepFate::Held);
    }

    /// Launches an operation, unless a running one is related to it.
    ///
    /// The schedule orders steps of one kind along the dependencies, unless alternatives cross; steps of
    /// different kinds may meet from two sides, as a deletion and a creation that a third item connects.
    async fn launch_or_postpone(&mut self, launch: Launch) {
        if self.related.to(launch.item.reference()).is_some() {
            self.withdraw(&launch);
            return;
        }
        let mut needs = None;
        if !self.needs.is_empty() {
            let item = launch.item.reference();
            let its_needs = all_it_needs(self.current, self.intended, item);
            let kind = self.step(launch.step).kind;
            let meets = self.needs.iter().any(|(other, others_needs)| {
                let of_one_kind =
                    !self.plan.schedule.crosses && kind != StepKind::Modify && self.step(*other).kind == kind;
                let related = others_needs.contains(item)
                    || self.reference(*other).is_some_and(|other| its_needs.contains(other));
                related && !of_one_kind
            });
            if meets {
                self.postponed.push(launch);
                return;
            }
            needs = Some(its_needs);
        }
        let now = self.run.clock.now();
        self.mark(launch.step, launch.operation, &launch.item, launch.target.clone(), now);
        self.launch(launch, needs).await;
    }

    /// Looks up all that an operation needs, and notes its start for the journal.
    fn prepare(&mut self, step: u32, now: Timestamp) -> Result<Launch, OpError> {
        let subject = &self.plan.subjects[self.step(step).subject as usize];
        let new = subject.int().and_then(|slot| self.intended.item_at(slot));
        let old = subject.cur().and_then(|slot| self.current.item_at(slot));
        let (operation, item, target) = match self.step(step).kind {
            StepKind::Create => (Operation::Create, new.cloned(), None),
            StepKind::Modify => (Operation::Modify, old.cloned(), new.cloned()),
            StepKind::Delete => {
                let returns = subject.fate == crate::plan::Fate::Recreate;
                (Operation::Delete, old.cloned(), new.filter(|_| returns).cloned())
            }
            StepKind::Switch | StepKind::Gate => return Err(OpError::untouched("this step does nothing")),
        };
        let Some(item) = item else { return Err(OpError::untouched("the item is gone")) };
        let configurator = self.engine.configurator(item.kind());
        let Some(configurator) = configurator else {
            return Err(OpError::untouched(format!(
                "no configurator is registered for the kind {}",
                item.kind()
            )));
        };
        let seen = if operation == Operation::Modify { target.as_ref().unwrap_or(&item) } else { &item };
        self.engine.hooks_before(operation, seen)?;
        self.note_start(step, operation, &item, target.as_ref(), now);
        Ok(Launch { step, operation, item, target, configurator })
    }

    fn note_start(
        &mut self,
        step: u32,
        operation: Operation,
        item: &ItemHandle,
        target: Option<&ItemHandle>,
        at: Timestamp,
    ) {
        if self.engine.journal().is_none() {
            return;
        }
        let subject = &self.plan.subjects[self.step(step).subject as usize];
        let path = match (operation, subject.int()) {
            (Operation::Create, Some(intended)) => self.intended.path_at(intended),
            _ => self.current.path_at(slot(subject.cur)),
        };
        self.progress.operations += 1;
        let number = self.progress.operations;
        let (item, target) = (item.clone(), target.cloned());
        self.current.shared_mut().unwritten.push(Record::Started {
            number,
            operation,
            item,
            target,
            path,
            at,
        });
    }

    /// Fails a step that was never started.
    fn refuse(&mut self, step: u32, error: OpError, now: Timestamp) {
        let subject = &self.plan.subjects[self.step(step).subject as usize];
        let new = subject.int().and_then(|slot| self.intended.item_at(slot)).cloned();
        let old = subject.cur().and_then(|slot| self.current.item_at(slot)).cloned();
        let (operation, item) = match self.step(step).kind {
            StepKind::Create => (Operation::Create, new.clone()),
            StepKind::Delete => (Operation::Delete, old),
            _ => (Operation::Modify, old),
        };
        let Some(item) = item else {
            self.close(step, StepFate::Failed);
            return;
        };
        let cx = OpCx::new(item.reference().clone(), Some(operation), Arc::clone(self.run));
        self.note_start(step, operation, &item, new.as_ref(), now);
        self.mark(step, operation, &item, new, now);
        self.settle(step, Ended { cx, started: now, outcome: Err(error), cancelled: None });
    }

    /// Marks an operation as in flight, before it is first polled.
    fn mark(
        &mut self,
        step: u32,
        operation: Operation,
        item: &ItemHandle,
        target: Option<ItemHandle>,
        now: Timestamp,
    ) {
        let subject = &self.plan.subjects[self.step(step).subject as usize];
        let slot = if operation == Operation::Create {
            let path = subject.int().map_or_else(Default::default, |slot| self.intended.path_at(slot));
            if !path.is_root() && self.current.subgraph(&path).is_none() {
                self.engine.mirror_subgraph(self.current, self.intended, &path);
            }
            let edges = subject.int().map_or(&[][..], |slot| self.intended.edges_at(slot));
            let created = &self.created;
            let link = |edge: usize| {
                let target = edges.get(edge)?.slot.index();
                created.get(target).copied().filter(|&slot| slot != NONE).map(slot)
            };
            let slot = transition::begin_create(self.current, item, &path, link, now);
            if let (Some(slot), Some(intended)) = (slot, subject.int()) {
                self.created[intended.index()] = slot.to_index();
            }
            slot
        } else {
            let slot = subject.cur();
            if let Some(slot) = slot {
                transition::begin_change(self.current, slot, operation, target, now);
            }
            slot
        };
        self.slots[step as usize] = slot;
    }

    /// Polls an operation for the first time; most are over then.
    async fn launch(&mut self, launch: Launch, needs: Option<FxHashSet<ItemRef>>) {
        let Launch { step, operation, item, target, configurator } = launch;
        let now = self.run.clock.now();
        let cx = OpCx::new(item.reference().clone(), Some(operation), Arc::clone(self.run));
        let kind_timeout = self.engine.timeout(item.kind());
        let verify = self.engine.verifies();
        let op_cx = cx.clone();
        let operated: BoxFuture<'static, Result<(), OpError>> = match (operation, target) {
            (Operation::Modify, Some(target)) if verify => {
                let work = configurator.modify(op_cx.clone(), item, target.clone());
                Box::pin(verified(work, configurator, op_cx, target))
            }
            (Operation::Create, _) if verify => {
                let work = configurator.create(op_cx.clone(), item.clone());
                Box::pin(verified(work, configurator, op_cx, item))
            }
            (Operation::Modify, Some(target)) => configurator.modify(op_cx, item, target),
            (Operation::Create, _) => configurator.create(op_cx, item),
            (Operation::Delete | Operation::Modify, _) => configurator.delete(op_cx, item),
        };
        let mut work = AssertUnwindSafe(operated).catch_unwind();
        if let std::task::Poll::Ready(outcome) = futures::poll!(&mut work) {
            let outcome = outcome.unwrap_or_else(|panic| Err(panicked(&*panic)));
            self.settle(step, Ended { cx, started: now, outcome, cancelled: None });
            return;
        }
        if self.engine.concurrency() > 1 {
            let needs = needs.unwrap_or_else(|| all_it_needs(self.current, self.intended, cx.item()));
            self.needs.push((step, needs));
        }
        let clock = Arc::clone(&self.run.clock);
        let grace = self.engine.grace();
        self.running.push(Box::pin(async move {
            let limit = async {
                let cancelled = cx.cancelled();
                match kind_timeout {
                    None => {
                        cancelled.await;
                        "was cancelled"
                    }
                    Some(timeout) => match select(Box::pin(cancelled), clock.sleep(timeout)).await {
                        Either::Left(_) => "was cancelled",
                        Either::Right(_) => {
                            cx.cancellation().cancel();
                            "took too long"
                        }
                    },
                }
            };
            let (outcome, cancelled) = match select(work, Box::pin(limit)).await {
                // It may have obeyed before anyone here noticed that it was told to stop.
                Either::Left((outcome, _)) => (outcome, cx.is_cancelled().then(|| clock.now())),
                Either::Right((why, work)) => {
                    // It was told to stop: it gets some time to do so in good order.
                    let cancelled = Some(clock.now());
                    match select(work, clock.sleep(grace)).await {
                        Either::Left((outcome, _)) => (outcome, cancelled),
                        Either::Right(_) => (
                            Ok(Err(OpError::new(format!("the operation {why} and did not stop")))),
                            cancelled,
                        ),
                    }
                }
            };
            let outcome = outcome.unwrap_or_else(|panic| Err(panicked(&*panic)));
            (step, Ended { cx, started: now, outcome, cancelled })
        }));
    }

    /// Waits for running operations where nothing else can be done meanwhile.
    async fn collect(&mut self, limit: usize) {
        let must_wait = self.ready.is_empty() || self.running.len() + self.postponed.len() >= limit;
        let mut over = false;
        if must_wait && let Some((step, ended)) = self.running.next().await {
            over = true;
            self.land(step, ended);
        }
        // Whatever else is over already.
        while let Some(Some((step, ended))) = self.running.next().now_or_never() {
            over = true;
            self.land(step, ended);
        }
        if over || self.running.is_empty() {
            for launch in std::mem::take(&mut self.postponed) {
                self.launch_or_postpone(launch).await;
            }
        }
    }

    fn land(&mut self, step: u32, ended: Ended) {
        self.needs.retain(|(other, _)| *other != step);
        self.settle(step, ended);
    }

    /// Records the end of an operation, or that it goes on in the background.
    fn settle(&mut self, step: u32, ended: Ended) {
        let now = self.run.clock.now();
        let Ended { cx, started, mut outcome, cancelled } = ended;
        let Some(slot) = self.slots[step as usize] else {
            self.close(step, StepFate::Failed);
            return;
        };
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
                self.stopped |= self.plan.schedule.serial;
                self.close(step, StepFate::Background);
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
            self.close(step, StepFate::Done);
        } else {
            self.progress.failed.insert(cx.item().clone());
            self.close(step, StepFate::Failed);
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

/// An operation that is about to start.
struct Launch {
    step: u32,
    operation: Operation,
    item: ItemHandle,
    target: Option<ItemHandle>,
    configurator: ConfiguratorHandle,
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
    let flight = state.and_then(|state| state.flight.as_ref());
    // For a modification the new value is what the operation is about.
    let target = flight.and_then(|flight| flight.target.as_ref()).filter(|_| operation == Operation::Modify);
    let item = target.or_else(|| current.item_at(slot))?.clone();
    let mut entry = LogEntry { item, operation, start, end, trouble: None };
    let previous = state.and_then(|state| state.trouble.as_ref()).map(|trouble| trouble.error.clone());
    if cancelled.is_some() || error.is_some() || previous.is_some() {
        let trouble = entry.trouble_mut();
        (trouble.cancelled, trouble.error, trouble.previous_error) = (cancelled, error, previous);
    }
    Some(entry)
}

/// Runs an operation, then reads the item back and compares.
async fn verified(
    work: BoxFuture<'static, Result<(), OpError>>,
    configurator: ConfiguratorHandle,
    cx: OpCx,
    wanted: ItemHandle,
) -> Result<(), OpError> {
    work.await?;
    if cx.background().is_some() {
        return Ok(());
    }
    verify(&configurator, cx, wanted).await
}

/// Reads an item back and compares it with what it should be.
pub(crate) async fn verify(
    configurator: &ConfiguratorHandle,
    cx: OpCx,
    wanted: ItemHandle,
) -> Result<(), OpError> {
    match configurator.read(cx, wanted.clone()).await? {
        Observed::Unsupported => Ok(()),
        Observed::Present(found) if found == wanted => Ok(()),
        Observed::Present(found) => Err(OpError::new(format!("after the operation it reads as {found}"))),
        Observed::Absent => Err(OpError::new("after the operation it is not there")),
    }
}

/// A panic of a configurator as the failure of its operation.
pub(crate) fn panicked(payload: &(dyn Any + Send)) -> OpError {
    let message = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
    OpError::new(format!("the configurator panicked: {}", message.as_deref().unwrap_or("no message")))
}
