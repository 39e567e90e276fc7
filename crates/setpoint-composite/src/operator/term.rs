//! A time of leadership: follows all Composites, and has a keeper for each namespace that has some.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, select, select_all};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use kube::runtime::events::Recorder;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use setpoint_loop::{Supervisor, TaskHandle};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::composites::{Composites, follow, scopes};
use super::keeper::Keeper;
use super::structures::Structures;
use crate::consul;
use crate::lease::Fence;
use crate::observe::{Metrics, Role, Vitals};
use crate::publish::Sightings;
use crate::settings::Settings;

/// How long tasks may take to end.
const PARTING: Duration = Duration::from_secs(2);
/// How often it is looked after keepers that have nothing to keep, and after those that panicked.
const ROUND: Duration = Duration::from_secs(5);
/// The bounds of the pause before a task that panicked is started again.
const RESTARTS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What all parts of a term use.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) consul: consul::Client,
    pub(super) structures: Structures,
    pub(super) sightings: Sightings,
    pub(super) settings: Settings,
    pub(super) metrics: Arc<Metrics>,
    pub(super) vitals: Arc<Vitals>,
    pub(super) recorder: Recorder,
    pub(super) fence: Fence,
    /// Lets so many namespaces be looked at in whole at a time: Consul takes only so many connections.
    pub(super) passes: Semaphore,
}

/// How many namespaces are looked at in whole at a time.
pub(super) const PASSES: usize = 8;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What a watch says.
pub(super) enum News {
    /// Something changed in a namespace.
    In(String),
    /// A list is complete: the number of its watch.
    Listed(usize),
    /// The ConfigMap of a namespace has this version, or is gone.
    Map(String, Option<String>),
    /// The ConfigMaps were listed anew.
    MapsListed,
}

/// The keepers of all namespaces that have Composites, and how each is told to look.
type Keepers = BTreeMap<String, (Arc<Notify>, TaskHandle)>;

/// Leads until it is cancelled.
pub(super) async fn lead(shared: Shared, cancel: CancellationToken) {
    let (composites, news) = follow(&shared.client, &shared.settings.namespaces, &shared.recorder);
    let maps = follow_maps(&shared.client, &shared.settings);
    let mut news = select(news, maps);
    let mut listed = vec![false; composites.watches()];
    let supervisor = Supervisor::new(cancel.clone(), RESTARTS, fastrand::Rng::new());
    let shared = Arc::new(shared);
    let mut keepers = Keepers::new();
    let mut restarts = 0;
    let mut rounds = tokio::time::interval(ROUND);
    loop {
        let next = tokio::select! {
            next = news.next() => next,
            _ = rounds.tick() => {
                restarts = count_restarts(&supervisor, restarts, &shared.metrics);
                dismiss(&mut keepers, &composites).await;
                continue;
            }
            () = cancel.cancelled() => break,
        };
        match next {
            Some(News::In(namespace)) => {
                let keeper = keepers.entry(namespace).or_insert_with_key(|namespace| {
                    let poke = Arc::new(Notify::new());
                    let keeper = Keeper::new(&shared, &composites, namespace, &poke);
                    let name = format!("keeper of {namespace}");
                    (poke, supervisor.spawn(name, move |task| keeper.clone().run(task)))
                });
                keeper.0.notify_one();
            }
            Some(News::Listed(watch)) => {
                if let Some(listed) = listed.get_mut(watch) {
                    *listed = true;
                }
                if listed.iter().all(|listed| *listed) {
                    shared.vitals.set_role(Role::Leading);
                }
                // What is not on the list any more has gone without an event.
                for (poke, _) in keepers.values() {
                    poke.notify_one();
                }
            }
            Some(News::Map(namespace, version)) => {
                shared.sightings.saw(&namespace, version);
                continue;
            }
            Some(News::MapsListed) => {
                shared.sightings.may_have_missed();
                continue;
            }
            None => break,
        }
        shared.metrics.composites(composites.all().count());
    }
    supervisor.shutdown(PARTING).await;
}

/// Starts to follow the ConfigMaps that are published: their versions, and nothing of what they hold.
fn follow_maps(client: &Client, settings: &Settings) -> BoxStream<'static, News> {
    let only = watcher::Config::default().fields(&format!("metadata.name={}", settings.config_map));
    let follow_one = |scope: Api<PartialObjectMeta<ConfigMap>>| {
        let events = watcher(scope, only.clone()).default_backoff();
        let news = events.filter_map(|event| {
            let news = match event {
                Ok(watcher::Event::Apply(map) | watcher::Event::InitApply(map)) => {
                    map.namespace().map(|namespace| News::Map(namespace, map.resource_version()))
                }
                Ok(watcher::Event::Delete(map)) => {
                    map.namespace().map(|namespace| News::Map(namespace, None))
                }
                Ok(watcher::Event::InitDone) => Some(News::MapsListed),
                Ok(watcher::Event::Init) => None,
                Err(error) => {
                    tracing::warn!(%error, "ConfigMaps can't be followed");
                    None
                }
            };
            futures::future::ready(news)
        });
        news.boxed()
    };
    select_all(scopes(client, &settings.namespaces).into_iter().map(follow_one)).boxed()
}

/// Ends the keepers of namespaces that have no Composites any more.
async fn dismiss(keepers: &mut Keepers, composites: &Composites) {
    let kept: BTreeSet<_> = composites.all().filter_map(|composite| composite.namespace()).collect();
    let idle: Vec<_> = keepers.keys().filter(|namespace| !kept.contains(*namespace)).cloned().collect();
    for namespace in idle {
        if let Some((_, keeper)) = keepers.remove(&namespace) {
            keeper.stop().await;
        }
    }
}

/// Counts restarts that were not counted yet; gives how many there were in all.
fn count_restarts(supervisor: &Supervisor, counted: u64, metrics: &Metrics) -> u64 {
    let now = supervisor.health().iter().map(|task| task.restarts).sum();
    for _ in counted..now {
        metrics.restarted();
    }
    now
}
