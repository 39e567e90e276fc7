//! What `show` and `plan` look at: Consul, and the ConfigMap.

use std::time::Duration;

use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use setpoint_composite::publish::payload_of;
use setpoint_composite::settings::CloudProvider;
use setpoint_structure::Payload;
use tokio::time::timeout;

use super::connect::{ConsulArgs, KubernetesArgs};
use super::error::Error;
use crate::error::CliError;

/// How long Kubernetes may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// The exit code of `--detailed-exitcode` for a difference.
const DIFFERS: u8 = 2;

/// What is looked at, and how that is printed.
#[derive(Clone, Debug, Args)]
pub(crate) struct LookArgs {
    #[command(flatten)]
    pub(super) consul: ConsulArgs,
    #[command(flatten)]
    pub(super) kubernetes: KubernetesArgs,
    /// The namespace [default: that of the client's configuration].
    #[arg(long, short, value_name = "NAME")]
    pub(super) namespace: Option<String>,
    /// The name of the ConfigMap.
    #[arg(
        long,
        value_name = "NAME",
        env = "SETPOINT_COMPOSITE_CONFIG_MAP",
        default_value = "composite-structure"
    )]
    pub(super) config_map: String,
    /// The operator that the ConfigMap's `managed-by` label names.
    #[arg(long, value_name = "NAME", env = "SETPOINT_COMPOSITE_MANAGED_BY", default_value = "core-operator")]
    pub(super) managed_by: String,
    /// The cloud provider: `AKS`, `GKE`, `EKS` or `OnPrem`.
    #[arg(long, value_name = "NAME", env = "CLOUD_PROVIDER", default_value_t)]
    pub(super) cloud_provider: CloudProvider,
    /// Looks at Consul alone, and not at Kubernetes.
    #[arg(long)]
    pub(super) consul_only: bool,
    /// Prints JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Exits with 2 if anything differs from what it should be.
    #[arg(long)]
    detailed_exitcode: bool,
}

impl LookArgs {
    /// How the process ends.
    pub(super) fn exit_code(&self, differs: bool) -> u8 {
        if self.detailed_exitcode && differs { DIFFERS } else { 0 }
    }

    /// A client and the namespace; none if Kubernetes is not to be looked at.
    pub(super) async fn connect(&self) -> Result<Option<(Client, String)>, CliError> {
        if self.consul_only {
            return Ok(None);
        }
        let (client, home) = self.kubernetes.client().await?;
        Ok(Some((client, self.namespace.clone().unwrap_or(home))))
    }

    /// The ConfigMap, if there is one.
    pub(super) async fn config_map(
        &self,
        client: Client,
        namespace: &str,
    ) -> Result<Option<ConfigMap>, CliError> {
        let config_maps: Api<ConfigMap> = Api::namespaced(client, namespace);
        patient(config_maps.get_opt(&self.config_map)).await
    }
}

/// The payload of a ConfigMap, if it can be read.
pub(super) fn published(config_map: Option<&ConfigMap>) -> Option<Payload> {
    Payload::from_json(payload_of(config_map?)?).ok()
}

/// Waits for Kubernetes, but not for ever.
pub(super) async fn patient<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, CliError> {
    match timeout(PATIENCE, asked).await {
        Ok(answer) => answer.map_err(|error| Error::Kubernetes(error.to_string()).into()),
        Err(_) => {
            Err(Error::Kubernetes(format!("it did not answer in {} seconds", PATIENCE.as_secs())).into())
        }
    }
}
