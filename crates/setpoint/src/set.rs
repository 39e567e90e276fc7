//! What a command works on: the manifests, the state, and the host with its engine.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;

use setpoint_engine::{Engine, Selection};
use setpoint_graph::{Graph, ItemRef, ItemTypes};
use setpoint_host::{AdoptionError, Adoptions, Host, HostOptions, Manifest, item_types, registry};
use setpoint_state::{Snapshot, StateDir, Writer};

use crate::cli::{ChangeArgs, SetArgs};
use crate::error::CliError;

/// A set of manifests with its state.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) manifest: Manifest,
    pub(crate) state: StateDir,
}

impl Set {
    pub(crate) fn load(args: &SetArgs) -> Result<Self, CliError> {
        let manifest = load_manifest(&args.file)?;
        Ok(Self { manifest, state: state_of(args) })
    }

    pub(crate) fn name(&self) -> &str {
        self.manifest.name().as_str()
    }

    pub(crate) fn intended(&self) -> &Graph {
        self.manifest.graph()
    }

    /// Loads the manifests, and beside that what is known: either may take its time where there is a lot.
    pub(crate) fn load_with_state(args: &SetArgs) -> Result<(Self, Snapshot), CliError> {
        let state = state_of(args);
        let (set, known) = thread::scope(|scope| {
            let reading = scope.spawn(|| state.read());
            let set = Self::load(args);
            (set, reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let set = set?;
        let snapshot = set.own(known?)?;
        Ok((set, snapshot))
    }

    /// What is known, also beside another command that writes.
    pub(crate) fn read_state(&self) -> Result<Snapshot, CliError> {
        self.own(self.state.read()?)
    }

    /// The state of another set is refused.
    fn own(&self, known: Option<Snapshot>) -> Result<Snapshot, CliError> {
        let Some(snapshot) = known else {
            return Ok(Snapshot::empty(self.name()));
        };
        if snapshot.set == self.name() {
            return Ok(snapshot);
        }
        Err(CliError::State(setpoint_state::StateError::OtherSet {
            dir: self.state.path().to_path_buf(),
            found: snapshot.set,
            wanted: self.name().to_owned(),
        }))
    }

    /// Opens the host to look at it: what it adopted is not remembered.
    pub(crate) fn host_to_read(&self) -> Result<Host, CliError> {
        self.open(HostOptions::new(self.manifest.root(), self.manifest.name().clone()))
    }

    /// Opens the host to change it.
    pub(crate) fn host(&self, writer: &Arc<Writer>) -> Result<Host, CliError> {
        let adoptions = Arc::new(Ledger(Arc::clone(writer)));
        self.open(
            HostOptions::new(self.manifest.root(), self.manifest.name().clone()).with_adoptions(adoptions),
        )
    }

    fn open(&self, options: HostOptions) -> Result<Host, CliError> {
        Ok(Host::open(options.with_runtime_directory(self.state.path().join("run")))?)
    }
}

/// Loads manifests; all that is wrong with them is one error.
pub(crate) fn load_manifest(path: &Path) -> Result<Manifest, CliError> {
    setpoint_host::load(path).map_err(CliError::Manifest)
}

/// The state beside the manifests, or where it was asked for.
pub(crate) fn state_of(args: &SetArgs) -> StateDir {
    static TYPES: OnceLock<Arc<ItemTypes>> = OnceLock::new();
    let types = TYPES.get_or_init(|| Arc::new(item_types()));
    let dir = args.state.clone().unwrap_or_else(|| {
        let beside = if args.file.is_dir() { Some(args.file.as_path()) } else { args.file.parent() };
        beside.map_or_else(PathBuf::new, Path::to_path_buf).join(".setpoint")
    });
    StateDir::new(dir, Arc::clone(types))
}

/// An engine for the host, as a person's command wants it: what failed before is tried at once.
pub(crate) fn engine(host: &Host, change: &ChangeArgs, replace: &[ItemRef]) -> Engine {
    Engine::new(registry(host))
        .with_concurrency(change.parallelism.get())
        .replacing(replace.iter().cloned())
        .retrying_now()
}

/// The items that a command is about. One that is neither declared nor remembered is an error.
pub(crate) fn selection(items: &[ItemRef], known: impl Fn(&ItemRef) -> bool) -> Result<Selection, CliError> {
    if let Some(unknown) = items.iter().find(|item| !known(item)) {
        return Err(CliError::NoSuchItem(unknown.clone()));
    }
    Ok(if items.is_empty() { Selection::all() } else { Selection::items(items.iter().cloned()) })
}

/// Adoptions that the state remembers.
#[derive(Debug)]
struct Ledger(Arc<Writer>);

impl Adoptions for Ledger {
    fn adopt(&self, item: &ItemRef) -> Result<(), AdoptionError> {
        self.0.adopt(item).map_err(|error| AdoptionError(error.to_string()))
    }

    fn is_adopted(&self, item: &ItemRef) -> bool {
        self.0.is_adopted(item)
    }

    fn forget(&self, item: &ItemRef) -> Result<(), AdoptionError> {
        self.0.forget(item).map_err(|error| AdoptionError(error.to_string()))
    }
}
