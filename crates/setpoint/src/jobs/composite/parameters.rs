//! The file that holds the parameters that no flag and no variable gives.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::Error;
use crate::error::CliError;

/// Reads parameters from a TOML file. Tables are as good as dots: `[cloud.consul-long-poll]` with `retry-time` below it
/// is `cloud.consul-long-poll.retry-time`.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, CliError> {
    let wrong = |why: String| CliError::from(Error::SettingsFile { path: path.to_owned(), why });
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let mut flat = toml::Table::new();
    flatten(table, "", &mut flat);
    flat.try_into().map_err(|error| wrong(error.to_string().trim().to_owned()))
}

fn flatten(table: toml::Table, before: &str, flat: &mut toml::Table) {
    for (key, value) in table {
        let key = if before.is_empty() { key } else { format!("{before}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(inner, &key, flat),
            value => drop(flat.insert(key, value)),
        }
    }
}
