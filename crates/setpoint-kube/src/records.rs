//! Writes to the resources that people declare: finalizer and status, each as the version that was read.

use std::fmt;
use std::time::Duration;

use kube::api::{Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::timeout;

use crate::lease::{Fence, Fenced};
use crate::message_of;

/// Why a resource could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Another instance leads.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// It was changed meanwhile, or is gone: the next read shows it.
    #[error("the resource was changed meanwhile")]
    Overtaken,
    /// The API server refused it, or could not be reached.
    #[error("{}", message_of(.0))]
    Api(kube::Error),
    /// There was no answer in time.
    #[error("the API server did not answer within {0:?}")]
    Timeout(Duration),
}

impl From<kube::Error> for RecordError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if matches!(status.code, 404 | 409) => Self::Overtaken,
            _ => Self::Api(error),
        }
    }
}

/// Reads and writes the resources of one kind in one namespace.
///
/// A resource that was deleted and made anew under the same name is another one: it is never taken for the first.
#[derive(Clone)]
pub struct Records<K> {
    api: Api<K>,
    fence: Fence,
    finalizer: &'static str,
    limit: Duration,
}

impl<K> fmt::Debug for Records<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("finalizer", &self.finalizer).finish_non_exhaustive()
    }
}

impl<K> Records<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    /// Reads and writes with a client, behind a fence; no request takes longer than `limit`.
    pub fn new(
        client: Client,
        namespace: &str,
        finalizer: &'static str,
        fence: Fence,
        limit: Duration,
    ) -> Self {
        Self { api: Api::namespaced(client, namespace), fence, finalizer, limit }
    }

    /// Returns the resource as it is now, if it is still the same one.
    pub async fn read(&self, seen: &K) -> Result<K, RecordError> {
        let found = self.limited(self.api.get_opt(&seen.name_any())).await?;
        found.filter(|found| found.uid() == seen.uid()).map(Self::trimmed).ok_or(RecordError::Overtaken)
    }

    /// Returns whether the finalizer is there.
    pub fn has_finalizer(&self, resource: &K) -> bool {
        resource.finalizers().iter().any(|name| name == self.finalizer)
    }

    /// Adds the finalizer, if it is not there.
    pub async fn add_finalizer(&self, resource: K) -> Result<K, RecordError> {
        if self.has_finalizer(&resource) {
            return Ok(resource);
        }
        let mut finalizers = resource.finalizers().to_vec();
        finalizers.push(self.finalizer.to_owned());
        self.set_finalizers(&resource, &finalizers).await
    }

    /// Removes the finalizer: the resource may go.
    pub async fn remove_finalizer(&self, resource: &K) -> Result<(), RecordError> {
        if !self.has_finalizer(resource) {
            return Ok(());
        }
        let left: Vec<_> =
            resource.finalizers().iter().filter(|name| *name != self.finalizer).cloned().collect();
        self.set_finalizers(resource, &left).await.map(drop)
    }

    /// Writes the status of a resource, as the version that was read.
    pub async fn write_status(&self, mut resource: K) -> Result<K, RecordError> {
        resource.meta_mut().managed_fields = None;
        self.fence.check()?;
        let (name, replace) = (resource.name_any(), PostParams::default());
        self.limited(self.api.replace_status(&name, &replace, &resource)).await.map(Self::trimmed)
    }

    async fn set_finalizers(&self, resource: &K, finalizers: &[String]) -> Result<K, RecordError> {
        let metadata = json!({ "resourceVersion": resource.resource_version(), "finalizers": finalizers });
        let (patch, parameters) = (Patch::Merge(json!({ "metadata": metadata })), PatchParams::default());
        self.fence.check()?;
        self.limited(self.api.patch(&resource.name_any(), &parameters, &patch)).await.map(Self::trimmed)
    }

    async fn limited<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, RecordError> {
        Ok(timeout(self.limit, call).await.map_err(|_| RecordError::Timeout(self.limit))??)
    }

    /// Without who manages which field: nobody reads it, and it is most of what a resource takes in memory.
    fn trimmed(mut resource: K) -> K {
        resource.meta_mut().managed_fields = None;
        resource
    }
}
