//! What has to make room for a while: it is set aside in the root, under a name of its own, and brought back by the creation
//! that follows, with its permissions and attributes. A directory takes along what nobody declared in it.
//!
//! What is about to be set aside is noted first, with its number, which is part of its name there: so a run finds what a killed
//! one has set aside, and never what another set has.

use std::collections::BTreeSet;
use std::path::PathBuf;

use setpoint_engine::{CurrentGraph, ItemState, OpCx, OpError, Operation, Presence};
use setpoint_graph::{Graph, ItemHandle, ItemRef, SubgraphPath};

use super::locations::Location;
use super::notes::{Aside, Made, PathNote};
use crate::Host;
use crate::fs::{FileType, FsError, Number, Temporary, short, untouched};
use crate::item::RootPath;
use crate::kinds;

/// What the names of all that is set aside begin with.
const PREFIX: &str = ".setpoint-aside-";

impl Host {
    /// Where something with this number is set aside, whatever its item is called by then.
    pub(crate) fn aside(&self, number: Number) -> Result<RootPath, FsError> {
        let path = format!("{PREFIX}{}", short(&[self.0.set.as_str(), &number.to_string()]));
        RootPath::new(&path).map_err(|_| FsError::Outside { path })
    }

    /// Returns whether a path is one where something is set aside.
    pub(crate) fn is_aside(path: &RootPath) -> bool {
        path.as_str().starts_with(PREFIX)
    }

    /// The place of what was set aside for the item that is operated on, if it is there.
    pub(crate) fn find_aside(&self, cx: &OpCx, kind: FileType) -> Result<Option<RootPath>, FsError> {
        let Some(Aside { number, .. }) = PathNote::of(cx).aside else { return Ok(None) };
        let aside = self.aside(number)?;
        // A file may have been written anew there.
        Ok(self.0.root.stat(&aside)?.filter(|found| found.kind == kind).map(|_| aside))
    }

    /// Where something of an item is set aside, as its state has it; none if nothing is.
    pub fn set_aside_at(&self, state: &ItemState) -> Option<PathBuf> {
        let note = state.noted::<PathNote>().filter(|note| self.is_set_aside(note))?;
        Some(self.aside(note.aside?.number).ok()?.in_root(&self.0.root_path))
    }

    /// Returns whether what was noted to be set aside is there.
    pub(crate) fn is_set_aside(&self, note: &PathNote) -> bool {
        let aside = note.aside.as_ref().and_then(|aside| self.aside(aside.number).ok());
        aside.is_some_and(|aside| matches!(self.0.root.stat(&aside), Ok(Some(_))))
    }

    /// Sets something aside, and notes that first. Returns whether it did: it can't where the root is on another file system.
    pub(crate) async fn set_aside(
        &self,
        cx: &OpCx,
        location: &Location,
        kind: FileType,
    ) -> Result<bool, FsError> {
        if self.find_aside(cx, kind)?.is_some() {
            // A run that was cut off has come as far as this.
            return Ok(true);
        }
        let Some(number) = self.0.root.number(&location.path)? else { return Ok(false) };
        let (aside, note) = (self.aside(number)?, PathNote::of(cx));
        let noted = Some(Aside { number, from: location.path.clone() });
        PathNote { aside: noted, ..note.clone() }.write(cx).await?;
        let is_set_aside = self.0.root.rename(&location.path, location.within, &aside, kind).is_ok();
        if !is_set_aside {
            note.write(cx).await?;
        }
        Ok(is_set_aside)
    }

    /// Brings what was set aside to the path of its item, as a creation does. Returns whether it did: it can't where that is on
    /// another file system.
    pub(crate) async fn bring_back(
        &self,
        cx: &OpCx,
        aside: &RootPath,
        path: &RootPath,
        kind: FileType,
    ) -> Result<bool, OpError> {
        let failed = |error: FsError| untouched(&error);
        let root = &self.0.root;
        let known_by =
            if kind == FileType::Directory { self.known_by(aside, kind) } else { root.lasting_holder(path) };
        let made = root.number(aside).map_err(failed)?.map(Made::This);
        let note = PathNote { known_by, mounts: root.mounts(path), made, ..PathNote::of(cx) };
        note.write(cx).await.map_err(failed)?;
        match root.rename(aside, None, path, kind) {
            Err(FsError::OtherFileSystem { .. }) => return Ok(false),
            brought => brought.map_err(failed)?,
        }
        // It is there, whatever is written in its place from now on.
        let brought = PathNote { aside: None, ..note }.write(cx).await;
        brought.map(|()| true).map_err(|error| OpError::new(error.to_string()))
    }

    /// Knows again what was set aside for items that are not intended any more, by a run that was cut off or could not make them
    /// anew: it is there, and is removed or put back like anything else.
    ///
    /// To be called before anything is planned.
    pub fn recognise_set_aside(&self, current: &mut CurrentGraph, intended: Option<&Graph>) {
        // What was about to be brought back is where it was set aside until it is.
        for (item, state, path) in items_in(current, |state| is_lost(state) || is_being_created(state)) {
            let is_intended = intended.is_some_and(|intended| intended.contains(item.reference()));
            let note: PathNote = state.noted().unwrap_or_default();
            if !is_intended && self.is_set_aside(&note) {
                // The same reference in the same place: such a put is never refused.
                let _ = current.put_item_with_state(&path, item, found_again(&state, &note));
            }
        }
    }

    /// Knows directories again that were gone and are back in their place, with what is in them as it was: each is the very one
    /// that it was. Returns their items.
    ///
    /// To be called before anything is planned.
    pub fn recognise_returned(&self, current: &mut CurrentGraph) -> BTreeSet<ItemRef> {
        let lost = items_in(current, is_lost);
        let root = &self.0.root;
        let is_back = |item: &ItemHandle, state: &ItemState| {
            let (location, note) = (kinds::on_disk(item)?, state.noted::<PathNote>()?);
            if location.kind != FileType::Directory
                || root.stat(location.path).ok()??.kind != FileType::Directory
            {
                return None;
            }
            let (was, found) = (note.directory()?, root.directory(location.path.as_str())?);
            was.is(found).then_some(was)
        };
        let directories: BTreeSet<Number> =
            lost.iter().filter_map(|(item, state, _)| is_back(item, state)).collect();
        let mut returned = BTreeSet::new();
        for (item, state, path) in lost {
            let Some(note) = state.noted::<PathNote>() else { continue };
            let is_inside = || {
                let (location, within) = (kinds::on_disk(&item)?, note.known_by?);
                let is_there = root.holder(location.path).is_some_and(|found| within.is(found));
                let returned = directories.contains(&within) && is_there;
                returned.then(|| kinds::is_as_it_was(self, &item)).filter(|is| *is)
            };
            if is_back(&item, &state).is_none() && is_inside().is_none() {
                continue;
            }
            returned.insert(item.reference().clone());
            let note = PathNote { made: None, moved: Vec::new(), aside: None, ..note };
            // The same reference in the same place: such a put is never refused.
            let _ = current.put_item_with_state(&path, item, found_again(&state, &note));
        }
        if !returned.is_empty() {
            self.recall(current);
        }
        returned
    }

    /// Returns whether a directory holds anything but what is at these paths.
    pub fn holds_others(&self, directory: &RootPath, known: &BTreeSet<&str>) -> bool {
        let ours = Temporary::prefix(&self.0.set);
        let entries = std::fs::read_dir(directory.in_root(&self.0.root_path)).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.any(|name| !name.starts_with(&ours) && !known.contains(format!("{directory}/{name}").as_str()))
    }
}

/// Returns whether something of an item may be set aside, as its state has it.
pub fn may_be_set_aside(state: &ItemState) -> bool {
    state.noted::<PathNote>().is_some_and(|note| note.aside.is_some())
}

/// Returns whether an item is remembered and was not there.
fn is_lost(state: &ItemState) -> bool {
    state.presence() == Presence::Absent && !state.is_unknown()
}

/// Returns whether a run was cut off that was about to create an item.
fn is_being_created(state: &ItemState) -> bool {
    let unfinished = state.unfinished_operation().filter(|_| state.is_unknown());
    unfinished.is_some_and(|unfinished| unfinished.operation == Operation::Create)
}

/// The items in such a state, with their states and subgraphs.
fn items_in(
    current: &CurrentGraph,
    is_such: impl Fn(&ItemState) -> bool,
) -> Vec<(ItemHandle, ItemState, SubgraphPath)> {
    let such = current.items().filter_map(|node| {
        let state = node.state().filter(|state| is_such(state))?;
        Some((node.item().clone(), state.clone(), node.path()))
    });
    such.collect()
}

/// The state of an item that was lost and is there again.
fn found_again(lost: &ItemState, note: &PathNote) -> ItemState {
    let state = ItemState::present(lost.since());
    let mut state = if lost.ownership().is_adopted() { state.adopted() } else { state };
    state.protect(lost.is_protected());
    state.note(note);
    state
}
