//! The host as the configurators see it: a root directory, and what is remembered beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use setpoint_engine::{CurrentGraph, ItemState, OpError, Presence};
use setpoint_graph::{ItemHandle, ItemRef, Name};

use crate::configure::{DirectoryIndex, Kept, Notice, Notices, PassingNote, PathNote, kept};
use crate::fs::{FileType, Found, FsError, Root, Temporary};
use crate::item::RootPath;
use crate::kinds::{self, File, Left, OnDisk, Process, path_of};
use crate::process::{CheckEvent, Checks, Children, Output, ProcessOperations};

/// A host that items are configured on: everything happens below one root directory.
///
/// Cheap to clone. The root is opened once; nothing outside of it is ever touched, whatever its path
/// leads to later.
///
/// ```
/// use setpoint_host::{Host, HostOptions, registry};
/// let dir = tempfile::tempdir()?;
/// let host = Host::open(HostOptions::new(dir.path(), "site"))?;
/// let engine = setpoint_engine::Engine::new(registry(&host));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Host(pub(crate) Arc<Shared>);

/// What all clones of a host share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) root: Root,
    pub(crate) root_path: PathBuf,
    pub(crate) set: Name,
    pub(crate) runtime: PathBuf,
    pub(crate) children: Children,
    pub(crate) process_operations: ProcessOperations,
    pub(crate) directories: DirectoryIndex,
    pub(crate) kept: Kept,
    pub(crate) notices: Notices,
    pub(crate) output: Output,
    pub(crate) checks: Checks,
    /// When it was opened, in seconds since 1970.
    opened: i64,
    /// What is to go.
    unwanted: Mutex<BTreeSet<ItemRef>>,
    /// How many files what is started may open, where that is less than this program may.
    open_files: OnceLock<u64>,
}

/// What became of what a killed run had left.
#[derive(Debug, Default)]
pub struct Swept {
    /// What was removed.
    pub removed: Vec<PathBuf>,
    /// What could not be, and why: the next run tries again.
    pub left: Vec<(ItemRef, FsError)>,
}

/// How a host is opened.
#[derive(Clone, Debug)]
pub struct HostOptions {
    root: PathBuf,
    set: Name,
    runtime: Option<PathBuf>,
}

impl HostOptions {
    /// Works below an existing directory, for the set of this name.
    pub fn new(root: impl Into<PathBuf>, set: impl Into<Name>) -> Self {
        Self { root: root.into(), set: set.into(), runtime: None }
    }

    /// Keeps runtime files, such as logs of processes, in this directory; it is made when it is needed. By
    /// default `.setpoint/run` below the root.
    #[must_use]
    pub fn with_runtime_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.runtime = Some(directory.into());
        self
    }
}

/// Why a host could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("can't open the root {}: {source}", .root.display())]
pub struct HostError {
    /// The directory.
    pub root: PathBuf,
    /// Why.
    pub source: io::Error,
}

impl From<HostError> for io::Error {
    fn from(error: HostError) -> Self {
        Self::new(error.source.kind(), error.to_string())
    }
}

impl Host {
    /// Opens the root directory.
    pub fn open(options: HostOptions) -> Result<Self, HostError> {
        let HostOptions { root, set, runtime } = options;
        let failed = |source| HostError { root: root.clone(), source };
        let root_path = fs::canonicalize(&root).map_err(failed)?;
        let opened = Root::open(&root_path).map_err(|errno| failed(opening(errno)))?;
        let runtime = runtime.unwrap_or_else(|| root_path.join(".setpoint/run"));
        let (root, children, directories) = (opened, Children::default(), DirectoryIndex::default());
        let (kept, notices, output) = (Kept::new(&runtime), Notices::default(), Output::default());
        let (checks, unwanted, open_files) = (Checks::default(), Mutex::default(), OnceLock::new());
        let process_operations = ProcessOperations::default();
        let shared = Shared {
            root,
            root_path,
            set,
            runtime,
            children,
            process_operations,
            directories,
            kept,
            notices,
            output,
            checks,
            opened: seconds_now(),
            unwanted,
            open_files,
        };
        Ok(Self(Arc::new(shared)))
    }

    /// The root directory.
    pub fn root(&self) -> &Path {
        &self.0.root_path
    }

    /// Where runtime files are kept.
    pub fn runtime(&self) -> &Path {
        &self.0.runtime
    }

    /// Knows items by the directories that they are in now, whatever was there before; gives those of which that has changed. What
    /// is found by what is noted of it, at its path or where a directory around it has moved, stays known by that: another item may
    /// be at its path by now.
    ///
    /// For whoever has copied, restored or made them again by hand.
    pub fn accept(&self, current: &mut CurrentGraph, items: &BTreeSet<ItemRef>) -> BTreeSet<ItemRef> {
        let mut accepted = BTreeSet::new();
        for item in items {
            let Some(slot) = current.slot_of(item) else { continue };
            let Some(location) = current.item_at(slot).and_then(kinds::on_disk) else { continue };
            let Some(known_by) = self.known_by(location.path, location.kind) else { continue };
            let state = current.state_at(slot);
            let noted = state.and_then(ItemState::noted::<PathNote>).unwrap_or_default();
            if self.is_found(location.path, location.kind, &noted) {
                continue;
            }
            // What is set aside for it, or was about to be taken over, is not forgotten.
            let aside = noted.aside.clone().filter(|_| self.is_set_aside(&noted));
            let (known_by, mounts) = (Some(known_by), self.0.root.mounts(location.path));
            let note = PathNote { known_by, mounts, made: None, moved: Vec::new(), aside, ..noted };
            if state.and_then(ItemState::noted).as_ref() == Some(&note) {
                continue;
            }
            if let Some(state) = current.state_at_mut(slot) {
                state.note(&note);
                current.touch_at(slot);
                accepted.insert(item.clone());
            }
        }
        self.recall(current);
        accepted
    }

    /// Returns whether what was found may have come to its place, or become as it is, since the host was opened.
    pub(crate) fn is_news(&self, found: &Found) -> bool {
        found.changed >= self.0.opened
    }

    /// Says which items are not wanted any more. What is gone with the directory that it was in, which nobody looks after, can't
    /// be read then: it would be forgotten, and still be there when the directory is mounted or brought back.
    pub fn set_unwanted(&self, items: BTreeSet<ItemRef>) {
        *self.0.unwanted.lock().unwrap_or_else(PoisonError::into_inner) = items;
    }

    pub(crate) fn is_unwanted(&self, item: &ItemRef) -> bool {
        self.0.unwanted.lock().unwrap_or_else(PoisonError::into_inner).contains(item)
    }

    /// Lets processes and commands that are started from now on open no more files than this: for who has raised the limit of this
    /// program, which is not meant for others. The first call wins.
    pub fn limit_open_files(&self, most: u64) {
        let _ = self.0.open_files.set(most);
    }

    pub(crate) fn open_files(&self) -> Option<u64> {
        self.0.open_files.get().copied()
    }

    /// The name of the set.
    pub fn set(&self) -> &Name {
        &self.0.set
    }

    /// Has what commands write passed on while they run, line by line, but for those that are sensitive. Whoever asks
    /// first is the one who listens.
    pub fn on_output(&self, listener: impl Fn(&ItemRef, &str) + Send + Sync + 'static) {
        self.0.output.listen(listener);
    }

    /// Has it passed on when checks of commands begin and end while items are read. Whoever asks first is the one who listens.
    pub fn on_check(&self, listener: impl Fn(&ItemRef, CheckEvent) + Send + Sync + 'static) {
        self.0.checks.listen(listener);
    }

    /// The log file of a process, wherever it is.
    pub fn log_of(&self, process: &Process) -> PathBuf {
        match &process.log {
            Some(log) => log.in_root(&self.0.root_path),
            None => self.0.runtime.join(format!("{}.log", crate::process::file_stem(&process.name))),
        }
    }

    /// The log file of a process that may be shown.
    pub(crate) fn shown_log_of(&self, process: &Process) -> Option<PathBuf> {
        (!process.sensitive).then(|| self.log_of(process))
    }

    /// What is at the place of an intended item although Setpoint did not put it there: a file or directory
    /// that its creation would refuse, or adopt. None if there is nothing, or the item has no place.
    ///
    /// This only looks, so that a plan can warn.
    pub fn in_the_way(&self, item: &ItemHandle) -> Option<Existing> {
        let OnDisk { path, kind: wanted, adopt: adopts, .. } = kinds::on_disk(item)?;
        let found = self.0.root.stat(path).ok()??;
        let (path, what) = (path.clone(), found.kind.words());
        Some(Existing { path, what, adoptable: found.kind == wanted, adopts })
    }

    /// Returns whether a path below the root leads to a directory.
    pub fn is_directory(&self, path: &RootPath) -> bool {
        self.0.root.open_directory(path).is_ok()
    }

    /// Keeps what is in the place of an item, to be put back when the item goes, and notes that in its state: to be called before
    /// an item is taken over by other means than its creation.
    pub fn keep_original(&self, item: &ItemHandle, state: &mut ItemState) -> Result<(), OpError> {
        if let Some(name) = kinds::keep_original(self, item)? {
            let noted = state.noted::<PathNote>().unwrap_or_default();
            state.note(&PathNote { original: Some(name), ..noted });
        }
        Ok(())
    }

    /// An item as it is when it is released: what was there before it, in its place; none if nothing is kept that would be put back.
    pub fn released(&self, item: &ItemHandle, state: &ItemState) -> Option<ItemHandle> {
        let note: PathNote = state.noted().filter(|_| state.ownership().is_adopted())?;
        let name = note.original.filter(|_| note.released.is_none())?;
        kinds::restored(item, &self.0.kept.get(&name).ok()??)
    }

    /// Says why what is there can't be taken over by an item that holds something else: it would be lost. None if it can.
    pub fn can_not_be_kept(&self, there: &ItemHandle, item: &ItemHandle) -> Option<OpError> {
        let (there, wanted) = (there.get::<File>()?, item.get::<File>()?);
        let is_replaced = !wanted.log && there.content != wanted.content;
        (is_replaced && there.content.size() > kept::LARGEST as u64).then(|| kept::too_large(&there.path))
    }

    /// What a person should know of files that are not Setpoint's work, since this was asked last.
    pub fn take_notices(&self) -> Vec<Notice> {
        self.0.notices.take()
    }

    /// Removes the temporary entries that a killed run may have left beside the directories of these items. What somebody wrote
    /// in the place of an item that was taken over, and the killed run had just replaced, is kept first.
    ///
    /// To be called with what is known, and with the items that were in flight when a run ended without a word, old and new
    /// values.
    pub fn sweep<'a>(
        &self,
        current: &CurrentGraph,
        items: impl IntoIterator<Item = &'a ItemHandle>,
    ) -> Swept {
        let mut by_reference: BTreeMap<&ItemRef, Vec<&ItemHandle>> = BTreeMap::new();
        for item in items {
            by_reference.entry(item.reference()).or_default().push(item);
        }
        let mut swept = Swept::default();
        for (item, error) in self.0.kept.remove_released(current) {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
            swept.left.push((item, FsError::new("remove", "the copy of what is back in its place", errno)));
        }
        for (item, values) in by_reference {
            let name = Temporary::name(&self.0.set, item);
            // What was set aside is written in the root.
            let in_root = RootPath::new(&name).ok();
            let mut looked_at = BTreeSet::new();
            for path in values.iter().copied().filter_map(path_of).chain(&in_root) {
                if !looked_at.insert(path.beside(&name)) {
                    continue;
                }
                match self.sweep_beside(current, item, &values, path, &name) {
                    Ok(true) => swept.removed.push(path.beside(&name).in_root(&self.0.root_path)),
                    Ok(false) => {}
                    Err(error) => swept.left.push((item.clone(), error)),
                }
            }
        }
        swept
    }

    /// Removes the temporary entry of an item beside a path. Returns whether there was one.
    fn sweep_beside(
        &self,
        current: &CurrentGraph,
        item: &ItemRef,
        values: &[&ItemHandle],
        path: &RootPath,
        name: &str,
    ) -> Result<bool, FsError> {
        let root = &self.0.root;
        if let Some(state) = current.state(item).filter(|state| state.ownership().is_adopted())
            && root.has_temporary(path, name)?
        {
            let (values, at) = (values.to_vec(), path.beside(name));
            if let Err(why) = kinds::keep_left(self, &Left { values, item, state, path, at: &at }) {
                let (path, saved, why) = (path.clone(), root.save_temporary(path, name)?, why.to_string());
                self.0.notices.add(Notice::Saved { item: item.clone(), path, saved, why });
                return Ok(false);
            }
        }
        root.remove_temporary(path, name)
    }

    /// Where an item is until it is whole and comes to its place; none if it has no place.
    pub fn temporary(&self, item: &ItemHandle) -> Option<PathBuf> {
        let beside = path_of(item)?.parent().unwrap_or_default();
        Some(self.0.root_path.join(beside).join(Temporary::name(&self.0.set, item.reference())))
    }

    /// Learns from what is known where directories are, and where a run that was cut off has moved them.
    ///
    /// To be called with what the engine knows before it is asked to do or to read anything.
    pub fn recall(&self, current: &CurrentGraph) {
        self.0.directories.clear();
        for node in current.items() {
            let location =
                kinds::on_disk(node.item()).filter(|location| location.kind == FileType::Directory);
            if let (Some(location), Some(note)) =
                (location, node.state().and_then(ItemState::noted::<PathNote>))
            {
                self.0.directories.learn(node.reference(), location.path, &note);
            }
        }
    }

    /// Forgets what only a cut-off run would need, and knows everything by the directory that it is in: to be called before
    /// what the engine knows is saved. Does nothing where nobody knows how an operation ended.
    pub fn settle(&self, current: &mut CurrentGraph) {
        let slots: Vec<_> = current.slots().collect();
        let unknown = |slot| current.state_at(slot).is_some_and(ItemState::is_unknown);
        if slots.iter().any(|&slot| unknown(slot)) {
            return;
        }
        // What failed may still be in a directory that has moved, and is found by that.
        let all_is_well =
            slots.iter().all(|&slot| current.state_at(slot).is_none_or(|s| s.last_failure().is_none()));
        for slot in slots {
            let Some(item) = current.item_at(slot) else { continue };
            let state = current.state_at(slot);
            if state
                .is_some_and(|state| state.last_failure().is_some() || state.presence() != Presence::Present)
            {
                continue;
            }
            let settled = match kinds::on_disk(item) {
                None if state.is_some_and(|state| state.noted::<PassingNote>().is_some()) => None,
                None => continue,
                Some(location) => {
                    let noted = state.and_then(ItemState::noted::<PathNote>);
                    if noted.as_ref().is_some_and(|note| self.is_set_aside(note)) {
                        continue;
                    }
                    let Some(settled) = self.settled(noted.as_ref(), &location, all_is_well) else {
                        continue;
                    };
                    Some(settled)
                }
            };
            let Some(state) = current.state_at_mut(slot) else { continue };
            match settled {
                Some(note) => state.note(&note),
                None => state.forget_note(),
            }
            current.touch_at(slot);
        }
        self.recall(current);
    }

    /// What is to be noted of what is in a place; none if that is noted already, or can't be known.
    fn settled(
        &self,
        noted: Option<&PathNote>,
        location: &OnDisk<'_>,
        all_is_well: bool,
    ) -> Option<PathNote> {
        let mut note = match noted {
            Some(note) if !all_is_well && !note.moved.is_empty() => return None,
            Some(note) => note.settled(location.kind, location.path, || self.0.root.holder(location.path)),
            None => PathNote::default(),
        };
        // Of what an earlier version made, or what was imported, nothing is known but its path.
        if note.known_by.is_none() || noted.is_some_and(|noted| !noted.moved.is_empty()) {
            note.mounts = self.0.root.mounts(location.path);
        }
        note.known_by = note.known_by.or_else(|| self.known_by(location.path, location.kind));
        (noted != Some(&note) && !(noted.is_none() && note.known_by.is_none())).then_some(note)
    }

    /// Returns whether the directory that something runs in is not there.
    pub(crate) fn lacks(&self, cwd: Option<&RootPath>) -> bool {
        matches!(self.directory_of(cwd), Err(FsError::Failed { errno: rustix::io::Errno::NOENT, .. }))
    }

    /// Opens the directory that something runs in, so that it is that one whatever its path leads to later.
    pub(crate) fn directory_of(&self, cwd: Option<&RootPath>) -> Result<Cwd, FsError> {
        Ok(match cwd {
            None => Cwd { path: self.0.root_path.clone(), _open: None },
            Some(cwd) => {
                let open = self.0.root.open_directory(cwd)?;
                Cwd { path: format!("/proc/self/fd/{}", open.as_raw_fd()).into(), _open: Some(open) }
            }
        })
    }
}

/// The time, in seconds since 1970.
fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// What tells a directory from any other for as long as it is there, wherever it is moved; none where the file system does not
/// say, or it can't be looked at.
pub fn directory_number(path: &Path) -> Option<String> {
    Root::open(path).ok()?.lasting_directory("").map(|number| number.to_string())
}

/// What the system's error means for a root that is there.
fn opening(errno: rustix::io::Errno) -> io::Error {
    use rustix::io::Errno;
    match errno {
        Errno::NOSYS | Errno::PERM => {
            let message = format!(
                "the system call openat2 is not to be had ({errno}), which keeps Setpoint below its root; Linux has it \
                 since 5.6, and a container's seccomp profile has to allow it"
            );
            io::Error::new(io::ErrorKind::Unsupported, message)
        }
        errno => errno.into(),
    }
}

/// A directory to run in.
#[derive(Debug)]
pub(crate) struct Cwd {
    path: PathBuf,
    /// The path leads to it only as long as it is open.
    _open: Option<OwnedFd>,
}

impl Cwd {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Something at the place of an item that is not there yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    /// Where it is.
    pub path: RootPath,
    /// What it is, in words.
    pub what: &'static str,
    /// Whether it is of the kind that the item is, so that it can be adopted.
    pub adoptable: bool,
    /// Whether the item says `adopt: true`.
    pub adopts: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_openat2_is_named() {
        for errno in [rustix::io::Errno::NOSYS, rustix::io::Errno::PERM] {
            let error = opening(errno);
            assert!(error.to_string().contains("since 5.6"), "{error}");
        }
        assert_eq!(opening(rustix::io::Errno::NOENT).kind(), io::ErrorKind::NotFound);
    }
}
