//! What runs.

use std::time::Duration;

use serde_json::Value;
use setpoint_kube::manifests::Workload;

use super::{NAME, Options};
use crate::settings::Settings;

/// The Deployment.
pub fn deployment(options: &Options) -> Value {
    let mut arguments = vec!["composite".to_owned(), "run".to_owned(), format!("--lease-name={NAME}")];
    if options.all_namespaces {
        arguments.push("--all-namespaces".to_owned());
    }
    // What people may want to change is there to be seen.
    let defaults = Settings::default();
    let environment = vec![
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
    let workload = Workload {
        name: NAME,
        namespace: &options.namespace,
        image: &options.image,
        replicas: options.replicas,
        arguments,
        environment,
        memory_limit: "128Mi",
    };
    workload.object()
}

/// A time as people write it.
fn written(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds.is_multiple_of(60) { format!("{}m", seconds / 60) } else { format!("{seconds}s") }
}
