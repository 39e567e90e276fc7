//! Directories on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError, Operation};

use setpoint_graph::ItemRef;

use super::Directory;
use crate::configure::kept::Original;
use crate::configure::{Accounts, PlaceNote, takes_over_again};
use crate::fs::{Found, FsError, Kind, Temporary, untouched};
use crate::host::Host;
use crate::item::RootPath;

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

    async fn make(&self, cx: &OpCx, new: &Directory) -> Result<(), FsError> {
        let temporary = Temporary::name_of(&self.ours, cx.item());
        let prepared = self.host.0.root.prepare_directory(&new.path, &temporary)?;
        self.host.place(cx, prepared).await
    }

    fn set_access(&self, item: &Directory) -> Result<(), FsError> {
        let uid = self.accounts.uid(item.access.owner.as_deref())?;
        let gid = self.accounts.gid(item.access.group.as_deref())?;
        let mode = item.access.mode.map(crate::item::Mode::bits);
        self.host.0.root.set_access(&item.path, Kind::Directory, mode, uid, gid)
    }

    /// Where a directory is now.
    fn place(&self, cx: &OpCx, item: &Directory) -> Result<RootPath, OpError> {
        let place = self.host.place_of(cx, &item.path, Kind::Directory);
        place.map(|place| place.path).map_err(|error| untouched(&error))
    }

    /// Keeps the permissions of the directory at a path for the item that takes it over.
    pub(crate) fn keep_original(&self, item: &ItemRef, path: &RootPath) -> Result<(), OpError> {
        let found = self.host.0.root.stat(path).map_err(|error| untouched(&error))?;
        let Some(Found { mode, uid, gid, .. }) = found else { return Ok(()) };
        self.host.0.kept.put(item, &Original::Directory { mode, uid, gid })
    }

    /// Reads the directory at a path; `follow` takes a link to one for one.
    fn read_at(&self, item: &Directory, path: &RootPath, follow: bool) -> Result<Option<Directory>, FsError> {
        let Some(found) = self.host.0.root.stat(path)? else { return Ok(None) };
        if found.kind != Kind::Directory && !(follow && self.host.is_directory(path)) {
            let (path, wanted) = (path.to_string(), Kind::Directory.words());
            return Err(FsError::OtherType { path, wanted, found: found.kind.words() });
        }
        let access = self.accounts.found(&item.access, &found);
        Ok(Some(Directory { path: path.clone(), access, ..item.clone() }))
    }
}

impl Configurator<Directory> for Directories {
    async fn create(&self, cx: &OpCx, new: &Directory) -> Result<(), OpError> {
        if let Some(aside) = self.host.find_aside(cx.item()).map_err(|error| untouched(&error))? {
            let back = self.host.bring_back(cx, &aside, &new.path).await;
            back.map_err(|error| untouched(&error))?;
            return self.set_access(new).map_err(|error| OpError::new(error.to_string()));
        }
        match self.make(cx, new).await {
            Ok(()) => self.set_access(new).map_err(|error| {
                // Nothing half done: it was empty a moment ago.
                let removed = self.host.0.root.remove_directory(&new.path, None, &self.ours);
                if removed.is_ok() { untouched(&error) } else { OpError::new(error.to_string()) }
            }),
            // A link that leads to a directory is as good as one for what is to be inside.
            Err(FsError::Exists { adoptable, .. })
                if (new.adopt || takes_over_again(cx)) && adoptable
                    || new.implicit && self.host.is_directory(&new.path) =>
            {
                if !self.host.is_kept(cx) && !new.access.is_unmanaged() {
                    self.keep_original(cx.item(), &new.path)?;
                }
                cx.adopt().await?;
                self.host.know(cx, &new.path, Kind::Directory).await?;
                self.set_access(new).map_err(|error| untouched(&error))
            }
            Err(error) => Err(untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &Directory, new: &Directory) -> Result<(), OpError> {
        if self.host.must_keep(cx) && old.access != new.access {
            self.keep_original(cx.item(), &self.place(cx, old)?)?;
        }
        if old.path != new.path {
            let moved = self.host.bring(cx, &old.path, &new.path, Kind::Directory).await;
            let moved = moved.map_err(|error| untouched(&error))?;
            // It may have moved with the directory around it.
            if !moved && self.place(cx, old)? != new.path {
                return Err(OpError::untouched(format!("{} is not there any more", old.path)));
            }
        }
        if old.access == new.access {
            return Ok(());
        }
        if old.path == new.path {
            self.place(cx, old)?;
        }
        // The move is done: what is left is tried again from there.
        self.set_access(new).map_err(|error| {
            if old.path == new.path { untouched(&error) } else { OpError::new(error.to_string()) }
        })
    }

    async fn delete(&self, cx: &OpCx, old: &Directory) -> Result<(), OpError> {
        let place = match self.host.place_of(cx, &old.path, Kind::Directory) {
            // Nobody declared it, and the one that was made is gone.
            Err(FsError::Replaced { .. }) if old.implicit => return Ok(()),
            place => place.map_err(|error| untouched(&error))?.path,
        };
        if let Some(aside) = self.host.find_aside(cx.item()).map_err(|error| untouched(&error))? {
            // A run that was cut off has set it aside.
            if cx.returns() {
                return Ok(());
            }
            self.host.put_back(&aside, &place).map_err(|error| untouched(&error))?;
        }
        if cx.ownership().is_adopted() {
            if cx.returns() {
                // It may come back in another place, and what is in it comes along. Where it can't be moved, it stays.
                let _ = self.host.set_aside(cx.item(), &place);
                return Ok(());
            }
            let originals = &self.host.0.kept;
            if let Some(Original::Directory { mode, uid, gid }) = originals.get(cx.item())? {
                let root = &self.host.0.root;
                root.set_access(&place, Kind::Directory, Some(mode), Some(uid), Some(gid))
                    .map_err(|error| untouched(&error))?;
                originals.remove(cx.item());
            }
            return Ok(());
        }
        let this = PlaceNote::of(cx).directory();
        match self.host.0.root.remove_directory(&place, this, &self.ours) {
            // What nobody declared comes back with it.
            Err(error @ FsError::NotEmpty { .. }) if cx.returns() => {
                self.host.set_aside(cx.item(), &place).map_err(|_| untouched(&error))
            }
            // Nobody declared it: it belongs to whoever put there what else is in it.
            Err(FsError::NotEmpty { .. }) if old.implicit => cx.adopt().await,
            removed => removed.map_err(|error| untouched(&error)),
        }
    }

    async fn read(&self, cx: &OpCx, item: &Directory) -> Result<Observed<Directory>, OpError> {
        // Only what was there before may be a link: one that we made was replaced by it.
        let follow = item.implicit && cx.ownership().is_adopted();
        if cx.unfinished() == Some(Operation::Delete) {
            // It is still what it was, wherever it was set aside.
            let aside = self.host.find_aside(cx.item()).map_err(|error| untouched(&error))?;
            if aside.is_some() {
                return Ok(Observed::Present(item.clone()));
            }
        }
        match self.host.place_of(cx, &item.path, Kind::Directory) {
            // Nobody declared it: whichever directory is there will do for what is to be inside, and it is not ours.
            Err(FsError::Replaced { .. }) if item.implicit => Ok(Observed::Absent),
            _ => self.host.look(cx, &item.path, Kind::Directory, |path| self.read_at(item, path, follow)),
        }
    }
}
