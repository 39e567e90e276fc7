//! What a command works on: the manifests, the state, and the host with its engine.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use setpoint_engine::{CurrentGraph, Engine, Presence, Selection};
use setpoint_graph::{Edge, Graph, ItemRef, ItemTypes, SlotId, State};
use setpoint_host::{AdoptionError, Adoptions, Host, HostOptions, Manifest, item_types, registry};
use setpoint_state::{Snapshot, StateDir, Writer};

use super::args::{ChangeArgs, SetArgs};
use super::error::Error;
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

    /// What is known, also beside another command that writes.
    pub(crate) fn read_state(&self) -> Result<Snapshot, CliError> {
        self.own(self.state.read()?)
    }

    /// The state of another set is refused.
    pub(crate) fn own(&self, known: Option<Snapshot>) -> Result<Snapshot, CliError> {
        let Some(snapshot) = known else {
            return Ok(Snapshot::empty(self.name()));
        };
        if snapshot.set == self.name() {
            return Ok(snapshot);
        }
        Err(Error::State(setpoint_state::StateError::OtherSet {
            dir: self.state.path().to_path_buf(),
            found: snapshot.set,
            wanted: self.name().to_owned(),
        })
        .into())
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
    setpoint_host::load(path).map_err(|errors| Error::Manifest(errors).into())
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

/// Refuses items that are neither declared nor remembered.
pub(crate) fn check_known(
    items: &[ItemRef],
    intended: &Graph,
    current: &CurrentGraph,
) -> Result<(), CliError> {
    let unknown = items.iter().find(|item| !intended.contains(item) && !current.contains(item));
    unknown.map_or(Ok(()), |unknown| Err(Error::NoSuchItem(unknown.clone()).into()))
}

/// What a command is about.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) selection: Selection,
    /// What is intended as far as the command is about it.
    pub(crate) intended: Cow<'a, Graph>,
}

/// What a command is about that was given some targets: these with all that they need, and those of them that
/// are to go with all that needs them. Without targets it is about everything.
pub(crate) fn scope<'a>(
    targets: &[ItemRef],
    intended: &'a Graph,
    current: &CurrentGraph,
) -> Result<Scope<'a>, CliError> {
    check_known(targets, intended, current)?;
    if targets.is_empty() {
        return Ok(Scope { selection: Selection::all(), intended: Cow::Borrowed(intended) });
    }
    let (stay, go): (Vec<&ItemRef>, Vec<&ItemRef>) = targets.iter().partition(|item| intended.contains(item));
    let mut items = reach(intended, stay, |slot| intended.edges_at(slot));
    items.extend(dependents(current, go));
    let selection = Selection::items(items.iter().cloned());
    // What only waits for one of them is not made on the way.
    let mut intended = intended.clone();
    let is_there = |item: &ItemRef| {
        let state = current.state(item);
        current.contains(item) && state.is_none_or(|state| state.presence() == Presence::Present)
    };
    let others: Vec<ItemRef> = intended.items().map(|node| node.reference().clone()).collect();
    for other in others.iter().filter(|other| !items.contains(*other) && !is_there(other)) {
        // It is there, and nobody else has a hand in it.
        let _ = intended.del_item(other);
    }
    Ok(Scope { selection, intended: Cow::Owned(intended) })
}

/// Items with all that needs them, directly or not.
pub(crate) fn dependents<'a>(
    current: &CurrentGraph,
    items: impl IntoIterator<Item = &'a ItemRef>,
) -> BTreeSet<ItemRef> {
    reach(current, items, |slot| current.incoming_at(slot))
}

/// Items with all that edges lead to from them.
fn reach<'a, 'g, S: State>(
    graph: &'g Graph<S>,
    items: impl IntoIterator<Item = &'a ItemRef>,
    edges: impl Fn(SlotId) -> &'g [Edge],
) -> BTreeSet<ItemRef> {
    let mut found: BTreeSet<ItemRef> = items.into_iter().cloned().collect();
    let mut todo: Vec<SlotId> = found.iter().filter_map(|item| graph.slot_of(item)).collect();
    while let Some(slot) = todo.pop() {
        for edge in edges(slot) {
            if let Some(item) = graph.reference_at(edge.slot)
                && found.insert(item.clone())
            {
                todo.push(edge.slot);
            }
        }
    }
    found
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
