//! `setpoint composite crd` and `manifests`: what installs the operator.

use clap::{Args, ValueEnum};
use serde_json::Value;
use setpoint_composite::install::{Options, Part, objects};

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
    /// Only these; without any, all of them.
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
}

impl From<Which> for Part {
    fn from(which: Which) -> Self {
        match which {
            Which::Crd => Self::Crd,
            Which::Rbac => Self::Rbac,
            Which::Deployment => Self::Deployment,
        }
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
        config_map: args.config_map.clone(),
    };
    let wanted =
        |part: &Part| args.parts.is_empty() || args.parts.iter().any(|which| Part::from(*which) == *part);
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
