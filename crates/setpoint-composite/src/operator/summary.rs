//! The state of all namespaces that an instance serves, as it is shown from outside.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};
use setpoint_kube::conditions::Verdict;
use tokio::sync::watch;

use crate::api::{CompositeStatus, ConditionType, Phase, condition};

/// How one namespace is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSummary {
    /// The Composite that counts.
    pub composite: String,
    /// The id of the composite that it is a part of.
    pub composite_id: Option<String>,
    /// How far it is.
    pub phase: Option<Phase>,
    /// Whether everything is as it should be: `True`, `False` or `Unknown`.
    pub ready: String,
    /// Why it is not, if it is not.
    pub message: Option<String>,
    /// The index of Consul that was last applied.
    pub applied_index: Option<u64>,
}

impl NamespaceSummary {
    /// Sets that nothing is known of the ConfigMap yet, whatever its condition was when this instance began.
    pub fn not_published_yet(&mut self) {
        if self.ready == Verdict::True.as_str() {
            Verdict::Unknown.as_str().clone_into(&mut self.ready);
            self.message = Some("nothing is known yet of the ConfigMap".to_owned());
        }
    }

    /// The summary of a status.
    pub fn of(composite: &str, status: &CompositeStatus) -> Self {
        let ready = condition(&status.conditions, ConditionType::Ready);
        let is_ready = ready.is_some_and(|ready| ready.status == Verdict::True.as_str());
        Self {
            composite: composite.to_owned(),
            composite_id: status.composite_id.clone(),
            phase: status.phase,
            ready: ready.map_or(Verdict::Unknown.as_str(), |ready| &ready.status).to_owned(),
            message: ready.filter(|_| !is_ready).map(|ready| ready.message.clone()),
            applied_index: status.published.as_ref().map(|published| published.index),
        }
    }
}

/// All namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    /// The namespaces that have Composites, once they are all known.
    listed: Option<BTreeSet<String>>,
    namespaces: BTreeMap<String, NamespaceSummary>,
}

/// What is known of all namespaces.
#[derive(Debug, Default)]
pub struct Summary {
    known: watch::Sender<Known>,
}

impl Summary {
    /// Sets which namespaces have Composites.
    pub fn listed(&self, namespaces: BTreeSet<String>) {
        self.known.send_if_modified(|known| {
            let news = known.listed.as_ref() != Some(&namespaces);
            known.listed = Some(namespaces);
            news
        });
    }

    /// Sets how a namespace is doing.
    pub fn set(&self, namespace: &str, summary: &NamespaceSummary) {
        self.known.send_if_modified(|known| {
            known.namespaces.insert(namespace.to_owned(), summary.clone()).as_ref() != Some(summary)
        });
    }

    /// Forgets a namespace.
    pub fn forget(&self, namespace: &str) {
        self.known.send_if_modified(|known| known.namespaces.remove(namespace).is_some());
    }

    /// Forgets everything: nothing is led any more.
    pub fn clear(&self) {
        self.known.send_replace(Known::default());
    }

    /// What is known, as JSON.
    pub fn json(&self) -> Value {
        let known = self.known.borrow();
        json!({ "listed": known.listed.is_some(), "namespaces": known.namespaces })
    }

    /// Waits until every namespace that has Composites is ready.
    pub async fn ready(&self) {
        let mut known = self.known.subscribe();
        // It is open as long as we are.
        let _ = known.wait_for(|known| known.listed.is_some() && known.open().next().is_none()).await;
    }

    /// The namespaces that are not ready, each with the reason; none if it is not even known which there are.
    pub fn open(&self) -> Option<Vec<String>> {
        let known = self.known.borrow();
        known.listed.as_ref()?;
        let line = |namespace: &String| {
            let why = known.namespaces.get(namespace).and_then(|summary| summary.message.clone());
            format!("{namespace}: {}", why.as_deref().unwrap_or("nothing is known yet"))
        };
        Some(known.open().map(line).collect())
    }
}

impl Known {
    /// The namespaces that are not ready.
    fn open(&self) -> impl Iterator<Item = &String> {
        let is_open = |namespace: &&String| {
            self.namespaces.get(*namespace).is_none_or(|summary| summary.ready != Verdict::True.as_str())
        };
        self.listed.iter().flatten().filter(is_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(ready: &str, message: Option<&str>) -> NamespaceSummary {
        NamespaceSummary {
            composite: "composite".to_owned(),
            composite_id: None,
            phase: None,
            ready: ready.to_owned(),
            message: message.map(str::to_owned),
            applied_index: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn all_are_ready_when_each_that_was_listed_is() {
        let summary_of_all = Summary::default();
        assert_eq!(summary_of_all.open(), None);
        summary_of_all.set("a", &summary("True", None));
        summary_of_all.listed(["a".to_owned(), "b".to_owned(), "c".to_owned()].into());
        summary_of_all.set("b", &summary("False", Some("ConsulDenied Synced: no")));
        let open = ["b: ConsulDenied Synced: no", "c: nothing is known yet"].map(str::to_owned);
        assert_eq!(summary_of_all.open(), Some(open.to_vec()));
        let limit = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(limit, summary_of_all.ready()).await.is_err());
        summary_of_all.set("b", &summary("True", None));
        summary_of_all.listed(["a".to_owned(), "b".to_owned()].into());
        assert!(tokio::time::timeout(limit, summary_of_all.ready()).await.is_ok());
        assert_eq!(summary_of_all.json()["namespaces"]["b"]["ready"], "True");
        summary_of_all.clear();
        assert_eq!(summary_of_all.open(), None);
    }
}
