//! What runs.

use serde_json::{Value, json};

use super::{NAME, Options};

/// The Deployment: instances that need nothing of their host, nor any right on it.
pub fn deployment(options: &Options) -> Value {
    let labels = json!({ "app.kubernetes.io/name": NAME });
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "http" }, "periodSeconds": 5 });
    let mut arguments = vec!["composite", "run"];
    if options.all_namespaces {
        arguments.push("--all-namespaces");
    }
    let container = json!({
        "name": NAME,
        "image": options.image,
        "args": arguments,
        "env": [
            { "name": "CONSUL_URL", "value": options.consul_url },
            { "name": "CLOUD_PROVIDER", "value": "OnPrem" },
            { "name": "SETPOINT_COMPOSITE_CONFIG_MAP", "value": options.config_map },
            { "name": "HOSTNAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
        ],
        "ports": [{ "name": "http", "containerPort": 8080 }],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": { "requests": { "cpu": "10m", "memory": "32Mi" }, "limits": { "memory": "128Mi" } },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
    });
    let apart = json!({
        "weight": 1,
        "podAffinityTerm": { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": labels } },
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": NAME, "namespace": options.namespace, "labels": labels },
        "spec": {
            "replicas": options.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": NAME,
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
    })
}
