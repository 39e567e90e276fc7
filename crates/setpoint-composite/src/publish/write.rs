//! Writes the ConfigMap, and only a version of it that was read, and only while this instance may.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::desired::{Desired, TRANSITIONS_ANNOTATION, Target, annotated};
use super::ownership::{Ownership, is_composite, ownership};
use crate::lease::{Fence, Fenced};

/// How often in a row a ConfigMap that changes under our hands is read anew before it counts as a failure.
const ROUNDS: usize = 5;

/// Why the ConfigMap was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another instance leads.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The API server refused it, or could not be reached.
    #[error("{}", told(.0))]
    Api(#[from] kube::Error),
    /// There was no answer in time.
    #[error("the API server did not answer within {0:?}")]
    Timeout(Duration),
    /// Something else keeps changing it.
    #[error("something else keeps changing the ConfigMap")]
    Contended,
}

/// An error of the API server in its own words.
pub(crate) fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
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
    config_maps: Api<ConfigMap>,
    target: Target,
    fence: Fence,
    limit: Duration,
}

impl Writer {
    /// Makes a writer; no request of it takes longer than `limit`.
    pub fn new(client: Client, target: Target, fence: Fence, limit: Duration) -> Self {
        Self { config_maps: Api::namespaced(client, &target.namespace), target, fence, limit }
    }

    /// The ConfigMap that it writes.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The right to write.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Reads the ConfigMap.
    pub async fn read(&self) -> Result<Option<ConfigMap>, WriteError> {
        self.limited(self.config_maps.get_opt(&self.target.name)).await
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
                self.fence.confirm().await?;
            }
            let attempt = match &current {
                None => self.create(desired).await,
                Some(current) => self.apply(current, desired, force).await,
            };
            match attempt {
                Ok(written) => return Ok(Written::Changed(written)),
                Err(WriteError::Api(kube::Error::Api(status))) if is_overtaken(&status) => {
                    self.fence.confirm().await?;
                    force = is_field_conflict(&status);
                    current = self.read().await?;
                }
                Err(WriteError::Api(kube::Error::Api(status))) if status.code == 422 => {
                    // A second controller is invalid; whether there is one is seen by looking.
                    current = self.read().await?;
                    let found = self.ownership(current.as_ref());
                    if found.is_ours() {
                        return Err(WriteError::Api(kube::Error::Api(status)));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(WriteError::Contended)
    }

    /// Takes back our reference and our claim on fields from a ConfigMap that is another's now: it is not collected
    /// with our Composite, and its new owner meets no conflict. Nothing else of it changes.
    pub async fn let_go(&self, current: &ConfigMap) -> Result<Option<ConfigMap>, WriteError> {
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
        self.fence.check()?;
        let patch = Patch::Strategic(json!({ "metadata": metadata }));
        let parameters =
            PatchParams { field_manager: Some(self.target.managed_by.clone()), ..PatchParams::default() };
        self.limited(self.config_maps.patch(&self.target.name, &parameters, &patch)).await.map(Some)
    }

    /// Makes the ConfigMap, and fails if somebody has: an apply would go into one that was made meanwhile.
    async fn create(&self, desired: &Desired) -> Result<ConfigMap, WriteError> {
        self.fence.check()?;
        let manager = Some(self.target.managed_by.clone());
        let parameters = PostParams { field_manager: manager, ..PostParams::default() };
        let object = desired.object(&self.target, None);
        let created = self.limited(self.config_maps.create(&parameters, &object)).await?;
        // What was created is claimed as if it had been applied, so that later applies meet no claim of our own.
        let mut claims = created.metadata.managed_fields.clone().unwrap_or_default();
        for claim in &mut claims {
            claim.operation = Some("Apply".to_owned());
        }
        let metadata =
            json!({ "resourceVersion": created.metadata.resource_version, "managedFields": claims });
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        self.fence.check()?;
        let parameters = PatchParams::default();
        let claimed = self.config_maps.patch(&self.target.name, &parameters, &patch);
        // If this fails, the next apply meets the claim as a conflict, and settles it.
        Ok(self.limited(claimed).await.unwrap_or(created))
    }

    async fn apply(
        &self,
        current: &ConfigMap,
        desired: &Desired,
        force: bool,
    ) -> Result<ConfigMap, WriteError> {
        let object = desired.object(&self.target, current.metadata.resource_version.as_deref());
        let parameters = PatchParams { force, ..PatchParams::apply(&self.target.managed_by) };
        let patch = Patch::Apply(&object);
        self.fence.check()?;
        self.limited(self.config_maps.patch(&self.target.name, &parameters, &patch)).await
    }

    async fn limited<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, WriteError> {
        Ok(timeout(self.limit, call).await.map_err(|_| WriteError::Timeout(self.limit))??)
    }
}

/// Whether the object is not what it was when it was read: changed, gone, or made by somebody else.
fn is_overtaken(status: &Status) -> bool {
    status.code == 409 || status.code == 404
}

/// Whether somebody else claims one of our fields.
fn is_field_conflict(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "FieldManagerConflict")
}
