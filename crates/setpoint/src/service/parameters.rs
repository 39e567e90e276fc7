//! Parameters of long-running commands: lengths of time, and how those of the command line stand above those of a file.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, DeserializeOwned, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

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

/// What is given above, and where nothing is, what is given below. `null` and an empty list count as not given.
pub(crate) fn overlay<T: Serialize + DeserializeOwned>(above: &T, below: &T) -> serde_json::Result<T> {
    let given = |parameters: &T| -> serde_json::Result<Map<String, Value>> {
        let mut all: Map<String, Value> = serde_json::from_value(serde_json::to_value(parameters)?)?;
        all.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
        Ok(all)
    };
    let mut both = given(below)?;
    both.extend(given(above)?);
    serde_json::from_value(Value::Object(both))
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

    #[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
    #[serde(default)]
    struct Parameters {
        time: Option<Time>,
        switch: Option<bool>,
        names: Vec<String>,
    }

    #[test]
    fn what_is_given_above_stands_and_the_rest_comes_from_below() {
        let second = Some(Time(Duration::from_secs(1)));
        let below = Parameters { time: second, switch: Some(true), names: vec!["a".to_owned()] };
        let above = Parameters { switch: Some(false), ..Parameters::default() };
        let both = overlay(&above, &below).unwrap();
        assert_eq!(both, Parameters { time: second, switch: Some(false), names: vec!["a".to_owned()] });
        assert_eq!(overlay(&below, &above).unwrap(), below);
    }
}
