//! Operations on single items, as their configurators see them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use setpoint_graph::ItemRef;
use tokio_util::sync::CancellationToken;

use crate::background::{Background, Completion, Wake};
use crate::clock::Clock;
use crate::journal::{Journal, Record};
use crate::metadata::{Ownership, SharedMetadata};

/// What is done to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Brings it into being.
    Create,
    /// Changes it in place.
    Modify,
    /// Removes it.
    Delete,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Modify => "modify",
            Self::Delete => "delete",
        })
    }
}

/// What a failed operation left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Damage {
    /// Nothing was changed: the item is as it was before.
    Untouched,
    /// Something may have been changed: it is cleaned up before anything else happens to the item.
    Partial,
    /// The operation may have come to its end, and nobody could see whether it did: the item is read back before anything else
    /// happens to it. Where it can't be read, it is cleaned up.
    Unknown,
}

/// What an operation comes to.
pub type OpResult<T = ()> = Result<T, OpError>;

/// Why an operation failed.
///
/// ```
/// use setpoint_engine::{Damage, OpError};
/// assert_eq!(OpError::new("disk full").damage(), Damage::Partial);
/// assert_eq!(OpError::untouched("no such user").damage(), Damage::Untouched);
/// assert_eq!(OpError::untouched(std::io::Error::other("boom")).damage(), Damage::Untouched);
/// assert_eq!(OpError::unknown("sent, and no answer").damage(), Damage::Unknown);
/// let io: OpError = std::io::Error::other("boom").into();
/// assert_eq!(io.to_string(), "boom");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpError {
    message: String,
    damage: Damage,
}

impl OpError {
    /// A failure that may have left something half done.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), damage: Damage::Partial }
    }

    /// A failure that changed nothing: a text, or an error of which the text is kept.
    pub fn untouched(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), damage: Damage::Untouched }
    }

    /// A failure to see what came of an operation that may well have succeeded: a text, or an error of which the text is kept.
    pub fn unknown(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), damage: Damage::Unknown }
    }

    /// What it left behind.
    pub fn damage(&self) -> Damage {
        self.damage
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error> From<E> for OpError {
    /// Keeps the whole chain of causes in its words, and assumes that something may be half done.
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::new(message)
    }
}

/// What an operation is given by the engine: who it is, how to be cancelled, how to go on in the background.
#[derive(Clone)]
pub struct OpCx(Arc<OpShared>);

pub(crate) struct OpShared {
    pub(crate) item: ItemRef,
    pub(crate) operation: Option<Operation>,
    pub(crate) unfinished: Option<Operation>,
    /// What is remembered of the item: the same that its state in the current graph holds while it is worked on.
    metadata: Arc<SharedMetadata>,
    again: bool,
    returns: bool,
    was_lost: bool,
    pub(crate) run: Arc<RunShared>,
    /// Made on first use: most operations are over before anyone asks.
    cancel: OnceLock<CancellationToken>,
    background: OnceLock<Arc<Background>>,
}

/// What all operations of a run share.
pub(crate) struct RunShared {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cancel: CancellationToken,
    pub(crate) wake: Arc<Wake>,
    pub(crate) journal: Option<Arc<dyn Journal>>,
}

/// What an operation gets to know of its item.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpInputs {
    pub(crate) unfinished: Option<Operation>,
    pub(crate) metadata: Arc<SharedMetadata>,
    pub(crate) again: bool,
    pub(crate) returns: bool,
    pub(crate) was_lost: bool,
}

impl OpCx {
    pub(crate) fn new(
        item: ItemRef,
        operation: Option<Operation>,
        inputs: OpInputs,
        run: Arc<RunShared>,
    ) -> Self {
        let OpInputs { unfinished, metadata, again, returns, was_lost } = inputs;
        Self(Arc::new(OpShared {
            item,
            operation,
            unfinished,
            metadata,
            again,
            returns,
            was_lost,
            run,
            cancel: OnceLock::new(),
            background: OnceLock::new(),
        }))
    }

    /// The item that is operated on.
    pub fn item(&self) -> &ItemRef {
        &self.0.item
    }

    /// The operation; none while the item is only read.
    pub fn operation(&self) -> Option<Operation> {
        self.0.operation
    }

    /// The operation whose end nobody knows, while the item is read to learn of it.
    ///
    /// A creation may not even have begun: what is in the item's place is then someone else's, and whoever can
    /// tell says that the item is absent.
    pub fn unfinished(&self) -> Option<Operation> {
        self.0.unfinished
    }

    /// Returns whether the item must be applied again whatever it looks like: something that it comes after was changed, or an
    /// operation on it was to be repeated and has not been.
    pub fn must_reapply(&self) -> bool {
        self.0.again
    }

    /// Returns whether the item was there before, by whomever, and was found to be gone since the last run: it is created again.
    /// What an earlier run has found to be gone may have been brought about by somebody else meanwhile.
    pub fn was_lost(&self) -> bool {
        self.0.was_lost
    }

    /// Returns whether a deletion is the first half of making the item anew.
    pub fn is_recreation(&self) -> bool {
        self.0.returns
    }

    /// Whose the item is.
    pub fn ownership(&self) -> Ownership {
        self.0.metadata.ownership()
    }

    /// Remembers that the item was there before: it is looked after from now on, and left in place in the end.
    ///
    /// What this has returned from survives a crash. It is part of the item's state, and goes with it.
    pub async fn adopt(&self) -> Result<(), OpError> {
        self.remember(SharedMetadata::adopt).await
    }

    /// Remembers that the item was there before, as [`OpCx::adopt`] does, and something of it, as [`OpCx::note`] does: both or
    /// neither.
    pub async fn adopt_with(&self, note: &impl Serialize) -> Result<(), OpError> {
        let note = to_note(note)?;
        self.remember(|metadata| {
            metadata.adopt();
            metadata.note(note);
        })
        .await
    }

    /// Remembers that the item is made here, also if something was there before: that was put back, or the item comes to
    /// another place. It is deleted in the end.
    ///
    /// What this has returned from survives a crash.
    pub async fn own(&self) -> Result<(), OpError> {
        self.remember(SharedMetadata::own).await
    }

    /// Remembers that the item is made here, as [`OpCx::own`] does, and something of it, as [`OpCx::note`] does: both or neither.
    pub async fn own_with(&self, note: &impl Serialize) -> Result<(), OpError> {
        let note = to_note(note)?;
        self.remember(|metadata| {
            metadata.own();
            metadata.note(note);
        })
        .await
    }

    /// Remembers something of the item, in the place of what was noted of it before.
    ///
    /// What this has returned from survives a crash: a later operation on the item, or the read that is to show how
    /// this one ended, gets it back from [`OpCx::noted`].
    pub async fn note(&self, note: &impl Serialize) -> Result<(), OpError> {
        let note = to_note(note)?;
        self.remember(|metadata| metadata.note(note)).await
    }

    /// What was noted of the item last; none if nothing was, or something else. The creation of an item that is made anew knows
    /// what its deletion noted.
    pub fn noted<T: DeserializeOwned>(&self) -> Option<T> {
        self.0.metadata.noted()
    }

    async fn remember(&self, change: impl FnOnce(&SharedMetadata)) -> Result<(), OpError> {
        let before = self.0.metadata.get();
        change(&self.0.metadata);
        let Some(journal) = &self.0.run.journal else { return Ok(()) };
        let (item, at) = (self.0.item.clone(), self.now());
        let record = Record::Noted { item, metadata: self.0.metadata.get(), at };
        let written = journal.record(std::slice::from_ref(&record)).await;
        written.map_err(|error| {
            // What is not written down does not hold.
            self.0.metadata.set(before);
            OpError::untouched(format!("can't be written down first: {error}"))
        })
    }

    /// The time now, from the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.0.run.clock.now()
    }

    /// The token that is cancelled when the operation should stop as soon as it can.
    pub fn cancellation(&self) -> &CancellationToken {
        self.0.cancel.get_or_init(|| self.0.run.cancel.child_token())
    }

    /// Returns whether the operation should stop as soon as it can.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation().is_cancelled()
    }

    /// Completes when the operation should stop as soon as it can.
    pub async fn cancelled(&self) {
        self.cancellation().cancelled().await;
    }

    /// Lets the operation go on after its future has returned.
    ///
    /// The returned value is handed to whatever carries on; [`Completion::finish`] ends the operation, and
    /// dropping it without that is a failure. The operation's own result is then ignored unless it is an
    /// error. A second call returns nothing.
    pub fn continue_in_background(&self) -> Option<Completion> {
        let mut completion = None;
        self.0.background.get_or_init(|| {
            // Not a child of the run's token: the work outlives the run.
            let token = CancellationToken::new();
            let background = Background::new(self.0.item.clone(), token, Arc::clone(&self.0.run.wake));
            completion = Some(Completion::new(Arc::clone(&background)));
            background
        });
        completion
    }

    pub(crate) fn background(&self) -> Option<&Arc<Background>> {
        self.0.background.get()
    }
}

/// What is noted, as it is stored.
fn to_note(note: &impl Serialize) -> Result<Value, OpError> {
    serde_json::to_value(note).map_err(OpError::untouched)
}

impl fmt::Debug for OpCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpCx").field("item", &self.0.item).field("operation", &self.0.operation).finish()
    }
}
