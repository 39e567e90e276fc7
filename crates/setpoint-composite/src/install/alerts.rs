//! Alerts, as rules of Prometheus.

use serde_json::{Value, json};

/// What is wrong when: a name, an expression, for how long it must hold, how bad it is, and what it means.
const ALERTS: [(&str, &str, &str, &str, &str); 8] = [
    (
        "SetpointCompositeNoLeader",
        "absent(setpoint_composite_leader == 1)",
        "2m",
        "critical",
        "No instance leads: nothing is written to Consul and nothing is published.",
    ),
    (
        "SetpointCompositeConsulNotRead",
        "time() - setpoint_composite_last_poll_timestamp_seconds > 60",
        "2m",
        "critical",
        "A composite can't be read from Consul: ConfigMaps hold what was read last.",
    ),
    (
        "SetpointCompositeApplyFails",
        "increase(setpoint_composite_config_map_writes_total{result=\"error\"}[10m]) > 3",
        "5m",
        "warning",
        "A ConfigMap can't be written: the condition Published of the Composite says why.",
    ),
    (
        "SetpointCompositeContested",
        "setpoint_composite_config_map_contested + setpoint_composite_keys_contested + setpoint_composite_status_contested > 0",
        "5m",
        "warning",
        "Something else keeps changing what is kept here: is there a second operator in the namespace?",
    ),
    (
        "SetpointCompositeKeyConflict",
        "setpoint_composite_key_conflicts > 0",
        "10m",
        "warning",
        "Two Composites declare different values for a key: the condition Synced names both.",
    ),
    (
        "SetpointCompositeEntriesNotUsed",
        "sum by (namespace) (setpoint_composite_issues) > 0",
        "10m",
        "warning",
        "Entries in Consul can't be used: the status of the Composite lists them.",
    ),
    (
        "SetpointCompositeSlow",
        "histogram_quantile(0.99, sum by (le) (rate(setpoint_composite_publish_seconds_bucket[10m]))) > 1",
        "10m",
        "warning",
        "It takes more than a second from an answer of Consul until ConfigMaps are written.",
    ),
    (
        "SetpointCompositeRestarts",
        "increase(setpoint_composite_task_restarts_total[15m]) > 0",
        "0m",
        "warning",
        "A task panicked or failed and was started again: the log says which, and why.",
    ),
];

/// The content of a file of rules for Prometheus.
pub fn alerts() -> Value {
    let rule = |(name, expression, time, severity, summary): &(&str, &str, &str, &str, &str)| {
        json!({
            "alert": name,
            "expr": expression,
            "for": time,
            "labels": { "severity": severity },
            "annotations": { "summary": summary },
        })
    };
    let rules: Vec<_> = ALERTS.iter().map(rule).collect();
    json!({ "groups": [{ "name": super::NAME, "rules": rules }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metrics with labels are printed only once they have a value, so that the names are looked for where they are registered.
    const METRICS: &str = include_str!("../operator/metrics.rs");

    #[test]
    fn every_metric_of_an_alert_is_one_that_is_exported() {
        for (alert, expression, ..) in ALERTS {
            let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for metric in words.filter_map(|word| word.strip_prefix("setpoint_composite_")) {
                let family = metric.trim_end_matches("_total").trim_end_matches("_bucket");
                assert!(METRICS.contains(&format!("\"{family}\"")), "{alert}: nobody registers {metric}");
            }
        }
    }
}
