//! What goes over the wire.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use setpoint_kv::Entry;
use setpoint_kv::Operation;

/// One key, as Consul lists it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Pair {
    #[serde(alias = "key")]
    key: String,
    #[serde(alias = "value")]
    value: Option<String>,
    #[serde(default)]
    create_index: u64,
    #[serde(default)]
    modify_index: u64,
    #[serde(default, alias = "flags")]
    flags: u64,
}

impl Pair {
    fn entry(self) -> Result<Entry, Error> {
        let Self { key, value, create_index, modify_index, flags } = self;
        let value = value.map(|value| STANDARD.decode(value)).transpose();
        let value = value.map_err(|error| Error::Malformed(format!("the value of `{key}`: {error}")))?;
        Ok(Entry { key, value, create_index, modify_index, flags })
    }
}

/// Reads a list of keys, as `GET /v1/kv/…` gives it and as `consul kv export` writes it, in the order of the keys.
pub fn entries(body: &[u8]) -> Result<Vec<Entry>, Error> {
    let pairs: Vec<Pair> = serde_json::from_slice(body)
        .map_err(|error| Error::Malformed(format!("no list of keys: {error}")))?;
    let mut entries = pairs.into_iter().map(Pair::entry).collect::<Result<Vec<_>, _>>()?;
    entries.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(entries)
}

/// One key without its value.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Version<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    modify_index: u64,
}

/// Reads of a list of keys which folders there are right below a prefix, and for each a number that is another one whenever
/// a key in it is made, changed or removed.
pub(crate) fn folders(prefix: &str, body: &[u8]) -> Result<BTreeMap<String, u64>, Error> {
    let versions: Vec<Version<'_>> = serde_json::from_slice(body)
        .map_err(|error| Error::Malformed(format!("no list of keys: {error}")))?;
    let mut folders: BTreeMap<String, DefaultHasher> = BTreeMap::new();
    for Version { key, modify_index } in &versions {
        if let Some((folder, _)) = key.strip_prefix(prefix).and_then(|rest| rest.split_once('/')) {
            if !folders.contains_key(folder) {
                folders.insert(folder.to_owned(), DefaultHasher::new());
            }
            if let Some(hasher) = folders.get_mut(folder) {
                (key, modify_index).hash(hasher);
            }
        }
    }
    Ok(folders.into_iter().map(|(folder, hasher)| (folder, hasher.finish())).collect())
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct TxnOperation<'a> {
    #[serde(rename = "KV")]
    kv: TxnKv<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct TxnKv<'a> {
    verb: &'static str,
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<u64>,
    index: u64,
}

/// The body of a transaction.
pub(crate) fn transaction(operations: &[Operation<'_>]) -> serde_json::Value {
    serde_json::Value::Array(operations.iter().map(|operation| kv(operation).into_json()).collect())
}

fn kv<'a>(operation: &Operation<'a>) -> TxnKv<'a> {
    match *operation {
        Operation::Set { key, value, flags, index } => {
            let (value, flags) = (Some(STANDARD.encode(value)), Some(flags));
            TxnKv { verb: "cas", key, value, flags, index }
        }
        Operation::Delete { key, index } => {
            TxnKv { verb: "delete-cas", key, value: None, flags: None, index }
        }
        Operation::Check { key, index } => {
            TxnKv { verb: "check-index", key, value: None, flags: None, index }
        }
    }
}

impl TxnKv<'_> {
    fn into_json(self) -> serde_json::Value {
        // Strings and numbers: there is nothing in it that could fail.
        serde_json::to_value(TxnOperation { kv: self }).unwrap_or_default()
    }
}

/// The body of a transaction that reads keys. Of those that begin alike, all are read: of no other verb a missing key is
/// no failure in every version of Consul.
pub(crate) fn reads(prefixes: &[String]) -> serde_json::Value {
    let read = |key: &String| serde_json::json!({ "KV": { "Verb": "get-tree", "Key": key } });
    serde_json::Value::Array(prefixes.iter().map(read).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Results {
    results: Option<Vec<TxnResult>>,
}

#[derive(Deserialize)]
struct TxnResult {
    #[serde(rename = "KV")]
    kv: Pair,
}

/// What a transaction has read.
pub(crate) fn results(body: &str) -> Result<Vec<Entry>, Error> {
    let read: Results = serde_json::from_str(body)
        .map_err(|error| Error::Malformed(format!("no results of a transaction: {error}")))?;
    read.results.unwrap_or_default().into_iter().map(|result| result.kv.entry()).collect()
}

/// The answer of Consul about a transaction that it rolled back.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RolledBack {
    #[serde(default)]
    errors: Option<Vec<TxnError>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TxnError {
    what: String,
}

/// Why a transaction was rolled back.
pub(crate) fn rolled_back(body: &str) -> Error {
    let parsed =
        serde_json::from_str::<RolledBack>(body).ok().and_then(|body| body.errors).unwrap_or_default();
    let what: Vec<_> = parsed.into_iter().map(|error| error.what).collect();
    let message = if what.is_empty() { body.trim().to_owned() } else { what.join("; ") };
    if message.contains("Permission denied") || message.contains("ACL not found") {
        Error::Denied(message)
    } else {
        Error::Conflict(message)
    }
}

/// What a login gives.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct LoggedIn {
    #[serde(rename = "SecretID")]
    pub(crate) secret_id: String,
}
