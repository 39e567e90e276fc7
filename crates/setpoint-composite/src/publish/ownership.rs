//! Whose ConfigMap it is.

use std::fmt;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::api::GROUP;

/// The label that names the operator that manages an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The label that names the application that an object is a part of.
pub const PART_OF: &str = "app.kubernetes.io/part-of";

/// Whose ConfigMap it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Nobody has made it yet: it is ours to make.
    Absent,
    /// It is ours, or nobody's.
    Ours,
    /// Its label names another operator.
    HandedOver {
        /// Which one.
        to: String,
    },
    /// Another object controls it.
    Controlled {
        /// Which one, as kind and name.
        by: String,
    },
}

impl Ownership {
    /// Returns whether we may write it.
    pub fn is_ours(&self) -> bool {
        matches!(self, Self::Absent | Self::Ours)
    }
}

impl fmt::Display for Ownership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("the ConfigMap is not there"),
            Self::Ours => f.write_str("the ConfigMap is managed here"),
            Self::HandedOver { to } => write!(f, "the ConfigMap is managed by `{to}`"),
            Self::Controlled { by } => write!(f, "the ConfigMap is controlled by {by}"),
        }
    }
}

/// Whose ConfigMap it is, given the name under which we manage ours.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use setpoint_composite::publish::{Ownership, ownership};
///
/// assert_eq!(ownership(None, "core-operator"), Ownership::Absent);
/// assert_eq!(ownership(Some(&ConfigMap::default()), "core-operator"), Ownership::Ours);
/// ```
pub fn ownership(current: Option<&ConfigMap>, managed_by: &str) -> Ownership {
    let Some(current) = current else { return Ownership::Absent };
    let label = current.metadata.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY));
    if let Some(other) = label.filter(|label| *label != managed_by) {
        return Ownership::HandedOver { to: other.clone() };
    }
    let references = current.metadata.owner_references.iter().flatten();
    let mut foreign = references.filter(|owner| owner.controller == Some(true) && !is_composite(owner));
    match foreign.next() {
        Some(owner) => Ownership::Controlled { by: format!("{} {}", owner.kind, owner.name) },
        None => Ownership::Ours,
    }
}

/// Returns whether a reference is to a Composite. One that is gone, or was made anew, is as much ours as the present one.
pub(super) fn is_composite(owner: &OwnerReference) -> bool {
    let group = owner.api_version.split_once('/').map(|(group, _)| group);
    owner.kind == "Composite" && group == Some(GROUP)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(metadata: &Value) -> Ownership {
        let current = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        ownership(Some(&current), "core-operator")
    }

    // The cases of ConfigMapClient upstream.

    #[test]
    fn should_be_managed_if_the_config_map_does_not_exist() {
        assert_eq!(ownership(None, "core-operator"), Ownership::Absent);
        assert!(Ownership::Absent.is_ours());
    }

    #[test]
    fn should_be_managed_without_labels() {
        assert_eq!(found(&json!({})), Ownership::Ours);
        assert_eq!(found(&json!({ "labels": null })), Ownership::Ours);
        assert_eq!(found(&json!({ "labels": {} })), Ownership::Ours);
    }

    #[test]
    fn should_be_managed_without_the_managed_by_label() {
        assert_eq!(found(&json!({ "labels": { "app": "x" } })), Ownership::Ours);
    }

    #[test]
    fn should_be_managed_if_the_label_names_us() {
        assert_eq!(found(&json!({ "labels": { MANAGED_BY: "core-operator" } })), Ownership::Ours);
    }

    #[test]
    fn should_not_be_managed_if_the_label_names_another() {
        let other = found(&json!({ "labels": { MANAGED_BY: "topology-operator" } }));
        assert_eq!(other, Ownership::HandedOver { to: "topology-operator".to_owned() });
        assert!(!other.is_ours());
    }

    #[test]
    fn a_blank_label_names_somebody_else() {
        assert!(!found(&json!({ "labels": { MANAGED_BY: "" } })).is_ours());
    }

    #[test]
    fn a_foreign_controller_is_lost_ownership_and_a_composite_is_none() {
        let owned = |api_version: &str, kind: &str, controller: bool| {
            let owner = json!({ "apiVersion": api_version, "kind": kind, "name": "x", "uid": "1", "controller": controller });
            found(&json!({ "ownerReferences": [owner] }))
        };
        assert_eq!(owned("core.netcracker.com/v1", "Composite", true), Ownership::Ours);
        assert_eq!(owned("apps/v1", "Deployment", false), Ownership::Ours);
        assert_eq!(
            owned("apps/v1", "Deployment", true),
            Ownership::Controlled { by: "Deployment x".to_owned() }
        );
        assert!(!owned("other.example/v1", "Composite", true).is_ours());
    }
}
