//! Items that are called differently now, and are what they were.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use setpoint_engine::{CurrentGraph, ItemState};
use setpoint_graph::{Graph, ItemHandle, ItemRef};
use setpoint_host::{Kept, item_types, path_of};
use setpoint_state::Writer;

use super::error::Error;
use super::set::{not_remembered, runtime_directory};
use crate::error::CliError;

/// An item that has another name now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Renamed {
    pub(crate) from: ItemRef,
    pub(crate) to: ItemRef,
}

/// Knows by their new names the items that are remembered, not declared any more, and declared under another name: of the
/// same kind, in the same place.
///
/// Deleting the one and creating the other would come to the same in the end, and in between it would be gone.
pub(crate) fn follow(current: &mut CurrentGraph, intended: &Graph) -> Result<Vec<Renamed>, CliError> {
    let mut undeclared: BTreeMap<(String, String), ItemRef> = BTreeMap::new();
    for node in current.items() {
        let is_known = node.state().is_none_or(|state| !ItemState::is_unknown(state));
        if is_known
            && !intended.contains(node.reference())
            && let Some(key) = key(node.item())
        {
            undeclared.insert(key, node.reference().clone());
        }
    }
    let mut renamed = Vec::new();
    if undeclared.is_empty() {
        return Ok(renamed);
    }
    for node in intended.items().filter(|node| !current.contains(node.reference())) {
        if let Some(from) = key(node.item()).and_then(|key| undeclared.remove(&key)) {
            renamed.push(Renamed { from, to: node.reference().clone() });
        }
    }
    for Renamed { from, to } in &renamed {
        rename(current, from, to)?;
    }
    Ok(renamed)
}

/// What kind of thing an item is, and where.
fn key(item: &ItemHandle) -> Option<(String, String)> {
    path_of(item).map(|path| (item.kind().to_string(), path.to_string()))
}

/// Gives an item that is remembered another name.
pub(crate) fn rename(graph: &mut CurrentGraph, from: &ItemRef, to: &ItemRef) -> Result<(), CliError> {
    let Some(node) = graph.node_of(from) else { return Err(not_remembered(from, Some(graph))) };
    let types = item_types();
    let mut value = types.item_to_value(node.item()).map_err(setpoint_state::StateError::Item)?;
    value["name"] = Value::from(to.name().as_str());
    let renamed = types.item_from_value(to.kind(), value).map_err(setpoint_state::StateError::Item)?;
    let (path, item_state) = (node.path(), node.state().cloned());
    graph.del_item(from)?;
    match item_state {
        Some(item_state) => graph.put_item_with_state(&path, renamed, item_state)?,
        None => graph.put_item_into(&path, renamed)?,
    };
    Ok(())
}

/// Saves the new names of items, and of what is kept of them beside the state.
pub(crate) fn save(writer: &Writer, graph: &CurrentGraph, renamed: &[Renamed]) -> Result<(), CliError> {
    // Under both names until it is known by the new one: whoever is cut off loses nothing.
    let kept = Kept::new(&runtime_directory(writer.dir()));
    for Renamed { from, to } in renamed {
        kept.link(from, to).map_err(|source| Error::Kept { item: from.clone(), source })?;
    }
    writer.save(graph, None)?;
    for Renamed { from, .. } in renamed {
        kept.remove(from);
    }
    Ok(())
}
