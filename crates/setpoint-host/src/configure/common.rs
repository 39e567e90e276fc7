//! What the configurators of directories, files and links have in common.

use setpoint_engine::{Observed, OpCx, OpError, Operation};

use super::notes::{Made, Move, PlaceNote, Unseen};
use super::places::Location;
use crate::Host;
use crate::fs::{FsError, Kind, Number, Placed, Prepared, untouched};
use crate::item::RootPath;

impl Host {
    /// Looks for an item at its path, or where it has moved.
    pub(crate) fn look<T>(
        &self,
        cx: &OpCx,
        path: &RootPath,
        kind: Kind,
        read: impl Fn(&RootPath) -> Result<Option<T>, FsError>,
    ) -> Result<Observed<T>, OpError> {
        let is_unfinished = cx.unfinished() == Some(Operation::Create);
        let place = match self.place_of(cx, path, kind) {
            // What is there is somebody else's, and it was never made.
            Err(FsError::Replaced { .. } | FsError::Elsewhere { .. }) if is_unfinished => {
                return Ok(Observed::Absent);
            }
            place => place.map_err(|error| untouched(&error))?.path,
        };
        if is_unfinished && !self.is_made(cx, &place)? {
            return Ok(Observed::Absent);
        }
        let found = read(&place).map_err(|error| untouched(&error))?;
        Ok(found.map_or(Observed::Absent, Observed::Present))
    }

    /// Whether what is in the place of an item is there because the item was created, or taken over.
    fn is_made(&self, cx: &OpCx, place: &RootPath) -> Result<bool, OpError> {
        let found = self.0.root.number(place).map_err(|error| untouched(&error))?;
        Ok(match (found, PlaceNote::of(cx).made) {
            (Some(_), _) if cx.ownership().is_adopted() => true,
            // Nobody can tell: it is there, and was to be made.
            (Some(_), Some(Made::Unseen(_))) => true,
            (Some(found), Some(Made::This(made))) => made.is(found),
            _ => false,
        })
    }

    /// Brings something new to its place.
    pub(crate) async fn place(&self, cx: &OpCx, prepared: Prepared<'_>) -> Result<(), FsError> {
        let (known_by, made) = (prepared.known_by(), Some(Made::This(prepared.number())));
        let note = PlaceNote { known_by, made, ..PlaceNote::of(cx) };
        note.write(cx).await?;
        match prepared.place()? {
            Placed::Done => Ok(()),
            Placed::Unable(prepared) => {
                let made = Some(Made::Unseen(Unseen::InPlace));
                PlaceNote { known_by: None, made, ..note }.write(cx).await?;
                prepared.make_in_place()
            }
        }
    }

    /// Remembers by which directory something is known that was there before.
    pub(crate) async fn know(&self, cx: &OpCx, path: &RootPath, kind: Kind) -> Result<(), OpError> {
        let known_by = self.known_by(path, kind);
        let note = PlaceNote { known_by, ..PlaceNote::of(cx) };
        note.write(cx).await.map_err(|error| untouched(&error))
    }

    /// The directory by which what is at a path is known, as it can be noted for good; none if nothing is there.
    pub(crate) fn known_by(&self, path: &RootPath, kind: Kind) -> Option<Number> {
        let root = &self.0.root;
        if kind == Kind::Directory {
            return root.lasting_directory(path.as_str());
        }
        root.stat(path).ok().flatten().and_then(|_| root.lasting_holder(path))
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
        let root = &self.0.root;
        let from = self.place_of(cx, old, kind)?;
        if from.path == *new {
            return Ok(false);
        }
        let Some(number) = root.number(&from.path)? else { return Ok(false) };
        // What is noted was about to be done: nothing is in its way.
        root.is_free(new)?;
        let into = if kind == Kind::Directory { None } else { root.lasting_holder(new) };
        let mut note = PlaceNote::of(cx);
        let this = Move { from: old.clone(), to: new.clone(), number, into };
        // One that was noted and not done is noted once.
        if note.moved.last() != Some(&this) {
            note.moved.push(this);
        }
        note.write(cx).await?;
        if kind == Kind::Directory {
            self.0.places.learn(cx.item(), new, &note);
        }
        root.rename(&from.path, from.within, new, kind)?;
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

    /// Where an original goes back to that was at one path and is at another: with the directory that it was in, to where it was,
    /// or, where neither is there any more, nowhere.
    pub(crate) fn home(&self, place: &RootPath, was: Option<&RootPath>, within: Option<Number>) -> RootPath {
        let root = &self.0.root;
        let Some(was) = was else { return place.clone() };
        let is_in_it = within.zip(root.holder(place)).is_some_and(|(within, found)| within.is(found));
        if is_in_it && place != was {
            let beside = place.parent().map(|around| format!("{around}/{}", was.file_name()));
            return RootPath::new(&beside.unwrap_or_else(|| was.file_name().to_owned()))
                .unwrap_or(was.clone());
        }
        if root.holder(was).is_some() { was.clone() } else { place.clone() }
    }

    /// Where an item is now: the directory around it may have moved before. What is in its place in another directory than
    /// before, and another directory in its place, are errors.
    pub(crate) fn place_of(&self, cx: &OpCx, path: &RootPath, kind: Kind) -> Result<Location, FsError> {
        let (root, places, note) = (&self.0.root, &self.0.places, PlaceNote::of(cx));
        if kind == Kind::Directory {
            places.directory(root, path, &note)
        } else {
            places.entry(root, path, &note)
        }
    }
}

/// Returns whether an item is made anew that was taken over: what is there is taken over again, whoever asked for that.
pub(crate) fn takes_over_again(cx: &OpCx) -> bool {
    cx.again() && cx.ownership().is_adopted()
}
