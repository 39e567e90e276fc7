//! `setpoint composite run`: the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use setpoint_composite::operator::Operator;
use setpoint_composite::settings::{CloudProvider, METADATA, Namespaces, Settings, detect_provider};
use tokio_util::sync::CancellationToken;

use super::connect::{ConsulArgs, KubernetesArgs};
use super::election::ElectionArgs;
use super::error::Error;
use super::parameters::{self, Time, time};
use crate::error::CliError;
use crate::report::Report;
use crate::service::lifecycle::Service;
use crate::service::parameters::overlay;
use crate::service::{Signals, log_to_stderr, runtime};

/// Where the endpoints are served by default.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8080);

/// Arguments of `setpoint composite run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// A TOML file with parameters, by the names of their flags or by their long names.
    #[arg(long, value_name = "FILE", env = "SETPOINT_COMPOSITE_CONFIG")]
    config: Option<PathBuf>,
    /// Ends as soon as every Composite that is served is ready; fails if one is not within this time [default: 5m].
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "5m")]
    once: Option<Time>,
    #[command(flatten)]
    parameters: Parameters,
}

/// All parameters, as far as they are given in one place.
#[derive(Clone, Debug, Default, Args, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", default)]
struct Parameters {
    /// A namespace whose Composites are served; may be given several times [default: the own namespace].
    #[arg(long, value_name = "NAME", env = "CLOUD_NAMESPACE", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    namespace: Vec<String>,
    /// Serves the Composites of all namespaces.
    #[arg(long, value_name = "BOOL", env = "SETPOINT_COMPOSITE_ALL_NAMESPACES", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    all_namespaces: Option<bool>,
    /// Whether the structure is published to ConfigMaps [default: true].
    #[arg(long, value_name = "BOOL", env = "CLOUD_COMPOSITE_STRUCTURE_SYNC_ENABLED")]
    #[serde(alias = "cloud.composite.structure.sync.enabled")]
    sync_enabled: Option<bool>,
    /// How often the ownership of the ConfigMap is checked, and all is looked at again [default: 5m].
    #[arg(long, value_name = "TIME", env = "CLOUD_COMPOSITE_STRUCTURE_SYNC_CHECK_INTERVAL")]
    #[serde(alias = "cloud.composite.structure.sync.check-interval")]
    check_interval: Option<Time>,
    /// The longest pause before Consul is asked again after an error [default: 20s].
    #[arg(long, value_name = "TIME", env = "CLOUD_CONSUL_LONG_POLL_RETRY_TIME")]
    #[serde(alias = "cloud.consul-long-poll.retry-time")]
    retry_time: Option<Time>,
    /// How long after an answer Consul may be asked once more; two may follow each other at once [default: 3s].
    #[arg(long, value_name = "TIME", env = "CLOUD_CONSUL_LONG_POLL_ON_SUCCESS_DELAY_TIME")]
    #[serde(alias = "cloud.consul-long-poll.on-success-delay-time")]
    on_success_delay_time: Option<Time>,
    /// The cloud provider that the payload names: AKS, GKE, EKS or OnPrem; blank to ask the machine's metadata service
    /// [default: OnPrem].
    #[arg(long, value_name = "NAME", env = "CLOUD_PROVIDER")]
    cloud_provider: Option<String>,
    /// The name of the ConfigMap [default: composite-structure].
    #[arg(long, value_name = "NAME", env = "SETPOINT_COMPOSITE_CONFIG_MAP")]
    config_map: Option<String>,
    /// Who manages the ConfigMap, as its label says [default: core-operator].
    #[arg(long, value_name = "NAME", env = "SETPOINT_COMPOSITE_MANAGED_BY")]
    managed_by: Option<String>,
    /// What the ConfigMap is a part of, as its label says [default: Cloud-Core].
    #[arg(long, value_name = "NAME", env = "SETPOINT_COMPOSITE_PART_OF")]
    part_of: Option<String>,
    /// How long Consul may hold a question back while nothing changes; more than 5s are taken for 5s [default: 5s].
    #[arg(long, value_name = "TIME", env = "SETPOINT_COMPOSITE_CONSUL_WAIT_TIME")]
    consul_wait_time: Option<Time>,
    /// How many structures are watched by a connection of their own; one more finds out which of all others have changed
    /// [default: 32].
    #[arg(long, value_name = "N", env = "SETPOINT_COMPOSITE_CONSUL_WATCHES")]
    consul_watches: Option<usize>,
    /// How long a whole structure must be gone before that is published [default: 10s].
    #[arg(long, value_name = "TIME", env = "SETPOINT_COMPOSITE_REMOVAL_GRACE")]
    removal_grace: Option<Time>,
    /// The longest first pause after the ConfigMap could not be written [default: 3s].
    #[arg(long, value_name = "TIME", env = "SETPOINT_COMPOSITE_APPLY_RETRY_TIME")]
    apply_retry_time: Option<Time>,
    /// The longest pause after the ConfigMap could not be written [default: 30s].
    #[arg(long, value_name = "TIME", env = "SETPOINT_COMPOSITE_APPLY_RETRY_MAX_TIME")]
    apply_retry_max_time: Option<Time>,
    /// How long a request to the API server may take [default: 10s].
    #[arg(long, value_name = "TIME", env = "SETPOINT_COMPOSITE_REQUEST_TIMEOUT")]
    request_timeout: Option<Time>,
    /// What this instance is called [default: the name of the host].
    #[arg(long, value_name = "NAME", env = "HOSTNAME", hide_env_values = true)]
    instance: Option<String>,
    /// Where `/healthz`, `/readyz`, `/metrics` and `/debug/state` are served [default: 0.0.0.0:8080].
    #[arg(long, value_name = "ADDRESS", env = "SETPOINT_COMPOSITE_LISTEN")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    #[serde(flatten)]
    election: ElectionArgs,
    #[command(flatten)]
    #[serde(flatten)]
    consul: ConsulArgs,
    #[command(flatten)]
    #[serde(flatten)]
    kubernetes: KubernetesArgs,
    /// What a file holds that is no parameter.
    #[arg(skip)]
    #[serde(flatten, skip_serializing)]
    unknown: BTreeMap<String, toml::Value>,
}

impl Parameters {
    /// The settings of the operator; `home` is its own namespace.
    fn settings(&self, home: &str) -> Result<Settings, CliError> {
        let defaults = Settings::default();
        let text = |given: &Option<String>, default: String| given.clone().unwrap_or(default);
        let namespaces = match (self.all_namespaces, self.namespace.as_slice()) {
            (Some(true), []) => Namespaces::All,
            (Some(true), _) => {
                return Err(Error::Setting(
                    "namespace: all namespaces are served, so none can be named".to_owned(),
                )
                .into());
            }
            (_, []) => Namespaces::Only(BTreeSet::from([home.to_owned()])),
            (_, names) => Namespaces::Only(names.iter().cloned().collect()),
        };
        let cloud_provider: CloudProvider = match &self.cloud_provider {
            Some(name) => name.parse().map_err(|error| Error::Setting(format!("cloud-provider: {error}")))?,
            None => defaults.cloud_provider,
        };
        let host = text(&self.instance, "setpoint".to_owned());
        let settings = Settings {
            namespaces,
            sync_enabled: self.sync_enabled.unwrap_or(defaults.sync_enabled),
            check_interval: time(self.check_interval, defaults.check_interval),
            retry_time: time(self.retry_time, defaults.retry_time),
            on_success_delay_time: time(self.on_success_delay_time, defaults.on_success_delay_time),
            wait_time: time(self.consul_wait_time, defaults.wait_time),
            consul_watches: self.consul_watches.unwrap_or(defaults.consul_watches),
            removal_grace: time(self.removal_grace, defaults.removal_grace),
            cloud_provider,
            config_map: text(&self.config_map, defaults.config_map),
            managed_by: text(&self.managed_by, defaults.managed_by),
            part_of: text(&self.part_of, defaults.part_of),
            apply_retry_time: time(self.apply_retry_time, defaults.apply_retry_time),
            apply_retry_max_time: time(self.apply_retry_max_time, defaults.apply_retry_max_time),
            tolerated_failures: defaults.tolerated_failures,
            request_timeout: time(self.request_timeout, defaults.request_timeout),
            election: self.election.election(home),
            // Like no other's: a pod that was restarted in place has the same name as before.
            instance: format!("{host}_{:08x}", fastrand::u32(..)),
        };
        settings.validate().map_err(|error| Error::Setting(error.to_string()))?;
        Ok(settings)
    }
}

pub(crate) fn run(args: &RunArgs, report: Report) -> Result<u8, CliError> {
    let mut parameters = args.parameters.clone();
    if let Some(path) = &args.config {
        let file: Parameters = parameters::read(path)?;
        if let Some(unknown) = file.unknown.keys().next() {
            let why = format!("there is no parameter `{unknown}`");
            return Err(Error::SettingsFile { path: path.clone(), why }.into());
        }
        parameters = overlay(&parameters, &file).map_err(|error| Error::Setting(error.to_string()))?;
    }
    // What is wrong with the parameters is reported before anything is connected to.
    parameters.settings("default")?;
    let level = std::env::var("LOG_LEVEL").ok().and_then(|level| level.parse().ok());
    log_to_stderr(report, level, &[]);
    runtime()?.block_on(operate(parameters, args.once, report))
}

async fn operate(parameters: Parameters, once: Option<Time>, report: Report) -> Result<u8, CliError> {
    let consul = parameters.consul.clone().client()?;
    let (kubernetes, home) = parameters.kubernetes.clients().await?;
    let mut settings = parameters.settings(&home)?;
    if parameters.cloud_provider.as_deref().is_some_and(|name| name.trim().is_empty()) {
        settings.cloud_provider = detect_provider(METADATA).await;
        tracing::info!(provider = %settings.cloud_provider, "the cloud provider was found out");
    }
    let mut signals = Signals::new()?;
    tracing::info!(instance = settings.instance, namespaces = ?settings.namespaces, "the operator starts");
    let operator =
        Operator::new(kubernetes, consul, settings).map_err(|error| Error::Setting(error.to_string()))?;
    let (summary, changes) = (operator.summary(), operator.health().subscribe());
    let listen = Some(parameters.listen.unwrap_or(LISTEN));
    let mut service = Service::start(listen, operator.observed(), report, || 0)?;
    let cancel = CancellationToken::new();
    let mut operating = std::pin::pin!(operator.run(cancel.clone()));
    let all_ready = async {
        let Some(Time(limit)) = once else { return std::future::pending().await };
        match tokio::time::timeout(limit, summary.ready()).await {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::NotReady(summary.open())),
        }
    };
    let ready = tokio::select! {
        () = &mut operating => Ok(()),
        () = signals.next() => Ok(()),
        done = all_ready => done,
        never = service.follow(changes) => match never {},
    };
    tracing::info!("the operator ends");
    service.stopping();
    cancel.cancel();
    // A second signal does not wait.
    tokio::select! {
        () = &mut operating => {}
        () = signals.next() => {}
    }
    ready?;
    Ok(0)
}
