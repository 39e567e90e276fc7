//! Parameters of long-running commands: how those of the command line stand above those of a file.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

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
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
    #[serde(default)]
    struct Parameters {
        number: Option<u32>,
        switch: Option<bool>,
        names: Vec<String>,
    }

    #[test]
    fn what_is_given_above_stands_and_the_rest_comes_from_below() {
        let below = Parameters { number: Some(1), switch: Some(true), names: vec!["a".to_owned()] };
        let above = Parameters { switch: Some(false), ..Parameters::default() };
        let both = overlay(&above, &below).unwrap();
        assert_eq!(both, Parameters { number: Some(1), switch: Some(false), names: vec!["a".to_owned()] });
        assert_eq!(overlay(&below, &above).unwrap(), below);
    }
}
