//! All Composites that are served, as watches show them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube::core::error_boundary::InvalidObject;
use kube::core::{DeserializeGuard, NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::events::{EventType, Recorder};
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource, ResourceExt};
use setpoint_kube::Store;
use setpoint_kube::follow::{self, Options, Seen};
use setpoint_loop::{Supervisor, Task};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::leadership::News;
use super::report::event;
use crate::api::Composite;
use crate::settings::{Namespaces, Settings};

/// How long an Event may take to be written.
const EVENT_LIMIT: Duration = Duration::from_secs(3);
/// How many events of a watch may wait to be taken in.
const QUEUE: usize = 64;

/// All Composites that are served.
#[derive(Clone, Debug)]
pub(super) struct Composites {
    stores: Arc<[Arc<Store<Composite>>]>,
}

impl Composites {
    /// Those of one namespace.
    pub(super) fn of(&self, namespace: &str) -> Vec<Arc<Composite>> {
        self.stores.iter().flat_map(|store| store.of(namespace)).collect()
    }

    /// The namespaces that have any.
    pub(super) fn namespaces(&self) -> BTreeSet<String> {
        self.stores.iter().flat_map(|store| store.namespaces()).collect()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.stores.iter().map(|store| store.len()).sum()
    }

    /// How many watches there are.
    pub(super) fn watches(&self) -> usize {
        self.stores.len()
    }
}

/// How anything is followed.
pub(super) fn options(settings: &Settings) -> Options {
    Options { request: settings.request_timeout, ..Options::default() }
}

/// Starts to follow all Composites that are served.
///
/// One that can't be read holds up no other: it is passed over, and an Event reports it.
pub(super) fn follow_composites(
    client: &Client,
    settings: &Settings,
    recorder: &Recorder,
    watches: &Supervisor,
    news: &mpsc::Sender<News>,
) -> Composites {
    let follow_one = |(number, (name, scope)): (usize, (String, Api<DeserializeGuard<Composite>>))| {
        let store = Arc::new(Store::default());
        let (kept, options) = (Arc::clone(&store), options(settings));
        let (news, recorder) = (news.clone(), recorder.clone());
        watches.spawn(format!("watch of Composites in {name}"), move |task: Task| {
            let (sender, mut seen) = mpsc::channel(QUEUE);
            let (store, news, recorder) = (Arc::clone(&kept), news.clone(), recorder.clone());
            let (cancel, name) = (task.cancel.clone(), name.clone());
            let following = follow::follow(scope.clone(), options.clone(), sender, move || task.beat());
            let taking_in = async move {
                while let Some(seen) = seen.recv().await {
                    let complete = matches!(seen, Seen::Event(Event::InitDone));
                    let changed = match seen {
                        Seen::Event(event) => store.apply(event),
                        Seen::Unreadable(invalid) => {
                            store.keep(&invalid.metadata);
                            report_unreadable(&invalid, &recorder).await;
                            BTreeSet::new()
                        }
                        Seen::Failed { error, pause } => {
                            log_failure("Composites", &name, &error, pause);
                            BTreeSet::new()
                        }
                    };
                    for namespace in changed {
                        if news.send(News::In(namespace)).await.is_err() {
                            return;
                        }
                    }
                    if complete && news.send(News::Listed(number)).await.is_err() {
                        return;
                    }
                }
            };
            async move {
                let both = Box::pin(async { tokio::join!(following, taking_in) });
                cancel.run_until_cancelled(both).await;
            }
        });
        store
    };
    let stores = scopes(client, &settings.namespaces).into_iter().enumerate().map(follow_one).collect();
    Composites { stores }
}

/// Starts to follow the ConfigMaps that are published: their versions, and nothing of what they hold.
pub(super) fn follow_config_maps(
    client: &Client,
    settings: &Settings,
    watches: &Supervisor,
    news: &mpsc::Sender<News>,
) {
    let fields = Some(format!("metadata.name={}", settings.config_map));
    let options = Options { fields, ..options(settings) };
    let scopes: Vec<(String, Api<DeserializeGuard<PartialObjectMeta<ConfigMap>>>)> =
        scopes(client, &settings.namespaces);
    for (name, scope) in scopes {
        let (options, news) = (options.clone(), news.clone());
        watches.spawn(format!("watch of ConfigMaps in {name}"), move |task: Task| {
            let (sender, mut seen) = mpsc::channel(QUEUE);
            let (news, cancel, name) = (news.clone(), task.cancel.clone(), name.clone());
            let following = follow::follow(scope.clone(), options.clone(), sender, move || task.beat());
            let taking_in = async move {
                while let Some(seen) = seen.recv().await {
                    let change = match seen {
                        Seen::Event(Event::Apply(map) | Event::InitApply(map)) => {
                            map.namespace().map(|namespace| News::Map(namespace, map.resource_version()))
                        }
                        Seen::Event(Event::Delete(map)) => {
                            map.namespace().map(|namespace| News::Map(namespace, None))
                        }
                        Seen::Event(Event::InitDone) => Some(News::MapsListed),
                        Seen::Event(Event::Init) | Seen::Unreadable(_) => None,
                        Seen::Failed { error, pause } => {
                            log_failure("ConfigMaps", &name, &error, pause);
                            None
                        }
                    };
                    if let Some(change) = change
                        && news.send(change).await.is_err()
                    {
                        return;
                    }
                }
            };
            async move {
                let both = Box::pin(async { tokio::join!(following, taking_in) });
                cancel.run_until_cancelled(both).await;
            }
        });
    }
}

fn log_failure(kind: &str, place: &str, error: &follow::FollowError, pause: Duration) {
    let milliseconds = pause.as_millis();
    tracing::warn!(%error, "following {kind} in {place} failed; it is tried again in {milliseconds} ms");
}

/// The API of each scope that is served, with its name.
fn scopes<K>(client: &Client, namespaces: &Namespaces) -> Vec<(String, Api<K>)>
where
    K: Resource<Scope = NamespaceResourceScope>,
    K::DynamicType: Default,
{
    match namespaces {
        Namespaces::All => vec![("all namespaces".to_owned(), Api::all(client.clone()))],
        Namespaces::Only(names) => {
            names.iter().map(|name| (name.clone(), Api::namespaced(client.clone(), name))).collect()
        }
    }
}

async fn report_unreadable(InvalidObject { error, metadata }: &InvalidObject, recorder: &Recorder) {
    let (namespace, name) = (metadata.namespace.clone(), metadata.name.clone());
    tracing::warn!(namespace, name, error, "the Composite can't be read; it is passed over");
    let reference = ObjectReference {
        api_version: Some(Composite::api_version(&()).into_owned()),
        kind: Some(Composite::kind(&()).into_owned()),
        namespace,
        name,
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    };
    let note = event(EventType::Warning, "Unreadable", &format!("it can't be read: {error}"));
    // Nothing depends on it.
    let _ = timeout(EVENT_LIMIT, recorder.publish(&note, &reference)).await;
}
