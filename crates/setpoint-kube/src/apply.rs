//! Writes an object, and only a version of it that was read, and only while this instance may.

use std::fmt;
use std::time::Duration;

use kube::api::{Patch, PatchParams, PostParams};
use kube::core::{NamespaceResourceScope, Status};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::lease::{Fence, Fenced};
use crate::message_of;

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Another instance leads.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The API server refused it, or could not be reached.
    #[error("{}", message_of(.0))]
    Api(#[from] kube::Error),
    /// There was no answer in time.
    #[error("the API server did not answer within {0:?}")]
    Timeout(Duration),
}

/// Applies one object behind a fence.
#[derive(Clone)]
pub struct Applier<K> {
    api: Api<K>,
    name: String,
    manager: String,
    fence: Fence,
    limit: Duration,
}

impl<K> fmt::Debug for Applier<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applier").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K> Applier<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    /// Applies the object `namespace/name` as a field manager; no request takes longer than `limit`.
    pub fn new(
        client: Client,
        (namespace, name): (&str, &str),
        manager: &str,
        fence: Fence,
        limit: Duration,
    ) -> Self {
        let (name, manager) = (name.to_owned(), manager.to_owned());
        Self { api: Api::namespaced(client, namespace), name, manager, fence, limit }
    }

    /// The right to write.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Reads the object.
    pub async fn read(&self) -> Result<Option<K>, ApplyError> {
        self.limited(self.api.get_opt(&self.name)).await
    }

    /// Makes the object, and fails if somebody has: an apply would go into one that was made meanwhile.
    pub async fn create(&self, object: &K) -> Result<K, ApplyError> {
        self.fence.check()?;
        let parameters = PostParams { field_manager: Some(self.manager.clone()), ..PostParams::default() };
        let created = self.limited(self.api.create(&parameters, object)).await?;
        // What was created is claimed as if it had been applied, so that later applies meet no claim of our own.
        let mut claims = created.managed_fields().to_vec();
        for claim in &mut claims {
            claim.operation = Some("Apply".to_owned());
        }
        let metadata = json!({ "resourceVersion": created.resource_version(), "managedFields": claims });
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        self.fence.check()?;
        let parameters = PatchParams::default();
        let claimed = self.api.patch(&self.name, &parameters, &patch);
        // If this fails, the next apply meets the claim as a conflict, and settles it.
        Ok(self.limited(claimed).await.unwrap_or(created))
    }

    /// Applies the object, as the version that it names.
    pub async fn apply(&self, object: &K, force: bool) -> Result<K, ApplyError> {
        let parameters = PatchParams { force, ..PatchParams::apply(&self.manager) };
        let patch = Patch::Apply(object);
        self.fence.check()?;
        self.limited(self.api.patch(&self.name, &parameters, &patch)).await
    }

    /// Patches the object strategically; the patch names the version.
    pub async fn patch(&self, patch: Value) -> Result<K, ApplyError> {
        self.fence.check()?;
        let patch = Patch::Strategic(patch);
        let parameters = PatchParams { field_manager: Some(self.manager.clone()), ..PatchParams::default() };
        self.limited(self.api.patch(&self.name, &parameters, &patch)).await
    }

    async fn limited<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, ApplyError> {
        Ok(timeout(self.limit, call).await.map_err(|_| ApplyError::Timeout(self.limit))??)
    }
}

/// Returns whether the object is not what it was when it was read: changed, gone, or made by somebody else.
pub fn is_overtaken(status: &Status) -> bool {
    status.code == 409 || status.code == 404
}

/// Returns whether somebody else claims one of our fields.
pub fn is_field_conflict(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "FieldManagerConflict")
}
