//! Reconciles Composites: many of them, in many namespaces, in one process.
//!
//! ```text
//!  Lease ──▶ term: the leader follows all Composites ──▶ one keeper for each namespace
//!                                                            │
//!            ┌───────────────────────────────────────────────┤
//!            ▼                                               ▼
//!  roster: the oldest wins                        Publisher: Consul ──▶ ConfigMap
//!  keys: validate, finalizer, owned keys,                    │
//!        transaction, trim                                   │
//!            └──────────▶ report: status, Events ◀───────────┘
//! ```
//!
//! Everything is level-triggered: a keeper looks at what is there and does what is missing, and nothing rests on having
//! seen an event. It can be killed at any instruction.

mod composites;
mod keeper;
mod keys;
mod publishing;
mod record;
mod references;
mod report;
mod roster;
mod structures;
mod term;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::runtime::events::{Recorder, Reporter};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::consul;
use crate::lease::{Elector, Fence};
use crate::observe::{Metrics, Role, Vitals};
use crate::publish::Sightings;
use crate::settings::{InvalidSetting, Settings};

pub use keys::declaration;
pub use report::{ConsulState, Facts, status_of};
pub use roster::{Roster, roster};
use structures::Structures;

/// How often the files with certificates are looked at.
const CERTIFICATES: Duration = Duration::from_secs(2);
/// How often the main loop gives a sign of life.
const BEAT: Duration = Duration::from_secs(1);

/// Keeps Composites, Consul and ConfigMaps in step.
pub struct Operator {
    client: Client,
    consul: consul::Client,
    settings: Settings,
    metrics: Arc<Metrics>,
    vitals: Arc<Vitals>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Operator {
    /// Makes an operator; nothing is asked or written yet.
    pub fn new(client: Client, consul: consul::Client, settings: Settings) -> Result<Self, InvalidSetting> {
        settings.validate()?;
        let (metrics, vitals) = (Arc::default(), Arc::new(Vitals::new(Duration::from_secs(30))));
        Ok(Self { client, consul, settings, metrics, vitals })
    }

    /// Its metrics.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Its signs of life.
    pub fn vitals(&self) -> Arc<Vitals> {
        Arc::clone(&self.vitals)
    }

    /// Works until it is cancelled; then gives back the Lease and the token of its login.
    pub async fn run(self, cancel: CancellationToken) {
        let beats = async {
            loop {
                self.vitals.beat();
                tokio::time::sleep(BEAT).await;
            }
        };
        // In one task: a main loop that is stuck gives no sign.
        tokio::select! {
            () = self.work(&cancel) => {}
            () = beats => {}
            () = self.renew_certificates() => {}
        }
        if let Ok(Err(error)) = tokio::time::timeout(Duration::from_secs(2), self.consul.logout()).await {
            tracing::warn!(%error, "can't log out of Consul");
        }
    }

    /// Takes other certificates over when their files change.
    async fn renew_certificates(&self) {
        let mut trouble = None;
        loop {
            let renewed = self.consul.renew_certificates().await;
            self.metrics.certificates(renewed.is_ok(), matches!(renewed, Ok(true)));
            let told = match renewed {
                Ok(renewed) => {
                    if renewed {
                        tracing::info!("other certificates are used for Consul");
                    }
                    None
                }
                Err(error) => Some(error.told()),
            };
            if let Some(error) = told.as_ref().filter(|_| told != trouble) {
                tracing::warn!(error, "the certificates for Consul can't be used; those from before are");
            }
            trouble = told;
            tokio::time::sleep(CERTIFICATES).await;
        }
    }

    async fn work(&self, cancel: &CancellationToken) {
        let Some(election) = &self.settings.election else {
            return self.lead(Fence::open(), cancel.child_token()).await;
        };
        let instance = &self.settings.instance;
        let elector =
            Elector::new(self.client.clone(), &election.namespace, &election.name, instance, election.timing);
        while !cancel.is_cancelled() {
            let campaign = elector.campaign(|looked| match looked {
                Ok(holder) => {
                    tracing::debug!(holder, "the lease is looked at");
                    self.vitals.set_role(Role::Standby);
                }
                Err(error) => tracing::warn!(%error, "the lease can't be had"),
            });
            let Some(mut term) = cancel.run_until_cancelled(campaign).await else { return };
            let fence = term.fence.clone();
            tracing::info!(instance, transitions = fence.transitions(), "this instance leads");
            self.metrics.leads(Some(fence.transitions()));
            tokio::select! {
                () = elector.hold(&mut term) => {
                    tracing::warn!(instance, "this instance does not lead any more");
                }
                () = self.lead(fence, cancel.child_token()) => {}
            }
            self.metrics.leads(None);
            self.vitals.set_role(Role::Starting);
            if let Err(error) = elector.release(term).await {
                tracing::warn!(%error, "the lease can't be given back");
            }
        }
    }

    async fn lead(&self, fence: Fence, cancel: CancellationToken) {
        self.vitals.set_role(Role::TakingOver);
        let reporter = Reporter {
            controller: self.settings.managed_by.clone(),
            instance: Some(self.settings.instance.clone()),
        };
        let recorder = Recorder::new(self.client.clone(), reporter);
        let structures = Structures::new(
            self.consul.clone(),
            &self.settings,
            Arc::clone(&self.metrics),
            cancel.child_token(),
        );
        let shared = term::Shared {
            structures,
            sightings: Sightings::default(),
            client: self.client.clone(),
            consul: self.consul.clone(),
            settings: self.settings.clone(),
            metrics: Arc::clone(&self.metrics),
            vitals: Arc::clone(&self.vitals),
            recorder,
            fence,
            passes: Semaphore::new(term::PASSES),
        };
        term::lead(shared, cancel).await;
    }
}
