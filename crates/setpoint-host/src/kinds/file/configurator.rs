//! Regular files on the host.

use std::cell::Cell;
use std::sync::Arc;

use setpoint_engine::{Configurator, Observed, OpCx, OpError, Ownership};
use setpoint_graph::Name;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::File;
use crate::configure::Accounts;
use crate::configure::entries::{self, Entries, EntryWrite, Replaces, Restored};
use crate::configure::kept::{self, Original};
use crate::fs::{Attached, FileType, FsError, Whole, Write, Written, untouched};
use crate::host::Host;
use crate::item::{Access, Mode, RootPath};

/// A file with more bytes than this is read and written on a thread of its own: whoever waits for something else meanwhile goes on.
const MOST_AT_ONCE: u64 = 1 << 20;

/// Writes, moves, changes, removes and reads files.
#[derive(Clone, Debug)]
pub struct Files {
    host: Host,
    accounts: Arc<Accounts>,
}

impl Files {
    /// The configurator for a host.
    pub fn new(host: &Host) -> Self {
        Self { host: host.clone(), accounts: Arc::default() }
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
            let needs = self.host.needs_at(&item.needs, &item.path, path);
            Ok(Some(File { path: path.clone(), content, access, needs, ..item.clone() }))
        };
        let is_as = |found: &File, original: Option<&Original>| match original {
            None => item.log || found.content == item.content,
            Some(original) => {
                let original = Self::restored(original, &item.path).ok().flatten();
                original.is_some_and(|original| original.item.content == found.content)
            }
        };
        let observed = self.host.look(cx, &item.path, FileType::File, read, is_as)?;
        Ok((!is_larger.get()).then_some(observed))
    }

    /// Returns whether an operation reads or writes so many bytes that others should not wait for it: those of an item, or those
    /// that it takes over.
    fn takes_long(&self, cx: &OpCx, items: &[&File]) -> bool {
        let is_large = |item: &&File| {
            let keeps = !item.log && (item.adopt || cx.ownership().is_adopted());
            let found = || self.host.0.root.stat(&item.path).ok().flatten();
            item.content.size() > MOST_AT_ONCE
                || keeps && found().is_some_and(|found| found.size > MOST_AT_ONCE)
        };
        items.iter().any(is_large) && Handle::try_current().is_ok()
    }
}

impl Entries for Files {
    type Item = File;

    const KIND: FileType = FileType::File;

    fn host(&self) -> &Host {
        &self.host
    }

    fn path(item: &File) -> &RootPath {
        &item.path
    }

    fn adopts(item: &File) -> bool {
        item.adopt
    }

    fn is_log(item: &File) -> bool {
        item.log
    }

    fn digest(item: &File) -> String {
        item.content.sha256()
    }

    fn holds_same(old: &File, new: &File) -> bool {
        old.content == new.content
    }

    fn found(&self, path: &RootPath) -> Result<Option<String>, FsError> {
        Ok(self.host.0.root.read(path)?.map(|(_, content)| content.sha256()))
    }

    fn has_begun(&self, path: &RootPath, item: &File) -> Result<bool, FsError> {
        let Some(Whole { bytes: Some(bytes), .. }) = self.host.0.root.read_bytes(path, kept::LARGEST)? else {
            return Ok(false);
        };
        let (mut rest, mut is_same) = (bytes.as_slice(), true);
        let compared = item.content.for_each_chunk(|chunk| {
            let (compared, left) = rest.split_at(rest.len().min(chunk.len()));
            is_same &= chunk.starts_with(compared);
            rest = left;
            Ok(())
        });
        Ok(compared.is_ok() && is_same && rest.is_empty())
    }

    fn original(&self, path: &RootPath, unchanged: Option<&File>) -> Result<Option<Original>, OpError> {
        let root = &self.host.0.root;
        let read = root.read_bytes(path, kept::LARGEST).map_err(|error| untouched(&error))?;
        let Some(Whole { found, bytes, attributes }) = read else { return Ok(None) };
        if let Some(bytes) = bytes {
            return Ok(Some(Original::file(path, &bytes, found, &attributes)));
        }
        let there = root.read(path).map_err(|error| untouched(&error))?;
        match (there, unchanged) {
            (Some((found, content)), Some(item)) if content == item.content => {
                Ok(Some(Original::large_file(path, content, found, &attributes)))
            }
            _ => Err(kept::too_large(path)),
        }
    }

    fn restored(original: &Original, path: &RootPath) -> Result<Option<Restored<File>>, OpError> {
        let Original::File { content, large, mode, uid, gid, attributes, .. } = original else {
            return Ok(None);
        };
        let (owner, group) = (Some(uid.to_string()), Some(gid.to_string()));
        let item = File {
            name: Name::from_static("original"),
            path: path.clone(),
            content: Original::content(content.as_deref(), large.as_ref())?,
            sensitive: false,
            access: Access { mode: Some(Mode::new(*mode)), owner, group },
            adopt: false,
            log: false,
            needs: Vec::new(),
        };
        // Who owns it is part of the item.
        let attached = Attached { owner: None, attributes: Original::attributes(attributes)? };
        Ok(Some(Restored { item, attached }))
    }

    fn write<'a>(&'a self, write: EntryWrite<'a, File>) -> Result<Written<'a>, FsError> {
        let EntryWrite { cx, item, path, replaces, attached, temporary, last_look } = write;
        let write = Write {
            path,
            within: match replaces {
                Replaces::Nothing => None,
                Replaces::Within(within) => within,
            },
            content: &item.content,
            mode: item.access.mode.map(Mode::bits),
            uid: self.accounts.uid(item.access.owner.as_deref())?,
            gid: self.accounts.gid(item.access.group.as_deref())?,
            default_mode: match item {
                File { log: true, .. } => 0o640,
                File { sensitive: true, .. } => 0o600,
                _ => 0o644,
            },
            attributes: &attached.attributes,
            temporary,
            cancellation: cx.cancellation(),
            last_look,
        };
        match replaces {
            Replaces::Nothing => self.host.0.root.write_new(&write),
            Replaces::Within(_) => self.host.0.root.write_over(&write),
        }
    }

    fn access_differs(old: &File, new: &File) -> bool {
        old.access != new.access
    }

    fn set_access(&self, item: &File) -> Result<(), FsError> {
        let uid = self.accounts.uid(item.access.owner.as_deref())?;
        let gid = self.accounts.gid(item.access.group.as_deref())?;
        let mode = item.access.mode.map(Mode::bits);
        let root = &self.host.0.root;
        let is_so = |found: u32, wanted: Option<u32>| wanted.is_none_or(|wanted| wanted == found);
        match root.stat(&item.path)? {
            // What may not be changed may well be as it should be.
            Some(found) if is_so(found.mode, mode) && is_so(found.uid, uid) && is_so(found.gid, gid) => {
                return Ok(());
            }
            // The other names may be anywhere.
            Some(found) if found.kind == FileType::File && found.names > 1 => {
                return Err(FsError::OtherNames { path: item.path.to_string() });
            }
            _ => {}
        }
        root.set_access(&item.path, FileType::File, mode, uid, gid)
    }
}

impl Configurator<File> for Files {
    async fn create(&self, cx: &OpCx, new: &File) -> Result<(), OpError> {
        if self.takes_long(cx, &[new]) {
            let (files, cx, new) = (self.clone(), cx.clone(), new.clone());
            return on_a_thread(async move { entries::create(&files, &cx, &new).await }).await;
        }
        entries::create(self, cx, new).await
    }

    async fn modify(&self, cx: &OpCx, old: &File, new: &File) -> Result<(), OpError> {
        if self.takes_long(cx, &[old, new]) {
            let (files, cx, old, new) = (self.clone(), cx.clone(), old.clone(), new.clone());
            return on_a_thread(async move { entries::modify(&files, &cx, &old, &new).await }).await;
        }
        entries::modify(self, cx, old, new).await
    }

    /// What was taken over stays in its place: there the original is put back, and elsewhere the file is made anew. So is one
    /// that may take over what is where it is to be, and one that was taken over to be replaced and is to be a log, or the other
    /// way round: the original is put back first.
    fn needs_recreate(&self, ownership: Ownership, old: &File, new: &File) -> bool {
        let is_adopted = ownership.is_adopted();
        old.path != new.path && (is_adopted || new.adopt) || old.log != new.log && is_adopted
    }

    async fn delete(&self, cx: &OpCx, old: &File) -> Result<(), OpError> {
        if self.takes_long(cx, &[old]) {
            let (files, cx, old) = (self.clone(), cx.clone(), old.clone());
            return on_a_thread(async move { entries::delete(&files, &cx, &old).await }).await;
        }
        entries::delete(self, cx, old).await
    }

    async fn read(&self, cx: &OpCx, item: &File) -> Result<Observed<File>, OpError> {
        let most = if Handle::try_current().is_ok() { MOST_AT_ONCE } else { u64::MAX };
        if let Some(observed) = self.look(cx, item, most)? {
            return Ok(observed);
        }
        let (files, cx, item) = (self.clone(), cx.clone(), item.clone());
        let observed = on_a_thread(async move { files.look(&cx, &item, u64::MAX) }).await?;
        Ok(observed.unwrap_or(Observed::Absent))
    }
}

/// Does something that reads or writes many bytes on a thread of its own.
async fn on_a_thread<T: Send + 'static>(
    work: impl Future<Output = Result<T, OpError>> + Send + 'static,
) -> Result<T, OpError> {
    let runtime = Handle::current();
    let done = spawn_blocking(move || runtime.block_on(work)).await;
    done.unwrap_or_else(|ended| match ended.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(ended) => Err(ended.into()),
    })
}
