//! Drift: reads every item of the current graph from the disk, and corrects the graph.

use std::fmt;
use std::io;

use jiff::Timestamp;
use serde::Serialize;
use setpoint_engine::{CurrentGraph, ItemState, Observed};
use setpoint_graph::{Attributes, ItemHandle, ItemRef};

use super::configure::{Directories, Files};
use super::item::{Directory, File};
use super::sandbox::Sandbox;
use crate::error::CliError;

/// One item that is not as the engine left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Drift {
    /// Which item.
    pub(crate) item: ItemRef,
    /// What was found, in words.
    pub(crate) found: String,
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.item, self.found)
    }
}

/// Reads all items that the current graph says exist, makes the graph say what is really there, and tells
/// what was different.
pub(crate) fn refresh(
    current: &mut CurrentGraph,
    sandbox: &Sandbox,
    now: Timestamp,
) -> Result<Vec<Drift>, CliError> {
    let known: Vec<ItemHandle> =
        current.items().map(|node| node.item().clone()).filter(|item| !item.external()).collect();
    let mut drift = Vec::new();
    for known in known {
        let item = known.reference();
        let found = match read(&known, sandbox) {
            Ok(Some(found)) if found == known => continue,
            Ok(Some(found)) => {
                let words = difference(&known, &found);
                let path = current.path_of(item).unwrap_or_default();
                current.put_item_with_state(&path, found, ItemState::present(now))?;
                words
            }
            Ok(None) => {
                current.del_item(item)?;
                "is gone".to_owned()
            }
            Err(error) => return Err(CliError::Read { what: item.to_string(), why: error.to_string() }),
        };
        drift.push(Drift { item: item.clone(), found });
    }
    Ok(drift)
}

/// Reads an item from the disk; none if it is not there.
fn read(item: &ItemHandle, sandbox: &Sandbox) -> io::Result<Option<ItemHandle>> {
    if let Some(file) = item.get::<File>() {
        Files(sandbox.clone()).observe(file).map(present)
    } else if let Some(directory) = item.get::<Directory>() {
        Directories(sandbox.clone()).observe(directory).map(present)
    } else {
        Ok(Some(item.clone()))
    }
}

fn present<T: Into<ItemHandle>>(observed: Observed<T>) -> Option<ItemHandle> {
    match observed {
        Observed::Present(item) => Some(item.into()),
        Observed::Absent | Observed::Unsupported => None,
    }
}

/// Which attributes differ, in words.
fn difference(known: &ItemHandle, found: &ItemHandle) -> String {
    let (known, found) = (known.attributes(), found.attributes());
    let value = |attributes: &Attributes, name: &str| {
        attributes.iter().find(|attribute| attribute.name == name).map(|attribute| attribute.value.clone())
    };
    let differing: Vec<String> = found
        .iter()
        .filter(|attribute| value(&known, attribute.name).as_ref() != Some(&attribute.value))
        .map(|attribute| match value(&known, attribute.name) {
            Some(before) => format!("{}: {before} → {}", attribute.name, attribute.value),
            None => format!("{}: {}", attribute.name, attribute.value),
        })
        .collect();
    format!("has changed, {}", differing.join(", "))
}
