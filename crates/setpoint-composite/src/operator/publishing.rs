//! The publisher of a namespace, with what it follows in Consul.

use std::sync::Arc;

use futures::FutureExt;
use kube::ResourceExt;
use setpoint_loop::{Supervisor, TaskHandle};
use tokio::sync::{Semaphore, watch};

use super::leadership::Shared;
use super::metrics::{Metrics, Result as RequestResult};
use super::report::ConsulState;
use crate::api::Composite;
use crate::publish::{Poll, PublishState, Publisher, PublisherSettings, Standing, Target, Writer};
use setpoint_structure::IssueKind;

/// A publisher at work.
#[derive(Debug)]
pub(super) struct Publishing {
    /// What it is for: the Composite, and the composite it is a part of.
    of: (Option<String>, String),
    namespace: String,
    task: TaskHandle,
    publisher: watch::Receiver<PublishState>,
    consul: watch::Receiver<ConsulState>,
    /// What the metrics show.
    shown: PublishState,
}

impl Publishing {
    /// Makes sure that the right publisher is at work, if any should be.
    pub(super) async fn ensure(
        now: &mut Option<Self>,
        (shared, turns): (&Arc<Shared>, &Arc<Semaphore>),
        namespace: &str,
        composite: &Composite,
        children: &Supervisor,
    ) {
        let of = (composite.uid(), composite.declared().composite_id().to_owned());
        if now.as_ref().is_some_and(|now| now.of == of) {
            return;
        }
        if let Some(old) = now.take() {
            old.stop().await;
        }
        if shared.settings.sync_enabled {
            *now = Self::start((shared, turns), namespace, composite, of, children);
        }
    }

    fn start(
        (shared, turns): (&Arc<Shared>, &Arc<Semaphore>),
        namespace: &str,
        composite: &Composite,
        of: (Option<String>, String),
        children: &Supervisor,
    ) -> Option<Self> {
        let settings = &shared.settings;
        let (consul_sender, consul) = watch::channel(ConsulState::default());
        let (sender, publisher) = watch::channel(PublishState::default());
        let target = Target {
            namespace: namespace.to_owned(),
            name: settings.config_map.clone(),
            managed_by: settings.managed_by.clone(),
            part_of: settings.part_of.clone(),
        };
        let at_work = Publisher {
            observations: shared.observations.subscribe(namespace),
            writer: Writer::new(
                shared.client.clone(),
                target,
                shared.fence.clone(),
                settings.request_timeout,
            ),
            composite: of.1.clone(),
            owner: composite.owner()?,
            settings: PublisherSettings {
                provider: settings.cloud_provider.to_string(),
                check_interval: settings.check_interval,
                pauses: (settings.apply_retry_time, settings.apply_retry_max_time),
                removal_grace: settings.removal_grace,
            },
            turns: Arc::clone(turns),
            poll: poll(shared, &of.1, consul_sender),
            state: sender,
        };
        let task = children.spawn("publisher", move |task| at_work.clone().run(task.cancel));
        let namespace = namespace.to_owned();
        Some(Self { of, namespace, task, publisher, consul, shown: PublishState::default() })
    }

    /// Ends it.
    pub(super) async fn stop(self) {
        self.task.stop().await;
    }

    /// Waits until there is something to report; without a publisher there is never anything.
    pub(super) async fn news(now: Option<&mut Self>) {
        let Some(now) = now else { return std::future::pending().await };
        tokio::select! {
            Ok(()) = now.publisher.changed() => {}
            Ok(()) = now.consul.changed() => {}
            else => std::future::pending().await,
        }
    }

    /// The state of the publisher, and how reading Consul goes.
    pub(super) fn state(&self) -> (PublishState, ConsulState) {
        (self.publisher.borrow().clone(), self.consul.borrow().clone())
    }

    /// Updates the metrics with what changed; returns why writing fails, if it has just begun to.
    pub(super) fn update_metrics(&mut self, metrics: &Metrics) -> Option<String> {
        let now = self.publisher.borrow().clone();
        let (namespace, shown) = (self.namespace.as_str(), &self.shown);
        metrics.owned(namespace, now.standing == Standing::Ours);
        metrics.contested(namespace, now.contested.is_some());
        if let Some(snapshot) = &now.snapshot {
            metrics.index(namespace, snapshot.index);
        }
        if let Some((index, _)) = now.applied {
            metrics.applied(namespace, index);
        }
        if now.writes > shown.writes {
            metrics.writes(namespace, RequestResult::ok, now.writes - shown.writes);
            if let Some(latency) = now.latency {
                metrics.published_in(latency);
            }
        }
        let failed = now.failures.saturating_sub(shown.failures);
        if failed > 0 {
            metrics.writes(namespace, RequestResult::error, failed.into());
        }
        metrics.issues(
            namespace,
            &IssueKind::ALL.map(IssueKind::as_str),
            now.issues.iter().map(|issue| issue.kind.as_str()),
        );
        let begun = shown.failures == 0 && now.failures > 0;
        let trouble = now.failure.clone().filter(|_| begun);
        self.shown = now;
        trouble
    }
}

/// Passes the snapshots of a composite's structure on, for as long as they are wanted.
fn poll(shared: &Arc<Shared>, composite: &str, state: watch::Sender<ConsulState>) -> Poll {
    let (shared, composite) = (Arc::clone(shared), composite.to_owned());
    Arc::new(move |sink| {
        let (shared, composite, state) = (Arc::clone(&shared), composite.clone(), state.clone());
        let pass_on = async move {
            let followed = shared.structures.follow(&composite);
            let (mut snapshot, mut consul) = (followed.snapshot.clone(), followed.consul.clone());
            let mut fresh = true;
            loop {
                let trouble = consul.borrow_and_update().clone();
                state.send_if_modified(|state| {
                    let news = *state != trouble;
                    *state = trouble;
                    news
                });
                let latest = fresh.then(|| snapshot.borrow_and_update().clone()).flatten();
                if let Some(latest) = latest
                    && sink.send(latest).is_err()
                {
                    return;
                }
                fresh = tokio::select! {
                    Ok(()) = snapshot.changed() => true,
                    Ok(()) = consul.changed() => false,
                    else => return,
                };
            }
        };
        pass_on.boxed()
    })
}
