//! Drift in words: what reading the disk showed.

use std::fmt;

use serde::Serialize;
use setpoint_engine::Drifted;
use setpoint_graph::{Attributes, ItemHandle, ItemRef};

/// One item that is not as the engine left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Drift {
    item: ItemRef,
    found: String,
}

impl From<&Drifted> for Drift {
    fn from(drifted: &Drifted) -> Self {
        let found = match &drifted.found {
            None => "is gone".to_owned(),
            Some(found) => format!("has changed, {}", difference(&drifted.was, found)),
        };
        Self { item: drifted.item.clone(), found }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.item, self.found)
    }
}

/// Which attributes differ, in words.
fn difference(was: &ItemHandle, found: &ItemHandle) -> String {
    let (was, found) = (was.attributes(), found.attributes());
    let value = |attributes: &Attributes, name: &str| {
        attributes.iter().find(|attribute| attribute.name == name).map(|attribute| attribute.value.clone())
    };
    let differing: Vec<String> = found
        .iter()
        .filter_map(|attribute| match value(&was, attribute.name) {
            Some(before) if before == attribute.value => None,
            Some(before) => Some(format!("{}: {before} → {}", attribute.name, attribute.value)),
            None => Some(format!("{}: {}", attribute.name, attribute.value)),
        })
        .collect();
    differing.join(", ")
}
