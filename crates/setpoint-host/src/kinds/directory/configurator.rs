//! Directories on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError, Operation};

use setpoint_graph::ItemRef;

use super::Directory;
use crate::configure::kept::{self, Original};
use crate::configure::{Accounts, Location, Move, PathNote, is_unmounted};
use crate::fs::{FileType, Found, FsError, Temporary, untouched};
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
        self.host.publish(cx, prepared).await
    }

    fn set_access(&self, item: &Directory) -> Result<(), FsError> {
        let uid = self.accounts.uid(item.access.owner.as_deref())?;
        let gid = self.accounts.gid(item.access.group.as_deref())?;
        let mode = item.access.mode.map(crate::item::Mode::bits);
        self.host.0.root.set_access(&item.path, FileType::Directory, mode, uid, gid)
    }

    /// Where a directory is now.
    fn locate(&self, cx: &OpCx, item: &Directory) -> Result<RootPath, OpError> {
        let location = self.host.locate(cx, &item.path, FileType::Directory);
        location.map(|location| location.path).map_err(|error| untouched(&error))
    }

    /// Where the directory was set aside, if it was.
    fn find_aside(&self, cx: &OpCx) -> Result<Option<RootPath>, OpError> {
        self.host.find_aside(cx, FileType::Directory).map_err(|error| untouched(&error))
    }

    /// Returns whether the directory at a path is the one that the item was: it could not be set aside while it is made anew.
    fn is_known(&self, cx: &OpCx, path: &RootPath) -> bool {
        let found = self.host.0.root.directory(path.as_str());
        PathNote::of(cx).directory().zip(found).is_some_and(|(known, found)| known.is(found))
    }

    /// Returns whether a file system is not mounted that was, on the way to the directory: it is there, and comes back with that.
    fn is_away(&self, cx: &OpCx, item: &Directory) -> bool {
        is_unmounted(&self.host.0.root, &item.path, &PathNote::of(cx))
    }

    /// Sets the directory aside, with all it holds. Returns whether it did.
    async fn set_aside(&self, cx: &OpCx, location: RootPath) -> Result<bool, OpError> {
        let location = Location { path: location, within: None };
        self.host.set_aside(cx, &location, FileType::Directory).await.map_err(|error| untouched(&error))
    }

    /// Keeps the permissions of the directory at a path for the item that takes it over. Returns the name of what is kept.
    pub(crate) fn keep_original(&self, path: &RootPath) -> Result<Option<String>, OpError> {
        let found = self.host.0.root.stat(path).map_err(|error| untouched(&error))?;
        let Some(Found { mode, uid, gid, .. }) = found else { return Ok(None) };
        let original = Original::Directory { mode, uid, gid, path: Some(path.clone()) };
        self.host.0.kept.put(&original).map(Some)
    }

    /// Reads the directory at a path; `follow` takes a link to one for one.
    fn read_at(&self, item: &Directory, path: &RootPath, follow: bool) -> Result<Option<Directory>, FsError> {
        let Some(found) = self.host.0.root.stat(path)? else { return Ok(None) };
        if found.kind != FileType::Directory && !(follow && self.host.is_directory(path)) {
            let (path, wanted) = (path.to_string(), FileType::Directory.words());
            return Err(FsError::OtherType { path, wanted, found: found.kind.words() });
        }
        let access = self.accounts.found(&item.access, &found);
        let needs = self.host.needs_at(&item.needs, &item.path, path);
        Ok(Some(Directory { path: path.clone(), access, needs, ..item.clone() }))
    }

    /// Gives a directory that was there before its permissions back.
    async fn release(&self, cx: &OpCx, old: &Directory, location: &RootPath) -> Result<(), OpError> {
        let root = &self.host.0.root;
        let is_there = root.stat(location).map_err(|error| untouched(&error))?.is_some();
        match self.host.original(cx)? {
            Some(Original::Directory { mode, uid, gid, .. }) => {
                if is_there {
                    let set =
                        root.set_access(location, FileType::Directory, Some(mode), Some(uid), Some(gid));
                    set.map_err(|error| untouched(&error))?;
                }
                self.host.release_original(cx, location).await
            }
            _ if is_there && !old.access.is_unmanaged() => {
                Err(kept::missing(location, &self.host.original_path(cx), cx.item()))
            }
            _ => Ok(()),
        }
    }
}

/// Why a directory that a run which was cut off has set aside stays there.
fn stays_aside(location: &RootPath, was: &RootPath, why: &FsError, item: &ItemRef) -> OpError {
    let (kind, name) = (item.kind(), item.name());
    let why = match why {
        FsError::Exists { .. } => format!("something else is at {was} by now"),
        why => why.to_string(),
    };
    OpError::untouched(format!(
        "what it holds is in {location}, where a run that was cut off has set it aside, and can't go back: {why}; move {location} to \
         where you want it, and say `setpoint state rm {kind}.{name}`"
    ))
}

impl Configurator<Directory> for Directories {
    async fn create(&self, cx: &OpCx, new: &Directory) -> Result<(), OpError> {
        self.host.has_arrived(&new.needs, &new.path).map_err(|error| untouched(&error))?;
        if let Some(aside) = self.find_aside(cx)? {
            if !self.host.bring_back(cx, &aside, &new.path, FileType::Directory).await? {
                let (from, to) = (aside.to_string(), new.path.to_string());
                return Err(untouched(&FsError::OtherFileSystem { from, to }));
            }
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
                if (new.adopt || self.is_known(cx, &new.path)) && adoptable
                    || new.implicit && self.host.is_directory(&new.path) =>
            {
                let known = Host::original_name(cx);
                let kept = match &known {
                    None if !new.access.is_unmanaged() => self.keep_original(&new.path)?,
                    known => known.clone(),
                };
                let taken_over = async {
                    self.host.adopt(cx, &new.path, FileType::Directory, kept.clone(), None).await?;
                    self.set_access(new).map_err(|error| untouched(&error))
                };
                let taken_over = taken_over.await;
                if taken_over.is_err() && known.is_none() {
                    self.host.leave_original(cx, kept.as_deref()).await;
                }
                taken_over
            }
            Err(error) => Err(untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &Directory, new: &Directory) -> Result<(), OpError> {
        if old.access != new.access
            && self.host.must_keep(cx)
            && let Some(kept) = self.keep_original(&self.locate(cx, old)?)?
        {
            self.host.note_original(cx, kept).await?;
        }
        if old.path != new.path {
            self.host.has_arrived(&new.needs, &new.path).map_err(|error| untouched(&error))?;
            let moved = self.host.move_entry(cx, &old.path, &new.path, FileType::Directory).await;
            let moved = moved.map_err(|error| untouched(&error))?;
            // It may have moved with the directory around it.
            if !moved && self.locate(cx, old)? != new.path {
                return Err(OpError::untouched(format!("{} is not there any more", old.path)));
            }
        }
        if old.access == new.access {
            return Ok(());
        }
        if old.path == new.path {
            self.locate(cx, old)?;
        }
        // The move is done: what is left is tried again from there.
        self.set_access(new).map_err(|error| {
            if old.path == new.path { untouched(&error) } else { OpError::new(error.to_string()) }
        })
    }

    async fn delete(&self, cx: &OpCx, old: &Directory) -> Result<(), OpError> {
        if PathNote::of(cx).released.is_some() {
            return Ok(());
        }
        let root = &self.host.0.root;
        let mut location = match self.host.locate(cx, &old.path, FileType::Directory) {
            // Nobody declared it, and the one that was made is gone.
            Err(FsError::Replaced { .. }) if old.implicit && !self.is_away(cx, old) => return Ok(()),
            location => location.map_err(|error| untouched(&error))?.path,
        };
        let is_put_back = Host::is_aside(&location) && !cx.is_recreation();
        if is_put_back {
            // A run that was cut off has set it aside.
            let mut note = PathNote::of(cx);
            let was = note.aside.as_ref().map_or(&old.path, |aside| &aside.from).clone();
            if let Some(aside) = &note.aside {
                // Where it can't be removed, the next run finds it there.
                let (from, to, number) = (old.path.clone(), was.clone(), aside.number);
                let this = Move { from, to, number, into: None };
                // One that was noted before is noted once.
                if note.moved.last() != Some(&this) {
                    note.moved.push(this);
                }
                note.write(cx).await.map_err(|error| untouched(&error))?;
                self.host.0.directories.learn(cx.item(), &was, &note);
            }
            match root.rename(&location, None, &was, FileType::Directory) {
                // One that is empty and ours is removed from there.
                Err(_)
                    if !cx.ownership().is_adopted()
                        && root.remove_directory(&location, None, &self.ours).is_ok() =>
                {
                    return Ok(());
                }
                Err(error) => return Err(stays_aside(&location, &was, &error, cx.item())),
                Ok(()) => location = was,
            }
        }
        if cx.ownership().is_adopted() {
            if cx.is_recreation() {
                // It may come back in another place, and what is in it comes along. Where it can't be moved, it stays.
                return self.set_aside(cx, location).await.map(drop);
            }
            return self.release(cx, old, &location).await;
        }
        let this = PathNote::of(cx).directory();
        match root.remove_directory(&location, this, &self.ours) {
            // What nobody declared comes back with it.
            Err(error @ FsError::NotEmpty { .. }) if cx.is_recreation() => {
                if self.set_aside(cx, location).await? { Ok(()) } else { Err(untouched(&error)) }
            }
            // Nobody declared it: it belongs to whoever put there what else is in it.
            Err(FsError::NotEmpty { .. }) if old.implicit => cx.adopt().await,
            // It is there again.
            removed if is_put_back => removed.map_err(|error| OpError::new(error.to_string())),
            removed => removed.map_err(|error| untouched(&error)),
        }
    }

    async fn read(&self, cx: &OpCx, item: &Directory) -> Result<Observed<Directory>, OpError> {
        // Only what was there before may be a link: one that we made was replaced by it.
        let follow = item.implicit && cx.ownership().is_adopted();
        if let Some(path) = self.find_aside(cx)? {
            // It is there, and not where it was: what it is to become is still to be made of it.
            let is_to_come = cx.unfinished() == Some(Operation::Create);
            let aside = || Observed::Present(Directory { path, ..item.clone() });
            return Ok(if is_to_come { Observed::Absent } else { aside() });
        }
        match self.host.locate(cx, &item.path, FileType::Directory) {
            // Nobody declared it: whichever directory is there will do for what is to be inside, and it is not ours.
            Err(FsError::Replaced { .. }) if item.implicit && !self.is_away(cx, item) => Ok(Observed::Absent),
            _ => {
                let read = |path: &RootPath| self.read_at(item, path, follow);
                let is_as = |found: &Directory, original: Option<&Original>| {
                    original.is_some() || found.access == item.access
                };
                self.host.look(cx, &item.path, FileType::Directory, read, is_as)
            }
        }
    }
}
