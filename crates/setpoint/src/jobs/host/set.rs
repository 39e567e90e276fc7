//! What a command works on: the manifests, the state, and the host with its engine.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use setpoint_engine::{CurrentGraph, Engine, ItemState, Refreshed, Selection};
use setpoint_graph::{Edge, Graph, ItemHandle, ItemRef, ItemTypes, Node, SlotId, State};
use setpoint_host::{
    Diagnostic, Directory, File, Host, HostOptions, Kept, Manifest, item_types, path_of, registry,
};
use setpoint_state::{Snapshot, StateDir, Writer};

use super::args::{ChangeArgs, LockArgs, PathArgs, SetArgs};
use super::error::{Error, nearest};
use super::planfile;
use super::rename::{self, Renamed};
use super::root::RootIdentity;
use crate::error::CliError;
use crate::report::Report;

/// A set of manifests with its state.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) manifest: Manifest,
    pub(crate) state: StateDir,
    /// The digest of what is declared, taken before anything was added to it.
    digest: Option<String>,
}

impl Set {
    pub(crate) fn load(args: &SetArgs) -> Result<Self, CliError> {
        Ok(Self::of(load_manifest(args)?, args))
    }

    /// Loads a set of which things are only removed: what files would hold is not needed for that.
    pub(crate) fn load_to_remove(args: &SetArgs) -> Result<Self, CliError> {
        let manifest = setpoint_host::load_without_contents(&args.at.file, &args.var);
        let manifest = manifest.and_then(|manifest| apart_from_state(manifest, &args.at));
        Ok(Self::of(manifest.map_err(Error::Manifest)?, args))
    }

    fn of(manifest: Manifest, args: &SetArgs) -> Self {
        Self { manifest, state: state_of(&args.at), digest: None }
    }

    /// The digest of all that is declared: it changes with the manifests, with what they refer to, and with what is set of
    /// their values.
    pub(crate) fn declared_digest(&self) -> Result<String, CliError> {
        match &self.digest {
            Some(digest) => Ok(digest.clone()),
            None => planfile::digest(&self.manifest),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.manifest.name().as_str()
    }

    pub(crate) fn intended(&self) -> &Graph {
        self.manifest.graph()
    }

    /// Says which YAML files beside the manifests are none.
    pub(crate) fn report_foreign(&self, report: Report) {
        self.foreign().for_each(|warning| report.warn(&warning));
    }

    /// Which YAML files beside the manifests are none, in words.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = String> {
        passed_over(&self.manifest)
    }

    /// What is known, also beside another command that writes. Says so where it is not the last state.
    pub(crate) fn read_state(&self, report: Report) -> Result<Snapshot, CliError> {
        let snapshot = self.own(self.state.read()?)?;
        report_damage(snapshot.damaged.as_deref(), report);
        Ok(snapshot)
    }

    /// The state of another set, or of another root, is refused.
    pub(crate) fn own(&self, known: Option<Snapshot>) -> Result<Snapshot, CliError> {
        let Some(snapshot) = known else {
            return Ok(Snapshot::empty(self.name()));
        };
        if snapshot.set == self.name() {
            RootIdentity::of(self.manifest.root())?.check(snapshot.location.as_deref(), &snapshot.graph)?;
            return Ok(snapshot);
        }
        Err(Error::State(setpoint_state::StateError::OtherSet {
            dir: self.state.path().to_path_buf(),
            found: snapshot.set,
            wanted: self.name().to_owned(),
        })
        .into())
    }

    /// Becomes the writer of the state.
    pub(crate) fn lock(&self, command: &str, lock: LockArgs) -> Result<(Writer, CurrentGraph), CliError> {
        let (writer, current) = lock_state(&self.state, self.name(), command, lock)?;
        let root = RootIdentity::of(self.manifest.root())?;
        let before = writer.location();
        root.check(before.as_deref(), &current)?;
        writer.set_location(root.text());
        if before.is_some_and(|before| before != root.text()) && !writer.has_unsaved_runs() {
            // The same directory by another name, which later refusals are to say. Where that fails, the next command saves it.
            let _ = writer.save(&current, None);
        }
        Ok((writer, current))
    }

    /// Takes the digest of what is declared, before anything is added to it.
    pub(crate) fn take_digest(&mut self) -> Result<(), CliError> {
        self.digest = Some(planfile::digest(&self.manifest)?);
        Ok(())
    }

    /// Adds the directories that have to be made for what is declared inside of them, and finds items that are called
    /// differently now: they are then known by their new names.
    pub(crate) fn adjust(
        &mut self,
        host: &Host,
        current: &mut CurrentGraph,
    ) -> Result<Vec<Renamed>, CliError> {
        add_parents(&mut self.manifest, host, current);
        let mut renamed = rename::take_undeclared(current, self.manifest.graph(), host)?;
        renamed.extend(rename::follow(current, self.manifest.graph())?);
        Ok(renamed)
    }

    /// Finds items that are called differently now also among those of which only reading could show how their last operation
    /// ended: they are then known by their new names.
    pub(crate) fn adjust_read(
        &self,
        current: &mut CurrentGraph,
        refreshed: &mut Refreshed,
    ) -> Result<Vec<Renamed>, CliError> {
        rename::follow_read(current, self.intended(), refreshed)
    }

    /// What is remembered, and not intended any more by whatever name.
    pub(crate) fn unwanted(&self, current: &CurrentGraph) -> BTreeSet<ItemRef> {
        let mut unwanted = unwanted(current, Some(self.intended()));
        for renamed in rename::called_differently(current, self.intended()) {
            unwanted.remove(&renamed.from);
        }
        unwanted
    }

    /// Opens the host, of which this is known.
    pub(crate) fn host(&self, current: &CurrentGraph) -> Result<Host, CliError> {
        let options = HostOptions::new(self.manifest.root(), self.manifest.name().clone());
        let host = Host::open(options.with_runtime_directory(runtime_directory(&self.state)))?;
        host.recall(current);
        Ok(host)
    }
}

/// Which YAML files beside manifests are none, in words.
pub(crate) fn passed_over(manifest: &Manifest) -> impl Iterator<Item = String> {
    let files = manifest.foreign().iter();
    files.map(|file| format!("{} is no manifest of Setpoint, and is passed over", file.display()))
}

/// The files of a set that declare anything, by name: all of them are in one directory.
pub(crate) fn declaring(manifest: &Manifest) -> BTreeSet<String> {
    let files: BTreeSet<&Path> = manifest.all_declared().map(|(_, declared)| &*declared.file).collect();
    files.iter().filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned())).collect()
}

/// The directory of manifests: themselves, or the one that a single one is in.
pub(crate) fn directory_of(file: &Path) -> &Path {
    let directory = if file.is_dir() { file } else { file.parent().unwrap_or(Path::new("")) };
    if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
}

/// A file that is there, declared something, and does not any more: it is not read, it is being written, or was damaged. `before`
/// are the names of those that declared anything.
pub(crate) fn no_longer_declaring(
    before: &BTreeSet<String>,
    manifest: &Manifest,
    directory: &Path,
) -> Option<PathBuf> {
    let now = declaring(manifest);
    before.difference(&now).map(|name| directory.join(name)).find(|file| file.exists())
}

/// Knows again what a run that was cut off has set aside, and what was gone and is back in its place, before anything is planned:
/// so every command sees what the next run starts from. Returns what is back.
pub(crate) fn recognise(
    host: &Host,
    current: &mut CurrentGraph,
    intended: Option<&Graph>,
) -> BTreeSet<ItemRef> {
    host.recognise_set_aside(current, intended);
    host.recognise_returned(current)
}

/// Adds the directories that have to be made for what is declared inside of them, and those that were made for that.
pub(crate) fn add_parents(manifest: &mut Manifest, host: &Host, current: &CurrentGraph) {
    let remembered: BTreeSet<&str> = current
        .items()
        .filter_map(|node| node.item().get::<Directory>().map(|directory| directory.path.as_str()))
        .collect();
    // What is in a directory that moves is not there any more when something comes to its old place.
    let moves: Vec<String> = current
        .items()
        .filter_map(|node| {
            let (old, new) = (node.item().get::<Directory>()?, manifest.graph().item(node.reference())?);
            (new.get::<Directory>()?.path != old.path).then(|| format!("{}/", old.path))
        })
        .collect();
    manifest.add_parents(|path| {
        remembered.contains(path.as_str())
            || !host.is_directory(path)
            || moves.iter().any(|old| path.as_str().starts_with(old.as_str()))
    });
}

/// Becomes the writer of a state.
pub(crate) fn lock_state(
    state: &StateDir,
    set: &str,
    command: &str,
    lock: LockArgs,
) -> Result<(Writer, CurrentGraph), CliError> {
    let (writer, mut current) = state.lock(set, command, lock.lock_timeout)?;
    Kept::new(&runtime_directory(state)).name_originals(&mut current);
    Ok((writer, current))
}

/// Where files are that belong to the state and are not part of it, such as logs.
pub(crate) fn runtime_directory(state: &StateDir) -> PathBuf {
    state.path().join("run")
}

/// Loads manifests; all that is wrong with them is one error.
pub(crate) fn load_manifest(args: &SetArgs) -> Result<Manifest, CliError> {
    let manifest = setpoint_host::load_with(&args.at.file, &args.var);
    let manifest = manifest.and_then(|manifest| apart_from_state(manifest, &args.at));
    manifest.map_err(|errors| Error::Manifest(errors).into())
}

/// Refuses manifests that declare something in the directory of the state.
pub(crate) fn apart_from_state(manifest: Manifest, args: &PathArgs) -> Result<Manifest, Vec<Diagnostic>> {
    let wrong = manifest.inside(state_of(args).path(), "the state");
    if wrong.is_empty() { Ok(manifest) } else { Err(wrong) }
}

/// The state beside the manifests, or where it was asked for.
pub(crate) fn state_of(args: &PathArgs) -> StateDir {
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
    unknown.map_or(Ok(()), |unknown| Err(no_such_item(unknown, intended, current)))
}

/// Refuses items to be made anew that a command with targets is not about: nothing would become of them.
pub(crate) fn check_replaced(replaced: &[ItemRef], selection: &Selection) -> Result<(), CliError> {
    let Selection::Items(selected) = selection else { return Ok(()) };
    let outside = replaced.iter().find(|item| !selected.contains(*item));
    outside.map_or(Ok(()), |item| Err(Error::NotTargeted(item.clone()).into()))
}

/// Returns the error for a name that no item has.
pub(crate) fn no_such_item(item: &ItemRef, intended: &Graph, current: &CurrentGraph) -> CliError {
    let declared: Vec<ItemRef> = intended.items().map(|node| node.reference().clone()).collect();
    let known = current.items().map(|node| node.reference().clone()).chain(declared);
    let known: BTreeSet<ItemRef> = known.collect();
    Error::NoSuchItem(item.clone(), nearest(item, &known)).into()
}

/// What is wrong with an item that is not remembered.
pub(crate) fn not_remembered(item: &ItemRef, current: Option<&CurrentGraph>) -> CliError {
    let known: BTreeSet<ItemRef> =
        current.into_iter().flat_map(Graph::items).map(|node| node.reference().clone()).collect();
    Error::NotRemembered(item.clone(), nearest(item, &known)).into()
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
    let mut items = requirements(intended, stay);
    items.extend(going(current, go));
    let selection = Selection::items(items.iter().cloned());
    // What only waits for one of them is not made on the way.
    let mut intended = intended.clone();
    let others: Vec<ItemRef> = intended.items().map(|node| node.reference().clone()).collect();
    for other in others.iter().filter(|other| !items.contains(*other) && !is_there(current, other)) {
        // It is there, and nobody else has a hand in it.
        let _ = intended.del_item(other);
    }
    Ok(Scope { selection, intended: Cow::Owned(intended) })
}

/// Returns whether it is not known where everything is, as a run was cut off, also where its journal was taken over since.
pub(crate) fn is_cut_off(writer: &Writer, current: &CurrentGraph) -> bool {
    let mut located = current.items().filter(|node| path_of(node.item()).is_some());
    writer.has_unsaved_runs() || located.any(|node| node.state().is_some_and(ItemState::is_unknown))
}

/// Returns whether an item is known to be there.
pub(crate) fn is_there(current: &CurrentGraph, item: &ItemRef) -> bool {
    let state = current.state(item);
    current.contains(item) && state.is_none_or(|state| state.presence().exists())
}

/// Items with all that they need, directly or not.
pub(crate) fn requirements<'a, S: State>(
    graph: &Graph<S>,
    items: impl IntoIterator<Item = &'a ItemRef>,
) -> BTreeSet<ItemRef> {
    reach(graph, items, |slot| graph.edges_at(slot).iter())
}

/// Items with all that needs them, directly or not.
pub(crate) fn dependents<'a, S: State>(
    current: &Graph<S>,
    items: impl IntoIterator<Item = &'a ItemRef>,
) -> BTreeSet<ItemRef> {
    // What only comes after something stays whatever becomes of that.
    let stands_on = |edge: &Edge| {
        current.dependency_at(edge.slot, edge.position).is_none_or(|dependency| !dependency.is_order())
    };
    reach(current, items, |slot| current.incoming_at(slot).iter().filter(|edge| stands_on(edge)))
}

/// Items that go, with all that needs them, and with what nobody declared and was only made for these: directories and logs.
pub(crate) fn going<'a>(
    current: &CurrentGraph,
    items: impl IntoIterator<Item = &'a ItemRef>,
) -> BTreeSet<ItemRef> {
    let mut going = dependents(current, items);
    let is_made_for_others = |item: &ItemHandle| {
        let is_directory = item.get::<Directory>().is_some_and(|directory| directory.implicit);
        is_directory || item.get::<File>().is_some_and(|file| file.log)
    };
    // One of them may have been made for another one.
    loop {
        let only_for_those = |node: &Node<'_, ItemState>| {
            let mut dependents = dependents_of(current, node.reference()).peekable();
            dependents.peek().is_some() && dependents.all(|dependent| going.contains(dependent))
        };
        let made = current.items().filter(|node| is_made_for_others(node.item()) && only_for_those(node));
        let made: Vec<ItemRef> = made.map(|node| node.reference().clone()).collect();
        let before = going.len();
        going.extend(made);
        if going.len() == before {
            return going;
        }
    }
}

/// What comes after items that go, and is there: it stays, whatever becomes of them.
pub(crate) fn staying(current: &CurrentGraph, going: &BTreeSet<ItemRef>) -> BTreeSet<ItemRef> {
    let dependents = going.iter().flat_map(|item| dependents_of(current, item));
    dependents.filter(|item| !going.contains(*item) && is_there(current, item)).cloned().collect()
}

/// The items that depend on another one in any way.
fn dependents_of<'a>(current: &'a CurrentGraph, item: &ItemRef) -> impl Iterator<Item = &'a ItemRef> {
    let edges = current.slot_of(item).map_or(&[][..], |slot| current.incoming_at(slot));
    edges.iter().filter_map(|edge| current.reference_at(edge.slot))
}

/// Items with all that is held back while they can't be read: what comes after them, and all that needs one of these.
pub(crate) fn held_back<'a>(
    intended: &Graph,
    items: impl IntoIterator<Item = &'a ItemRef>,
) -> BTreeSet<ItemRef> {
    let mut held: BTreeSet<ItemRef> = items.into_iter().cloned().collect();
    let slots: Vec<SlotId> = held.iter().filter_map(|item| intended.slot_of(item)).collect();
    let after = slots.into_iter().flat_map(|slot| intended.incoming_at(slot));
    held.extend(after.filter_map(|edge| intended.reference_at(edge.slot)).cloned());
    dependents(intended, &held)
}

/// What is remembered and not intended any more.
pub(crate) fn unwanted(current: &CurrentGraph, intended: Option<&Graph>) -> BTreeSet<ItemRef> {
    let all = current.items().map(|node| node.reference());
    all.filter(|item| intended.is_none_or(|intended| !intended.contains(item))).cloned().collect()
}

/// Items with all that edges lead to from them.
fn reach<'a, 'g, S: State, E: Iterator<Item = &'g Edge>>(
    graph: &'g Graph<S>,
    items: impl IntoIterator<Item = &'a ItemRef>,
    edges: impl Fn(SlotId) -> E,
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

/// Warns of a state that is not the last one.
pub(crate) fn report_damage(why: Option<&str>, report: Report) {
    if let Some(why) = why {
        report.warn(&format!("{why}; the host is read all the same"));
    }
}

/// Returns whether an item was there before, and is only looked after.
pub(crate) fn is_adopted(current: &CurrentGraph, item: &ItemRef) -> bool {
    current.state(item).is_some_and(|state| state.ownership().is_adopted())
}
