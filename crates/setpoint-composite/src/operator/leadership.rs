//! A time of leadership: follows all Composites, and has a reconciler for each namespace that has some.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::runtime::events::Recorder;
use setpoint_consul as consul;
use setpoint_kube::lease::Fence;
use setpoint_loop::{Keyed, Restart, Supervisor};
use setpoint_observe::{Health, Role};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::composites::{follow_composites, follow_config_maps, options};
use super::metrics::Metrics;
use super::reconciler::NamespaceReconciler;
use super::structures::Structures;
use crate::publish::Observations;
use crate::settings::Settings;

/// How long tasks may take to end.
const PARTING: Duration = Duration::from_secs(2);
/// How often it is looked after reconcilers that have nothing to keep, and after those that panicked.
const ROUND: Duration = Duration::from_secs(5);
/// How many events of all watches may wait to be looked at.
const QUEUE: usize = 64;
/// The bounds of the pause before a task that panicked is started again.
const RESTARTS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What all parts of a term use.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) consul: consul::Client,
    pub(super) structures: Structures,
    pub(super) observations: Observations,
    pub(super) settings: Settings,
    pub(super) metrics: Arc<Metrics>,
    pub(super) health: Arc<Health>,
    pub(super) recorder: Recorder,
    pub(super) fence: Fence,
}

/// How many namespaces are looked at in whole at a time: Consul takes only so many connections.
const PASSES: usize = 8;

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

/// Leads until it is cancelled.
pub(super) async fn lead(shared: Shared, cancel: CancellationToken) {
    let supervisor =
        || Supervisor::new(cancel.clone(), RESTARTS, fastrand::Rng::new()).reporting(log_restart);
    let (watches, (sender, mut news)) = (supervisor(), mpsc::channel(QUEUE));
    let composites = follow_composites(&shared.client, &shared.settings, &shared.recorder, &watches, &sender);
    follow_config_maps(&shared.client, &shared.settings, &watches, &sender);
    let patience = options(&shared.settings).patience();
    let mut listed = vec![false; composites.watches()];
    let shared = Arc::new(shared);
    let mut reconcilers = Keyed::new(supervisor(), PASSES);
    let mut restarts = 0;
    let mut rounds = tokio::time::interval(ROUND);
    loop {
        let next = tokio::select! {
            next = news.recv() => next,
            _ = rounds.tick() => {
                if is_alive(&watches, patience) {
                    shared.health.beat();
                }
                restarts = count_restarts(&[&watches, reconcilers.supervisor()], restarts, &shared.metrics);
                let kept = composites.namespaces();
                reconcilers.retire(|namespace| kept.contains(namespace)).await;
                continue;
            }
            () = cancel.cancelled() => break,
        };
        match next {
            Some(News::In(namespace)) => {
                reconcilers.poke(namespace, |namespace, pokes| {
                    let reconciler = NamespaceReconciler::new(&shared, &composites, namespace, pokes);
                    move |task| reconciler.clone().run(task)
                });
            }
            Some(News::Listed(watch)) => {
                if let Some(listed) = listed.get_mut(watch) {
                    *listed = true;
                }
                if listed.iter().all(|listed| *listed) {
                    shared.health.set_role(Role::Leading);
                }
                // What is not on the list any more has gone without an event.
                reconcilers.poke_all();
            }
            Some(News::Map(namespace, version)) => {
                shared.observations.observed(&namespace, version);
                continue;
            }
            Some(News::MapsListed) => {
                shared.observations.may_have_missed();
                continue;
            }
            None => break,
        }
        shared.metrics.composites(composites.count());
    }
    watches.shutdown(PARTING).await;
    reconcilers.into_supervisor().shutdown(PARTING).await;
}

/// Writes a line about a task that is started again.
pub(super) fn log_restart(restart: &Restart<'_>) {
    let Restart { task, failure, panicked, pause } = restart;
    let how = if *panicked { "panicked" } else { "failed" };
    tracing::error!(task, failure, "the task {how}; it is started again in {} ms", pause.as_millis());
}

/// Returns whether every watch has given a sign of life lately; writes a line about one that has not.
fn is_alive(watches: &Supervisor, patience: Duration) -> bool {
    let stuck = watches.health().into_iter().find(|task| task.silent > patience);
    if let Some(task) = &stuck {
        tracing::error!(task = task.name, silent = task.silent.as_secs(), "the task stands still");
    }
    stuck.is_none()
}

/// Counts restarts that were not counted yet; gives how many there were in all.
fn count_restarts(supervisors: &[&Supervisor], counted: u64, metrics: &Metrics) -> u64 {
    let health = supervisors.iter().flat_map(|supervisor| supervisor.health());
    let now = health.map(|task| task.restarts).sum();
    for _ in counted..now {
        metrics.restarted();
    }
    now
}
