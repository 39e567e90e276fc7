//! What the configurators of directories, files and links have in common.

use std::path::PathBuf;

use setpoint_engine::{Observed, OpCx, OpError, Operation};

use super::kept::Original;
use super::locations::{IfMissing, Location, is_unmounted};
use super::notes::{Aside, Made, Move, PathNote, Unseen};
use super::notice::Notice;
use crate::Host;
use crate::fs::{FileType, FsError, Number, Prepared, Published, untouched};
use crate::item::{Because, Dependence, Need, RootPath};

impl Host {
    /// Looks for an item at its path, or where it has moved.
    ///
    /// After an operation of which nobody knows the end, what is there is compared with what was there before and with what
    /// the operation makes of it: `is_as` says whether it is as the item, or as the original that is given. What is neither is
    /// somebody's work, and the item is not there.
    pub(crate) fn look<T>(
        &self,
        cx: &OpCx,
        path: &RootPath,
        kind: FileType,
        read: impl Fn(&RootPath) -> Result<Option<T>, FsError>,
        is_as: impl Fn(&T, Option<&Original>) -> bool,
    ) -> Result<Observed<T>, OpError> {
        if cx.unfinished() == Some(Operation::Delete) && PathNote::of(cx).released.is_some() {
            return Ok(Observed::Absent);
        }
        let aside = match cx.unfinished() {
            Some(Operation::Create | Operation::Delete) => self.find_aside(cx, kind),
            _ => Ok(None),
        };
        if let Some(aside) = aside.map_err(|error| untouched(&error))? {
            // Whatever was to be done with it, it is there.
            let found = read(&aside).map_err(|error| untouched(&error))?;
            return Ok(found.map_or(Observed::Absent, Observed::Present));
        }
        let location = match self.locate(cx, path, kind) {
            // What is there is somebody else's, and it was never made.
            Err(FsError::Replaced { .. } | FsError::Elsewhere { .. } | FsError::Unreachable { .. })
                if cx.unfinished() == Some(Operation::Create) =>
            {
                return Ok(Observed::Absent);
            }
            location => location.map_err(|error| untouched(&error))?.path,
        };
        let is_in_doubt = matches!(cx.unfinished(), Some(Operation::Create | Operation::Delete));
        let found = match read(&location) {
            // Setpoint made nothing of that type: it is somebody's, and the item is not there.
            Err(FsError::OtherType { .. }) if is_in_doubt => {
                self.leave(cx, location);
                return Ok(Observed::Absent);
            }
            found => found.map_err(|error| untouched(&error))?,
        };
        let Some(found) = found else { return Ok(Observed::Absent) };
        let is_adopted = cx.ownership().is_adopted();
        let is_ours = match cx.unfinished() {
            None | Some(Operation::Modify) => true,
            Some(Operation::Create) if is_adopted => is_as(&found, None),
            Some(Operation::Create) => self.is_made(cx, &location)?,
            Some(Operation::Delete) => {
                let kept = self.original(cx)?;
                is_as(&found, None) || kept.is_some_and(|original| is_as(&found, Some(&original)))
            }
        };
        if is_ours {
            return Ok(Observed::Present(found));
        }
        if cx.unfinished() == Some(Operation::Delete) {
            self.leave(cx, location);
        }
        Ok(Observed::Absent)
    }

    /// Notes for a person that something in the place of an item is somebody's, and is left.
    fn leave(&self, cx: &OpCx, path: RootPath) {
        let (item, kept) = (cx.item().clone(), Self::original_name(cx));
        let kept = kept.map(|name| self.0.kept.path(&name)).filter(|kept| kept.exists());
        self.0.notices.add(Notice::Left { item, path, kept });
    }

    /// Returns whether what is in the place of an item that was made here is somebody's: neither what was made for it, nor as
    /// that was, which `is_as_made` says. The creation was cut off, or failed half-way.
    pub(crate) fn is_somebodys(
        &self,
        cx: &OpCx,
        location: &RootPath,
        is_as_made: impl FnOnce() -> Result<bool, FsError>,
    ) -> Result<bool, OpError> {
        let failed = |error: FsError| untouched(&error);
        let Some(Made::This(made)) = PathNote::of(cx).made else { return Ok(false) };
        let Some(found) = self.0.root.number(location).map_err(failed)? else { return Ok(false) };
        if made.is(found) || is_as_made().map_err(failed)? {
            return Ok(false);
        }
        self.leave(cx, location.clone());
        Ok(true)
    }

    /// Returns whether what is in the place of an item is what was made for it.
    fn is_made(&self, cx: &OpCx, location: &RootPath) -> Result<bool, OpError> {
        let found = self.0.root.number(location).map_err(|error| untouched(&error))?;
        Ok(match (found, PathNote::of(cx).made) {
            // Nobody can tell: it is there, and was to be made.
            (Some(_), Some(Made::Unseen(_))) => true,
            (Some(found), Some(Made::This(made))) => made.is(found),
            _ => false,
        })
    }

    /// Brings something new to its place.
    pub(crate) async fn publish(&self, cx: &OpCx, prepared: Prepared<'_>) -> Result<(), FsError> {
        let (known_by, made) = (prepared.known_by(), Some(Made::This(prepared.number())));
        let PathNote { wrote, original, .. } = PathNote::of(cx);
        let mounts = self.0.root.mounts(prepared.path());
        let note = PathNote { known_by, mounts, made, wrote, original, ..PathNote::default() };
        note.write(cx).await?;
        match prepared.publish()? {
            Published::Done => Ok(()),
            Published::Unable(prepared) => {
                let made = Some(Made::Unseen(Unseen::InPlace));
                PathNote { known_by: None, made, ..note }.write(cx).await?;
                prepared.make_in_place()
            }
        }
    }

    /// Takes over what is at a path: remembers that it was there before, by which directory it is known, what is kept of it, and
    /// what is about to be written there.
    pub(crate) async fn adopt(
        &self,
        cx: &OpCx,
        path: &RootPath,
        kind: FileType,
        original: Option<String>,
        wrote: Option<String>,
    ) -> Result<(), OpError> {
        let (known_by, mounts) = (self.known_by(path, kind), self.0.root.mounts(path));
        let wrote = wrote.into_iter().collect();
        let note = PathNote { known_by, mounts, wrote, original, adopting: true, ..PathNote::default() };
        cx.adopt_with(&note).await
    }

    /// Leaves what was to be taken over to whom it belongs, as that failed: nothing was replaced, and nothing is to be put back.
    pub(crate) async fn leave_original(&self, cx: &OpCx, kept: Option<&str>) {
        let note = PathNote { original: None, adopting: false, ..PathNote::of(cx) };
        if cx.own_with(&note).await.is_ok()
            && let Some(kept) = kept
        {
            // What stays behind is nobody's.
            let _ = self.0.kept.remove(kept);
        }
    }

    /// Leaves what somebody wrote after a run was cut off that was about to take over what was there. The original stays kept.
    pub(crate) async fn leave_newer(&self, cx: &OpCx, location: &RootPath) -> Result<(), OpError> {
        let name = Self::original_name(cx);
        self.release(cx, location, None).await?;
        let kept = name.and_then(|name| self.0.kept.retire(&name).ok());
        self.0.notices.add(Notice::Left { item: cx.item().clone(), path: location.clone(), kept });
        Ok(())
    }

    /// The name of what is kept of what was there before the item, if it was taken over.
    pub(crate) fn original_name(cx: &OpCx) -> Option<String> {
        PathNote::of(cx).original.filter(|_| cx.ownership().is_adopted())
    }

    /// What was there before the item, if it was taken over and that is kept.
    pub(crate) fn original(&self, cx: &OpCx) -> Result<Option<Original>, OpError> {
        Self::original_name(cx).map_or(Ok(None), |name| self.0.kept.get(&name))
    }

    /// Where the original of the item should be.
    pub(crate) fn original_path(&self, cx: &OpCx) -> PathBuf {
        self.0.kept.path(&Self::original_name(cx).unwrap_or_default())
    }

    /// Remembers what is kept of what was there before the item.
    pub(crate) async fn note_original(&self, cx: &OpCx, name: String) -> Result<(), OpError> {
        let note = PathNote { original: Some(name), ..PathNote::of(cx) };
        note.write(cx).await.map_err(|error| untouched(&error))
    }

    /// Forgets what was made for an item, as something is about to be written in its place.
    pub(crate) async fn forget_made(&self, cx: &OpCx) -> Result<(), OpError> {
        let note = PathNote::of(cx);
        if note.made.is_none() {
            return Ok(());
        }
        // What was brought back is known by that until then.
        let aside = note.aside.clone().filter(|_| self.is_set_aside(&note));
        PathNote { made: None, aside, ..note }.write(cx).await.map_err(|error| untouched(&error))
    }

    /// Remembers what is about to be written in the place of something that was there before.
    pub(crate) async fn will_write(&self, cx: &OpCx, wrote: String) -> Result<(), OpError> {
        let mut note = PathNote::of(cx);
        if !cx.ownership().is_adopted() || note.wrote.last() == Some(&wrote) {
            return Ok(());
        }
        note.wrote.retain(|earlier| *earlier != wrote);
        note.wrote.push(wrote);
        note.write(cx).await.map_err(|error| untouched(&error))
    }

    /// Lets go of an original that is back in its place, and notes that first: what is there is not ours from then on. The copy is
    /// all that there is of it until it is on the disk.
    pub(crate) async fn release_original(&self, cx: &OpCx, location: &RootPath) -> Result<(), OpError> {
        let original = Self::original_name(cx);
        if original.is_some() {
            self.0.root.sync(location).map_err(|error| OpError::new(error.to_string()))?;
        }
        // It is named in what is noted, so that a run that is cut off, or can't remove it, leaves that to the next one.
        self.release(cx, location, original.clone()).await?;
        let Some(name) = original else { return Ok(()) };
        self.0.kept.remove(&name).map_err(|error| {
            let path = self.0.kept.path(&name);
            OpError::untouched(format!(
                "{} is not needed any more, and can't be removed: {error}",
                path.display()
            ))
        })
    }

    /// Remembers that what is at a path is not ours any more.
    async fn release(&self, cx: &OpCx, location: &RootPath, original: Option<String>) -> Result<(), OpError> {
        let released = self.0.root.number(location).map_err(|error| OpError::new(error.to_string()))?;
        let note = PathNote { released, original, ..PathNote::of(cx) };
        // What could not be noted is put back once more.
        note.write(cx).await.map_err(|error| OpError::new(error.to_string()))
    }

    /// Returns whether it is known that Setpoint wrote this in the place of something that was there before.
    pub(crate) fn has_written(cx: &OpCx, digest: &str) -> bool {
        PathNote::of(cx).wrote.iter().any(|wrote| wrote == digest)
    }

    /// The directory by which what is at a path is known, as it can be noted for good; none if nothing is there.
    pub(crate) fn known_by(&self, path: &RootPath, kind: FileType) -> Option<Number> {
        let root = &self.0.root;
        if kind == FileType::Directory {
            return root.lasting_directory(path.as_str());
        }
        root.stat(path).ok().flatten().and_then(|_| root.lasting_holder(path))
    }

    /// Refuses to bring something to a path while the directory that it is to be in is somewhere else, as it could not be moved:
    /// what is there is somebody's.
    pub(crate) fn has_arrived(&self, needs: &[Need], path: &RootPath) -> Result<(), FsError> {
        for around in needs.iter().filter(|need| need.because == Because::Inside) {
            if let Some(at) = self.0.directories.elsewhere(&self.0.root, &around.item, path) {
                let (path, directory, at) = (path.to_string(), around.item.to_string(), at.to_string());
                return Err(FsError::NotArrived { path, directory, at });
            }
        }
        Ok(())
    }

    /// What something that was found at a path needs, of which this is known: it is inside of the directory that is around it now,
    /// which is not to go before it does.
    pub(crate) fn needs_at(&self, needs: &[Need], was: &RootPath, path: &RootPath) -> Vec<Need> {
        let mut needs = needs.to_vec();
        if was == path || Self::is_aside(path) {
            return needs;
        }
        let (root, directories) = (&self.0.root, &self.0.directories);
        let is_inside = |need: &Need| need.because == Because::Inside;
        needs.retain(|need| !is_inside(need) || directories.elsewhere(root, &need.item, path).is_none());
        if !needs.iter().any(is_inside)
            && let Some(item) = directories.around(root, path)
        {
            needs.push(Need { item, because: Because::Inside, dependence: Dependence::Requires });
            needs.sort();
        }
        needs
    }

    /// Brings an item from one path to another, where nothing is. Returns whether it did. It does not where the item is
    /// there already, having moved with the directory around it, or is nowhere.
    pub(crate) async fn move_entry(
        &self,
        cx: &OpCx,
        old: &RootPath,
        new: &RootPath,
        kind: FileType,
    ) -> Result<bool, FsError> {
        let root = &self.0.root;
        let from = self.locate(cx, old, kind)?;
        if from.path == *new {
            return Ok(false);
        }
        let Some(number) = root.number(&from.path)? else { return Ok(false) };
        // What is noted was about to be done: nothing is in its way.
        root.is_free(new)?;
        let into = if kind == FileType::Directory { None } else { root.lasting_holder(new) };
        let mut note = PathNote::of(cx);
        let this = Move { from: old.clone(), to: new.clone(), number, into };
        // One that was noted and not done is noted once.
        if note.moved.last() != Some(&this) {
            note.moved.push(this);
        }
        note.write(cx).await?;
        if kind == FileType::Directory {
            self.0.directories.learn(cx.item(), new, &note);
        }
        root.rename(&from.path, from.within, new, kind)?;
        if note.aside.take().is_some() {
            // It is back, whatever is written in its place from now on.
            note.write(cx).await?;
        }
        Ok(true)
    }

    /// Returns whether what is there has to be kept before it is replaced: it is not ours, and is not kept, or not all of it.
    pub(crate) fn must_keep(&self, cx: &OpCx) -> bool {
        if !cx.ownership().is_adopted() {
            return false;
        }
        // Of what can't be read any more, the deletion says so.
        let is_partial = || matches!(self.original(cx), Ok(Some(original)) if original.is_partial());
        Self::original_name(cx).is_none() || is_partial()
    }

    /// Returns whether what is at a path is what was put back when the item was deleted to be made anew: it is taken over again,
    /// whoever asked for that.
    pub(crate) fn is_released(&self, cx: &OpCx, path: &RootPath) -> bool {
        let found = self.0.root.number(path).ok().flatten();
        PathNote::of(cx).released.zip(found).is_some_and(|(released, found)| released.is(found))
    }

    /// Where the original of an item is to go back to before the item is made at another path: it was taken over there, and gone
    /// since.
    pub(crate) fn original_elsewhere(&self, cx: &OpCx, new: &RootPath) -> Result<Option<RootPath>, OpError> {
        if PathNote::of(cx).released.is_some() {
            return Ok(None);
        }
        let original = self.original(cx)?;
        Ok(original.and_then(|original| original.path().filter(|was| *was != new).cloned()))
    }

    /// Returns whether an original can go back to where it was: nothing is there, in the directory that it was in.
    pub(crate) fn can_go_back(&self, cx: &OpCx, was: &RootPath) -> Result<bool, OpError> {
        let is_free = self.0.root.stat(was).map_err(|error| untouched(&error))?.is_none();
        let (known_by, holder) = (PathNote::of(cx).known_by, self.0.root.holder(was));
        Ok(is_free && holder.is_some_and(|found| known_by.is_none_or(|within| within.is(found))))
    }

    /// Keeps an original for good that can't go back, and says so.
    pub(crate) async fn retire_original(&self, cx: &OpCx, was: RootPath) -> Result<(), OpError> {
        let name = Self::original_name(cx);
        self.own(cx).await?;
        if let Some(name) = name {
            let (item, kept) = (cx.item().clone(), self.0.kept.retire(&name)?);
            self.0.notices.add(Notice::Stays { item, path: was, kept });
        }
        Ok(())
    }

    /// Remembers that the item is made here: nothing is to be put back.
    async fn own(&self, cx: &OpCx) -> Result<(), OpError> {
        cx.own_with(&PathNote { original: None, ..PathNote::of(cx) }).await
    }

    /// Begins to make an item: what was there before it is back in its place, and whatever it was to us, this is made here.
    pub(crate) async fn begin_anew(&self, cx: &OpCx) -> Result<(), OpError> {
        if cx.ownership().is_adopted() && PathNote::of(cx).released.is_some() {
            return self.own(cx).await;
        }
        Ok(())
    }

    /// Where an item is now: the directory around it may have moved before. What is in its place in another directory than
    /// before, and another directory in its place, are errors.
    pub(crate) fn locate(&self, cx: &OpCx, path: &RootPath, kind: FileType) -> Result<Location, FsError> {
        let (root, directories, note) = (&self.0.root, &self.0.directories, PathNote::of(cx));
        if let Some(path) = self.find_aside(cx, kind)? {
            return Ok(Location { path, within: None });
        }
        if let Some(Aside { number: aside, .. }) = note.aside
            && kind != FileType::Directory
            && !Self::is_aside(path)
        {
            // It may not have been set aside yet, or be brought back. Anything else in its place is not the item, which is gone.
            let location = directories.entry(root, path, &note, self.if_missing(cx))?;
            let is_one =
                |found| aside.is(found) || matches!(note.made, Some(Made::This(made)) if made.is(found));
            let is_it = root.number(&location.path)?.is_some_and(is_one);
            let gone = || self.aside(aside).map(|path| Location { path, within: None });
            return if is_it { Ok(location) } else { gone() };
        }
        if kind != FileType::Directory {
            return directories.entry(root, path, &note, self.if_missing(cx));
        }
        let location = directories.directory(root, path, &note)?;
        let is_bare = || -> Result<bool, FsError> {
            let is_found = note.directory().is_some() && root.stat(&location.path)?.is_some();
            Ok(!is_found && is_unmounted(root, path, &note))
        };
        if directories.is_away(root, &location.path, self.if_missing(cx)) || is_bare()? {
            return Err(FsError::unreachable(path));
        }
        Ok(location)
    }

    /// Returns whether something is found by the directory that it is known by, wherever that is now.
    pub(crate) fn is_found(&self, path: &RootPath, kind: FileType, note: &PathNote) -> bool {
        let (root, directories) = (&self.0.root, &self.0.directories);
        if kind == FileType::Directory {
            let is_it = |found| note.directory().is_some_and(|number| number.is(found));
            let location = directories.directory(root, path, note);
            return location.is_ok_and(|at| root.directory(at.path.as_str()).is_some_and(is_it));
        }
        let is_there = |at: Location| matches!(root.stat(&at.path), Ok(Some(_)));
        note.known_by.is_some() && directories.entry(root, path, note, IfMissing::PutBack).is_ok_and(is_there)
    }

    /// What becomes of the item that is operated on where it is not found.
    fn if_missing(&self, cx: &OpCx) -> IfMissing {
        if cx.ownership().is_adopted() {
            IfMissing::PutBack
        } else if self.is_unwanted(cx.item()) {
            IfMissing::Forgotten
        } else {
            IfMissing::MadeAgain
        }
    }
}
