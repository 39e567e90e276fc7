//! What installs the operator: the definition of the resource, its rights, and a Deployment.
//!
//! The rights are the least that work: [`rules`] is all that an instance may do where it serves Composites, and
//! [`lease_rules`] all that it may do where it agrees with others on who leads. Tests run it with exactly these.

mod alerts;
mod deployment;
mod policy;
mod rbac;

use serde_json::Value;

pub use alerts::alerts;
pub use deployment::{deployment, disruption_budget, monitoring, service};
pub use policy::consul_policy;
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
    /// How it is reached.
    pub consul: ConsulOptions,
    /// The name of the ConfigMap that is published.
    pub config_map: String,
}

/// How Consul is reached: what is not set is not used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsulOptions {
    /// A Secret with a key `token`.
    pub token_secret: Option<String>,
    /// An auth method to log in by with the token of the account.
    pub auth_method: Option<String>,
    /// A Secret with the authorities that are trusted, in a key `ca.crt`.
    pub ca_secret: Option<String>,
    /// A Secret with the certificate to show: `tls.crt` and `tls.key`.
    pub client_secret: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "core".to_owned(),
            all_namespaces: false,
            image: concat!("setpoint:", env!("CARGO_PKG_VERSION")).to_owned(),
            replicas: 2,
            consul_url: "http://consul-server.consul:8500".to_owned(),
            consul: ConsulOptions::default(),
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
    /// By what it is reached, for metrics.
    Service,
    /// How many instances may be missing at a time.
    DisruptionBudget,
    /// Resources for the operator of Prometheus: what to scrape, and alerts.
    Monitoring,
    /// The alerts alone, as a file of rules for Prometheus.
    Alerts,
}

impl Part {
    /// Those that every cluster takes, in the order in which they are applied.
    pub const INSTALLED: [Self; 5] =
        [Self::Crd, Self::Rbac, Self::Deployment, Self::Service, Self::DisruptionBudget];
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Crd,
        Self::Rbac,
        Self::Deployment,
        Self::Service,
        Self::DisruptionBudget,
        Self::Monitoring,
        Self::Alerts,
    ];
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
        Part::Service => vec![service(options)],
        Part::DisruptionBudget => vec![disruption_budget(options)],
        Part::Monitoring => monitoring(options),
        Part::Alerts => vec![alerts()],
    }
}
