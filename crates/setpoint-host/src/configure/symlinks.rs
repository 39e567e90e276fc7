//! Symbolic links on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError};
use setpoint_graph::{Item, ItemRef};

use crate::fs::{Born, FsError, Kind, Temporary, untouched};
use crate::host::Host;
use crate::item::{RootPath, Symlink};

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

    fn make(&self, item: &ItemRef, new: &Symlink) -> Result<(), FsError> {
        let temporary = Temporary::name_of(&self.prefix, item);
        let midwife = |born: Born<'_>| self.host.note_birth(item, born);
        self.host.0.root.make_link(&new.path, &new.target, &temporary, &midwife)
    }

    fn move_to(&self, item: &ItemRef, old: &Symlink, new: &Symlink) -> Result<(), OpError> {
        let root = &self.host.0.root;
        let from = self.host.0.moves.place(root, item, &old.path);
        let found = root.stat(&from).map_err(|error| untouched(&error))?;
        match found.filter(|_| from != new.path) {
            Some(found) => {
                self.host
                    .0
                    .moves
                    .note(item, &old.path, &new.path, &found)
                    .map_err(|error| OpError::untouched(format!("can't note the move: {error}")))?;
                let renamed = root.rename(&from, &new.path, Kind::Symlink);
                renamed.map_err(|error| untouched(&error))
            }
            // It moved with the directory around it.
            None => match root.read_link(&new.path) {
                Ok(Some(target)) if target == old.target || target == new.target => Ok(()),
                Ok(Some(_)) => {
                    let (path, what) = (new.path.to_string(), Kind::Symlink.words());
                    Err(untouched(&FsError::Exists { path, what, adoptable: false }))
                }
                Ok(None) => self.make(item, new).map_err(|error| untouched(&error)),
                Err(error) => Err(untouched(&error)),
            },
        }
    }
}

impl Configurator<Symlink> for Symlinks {
    async fn create(&self, cx: &OpCx, new: &Symlink) -> Result<(), OpError> {
        match self.make(cx.item(), new) {
            Err(FsError::Exists { adoptable: true, .. }) if new.adopt => {
                self.host.take_over(cx.item())?;
                self.replace(cx.item(), new).map_err(|error| untouched(&error))
            }
            made => made.map_err(|error| untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &Symlink, new: &Symlink) -> Result<(), OpError> {
        let moves = old.path != new.path;
        if moves {
            self.move_to(cx.item(), old, new)?;
        }
        if old.target != new.target {
            self.replace(cx.item(), new)
                .map_err(|error| if moves { OpError::new(error.to_string()) } else { untouched(&error) })?;
        }
        Ok(())
    }

    async fn delete(&self, _: &OpCx, old: &Symlink) -> Result<(), OpError> {
        let reference = ItemRef::new(old.kind(), old.name());
        let temporary = Temporary::name_of(&self.prefix, &reference);
        self.host.0.root.remove_temporary(&old.path, &temporary).map_err(|error| untouched(&error))?;
        if self.host.lets_go(&reference)? {
            return Ok(());
        }
        // The directory around it may have moved before.
        let place = self.host.0.moves.place(&self.host.0.root, &reference, &old.path);
        self.host.0.root.remove(&place, Kind::Symlink).map_err(|error| untouched(&error))?;
        Ok(())
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
