//! Symbolic links on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError};
use setpoint_graph::ItemRef;

use super::Symlink;
use crate::configure::kept::Original;
use crate::configure::{Location, PlaceNote, takes_over_again};
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
        let target = self.host.0.root.read_link(path).map_err(|error| untouched(&error))?;
        let Some(target) = target else { return Ok(()) };
        let within = self.host.0.root.lasting_holder(path);
        self.host.0.kept.put(item, &Original::Link { target, path: Some(path.clone()), within })
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

impl Symlinks {
    /// Returns whether what is there is as declared, and what was there before it is kept.
    fn is_own_work(&self, cx: &OpCx, new: &Symlink) -> Result<bool, OpError> {
        let found = self.host.0.root.read_link(&new.path).map_err(|error| untouched(&error))?;
        Ok(self.host.is_kept(cx) && found.as_ref() == Some(&new.target))
    }
}

impl Configurator<Symlink> for Symlinks {
    async fn create(&self, cx: &OpCx, new: &Symlink) -> Result<(), OpError> {
        match self.make(cx, new).await {
            Err(FsError::Exists { adoptable: true, .. }) if new.adopt || takes_over_again(cx) => {
                if !self.is_own_work(cx, new)? {
                    self.keep_original(cx.item(), &new.path)?;
                }
                cx.adopt().await?;
                self.host.know(cx, &new.path, Kind::Symlink).await?;
                self.replace(cx, new).map_err(|error| untouched(&error))
            }
            made => made.map_err(|error| untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &Symlink, new: &Symlink) -> Result<(), OpError> {
        if self.host.must_keep(cx) {
            self.keep_original(cx.item(), &self.place(cx, old)?.path)?;
        }
        let moves = old.path != new.path;
        if moves {
            self.move_to(cx, old, new).await.map_err(|error| untouched(&error))?;
        }
        if old.target != new.target {
            self.replace(cx, new)
                .map_err(|error| if moves { OpError::new(error.to_string()) } else { untouched(&error) })?;
        }
        Ok(())
    }

    async fn delete(&self, cx: &OpCx, old: &Symlink) -> Result<(), OpError> {
        let root = &self.host.0.root;
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let Location { path: place, within } = self.place(cx, old)?;
        root.remove_temporary(&place, &temporary).map_err(|error| untouched(&error))?;
        if cx.ownership().is_adopted() {
            let kept = &self.host.0.kept;
            if let Some(Original::Link { target, path: was, within: was_in }) = kept.get(cx.item())? {
                root.replace_link(&place, within, &target, &temporary).map_err(|error| untouched(&error))?;
                let home = self.host.home(&place, was.as_ref(), was_in);
                if home != place {
                    // It was moved since, and goes back to where it was; nothing else there is replaced.
                    root.rename(&place, within, &home, Kind::Symlink).map_err(|error| untouched(&error))?;
                }
                kept.remove(cx.item());
            }
            return Ok(());
        }
        root.remove(&place, within, Kind::Symlink).map_err(|error| untouched(&error))
    }

    async fn read(&self, cx: &OpCx, item: &Symlink) -> Result<Observed<Symlink>, OpError> {
        let read = |path: &RootPath| {
            let target = self.host.0.root.read_link(path)?;
            Ok(target.map(|target| Symlink { path: path.clone(), target, ..item.clone() }))
        };
        self.host.look(cx, &item.path, Kind::Symlink, read)
    }
}
