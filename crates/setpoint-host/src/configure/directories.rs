//! Directories on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError};
use setpoint_graph::Item;

use super::Accounts;
use crate::fs::{Born, FsError, Kind, Temporary, untouched};
use crate::host::Host;
use crate::item::{Directory, RootPath};

/// Makes, moves, changes, removes and reads directories.
#[derive(Debug)]
pub struct Directories {
    host: Host,
    accounts: Accounts,
    ours: String,
}

impl Directories {
    /// The configurator for a host.
    pub fn new(host: &Host) -> Self {
        let ours = Temporary::prefix(host.set());
        Self { host: host.clone(), accounts: Accounts::default(), ours }
    }

    fn set_access(&self, item: &Directory) -> Result<(), FsError> {
        let uid = self.accounts.uid(item.access.owner.as_deref())?;
        let gid = self.accounts.gid(item.access.group.as_deref())?;
        let mode = item.access.mode.map(crate::item::Mode::bits);
        self.host.0.root.set_access(&item.path, Kind::Directory, mode, uid, gid)
    }

    fn read_at(&self, item: &Directory, path: &RootPath) -> Result<Option<Directory>, FsError> {
        let Some(found) = self.host.0.root.stat(path)? else { return Ok(None) };
        if found.kind != Kind::Directory {
            let (path, wanted) = (path.to_string(), Kind::Directory.words());
            return Err(FsError::OtherType { path, wanted, found: found.kind.words() });
        }
        let access = self.accounts.found(&item.access, &found);
        Ok(Some(Directory { path: path.clone(), access, ..item.clone() }))
    }
}

impl Configurator<Directory> for Directories {
    async fn create(&self, cx: &OpCx, new: &Directory) -> Result<(), OpError> {
        let temporary = Temporary::name_of(&self.ours, cx.item());
        let midwife = |born: Born<'_>| self.host.note_birth(cx.item(), born);
        let made = self.host.0.root.make_directory(&new.path, &temporary, &midwife);
        match made {
            Ok(()) => self.set_access(new).map_err(|error| {
                // Nothing half done: it was empty a moment ago.
                let removed = self.host.0.root.remove_directory(&new.path, &self.ours);
                if removed.is_ok() { untouched(&error) } else { OpError::new(error.to_string()) }
            }),
            Err(FsError::Exists { adoptable: true, .. }) if new.adopt => {
                self.host.take_over(cx.item())?;
                self.set_access(new).map_err(|error| untouched(&error))
            }
            Err(error) => Err(untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &Directory, new: &Directory) -> Result<(), OpError> {
        let root = &self.host.0.root;
        if old.path != new.path {
            let from = self.host.0.moves.place(root, cx.item(), &old.path);
            let found = root.stat(&from).map_err(|error| untouched(&error))?;
            match found.filter(|_| from != new.path) {
                Some(found) => {
                    self.host
                        .0
                        .moves
                        .note(cx.item(), &old.path, &new.path, &found)
                        .map_err(|error| OpError::untouched(format!("can't note the move: {error}")))?;
                    root.rename(&from, &new.path, Kind::Directory).map_err(|error| untouched(&error))?;
                }
                // It moved with the directory around it.
                None if matches!(self.read_at(old, &new.path), Ok(Some(_))) => {}
                None => return Err(OpError::untouched(format!("{} is not there any more", old.path))),
            }
        }
        if old.access == new.access {
            return Ok(());
        }
        // The move is done: what is left is tried again from there.
        self.set_access(new).map_err(|error| {
            if old.path == new.path { untouched(&error) } else { OpError::new(error.to_string()) }
        })
    }

    async fn delete(&self, _: &OpCx, old: &Directory) -> Result<(), OpError> {
        let reference = setpoint_graph::ItemRef::new(old.kind(), old.name());
        if self.host.lets_go(&reference)? {
            return Ok(());
        }
        // The directory around it may have moved before.
        let place = self.host.0.moves.place(&self.host.0.root, &reference, &old.path);
        self.host.0.root.remove_directory(&place, &self.ours).map_err(|error| untouched(&error))?;
        Ok(())
    }

    fn needs_recreate(&self, _: &Directory, _: &Directory) -> bool {
        false
    }

    async fn read(&self, cx: &OpCx, item: &Directory) -> Result<Observed<Directory>, OpError> {
        self.host.look(cx, &item.path, |path| self.read_at(item, path))
    }
}
