//! Checks of anyone's configurator against the real system it configures.
//!
//! ```
//! use setpoint_engine::testkit;
//! # use setpoint_engine::{Configurator, Observed, OpCx, OpError};
//! # use setpoint_graph::{Item, Kind, Name};
//! # use std::sync::Mutex;
//! # #[derive(Clone, Debug, PartialEq)] struct Flag(bool);
//! # impl Item for Flag {
//! #     const KIND: Kind = Kind::from_static("flag");
//! #     fn name(&self) -> Name { Name::from_static("f") }
//! # }
//! # #[derive(Default)] struct Flags(Mutex<Option<Flag>>);
//! # impl Configurator<Flag> for Flags {
//! #     async fn create(&self, _: &OpCx, new: &Flag) -> Result<(), OpError> { *self.0.lock().unwrap() = Some(new.clone()); Ok(()) }
//! #     async fn delete(&self, _: &OpCx, _: &Flag) -> Result<(), OpError> { *self.0.lock().unwrap() = None; Ok(()) }
//! #     async fn modify(&self, cx: &OpCx, _: &Flag, new: &Flag) -> Result<(), OpError> { self.create(cx, new).await }
//! #     async fn read(&self, _: &OpCx, _: &Flag) -> Result<Observed<Flag>, OpError> {
//! #         Ok(self.0.lock().unwrap().clone().map_or(Observed::Absent, Observed::Present))
//! #     }
//! # }
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let checked = testkit::check(Flags::default(), &[Flag(true), Flag(false)]).await;
//! assert_eq!(checked.findings, []);
//! // Its operations never wait, so they can't be interrupted or cancelled half-way.
//! assert_eq!(checked.to_string(), "12 passed, 0 failed, 4 skipped");
//! # });
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use setpoint_graph::{Item, ItemHandle, Name};
use tokio_util::sync::CancellationToken;

use crate::background::Wake;
use crate::clock::{Clock, SystemClock};
use crate::configurator::{Configurator, ConfiguratorHandle, Observed};
use crate::metadata::{Ownership, SharedMetadata};
use crate::op::{OpCx, OpError, OpInputs, Operation, RunShared};

/// A promise that a configurator did not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What should hold.
    pub promise: &'static str,
    /// With which item, and what happened instead.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.what)
    }
}

/// A check that could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// What should hold.
    pub promise: &'static str,
    /// With which item, and why that could not be checked.
    pub why: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.why)
    }
}

/// What the checks of a configurator came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// How many promises were seen to be kept.
    pub passed: usize,
    /// Those that were not kept.
    pub findings: Vec<Finding>,
    /// Those that could not be checked, such as what was created by a configurator that can't read.
    pub skipped: Vec<Skipped>,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (passed, failed, skipped) = (self.passed, self.findings.len(), self.skipped.len());
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// No operation on a sample may take longer.
const OPERATION_LIMIT: Duration = Duration::from_mins(1);
/// A cancelled operation should have stopped after this.
const CANCELLATION_LIMIT: Duration = Duration::from_secs(10);

/// Checks a configurator with some values of one item: how many promises it kept, which it broke, and which could not be
/// checked.
///
/// The samples have the same reference and differ in value; at the start and in the end none of them exists
/// in the system. Needs a tokio runtime with time.
pub async fn check<T: Item + Clone>(configurator: impl Configurator<T>, samples: &[T]) -> Checked {
    let mut kit = Kit {
        configurator: ConfiguratorHandle::new(configurator),
        checked: Checked::default(),
        metadata: Arc::default(),
    };
    for sample in samples {
        let item = ItemHandle::new(sample.clone());
        kit.check_life(&item).await;
        kit.check_interrupted_creation(&item).await;
        kit.check_cancellation(&item).await;
    }
    for old in samples {
        for new in samples.iter().filter(|new| *new != old) {
            kit.check_modification(&ItemHandle::new(old.clone()), &ItemHandle::new(new.clone())).await;
        }
    }
    kit.checked
}

struct Kit {
    configurator: ConfiguratorHandle,
    checked: Checked,
    /// What is remembered of the item while it lives.
    metadata: Arc<SharedMetadata>,
}

impl Kit {
    fn find(&mut self, promise: &'static str, what: String) {
        self.checked.findings.push(Finding { promise, what });
    }

    fn skip(&mut self, promise: &'static str, why: String) {
        self.checked.skipped.push(Skipped { promise, why });
    }

    fn cx(&self, item: &ItemHandle, operation: Option<Operation>) -> (OpCx, CancellationToken) {
        let cancel = CancellationToken::new();
        let run = RunShared {
            clock: Arc::new(SystemClock),
            cancel: cancel.clone(),
            wake: Arc::new(Wake::new(Name::from_static("testkit"))),
            journal: None,
        };
        let inputs = OpInputs { metadata: Arc::clone(&self.metadata), ..OpInputs::default() };
        (OpCx::new(item.reference().clone(), operation, inputs, Arc::new(run)), cancel)
    }

    /// Runs an operation to its end, also where it goes on in the background.
    async fn run(
        &self,
        item: &ItemHandle,
        operation: Operation,
        old: Option<&ItemHandle>,
    ) -> Result<(), OpError> {
        let (cx, _cancel) = self.cx(item, Some(operation));
        let (item, kept) = (item.clone(), cx.clone());
        let work = match (operation, old) {
            (Operation::Create, _) => self.configurator.create(cx, item),
            (Operation::Modify, Some(old)) => self.configurator.modify(cx, old.clone(), item),
            _ => self.configurator.delete(cx, item),
        };
        let whole = async {
            work.await?;
            let Some(background) = kept.background() else { return Ok(()) };
            loop {
                if let Some(outcome) = background.take_outcome() {
                    return outcome;
                }
                SystemClock.sleep(Duration::from_millis(2)).await;
            }
        };
        match select(Box::pin(whole), SystemClock.sleep(OPERATION_LIMIT)).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Err(OpError::new("it did not end")),
        }
    }

    /// Holds what is read to what is wanted.
    async fn expect(&mut self, promise: &'static str, item: &ItemHandle, wanted: Option<&ItemHandle>) {
        let (cx, _cancel) = self.cx(item, None);
        let found = match self.configurator.read(cx, item.clone()).await {
            Ok(Observed::Unsupported) => {
                return self.skip(promise, format!("{item}: the configurator can't read"));
            }
            Ok(Observed::Absent) => None,
            Ok(Observed::Present(found)) => Some(found),
            Err(error) => return self.find("an item can be read", format!("{item}: {error}")),
        };
        if found.as_ref() == wanted {
            self.checked.passed += 1;
            return;
        }
        let found = found.map_or_else(|| "nothing".to_owned(), |found| found.to_string());
        let wanted = wanted.map_or_else(|| "nothing".to_owned(), ToString::to_string);
        self.find(promise, format!("it reads as {found:?}, not as {wanted:?}"));
    }

    /// Deletes an item, and sees whether it is gone.
    async fn clean(&mut self, promise: &'static str, item: &ItemHandle) {
        match self.run(item, Operation::Delete, None).await {
            Ok(()) => self.expect(promise, item, None).await,
            Err(error) => self.find(promise, format!("{item}: {error}")),
        }
        self.metadata = Arc::default();
    }

    /// Deletes an item after a check that says nothing.
    async fn clean_unchecked(&mut self, item: &ItemHandle) {
        if let Err(error) = self.run(item, Operation::Delete, None).await {
            self.find("what was created can be deleted", format!("{item}: {error}"));
        }
        self.metadata = Arc::default();
    }

    async fn check_life(&mut self, item: &ItemHandle) {
        self.expect("before it is created it is not there", item, None).await;
        match self.run(item, Operation::Create, None).await {
            Err(error) => self.find("an item can be created", format!("{item}: {error}")),
            Ok(()) => self.expect("what was created reads as it was wanted", item, Some(item)).await,
        }
        self.clean("what was created can be deleted", item).await;
        self.clean("deleting what is not there is a success", item).await;
    }

    async fn check_modification(&mut self, old: &ItemHandle, new: &ItemHandle) {
        if self.configurator.needs_recreate(Ownership::Owned, old, new) {
            return self.skip("an item can be modified", format!("{old} to {new} is a re-creation"));
        }
        if let Err(error) = self.run(old, Operation::Create, None).await {
            self.find("an item can be created", format!("{old}: {error}"));
        } else {
            match self.run(new, Operation::Modify, Some(old)).await {
                Err(error) => self.find("an item can be modified", format!("{old} to {new}: {error}")),
                Ok(()) => self.expect("what was modified reads as it was wanted", new, Some(new)).await,
            }
        }
        self.clean("what was modified can be deleted", new).await;
    }

    /// Drops the creation at each of its awaits in turn: what it left must be deleted by a deletion.
    async fn check_interrupted_creation(&mut self, item: &ItemHandle) {
        const PROMISE: &str = "an interrupted creation is cleaned up by a deletion";
        for polls in 1..50 {
            let (cx, _cancel) = self.cx(item, Some(Operation::Create));
            let mut work = self.configurator.create(cx, item.clone());
            let mut ended = false;
            for _ in 0..polls {
                if futures::poll!(&mut work).is_ready() {
                    ended = true;
                    break;
                }
                SystemClock.sleep(Duration::from_millis(1)).await;
            }
            drop(work);
            if !ended {
                self.clean(PROMISE, item).await;
                continue;
            }
            self.clean_unchecked(item).await;
            if polls == 1 {
                self.skip(PROMISE, format!("{item}: its creation never waits"));
            }
            return;
        }
    }

    async fn check_cancellation(&mut self, item: &ItemHandle) {
        let (cx, cancel) = self.cx(item, Some(Operation::Create));
        let mut work = self.configurator.create(cx, item.clone());
        if futures::poll!(&mut work).is_ready() {
            self.clean_unchecked(item).await;
            return self.skip("a cancelled creation stops", format!("{item}: its creation never waits"));
        }
        cancel.cancel();
        if let Either::Right(_) = select(work, SystemClock.sleep(CANCELLATION_LIMIT)).await {
            self.find(
                "a cancelled creation stops",
                format!("{item}: it was still running after {CANCELLATION_LIMIT:?}"),
            );
        }
        self.clean("a cancelled creation is cleaned up by a deletion", item).await;
    }
}
