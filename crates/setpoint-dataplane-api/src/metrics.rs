//! Metrics for Prometheus.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use setpoint_instance::instance::{Event, Instance};

/// How a text of metrics is called in HTTP.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CommitLabels {
    applied: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    result: &'static str,
}

/// All metrics of an API.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Histogram,
    connections: Gauge,
    commits: Family<CommitLabels, Counter>,
    reloads: Family<ReloadLabels, Counter>,
    file_changes: Counter,
    restored: Counter,
    drift: Counter,
    version: Gauge<u64, AtomicU64>,
    transactions: Gauge,
    leftovers: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("setpoint_dataplane"),
            requests: Family::default(),
            seconds: Histogram::new(exponential_buckets(0.000_25, 4.0, 10)),
            connections: Gauge::default(),
            commits: Family::default(),
            reloads: Family::default(),
            file_changes: Counter::default(),
            restored: Counter::default(),
            drift: Counter::default(),
            version: Gauge::default(),
            transactions: Gauge::default(),
            leftovers: Gauge::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("requests", "Requests by method and status", metrics.requests.clone());
        registry.register("request_duration_seconds", "How long answers took", metrics.seconds.clone());
        registry.register("connections", "Connections that are open", metrics.connections.clone());
        registry.register("commits", "Commits by how they took effect", metrics.commits.clone());
        registry.register("reloads", "Reloads of HAProxy by result", metrics.reloads.clone());
        registry.register(
            "file_changes",
            "How often somebody else changed a file of the configuration",
            metrics.file_changes.clone(),
        );
        registry.register(
            "restored",
            "How often the last good configuration was written back",
            metrics.restored.clone(),
        );
        registry.register(
            "drift",
            "Differences found between HAProxy and its configuration",
            metrics.drift.clone(),
        );
        registry.register(
            "configuration_version",
            "The version of the configuration",
            metrics.version.clone(),
        );
        registry.register("transactions_open", "Transactions in progress", metrics.transactions.clone());
        registry.register(
            "leftover_servers",
            "Servers that are gone from the configuration and still in HAProxy",
            metrics.leftovers.clone(),
        );
        metrics
    }
}

impl Metrics {
    pub(crate) fn answered(&self, method: &Method, status: u16, took: Duration) {
        // What clients make up is no label.
        let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
        let method = known.into_iter().find(|known| *known == method.as_str()).unwrap_or("other");
        self.requests.get_or_create(&RequestLabels { method, status }).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// Counts a connection until the returned value is dropped.
    pub(crate) fn connected(&self) -> Connected {
        self.connections.inc();
        Connected(self.connections.clone())
    }

    pub(crate) fn happened(&self, event: &Event) {
        match event {
            Event::Committed { applied, .. } => {
                self.commits.get_or_create(&CommitLabels { applied }).inc();
            }
            Event::Reloaded { succeeded, .. } => {
                let result = if *succeeded { "ok" } else { "error" };
                self.reloads.get_or_create(&ReloadLabels { result }).inc();
            }
            Event::FileChanged { .. } => {
                self.file_changes.inc();
            }
            Event::Restored { .. } => {
                self.restored.inc();
            }
            Event::Drift { .. } => {
                self.drift.inc();
            }
        }
    }

    /// All of them, as Prometheus reads them.
    pub(crate) fn text(&self, instance: &Instance) -> String {
        self.version.set(instance.version());
        self.transactions.set(instance.open_transactions().try_into().unwrap_or(i64::MAX));
        self.leftovers.set(instance.leftovers().try_into().unwrap_or(i64::MAX));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// A connection that is open.
#[derive(Debug)]
pub(crate) struct Connected(Gauge);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.dec();
    }
}
