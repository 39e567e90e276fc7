//! Everything that ever happened to the ConfigMaps of a namespace, as the API server's watch tells it.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use setpoint_composite::publish::{INDEX_ANNOTATION, TRANSITIONS_ANNOTATION, payload_of};

/// Where a history begins.
pub(crate) struct History {
    config_maps: Api<ConfigMap>,
    since: String,
}

/// One version of the ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) payload: Option<String>,
    pub(crate) index: Option<u64>,
    pub(crate) transitions: Option<i32>,
    pub(crate) deleted: bool,
}

impl History {
    /// Begins now.
    pub(crate) async fn begin(client: &Client, namespace: &str) -> Self {
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let since = config_maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
        Self { config_maps, since }
    }

    /// All versions of the ConfigMap since it began, in their order.
    pub(crate) async fn versions(&self, name: &str) -> Vec<Version> {
        let only = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(60);
        let events = self.config_maps.watch(&only, &self.since).await.unwrap();
        let mut events = std::pin::pin!(events);
        let mut versions = Vec::new();
        // What has happened comes at once; quiet means that it was all.
        while let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(700), events.next()).await {
            match event.unwrap() {
                WatchEvent::Added(map) | WatchEvent::Modified(map) => versions.push(Version::of(&map, false)),
                WatchEvent::Deleted(map) => versions.push(Version::of(&map, true)),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(error) => panic!("{error}"),
            }
        }
        let _ = events.try_next();
        versions
    }

    /// Checks that no version was written by an earlier leader, or from an earlier state of Consul, than the one before
    /// it; gives all versions.
    pub(crate) async fn assert_never_stale(&self, name: &str) -> Vec<Version> {
        let versions = self.versions(name).await;
        for pair in versions.windows(2) {
            assert!(pair[0].transitions <= pair[1].transitions, "an earlier leader wrote: {versions:#?}");
            assert!(pair[0].index <= pair[1].index, "an earlier state was written: {versions:#?}");
        }
        versions
    }
}

impl Version {
    fn of(map: &ConfigMap, deleted: bool) -> Self {
        let annotations = map.metadata.annotations.as_ref();
        let annotated = |name: &str| annotations.and_then(|annotations| annotations.get(name));
        Self {
            payload: payload_of(map).map(str::to_owned),
            index: annotated(INDEX_ANNOTATION).and_then(|index| index.parse().ok()),
            transitions: annotated(TRANSITIONS_ANNOTATION).and_then(|count| count.parse().ok()),
            deleted,
        }
    }
}
