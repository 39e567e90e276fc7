//! Parameters as people write them: times, and the file that holds those that no flag and no variable gives.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, DeserializeOwned, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::Error;
use crate::error::CliError;

/// A length of time: 30s, 5m, or a bare number of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if let Ok(milliseconds) = text.parse() {
            return Ok(Self(Duration::from_millis(milliseconds)));
        }
        let parsed: jiff::SignedDuration = text
            .parse()
            .map_err(|_| format!("`{text}` is no time: write 30s, 5m, or a number of milliseconds"))?;
        Duration::try_from(parsed).map(Self).map_err(|_| "a time must not be negative".to_owned())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"30s\", or a number of milliseconds")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Time, E> {
                match u64::try_from(number) {
                    Ok(milliseconds) => self.visit_u64(milliseconds),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
                }
            }

            fn visit_u64<E: de::Error>(self, milliseconds: u64) -> Result<Time, E> {
                Ok(Time(Duration::from_millis(milliseconds)))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A time, if it is given.
pub(crate) fn time(given: Option<Time>, default: Duration) -> Duration {
    given.map_or(default, |Time(time)| time)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_with_a_unit_or_in_milliseconds() {
        for (text, milliseconds) in
            [("3000", 3_000), ("3s", 3_000), ("5m", 300_000), ("500ms", 500), ("1h 30m", 5_400_000)]
        {
            assert_eq!(text.parse(), Ok(Time(Duration::from_millis(milliseconds))), "{text}");
        }
        for text in ["", "-3s", "soon", "3 parsecs"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
    }
}
