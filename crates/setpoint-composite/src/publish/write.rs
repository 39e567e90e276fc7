//! Writes the ConfigMap, and only a version of it that was read, and only while this instance may.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use serde_json::{Value, json};
use setpoint_kube::apply::{Applier, ApplyError, is_field_conflict, is_overtaken};
use setpoint_kube::lease::Fence;

use super::desired::{Desired, TRANSITIONS_ANNOTATION, Target, annotated};
use super::ownership::{Ownership, is_composite, ownership};

/// How often in a row a ConfigMap that changes under our hands is read anew before it counts as a failure.
const ROUNDS: usize = 5;

/// Why the ConfigMap was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It could not be read or written, or another instance leads.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Something else keeps changing it.
    #[error("something else keeps changing the ConfigMap")]
    Contended,
}

impl WriteError {
    /// Returns whether another instance leads.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Apply(ApplyError::Fenced(_)))
    }
}

/// How writing went.
#[derive(Debug)]
pub enum Written {
    /// All was as it should be.
    Unchanged(ConfigMap),
    /// It was written.
    Changed(ConfigMap),
    /// It is not ours, and was left alone.
    NotOurs(Ownership, Option<ConfigMap>),
}

/// Writes one ConfigMap.
#[derive(Clone, Debug)]
pub struct Writer {
    applier: Applier<ConfigMap>,
    target: Target,
}

impl Writer {
    /// Makes a writer; no request of it takes longer than `limit`.
    pub fn new(client: Client, target: Target, fence: Fence, limit: Duration) -> Self {
        let place = (target.namespace.as_str(), target.name.as_str());
        Self { applier: Applier::new(client, place, &target.managed_by, fence, limit), target }
    }

    /// The ConfigMap that it writes.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The right to write.
    pub fn fence(&self) -> &Fence {
        self.applier.fence()
    }

    /// Reads the ConfigMap.
    pub async fn read(&self) -> Result<Option<ConfigMap>, WriteError> {
        Ok(self.applier.read().await?)
    }

    /// Whose ConfigMap it is.
    pub fn ownership(&self, current: Option<&ConfigMap>) -> Ownership {
        ownership(current, &self.target.managed_by)
    }

    /// Brings the ConfigMap from what was read to what is desired, if it is ours and differs.
    ///
    /// A conflict is looked at anew: who leads, whose ConfigMap it is, what it holds. Only then our own fields are
    /// forced, and only onto the version that was just looked at.
    pub async fn write(&self, current: Option<ConfigMap>, desired: &Desired) -> Result<Written, WriteError> {
        let mut current = current;
        let mut force = false;
        for _ in 0..ROUNDS {
            let found = self.ownership(current.as_ref());
            if !found.is_ours() {
                return Ok(Written::NotOurs(found, current));
            }
            if let Some(met) = current.take_if(|current| desired.is_met_by(current, &self.target)) {
                return Ok(Written::Unchanged(met));
            }
            if current.as_ref().and_then(|map| annotated(map, TRANSITIONS_ANNOTATION))
                > Some(desired.transitions)
            {
                self.fence().confirm().await.map_err(ApplyError::from)?;
            }
            let attempt = match &current {
                None => self.applier.create(&desired.object(&self.target, None)).await,
                Some(current) => {
                    let version = current.metadata.resource_version.as_deref();
                    self.applier.apply(&desired.object(&self.target, version), force).await
                }
            };
            match attempt {
                Ok(written) => return Ok(Written::Changed(written)),
                Err(ApplyError::Api(kube::Error::Api(status))) if is_overtaken(&status) => {
                    self.fence().confirm().await.map_err(ApplyError::from)?;
                    force = is_field_conflict(&status);
                    current = self.read().await?;
                }
                Err(ApplyError::Api(kube::Error::Api(status))) if status.code == 422 => {
                    // A second controller is invalid; whether there is one is seen by looking.
                    current = self.read().await?;
                    let found = self.ownership(current.as_ref());
                    if found.is_ours() {
                        return Err(ApplyError::Api(kube::Error::Api(status)).into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(WriteError::Contended)
    }

    /// Takes back our reference and our claim on fields from a ConfigMap that is another's now: it is not collected
    /// with our Composite, and its new owner meets no conflict. Nothing else of it changes.
    pub async fn release(&self, current: &ConfigMap) -> Result<Option<ConfigMap>, WriteError> {
        let references = current.metadata.owner_references.iter().flatten();
        let ours: Vec<Value> = references
            .filter(|owner| is_composite(owner))
            .map(|owner| json!({ "$patch": "delete", "uid": owner.uid }))
            .collect();
        let claims = current.metadata.managed_fields.iter().flatten();
        let (mine, others): (Vec<_>, Vec<_>) =
            claims.partition(|claim| claim.manager.as_deref() == Some(&self.target.managed_by));
        if ours.is_empty() && mine.is_empty() {
            return Ok(None);
        }
        let mut metadata = json!({ "resourceVersion": current.metadata.resource_version });
        if !ours.is_empty() {
            metadata["ownerReferences"] = Value::Array(ours);
        }
        if !mine.is_empty() {
            metadata["managedFields"] = json!(others);
        }
        Ok(Some(self.applier.patch(json!({ "metadata": metadata })).await?))
    }
}
