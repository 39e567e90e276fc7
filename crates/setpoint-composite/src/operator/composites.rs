//! All Composites that are served, as a watch tells them.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::error_boundary::InvalidObject;
use kube::core::{DeserializeGuard, NamespaceResourceScope};
use kube::runtime::events::{EventType, Recorder};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use tokio::time::timeout;

use super::report::event;
use super::term::News;
use crate::api::Composite;
use crate::settings::Namespaces;

/// How long an Event may take to be told.
const EVENT_LIMIT: Duration = Duration::from_secs(3);

/// All Composites that are served.
#[derive(Clone, Debug)]
pub(super) struct Composites {
    stores: Arc<[Store<Composite>]>,
}

impl Composites {
    /// Those of one namespace.
    pub(super) fn of(&self, namespace: &str) -> Vec<Arc<Composite>> {
        self.all().filter(|composite| composite.namespace().as_deref() == Some(namespace)).collect()
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = Arc<Composite>> + '_ {
        self.stores.iter().flat_map(Store::state)
    }

    /// How many watches there are.
    pub(super) fn watches(&self) -> usize {
        self.stores.len()
    }
}

/// Starts to follow all Composites that are served.
///
/// One that can't be read holds up no other: it is passed over, and told.
pub(super) fn follow(
    client: &Client,
    namespaces: &Namespaces,
    recorder: &Recorder,
) -> (Composites, BoxStream<'static, News>) {
    let follow_one = |(number, scope): (usize, Api<DeserializeGuard<Composite>>)| {
        let (store, writer) = reflector::store();
        let recorder = recorder.clone();
        let readable =
            watcher(scope, watcher::Config::default()).default_backoff().filter_map(move |event| {
                let recorder = recorder.clone();
                async move { readable(event, &recorder).await }
            });
        let news = reflector::reflector(writer, readable).filter_map(move |event| {
            let news = match event {
                Ok(
                    watcher::Event::Apply(composite)
                    | watcher::Event::InitApply(composite)
                    | watcher::Event::Delete(composite),
                ) => composite.namespace().map(News::In),
                Ok(watcher::Event::InitDone) => Some(News::Listed(number)),
                Ok(watcher::Event::Init) => None,
                Err(error) => {
                    tracing::warn!(%error, "Composites can't be followed");
                    None
                }
            };
            futures::future::ready(news)
        });
        (store, news.boxed())
    };
    let (stores, news): (Vec<_>, Vec<_>) =
        scopes(client, namespaces).into_iter().enumerate().map(follow_one).unzip();
    (Composites { stores: stores.into() }, select_all(news).boxed())
}

/// The API of each scope that is served.
pub(super) fn scopes<K>(client: &Client, namespaces: &Namespaces) -> Vec<Api<K>>
where
    K: Resource<Scope = NamespaceResourceScope>,
    K::DynamicType: Default,
{
    match namespaces {
        Namespaces::All => vec![Api::all(client.clone())],
        Namespaces::Only(names) => names.iter().map(|name| Api::namespaced(client.clone(), name)).collect(),
    }
}

/// An event about a Composite that can be read; of another, the Composite is told what is wrong with it.
async fn readable(
    event: watcher::Result<watcher::Event<DeserializeGuard<Composite>>>,
    recorder: &Recorder,
) -> Option<watcher::Result<watcher::Event<Composite>>> {
    let (guard, same): (_, fn(Composite) -> watcher::Event<Composite>) = match event {
        Ok(watcher::Event::Apply(guard)) => (guard, watcher::Event::Apply),
        Ok(watcher::Event::InitApply(guard)) => (guard, watcher::Event::InitApply),
        Ok(watcher::Event::Delete(guard)) => (guard, watcher::Event::Delete),
        Ok(watcher::Event::Init) => return Some(Ok(watcher::Event::Init)),
        Ok(watcher::Event::InitDone) => return Some(Ok(watcher::Event::InitDone)),
        Err(error) => return Some(Err(error)),
    };
    match guard.0 {
        Ok(composite) => Some(Ok(same(composite))),
        Err(invalid) => {
            complain(&invalid, recorder).await;
            None
        }
    }
}

async fn complain(InvalidObject { error, metadata }: &InvalidObject, recorder: &Recorder) {
    let (namespace, name) = (metadata.namespace.clone(), metadata.name.clone());
    tracing::warn!(namespace, name, error, "a Composite can't be read");
    let reference = ObjectReference {
        api_version: Some(Composite::api_version(&()).into_owned()),
        kind: Some(Composite::kind(&()).into_owned()),
        namespace,
        name,
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    };
    let told = event(EventType::Warning, "Unreadable", &format!("it can't be read: {error}"));
    // Nothing depends on it.
    let _ = timeout(EVENT_LIMIT, recorder.publish(&told, &reference)).await;
}
