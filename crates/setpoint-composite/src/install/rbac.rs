//! Who may do what: the least that works.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;
use setpoint_kube::manifests::{Access, rule};

use super::{NAME, Options};

/// What an instance may do in a namespace whose Composites it serves.
///
/// A right to create can't be limited to a name; all other rights on ConfigMaps are limited to the one that is published.
/// Nothing may be deleted: what goes is collected with its owner.
pub fn rules(config_map: &str) -> Vec<PolicyRule> {
    vec![
        rule("core.netcracker.com", "composites", &[], &["get", "list", "watch", "patch"]),
        rule("core.netcracker.com", "composites/status", &[], &["update"]),
        rule("", "configmaps", &[], &["create"]),
        rule("", "configmaps", &[config_map], &["get", "list", "watch", "patch"]),
        rule("events.k8s.io", "events", &[], &["create", "patch"]),
    ]
}

/// The account, its roles, and what binds them.
pub fn rbac(options: &Options) -> Vec<Value> {
    let access = Access {
        name: NAME,
        namespace: &options.namespace,
        all_namespaces: options.all_namespaces,
        rules: rules(&options.config_map),
    };
    access.objects()
}
