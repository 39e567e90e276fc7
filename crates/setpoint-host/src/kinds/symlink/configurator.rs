//! Symbolic links on the host.

use setpoint_engine::{Configurator, Observed, OpCx, OpError, Ownership};
use setpoint_graph::Name;

use super::Symlink;
use crate::configure::entries::{self, Entries, EntryWrite, Replaces, Restored};
use crate::configure::kept::Original;
use crate::fs::{Attached, FileType, FsError, Written, untouched};
use crate::host::Host;
use crate::item::RootPath;

/// Makes, moves, points elsewhere, removes and reads symbolic links.
#[derive(Debug)]
pub struct Symlinks {
    host: Host,
}

impl Symlinks {
    /// The configurator for a host.
    pub fn new(host: &Host) -> Self {
        Self { host: host.clone() }
    }
}

impl Entries for Symlinks {
    type Item = Symlink;

    const KIND: FileType = FileType::Symlink;

    fn host(&self) -> &Host {
        &self.host
    }

    fn path(item: &Symlink) -> &RootPath {
        &item.path
    }

    fn adopts(item: &Symlink) -> bool {
        item.adopt
    }

    /// It is short enough to be noted as it is.
    fn digest(item: &Symlink) -> String {
        item.target.clone()
    }

    fn found(&self, path: &RootPath) -> Result<Option<String>, FsError> {
        self.host.0.root.read_link(path)
    }

    fn original(&self, path: &RootPath, _: Option<&Symlink>) -> Result<Option<Original>, OpError> {
        let found = self.host.0.root.read_link_whole(path).map_err(|error| untouched(&error))?;
        Ok(found.map(|(target, attached)| Original::link(path, target, &attached)))
    }

    fn restored(original: &Original, path: &RootPath) -> Result<Option<Restored<Symlink>>, OpError> {
        let Original::Link { target, owner, attributes, .. } = original else { return Ok(None) };
        let attached = Attached { owner: *owner, attributes: Original::attributes(attributes)? };
        let (name, path, target) = (Name::from_static("original"), path.clone(), target.clone());
        let item = Symlink { name, path, target, adopt: false, needs: Vec::new() };
        Ok(Some(Restored { item, attached }))
    }

    fn write<'a>(&'a self, write: EntryWrite<'a, Symlink>) -> Result<Written<'a>, FsError> {
        let EntryWrite { item, path, replaces, attached, temporary, last_look, .. } = write;
        let root = &self.host.0.root;
        match replaces {
            Replaces::Within(within) if root.stat(path)?.is_some() => {
                let replaced = root.replace_link(path, within, &item.target, attached, temporary, last_look);
                replaced.map(|()| Written::Replaced)
            }
            _ => root.prepare_link(path, &item.target, attached, temporary).map(Written::New),
        }
    }
}

impl Configurator<Symlink> for Symlinks {
    async fn create(&self, cx: &OpCx, new: &Symlink) -> Result<(), OpError> {
        entries::create(self, cx, new).await
    }

    async fn modify(&self, cx: &OpCx, old: &Symlink, new: &Symlink) -> Result<(), OpError> {
        entries::modify(self, cx, old, new).await
    }

    /// As of files: what was taken over stays in its place.
    fn needs_recreate(&self, ownership: Ownership, old: &Symlink, new: &Symlink) -> bool {
        old.path != new.path && (ownership.is_adopted() || new.adopt)
    }

    async fn delete(&self, cx: &OpCx, old: &Symlink) -> Result<(), OpError> {
        entries::delete(self, cx, old).await
    }

    async fn read(&self, cx: &OpCx, item: &Symlink) -> Result<Observed<Symlink>, OpError> {
        let read = |path: &RootPath| {
            let target = self.host.0.root.read_link(path)?;
            let needs = self.host.needs_at(&item.needs, &item.path, path);
            Ok(target.map(|target| Symlink { path: path.clone(), target, needs, ..item.clone() }))
        };
        let is_as = |found: &Symlink, original: Option<&Original>| match original {
            None => found.target == item.target,
            Some(Original::Link { target, .. }) => found.target == *target,
            Some(_) => false,
        };
        self.host.look(cx, &item.path, FileType::Symlink, read, is_as)
    }
}
