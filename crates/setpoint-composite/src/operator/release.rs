//! Lets Composites go where no operator is at work.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::{Client, ResourceExt};
use setpoint_consul as consul;
use setpoint_kube::lease::Fence;
use setpoint_kube::records::{RecordError, Records};
use tokio::time::timeout;

use super::keys::{Keys, KeysError};
use crate::api::{Composite, FINALIZER};

/// How long dropping claims may take: the keys may stay because Consul is away.
const UNCLAIM: Duration = Duration::from_secs(5);

/// Why a Composite was not released.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// Its keys can't be removed from Consul, and nobody has allowed them to stay.
    #[error("its keys can't be removed from Consul: {}", .0.message())]
    Consul(consul::Error),
    /// It can't be read or written.
    #[error(transparent)]
    Record(RecordError),
}

/// What became of a Composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// It had no finalizer: nothing holds it.
    Free,
    /// It is being deleted: its keys are removed, and it may go.
    Removed,
    /// It may go, and its keys are left in Consul.
    Left,
    /// It may go, and its keys are left in Consul, where nobody claims them for it any more.
    Unclaimed,
}

/// Removes the finalizer of a Composite. Of one that is being deleted the keys are removed from Consul before, unless they
/// may be left there: because `leave_keys` says so, or, where Consul can't be used, its annotation. Of keys that are left on
/// purpose the claims are dropped, if Consul can be used: they would hold against whoever declares the keys later.
///
/// No operator may be at work: it would put the finalizer back.
pub async fn release(
    client: Client,
    consul: &consul::Client,
    composite: &Composite,
    leave_keys: bool,
    limit: Duration,
) -> Result<Released, ReleaseError> {
    let namespace = composite.namespace().unwrap_or_default();
    let fence = Fence::open();
    let records = Records::new(client, &namespace, FINALIZER, fence.clone(), limit);
    let composite = match records.read(composite).await {
        Err(RecordError::Overtaken) => return Ok(Released::Free),
        other => other.map_err(ReleaseError::Record)?,
    };
    if !records.has_finalizer(&composite) {
        return Ok(Released::Free);
    }
    let mut released = Released::Left;
    let keys = Keys { consul, records: &records, fence: &fence, kept: None };
    if composite.is_leaving() && leave_keys {
        if let Ok(Ok(())) = timeout(UNCLAIM, keys.unclaim(&composite)).await {
            released = Released::Unclaimed;
        }
    } else if composite.is_leaving() {
        match keys.remove(&composite, &BTreeSet::new()).await {
            Ok(()) => released = Released::Removed,
            Err(KeysError::Consul(_)) if composite.is_released() => {}
            Err(KeysError::Consul(error)) => return Err(ReleaseError::Consul(error)),
            Err(KeysError::Record(error)) => return Err(ReleaseError::Record(error)),
            // It is never closed.
            Err(KeysError::Fenced(fenced)) => return Err(ReleaseError::Record(fenced.into())),
        }
    }
    match records.remove_finalizer(&composite).await {
        Err(RecordError::Overtaken) | Ok(()) => Ok(released),
        Err(error) => Err(ReleaseError::Record(error)),
    }
}
