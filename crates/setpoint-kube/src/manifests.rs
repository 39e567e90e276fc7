//! The rights and the workload that install a controller, as data.

use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::{Value, json};

/// Makes one rule: verbs on a resource of a group, limited to names if there are any.
///
/// ```
/// let rule = setpoint_kube::manifests::rule("", "configmaps", &["shop"], &["get"]);
/// assert_eq!(rule.resource_names, Some(vec!["shop".to_owned()]));
/// ```
pub fn rule(group: &str, resource: &str, names: &[&str], verbs: &[&str]) -> PolicyRule {
    let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(list(&[group])),
        resources: Some(list(&[resource])),
        resource_names: (!names.is_empty()).then(|| list(names)),
        verbs: list(verbs),
        ..PolicyRule::default()
    }
}

/// What a candidate for the leadership may do in the namespace of the Lease.
pub fn lease_rules(lease: &str) -> Vec<PolicyRule> {
    vec![
        rule("coordination.k8s.io", "leases", &[], &["create"]),
        rule("coordination.k8s.io", "leases", &[lease], &["get", "update"]),
    ]
}

/// What an account may do.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    /// The name of the account, of its role, and of the Lease.
    pub name: &'a str,
    /// The namespace of the account.
    pub namespace: &'a str,
    /// Whether the rules hold in all namespaces, or only in that of the account.
    pub all_namespaces: bool,
    /// What it may do for its work.
    pub rules: Vec<PolicyRule>,
}

impl Access<'_> {
    /// Returns the account, its roles, and what binds them.
    pub fn objects(&self) -> Vec<Value> {
        let (name, namespace) = (self.name, self.namespace);
        let labels = json!({ "app.kubernetes.io/name": name });
        let metadata = |name: &str| json!({ "name": name, "namespace": namespace, "labels": labels });
        let wide = |name: &str| json!({ "name": name, "labels": labels });
        let lease = format!("{name}-leader");
        let subjects = json!([{ "kind": "ServiceAccount", "name": name, "namespace": namespace }]);
        let role = |kind: &str, metadata: Value, rules: &[PolicyRule]| json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules });
        let bind = |kind: &str, metadata: Value, to: &str, name: &str| {
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": kind,
                "metadata": metadata,
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": to, "name": name },
                "subjects": subjects,
            })
        };
        let (work, binding) = if self.all_namespaces {
            let binding = bind("ClusterRoleBinding", wide(name), "ClusterRole", name);
            (role("ClusterRole", wide(name), &self.rules), binding)
        } else {
            (role("Role", metadata(name), &self.rules), bind("RoleBinding", metadata(name), "Role", name))
        };
        vec![
            json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name) }),
            work,
            binding,
            role("Role", metadata(&lease), &lease_rules(name)),
            bind("RoleBinding", metadata(&lease), "Role", &lease),
        ]
    }
}

/// What runs: instances that need nothing of their host, nor any right on it.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    /// The name of the Deployment and of its account.
    pub name: &'a str,
    /// The namespace.
    pub namespace: &'a str,
    /// The image.
    pub image: &'a str,
    /// How many instances there are.
    pub replicas: u32,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// Its environment.
    pub environment: Vec<(&'a str, String)>,
    /// Secrets that are mounted at `/etc/setpoint/NAME`, by that name, in its order.
    pub secrets: Vec<(&'a str, String)>,
    /// How much memory it may use, as Kubernetes writes it.
    pub memory_limit: &'a str,
}

impl Workload<'_> {
    /// Returns the Deployment. The program serves probes on port 8080, and finds its pod's name in `HOSTNAME`.
    pub fn object(&self) -> Value {
        let labels = json!({ "app.kubernetes.io/name": self.name });
        let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "http" }, "periodSeconds": 5 });
        let mut environment: Vec<_> =
            self.environment.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        let pod = json!({ "fieldRef": { "fieldPath": "metadata.name" } });
        environment.push(json!({ "name": "HOSTNAME", "valueFrom": pod }));
        let mut container = json!({
            "name": self.name,
            "image": self.image,
            "args": self.arguments,
            "env": environment,
            "ports": [{ "name": "http", "containerPort": 8080 }],
            "livenessProbe": probe("/healthz"),
            "readinessProbe": probe("/readyz"),
            "resources": {
                "requests": { "cpu": "10m", "memory": "32Mi" },
                "limits": { "memory": self.memory_limit },
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
        });
        if !self.secrets.is_empty() {
            let mount = |(name, _): &(&str, String)| json!({ "name": name, "mountPath": format!("/etc/setpoint/{name}"), "readOnly": true });
            container["volumeMounts"] = self.secrets.iter().map(mount).collect();
        }
        let volume =
            |(name, secret): &(&str, String)| json!({ "name": name, "secret": { "secretName": secret } });
        let volumes: Vec<Value> = self.secrets.iter().map(volume).collect();
        let apart = json!({
            "weight": 1,
            "podAffinityTerm": { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": labels } },
        });
        let mut deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": self.name, "namespace": self.namespace, "labels": labels },
            "spec": {
                "replicas": self.replicas,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "serviceAccountName": self.name,
                        "terminationGracePeriodSeconds": 15,
                        "securityContext": {
                            "runAsNonRoot": true,
                            "runAsUser": 65532,
                            "seccompProfile": { "type": "RuntimeDefault" },
                        },
                        "affinity": {
                            "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [apart] },
                        },
                        "containers": [container],
                    },
                },
            },
        });
        if !volumes.is_empty() {
            deployment["spec"]["template"]["spec"]["volumes"] = json!(volumes);
        }
        deployment
    }

    /// Returns a Service, by which metrics are scraped and the state is asked for.
    pub fn service(&self) -> Value {
        let labels = json!({ "app.kubernetes.io/name": self.name });
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": self.name, "namespace": self.namespace, "labels": labels },
            "spec": {
                "selector": labels,
                "ports": [{ "name": "http", "port": 8080, "targetPort": "http" }],
            },
        })
    }

    /// Returns a budget by which nodes are emptied of one instance at a time.
    pub fn disruption_budget(&self) -> Value {
        let labels = json!({ "app.kubernetes.io/name": self.name });
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": { "name": self.name, "namespace": self.namespace, "labels": labels },
            "spec": { "maxUnavailable": 1, "selector": { "matchLabels": labels } },
        })
    }

    /// Returns what has the operator of Prometheus scrape all instances, by the Service.
    pub fn service_monitor(&self) -> Value {
        let labels = json!({ "app.kubernetes.io/name": self.name });
        json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "ServiceMonitor",
            "metadata": { "name": self.name, "namespace": self.namespace, "labels": labels },
            "spec": {
                "selector": { "matchLabels": labels },
                "endpoints": [{ "port": "http", "path": "/metrics", "interval": "30s" }],
            },
        })
    }

    /// Returns what has the operator of Prometheus load rules for alerts, given the content of a file of rules.
    pub fn alerts(&self, rules: &Value) -> Value {
        json!({
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": { "app.kubernetes.io/name": self.name },
            },
            "spec": rules,
        })
    }
}
