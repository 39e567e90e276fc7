//! All that happened to the ConfigMaps of a namespace, as the API server's watch tells it.

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};

/// How long it must be quiet until what has happened counts as told.
const QUIET: Duration = Duration::from_millis(700);

/// Where a history begins. The API server keeps it for a few minutes, and over its own restart only if it was started with
/// [`start_with_history`](super::Kubernetes::start_with_history).
#[derive(Debug)]
pub struct History {
    config_maps: Api<ConfigMap>,
    since: String,
}

impl History {
    /// Begins now.
    pub async fn begin(client: &Client, namespace: &str) -> Self {
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let listed = config_maps.list(&ListParams::default()).await.expect("ConfigMaps can be listed");
        Self { config_maps, since: listed.metadata.resource_version.unwrap_or_default() }
    }

    /// Every version of a ConfigMap since then, in their order; the last one of one that was deleted too.
    pub async fn versions(&self, name: &str) -> Vec<ConfigMap> {
        let only = WatchParams::default().fields(&format!("metadata.name={name}"));
        let events = self.config_maps.watch(&only, &self.since).await.expect("ConfigMaps can be watched");
        let mut events = std::pin::pin!(events);
        let mut versions = Vec::new();
        while let Ok(Some(event)) = tokio::time::timeout(QUIET, events.next()).await {
            match event.expect("the watch goes on") {
                WatchEvent::Added(map) | WatchEvent::Modified(map) | WatchEvent::Deleted(map) => {
                    versions.push(map);
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(error) => panic!("the history is lost: {error}"),
            }
        }
        versions
    }

    /// Every version of a ConfigMap since then; panics if a number in an annotation of it was ever lower than in the
    /// version before.
    pub async fn versions_that_never_go_back(&self, name: &str, annotations: &[&str]) -> Vec<ConfigMap> {
        let versions = self.versions(name).await;
        for annotation in annotations {
            let number = |map: &ConfigMap| {
                map.annotations().get(*annotation).and_then(|text| text.parse::<u64>().ok())
            };
            let numbers: Vec<_> = versions.iter().filter_map(number).collect();
            assert!(numbers.is_sorted(), "{annotation} went back: {numbers:?}");
        }
        versions
    }
}
