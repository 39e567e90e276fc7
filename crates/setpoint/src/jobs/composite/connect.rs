//! How Consul and Kubernetes are reached.

use std::path::PathBuf;

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::{Deserialize, Serialize};
use setpoint_consul::{self as consul, Auth, ClientCertificate, Login, Secret, Tls};
use setpoint_kube::Limits;
use setpoint_kube::client::Clients;

use super::error::Error;
use super::parameters::Time;
use crate::error::CliError;

/// Where a pod finds the token of its service account.
const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// Where Consul is by default.
const CONSUL_URL: &str = "http://localhost:8500";
/// The variable with a token. There is no flag for it: others can read the arguments of a process.
const CONSUL_TOKEN: &str = "CONSUL_HTTP_TOKEN";

/// How Consul is reached.
#[expect(clippy::struct_field_names, reason = "they are the names of flags")]
#[derive(Clone, Debug, Default, Args, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", default)]
#[command(next_help_heading = "Consul")]
pub(crate) struct ConsulArgs {
    /// The address of Consul [default: `http://localhost:8500`].
    #[arg(long, value_name = "URL", env = "CONSUL_URL")]
    pub(crate) consul_url: Option<String>,
    /// A file with the token, read again when it changes. A token may also be in the variable `CONSUL_HTTP_TOKEN`.
    #[arg(long, value_name = "FILE", env = "CONSUL_HTTP_TOKEN_FILE", conflicts_with = "consul_auth_method")]
    pub(crate) consul_token_file: Option<PathBuf>,
    /// Logs in by this auth method with the token of the service account.
    #[arg(long, value_name = "NAME", env = "CONSUL_AUTH_METHOD")]
    pub(crate) consul_auth_method: Option<String>,
    /// The file with the token to log in with [default: that of the pod's service account].
    #[arg(long, value_name = "FILE", env = "CONSUL_AUTH_TOKEN_FILE")]
    pub(crate) consul_auth_token_file: Option<PathBuf>,
    /// A file with the authorities that are trusted [default: those of the system].
    #[arg(long, value_name = "FILE", env = "CONSUL_CACERT")]
    pub(crate) consul_ca_file: Option<PathBuf>,
    /// A file with the certificate to show to Consul.
    #[arg(long, value_name = "FILE", env = "CONSUL_CLIENT_CERT")]
    pub(crate) consul_client_cert: Option<PathBuf>,
    /// A file with the key of that certificate.
    #[arg(long, value_name = "FILE", env = "CONSUL_CLIENT_KEY")]
    pub(crate) consul_client_key: Option<PathBuf>,
    /// The datacentre [default: that of the agent].
    #[arg(long, value_name = "NAME", env = "CONSUL_DATACENTER")]
    pub(crate) consul_datacenter: Option<String>,
    /// The namespace, of the enterprise edition.
    #[arg(long, value_name = "NAME", env = "CONSUL_NAMESPACE")]
    pub(crate) consul_namespace: Option<String>,
    /// The admin partition, of the enterprise edition.
    #[arg(long, value_name = "NAME", env = "CONSUL_PARTITION")]
    pub(crate) consul_partition: Option<String>,
    /// How long an answer may take that is not waited for on purpose [default: 5s].
    #[arg(long, value_name = "TIME", env = "CONSUL_TIMEOUT")]
    pub(crate) consul_timeout: Option<Time>,
}

impl ConsulArgs {
    /// A client of Consul.
    pub(crate) fn client(self) -> Result<consul::Client, CliError> {
        install_tls();
        Ok(consul::Client::new(self.settings()?)?)
    }

    fn settings(self) -> Result<consul::Settings, CliError> {
        let mut settings = consul::Settings::new(self.consul_url.unwrap_or_else(|| CONSUL_URL.to_owned()));
        let token = std::env::var(CONSUL_TOKEN).ok().filter(|token| !token.is_empty());
        settings.auth = match (self.consul_auth_method, self.consul_token_file, token) {
            (Some(_), Some(_), _) => {
                let why = "consul-auth-method and consul-token-file can't be used together".to_owned();
                return Err(Error::Setting(why).into());
            }
            (Some(method), None, _) => {
                let bearer_file = self.consul_auth_token_file.unwrap_or_else(|| SERVICE_ACCOUNT_TOKEN.into());
                Auth::Login(Login { method, bearer_file })
            }
            (None, Some(file), _) => Auth::TokenFile(file),
            (None, None, Some(token)) => Auth::Token(Secret::new(token)),
            (None, None, None) => Auth::Anonymous,
        };
        let client = match (self.consul_client_cert, self.consul_client_key) {
            (Some(certificate), Some(key)) => Some(ClientCertificate { certificate, key }),
            (None, None) => None,
            _ => {
                let why = "consul-client-cert and consul-client-key belong together: give both or neither";
                return Err(Error::Setting(why.to_owned()).into());
            }
        };
        settings.tls = Tls { ca_file: self.consul_ca_file, client };
        // A blank variable is as good as none.
        let given = |name: Option<String>| name.filter(|name| !name.trim().is_empty());
        settings.datacenter = given(self.consul_datacenter);
        settings.namespace = given(self.consul_namespace);
        settings.partition = given(self.consul_partition);
        if let Some(Time(timeout)) = self.consul_timeout {
            settings.timeout = timeout;
        }
        Ok(settings)
    }
}

/// How Kubernetes is reached.
#[derive(Clone, Debug, Default, Args, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", default)]
#[command(next_help_heading = "Kubernetes")]
pub(crate) struct KubernetesArgs {
    /// The configuration of the client [default: what KUBECONFIG names, ~/.kube/config, or the pod's service account].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

impl KubernetesArgs {
    /// A client of Kubernetes, and the namespace that it is in by default.
    pub(crate) async fn client(&self) -> Result<(Client, String), CliError> {
        let (clients, namespace) = self.clients().await?;
        Ok((clients.shared, namespace))
    }

    /// The clients of a long-running command, and the namespace that they are in by default.
    pub(crate) async fn clients(&self) -> Result<(Clients, String), CliError> {
        install_tls();
        let config = match &self.kubeconfig {
            Some(path) => {
                let wrong =
                    |error: &dyn std::error::Error| Error::Kubernetes(format!("{}: {error}", path.display()));
                let config = Kubeconfig::read_from(path).map_err(|error| wrong(&error))?;
                let options = KubeConfigOptions::default();
                Config::from_custom_kubeconfig(config, &options).await.map_err(|error| wrong(&error))?
            }
            None if has_home_or_kubeconfig() => {
                Config::infer().await.map_err(|error| Error::Kubernetes(error.to_string()))?
            }
            None => Config::incluster().map_err(|error| Error::Kubernetes(error.to_string()))?,
        };
        let namespace = config.default_namespace.clone();
        let clients = Clients::new(&config, Limits::default());
        Ok((clients.map_err(|error| Error::Kubernetes(error.to_string()))?, namespace))
    }
}

/// Returns whether a configuration may be in a file. Without HOME, the home directory would be asked of the C library,
/// which static programs can't: it loads modules for that.
fn has_home_or_kubeconfig() -> bool {
    ["KUBECONFIG", "HOME"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Chooses the cryptography, once.
fn install_tls() {
    // It may have been chosen already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
