//! `setpoint state`: shows and mends what Setpoint remembers.

mod accept;
mod kept;

use std::fmt::Write;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use setpoint_engine::{CurrentGraph, Engine, ItemState, Observed, Presence, Reading, Selection};
use setpoint_graph::{ItemRef, Node, SubgraphPath};
use setpoint_host::{
    Host, HostOptions, Kept, Started, attributes, item_types, may_be_set_aside, path_of, registry,
};
use setpoint_state::Writer;

use super::apply::sweep;
use super::args::{LockArgs, PathArgs, SetArgs, StateCommand};
use super::changes::MASKED;
use super::error::{Error, nearest};
use super::progress::name_slow_checks;
use super::rename;
use super::root::RootIdentity;
use super::set::{
    Set, is_adopted, is_there, lock_state, not_remembered, report_damage, runtime_directory, state_of,
};
use crate::error::CliError;
use crate::report::{Report, print, print_json, read_or_not};
use crate::service::runtime;

/// One item as the list shows it.
#[derive(Debug, Serialize)]
struct ListedItem<'a> {
    kind: &'a str,
    name: &'a str,
    presence: Option<Presence>,
    adopted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn run(command: &StateCommand, report: Report) -> Result<u8, CliError> {
    match command {
        StateCommand::List { set, json } => list(set, *json, report),
        StateCommand::Show { item, set, json, show_secrets } => show(item, set, *json, *show_secrets, report),
        StateCommand::Kept { name, set, json } => kept::run(name.as_deref(), set, *json, report),
        StateCommand::Rm { items, force, set, lock } => remove(items, *force, set, *lock, report),
        StateCommand::Mv { from, to, set, lock } => rename(from, to, set, *lock, report),
        StateCommand::Unprotect { items, set, lock } => unprotect(items, set, *lock, report),
        StateCommand::Accept { items, set, lock } => accept::accept(items, set, *lock, report),
        StateCommand::Relocate { partly, set, lock } => accept::relocate(*partly, set, *lock, report),
        StateCommand::Import { items, set, lock } => import(items, set, *lock, report),
    }
}

fn list(args: &PathArgs, json: bool, report: Report) -> Result<u8, CliError> {
    let Some(snapshot) = state_of(args).read()? else { return Ok(0) };
    report_damage(snapshot.damaged.as_deref(), report);
    let mut text = String::new();
    for node in snapshot.graph.items() {
        let item = node.reference();
        let listed = ListedItem {
            kind: item.kind().as_str(),
            name: item.name().as_str(),
            presence: node.state().map(ItemState::presence),
            adopted: is_adopted(&snapshot.graph, item),
            error: node.state().and_then(ItemState::last_failure).map(|trouble| trouble.error.to_string()),
        };
        if json {
            print_json(&listed)?;
        } else {
            let _ = writeln!(text, "{item}{}", remarks(&node, listed.adopted));
        }
    }
    print(&text)?;
    Ok(0)
}

/// What is worth saying of an item beside its name.
fn remarks(node: &Node<'_, ItemState>, adopted: bool) -> String {
    let mut remarks = Vec::new();
    let is_unknown = node.state().is_some_and(ItemState::is_unknown);
    match node.state().map(ItemState::presence) {
        Some(Presence::Absent) if !is_unknown => remarks.push("not there".to_owned()),
        Some(Presence::Partial) => remarks.push("half made".to_owned()),
        _ => {}
    }
    if is_unknown {
        remarks.push("its last operation was cut off".to_owned());
    }
    if let Some(trouble) = node.state().and_then(ItemState::last_failure) {
        remarks.push(format!("{} failed: {}", trouble.operation, trouble.error));
    }
    if node.state().is_some_and(|state| state.reapply().is_needed()) {
        remarks.push("to be applied again".to_owned());
    }
    if node.state().is_some_and(ItemState::is_protected) {
        remarks.push("protected".to_owned());
    }
    if adopted {
        remarks.push("adopted".to_owned());
    }
    if remarks.is_empty() { String::new() } else { format!("  ({})", remarks.join("; ")) }
}

fn show(
    item: &ItemRef,
    args: &PathArgs,
    json: bool,
    show_secrets: bool,
    report: Report,
) -> Result<u8, CliError> {
    let snapshot = state_of(args).read()?.ok_or_else(|| not_remembered(item, None))?;
    report_damage(snapshot.damaged.as_deref(), report);
    let node = snapshot.graph.node_of(item).ok_or_else(|| not_remembered(item, Some(&snapshot.graph)))?;
    let adopted = is_adopted(&snapshot.graph, item);
    let started = node.state().and_then(Started::of);
    if json {
        #[derive(Serialize)]
        struct Shown<'a> {
            kind: &'a str,
            name: &'a str,
            adopted: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            pid: Option<i32>,
            item: Value,
            state: Option<&'a ItemState>,
        }
        let mut value = item_types().item_to_value(node.item()).map_err(setpoint_state::StateError::Item)?;
        if !show_secrets {
            mask(&mut value);
        }
        let (kind, name) = (item.kind().as_str(), item.name().as_str());
        let pid = started.filter(Started::is_running).map(|started| started.pid());
        print_json(&Shown { kind, name, adopted, pid, item: value, state: node.state() })?;
        return Ok(0);
    }
    let mut text = format!("{item}{}\n", remarks(&node, adopted));
    for attribute in attributes(node.item()) {
        let value = if attribute.sensitive && !show_secrets { MASKED } else { &attribute.value };
        let mut lines = value.lines();
        let _ = writeln!(text, "  {}: {}", attribute.name, lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(text, "      {line}");
        }
    }
    if let Some(started) = started {
        let ended = if started.is_running() { "" } else { " (it has ended)" };
        let _ = writeln!(text, "  pid: {}{ended}", started.pid());
    }
    if let Some(state) = node.state() {
        let _ = writeln!(text, "  since: {:.0}", state.since());
    }
    print(&text)?;
    Ok(0)
}

/// Masks what must not be shown of an item: what a file holds, and the values of variables.
fn mask(item: &mut Value) {
    if item.get("sensitive") != Some(&Value::Bool(true)) {
        return;
    }
    if let Some(content) = item.get_mut("content") {
        *content = MASKED.into();
    }
    let variables = item.get_mut("env").and_then(Value::as_object_mut);
    for (_, value) in variables.into_iter().flatten() {
        *value = MASKED.into();
    }
}

fn remove(
    items: &[ItemRef],
    force: bool,
    args: &PathArgs,
    lock: LockArgs,
    report: Report,
) -> Result<u8, CliError> {
    let (writer, mut graph) = lock_to_mend(args, "state rm", lock, items, force, report)?;
    let host = remembered_host(&writer, &graph)?;
    let (mut forgotten, mut states) = (Vec::new(), Vec::new());
    for item in items {
        let Some(node) = graph.node_of(item) else { return Err(not_remembered(item, Some(&graph))) };
        let aside = set_aside(host.as_ref(), node.state());
        if !force && aside != SetAside::Nothing {
            return Err(Error::SetAside { item: item.clone(), path: aside.path() }.into());
        }
        states.extend(node.state().cloned());
        forgotten.push((item, aside.path()));
        graph.del_item(item)?;
    }
    writer.save(&graph, None)?;
    let kept = Kept::new(&runtime_directory(writer.dir()));
    for state in &states {
        kept.forget(state);
    }
    for (item, aside) in forgotten {
        let aside = aside.map(|path| format!(", also what was set aside at {}", path.display()));
        let aside = aside.unwrap_or_default();
        read_or_not(print(&format!("{item} is forgotten; what is on the host stays{aside}.\n")))?;
    }
    Ok(0)
}

/// What of an item is set aside, which only its state says.
#[derive(Debug, PartialEq, Eq)]
enum SetAside {
    /// Nothing.
    Nothing,
    /// Something, somewhere: the host can't be looked at.
    Somewhere,
    /// Something, at this path.
    At(PathBuf),
}

impl SetAside {
    fn path(self) -> Option<PathBuf> {
        match self {
            Self::Nothing | Self::Somewhere => None,
            Self::At(path) => Some(path),
        }
    }
}

fn set_aside(host: Option<&Host>, state: Option<&ItemState>) -> SetAside {
    let Some(state) = state.filter(|state| may_be_set_aside(state)) else { return SetAside::Nothing };
    match host {
        Some(host) => host.set_aside_at(state).map_or(SetAside::Nothing, SetAside::At),
        None => SetAside::Somewhere,
    }
}

/// Opens the host where everything is that is remembered; none if it is not there.
fn remembered_host(writer: &Writer, graph: &CurrentGraph) -> Result<Option<Host>, CliError> {
    let root = writer.location().and_then(|location| RootIdentity::remembered(&location, graph));
    let Some(root) = root else { return Ok(None) };
    let options = HostOptions::new(root, graph.name().clone());
    Ok(Some(Host::open(options.with_runtime_directory(runtime_directory(writer.dir())))?))
}

fn rename(
    from: &ItemRef,
    to: &ItemRef,
    args: &PathArgs,
    lock: LockArgs,
    report: Report,
) -> Result<u8, CliError> {
    if from.kind() != to.kind() {
        return Err(Error::OtherKind { from: from.clone(), to: to.clone() }.into());
    }
    let (writer, mut graph) =
        lock_to_mend(args, "state mv", lock, std::slice::from_ref(from), false, report)?;
    if from == to {
        if !graph.contains(from) {
            return Err(not_remembered(from, Some(&graph)));
        }
        print(&format!("{from} is called that already: nothing was changed.\n"))?;
        return Ok(0);
    }
    if graph.contains(to) {
        let (from, to) = (from.clone(), to.clone());
        return Err(if graph.contains(&from) {
            Error::NameTaken { from, to }.into()
        } else {
            Error::RenamedAlready { from, to }.into()
        });
    }
    rename::rename(&mut graph, from, to)?;
    writer.save(&graph, None)?;
    read_or_not(print(&format!("{from} is remembered as {to}.\n")))?;
    Ok(0)
}

fn unprotect(items: &[ItemRef], args: &PathArgs, lock: LockArgs, report: Report) -> Result<u8, CliError> {
    let (writer, mut graph) = lock_to_mend(args, "state unprotect", lock, items, false, report)?;
    // Manifests that can't be loaded, or are somewhere else, protect nothing now.
    if let Ok(manifest) = setpoint_host::load_without_contents(&args.file, &[]) {
        let mut declared = items.iter().filter_map(|item| Some((item, manifest.declared(item)?)));
        if let Some((item, declared)) = declared.find(|(_, declared)| declared.prevent_destroy) {
            let (item, declared_in) =
                (item.clone(), format!("{}:{}", declared.file.display(), declared.line));
            return Err(Error::ProtectedByManifest { item, declared_in }.into());
        }
    }
    for item in items {
        let slot = graph.slot_of(item).filter(|&slot| graph.item_at(slot).is_some());
        let slot = slot.ok_or_else(|| not_remembered(item, Some(&graph)))?;
        if let Some(state) = graph.state_at_mut(slot) {
            state.protect(false);
            graph.touch_at(slot);
        }
    }
    writer.save(&graph, None)?;
    for item in items {
        read_or_not(print(&format!("{item} may be deleted from now on.\n")))?;
    }
    Ok(0)
}

/// Becomes the writer of a state that is there, whichever set it is of: where nothing was ever done, nothing is
/// remembered.
fn lock_to_mend(
    args: &PathArgs,
    command: &str,
    lock: LockArgs,
    items: &[ItemRef],
    force: bool,
    report: Report,
) -> Result<(Writer, CurrentGraph), CliError> {
    let state = state_of(args);
    let Some(known) = state.read()? else {
        let item = items.first().ok_or(Error::NoRun)?;
        return Err(not_remembered(item, None));
    };
    let (writer, graph) = lock_state(&state, &known.set, command, lock)?;
    report_damage(writer.damaged(), report);
    // What a run that was cut off left lying about is known from its journal, which ends with the next save.
    if !writer.interrupted_items().is_empty() {
        match remembered_host(&writer, &graph)? {
            Some(host) => drop(sweep(&host, &writer, &graph, report)),
            None if force => {}
            None => return Err(Error::NotSwept.into()),
        }
    }
    Ok((writer, graph))
}

fn import(items: &[ItemRef], args: &SetArgs, lock: LockArgs, report: Report) -> Result<u8, CliError> {
    let set = Set::load(args)?;
    let (writer, mut graph) = set.lock("state import", lock)?;
    report_damage(writer.damaged(), report);
    let host = set.host(&graph)?;
    name_slow_checks(&host, report);
    sweep(&host, &writer, &graph, report);
    let engine = Engine::new(registry(&host));
    for item in items {
        if is_there(&graph, item) {
            return Err(Error::Remembered(item.clone()).into());
        }
        let declared = set.intended().item(item).ok_or_else(|| {
            let declared: Vec<ItemRef> =
                set.intended().items().map(|node| node.reference().clone()).collect();
            Error::NotDeclared(item.clone(), nearest(item, &declared))
        })?;
        let same_place = graph.items().find(|node| {
            node.reference() != item
                && is_there(&graph, node.reference())
                && path_of(node.item()).is_some_and(|path| path_of(declared) == Some(path))
        });
        if let Some(other) = same_place {
            let (item, other) = (item.clone(), other.reference().clone());
            return Err(Error::RememberedAs { item, other }.into());
        }
        let state = ItemState::present(Timestamp::now()).adopted();
        // What failed to be created is remembered as that.
        let _ = graph.del_item(item);
        graph.put_item_with_state(&SubgraphPath::root(), declared.clone(), state)?;
    }
    let wanted = Selection::items(items.iter().cloned());
    let readings = runtime()?.block_on(engine.read_items(engine.readable(&graph, &wanted)));
    let mut differs = false;
    for Reading { was, observed } in readings {
        let item = was.reference();
        let found = match observed {
            Err(why) => return Err(Error::Unreadable(vec![format!("{item}: {why}")]).into()),
            Ok(Observed::Absent) => return Err(Error::NotThere(item.clone()).into()),
            Ok(Observed::Unsupported) => continue,
            Ok(Observed::Present(found)) => found,
        };
        // It was like this before, so that nobody has changed it.
        differs |= found != was;
        graph.put_item(found)?;
    }
    for item in items {
        let (declared, slot) = (set.intended().item(item), graph.slot_of(item));
        if let (Some(declared), Some(slot)) = (declared, slot)
            && let Some(state) = graph.state_at_mut(slot)
        {
            let kept = host.keep_original(declared, state);
            kept.map_err(|error| Error::Unreadable(vec![format!("{item}: {error}")]))?;
            graph.touch_at(slot);
        }
    }
    host.settle(&mut graph);
    writer.save(&graph, None)?;
    for item in items {
        read_or_not(print(&format!("{item} is looked after from now on.\n")))?;
    }
    if differs {
        report.info("Some are not as declared; `setpoint plan` shows what `setpoint apply` would change.");
    }
    Ok(0)
}
