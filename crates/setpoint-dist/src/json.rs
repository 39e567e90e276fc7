//! JSON whose bytes depend on nothing but the values: keys are sorted, whatever order they were given in.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Writes a value in one line.
pub(crate) fn line(value: &Value) -> Vec<u8> {
    sorted(value).to_string().into_bytes()
}

/// Writes a value for people, with a line for each member.
pub(crate) fn pretty(value: &Value) -> Vec<u8> {
    // A value that is in memory can be written.
    let mut text = serde_json::to_vec_pretty(&sorted(value)).unwrap_or_default();
    text.push(b'\n');
    text
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().collect();
            let members = members.into_iter().map(|(name, value)| (name.clone(), sorted(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(values) => Value::Array(values.iter().map(sorted).collect()),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value: Value = serde_json::from_str(r#"{"b": [{"d": 1, "c": 2}], "a": null}"#).unwrap();
        assert_eq!(line(&value), br#"{"a":null,"b":[{"c":2,"d":1}]}"#);
    }
}
