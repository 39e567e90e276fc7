//! Directories that hold what nobody declared, and have to make room for a while: they are set aside in the root, under a
//! name of their own, and brought back by the creation that follows.
//!
//! The name is derived from the item, so that a run finds what a killed one has set aside, whatever it could note.

use std::collections::BTreeSet;
use std::path::PathBuf;

use setpoint_engine::{CurrentGraph, ItemState, OpCx, Presence};
use setpoint_graph::{Graph, ItemHandle, ItemRef, SubgraphPath};

use super::notes::{Made, PlaceNote};
use crate::Host;
use crate::fs::{FsError, Kind, Temporary, short};
use crate::item::RootPath;
use crate::kinds::Directory;

/// A directory that a run which was cut off has set aside, and that no item comes back for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// The item it was.
    pub item: ItemRef,
    /// Where it is.
    pub place: PathBuf,
    /// Where it was.
    pub was: RootPath,
    /// Whether it could be put back to where it was.
    pub put_back: bool,
}

impl Host {
    /// Where the directory of an item is set aside.
    fn aside(&self, item: &ItemRef) -> Result<RootPath, FsError> {
        let name = short(&[self.0.set.as_str(), item.kind().as_str(), item.name().as_str()]);
        let path = format!(".setpoint-aside-{name}");
        RootPath::new(&path).map_err(|_| FsError::Outside { path })
    }

    /// The place of the directory that was set aside for an item, if there is one.
    pub(crate) fn find_aside(&self, item: &ItemRef) -> Result<Option<RootPath>, FsError> {
        let aside = self.aside(item)?;
        Ok(self.0.root.stat(&aside)?.filter(|found| found.kind == Kind::Directory).map(|_| aside))
    }

    /// Sets a directory aside, with all it holds.
    pub(crate) fn set_aside(&self, item: &ItemRef, place: &RootPath) -> Result<(), FsError> {
        self.0.root.rename(place, None, &self.aside(item)?, Kind::Directory)
    }

    /// Puts a directory that was set aside where nothing is.
    pub(crate) fn put_back(&self, aside: &RootPath, path: &RootPath) -> Result<(), FsError> {
        self.0.root.rename(aside, None, path, Kind::Directory)
    }

    /// Brings a directory that was set aside to the path of its item, as a creation does.
    pub(crate) async fn bring_back(
        &self,
        cx: &OpCx,
        aside: &RootPath,
        path: &RootPath,
    ) -> Result<(), FsError> {
        let (known_by, made) =
            (self.known_by(aside, Kind::Directory), self.0.root.number(aside)?.map(Made::This));
        PlaceNote { known_by, made, ..PlaceNote::of(cx) }.write(cx).await?;
        self.put_back(aside, path)
    }

    /// Puts back what a run that was cut off has set aside for items that are not intended any more, and knows them again.
    /// Where something else is in its place by now, it stays where it is.
    ///
    /// To be called before anything is planned.
    pub fn put_back_set_aside(
        &self,
        current: &mut CurrentGraph,
        intended: Option<&Graph>,
    ) -> Result<Vec<SetAside>, FsError> {
        let is_lost = |state: &ItemState| state.presence() == Presence::Absent && !state.is_unknown();
        let lost: Vec<(ItemHandle, ItemState, SubgraphPath)> = current
            .items()
            .filter(|node| intended.is_none_or(|intended| !intended.contains(node.reference())))
            .filter_map(|node| {
                let state = node.state().filter(|state| is_lost(state))?;
                Some((node.item().clone(), state.clone(), node.path()))
            })
            .collect();
        let mut all = Vec::new();
        for (item, lost, path) in lost {
            let Some(was) = item.get::<Directory>().map(|directory| directory.path.clone()) else { continue };
            let Some(aside) = self.find_aside(item.reference())? else { continue };
            let put_back = self.put_back(&aside, &was).is_ok();
            let (place, reference) = (aside.in_root(&self.0.root_path), item.reference().clone());
            if put_back {
                let state = ItemState::present(lost.since());
                let mut state = if lost.ownership().is_adopted() { state.adopted() } else { state };
                let known_by = self.known_by(&was, Kind::Directory);
                state.note(&PlaceNote { known_by, ..PlaceNote::default() });
                // The same reference in the same place: such a put is never refused.
                let _ = current.put_item_with_state(&path, item, state);
            }
            all.push(SetAside { item: reference, place, was, put_back });
        }
        Ok(all)
    }

    /// Returns whether a directory holds anything but what is at these paths.
    pub fn holds_others(&self, directory: &RootPath, known: &BTreeSet<&str>) -> bool {
        let ours = Temporary::prefix(&self.0.set);
        let entries = std::fs::read_dir(directory.in_root(&self.0.root_path)).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.any(|name| !name.starts_with(&ours) && !known.contains(format!("{directory}/{name}").as_str()))
    }
}
