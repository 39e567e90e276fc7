//! How an operation is started: recorded, marked in progress, polled for the first time.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::future::{BoxFuture, Either, FutureExt, select};
use jiff::Timestamp;
use rustc_hash::FxHashSet;
use setpoint_graph::{ItemHandle, ItemRef, Kind, SlotId};

use super::{Execution, FinishedOperation, StepOutcome};
use crate::configurator::{ConfiguratorHandle, Observed};
use crate::journal::Record;
use crate::op::{OpCx, OpError, OpInputs, Operation};
use crate::plan::{NONE, Outcome, StepKind, all_it_needs, slot};
use crate::transition;

/// An operation that is about to start.
pub(super) struct Launch {
    step: u32,
    operation: Operation,
    item: ItemHandle,
    target: Option<ItemHandle>,
    configurator: ConfiguratorHandle,
}

impl Execution<'_> {
    /// Records the starts of a batch, marks them in progress, and polls each once.
    pub(super) async fn start(&mut self, batch: &mut Vec<u32>) {
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
            self.admit_at_most(super::Admission::Nothing);
            // What the journal does not know is not started.
            let unwritten = &mut self.current.shared_mut().unwritten;
            unwritten.retain(|record| !matches!(record, Record::Started { number, .. } if *number > before));
            for launch in launches {
                self.close(launch.step, StepOutcome::Held);
            }
            return;
        }
        self.look_ahead(&launches);
        for launch in launches {
            self.launch_or_postpone(launch, now).await;
        }
    }

    /// Looks at what a batch is about to be wired to, or cut off from. In a large graph those places are far
    /// apart in memory: looked at together they are waited for once, not one after the other.
    ///
    /// `cargo xtask bench engine create-all` shows what this buys: at a million items about a tenth to a fifth of the time, at
    /// 300,000 nothing that can be told from noise. The sum is only there so that the compiler does not leave the reads out.
    fn look_ahead(&self, launches: &[Launch]) {
        let mut dependents = 0;
        for launch in launches {
            let subject = &self.plan.subjects[self.step(launch.step).subject as usize];
            if launch.operation == Operation::Create {
                dependents += usize::from(self.current.contains(launch.item.reference()));
                let edges = subject.int().map_or(&[][..], |slot| self.intended.edges_at(slot));
                let created = edges.iter().filter_map(|edge| self.created.get(edge.slot.index()));
                dependents += created.map(|&it| self.current.incoming_at(slot(it)).len()).sum::<usize>();
            } else {
                let edges = subject.cur().map_or(&[][..], |slot| self.current.edges_at(slot));
                dependents +=
                    edges.iter().map(|edge| self.current.incoming_at(edge.slot).len()).sum::<usize>();
            }
        }
        std::hint::black_box(dependents);
    }

    /// Takes back an operation that was recorded and not started: one of its batch goes on in the background,
    /// and is related to it.
    fn withdraw(&mut self, launch: &Launch) {
        if self.engine.journal().is_some() {
            let (item, at) = (launch.item.reference().clone(), self.run.clock.now());
            self.current.shared_mut().unwritten.push(Record::Withdrawn { item, at });
        }
        self.close(launch.step, StepOutcome::Held);
    }

    /// Launches an operation, unless a running one is related to it.
    ///
    /// A schedule of creations or of deletions orders them along the dependencies. Otherwise steps may meet
    /// from two sides, as a deletion and a creation that a third item connects.
    pub(super) async fn launch_or_postpone(&mut self, launch: Launch, now: Timestamp) {
        if self.related.to(launch.item.reference()).is_some() {
            self.withdraw(&launch);
            return;
        }
        let mut needs = None;
        if !self.needs.is_empty() {
            let item = launch.item.reference();
            let its_needs = all_it_needs(self.current, self.intended, item);
            let meets = self.needs.iter().any(|(other, others_needs)| {
                others_needs.contains(item)
                    || self.reference(*other).is_some_and(|other| its_needs.contains(other))
            });
            if meets {
                self.postponed.push(launch);
                return;
            }
            needs = Some(its_needs);
        }
        self.mark(launch.step, launch.operation, &launch.item, launch.target.clone(), now);
        self.launch(launch, needs, now).await;
    }

    /// What carries out operations on items of a kind.
    fn configurator(&mut self, kind: &Kind) -> Option<ConfiguratorHandle> {
        // Steps of one kind mostly follow each other.
        match &self.configurator {
            Some((known, configurator)) if known == kind => Some(configurator.clone()),
            _ => {
                let configurator = self.engine.configurator(kind)?;
                self.configurator = Some((kind.clone(), configurator.clone()));
                Some(configurator)
            }
        }
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
                let returns = subject.outcome == Outcome::Recreate;
                (Operation::Delete, old.cloned(), new.filter(|_| returns).cloned())
            }
            StepKind::Switch | StepKind::Gate => return Err(OpError::untouched("this step does nothing")),
        };
        let Some(item) = item else { return Err(OpError::untouched("the item is gone")) };
        let configurator = self.configurator(item.kind());
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
            _ => subject.cur.slot().map_or_else(Default::default, |slot| self.current.path_at(slot)),
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
            self.close(step, StepOutcome::Failed);
            return;
        };
        let inputs = OpInputs::default();
        let cx = OpCx::new(item.reference().clone(), Some(operation), inputs, Arc::clone(self.run));
        self.note_start(step, operation, &item, new.as_ref(), now);
        self.mark(step, operation, &item, new, now);
        self.record_end(step, FinishedOperation { cx, started: now, outcome: Err(error), cancelled: None });
    }

    /// Marks an operation as in progress, before it is first polled.
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
        self.slots[step as usize] = slot.map_or(NONE, SlotId::to_index);
    }

    /// What the operation of a step gets to know of its item.
    fn inputs(&mut self, step: u32, returns: bool) -> OpInputs {
        let slot = slot(self.slots[step as usize]);
        let lost = &self.current.shared().lost;
        let was_lost =
            !lost.is_empty() && self.current.reference_at(slot).is_some_and(|item| lost.contains(item));
        let Some(state) = self.current.state_at_mut(slot) else { return OpInputs::default() };
        OpInputs {
            unfinished: None,
            metadata: state.metadata.share(),
            again: state.reapply.is_needed(),
            returns,
            was_lost,
        }
    }

    /// Polls an operation for the first time; most are over then.
    async fn launch(&mut self, launch: Launch, needs: Option<FxHashSet<ItemRef>>, now: Timestamp) {
        let Launch { step, operation, item, target, configurator } = launch;
        let returns = operation == Operation::Delete && target.is_some();
        let inputs = self.inputs(step, returns);
        let cx = OpCx::new(item.reference().clone(), Some(operation), inputs, Arc::clone(self.run));
        let limit = self.engine.limit(&configurator, Some(operation), target.as_ref().unwrap_or(&item));
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
            self.record_end(step, FinishedOperation { cx, started: now, outcome, cancelled: None });
            return;
        }
        if self.plan.schedule.crosses && self.engine.concurrency() > 1 {
            let needs = needs.unwrap_or_else(|| all_it_needs(self.current, self.intended, cx.item()));
            self.needs.push((step, needs));
        }
        let clock = Arc::clone(&self.run.clock);
        let grace = self.engine.grace();
        self.running.push(Box::pin(async move {
            let stop = async {
                let cancelled = cx.cancelled();
                match limit {
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
            let (outcome, cancelled) = match select(work, Box::pin(stop)).await {
                // It may have stopped before this was noticed: it was asked to.
                Either::Left((outcome, _)) => (outcome, cx.is_cancelled().then(|| clock.now())),
                Either::Right((why, work)) => {
                    // It was asked to stop, and gets some time to do so.
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
            (step, FinishedOperation { cx, started: now, outcome, cancelled })
        }));
    }
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
    // A read changes nothing; what is verified did.
    let unread = |error: OpError| OpError::new(format!("can't be read back: {error}"));
    match configurator.read(cx, wanted.clone()).await.map_err(unread)? {
        Observed::Unsupported => Ok(()),
        Observed::Present(found) if found == wanted => Ok(()),
        Observed::Present(found) => {
            Err(OpError::new(format!("after the operation it is not as intended: {found}")))
        }
        Observed::Absent => Err(OpError::new("after the operation it is not there")),
    }
}

/// A panic of a configurator as the failure of its operation.
pub(crate) fn panicked(payload: &(dyn Any + Send)) -> OpError {
    let message = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
    OpError::new(format!("the configurator panicked: {}", message.as_deref().unwrap_or("no message")))
}
