//! What the configurators of directories, files and links have in common.

use serde::{Deserialize, Serialize};
use setpoint_engine::{Observed, OpCx, OpError, Operation};

use super::Move;
use crate::Host;
use crate::fs::{FsError, Kind, Number, Placed, Prepared, untouched};
use crate::item::RootPath;
use crate::process::Started;

/// What is noted of an item before something is done that a killed run could tell nobody of. It is forgotten when what
/// came of the run is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PassingNote {
    /// What was made for it, and is about to come to its place: a creation that was cut off has come to its end if, and
    /// only if, that is what is there. None where it could only be made in its place, before anyone could know it.
    Made(Option<Number>),
    /// Where it was about to be moved, one after the other.
    Moved(Vec<Move>),
    /// Its `apply` was about to be run: what `check` finds from then on is our doing.
    Applying,
}

/// What is noted of an item for as long as it is there. It is saved with what came of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LastingNote {
    /// The process that runs for it.
    Started(Started),
}

impl Host {
    /// Looks for an item at its path, or where it has moved.
    pub(crate) fn look<T>(
        &self,
        cx: &OpCx,
        path: &RootPath,
        read: impl Fn(&RootPath) -> Result<Option<T>, FsError>,
    ) -> Result<Observed<T>, OpError> {
        let place = self.0.moves.place(&self.0.root, cx.item(), path).map_err(|error| untouched(&error))?;
        if cx.unfinished() == Some(Operation::Create) && !self.is_made(cx, &place)? {
            return Ok(Observed::Absent);
        }
        let found = read(&place).map_err(|error| untouched(&error))?;
        Ok(found.map_or(Observed::Absent, Observed::Present))
    }

    /// Whether what is in the place of an item is there because the item was created, or taken over.
    fn is_made(&self, cx: &OpCx, place: &RootPath) -> Result<bool, OpError> {
        let found = self.0.root.number(place).map_err(|error| untouched(&error))?;
        Ok(match (found, cx.noted()) {
            (Some(_), _) if cx.ownership().is_adopted() => true,
            // Nobody can tell: it is there, and was to be made.
            (Some(_), Some(PassingNote::Made(None))) => true,
            (Some(found), Some(PassingNote::Made(Some(made)))) => found == made,
            _ => false,
        })
    }

    /// Brings something new to its place.
    pub(crate) async fn place(&self, cx: &OpCx, prepared: Prepared<'_>) -> Result<(), FsError> {
        note(cx, &PassingNote::Made(Some(prepared.number()))).await?;
        match prepared.place()? {
            Placed::Done => Ok(()),
            Placed::Unable(prepared) => {
                note(cx, &PassingNote::Made(None)).await?;
                prepared.make_in_place()
            }
        }
    }

    /// Brings an item from one path to another, where nothing is; says whether it did. It does not where the item is
    /// there already, having moved with the directory around it, or is nowhere.
    pub(crate) async fn bring(
        &self,
        cx: &OpCx,
        old: &RootPath,
        new: &RootPath,
        kind: Kind,
    ) -> Result<bool, FsError> {
        let (root, known) = (&self.0.root, &self.0.moves);
        let from = known.place(root, cx.item(), old)?;
        if from == *new {
            return Ok(false);
        }
        let Some(number) = root.number(&from)? else { return Ok(false) };
        let mut moves = match cx.noted() {
            Some(PassingNote::Moved(moves)) => moves,
            _ => Vec::new(),
        };
        let this = Move { from: old.clone(), to: new.clone(), number };
        // One that was noted and not done is noted once.
        if moves.last() != Some(&this) {
            moves.push(this);
        }
        note(cx, &PassingNote::Moved(moves.clone())).await?;
        known.set(cx.item(), moves);
        root.rename(&from, new, kind)?;
        Ok(true)
    }

    /// Returns whether what was there before is kept. What is left of somebody else's adoption does not count.
    pub(crate) fn is_kept(&self, cx: &OpCx) -> bool {
        cx.ownership().is_adopted() && self.0.kept.has(cx.item())
    }

    /// Returns whether what is there has to be kept before it is changed: it is not ours, and is not kept. It was put back
    /// by a run that was cut off right after, or taken over without having been changed.
    pub(crate) fn must_keep(&self, cx: &OpCx) -> bool {
        cx.ownership().is_adopted() && !self.0.kept.has(cx.item())
    }

    /// Where an item is now: the directory around it may have moved before.
    pub(crate) fn place_of(&self, cx: &OpCx, path: &RootPath) -> Result<RootPath, OpError> {
        self.0.moves.place(&self.0.root, cx.item(), path).map_err(|error| untouched(&error))
    }
}

/// Writes something down before it is done.
pub(crate) async fn note(cx: &OpCx, note: &PassingNote) -> Result<(), FsError> {
    let noted = cx.note(note).await;
    noted.map_err(|error| FsError::Unnoted { item: cx.item().to_string(), why: error.to_string() })
}
