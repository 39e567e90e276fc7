//! Regular files on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError};

use super::Accounts;
use super::kept::{Original, too_large};
use crate::fs::{FsError, Kind, Root, Temporary, Write, Written, untouched};
use crate::host::Host;
use crate::item::{Content, File, Mode, RootPath};

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
        let written = self.host.0.root.write_new(&self.write(new, &temporary)?)?;
        self.finish(cx, written).await
    }

    /// Writes the file, also in the place of the one that is there.
    async fn write_over(&self, cx: &OpCx, new: &File) -> Result<(), FsError> {
        let temporary = Temporary::name_of(&self.prefix, cx.item());
        let written = self.host.0.root.write_over(&self.write(new, &temporary)?)?;
        self.finish(cx, written).await
    }

    fn write<'a>(&self, new: &'a File, temporary: &'a str) -> Result<Write<'a>, FsError> {
        Ok(Write {
            path: &new.path,
            bytes: new.content.bytes(),
            mode: new.access.mode.map(Mode::bits),
            uid: self.accounts.uid(new.access.owner.as_deref())?,
            gid: self.accounts.gid(new.access.group.as_deref())?,
            default_mode: if new.sensitive { 0o600 } else { 0o644 },
            temporary,
        })
    }

    async fn finish(&self, cx: &OpCx, written: Written<'_>) -> Result<(), FsError> {
        match written {
            Written::Replaced => Ok(()),
            Written::New(prepared) => self.host.place(cx, prepared).await,
        }
    }

    /// Keeps what is about to be replaced. One that was taken over before was kept then.
    fn keep(&self, cx: &OpCx, new: &File) -> Result<(), OpError> {
        if cx.ownership().is_adopted() {
            return Ok(());
        }
        let read = self.host.0.root.read(&new.path).map_err(|error| untouched(&error))?;
        let Some((found, bytes)) = read else { return Ok(()) };
        let original = Original::file(&bytes, found.mode, found.uid, found.gid);
        let original = original.ok_or_else(|| too_large(&new.path))?;
        self.host.0.kept.put(cx.item(), &original)
    }

    /// Puts back what was there before, if anything of it was changed.
    async fn put_back(&self, cx: &OpCx, path: &RootPath) -> Result<(), OpError> {
        let kept = &self.host.0.kept;
        let Some(Original::File { content, mode, uid, gid }) = kept.get(cx.item())? else { return Ok(()) };
        let (bytes, temporary) = (Original::bytes(&content)?, Temporary::name_of(&self.prefix, cx.item()));
        let (mode, uid, gid) = (Some(mode), Some(uid), Some(gid));
        let write = Write { path, bytes: &bytes, mode, uid, gid, default_mode: 0o600, temporary: &temporary };
        let written = self.host.0.root.write_over(&write).map_err(|error| untouched(&error))?;
        self.finish(cx, written).await.map_err(|error| untouched(&error))?;
        kept.remove(cx.item());
        Ok(())
    }

    fn set_access(&self, new: &File) -> Result<(), FsError> {
        let uid = self.accounts.uid(new.access.owner.as_deref())?;
        let gid = self.accounts.gid(new.access.group.as_deref())?;
        let mode = new.access.mode.map(Mode::bits);
        self.host.0.root.set_access(&new.path, Kind::File, mode, uid, gid)
    }

    fn read_at(&self, item: &File, path: &RootPath) -> Result<Option<File>, FsError> {
        let Some((found, bytes)) = self.host.0.root.read(path)? else { return Ok(None) };
        let access = self.accounts.found(&item.access, &found);
        // The usual case shares the bytes that are known already.
        let content = if item.content.bytes() == bytes { item.content.clone() } else { Content::from(bytes) };
        Ok(Some(File { path: path.clone(), content, access, ..item.clone() }))
    }

    /// Brings the file to its new path; says whether it is there with its old content.
    async fn move_to(&self, cx: &OpCx, old: &File, new: &File) -> Result<bool, FsError> {
        if self.host.bring(cx, &old.path, &new.path, Kind::File).await? {
            return Ok(true);
        }
        match self.read_at(new, &new.path)? {
            None => Ok(false),
            Some(there) if there.content == old.content => Ok(true),
            Some(there) if there.content == new.content => Ok(true),
            Some(_) => {
                let (path, what) = (new.path.to_string(), Kind::File.words());
                Err(FsError::Exists { path, what, adoptable: false })
            }
        }
    }
}

impl Configurator<File> for Files {
    async fn create(&self, cx: &OpCx, new: &File) -> Result<(), OpError> {
        match self.write_new(cx, new).await {
            Err(FsError::Exists { adoptable: true, .. }) if new.adopt => {
                self.keep(cx, new)?;
                cx.adopt().await?;
                self.write_over(cx, new).await.map_err(|error| untouched(&error))
            }
            written => written.map_err(|error| untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &File, new: &File) -> Result<(), OpError> {
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
        let place = self.host.place_of(cx, &old.path)?;
        root.remove_temporary(&place, &temporary).map_err(|error| untouched(&error))?;
        if cx.ownership().is_adopted() {
            // What comes back is still wanted.
            return if cx.returns() { Ok(()) } else { self.put_back(cx, &place).await };
        }
        root.remove(&place, Kind::File).map_err(|error| untouched(&error))
    }

    fn needs_recreate(&self, _: &File, _: &File) -> bool {
        false
    }

    async fn read(&self, cx: &OpCx, item: &File) -> Result<Observed<File>, OpError> {
        self.host.look(cx, &item.path, |path| self.read_at(item, path))
    }
}
