//! What runs that were cut off have left on the managed system and could not be removed since: it is remembered by the items that
//! it is of, which may not be there themselves.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use setpoint_graph::{ItemHandle, ItemTypes, Kind};

use super::Store;
use crate::StateError;

/// The key of the list.
pub(super) const KEY: &str = "left_over";

#[derive(Serialize, Deserialize)]
struct StoredLeft {
    kind: Kind,
    item: Value,
}

impl Store {
    /// The items as a text.
    pub(super) fn left_to_text(&self, items: &[ItemHandle], types: &ItemTypes) -> Result<String, StateError> {
        let stored = |item: &ItemHandle| -> Result<StoredLeft, StateError> {
            Ok(StoredLeft { kind: item.kind().clone(), item: types.item_to_value(item)? })
        };
        let stored: Vec<StoredLeft> = items.iter().map(stored).collect::<Result<_, _>>()?;
        serde_json::to_string(&stored).map_err(|source| self.broken_left(source))
    }

    /// The items of a text.
    pub(super) fn left_from_text(
        &self,
        text: &str,
        types: &ItemTypes,
    ) -> Result<Vec<ItemHandle>, StateError> {
        let stored: Vec<StoredLeft> =
            serde_json::from_str(text).map_err(|source| self.broken_left(source))?;
        let read = |StoredLeft { kind, item }| {
            types.item_from_value(&kind, item).map_err(|why| StateError::BrokenItem {
                path: self.path.clone(),
                why: format!("of what was left: {why}"),
            })
        };
        stored.into_iter().map(read).collect()
    }

    fn broken_left(&self, source: serde_json::Error) -> StateError {
        StateError::Broken { path: self.path.clone(), what: "the list of what was left".to_owned(), source }
    }
}
