//! The host as the configurators see it: a root directory, and what is remembered beside it.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_engine::DefaultRegistry;
use setpoint_graph::{ItemHandle, Name};

use crate::adopt::{Adoptions, MemoryAdoptions};
use crate::configure::{self, Births, Moves};
use crate::fs::{FsError, Root, Temporary};
use crate::item::{Command, Directory, File, Process, RootPath, Symlink};
use crate::process::Children;

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
    pub(crate) adoptions: Arc<dyn Adoptions>,
    pub(crate) children: Children,
    pub(crate) moves: Moves,
    pub(crate) births: Births,
}

/// How a host is opened.
#[derive(Clone, Debug)]
pub struct HostOptions {
    root: PathBuf,
    set: Name,
    runtime: Option<PathBuf>,
    adoptions: Arc<dyn Adoptions>,
}

impl HostOptions {
    /// Works below an existing directory, for the set of this name.
    pub fn new(root: impl Into<PathBuf>, set: impl Into<Name>) -> Self {
        Self {
            root: root.into(),
            set: set.into(),
            runtime: None,
            adoptions: Arc::new(MemoryAdoptions::new()),
        }
    }

    /// Keeps runtime files, such as logs of processes, in this directory; it is made when it is needed. By
    /// default `.setpoint/run` below the root.
    #[must_use]
    pub fn with_runtime_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.runtime = Some(directory.into());
        self
    }

    /// Remembers adoptions there, instead of for as long as the program runs.
    #[must_use]
    pub fn with_adoptions(mut self, adoptions: Arc<dyn Adoptions>) -> Self {
        self.adoptions = adoptions;
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
        let HostOptions { root, set, runtime, adoptions } = options;
        let failed = |source| HostError { root: root.clone(), source };
        let root_path = fs::canonicalize(&root).map_err(failed)?;
        let opened = Root::open(&root_path).map_err(|errno| failed(errno.into()))?;
        let runtime = runtime.unwrap_or_else(|| root_path.join(".setpoint/run"));
        let (children, moves, births) = (Children::default(), Moves::new(&runtime), Births::new(&runtime));
        let root = opened;
        Ok(Self(Arc::new(Shared { root, root_path, set, runtime, adoptions, children, moves, births })))
    }

    /// The root directory.
    pub fn root(&self) -> &Path {
        &self.0.root_path
    }

    /// The name of the set.
    pub fn set(&self) -> &Name {
        &self.0.set
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
        let (path, wanted, adopts) = if let Some(item) = item.get::<Directory>() {
            (&item.path, "a directory", item.adopt)
        } else if let Some(item) = item.get::<File>() {
            (&item.path, "a file", item.adopt)
        } else if let Some(item) = item.get::<Symlink>() {
            (&item.path, "a symbolic link", item.adopt)
        } else {
            return None;
        };
        let found = self.0.root.stat(path).ok()??;
        let what = found.kind.words();
        Some(Existing { path: path.clone(), what, adoptable: what == wanted, adopts })
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
            let Some(path) = place(item) else { continue };
            let name = Temporary::name(&self.0.set, item.reference());
            if self.0.root.remove_temporary(path, &name)? {
                removed.extend(self.temporary(item));
                self.stillborn(item.reference(), path)?;
            }
        }
        Ok(removed)
    }

    /// Where an item is until it is whole and comes to its place; none if it has no place.
    pub fn temporary(&self, item: &ItemHandle) -> Option<PathBuf> {
        let beside = place(item)?.parent().unwrap_or_default();
        Some(self.0.root_path.join(beside).join(Temporary::name(&self.0.set, item.reference())))
    }

    /// Forgets what only a cut-off run would need: to be called once what the engine knows is saved, and
    /// nothing of it is unknown.
    pub fn settled(&self) -> io::Result<()> {
        self.0.births.forget_all()?;
        self.0.moves.forget_all()
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

/// The path of an item that has one of its own.
fn place(item: &ItemHandle) -> Option<&RootPath> {
    let directory = item.get::<Directory>().map(|item| &item.path);
    let file = || item.get::<File>().map(|item| &item.path);
    directory.or_else(file).or_else(|| item.get::<Symlink>().map(|item| &item.path))
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

/// The configurators of all host items.
pub fn registry(host: &Host) -> DefaultRegistry {
    DefaultRegistry::new()
        .with(Directory::KIND, configure::Directories::new(host))
        .with(File::KIND, configure::Files::new(host))
        .with(Symlink::KIND, configure::Symlinks::new(host))
        .with(Process::KIND, configure::Processes::new(host))
        .with(Command::KIND, configure::Commands::new(host))
}
