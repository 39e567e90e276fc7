//! How items are stored, and how earlier formats are read.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use setpoint_engine::ItemState;
use setpoint_graph::SubgraphPath;

/// The format of what is stored. A later one is refused, never guessed at.
///
/// 1. Adopted items are in a table of their own.
/// 2. Ownership is part of an item's state. `tainted` and `again` are booleans of it.
/// 3. `tainted` is a `presence`, and `reapply` names the reason in the place of `again`.
/// 4. `metadata`, `last_failure` and `unfinished` are called so, and were `remembered`, `trouble` and `flight`; a `dependence` of
///    an item was a `tie`.
/// 5. Each item has a digest in a table of its own, and so have the values beside the items: damage that can be read is damage.
pub(crate) const FORMAT: u64 = 5;
/// The first format with digests.
pub(crate) const WITH_DIGESTS: u64 = 5;
/// The first format that is read as it is: later ones have other names only, and the old ones are known.
const SAME_STRUCTURE: u64 = 3;

/// An item with its state; the item's own text is left to its type.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredItem<T, S = ItemState> {
    #[serde(default, skip_serializing_if = "SubgraphPath::is_root")]
    pub(crate) path: SubgraphPath,
    pub(crate) item: T,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<S>,
    /// What an operation was to make of it whose end nobody knows.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<T>,
}

/// A digest that differs wherever one byte does (FNV-1a). It finds damage, and keeps nobody from forging.
pub(crate) fn digest<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let step = |digest: u64, byte: u8| (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    texts.into_iter().fold(0xcbf2_9ce4_8422_2325, |digest, text| {
        let digest = text.iter().fold(digest, |digest, &byte| step(digest, byte));
        // No text holds this byte.
        step(digest, 0xff)
    })
}

/// Reads an item that was stored in some format.
pub(crate) fn read_item(format: u64, text: &[u8]) -> Result<StoredItem<&RawValue>, serde_json::Error> {
    if format >= SAME_STRUCTURE {
        return serde_json::from_slice(text);
    }
    let StoredItem { path, item, state, target } =
        serde_json::from_slice::<StoredItem<&RawValue, Value>>(text)?;
    let state = state.map(upgrade_state).map(serde_json::from_value).transpose()?;
    Ok(StoredItem { path, item, state, target })
}

/// Turns the state of an item from the second format to the third.
fn upgrade_state(mut state: Value) -> Value {
    let Some(fields) = state.as_object_mut() else { return state };
    let is_set = |value: Option<Value>| value == Some(Value::Bool(true));
    if is_set(fields.remove("tainted")) && fields.get("presence").is_some_and(|found| found == "present") {
        fields.insert("presence".into(), "tainted".into());
    }
    if is_set(fields.remove("again")) {
        let absent = fields.get("presence").is_some_and(|found| found == "absent");
        let reason = if absent { "recreation_interrupted" } else { "another_item_changed" };
        fields.insert("reapply".into(), reason.into());
    }
    state
}
