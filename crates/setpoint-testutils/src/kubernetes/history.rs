//! All that happened to the ConfigMaps of a namespace, as the API server's watch tells it.
//!
//! ```text
//! begin ──list──▶ since ──watch──▶ versions, as they come ◀── until a marker that was made last has come too
//! ```

use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::wait::{self, LIMIT};

/// How long the API server is left alone when a watch has ended.
const PAUSE: Duration = Duration::from_millis(50);

/// What has happened since a history was begun.
///
/// It is followed all the time: the API server forgets what happened after a few minutes, or a hundred changes. Its own
/// restart is bridged only if it was started with [`start_with_history`](super::Kubernetes::start_with_history).
#[derive(Debug)]
pub struct History {
    config_maps: Api<ConfigMap>,
    seen: watch::Receiver<Seen>,
    markers: AtomicU32,
    _follower: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Every version of every ConfigMap, in their order.
    versions: Vec<ConfigMap>,
    /// Why there are no more, if something went wrong.
    lost: Option<String>,
}

impl History {
    /// Begins now.
    pub async fn begin(client: &Client, namespace: &str) -> Self {
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let listed = config_maps.list(&ListParams::default()).await.expect("ConfigMaps can be listed");
        let since = listed.metadata.resource_version.unwrap_or_default();
        let (sender, seen) = watch::channel(Seen::default());
        let mut follower = JoinSet::new();
        follower.spawn(follow(config_maps.clone(), since, sender));
        Self { config_maps, seen, markers: AtomicU32::new(0), _follower: follower }
    }

    /// Every version of a ConfigMap since then, in their order; the last one of one that was deleted too. Panics if there
    /// was none: whoever looks at all of none sees nothing wrong.
    pub async fn versions(&self, name: &str) -> Vec<ConfigMap> {
        let versions = self.versions_if_any(name).await;
        assert!(!versions.is_empty(), "there never was a ConfigMap `{name}`");
        versions
    }

    /// Every version of a ConfigMap since then, if there was any.
    pub async fn versions_if_any(&self, name: &str) -> Vec<ConfigMap> {
        // What is made last is told last: when it was seen, all that was before it has been.
        let number = self.markers.fetch_add(1, Ordering::Relaxed);
        let marker = ConfigMap {
            metadata: ObjectMeta { name: Some(format!("history-{number}")), ..ObjectMeta::default() },
            ..ConfigMap::default()
        };
        let made = wait::within(LIMIT, async || {
            match self.config_maps.create(&PostParams::default(), &marker).await {
                Ok(made) => Some(made),
                // It may have been made, and the answer lost.
                Err(_) => self.config_maps.get_opt(&marker.name_any()).await.ok().flatten(),
            }
        });
        let made = made.await.expect("a ConfigMap can be made").uid();
        let mut receiver = self.seen.clone();
        let is_told = |seen: &Seen| seen.lost.is_some() || seen.versions.iter().any(|map| map.uid() == made);
        let told = tokio::time::timeout(LIMIT, receiver.wait_for(is_told)).await;
        let versions = {
            let seen = told.expect("the watch tells what was made").expect("it is followed");
            assert_eq!(seen.lost, None, "the history is lost");
            seen.versions.iter().filter(|map| map.name_any() == name).cloned().collect()
        };
        let _ = self.config_maps.delete(&marker.name_any(), &DeleteParams::default()).await;
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

/// Takes in what the watch tells, and watches again where it ended.
async fn follow(config_maps: Api<ConfigMap>, mut since: String, seen: watch::Sender<Seen>) {
    loop {
        if let Ok(events) = config_maps.watch(&WatchParams::default(), &since).await {
            let mut events = pin!(events);
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Added(map) | WatchEvent::Modified(map) | WatchEvent::Deleted(map) => {
                        since = map.resource_version().unwrap_or(since);
                        seen.send_modify(|seen| seen.versions.push(map));
                    }
                    WatchEvent::Bookmark(bookmark) => since = bookmark.metadata.resource_version,
                    WatchEvent::Error(error) => {
                        seen.send_modify(|seen| seen.lost = Some(error.to_string()));
                        return;
                    }
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}
