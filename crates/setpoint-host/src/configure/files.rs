//! Regular files on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError};
use setpoint_graph::{Item, ItemRef};

use super::Accounts;
use crate::fs::{Born, FsError, Kind, Temporary, Write, untouched};
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

    fn write(
        &self,
        item: &ItemRef,
        new: &File,
        put: impl FnOnce(&crate::fs::Root, &Write<'_>) -> Result<(), FsError>,
    ) -> Result<(), FsError> {
        let temporary = Temporary::name_of(&self.prefix, item);
        let midwife = |born: Born<'_>| self.host.note_birth(item, born);
        let write = Write {
            path: &new.path,
            bytes: new.content.bytes(),
            mode: new.access.mode.map(Mode::bits),
            uid: self.accounts.uid(new.access.owner.as_deref())?,
            gid: self.accounts.gid(new.access.group.as_deref())?,
            default_mode: if new.sensitive { 0o600 } else { 0o644 },
            temporary: &temporary,
            midwife: &midwife,
        };
        put(&self.host.0.root, &write)
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
    fn move_to(&self, item: &ItemRef, old: &File, new: &File) -> Result<bool, OpError> {
        let root = &self.host.0.root;
        let from = self.host.0.moves.place(root, item, &old.path);
        if from != new.path
            && let Some(found) = root.stat(&from).map_err(|error| untouched(&error))?
        {
            self.host
                .0
                .moves
                .note(item, &old.path, &new.path, &found)
                .map_err(|error| OpError::untouched(format!("can't note the move: {error}")))?;
            root.rename(&from, &new.path, Kind::File).map_err(|error| untouched(&error))?;
            return Ok(true);
        }
        // It moved with the directory around it, or it is gone.
        match self.read_at(new, &new.path).map_err(|error| untouched(&error))? {
            None => Ok(false),
            Some(there) if there.content == old.content => Ok(true),
            Some(there) if there.content == new.content => Ok(true),
            Some(_) => {
                let (path, what) = (new.path.to_string(), Kind::File.words());
                Err(untouched(&FsError::Exists { path, what, adoptable: false }))
            }
        }
    }
}

impl Configurator<File> for Files {
    async fn create(&self, cx: &OpCx, new: &File) -> Result<(), OpError> {
        match self.write(cx.item(), new, crate::fs::Root::write_new) {
            Err(FsError::Exists { adoptable: true, .. }) if new.adopt => {
                self.host.take_over(cx.item())?;
                self.write(cx.item(), new, crate::fs::Root::write_over).map_err(|error| untouched(&error))
            }
            written => written.map_err(|error| untouched(&error)),
        }
    }

    async fn modify(&self, cx: &OpCx, old: &File, new: &File) -> Result<(), OpError> {
        let moves = old.path != new.path;
        let there = if moves { self.move_to(cx.item(), old, new)? } else { true };
        let failed = |error: FsError| {
            // A move that was done is not undone: what is left is tried again from there.
            if moves { OpError::new(error.to_string()) } else { untouched(&error) }
        };
        if old.content != new.content || !there {
            self.write(cx.item(), new, crate::fs::Root::write_over).map_err(failed)?;
        } else if old.access != new.access {
            match self.set_access(new) {
                // A file that may not be opened may still be replaced.
                Err(FsError::NoAccess { .. }) => {
                    self.write(cx.item(), new, crate::fs::Root::write_over).map_err(failed)?;
                }
                set => set.map_err(failed)?,
            }
        }
        Ok(())
    }

    async fn delete(&self, _: &OpCx, old: &File) -> Result<(), OpError> {
        let reference = ItemRef::new(old.kind(), old.name());
        let root = &self.host.0.root;
        let temporary = Temporary::name_of(&self.prefix, &reference);
        // The directory around it may have moved before.
        let place = self.host.0.moves.place(root, &reference, &old.path);
        root.remove_temporary(&place, &temporary).map_err(|error| untouched(&error))?;
        if self.host.lets_go(&reference)? {
            return Ok(());
        }
        root.remove(&place, Kind::File).map_err(|error| untouched(&error))?;
        Ok(())
    }

    fn needs_recreate(&self, _: &File, _: &File) -> bool {
        false
    }

    async fn read(&self, cx: &OpCx, item: &File) -> Result<Observed<File>, OpError> {
        self.host.look(cx, &item.path, |path| self.read_at(item, path))
    }
}
