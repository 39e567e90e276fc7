//! The host as the configurators see it: a root directory, and what is remembered beside it.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_engine::{CurrentGraph, ItemState, OpError};
use setpoint_graph::{ItemHandle, ItemRef, Name};

use crate::configure::{Kept, Moves, PassingNote};
use crate::fs::{FsError, Root, Temporary};
use crate::item::RootPath;
use crate::kinds::{self, Place, Process, path_of};
use crate::process::{Children, Output};

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
    pub(crate) moves: Moves,
    pub(crate) kept: Kept,
    pub(crate) output: Output,
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
        let (root, children, moves) = (opened, Children::default(), Moves::default());
        let (kept, output) = (Kept::new(&runtime), Output::default());
        Ok(Self(Arc::new(Shared { root, root_path, set, runtime, children, moves, kept, output })))
    }

    /// The root directory.
    pub fn root(&self) -> &Path {
        &self.0.root_path
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

    /// The log file of a process, wherever it is.
    pub fn log_of(&self, process: &Process) -> PathBuf {
        match &process.log {
            Some(log) => log.in_root(&self.0.root_path),
            None => self.0.runtime.join(format!("{}.log", crate::process::file_stem(&process.name))),
        }
    }

    /// What is at the place of an intended item although Setpoint did not put it there: a file or directory
    /// that its creation would refuse, or adopt. None if there is nothing, or the item has no place.
    ///
    /// This only looks, so that a plan can warn.
    pub fn in_the_way(&self, item: &ItemHandle) -> Option<Existing> {
        let Place { path, kind: wanted, adopt: adopts, .. } = kinds::place_of(item)?;
        let found = self.0.root.stat(path).ok()??;
        let (path, what) = (path.clone(), found.kind.words());
        Some(Existing { path, what, adoptable: found.kind == wanted, adopts })
    }

    /// Returns whether a path below the root leads to a directory.
    pub fn is_directory(&self, path: &RootPath) -> bool {
        self.0.root.open_directory(path).is_ok()
    }

    /// Keeps what is in the place of an item, to be put back when the item goes: to be called before an item is taken over
    /// by other means than its creation.
    pub fn keep_original(&self, item: &ItemHandle) -> Result<(), OpError> {
        kinds::keep_original(self, item)
    }

    /// Removes the temporary entries that a killed run may have left beside the places of these items. Returns
    /// what it removed.
    ///
    /// To be called with the items that were in flight when a run ended without a word, old and new values.
    pub fn sweep<'a>(
        &self,
        items: impl IntoIterator<Item = &'a ItemHandle>,
    ) -> Result<Vec<PathBuf>, FsError> {
        let mut removed = Vec::new();
        for item in items {
            let Some(path) = path_of(item) else { continue };
            let name = Temporary::name(&self.0.set, item.reference());
            if self.0.root.remove_temporary(path, &name)? {
                removed.extend(self.temporary(item));
            }
        }
        Ok(removed)
    }

    /// Where an item is until it is whole and comes to its place; none if it has no place.
    pub fn temporary(&self, item: &ItemHandle) -> Option<PathBuf> {
        let beside = path_of(item)?.parent().unwrap_or_default();
        Some(self.0.root_path.join(beside).join(Temporary::name(&self.0.set, item.reference())))
    }

    /// Learns from what is known where a run that was cut off has moved things.
    ///
    /// To be called with what the engine knows before it is asked to do or to read anything.
    pub fn recall(&self, current: &CurrentGraph) {
        self.0.moves.clear();
        for node in current.items() {
            if let Some(PassingNote::Moved(moves)) = node.state().and_then(ItemState::noted) {
                self.0.moves.set(node.reference(), moves);
            }
        }
    }

    /// Forgets what only a cut-off run would need: to be called before what the engine knows is saved. Does nothing
    /// where nobody knows how an operation ended.
    pub fn settle(&self, current: &mut CurrentGraph) {
        let slots: Vec<_> = current.slots().collect();
        let unknown = |slot| current.state_at(slot).is_some_and(ItemState::is_unknown);
        if slots.iter().any(|&slot| unknown(slot)) {
            return;
        }
        self.0.moves.clear();
        for slot in slots {
            let state = current.state_at(slot);
            // One whose change failed half-way is still where it was moved.
            let noted = state
                .is_some_and(|state| state.noted::<PassingNote>().is_some() && state.trouble().is_none());
            if noted && let Some(state) = current.state_at_mut(slot) {
                state.forget_note();
                current.touch_at(slot);
            }
        }
        self.recall(current);
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
