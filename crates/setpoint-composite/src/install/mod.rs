//! What installs the operator: the definition of the resource, its rights, and a Deployment.
//!
//! The rights are the least that work: [`rules`] is all that an instance may do where it serves Composites, and
//! [`lease_rules`] all that it may do where it agrees with others on who leads. Tests run it with exactly these.

mod deployment;
mod rbac;

use serde_json::Value;

pub use deployment::deployment;
pub use rbac::{rbac, rules};
pub use setpoint_kube::manifests::lease_rules;

/// The name of all that is installed.
pub const NAME: &str = "setpoint-composite";

/// How the operator is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The namespace that it runs in.
    pub namespace: String,
    /// Whether it serves all namespaces, or only its own.
    pub all_namespaces: bool,
    /// The image.
    pub image: String,
    /// How many instances there are. One leads; the others stand by.
    pub replicas: u32,
    /// Where Consul is.
    pub consul_url: String,
    /// The name of the ConfigMap that is published.
    pub config_map: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "core".to_owned(),
            all_namespaces: false,
            image: concat!("setpoint:", env!("CARGO_PKG_VERSION")).to_owned(),
            replicas: 2,
            consul_url: "http://consul-server.consul:8500".to_owned(),
            config_map: "composite-structure".to_owned(),
        }
    }
}

/// The kinds of manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The definition of the resource.
    Crd,
    /// Who may do what.
    Rbac,
    /// What runs.
    Deployment,
}

impl Part {
    /// All of them, in the order in which they are applied.
    pub const ALL: [Self; 3] = [Self::Crd, Self::Rbac, Self::Deployment];
}

/// The objects of one part.
///
/// ```
/// use setpoint_composite::install::{Options, Part, objects};
///
/// let kinds = |part| objects(part, &Options::default()).iter().map(|one| one["kind"].clone()).collect::<Vec<_>>();
/// assert_eq!(kinds(Part::Crd), ["CustomResourceDefinition"]);
/// assert_eq!(kinds(Part::Deployment), ["Deployment"]);
/// ```
pub fn objects(part: Part, options: &Options) -> Vec<Value> {
    match part {
        Part::Crd => vec![serde_json::to_value(crate::api::crd()).unwrap_or_default()],
        Part::Rbac => rbac(options),
        Part::Deployment => vec![deployment(options)],
    }
}
