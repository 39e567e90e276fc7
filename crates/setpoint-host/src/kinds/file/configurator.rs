//! Regular files on the host.

use std::cell::Cell;
use std::sync::Arc;

use setpoint_engine::{Configurator, Observed, OpCx, OpError, Ownership};

use setpoint_graph::ItemRef;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::File;
use crate::configure::kept::{self, Original};
use crate::configure::{Accounts, Location, Notice, PlaceNote};
use crate::fs::{FsError, Kind, Number, Root, Temporary, Whole, Write, Written, untouched};
use crate::host::Host;
use crate::item::{Content, Mode, RootPath};

/// A file with more bytes than this is read on a thread of its own: whoever waits for something else meanwhile goes on.
const READ_AT_ONCE: u64 = 1 << 20;

/// Writes, moves, changes, removes and reads files.
#[derive(Clone, Debug)]
pub struct Files {
    host: Host,
    accounts: Arc<Accounts>,
    prefix: String,
}

impl Files {
    /// The configurator for a host.
    pub fn new(host: &Host) -> Self {
        let prefix = Temporary::prefix(host.set());
        Self { host: host.clone(), accounts: Arc::default(), prefix }
    }

    /// Writes the file where nothing is.
    async fn write_new(&self, cx: &OpCx, new: &File) -> Result<(), FsError> {
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let written = self.host.0.root.write_new(&self.write(new, None, &temporary)?)?;
        self.finish(cx, written).await
    }

    /// Writes the file, also in the place of the one that is there.
    async fn write_over(&self, cx: &OpCx, new: &File) -> Result<(), FsError> {
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let within = PlaceNote::of(cx).within(&new.path);
        let written = self.host.0.root.write_over(&self.write(new, within, &temporary)?)?;
        self.finish(cx, written).await
    }

    /// Writes the file where it was set aside, and brings it to its path.
    async fn bring_back(&self, cx: &OpCx, aside: &RootPath, new: &File) -> Result<(), OpError> {
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        if !new.log {
            let write = self
                .write(new, None, &temporary)
                .and_then(|write| self.host.0.root.write_over(&Write { path: aside, ..write }).map(drop));
            write.map_err(|error| untouched(&error))?;
        }
        if self.host.bring_back(cx, aside, &new.path, Kind::File).await? {
            return Ok(());
        }
        self.write_new(cx, new).await.map_err(|error| untouched(&error))?;
        // What is left is found by the next attempt.
        let removed = self.host.0.root.remove(aside, None, Kind::File);
        removed.map_err(|error| OpError::new(error.to_string()))
    }

    fn write<'a>(
        &self,
        new: &'a File,
        within: Option<Number>,
        temporary: &'a str,
    ) -> Result<Write<'a>, FsError> {
        Ok(Write {
            path: &new.path,
            within,
            content: &new.content,
            mode: new.access.mode.map(Mode::bits),
            uid: self.accounts.uid(new.access.owner.as_deref())?,
            gid: self.accounts.gid(new.access.group.as_deref())?,
            default_mode: match new {
                File { log: true, .. } => 0o640,
                File { sensitive: true, .. } => 0o600,
                _ => 0o644,
            },
            attributes: &[],
            temporary,
        })
    }

    async fn finish(&self, cx: &OpCx, written: Written<'_>) -> Result<(), FsError> {
        match written {
            Written::Replaced => Ok(()),
            Written::New(prepared) => self.host.place(cx, prepared).await,
        }
    }

    /// Takes over the file that is at the path of an item.
    ///
    /// What is about to be replaced is kept. One that was taken over before was kept then, also where the state has forgotten
    /// that, if what is there is what Setpoint itself wrote. Anything else is someone's new work: the file that was taken over
    /// was gone meanwhile.
    async fn take_over(&self, cx: &OpCx, new: &File) -> Result<(), OpError> {
        let is_own_work = self.is_own_work(cx.item(), new)?;
        if !is_own_work {
            self.keep_original(cx.item(), &new.path)?;
        }
        let found = self.host.0.root.stat(&new.path).map_err(|error| untouched(&error))?;
        let taken_over = async {
            cx.adopt().await?;
            self.host.know(cx, &new.path, Kind::File, Some(new.content.sha256())).await?;
            // Somebody may have written while that was noted.
            self.keep_drift(cx, &new.path)?;
            if self.holds(&new.path, &new.content)? {
                return self.change_access(cx, new).await.map_err(|error| untouched(&error));
            }
            self.write_over(cx, new).await.map_err(|error| untouched(&error))?;
            if found.is_some_and(|found| found.names > 1) {
                let (item, path) = (cx.item().clone(), new.path.clone());
                self.host.0.notices.add(Notice::OtherNames { item, path });
            }
            Ok(())
        };
        self.host.or_leave(cx, is_own_work, taken_over.await).await
    }

    /// Returns whether what is there is as declared, and what was there before it is kept.
    fn is_own_work(&self, item: &ItemRef, new: &File) -> Result<bool, OpError> {
        let kept = self.host.0.kept.get(item)?;
        let Some(Original::File { path: Some(was), .. }) = kept else { return Ok(false) };
        let found = self.host.0.root.read(&new.path).map_err(|error| untouched(&error))?;
        Ok(was == new.path && found.is_some_and(|(_, content)| content == new.content))
    }

    /// Keeps the file at a path of an item whose original is not kept. What Setpoint wrote is none: the original is lost, and
    /// who lets go of the item is told so.
    fn keep_unwritten(&self, cx: &OpCx, path: &RootPath) -> Result<(), OpError> {
        let there = self.host.0.root.read(path).map_err(|error| untouched(&error))?;
        if there.is_some_and(|(_, content)| Host::has_written(cx, &content.sha256())) {
            return Ok(());
        }
        self.keep_original(cx.item(), path)
    }

    /// Keeps the file at a path for the item that takes it over.
    pub(crate) fn keep_original(&self, item: &ItemRef, path: &RootPath) -> Result<(), OpError> {
        let read = self.host.0.root.read_bytes(path, kept::LARGEST);
        let read = read.map_err(|error| untouched(&error))?;
        let Some(Whole { found, bytes, attributes }) = read else { return Ok(()) };
        let bytes = bytes.ok_or_else(|| kept::too_large(path))?;
        self.host.0.kept.put(item, &Original::file(path, &bytes, found, &attributes))
    }

    /// Puts back what was there before, if anything of it was changed.
    async fn put_back(&self, cx: &OpCx, place: &Location) -> Result<(), OpError> {
        let originals = &self.host.0.kept;
        let Some(Original::File { content, mode, uid, gid, attributes, .. }) = originals.get(cx.item())?
        else {
            return Err(kept::missing(&place.path, &originals.path(cx.item()), cx.item()));
        };
        let content = Content::from(Original::bytes(&content)?);
        let attributes = Original::attributes(&attributes)?;
        self.keep_change(cx, &place.path, &content)?;
        let there = self.host.0.root.read(&place.path).map_err(|error| untouched(&error))?;
        if there.is_some_and(|(found, held)| {
            held == content && (found.mode, found.uid, found.gid) == (mode, uid, gid)
        }) {
            // It was taken over as it was, and never changed.
            return self.host.let_go(cx, &place.path).await;
        }
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let (mode, uid, gid) = (Some(mode), Some(uid), Some(gid));
        let Location { path, within } = place;
        let write = Write {
            path,
            within: *within,
            content: &content,
            mode,
            uid,
            gid,
            default_mode: 0o600,
            attributes: &attributes,
            temporary: &temporary,
        };
        let written = async { self.finish(cx, self.host.0.root.write_over(&write)?).await };
        written.await.map_err(|error| untouched(&error))?;
        self.host.let_go(cx, path).await
    }

    /// Keeps what somebody wrote in the place of an item that was taken over: what is there now, whatever was read before.
    fn keep_drift(&self, cx: &OpCx, path: &RootPath) -> Result<(), OpError> {
        let there = self.host.0.root.read(path).map_err(|error| untouched(&error))?;
        // Most often it is what Setpoint wrote.
        if there.is_none_or(|(_, content)| Host::has_written(cx, &content.sha256())) {
            return Ok(());
        }
        let Some(Original::File { content, .. }) = self.host.0.kept.get(cx.item())? else { return Ok(()) };
        let original = Content::from(Original::bytes(&content)?);
        self.keep_change(cx, path, &original)
    }

    /// Keeps what is there if somebody wrote it: it is neither Setpoint's work nor the original.
    fn keep_change(&self, cx: &OpCx, path: &RootPath, original: &Content) -> Result<(), OpError> {
        let root = &self.host.0.root;
        let read = root.read_bytes(path, kept::LARGEST).map_err(|error| untouched(&error))?;
        let Some(Whole { found, bytes, attributes }) = read else { return Ok(()) };
        let bytes = bytes.ok_or_else(|| kept::too_large(path))?;
        let holds = Content::from(bytes.as_slice());
        if holds == *original {
            return Ok(());
        }
        let change = Original::file(path, &bytes, found, &attributes);
        self.host.keep_change(cx, path, &holds.sha256(), &change)
    }

    /// Returns whether the file at a path holds this.
    fn holds(&self, path: &RootPath, content: &Content) -> Result<bool, OpError> {
        let there = self.host.0.root.read(path).map_err(|error| untouched(&error))?;
        Ok(there.is_some_and(|(_, found)| found == *content))
    }

    /// Gives the file that is there the permissions of an item.
    async fn change_access(&self, cx: &OpCx, new: &File) -> Result<(), FsError> {
        match self.set_access(new) {
            // A file that may not be opened may still be replaced.
            Err(FsError::NoAccess { .. }) => self.write_over(cx, new).await,
            set => set,
        }
    }

    /// Where a file is now.
    fn place(&self, cx: &OpCx, item: &File) -> Result<Location, OpError> {
        self.host.place_of(cx, &item.path, Kind::File).map_err(|error| untouched(&error))
    }

    fn set_access(&self, new: &File) -> Result<(), FsError> {
        let uid = self.accounts.uid(new.access.owner.as_deref())?;
        let gid = self.accounts.gid(new.access.group.as_deref())?;
        let mode = new.access.mode.map(Mode::bits);
        self.host.0.root.set_access(&new.path, Kind::File, mode, uid, gid)
    }

    /// Looks for the file of an item; none if it has more bytes than this, and would have to be read whole.
    fn look(&self, cx: &OpCx, item: &File, most: u64) -> Result<Option<Observed<File>>, OpError> {
        let is_larger = Cell::new(false);
        let read = |path: &RootPath| {
            // What a log holds is nobody's business.
            let most = if item.log { 0 } else { most };
            let Some((found, content)) = self.host.0.root.read_up_to(path, most)? else { return Ok(None) };
            let content = match content {
                None if !item.log => {
                    is_larger.set(true);
                    return Ok(None);
                }
                // The usual case shares what is known already, and where a large content comes from.
                Some(content) if !item.log && content != item.content => content,
                _ => item.content.clone(),
            };
            let access = self.accounts.found(&item.access, &found);
            Ok(Some(File { path: path.clone(), content, access, ..item.clone() }))
        };
        let is_as = |found: &File, original: Option<&Original>| match original {
            None => item.log || found.content == item.content,
            Some(Original::File { content, .. }) => {
                Original::bytes(content).is_ok_and(|bytes| Content::from(bytes) == found.content)
            }
            Some(_) => false,
        };
        let observed = self.host.look(cx, &item.path, Kind::File, read, is_as)?;
        Ok((!is_larger.get()).then_some(observed))
    }

    /// Brings the file to its new path; says whether it is there with its old content.
    async fn move_to(&self, cx: &OpCx, old: &File, new: &File) -> Result<bool, FsError> {
        if self.host.bring(cx, &old.path, &new.path, Kind::File).await? {
            return Ok(true);
        }
        // It may have moved with the directory around it, or be gone.
        if self.host.place_of(cx, &old.path, Kind::File)?.path == new.path {
            return Ok(true);
        }
        self.host.0.root.is_free(&new.path).map(|()| false)
    }
}

impl Configurator<File> for Files {
    async fn create(&self, cx: &OpCx, new: &File) -> Result<(), OpError> {
        let failed = |error: FsError| untouched(&error);
        let root = &self.host.0.root;
        if let Some(aside) = self.host.find_aside(cx, Kind::File).map_err(failed)? {
            if !new.adopt || root.stat(&new.path).map_err(failed)?.is_none() {
                return self.bring_back(cx, &aside, new).await;
            }
            // What is there is taken over, and the one that was made here is not needed.
            root.remove(&aside, None, Kind::File).map_err(failed)?;
        }
        if let Some(was) = self.host.original_elsewhere(cx, &new.path)? {
            if self.host.can_go_back(cx, &was)? {
                self.put_back(cx, &Location { path: was, within: None }).await?;
            } else {
                self.host.retire_original(cx, was).await?;
            }
        }
        self.host.begin_anew(cx).await?;
        let takes_over = new.adopt || self.host.is_released(cx, &new.path);
        if !new.log {
            self.host.will_write(cx, new.content.sha256()).await?;
        }
        match self.write_new(cx, new).await {
            // What was logged before goes on.
            Err(FsError::Exists { adoptable: true, .. }) if new.log && takes_over => {
                cx.adopt().await?;
                self.host.know(cx, &new.path, Kind::File, None).await
            }
            Err(FsError::Exists { adoptable: true, .. }) if takes_over => self.take_over(cx, new).await,
            written => written.map_err(|error| untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &File, new: &File) -> Result<(), OpError> {
        self.host.forget_made(cx).await?;
        if self.host.must_keep(cx) && !new.log {
            self.keep_unwritten(cx, &self.place(cx, old)?.path)?;
        }
        let moves = old.path != new.path;
        let there =
            if moves { self.move_to(cx, old, new).await.map_err(|error| untouched(&error))? } else { true };
        let failed = |error: FsError| {
            // A move that was done is not undone: what is left is tried again from there.
            if moves { OpError::new(error.to_string()) } else { untouched(&error) }
        };
        if old.content != new.content || !there {
            self.host.will_write(cx, new.content.sha256()).await?;
            if cx.ownership().is_adopted() && !new.log {
                self.keep_drift(cx, &new.path)?;
            }
            self.write_over(cx, new).await.map_err(failed)?;
        } else if old.access != new.access {
            self.place(cx, new)?;
            self.change_access(cx, new).await.map_err(failed)?;
        }
        Ok(())
    }

    /// What was taken over stays in its place: there the original is put back, and elsewhere the file is made anew. So is one
    /// that may take over what is where it is to be.
    fn needs_recreate(&self, ownership: Ownership, old: &File, new: &File) -> bool {
        old.path != new.path && (ownership.is_adopted() || new.adopt)
    }

    async fn delete(&self, cx: &OpCx, old: &File) -> Result<(), OpError> {
        if PlaceNote::of(cx).released.is_some() {
            return Ok(());
        }
        let root: &Root = &self.host.0.root;
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let place = self.place(cx, old)?;
        root.remove_temporary(&place.path, &temporary).map_err(|error| untouched(&error))?;
        if cx.ownership().is_adopted() {
            // What a log holds was never replaced.
            return if old.log {
                self.host.let_go(cx, &place.path).await
            } else {
                self.put_back(cx, &place).await
            };
        }
        let is_as_made =
            || Ok(old.log || root.read(&place.path)?.is_none_or(|(_, content)| content == old.content));
        if self.host.is_somebodys(cx, &place.path, is_as_made)? {
            return Ok(());
        }
        if cx.is_recreation()
            && self.host.set_aside(cx, &place, Kind::File).await.map_err(|error| untouched(&error))?
        {
            return Ok(());
        }
        root.remove(&place.path, place.within, Kind::File).map_err(|error| untouched(&error))
    }

    async fn read(&self, cx: &OpCx, item: &File) -> Result<Observed<File>, OpError> {
        let most = if Handle::try_current().is_ok() { READ_AT_ONCE } else { u64::MAX };
        if let Some(observed) = self.look(cx, item, most)? {
            return Ok(observed);
        }
        let (files, cx, item) = (self.clone(), cx.clone(), item.clone());
        let read = spawn_blocking(move || files.look(&cx, &item, u64::MAX)).await;
        Ok(read.map_err(OpError::untouched)??.unwrap_or(Observed::Absent))
    }
}
