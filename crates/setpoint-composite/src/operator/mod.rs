//! Reconciles Composites: many of them, in many namespaces, in one process.
//!
//! ```text
//!  Lease ──▶ leadership: follows all Composites ──▶ one reconciler for each namespace
//!                                                            │
//!            ┌───────────────────────────────────────────────┤
//!            ▼                                               ▼
//!  namespace: the oldest wins                     Publisher: Consul ──▶ ConfigMap
//!  keys: validate, finalizer, owned keys,                    │
//!        transaction, trim                                   │
//!            └──────────▶ report: status, Events ◀───────────┘
//! ```
//!
//! Everything is level-triggered: a reconciler looks at what is there and does what is missing, and nothing rests on having
//! seen an event. It can be killed at any instruction.

mod composites;
mod contest;
mod keys;
mod leadership;
mod memory;
mod metrics;
mod namespace;
mod overview;
mod publishing;
mod reconciler;
mod references;
mod release;
mod report;
mod structures;
mod summary;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::events::Reporter;
use serde_json::{Value, json};
use setpoint_consul as consul;
use setpoint_kube::client::Clients;
use setpoint_kube::lease::{self, Elector, Fence, LeadershipEvent};
use setpoint_observe::{Health, Observed, Role};
use tokio_util::sync::CancellationToken;

use crate::publish::Observations;
use crate::settings::{InvalidSetting, Settings};

pub use keys::{apply, claimant, declaration, owned};
pub use metrics::{Metrics, Result as RequestResult};
pub use namespace::{NamespaceComposites, sort_composites};
pub use release::{ReleaseError, Released, release};
pub use report::{ConsulState, Facts, status_of};
use structures::Structures;
pub use summary::{NamespaceSummary, Summary};

/// How often the files with certificates are looked at.
const CERTIFICATES: Duration = Duration::from_secs(2);
/// How long the loop may stand still before it would help to start the process anew.
const PATIENCE: Duration = Duration::from_secs(30);

/// Keeps Composites, Consul and ConfigMaps in step.
pub struct Operator {
    clients: Clients,
    consul: consul::Client,
    settings: Settings,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    summary: Arc<Summary>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Operator {
    /// Makes an operator; nothing is asked or written yet.
    pub fn new(
        clients: impl Into<Clients>,
        consul: consul::Client,
        settings: Settings,
    ) -> Result<Self, InvalidSetting> {
        settings.validate()?;
        let (metrics, health) = (Arc::default(), Arc::new(Health::new(PATIENCE)));
        let summary = Arc::default();
        Ok(Self { clients: clients.into(), consul, settings, metrics, health, summary })
    }

    /// Its metrics.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Its signs of life, and what it does: each change of that can be subscribed to.
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.health)
    }

    /// What can be seen of it from outside.
    pub fn observed(&self) -> Arc<dyn Observed> {
        Arc::new(View {
            metrics: Arc::clone(&self.metrics),
            health: Arc::clone(&self.health),
            summary: Arc::clone(&self.summary),
            instance: self.settings.instance.clone(),
        })
    }

    /// What it knows of the namespaces that it serves.
    pub fn summary(&self) -> Arc<Summary> {
        Arc::clone(&self.summary)
    }

    /// Works until it is cancelled; then gives back the Lease and the token of its login.
    pub async fn run(self, cancel: CancellationToken) {
        tokio::select! {
            () = self.work(&cancel) => {}
            () = self.renew_certificates() => {}
        }
        if let Ok(Err(error)) = tokio::time::timeout(Duration::from_secs(2), self.consul.logout()).await {
            tracing::warn!(%error, "can't log out of Consul");
        }
    }

    /// Takes other certificates over when their files change.
    async fn renew_certificates(&self) {
        let mut failure = None;
        loop {
            let renewed = self.consul.renew_certificates().await;
            self.metrics.certificates(renewed.is_ok(), matches!(renewed, Ok(true)));
            let current = match renewed {
                Ok(renewed) => {
                    if renewed {
                        tracing::info!("other certificates are used for Consul");
                    }
                    None
                }
                Err(error) => Some(error.message()),
            };
            if let Some(error) = current.as_ref().filter(|_| current != failure) {
                tracing::warn!(error, "the certificates for Consul can't be used; those from before are");
            }
            failure = current;
            tokio::time::sleep(CERTIFICATES).await;
        }
    }

    async fn work(&self, cancel: &CancellationToken) {
        let Some(election) = &self.settings.election else {
            return self.lead(Fence::open(), cancel.child_token()).await;
        };
        let instance = &self.settings.instance;
        let elector = Elector::new(
            self.clients.clone(),
            &election.namespace,
            &election.name,
            instance,
            election.timing,
        );
        let report = |leadership: LeadershipEvent<'_>| self.report_leadership(&leadership);
        lease::lead(&elector, cancel, report, |fence, cancel| self.lead(fence, cancel)).await;
    }

    fn report_leadership(&self, leadership: &LeadershipEvent<'_>) {
        let instance = &self.settings.instance;
        let lease = self.settings.election.as_ref();
        let lease = lease.map(|election| format!("{}/{}", election.namespace, election.name));
        self.health.beat();
        match leadership {
            LeadershipEvent::Standby { holder } => {
                tracing::debug!(lease, holder, "the lease is looked at");
                self.health.set_role(Role::Standby);
            }
            LeadershipEvent::Leading { transitions } => {
                tracing::info!(instance, lease, transitions, "this instance leads");
                self.metrics.leads(Some(*transitions));
            }
            LeadershipEvent::Lost | LeadershipEvent::Ended => {
                if matches!(leadership, LeadershipEvent::Lost) {
                    tracing::warn!(instance, lease, "this instance does not lead any more");
                }
                self.metrics.leads(None);
                self.metrics.composites(0);
                self.summary.clear();
                self.health.set_role(Role::Starting);
            }
            LeadershipEvent::Failed(error) => {
                tracing::warn!(lease, %error, "the lease can't be had; it is tried again");
            }
        }
    }

    async fn lead(&self, fence: Fence, cancel: CancellationToken) {
        self.health.set_role(Role::TakingOver);
        let reporter = Reporter {
            controller: self.settings.managed_by.clone(),
            instance: Some(self.settings.instance.clone()),
        };
        let events = leadership::Events::new(self.clients.shared.clone(), reporter);
        let structures = Structures::new(
            self.consul.clone(),
            &self.settings,
            Arc::clone(&self.metrics),
            cancel.child_token(),
        );
        let shared = leadership::Shared {
            structures,
            observations: Observations::default(),
            client: self.clients.shared.clone(),
            consul: self.consul.clone(),
            settings: self.settings.clone(),
            metrics: Arc::clone(&self.metrics),
            health: Arc::clone(&self.health),
            summary: Arc::clone(&self.summary),
            events,
            fence,
        };
        leadership::lead(shared, cancel).await;
    }
}

/// What can be seen of an operator from outside.
#[derive(Debug)]
struct View {
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    summary: Arc<Summary>,
    instance: String,
}

impl Observed for View {
    fn liveness(&self) -> Result<(), String> {
        self.health.liveness()
    }

    fn readiness(&self) -> Result<String, String> {
        self.health.readiness()
    }

    fn metrics(&self) -> String {
        self.metrics.text()
    }

    fn state(&self) -> Value {
        let mut state = self.summary.json();
        state["instance"] = json!(self.instance);
        if let (Value::Object(state), Value::Object(health)) = (&mut state, self.health.json()) {
            state.extend(health);
        }
        state
    }
}
