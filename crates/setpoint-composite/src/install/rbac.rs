//! Who may do what: the least that works.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

use super::{NAME, Options};

fn rule(group: &str, resource: &str, names: &[&str], verbs: &[&str]) -> PolicyRule {
    let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(list(&[group])),
        resources: Some(list(&[resource])),
        resource_names: (!names.is_empty()).then(|| list(names)),
        verbs: list(verbs),
        ..PolicyRule::default()
    }
}

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

/// What an instance may do in the namespace of the Lease.
pub fn lease_rules(lease: &str) -> Vec<PolicyRule> {
    vec![
        rule("coordination.k8s.io", "leases", &[], &["create"]),
        rule("coordination.k8s.io", "leases", &[lease], &["get", "update"]),
    ]
}

/// The account, its roles, and what binds them.
pub fn rbac(options: &Options) -> Vec<Value> {
    let namespace = &options.namespace;
    let labels = json!({ "app.kubernetes.io/name": NAME });
    let metadata = |name: &str| json!({ "name": name, "namespace": namespace, "labels": labels });
    let wide = |name: &str| json!({ "name": name, "labels": labels });
    let lease = format!("{NAME}-leader");
    let subjects = json!([{ "kind": "ServiceAccount", "name": NAME, "namespace": namespace }]);
    let role = |kind: &str, metadata: Value, rules: Vec<PolicyRule>| json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules });
    let bind = |kind: &str, metadata: Value, to: &str, name: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": to, "name": name },
            "subjects": subjects,
        })
    };
    let work = rules(&options.config_map);
    let (work, binding) = if options.all_namespaces {
        let binding = bind("ClusterRoleBinding", wide(NAME), "ClusterRole", NAME);
        (role("ClusterRole", wide(NAME), work), binding)
    } else {
        (role("Role", metadata(NAME), work), bind("RoleBinding", metadata(NAME), "Role", NAME))
    };
    vec![
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(NAME) }),
        work,
        binding,
        role("Role", metadata(&lease), lease_rules(NAME)),
        bind("RoleBinding", metadata(&lease), "Role", &lease),
    ]
}
