//! The kinds of items: a module for each, with its type, what manifests may say of it, and its configurator.
//!
//! ```text
//!  Directory, File, Symlink, Process, Command ──HostKind──▶ KINDS ─▶ manifests, item types, registry, places
//! ```
//!
//! Whoever adds a kind writes a module with an implementation of [`HostKind`], and adds a line to [`KINDS`].

mod command;
mod directory;
mod file;
mod process;
mod symlink;

pub use command::{Command, CommandTexts, Commands};
pub use directory::{Directories, Directory};
pub use file::{File, Files};
pub use process::{Process, Processes};
pub use symlink::{Symlink, Symlinks};

use serde::Serialize;
use serde::de::DeserializeOwned;
use setpoint_engine::{Configurator, DefaultRegistry, ItemState, OpError};
use setpoint_graph::{Item, ItemHandle, ItemRef, ItemTypes};

use crate::configure::kept::Original;
use crate::fs;
use crate::host::Host;
use crate::item::{Access, Need, RootPath};
use crate::manifest::{Build, Section};

/// All kinds, in the order in which manifests and pages have them.
pub(crate) const KINDS: &[KindEntry] = &[
    KindEntry::of::<Directory>(),
    KindEntry::of::<File>(),
    KindEntry::of::<Symlink>(),
    KindEntry::of::<Process>(),
    KindEntry::of::<Command>(),
];

/// A kind of item, as the rest of the crate sees it.
pub(crate) trait HostKind: Item + Clone + Serialize + DeserializeOwned {
    /// What manifests may say of its items.
    const SECTION: Section;

    /// What makes its items real.
    type Configurator: Configurator<Self>;

    /// The configurator for a host.
    fn configurator(host: &Host) -> Self::Configurator;

    /// Makes an item of what a manifest says; what is wrong with that is reported. The path is that of a kind whose items
    /// have one.
    fn declare(build: &mut Build<'_, '_, '_>, path: Option<RootPath>) -> Option<Self>;

    /// What the item depends on.
    fn needs(&self) -> &[Need];

    /// The same, to be changed.
    fn needs_mut(&mut self) -> &mut Vec<Need>;

    /// Where the item is; none if it is nowhere on disk.
    fn on_disk(&self) -> Option<OnDisk<'_>> {
        None
    }

    /// The attribute that is a text of many lines, whole; none if there is none.
    fn long_text(&self) -> Option<(&'static str, &str)> {
        None
    }

    /// Returns whether what is in the place of the item holds what the item says.
    fn is_as_it_was(&self, _host: &Host) -> bool {
        false
    }

    /// Keeps what is in the place of the item, to be put back when the item goes. Returns the name of what is kept.
    fn keep_original(&self, _host: &Host) -> Result<Option<String>, OpError> {
        Ok(None)
    }

    /// Keeps what a run that was cut off has left under the temporary name of the item, if somebody wrote it.
    fn keep_left(_host: &Host, _left: &Left<'_, Self>) -> Result<(), OpError> {
        Ok(())
    }

    /// The item with an original in its place; none if that is of another kind, or not kept whole.
    fn restored(&self, _original: &Original) -> Option<Self> {
        None
    }
}

/// Where an item is, and what has to be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnDisk<'a> {
    pub(crate) path: &'a RootPath,
    pub(crate) kind: fs::FileType,
    /// Who may do what with it, of a kind for which that can be said.
    pub(crate) access: Option<&'a Access>,
    /// Whether what is already there is taken over.
    pub(crate) adopt: bool,
}

/// What a run that was cut off has left under the temporary name of an item.
pub(crate) struct Left<'a, T> {
    /// The values that the run may have been about to write.
    pub(crate) values: Vec<&'a T>,
    pub(crate) item: &'a ItemRef,
    pub(crate) state: &'a ItemState,
    /// Where the item is.
    pub(crate) path: &'a RootPath,
    /// The temporary name.
    pub(crate) at: &'a RootPath,
}

/// One kind with its type erased.
pub(crate) struct KindEntry {
    pub(crate) section: Section,
    pub(crate) declare: fn(&mut Build<'_, '_, '_>, Option<RootPath>) -> Option<ItemHandle>,
    register_type: fn(&mut ItemTypes),
    register_configurator: fn(DefaultRegistry, &Host) -> DefaultRegistry,
    on_disk: for<'a> fn(&'a ItemHandle) -> Option<OnDisk<'a>>,
    long_text: for<'a> fn(&'a ItemHandle) -> Option<(&'static str, &'a str)>,
    is_as_it_was: fn(&Host, &ItemHandle) -> bool,
    keep_original: fn(&Host, &ItemHandle) -> Result<Option<String>, OpError>,
    keep_left: fn(&Host, &Left<'_, ItemHandle>) -> Result<(), OpError>,
    restored: fn(&ItemHandle, &Original) -> Option<ItemHandle>,
    with_need: fn(&ItemHandle, Need) -> Option<ItemHandle>,
}

impl KindEntry {
    const fn of<K: HostKind>() -> Self {
        Self {
            section: K::SECTION,
            declare: |build, path| K::declare(build, path).map(ItemHandle::new),
            register_type: |types| {
                types.register::<K>();
            },
            register_configurator: |registry, host| registry.with(K::configurator(host)),
            on_disk: |item| item.get::<K>().and_then(K::on_disk),
            long_text: |item| item.get::<K>().and_then(K::long_text),
            is_as_it_was: |host, item| item.get::<K>().is_some_and(|item| item.is_as_it_was(host)),
            keep_original: |host, item| item.get::<K>().map_or(Ok(None), |item| item.keep_original(host)),
            keep_left: |host, left| {
                let Left { values, item, state, path, at } = left;
                let values = values.iter().filter_map(|value| value.get::<K>()).collect();
                K::keep_left(host, &Left { values, item, state, path, at })
            },
            restored: |item, original| item.get::<K>()?.restored(original).map(ItemHandle::new),
            with_need: |item, need| {
                let mut item = item.get::<K>()?.clone();
                if !item.needs_mut().contains(&need) {
                    item.needs_mut().push(need);
                    item.needs_mut().sort();
                }
                Some(ItemHandle::new(item))
            },
        }
    }
}

impl std::fmt::Debug for KindEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KindEntry").field("section", &self.section).finish_non_exhaustive()
    }
}

fn entry_of(item: &ItemHandle) -> Option<&'static KindEntry> {
    entry(item.kind().as_str())
}

/// The entry of a kind.
pub(crate) fn entry(kind: &str) -> Option<&'static KindEntry> {
    KINDS.iter().find(|entry| entry.section.kind == kind)
}

/// The types of all host items, by kind: what a graph of them is written and read with.
///
/// ```
/// let kinds: Vec<String> = setpoint_host::item_types().kinds().map(ToString::to_string).collect();
/// assert_eq!(kinds, ["command", "directory", "file", "process", "symlink"]);
/// ```
pub fn item_types() -> ItemTypes {
    let mut types = ItemTypes::new();
    for kind in KINDS {
        (kind.register_type)(&mut types);
    }
    types
}

/// The configurators of all host items.
pub fn registry(host: &Host) -> DefaultRegistry {
    KINDS.iter().fold(DefaultRegistry::new(), |registry, kind| (kind.register_configurator)(registry, host))
}

/// The path of an item that has one of its own: a directory, a file or a link.
pub fn path_of(item: &ItemHandle) -> Option<&RootPath> {
    on_disk(item).map(|location| location.path)
}

/// Returns whether items of a kind are something that runs rather than something that is kept.
pub fn is_activity(kind: &str) -> bool {
    entry(kind).is_some_and(|entry| entry.section.nature == Nature::Activity)
}

/// Where an item is; none if it is nowhere on disk.
pub(crate) fn on_disk(item: &ItemHandle) -> Option<OnDisk<'_>> {
    entry_of(item).and_then(|entry| (entry.on_disk)(item))
}

/// The attribute of an item that is a text of many lines, whole.
pub(crate) fn long_text(item: &ItemHandle) -> Option<(&'static str, &str)> {
    entry_of(item).and_then(|entry| (entry.long_text)(item))
}

/// Returns whether what is in the place of an item holds what the item says.
pub(crate) fn is_as_it_was(host: &Host, item: &ItemHandle) -> bool {
    entry_of(item).is_some_and(|entry| (entry.is_as_it_was)(host, item))
}

/// Keeps what is in the place of an item, to be put back when the item goes. Returns the name of what is kept.
pub(crate) fn keep_original(host: &Host, item: &ItemHandle) -> Result<Option<String>, OpError> {
    entry_of(item).map_or(Ok(None), |entry| (entry.keep_original)(host, item))
}

/// Keeps what a run that was cut off has left under the temporary name of an item, if somebody wrote it.
pub(crate) fn keep_left(host: &Host, left: &Left<'_, ItemHandle>) -> Result<(), OpError> {
    entry(left.item.kind().as_str()).map_or(Ok(()), |entry| (entry.keep_left)(host, left))
}

/// An item with an original in its place; none if that is of another kind, or not kept whole.
pub(crate) fn restored(item: &ItemHandle, original: &Original) -> Option<ItemHandle> {
    entry_of(item).and_then(|entry| (entry.restored)(item, original))
}

/// An item that also has this need.
pub(crate) fn with_need(item: &ItemHandle, need: Need) -> Option<ItemHandle> {
    entry_of(item).and_then(|entry| (entry.with_need)(item, need))
}

/// What kind of thing the items of a kind are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Others are in it.
    Container,
    /// It holds something that others read.
    Content,
    /// It leads to something that others read.
    Link,
    /// It runs.
    Activity,
}

impl Nature {
    /// Returns whether what it holds may be known to those who have read it.
    pub(crate) fn is_read(self) -> bool {
        matches!(self, Self::Content | Self::Link)
    }
}
