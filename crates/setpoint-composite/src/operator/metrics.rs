//! Metrics for Prometheus.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The namespace that a metric is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Namespace {
    namespace: String,
}

/// The namespace and the result of something.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    namespace: String,
    result: Result,
}

/// The composite and the result of a query.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Poll {
    composite: String,
    result: Result,
}

/// The composite that a metric is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Composite {
    composite: String,
}

/// The bounds of what latencies are counted in, in seconds.
const LATENCIES: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0];

/// The result of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are those of label values")]
pub enum Result {
    /// It was done.
    ok,
    /// It failed.
    error,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    namespace: String,
    kind: String,
}

/// All metrics of an operator.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    leader: Gauge,
    transitions: Gauge,
    composites: Gauge,
    owned: Family<Namespace, Gauge>,
    index: Family<Namespace, Gauge<u64, AtomicU64>>,
    applied: Family<Namespace, Gauge<u64, AtomicU64>>,
    writes: Family<Outcome, Counter>,
    transactions: Family<Outcome, Counter>,
    polls: Family<Poll, Counter>,
    last_poll: Family<Composite, Gauge<f64, AtomicU64>>,
    latency: Histogram,
    issues: Family<Kind, Gauge>,
    conflicts: Family<Namespace, Gauge>,
    contested: Family<Namespace, Gauge>,
    keys_contested: Family<Namespace, Gauge>,
    status_contested: Family<Namespace, Gauge>,
    restarts: Counter,
    certificates: Gauge,
    renewals: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("setpoint_composite"),
            leader: Gauge::default(),
            transitions: Gauge::default(),
            composites: Gauge::default(),
            owned: Family::default(),
            index: Family::default(),
            applied: Family::default(),
            writes: Family::default(),
            transactions: Family::default(),
            polls: Family::default(),
            last_poll: Family::default(),
            latency: Histogram::new(LATENCIES),
            issues: Family::default(),
            conflicts: Family::default(),
            contested: Family::default(),
            keys_contested: Family::default(),
            status_contested: Family::default(),
            restarts: Counter::default(),
            certificates: Gauge::default(),
            renewals: Counter::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("leader", "Whether this instance leads", metrics.leader.clone());
        registry.register(
            "lease_transitions",
            "How often the Lease had changed hands when this instance was elected",
            metrics.transitions.clone(),
        );
        registry.register("composites", "Composites that are known", metrics.composites.clone());
        registry.register("config_map_owned", "Whether the ConfigMap is managed here", metrics.owned.clone());
        registry.register("source_index", "The index of Consul last seen", metrics.index.clone());
        registry.register("applied_index", "The index of Consul last applied", metrics.applied.clone());
        registry.register("config_map_writes", "Writes of the ConfigMap", metrics.writes.clone());
        registry.register("transactions", "Transactions in Consul", metrics.transactions.clone());
        registry.register("polls", "Blocking queries to Consul", metrics.polls.clone());
        registry.register(
            "last_poll_timestamp_seconds",
            "When the structure of a composite in Consul was last known",
            metrics.last_poll.clone(),
        );
        registry.register(
            "publish_seconds",
            "How long it took from an answer of Consul until the ConfigMap was written",
            metrics.latency.clone(),
        );
        registry.register("issues", "Entries in Consul that could not be used", metrics.issues.clone());
        registry.register(
            "key_conflicts",
            "Keys that an older claim holds with another value",
            metrics.conflicts.clone(),
        );
        registry.register(
            "config_map_contested",
            "Whether something else keeps changing the ConfigMap",
            metrics.contested.clone(),
        );
        registry.register(
            "keys_contested",
            "Whether something else keeps changing declared keys",
            metrics.keys_contested.clone(),
        );
        registry.register(
            "status_contested",
            "Whether something else keeps changing the status of a Composite",
            metrics.status_contested.clone(),
        );
        registry.register("task_restarts", "Tasks that were started again", metrics.restarts.clone());
        registry.register(
            "consul_certificates_usable",
            "Whether the files with certificates for Consul can be used; if not, those from before are",
            metrics.certificates.clone(),
        );
        registry.register(
            "consul_certificate_renewals",
            "How often other certificates for Consul were taken over",
            metrics.renewals.clone(),
        );
        metrics
    }
}

impl Metrics {
    /// All of them, as Prometheus reads them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Sets whether this instance leads, and after how many transitions of the Lease.
    pub fn leads(&self, transitions: Option<i32>) {
        self.leader.set(i64::from(transitions.is_some()));
        self.transitions.set(transitions.map_or(0, i64::from));
    }

    /// Sets how many Composites there are.
    pub fn composites(&self, count: usize) {
        self.composites.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets whether the ConfigMap of a namespace is managed here.
    pub fn owned(&self, namespace: &str, owned: bool) {
        self.owned.get_or_create(&of(namespace)).set(i64::from(owned));
    }

    /// Sets which index was seen last.
    pub fn index(&self, namespace: &str, index: u64) {
        self.index.get_or_create(&of(namespace)).set(index);
    }

    /// Sets which index was applied last.
    pub fn applied(&self, namespace: &str, index: u64) {
        self.applied.get_or_create(&of(namespace)).set(index);
    }

    /// Counts writes of the ConfigMap.
    pub fn writes(&self, namespace: &str, result: Result, count: u64) {
        self.writes.get_or_create(&Outcome { namespace: namespace.to_owned(), result }).inc_by(count);
    }

    /// Counts a transaction.
    pub fn transaction(&self, namespace: &str, result: Result) {
        self.transactions.get_or_create(&Outcome { namespace: namespace.to_owned(), result }).inc();
    }

    /// Counts an answer, or the want of one, to a blocking query about a composite.
    pub fn poll(&self, composite: &str, result: Result) {
        self.polls.get_or_create(&Poll { composite: composite.to_owned(), result }).inc();
    }

    /// Sets when the state of a composite in Consul was last known.
    pub fn polled(&self, composite: &str, now: Timestamp) {
        let key = Composite { composite: composite.to_owned() };
        self.last_poll.get_or_create(&key).set(now.as_duration().as_secs_f64());
    }

    /// Records how long it took from an answer of Consul until a ConfigMap was written.
    pub fn published_in(&self, latency: Duration) {
        self.latency.observe(latency.as_secs_f64());
    }

    /// Sets whether something else keeps changing the ConfigMap of a namespace.
    pub fn contested(&self, namespace: &str, contested: bool) {
        self.contested.get_or_create(&of(namespace)).set(i64::from(contested));
    }

    /// Sets whether something else keeps changing declared keys of a namespace.
    pub fn keys_contested(&self, namespace: &str, contested: bool) {
        self.keys_contested.get_or_create(&of(namespace)).set(i64::from(contested));
    }

    /// Sets whether something else keeps changing the status of a Composite in a namespace.
    pub fn status_contested(&self, namespace: &str, contested: bool) {
        self.status_contested.get_or_create(&of(namespace)).set(i64::from(contested));
    }

    /// Sets how many declared keys of a namespace have another value, by an older claim.
    pub fn conflicts(&self, namespace: &str, count: usize) {
        self.conflicts.get_or_create(&of(namespace)).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets how many issues of each kind there are; kinds that are not named have none. A kind that there never was is
    /// left out: there may be very many namespaces.
    pub fn issues<'a>(&self, namespace: &str, kinds: &[&str], found: impl Iterator<Item = &'a str>) {
        for kind in kinds {
            if let Some(known) = self.issues.get(&issue(namespace, kind)) {
                known.set(0);
            }
        }
        for kind in found {
            self.issues.get_or_create(&issue(namespace, kind)).inc();
        }
    }

    /// Counts a task that was started again.
    pub fn restarted(&self) {
        self.restarts.inc();
    }

    /// Sets whether the files with certificates for Consul can be used, and whether others were taken over just now.
    pub fn certificates(&self, usable: bool, renewed: bool) {
        self.certificates.set(i64::from(usable));
        self.renewals.inc_by(u64::from(renewed));
    }

    /// Forgets a composite that nobody follows any more.
    pub fn forget_composite(&self, composite: &str) {
        for result in [Result::ok, Result::error] {
            self.polls.remove(&Poll { composite: composite.to_owned(), result });
        }
        self.last_poll.remove(&Composite { composite: composite.to_owned() });
    }

    /// Forgets a namespace, with the kinds of issues that were reported.
    pub fn forget(&self, namespace: &str, kinds: &[&str]) {
        for kind in kinds {
            self.issues.remove(&issue(namespace, kind));
        }
        for result in [Result::ok, Result::error] {
            let key = Outcome { namespace: namespace.to_owned(), result };
            self.writes.remove(&key);
            self.transactions.remove(&key);
        }
        let key = of(namespace);
        self.conflicts.remove(&key);
        self.contested.remove(&key);
        self.keys_contested.remove(&key);
        self.status_contested.remove(&key);
        self.owned.remove(&key);
        self.index.remove(&key);
        self.applied.remove(&key);
    }
}

fn issue(namespace: &str, kind: &str) -> Kind {
    Kind { namespace: namespace.to_owned(), kind: kind.to_owned() }
}

fn of(namespace: &str) -> Namespace {
    Namespace { namespace: namespace.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_in_the_format_of_prometheus() {
        let metrics = Metrics::default();
        metrics.leads(Some(3));
        metrics.writes("shop", Result::ok, 2);
        metrics.issues("shop", &["DuplicateRole"], ["DuplicateRole"].into_iter());
        let text = metrics.text();
        for line in [
            "setpoint_composite_leader 1",
            "setpoint_composite_lease_transitions 3",
            "setpoint_composite_config_map_writes_total{namespace=\"shop\",result=\"ok\"} 2",
            "setpoint_composite_issues{namespace=\"shop\",kind=\"DuplicateRole\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        metrics.issues("shop", &["DuplicateRole"], [].into_iter());
        assert!(metrics.text().contains("kind=\"DuplicateRole\"} 0"));
        metrics.poll("shop", Result::ok);
        metrics.polled("shop", Timestamp::UNIX_EPOCH);
        metrics.published_in(Duration::from_millis(30));
        for line in [
            "setpoint_composite_last_poll_timestamp_seconds{composite=\"shop\"} 0.0",
            "setpoint_composite_publish_seconds_bucket{le=\"0.025\"} 0",
            "setpoint_composite_publish_seconds_bucket{le=\"0.05\"} 1",
        ] {
            assert!(
                metrics.text().lines().any(|found| found == line),
                "{line} is not in\n{}",
                metrics.text()
            );
        }
        metrics.forget("shop", &["DuplicateRole"]);
        metrics.forget_composite("shop");
        assert!(!metrics.text().contains("shop"), "{}", metrics.text());
    }
}
