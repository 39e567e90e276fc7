//! Regular files on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError};

use setpoint_graph::ItemRef;

use super::File;
use crate::configure::kept::{self, Original};
use crate::configure::{Accounts, Location, PlaceNote, takes_over_again};
use crate::fs::{FsError, Kind, Number, Root, Temporary, Whole, Write, Written, untouched};
use crate::host::Host;
use crate::item::{Content, Mode, RootPath};

/// Writes, moves, changes, removes and reads files.
#[derive(Debug)]
pub struct Files {
    host: Host,
    accounts: Accounts,
    prefix: String,
}

impl Files {
    /// The configurator for a host.
    pub fn new(host: &Host) -> Self {
        let prefix = Temporary::prefix(host.set());
        Self { host: host.clone(), accounts: Accounts::default(), prefix }
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
            temporary,
        })
    }

    async fn finish(&self, cx: &OpCx, written: Written<'_>) -> Result<(), FsError> {
        match written {
            Written::Replaced => Ok(()),
            Written::New(prepared) => self.host.place(cx, prepared).await,
        }
    }

    /// Keeps what is about to be replaced. One that was taken over before was kept then, also where the state has forgotten
    /// that, if what is there is what Setpoint itself wrote. Anything else is someone's new work: the file that was taken over
    /// was gone meanwhile.
    fn keep(&self, cx: &OpCx, new: &File) -> Result<(), OpError> {
        if self.is_own_work(cx.item(), new)? {
            return Ok(());
        }
        self.keep_original(cx.item(), &new.path)
    }

    /// Returns whether what is there is as declared, and what was there before it is kept.
    fn is_own_work(&self, item: &ItemRef, new: &File) -> Result<bool, OpError> {
        let kept = self.host.0.kept.get(item)?;
        let Some(Original::File { path: Some(was), .. }) = kept else { return Ok(false) };
        let found = self.host.0.root.read(&new.path).map_err(|error| untouched(&error))?;
        Ok(was == new.path && found.is_some_and(|(_, content)| content == new.content))
    }

    /// Keeps the file at a path for the item that takes it over.
    pub(crate) fn keep_original(&self, item: &ItemRef, path: &RootPath) -> Result<(), OpError> {
        let read = self.host.0.root.read_bytes(path, kept::LARGEST);
        let Some(Whole { found, bytes }) = read.map_err(|error| untouched(&error))? else { return Ok(()) };
        let bytes = bytes.ok_or_else(|| kept::too_large(path))?;
        let within = self.host.0.root.lasting_holder(path);
        self.host.0.kept.put(item, &Original::file(path, within, &bytes, found))
    }

    /// Puts back what was there before, if anything of it was changed.
    async fn put_back(&self, cx: &OpCx, place: &Location) -> Result<(), OpError> {
        let originals = &self.host.0.kept;
        let Some(Original::File { content, mode, uid, gid, path: was, within: was_in }) =
            originals.get(cx.item())?
        else {
            return Ok(());
        };
        let content = Content::from(Original::bytes(&content)?);
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
            temporary: &temporary,
        };
        let home = self.host.home(path, was.as_ref(), was_in);
        self.write_back(cx, &write, &home).await.map_err(|error| untouched(&error))?;
        originals.remove(cx.item());
        Ok(())
    }

    /// Writes what was there before. Where it was moved since, it goes back to where it was, and replaces nothing else there.
    async fn write_back(&self, cx: &OpCx, write: &Write<'_>, was: &RootPath) -> Result<(), FsError> {
        let root = &self.host.0.root;
        if was == write.path {
            return self.finish(cx, root.write_over(write)?).await;
        }
        // A run that was cut off may have come as far as this.
        let is_back = root.read(was)?.is_some_and(|(_, content)| content == *write.content);
        if !is_back {
            let back = Write { path: was, within: None, ..*write };
            self.finish(cx, root.write_new(&back)?).await?;
        }
        root.remove(write.path, write.within, Kind::File)
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

    fn read_at(&self, item: &File, path: &RootPath) -> Result<Option<File>, FsError> {
        let Some((found, content)) = self.host.0.root.read(path)? else { return Ok(None) };
        let access = self.accounts.found(&item.access, &found);
        // The usual case shares what is known already, and where a large content comes from.
        let content = if item.log || item.content == content { item.content.clone() } else { content };
        Ok(Some(File { path: path.clone(), content, access, ..item.clone() }))
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
        match self.write_new(cx, new).await {
            // What was logged before goes on.
            Err(FsError::Exists { adoptable: true, .. }) if new.log => {
                cx.adopt().await?;
                self.host.know(cx, &new.path, Kind::File).await
            }
            Err(FsError::Exists { adoptable: true, .. }) if new.adopt || takes_over_again(cx) => {
                self.keep(cx, new)?;
                cx.adopt().await?;
                self.host.know(cx, &new.path, Kind::File).await?;
                self.write_over(cx, new).await.map_err(|error| untouched(&error))
            }
            written => written.map_err(|error| untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &File, new: &File) -> Result<(), OpError> {
        if self.host.must_keep(cx) && !new.log {
            self.keep_original(cx.item(), &self.place(cx, old)?.path)?;
        }
        let moves = old.path != new.path;
        let there =
            if moves { self.move_to(cx, old, new).await.map_err(|error| untouched(&error))? } else { true };
        let failed = |error: FsError| {
            // A move that was done is not undone: what is left is tried again from there.
            if moves { OpError::new(error.to_string()) } else { untouched(&error) }
        };
        if old.content != new.content || !there {
            self.write_over(cx, new).await.map_err(failed)?;
        } else if old.access != new.access {
            self.place(cx, new)?;
            match self.set_access(new) {
                // A file that may not be opened may still be replaced.
                Err(FsError::NoAccess { .. }) => self.write_over(cx, new).await.map_err(failed)?,
                set => set.map_err(failed)?,
            }
        }
        Ok(())
    }

    async fn delete(&self, cx: &OpCx, old: &File) -> Result<(), OpError> {
        let root: &Root = &self.host.0.root;
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let place = self.place(cx, old)?;
        root.remove_temporary(&place.path, &temporary).map_err(|error| untouched(&error))?;
        if cx.ownership().is_adopted() {
            return self.put_back(cx, &place).await;
        }
        root.remove(&place.path, place.within, Kind::File).map_err(|error| untouched(&error))
    }

    async fn read(&self, cx: &OpCx, item: &File) -> Result<Observed<File>, OpError> {
        self.host.look(cx, &item.path, Kind::File, |path| self.read_at(item, path))
    }
}
