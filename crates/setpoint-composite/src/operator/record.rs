//! Writes to a Composite itself: finalizer and status, each as the version that was read.

use std::time::Duration;

use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use tokio::time::timeout;

use crate::api::{Composite, CompositeStatus, FINALIZER};
use crate::lease::{Fence, Fenced};
use crate::publish::told;

/// Why a Composite could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// It was changed meanwhile, or is gone: whoever looks again sees it.
    #[error("the Composite was changed meanwhile")]
    Overtaken,
    #[error("{}", told(.0))]
    Api(kube::Error),
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

/// Reads and writes the Composites of one namespace.
#[derive(Clone, Debug)]
pub(super) struct Records {
    composites: Api<Composite>,
    fence: Fence,
    limit: Duration,
}

impl Records {
    pub(super) fn new(client: Client, namespace: &str, fence: Fence, limit: Duration) -> Self {
        Self { composites: Api::namespaced(client, namespace), fence, limit }
    }

    /// The Composite as it is now, if it is still the same one.
    pub(super) async fn read(&self, seen: &Composite) -> Result<Composite, RecordError> {
        let found = self.limited(self.composites.get_opt(&seen.name_any())).await?;
        found.filter(|found| found.uid() == seen.uid()).ok_or(RecordError::Overtaken)
    }

    /// Puts the finalizer, if it is not there.
    pub(super) async fn guard(&self, composite: Composite) -> Result<Composite, RecordError> {
        if composite.is_guarded() {
            return Ok(composite);
        }
        let mut finalizers = composite.finalizers().to_vec();
        finalizers.push(FINALIZER.to_owned());
        self.set_finalizers(&composite, &finalizers).await
    }

    /// Takes the finalizer away: the Composite may go.
    pub(super) async fn unguard(&self, composite: &Composite) -> Result<(), RecordError> {
        if !composite.is_guarded() {
            return Ok(());
        }
        let left: Vec<_> = composite.finalizers().iter().filter(|name| *name != FINALIZER).cloned().collect();
        self.set_finalizers(composite, &left).await.map(drop)
    }

    /// Writes the status, with the number of this term, if it differs.
    pub(super) async fn tell(
        &self,
        mut composite: Composite,
        mut status: CompositeStatus,
    ) -> Result<Composite, RecordError> {
        status.lease_transitions = self.fence.term();
        if composite.status.as_ref() == Some(&status) {
            return Ok(composite);
        }
        composite.status = Some(status);
        composite.meta_mut().managed_fields = None;
        self.fence.check()?;
        let (name, replace) = (composite.name_any(), PostParams::default());
        self.limited(self.composites.replace_status(&name, &replace, &composite)).await
    }

    async fn set_finalizers(
        &self,
        composite: &Composite,
        finalizers: &[String],
    ) -> Result<Composite, RecordError> {
        let metadata = json!({ "resourceVersion": composite.resource_version(), "finalizers": finalizers });
        let (patch, parameters) = (Patch::Merge(json!({ "metadata": metadata })), PatchParams::default());
        self.fence.check()?;
        self.limited(self.composites.patch(&composite.name_any(), &parameters, &patch)).await
    }

    async fn limited<T>(&self, call: impl Future<Output = kube::Result<T>>) -> Result<T, RecordError> {
        Ok(timeout(self.limit, call).await.map_err(|_| RecordError::Timeout(self.limit))??)
    }
}
