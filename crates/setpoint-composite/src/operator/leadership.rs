//! One leadership: follows all Composites, and has a reconciler for each namespace that has some.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use kube::runtime::events::{Recorder, Reporter};
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
use super::summary::Summary;
use crate::publish::Observations;
use crate::settings::Settings;

/// How long tasks may take to end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);
/// How often reconcilers are checked: those without Composites end, and those that stand still are found.
const ROUND: Duration = Duration::from_secs(5);
/// How many events of all watches may wait to be looked at.
const QUEUE: usize = 64;
/// How long a reconciler may give no sign of life, and a watch of Consul beyond its longest pause. What they do has limits, of
/// which several may follow each other.
const PATIENCE: Duration = Duration::from_mins(3);
/// The bounds of the pause before a task that panicked is started again.
const RESTARTS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What all parts of a leadership use.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) consul: consul::Client,
    pub(super) structures: Structures,
    pub(super) observations: Observations,
    pub(super) settings: Settings,
    pub(super) metrics: Arc<Metrics>,
    pub(super) health: Arc<Health>,
    pub(super) summary: Arc<Summary>,
    pub(super) events: Events,
    pub(super) fence: Fence,
}

/// Writes Events. One that is repeated is counted and not written anew; of many namespaces not all are remembered for that.
pub(super) struct Events {
    client: Client,
    reporter: Reporter,
    /// What writes them, and how many it has written.
    present: Mutex<(Recorder, u32)>,
}

impl Events {
    /// How many Events are remembered.
    const MOST: u32 = 64;

    pub(super) fn new(client: Client, reporter: Reporter) -> Self {
        let recorder = Recorder::new(client.clone(), reporter.clone());
        Self { client, reporter, present: Mutex::new((recorder, 0)) }
    }

    /// What is to write the next one.
    pub(super) fn recorder(&self) -> Recorder {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        if present.1 >= Self::MOST {
            *present = (Recorder::new(self.client.clone(), self.reporter.clone()), 0);
        }
        present.1 += 1;
        present.0.clone()
    }
}

/// How many namespaces are looked at, or written to, at a time: each takes a connection to Consul or to the API server.
const PASSES: usize = 8;

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What a watch reports.
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
    let supervisor = || {
        Supervisor::new(cancel.clone(), RESTARTS, fastrand::Rng::new()).reporting(restarts(&shared.metrics))
    };
    let (watches, (sender, mut news)) = (supervisor(), mpsc::channel(QUEUE));
    let composites =
        follow_composites(&shared.client, &shared.settings, &shared.events.recorder(), &watches, &sender);
    follow_config_maps(&shared.client, &shared.settings, &watches, &sender);
    let mut listed = vec![false; composites.watches()];
    let mut reconcilers = Keyed::new(supervisor(), PASSES);
    let shared = Arc::new(shared);
    let mut rounds = tokio::time::interval(ROUND);
    loop {
        let next = tokio::select! {
            next = news.recv() => next,
            _ = rounds.tick() => {
                let supervised = [
                    (&watches, options(&shared.settings).patience()),
                    (shared.structures.supervisor(), shared.settings.retry_time + PATIENCE),
                    (reconcilers.supervisor(), PATIENCE),
                ];
                if are_alive(&supervised) {
                    shared.health.beat();
                }
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
        if listed.iter().all(|listed| *listed) {
            shared.summary.listed(composites.namespaces());
        }
    }
    watches.shutdown(SHUTDOWN_LIMIT).await;
    reconcilers.into_supervisor().shutdown(SHUTDOWN_LIMIT).await;
}

/// Writes a line about each task that is started again, and counts it.
pub(super) fn restarts(metrics: &Arc<Metrics>) -> impl Fn(&Restart<'_>) + Send + Sync + use<> {
    let metrics = Arc::clone(metrics);
    move |Restart { task, failure, panicked, pause }| {
        let how = if *panicked { "panicked" } else { "failed" };
        tracing::error!(task, failure, "the task {how}; it is started again in {} ms", pause.as_millis());
        metrics.restarted();
    }
}

/// Returns whether every task has given a sign of life within the patience for its kind; writes a line about one that has not.
fn are_alive(supervised: &[(&Supervisor, Duration)]) -> bool {
    let stuck = supervised.iter().find_map(|(supervisor, patience)| {
        supervisor.health().into_iter().find(|task| task.silent > *patience)
    });
    if let Some(task) = &stuck {
        tracing::error!(task = task.name, silent = task.silent.as_secs(), "the task stands still");
    }
    stuck.is_none()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_task_that_stands_still_is_no_sign_of_life() {
        let supervisor = Supervisor::new(CancellationToken::new(), RESTARTS, fastrand::Rng::with_seed(1));
        let beating = supervisor.spawn("beating", |task| async move {
            while task.cancel.run_until_cancelled(tokio::time::sleep(SECOND * 10)).await.is_some() {
                task.beat();
            }
        });
        let patience = SECOND * 30;
        tokio::time::sleep(SECOND * 120).await;
        assert!(are_alive(&[(&supervisor, patience)]));
        let stuck = supervisor.spawn("stuck", |_| std::future::pending::<()>());
        tokio::time::sleep(SECOND * 20).await;
        assert!(are_alive(&[(&supervisor, patience)]), "not yet");
        tokio::time::sleep(SECOND * 20).await;
        assert!(!are_alive(&[(&supervisor, patience)]));
        // An instance whose loop gives no sign for that counts as dead.
        let health = Arc::new(Health::new(patience));
        let view = crate::operator::View {
            metrics: Arc::default(),
            health: Arc::clone(&health),
            summary: Arc::default(),
            instance: "one".to_owned(),
        };
        health.beat();
        assert_eq!(setpoint_observe::Observed::liveness(&view), Ok(()));
        tokio::time::sleep(patience + SECOND).await;
        assert!(setpoint_observe::Observed::liveness(&view).is_err());
        drop((beating, stuck));
    }

    /// What is written to a log.
    #[derive(Clone, Debug, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_logged_with_its_task_and_its_message_and_counted() {
        let log = Log::default();
        let written = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || written.clone()).finish();
        let _default = tracing::subscriber::set_default(subscriber);
        let metrics = Arc::new(Metrics::default());
        let supervisor = Supervisor::new(CancellationToken::new(), RESTARTS, fastrand::Rng::with_seed(1))
            .reporting(restarts(&metrics));
        supervisor.spawn("shop", |_| -> std::future::Ready<()> { panic!("a bug") });
        tokio::time::sleep(RESTARTS.0).await;
        let text = String::from_utf8(log.0.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let text = text.expect("it is text");
        for part in ["ERROR", "the task panicked", "shop", "a bug"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!metrics.text().contains("task_restarts_total 0"), "{}", metrics.text());
    }
}
