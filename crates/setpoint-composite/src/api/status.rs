//! The status of a Composite.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// How many issues are listed one by one.
pub const MAX_ISSUES: usize = 20;

/// What is known of a Composite.
// It is read from whatever is there: core-operator writes other fields, and conditions of another form, into the same place.
// What can't be read counts as absent, and is written anew. (This is no part of the definition's description.)
#[derive(Clone, Debug, Default, PartialEq, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositeStatus {
    /// The generation that the conditions are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How far it is, in one word, as core-operator says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The id of the composite that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composite_id: Option<String>,
    /// The role of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The keys in Consul that belong to it. They are listed before they are written and until they are removed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub owned_keys: BTreeSet<String>,
    /// What the ConfigMap was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// Entries in Consul that could not be used, the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<StatusIssue>,
    /// How many entries in Consul could not be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "optional_count")]
    pub issue_count: Option<u32>,
    /// The transition count of the leader that wrote this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_transitions: Option<i32>,
    /// What holds and what does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

impl<'de> Deserialize<'de> for CompositeStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let conditions: Vec<Value> = field(&mut fields, "conditions");
        let issues: Vec<Value> = field(&mut fields, "issues");
        Ok(Self {
            observed_generation: field(&mut fields, "observedGeneration"),
            phase: field(&mut fields, "phase"),
            composite_id: field(&mut fields, "compositeId"),
            role: field(&mut fields, "role"),
            owned_keys: field(&mut fields, "ownedKeys"),
            published: field(&mut fields, "published"),
            issues: readable(issues),
            issue_count: field(&mut fields, "issueCount"),
            lease_transitions: field(&mut fields, "leaseTransitions"),
            conditions: readable(conditions),
        })
    }
}

/// A field, if it is there and can be read.
fn field<T: DeserializeOwned + Default>(fields: &mut Map<String, Value>, name: &str) -> T {
    fields.remove(name).and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default()
}

/// Those of a list that can be read.
fn readable<T: DeserializeOwned>(values: Vec<Value>) -> Vec<T> {
    values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect()
}

/// How far a Composite is, in the words of core-operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Phase {
    /// Not everything is known yet.
    Updating,
    /// Everything is as it should be.
    Updated,
    /// Something failed, and is tried again.
    BackingOff,
    /// What it declares makes no sense.
    InvalidConfiguration,
    /// Another Composite of the namespace stands before it.
    WaitingForDependency,
}

/// The roles of a namespace in a composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// It is the baseline, or a part of it.
    Baseline,
    /// It belongs to a baseline.
    Satellite,
}

/// What the ConfigMap was made from, when, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// The name of the ConfigMap.
    pub config_map: String,
    /// The index of Consul that was last applied.
    #[schemars(schema_with = "count")]
    pub index: u64,
    /// When it was applied.
    #[schemars(schema_with = "time")]
    pub at: Time,
    /// The instance that applied it.
    pub by: String,
}

/// An entry in Consul that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusIssue {
    /// What is wrong, in one word for programs.
    pub kind: String,
    /// The key or group of namespaces.
    pub subject: String,
    /// What is wrong, for people.
    pub message: String,
}

/// A number that the API server knows the format of.
fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0 })
}

fn optional_count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0, "nullable": true })
}

fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// The schema of `metav1.Condition`, with the limits that the conventions give.
fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": { "type": "string", "maxLength": 316 },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "reason": { "type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$" },
                "message": { "type": "string", "maxLength": 32768 },
                "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
                "lastTransitionTime": { "type": "string", "format": "date-time" },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_of_core_operator_is_read_as_far_as_it_can_be() {
        let status: CompositeStatus = serde_json::from_value(json!({
            "phase": "Updated",
            "observedGeneration": 3,
            "requestId": "1",
            "processed-by-operator-ver": "x",
            "conditions": [
                { "type": "Validated", "status": true, "reason": "", "message": "",
                  "lastTransitionTime": "Tue Nov 17 10:00:00 UTC 2026" },
                { "type": "Synced", "status": "True", "reason": "Written", "message": "",
                  "lastTransitionTime": "2026-11-17T10:00:00Z" },
            ],
            "ownedKeys": "none",
        }))
        .unwrap();
        assert_eq!(status.observed_generation, Some(3));
        assert_eq!(status.phase, Some(Phase::Updated));
        assert_eq!(status.conditions.iter().map(|one| one.type_.as_str()).collect::<Vec<_>>(), ["Synced"]);
        assert!(status.owned_keys.is_empty());
    }
}
