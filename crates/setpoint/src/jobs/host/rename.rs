//! Items that are called differently now, and are what they were.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use setpoint_engine::{CurrentGraph, ItemState, OpError, Operation, Refreshed};
use setpoint_graph::{Graph, Item as _, ItemHandle, ItemRef, SlotId};
use setpoint_host::{Command, Directory, Host, RootPath, item_types, path_of};
use setpoint_state::{Run, RunDetails, RunEntry, RunOutcome, Writer};

use super::set::{is_adopted, is_there, not_remembered};
use crate::error::CliError;

/// An item that has another name now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Renamed {
    pub(crate) from: ItemRef,
    pub(crate) to: ItemRef,
}

/// The items that are remembered, not declared any more, and declared under another name: of the same kind, in the same place, or
/// the same state that commands bring about.
///
/// Deleting the one and creating the other would come to the same in the end, and in between it would be gone. A state that another
/// command brings about as well, which is remembered, would be gone even then.
pub(crate) fn called_differently(current: &CurrentGraph, intended: &Graph) -> Vec<Renamed> {
    let mut undeclared: BTreeMap<(String, String), ItemRef> = BTreeMap::new();
    for node in current.items().filter(|node| !intended.contains(node.reference())) {
        if let Some(key) = key(node.item()) {
            undeclared.insert(key, node.reference().clone());
        }
    }
    let mut renamed = Vec::new();
    if undeclared.is_empty() {
        return renamed;
    }
    let (known, new): (Vec<_>, Vec<_>) =
        intended.items().partition(|node| current.contains(node.reference()));
    // One thing has one place: only commands of several names may be about the same.
    let known = known.into_iter().filter(|node| node.item().get::<Command>().is_some());
    for node in new.into_iter().chain(known) {
        if let Some(from) = key(node.item()).and_then(|key| undeclared.remove(&key)) {
            renamed.push(Renamed { from, to: node.reference().clone() });
        }
    }
    renamed
}

/// Knows by their new names the items that are called differently now. Those of which nobody knows how their last operation ended
/// are read by the name that they had then: [`follow_read`] is for them.
pub(crate) fn follow(current: &mut CurrentGraph, intended: &Graph) -> Result<Vec<Renamed>, CliError> {
    let mut renamed = called_differently(current, intended);
    renamed.retain(|one| !current.state(&one.from).is_some_and(ItemState::is_unknown));
    rename_all(current, &renamed)?;
    Ok(renamed)
}

/// Knows by their new names also the items of which nobody knew how their last operation ended, now that they were read. One that
/// can't be read keeps its name, and nothing is made by the new one: that can't be read either.
pub(crate) fn follow_read(
    current: &mut CurrentGraph,
    intended: &Graph,
    refreshed: &mut Refreshed,
) -> Result<Vec<Renamed>, CliError> {
    let mut renamed = called_differently(current, intended);
    renamed.retain(|Renamed { from, to }| {
        let is_unreadable = refreshed.unreadable.iter().any(|(item, _)| item == from);
        if is_unreadable {
            let why = OpError::untouched(format!("it was called {from} before, which can't be read"));
            refreshed.unreadable.push((to.clone(), why));
        }
        !is_unreadable
    });
    rename_all(current, &renamed)?;
    for drifted in &mut refreshed.drifted {
        if let Some(one) = renamed.iter().find(|one| one.from == drifted.item) {
            drifted.item = one.to.clone();
        }
    }
    Ok(renamed)
}

fn rename_all(current: &mut CurrentGraph, renamed: &[Renamed]) -> Result<(), CliError> {
    renamed.iter().try_for_each(|Renamed { from, to }| {
        if current.contains(to) { merge(current, from, to) } else { rename(current, from, to) }
    })
}

/// Forgets a command that brought about what another one that is remembered does as well: that one has it from now on.
fn merge(graph: &mut CurrentGraph, from: &ItemRef, to: &ItemRef) -> Result<(), CliError> {
    let was_made_here = is_there(graph, from) && !is_adopted(graph, from);
    let dependents = dependents_of(graph, from);
    graph.del_item(from)?;
    if was_made_here
        && let Some(slot) = graph.slot_of(to)
        && let Some(state) = graph.state_at_mut(slot)
    {
        state.own();
        graph.touch_at(slot);
    }
    dependents.iter().try_for_each(|dependent| need_by_new_name(graph, dependent, from, to))
}

/// All that needs an item.
fn dependents_of(graph: &CurrentGraph, item: &ItemRef) -> Vec<ItemRef> {
    let edges = graph.slot_of(item).map_or(&[][..], |slot| graph.incoming_at(slot));
    let dependents: BTreeSet<SlotId> = edges.iter().map(|edge| edge.slot).collect();
    dependents.into_iter().filter_map(|slot| graph.reference_at(slot).cloned()).collect()
}

/// Finds directories that are to move to where one is that nobody declared, and that can't make room as it holds what is not
/// Setpoint's: that one is theirs then, and what they were is one that nobody declares any more.
pub(crate) fn take_undeclared(
    current: &mut CurrentGraph,
    intended: &Graph,
    host: &Host,
) -> Result<Vec<Renamed>, CliError> {
    let undeclared: BTreeMap<&RootPath, &ItemRef> = current
        .items()
        .filter(|node| !intended.contains(node.reference()) && is_there(current, node.reference()))
        .filter_map(|node| {
            let directory = node.item().get::<Directory>().filter(|directory| directory.implicit)?;
            Some((&directory.path, node.reference()))
        })
        .collect();
    if undeclared.is_empty() {
        return Ok(Vec::new());
    }
    // What is Setpoint's and stays where it is keeps a directory in use as well.
    let leaving: BTreeSet<&str> = current
        .items()
        .filter_map(|node| {
            let stays = intended.item(node.reference()).and_then(path_of);
            path_of(node.item()).filter(|path| stays != Some(path)).map(RootPath::as_str)
        })
        .collect();
    let mut renamed = Vec::new();
    for node in intended.items() {
        let (item, Some(new)) = (node.reference(), node.item().get::<Directory>()) else { continue };
        let Some(old) = current.item(item).and_then(|item| item.get::<Directory>()) else { continue };
        let Some(&there) = undeclared.get(&new.path) else { continue };
        let was = ItemRef::of::<Directory>(format!("{}/", old.path));
        let is_free = !current.contains(&was);
        if old.path != new.path && is_free && host.holds_others(&new.path, &leaving) {
            renamed.push(Renamed { from: item.clone(), to: was });
            renamed.push(Renamed { from: there.clone(), to: item.clone() });
        }
    }
    rename_all(current, &renamed)?;
    Ok(renamed)
}

/// The run that did nothing but know items by other names, for the history; none if there are none.
pub(crate) fn run(writer: &Writer, command: &str, renamed: &[Renamed]) -> Option<Run> {
    if renamed.is_empty() {
        return None;
    }
    let now = Timestamp::now();
    let entry = |Renamed { from, to }: &Renamed| RunEntry {
        operation: Operation::Modify,
        kind: to.kind().to_string(),
        name: to.name().to_string(),
        adopted: false,
        started: now,
        ended: Some(now),
        error: None,
        reason: Some(format!("it was called {from} before")),
        changes: vec![format!("name: {} → {}", from.name(), to.name())],
    };
    Some(Run {
        number: writer.begin(command, now, Vec::new(), RunDetails::default()),
        command: command.to_owned(),
        started: now,
        ended: now,
        outcome: RunOutcome::Done,
        drift: Vec::new(),
        entries: renamed.iter().map(entry).collect(),
    })
}

/// What kind of thing an item is, and where; of a command, which state it brings about: that of which `check` asks, or which
/// `undo` takes back. One that has neither is applied under each name.
fn key(item: &ItemHandle) -> Option<(String, String)> {
    let of_command = |command: &Command| {
        let Command { check, apply, undo, env, cwd, .. } = command;
        let state = match (check, undo) {
            (Some(_), _) => serde_json::to_string(&(check, env, cwd)),
            (None, Some(_)) => serde_json::to_string(&(apply, undo, env, cwd)),
            (None, None) => return None,
        };
        state.ok()
    };
    let key = path_of(item).map(ToString::to_string).or_else(|| item.get::<Command>().and_then(of_command));
    key.map(|key| (item.kind().to_string(), key))
}

/// Gives an item that is remembered another name.
pub(crate) fn rename(graph: &mut CurrentGraph, from: &ItemRef, to: &ItemRef) -> Result<(), CliError> {
    let Some(node) = graph.node_of(from) else { return Err(not_remembered(from, Some(graph))) };
    let renamed = named(node.item(), to)?;
    let (path, item_state) = (node.path(), node.state().cloned());
    // What an operation that was cut off was to make of it is called the same.
    let target = item_state.as_ref().and_then(ItemState::unfinished_target);
    let target = target.map(|target| named(target, to)).transpose()?;
    let item_state = item_state.map(|state| state.with_unfinished_target(target));
    let dependents = dependents_of(graph, from);
    graph.del_item(from)?;
    match item_state {
        Some(item_state) => graph.put_item_with_state(&path, renamed, item_state)?,
        None => graph.put_item_into(&path, renamed)?,
    };
    dependents.iter().try_for_each(|dependent| need_by_new_name(graph, dependent, from, to))
}

/// The same item by another name.
fn named(item: &ItemHandle, to: &ItemRef) -> Result<ItemHandle, CliError> {
    let types = item_types();
    let mut value = types.item_to_value(item).map_err(setpoint_state::StateError::Item)?;
    value["name"] = Value::from(to.name().as_str());
    if *to.kind() == Directory::KIND && to.name().as_str().ends_with('/') {
        // So only directories are called that nobody declares.
        value["implicit"] = Value::from(true);
    }
    Ok(types.item_from_value(to.kind(), value).map_err(setpoint_state::StateError::Item)?)
}

/// Lets an item need another one by its new name: what it stands on is the same.
fn need_by_new_name(
    graph: &mut CurrentGraph,
    dependent: &ItemRef,
    from: &ItemRef,
    to: &ItemRef,
) -> Result<(), CliError> {
    let Some(node) = graph.node_of(dependent) else { return Ok(()) };
    let (path, state) = (node.path(), node.state().cloned());
    let changed = needing(node.item(), from, to)?;
    let target = state.as_ref().and_then(ItemState::unfinished_target);
    let target = target.map(|target| needing(target, from, to)).transpose()?;
    match state {
        Some(state) if target.is_some() => {
            graph.put_item_with_state(&path, changed, state.with_unfinished_target(target))?
        }
        _ => graph.put_item_into(&path, changed)?,
    };
    Ok(())
}

/// The same item, needing another one by its new name.
fn needing(item: &ItemHandle, from: &ItemRef, to: &ItemRef) -> Result<ItemHandle, CliError> {
    let types = item_types();
    let mut value = types.item_to_value(item).map_err(setpoint_state::StateError::Item)?;
    let (old, new) = (serde_json::json!(from), serde_json::json!(to));
    if let Some(needs) = value.get_mut("needs").and_then(Value::as_array_mut) {
        for need in needs.iter_mut().filter_map(|need| need.get_mut("item")).filter(|need| **need == old) {
            need.clone_from(&new);
        }
        // In the order in which manifests give them.
        let text = |need: &Value, field: &str| need["item"][field].as_str().unwrap_or_default().to_owned();
        needs.sort_by_key(|need| (text(need, "kind"), text(need, "name")));
    }
    Ok(types.item_from_value(item.kind(), value).map_err(setpoint_state::StateError::Item)?)
}
