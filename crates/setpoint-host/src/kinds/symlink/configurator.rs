//! Symbolic links on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError};
use setpoint_graph::ItemRef;

use super::Symlink;
use crate::configure::kept::Original;
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

    fn replace(&self, item: &ItemRef, new: &Symlink) -> Result<(), FsError> {
        let temporary = Temporary::name_of(&self.prefix, item);
        self.host.0.root.replace_link(&new.path, &new.target, &temporary)
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
        self.host.0.kept.put(item, &Original::Link { target, path: Some(path.clone()) })
    }

    async fn move_to(&self, cx: &OpCx, old: &Symlink, new: &Symlink) -> Result<(), FsError> {
        if self.host.bring(cx, &old.path, &new.path, Kind::Symlink).await? {
            return Ok(());
        }
        match self.host.0.root.read_link(&new.path)? {
            Some(target) if target == old.target || target == new.target => Ok(()),
            Some(_) => {
                let (path, what) = (new.path.to_string(), Kind::Symlink.words());
                Err(FsError::Exists { path, what, adoptable: false })
            }
            None => self.make(cx, new).await,
        }
    }
}

impl Configurator<Symlink> for Symlinks {
    async fn create(&self, cx: &OpCx, new: &Symlink) -> Result<(), OpError> {
        match self.make(cx, new).await {
            Err(FsError::Exists { adoptable: true, .. }) if new.adopt => {
                if !self.host.is_kept(cx) {
                    self.keep_original(cx.item(), &new.path)?;
                }
                cx.adopt().await?;
                self.replace(cx.item(), new).map_err(|error| untouched(&error))
            }
            made => made.map_err(|error| untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &Symlink, new: &Symlink) -> Result<(), OpError> {
        if self.host.must_keep(cx) {
            self.keep_original(cx.item(), &self.host.place_of(cx, &old.path)?)?;
        }
        let moves = old.path != new.path;
        if moves {
            self.move_to(cx, old, new).await.map_err(|error| untouched(&error))?;
        }
        if old.target != new.target {
            self.replace(cx.item(), new)
                .map_err(|error| if moves { OpError::new(error.to_string()) } else { untouched(&error) })?;
        }
        Ok(())
    }

    async fn delete(&self, cx: &OpCx, old: &Symlink) -> Result<(), OpError> {
        let root = &self.host.0.root;
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let place = self.host.place_of(cx, &old.path)?;
        root.remove_temporary(&place, &temporary).map_err(|error| untouched(&error))?;
        if cx.ownership().is_adopted() {
            let kept = &self.host.0.kept;
            if let Some(Original::Link { target, path: was }) = kept.get(cx.item())? {
                root.replace_link(&place, &target, &temporary).map_err(|error| untouched(&error))?;
                if let Some(was) = was.as_ref().filter(|was| **was != place) {
                    // It was moved since, and goes back to where it was; nothing else there is replaced.
                    root.rename(&place, was, Kind::Symlink).map_err(|error| untouched(&error))?;
                }
                kept.remove(cx.item());
            }
            return Ok(());
        }
        root.remove(&place, Kind::Symlink).map_err(|error| untouched(&error))
    }

    fn needs_recreate(&self, _: &Symlink, _: &Symlink) -> bool {
        false
    }

    async fn read(&self, cx: &OpCx, item: &Symlink) -> Result<Observed<Symlink>, OpError> {
        let read = |path: &RootPath| {
            let target = self.host.0.root.read_link(path)?;
            Ok(target.map(|target| Symlink { path: path.clone(), target, ..item.clone() }))
        };
        self.host.look(cx, &item.path, read)
    }
}
