//! The definition of the resource, for the API server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use super::Composite;

/// The definition that `kubectl apply` installs.
///
/// ```
/// let crd = setpoint_composite::api::crd();
/// assert_eq!(crd.metadata.name.as_deref(), Some("composites.core.netcracker.com"));
/// ```
pub fn crd() -> CustomResourceDefinition {
    Composite::crd()
}
