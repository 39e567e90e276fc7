//! Symbolic links on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError, Ownership};
use setpoint_graph::ItemRef;

use super::Symlink;
use crate::configure::kept::{self, Original};
use crate::configure::{Location, PlaceNote};
use crate::fs::{FsError, Kind, Temporary, untouched};
use crate::host::Host;
use crate::item::RootPath;

/// Makes, moves, points elsewhere, removes and reads symbolic links.
#[derive(Debug)]
pub struct Symlinks {
    host: Host,
    prefix: String,
}

impl Symlinks {
    /// The configurator for a host.
    pub fn new(host: &Host) -> Self {
        let prefix = Temporary::prefix(host.set());
        Self { host: host.clone(), prefix }
    }

    fn replace(&self, cx: &OpCx, new: &Symlink) -> Result<(), FsError> {
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let within = PlaceNote::of(cx).within(&new.path);
        self.host.0.root.replace_link(&new.path, within, &new.target, &temporary)
    }

    async fn make(&self, cx: &OpCx, new: &Symlink) -> Result<(), FsError> {
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let prepared = self.host.0.root.prepare_link(&new.path, &new.target, &temporary)?;
        self.host.place(cx, prepared).await
    }

    /// Keeps the link at a path for the item that takes it over.
    pub(crate) fn keep_original(&self, item: &ItemRef, path: &RootPath) -> Result<(), OpError> {
        let target = self.host.0.root.read_link_whole(path).map_err(|error| untouched(&error))?;
        let Some(target) = target else { return Ok(()) };
        self.host.0.kept.put(item, &Original::Link { target, path: Some(path.clone()) })
    }

    /// Keeps the link that is there if somebody made it: it is neither Setpoint's work nor the original.
    fn keep_change(&self, cx: &OpCx, path: &RootPath, original: &str) -> Result<(), OpError> {
        let found = self.host.0.root.read_link_whole(path).map_err(|error| untouched(&error))?;
        let Some(target) = found.filter(|target| target != original) else { return Ok(()) };
        let change = Original::Link { target: target.clone(), path: Some(path.clone()) };
        self.host.keep_change(cx, path, &target, &change)
    }

    /// Keeps the link that somebody made in the place of an item that was taken over.
    fn keep_drift(&self, cx: &OpCx, path: &RootPath) -> Result<(), OpError> {
        match self.host.0.kept.get(cx.item())? {
            Some(Original::Link { target, .. }) if cx.ownership().is_adopted() => {
                self.keep_change(cx, path, &target)
            }
            _ => Ok(()),
        }
    }

    /// Takes over the link that is at the path of an item.
    async fn take_over(&self, cx: &OpCx, new: &Symlink) -> Result<(), OpError> {
        let is_own_work = self.is_own_work(cx.item(), new)?;
        if !is_own_work {
            self.keep_original(cx.item(), &new.path)?;
        }
        let taken_over = async {
            cx.adopt().await?;
            self.host.know(cx, &new.path, Kind::Symlink, Some(new.target.clone())).await?;
            // Somebody may have pointed it elsewhere while that was noted.
            self.keep_drift(cx, &new.path)?;
            self.replace(cx, new).map_err(|error| untouched(&error))
        };
        self.host.or_leave(cx, is_own_work, taken_over.await).await
    }

    /// Returns whether what is there is as declared, and what was there before it is kept.
    fn is_own_work(&self, item: &ItemRef, new: &Symlink) -> Result<bool, OpError> {
        let kept = self.host.0.kept.get(item)?;
        let Some(Original::Link { path: Some(was), .. }) = kept else { return Ok(false) };
        let found = self.host.0.root.read_link(&new.path).map_err(|error| untouched(&error))?;
        Ok(was == new.path && found.as_ref() == Some(&new.target))
    }

    /// Puts back the link that was there before.
    async fn release(&self, cx: &OpCx, location: &Location) -> Result<(), OpError> {
        let root = &self.host.0.root;
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let Location { path: place, within } = location.clone();
        let originals = &self.host.0.kept;
        let Some(Original::Link { target, .. }) = originals.get(cx.item())? else {
            return Err(kept::missing(&place, &originals.path(cx.item()), cx.item()));
        };
        self.keep_change(cx, &place, &target)?;
        let written = async {
            if root.stat(&place)?.is_some() {
                return root.replace_link(&place, within, &target, &temporary);
            }
            self.host.place(cx, root.prepare_link(&place, &target, &temporary)?).await
        };
        written.await.map_err(|error: FsError| untouched(&error))?;
        self.host.let_go(cx, &place).await
    }

    /// Where a link is now.
    fn place(&self, cx: &OpCx, item: &Symlink) -> Result<Location, OpError> {
        self.host.place_of(cx, &item.path, Kind::Symlink).map_err(|error| untouched(&error))
    }

    async fn move_to(&self, cx: &OpCx, old: &Symlink, new: &Symlink) -> Result<(), FsError> {
        if self.host.bring(cx, &old.path, &new.path, Kind::Symlink).await? {
            return Ok(());
        }
        // It may have moved with the directory around it, or be gone.
        if self.host.place_of(cx, &old.path, Kind::Symlink)?.path == new.path {
            return Ok(());
        }
        self.make(cx, new).await
    }
}

impl Configurator<Symlink> for Symlinks {
    async fn create(&self, cx: &OpCx, new: &Symlink) -> Result<(), OpError> {
        let failed = |error: FsError| untouched(&error);
        let root = &self.host.0.root;
        let mut aside = self.host.find_aside(cx, Kind::Symlink).map_err(failed)?;
        if new.adopt
            && root.stat(&new.path).map_err(failed)?.is_some()
            && let Some(aside) = aside.take()
        {
            // What is there is taken over, and the one that was made here is not needed.
            root.remove(&aside, None, Kind::Symlink).map_err(failed)?;
        }
        if let Some(aside) = aside {
            let temporary = Temporary::name_of(&self.prefix, cx.item());
            root.replace_link(&aside, None, &new.target, &temporary).map_err(failed)?;
            if self.host.bring_back(cx, &aside, &new.path, Kind::Symlink).await? {
                return Ok(());
            }
            self.make(cx, new).await.map_err(failed)?;
            let removed = root.remove(&aside, None, Kind::Symlink);
            return removed.map_err(|error| OpError::new(error.to_string()));
        }
        if let Some(was) = self.host.original_elsewhere(cx, &new.path)? {
            if self.host.can_go_back(cx, &was)? {
                self.release(cx, &Location { path: was, within: None }).await?;
            } else {
                self.host.retire_original(cx, was).await?;
            }
        }
        self.host.begin_anew(cx).await?;
        let takes_over = new.adopt || self.host.is_released(cx, &new.path);
        self.host.will_write(cx, new.target.clone()).await?;
        match self.make(cx, new).await {
            Err(FsError::Exists { adoptable: true, .. }) if takes_over => self.take_over(cx, new).await,
            made => made.map_err(|error| untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &Symlink, new: &Symlink) -> Result<(), OpError> {
        self.host.forget_made(cx).await?;
        if self.host.must_keep(cx) {
            let path = self.place(cx, old)?.path;
            let there = self.host.0.root.read_link(&path).map_err(|error| untouched(&error))?;
            // What Setpoint made is no original: that is lost, and who lets go of the item is told so.
            if there.is_some_and(|target| !Host::has_written(cx, &target)) {
                self.keep_original(cx.item(), &path)?;
            }
        }
        let moves = old.path != new.path;
        if moves {
            self.move_to(cx, old, new).await.map_err(|error| untouched(&error))?;
        }
        if old.target != new.target {
            self.host.will_write(cx, new.target.clone()).await?;
            self.keep_drift(cx, &new.path)?;
            self.replace(cx, new)
                .map_err(|error| if moves { OpError::new(error.to_string()) } else { untouched(&error) })?;
        }
        Ok(())
    }

    /// As of files: what was taken over stays in its place.
    fn needs_recreate(&self, ownership: Ownership, old: &Symlink, new: &Symlink) -> bool {
        old.path != new.path && (ownership.is_adopted() || new.adopt)
    }

    async fn delete(&self, cx: &OpCx, old: &Symlink) -> Result<(), OpError> {
        if PlaceNote::of(cx).released.is_some() {
            return Ok(());
        }
        let root = &self.host.0.root;
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let location = self.place(cx, old)?;
        let Location { path: place, within } = location.clone();
        root.remove_temporary(&place, &temporary).map_err(|error| untouched(&error))?;
        if cx.ownership().is_adopted() {
            return self.release(cx, &location).await;
        }
        let is_as_made = || Ok(root.read_link(&place)?.is_none_or(|target| target == old.target));
        if self.host.is_somebodys(cx, &place, is_as_made)? {
            return Ok(());
        }
        if cx.is_recreation()
            && self.host.set_aside(cx, &location, Kind::Symlink).await.map_err(|error| untouched(&error))?
        {
            return Ok(());
        }
        root.remove(&place, within, Kind::Symlink).map_err(|error| untouched(&error))
    }

    async fn read(&self, cx: &OpCx, item: &Symlink) -> Result<Observed<Symlink>, OpError> {
        let read = |path: &RootPath| {
            let target = self.host.0.root.read_link(path)?;
            Ok(target.map(|target| Symlink { path: path.clone(), target, ..item.clone() }))
        };
        let is_as = |found: &Symlink, original: Option<&Original>| match original {
            None => found.target == item.target,
            Some(Original::Link { target, .. }) => found.target == *target,
            Some(_) => false,
        };
        self.host.look(cx, &item.path, Kind::Symlink, read, is_as)
    }
}
