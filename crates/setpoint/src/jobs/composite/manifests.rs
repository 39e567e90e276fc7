//! `setpoint composite crd` and `manifests`: what installs the operator.

use clap::{Args, ValueEnum};
use serde_json::Value;
use setpoint_composite::install::{ConsulOptions, Options, Part, consul_policy, objects};
use setpoint_composite::settings::Namespaces;

use super::error::Error;
use crate::error::CliError;
use crate::report::{print, print_json};

/// Arguments of `setpoint composite crd`.
#[derive(Debug, Args)]
pub(crate) struct CrdArgs {
    /// Prints it as JSON.
    #[arg(long)]
    json: bool,
}

/// Arguments of `setpoint composite manifests`.
#[derive(Debug, Args)]
pub(crate) struct ManifestArgs {
    /// Only these; without any, all that every cluster takes: crd, rbac, deployment, service and disruption-budget.
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Which>,
    /// The namespace that the operator runs in.
    #[arg(long, value_name = "NAME", default_value_t = Options::default().namespace)]
    namespace: String,
    /// Serves the Composites of all namespaces, and not only of its own.
    #[arg(long)]
    all_namespaces: bool,
    /// The image of the operator.
    #[arg(long, value_name = "IMAGE", default_value_t = Options::default().image)]
    image: String,
    /// How many instances there are; one leads, the others stand by.
    #[arg(long, value_name = "N", default_value_t = Options::default().replicas)]
    replicas: u32,
    /// Where Consul is.
    #[arg(long, value_name = "URL", default_value_t = Options::default().consul_url)]
    consul_url: String,
    /// A Secret with a token for Consul in its key `token`; it is read again when it changes.
    #[arg(long, value_name = "SECRET", conflicts_with = "consul_auth_method")]
    consul_token_secret: Option<String>,
    /// An auth method of Consul to log in by, with the token of the service account.
    #[arg(long, value_name = "NAME")]
    consul_auth_method: Option<String>,
    /// A Secret with the authorities that are trusted for Consul, in its key `ca.crt`.
    #[arg(long, value_name = "SECRET")]
    consul_ca_secret: Option<String>,
    /// A Secret with the certificate to show to Consul: `tls.crt` and `tls.key`.
    #[arg(long, value_name = "SECRET")]
    consul_client_secret: Option<String>,
    /// The name of the ConfigMap that is published.
    #[arg(long, value_name = "NAME", default_value_t = Options::default().config_map)]
    config_map: String,
    /// Prints one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// The kinds of manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
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
    /// What to scrape, and alerts, as objects for clusters with the operator of Prometheus.
    Monitoring,
    /// The alerts alone, as a file of rules for Prometheus.
    Alerts,
    /// The rules of a policy for the operator's token, for Consul and not for Kubernetes.
    ConsulPolicy,
}

impl Which {
    /// The part, if it is one for Kubernetes or Prometheus.
    fn part(self) -> Option<Part> {
        Some(match self {
            Self::Crd => Part::Crd,
            Self::Rbac => Part::Rbac,
            Self::Deployment => Part::Deployment,
            Self::Service => Part::Service,
            Self::DisruptionBudget => Part::DisruptionBudget,
            Self::Monitoring => Part::Monitoring,
            Self::Alerts => Part::Alerts,
            Self::ConsulPolicy => return None,
        })
    }
}

pub(crate) fn crd(args: &CrdArgs) -> Result<u8, CliError> {
    show(&objects(Part::Crd, &Options::default()), args.json)
}

pub(crate) fn print_all(args: &ManifestArgs) -> Result<u8, CliError> {
    let options = Options {
        namespace: args.namespace.clone(),
        all_namespaces: args.all_namespaces,
        image: args.image.clone(),
        replicas: args.replicas,
        consul_url: args.consul_url.clone(),
        consul: ConsulOptions {
            token_secret: args.consul_token_secret.clone(),
            auth_method: args.consul_auth_method.clone(),
            ca_secret: args.consul_ca_secret.clone(),
            client_secret: args.consul_client_secret.clone(),
        },
        config_map: args.config_map.clone(),
    };
    if args.parts.contains(&Which::ConsulPolicy) {
        if args.parts.len() > 1 {
            let why = "manifests: `consul-policy` is no manifest of Kubernetes: print it alone";
            return Err(Error::Setting(why.to_owned()).into());
        }
        let served = if args.all_namespaces {
            Namespaces::All
        } else {
            Namespaces::Only([args.namespace.clone()].into())
        };
        let policy = consul_policy(&served);
        return if args.json { print_json(&policy) } else { print(&policy) }.map(|()| 0);
    }
    let named: Vec<_> = args.parts.iter().filter_map(|which| which.part()).collect();
    let wanted =
        |part: &Part| if named.is_empty() { Part::INSTALLED.contains(part) } else { named.contains(part) };
    let all: Vec<Value> =
        Part::ALL.into_iter().filter(wanted).flat_map(|part| objects(part, &options)).collect();
    show(&all, args.json)
}

fn show(objects: &[Value], json: bool) -> Result<u8, CliError> {
    if json {
        objects.iter().try_for_each(print_json)?;
        return Ok(0);
    }
    let mut documents = Vec::new();
    for object in objects {
        let text = serde_saphyr::to_string(object);
        documents.push(text.map_err(|error| CliError::Output(std::io::Error::other(error.to_string())))?);
    }
    print(&documents.join("---\n"))?;
    Ok(0)
}
