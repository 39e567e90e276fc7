//! The publisher of a namespace, with what it needs of Consul.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::ResourceExt;
use setpoint_loop::{Supervisor, TaskHandle, latest};
use tokio::sync::watch;

use super::report::ConsulState;
use super::term::Shared;
use crate::api::Composite;
use crate::consul;
use crate::declare::structure_ref_key;
use crate::observe::{Metrics, RequestResult};
use crate::publish::{Poll, PublishState, Publisher, PublisherSettings, Standing, Target, Writer};
use crate::structure::{IssueKind, prefix};
use crate::watch::{self as consul_watch, Event, Snapshot};

/// After how many failures in a row Consul counts as out of reach.
const TOLERATED: u32 = 3;

/// A publisher at work.
#[derive(Debug)]
pub(super) struct Publishing {
    /// What it is for: the Composite, and the composite it is a part of.
    of: (Option<String>, String),
    namespace: String,
    tasks: Vec<TaskHandle>,
    publisher: watch::Receiver<PublishState>,
    consul: watch::Receiver<ConsulState>,
    reference: latest::Receiver<Snapshot>,
    /// What was told to the metrics.
    told: PublishState,
}

/// What a publisher has to say.
#[derive(Debug)]
pub(super) enum News {
    /// Its state changed.
    Reported,
    /// What Consul says of the key that refers to the structure.
    Reference(Snapshot),
}

impl Publishing {
    /// Makes sure that the right publisher is at work, if any should be.
    pub(super) async fn ensure(
        now: &mut Option<Self>,
        shared: &Arc<Shared>,
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
            *now = Self::start(shared, namespace, composite, of, children);
        }
    }

    fn start(
        shared: &Arc<Shared>,
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
            client: shared.client.clone(),
            writer: Writer::new(
                shared.client.clone(),
                target,
                shared.fence.clone(),
                settings.request_timeout,
            ),
            owner: composite.owner()?,
            settings: PublisherSettings {
                provider: settings.cloud_provider.to_string(),
                check_interval: settings.check_interval,
                pauses: (settings.apply_retry_time, settings.apply_retry_max_time),
            },
            poll: poll(shared, namespace, prefix(&of.1), consul_sender),
            state: sender,
        };
        let publishing = children.spawn("publisher", move |task| at_work.clone().run(task.cancel));
        let (sender, reference) = latest::channel();
        let (client, watched) = (shared.consul.clone(), watch_settings(shared));
        let key = structure_ref_key(namespace);
        let following = children.spawn("structureRef", move |task| {
            let (client, key, sender) = (client.clone(), key.clone(), sender.clone());
            consul_watch::watch(client, key, watched.clone(), sender, task.cancel, |_: Event<'_>| {})
        });
        let (namespace, tasks) = (namespace.to_owned(), vec![publishing, following]);
        Some(Self { of, namespace, tasks, publisher, consul, reference, told: PublishState::default() })
    }

    /// Ends it.
    pub(super) async fn stop(self) {
        for task in &self.tasks {
            task.cancel();
        }
        for task in &self.tasks {
            task.ended().await;
        }
    }

    /// Waits for news; without a publisher there is never any.
    pub(super) async fn news(now: Option<&mut Self>) -> News {
        let Some(now) = now else { return std::future::pending().await };
        tokio::select! {
            Ok(()) = now.publisher.changed() => News::Reported,
            Ok(()) = now.consul.changed() => News::Reported,
            Some(snapshot) = now.reference.recv() => News::Reference(snapshot),
            else => std::future::pending().await,
        }
    }

    /// What the publisher says, and how reading Consul goes.
    pub(super) fn state(&self) -> (PublishState, ConsulState) {
        (self.publisher.borrow().clone(), self.consul.borrow().clone())
    }

    /// Tells the metrics what changed; gives why writing fails, if it has just begun to.
    pub(super) fn take_stock(&mut self, metrics: &Metrics) -> Option<String> {
        let now = self.publisher.borrow().clone();
        let (namespace, told) = (self.namespace.as_str(), &self.told);
        metrics.owned(namespace, now.standing == Standing::Ours);
        if let Some(snapshot) = &now.snapshot {
            metrics.index(namespace, snapshot.index);
        }
        if let Some((index, _)) = now.applied {
            metrics.applied(namespace, index);
        }
        if now.writes > told.writes {
            metrics.writes(namespace, RequestResult::ok, now.writes - told.writes);
        }
        let failed = now.failures.saturating_sub(told.failures);
        if failed > 0 {
            metrics.writes(namespace, RequestResult::error, failed.into());
        }
        metrics.issues(
            namespace,
            &IssueKind::ALL.map(IssueKind::as_str),
            now.issues.iter().map(|issue| issue.kind.as_str()),
        );
        let begun = told.failures == 0 && now.failures > 0;
        let trouble = now.failure.clone().filter(|_| begun);
        self.told = now;
        trouble
    }
}

/// How Consul is watched.
fn watch_settings(shared: &Shared) -> consul_watch::Settings {
    let settings = &shared.settings;
    consul_watch::Settings {
        wait: settings.wait_time,
        refill: settings.on_success_delay_time,
        first_retry: settings.retry_time.min(Duration::from_millis(250)),
        longest_retry: settings.retry_time,
        removal_grace: settings.removal_grace,
        ..consul_watch::Settings::default()
    }
}

/// Follows the structure in Consul, and says how that goes.
fn poll(shared: &Arc<Shared>, namespace: &str, prefix: String, state: watch::Sender<ConsulState>) -> Poll {
    let (shared, namespace) = (Arc::clone(shared), namespace.to_owned());
    Arc::new(move |sink, cancel| {
        let (client, settings) = (shared.consul.clone(), watch_settings(&shared));
        let (metrics, namespace, state) = (Arc::clone(&shared.metrics), namespace.clone(), state.clone());
        let observer = move |event: Event<'_>| {
            match &event {
                Event::Answered { .. } => metrics.poll(&namespace, RequestResult::ok),
                Event::Failed { .. } => metrics.poll(&namespace, RequestResult::error),
                _ => {}
            }
            tracing::debug!(namespace, ?event, "Consul is watched");
            if let Some(trouble) = trouble(&event) {
                state.send_if_modified(|state| {
                    let news = state.trouble.as_ref().map(|(reason, _)| *reason)
                        != trouble.as_ref().map(|(reason, _)| *reason);
                    if news {
                        state.trouble = trouble;
                    }
                    news
                });
            }
        };
        consul_watch::watch(client, prefix.clone(), settings, sink, cancel, observer).boxed()
    })
}

/// What an event says about reading Consul; none if it says nothing.
fn trouble(event: &Event<'_>) -> Option<Option<(&'static str, String)>> {
    match event {
        Event::Answered { .. } => Some(None),
        Event::Filtered { .. } => {
            let message = "ACLs hide entries of the structure from this token; nothing is removed for it";
            Some(Some(("ConsulFiltered", message.to_owned())))
        }
        Event::Failed { error: consul::Error::Denied(why), .. } => {
            Some(Some(("ConsulDenied", format!("Consul denies to read the structure: {why}"))))
        }
        Event::Failed { error, attempts, .. } if *attempts >= TOLERATED => {
            let message = format!("Consul can't be read, and the ConfigMap holds what it said last: {error}");
            Some(Some(("ConsulUnavailable", message)))
        }
        _ => None,
    }
}
