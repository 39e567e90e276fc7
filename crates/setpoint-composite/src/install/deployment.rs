//! What runs.

use std::time::Duration;

use serde_json::{Value, json};

use super::{NAME, Options};
use crate::settings::Settings;

/// The Deployment: instances that need nothing of their host, nor any right on it.
pub fn deployment(options: &Options) -> Value {
    let labels = json!({ "app.kubernetes.io/name": NAME });
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "http" }, "periodSeconds": 5 });
    let mut arguments = vec!["composite".to_owned(), "run".to_owned(), format!("--lease-name={NAME}")];
    if options.all_namespaces {
        arguments.push("--all-namespaces".to_owned());
    }
    // What people may want to change is there to be seen.
    let defaults = Settings::default();
    let variables = [
        ("CLOUD_PROVIDER", defaults.cloud_provider.to_string()),
        ("CLOUD_COMPOSITE_STRUCTURE_SYNC_ENABLED", defaults.sync_enabled.to_string()),
        ("CLOUD_COMPOSITE_STRUCTURE_SYNC_CHECK_INTERVAL", written(defaults.check_interval)),
        ("CLOUD_CONSUL_LONG_POLL_RETRY_TIME", written(defaults.retry_time)),
        ("CLOUD_CONSUL_LONG_POLL_ON_SUCCESS_DELAY_TIME", written(defaults.on_success_delay_time)),
        ("SETPOINT_COMPOSITE_CONFIG_MAP", options.config_map.clone()),
        ("SETPOINT_COMPOSITE_MANAGED_BY", defaults.managed_by),
        ("SETPOINT_COMPOSITE_PART_OF", defaults.part_of),
        ("CONSUL_URL", options.consul_url.clone()),
    ];
    let mut environment: Vec<_> =
        variables.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let pod = json!({ "fieldRef": { "fieldPath": "metadata.name" } });
    environment.push(json!({ "name": "HOSTNAME", "valueFrom": pod }));
    let container = json!({
        "name": NAME,
        "image": options.image,
        "args": arguments,
        "env": environment,
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

/// A time as people write it.
fn written(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds.is_multiple_of(60) { format!("{}m", seconds / 60) } else { format!("{seconds}s") }
}
