//! What would be written, in the terms of any plan.

use setpoint_plan::{Action, AttributeChange, Plan, PlannedOperation};

use super::changes::Changes;
use super::claims::is_claim;
use crate::{Entry, Payload};

/// The kind of thing that a key of Consul is in a plan.
const KEY: &str = "key";
/// The kind of thing that a claim of a key is in a plan.
const CLAIM: &str = "claim";

impl Changes {
    /// Adds an operation for each key to a plan.
    pub fn plan(&self, plan: &mut Plan) {
        let operation = |action, key: &str, reason, old: Option<&String>, new: Option<&String>| {
            let kind = if is_claim(key) { CLAIM } else { KEY };
            let mut operation = PlannedOperation::new(action, kind, key).because(reason);
            operation.detail =
                vec![AttributeChange { attribute: "value".to_owned(), old: old.cloned(), new: new.cloned() }];
            operation
        };
        // A key may be written with the value that it has, because its claims change: that is no difference to anybody.
        for set in self.sets.iter().filter(|set| set.old.as_ref() != Some(&set.value)) {
            plan.push(match &set.old {
                None => operation(
                    Action::Create,
                    &set.key,
                    "it is declared and not there",
                    None,
                    Some(&set.value),
                ),
                old => operation(
                    Action::Modify,
                    &set.key,
                    "its value is not the declared one",
                    old.as_ref(),
                    Some(&set.value),
                ),
            });
        }
        for delete in &self.deletes {
            let reason = "it was declared and is not any more";
            plan.push(operation(Action::Delete, &delete.key, reason, Some(&delete.old), None));
        }
    }
}

/// What entries would be once changes are carried out, in the order of their keys.
pub fn after(present: &[Entry], changes: &Changes) -> Vec<Entry> {
    let gone = |key: &str| {
        changes.deletes.iter().any(|delete| delete.key == key)
            || changes.sets.iter().any(|set| set.key == key)
    };
    let mut entries: Vec<_> = present.iter().filter(|entry| !gone(&entry.key)).cloned().collect();
    entries.extend(changes.sets.iter().map(|set| Entry::new(&set.key, &set.value)));
    entries.sort_by(|one, other| one.key.cmp(&other.key));
    entries
}

/// How the data of a ConfigMap differ from a payload: by its facts, or if these are equal, by how they are written.
pub fn data_changes(present: Option<&str>, payload: &Payload) -> Vec<AttributeChange> {
    let wanted = payload.to_json();
    if present == Some(&wanted) {
        return Vec::new();
    }
    let before = present.and_then(|text| Payload::from_json(text).ok());
    let (old, new) = (before.as_ref().map(Payload::facts).unwrap_or_default(), payload.facts());
    let attributes = old.keys().chain(new.keys().filter(|attribute| !old.contains_key(*attribute)));
    let mut changes: Vec<_> = attributes
        .filter(|attribute| old.get(*attribute) != new.get(*attribute))
        .map(|attribute| AttributeChange {
            attribute: attribute.clone(),
            old: old.get(attribute).cloned(),
            new: new.get(attribute).cloned(),
        })
        .collect();
    changes.sort_by(|one, other| one.attribute.cmp(&other.attribute));
    let unreadable = present.is_some() && before.is_none();
    if changes.is_empty() || unreadable {
        changes = vec![AttributeChange {
            attribute: "data".to_owned(),
            old: present.map(str::to_owned),
            new: Some(wanted),
        }];
    }
    changes
}
