//! What runs, and what goes with it.

use std::time::Duration;

use serde_json::Value;
use setpoint_kube::manifests::Workload;

use super::alerts::alerts;
use super::{NAME, Options};
use crate::settings::Settings;

/// The Deployment.
pub fn deployment(options: &Options) -> Value {
    workload(options).object()
}

/// The Service.
pub fn service(options: &Options) -> Value {
    workload(options).service()
}

/// The budget of disruptions.
pub fn disruption_budget(options: &Options) -> Value {
    workload(options).disruption_budget()
}

/// The resources for the operator of Prometheus.
pub fn monitoring(options: &Options) -> Vec<Value> {
    let workload = workload(options);
    vec![workload.service_monitor(), workload.alerts(&alerts())]
}

fn workload(options: &Options) -> Workload<'_> {
    let mut arguments = vec!["composite".to_owned(), "run".to_owned(), format!("--lease-name={NAME}")];
    if options.all_namespaces {
        arguments.push("--all-namespaces".to_owned());
    }
    // What people may want to change is there to be seen.
    let defaults = Settings::default();
    let mut environment = vec![
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
    let consul = &options.consul;
    let mut set = |name, value: &str| environment.push((name, value.to_owned()));
    if consul.token_secret.is_some() {
        set("CONSUL_HTTP_TOKEN_FILE", "/etc/setpoint/consul-token/token");
    }
    if let Some(method) = &consul.auth_method {
        set("CONSUL_AUTH_METHOD", method);
    }
    if consul.ca_secret.is_some() {
        set("CONSUL_CACERT", "/etc/setpoint/consul-ca/ca.crt");
    }
    if consul.client_secret.is_some() {
        set("CONSUL_CLIENT_CERT", "/etc/setpoint/consul-client/tls.crt");
        set("CONSUL_CLIENT_KEY", "/etc/setpoint/consul-client/tls.key");
    }
    let secrets = [
        ("consul-ca", &consul.ca_secret),
        ("consul-client", &consul.client_secret),
        ("consul-token", &consul.token_secret),
    ];
    Workload {
        name: NAME,
        namespace: &options.namespace,
        image: &options.image,
        replicas: options.replicas,
        arguments,
        environment,
        secrets: secrets.into_iter().filter_map(|(name, secret)| Some((name, secret.clone()?))).collect(),
        memory_limit: "128Mi",
    }
}

/// A time as people write it.
fn written(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds.is_multiple_of(60) { format!("{}m", seconds / 60) } else { format!("{seconds}s") }
}
