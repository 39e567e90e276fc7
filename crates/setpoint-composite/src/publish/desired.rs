//! What belongs into the ConfigMap.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::ownership::{MANAGED_BY, PART_OF};

/// The annotation with the index of Consul that the payload was made from.
pub const INDEX_ANNOTATION: &str = "setpoint.dev/source-index";
/// The annotation with the version of the payload's format.
pub const SCHEMA_ANNOTATION: &str = "setpoint.dev/schema-version";
/// The annotation with the transition count of the leader that wrote it.
pub const TRANSITIONS_ANNOTATION: &str = "setpoint.dev/lease-transitions";
/// The annotation with the id of the composite whose structure it holds.
pub const COMPOSITE_ANNOTATION: &str = "setpoint.dev/composite-id";
/// The version of the payload's format.
pub const SCHEMA_VERSION: &str = "1";
/// The key of the payload in the ConfigMap's data.
const DATA: &str = "data";

/// Which ConfigMap, and what marks it as ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The value of the label `app.kubernetes.io/managed-by`, and the name under which fields are managed.
    pub managed_by: String,
    /// The value of the label `app.kubernetes.io/part-of`.
    pub part_of: String,
}

/// What belongs into the ConfigMap.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The payload.
    pub payload: String,
    /// The id of the composite.
    pub composite: String,
    /// The index of Consul that it was made from.
    pub index: u64,
    /// The transition count of this leader.
    pub transitions: i32,
    /// The Composite with which the ConfigMap goes.
    pub owner: OwnerReference,
}

impl Desired {
    /// The ConfigMap with our fields and no others, as a certain version of what is there.
    pub fn object(&self, target: &Target, version: Option<&str>) -> ConfigMap {
        let pairs = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let (index, transitions) = (self.index.to_string(), self.transitions.to_string());
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(target.name.clone()),
                namespace: Some(target.namespace.clone()),
                resource_version: version.map(str::to_owned),
                labels: Some(pairs(&[(MANAGED_BY, &target.managed_by), (PART_OF, &target.part_of)])),
                annotations: Some(pairs(&[
                    (COMPOSITE_ANNOTATION, &self.composite),
                    (INDEX_ANNOTATION, &index),
                    (SCHEMA_ANNOTATION, SCHEMA_VERSION),
                    (TRANSITIONS_ANNOTATION, &transitions),
                ])),
                owner_references: Some(vec![self.owner.clone()]),
                ..ObjectMeta::default()
            },
            data: Some(pairs(&[(DATA, &self.payload)])),
            ..ConfigMap::default()
        }
    }

    /// Returns whether all our fields are as they should be, whatever else is there.
    pub fn is_met_by(&self, current: &ConfigMap, target: &Target) -> bool {
        let wanted = self.object(target, None);
        let holds = |wanted: &Option<BTreeMap<String, String>>, found: &Option<BTreeMap<String, String>>| {
            let found = found.as_ref();
            wanted.iter().flatten().all(|(key, value)| found.and_then(|found| found.get(key)) == Some(value))
        };
        let mut owners = current.metadata.owner_references.iter().flatten();
        holds(&wanted.data, &current.data)
            && holds(&wanted.metadata.labels, &current.metadata.labels)
            && holds(&wanted.metadata.annotations, &current.metadata.annotations)
            && owners.any(|owner| *owner == self.owner)
    }
}

/// The payload of a ConfigMap.
pub fn payload_of(current: &ConfigMap) -> Option<&str> {
    current.data.as_ref()?.get(DATA).map(String::as_str)
}

/// A number in an annotation.
pub(super) fn annotated<T: std::str::FromStr>(current: &ConfigMap, annotation: &str) -> Option<T> {
    current.metadata.annotations.as_ref()?.get(annotation)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target {
            namespace: "ns".to_owned(),
            name: "composite-structure".to_owned(),
            managed_by: "core-operator".to_owned(),
            part_of: "Cloud-Core".to_owned(),
        }
    }

    fn desired() -> Desired {
        let owner = OwnerReference {
            api_version: "core.netcracker.com/v1".to_owned(),
            kind: "Composite".to_owned(),
            name: "composite".to_owned(),
            uid: "1".to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(false),
        };
        Desired { payload: "{}".to_owned(), composite: "x".to_owned(), index: 7, transitions: 3, owner }
    }

    #[test]
    fn what_others_add_is_no_difference_and_what_is_ours_is() {
        let whole = desired().object(&target(), Some("5"));
        assert!(desired().is_met_by(&whole, &target()));

        let mut added = whole.clone();
        added.data.as_mut().unwrap().insert("other".to_owned(), "x".to_owned());
        added.metadata.labels.as_mut().unwrap().insert("team".to_owned(), "x".to_owned());
        assert!(desired().is_met_by(&added, &target()));

        let changes: [fn(&mut ConfigMap); 5] = [
            |map| map.data = None,
            |map| drop(map.metadata.labels.as_mut().unwrap().remove(PART_OF)),
            |map| drop(map.metadata.annotations.as_mut().unwrap().remove(INDEX_ANNOTATION)),
            |map| map.metadata.owner_references = None,
            |map| map.metadata.owner_references.as_mut().unwrap()[0].uid = "2".to_owned(),
        ];
        for change in changes {
            let mut changed = whole.clone();
            change(&mut changed);
            assert!(!desired().is_met_by(&changed, &target()), "{changed:?}");
        }
        assert!(!Desired { transitions: 4, ..desired() }.is_met_by(&whole, &target()));
        assert!(!Desired { payload: "{ }".to_owned(), ..desired() }.is_met_by(&whole, &target()));
    }
}
