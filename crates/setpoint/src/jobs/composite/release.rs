//! `setpoint composite release`: lets Composites go where no operator is at work.

use std::time::Duration;

use clap::Args;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use setpoint_composite::api::Composite;
use setpoint_composite::operator::{Released, release};

use super::connect::{ConsulArgs, KubernetesArgs};
use super::error::Error;
use super::target::patient;
use crate::error::CliError;
use crate::report::{Report, print};
use crate::service::runtime;

/// How long one request to the API server may take.
const REQUEST: Duration = Duration::from_secs(10);

/// Arguments of `setpoint composite release`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The names of Composites [default: all].
    names: Vec<String>,
    #[command(flatten)]
    consul: ConsulArgs,
    #[command(flatten)]
    kubernetes: KubernetesArgs,
    /// The namespace [default: that of the client's configuration].
    #[arg(long, short, value_name = "NAME", env = "CLOUD_NAMESPACE", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Releases the Composites of all namespaces.
    #[arg(long)]
    all_namespaces: bool,
    /// Leaves their keys in Consul, also where it can't be used; where it can, they count as nobody's.
    #[arg(long)]
    leave_keys: bool,
}

pub(crate) fn run(args: &ReleaseArgs, report: Report) -> Result<u8, CliError> {
    runtime()?.block_on(release_all(args, report))
}

async fn release_all(args: &ReleaseArgs, report: Report) -> Result<u8, CliError> {
    let (client, home) = args.kubernetes.client().await?;
    let consul = args.consul.clone().client()?;
    let api: Api<Composite> = if args.all_namespaces {
        Api::all(client.clone())
    } else {
        Api::namespaced(client.clone(), args.namespace.as_deref().unwrap_or(&home))
    };
    let found = patient(api.list(&ListParams::default())).await?.items;
    let wanted = |composite: &Composite| args.names.is_empty() || args.names.contains(&composite.name_any());
    let mut failed = 0;
    for composite in found.iter().filter(|composite| wanted(composite)) {
        let name = format!("{}/{}", composite.namespace().unwrap_or_default(), composite.name_any());
        match release(client.clone(), &consul, composite, args.leave_keys, REQUEST).await {
            Ok(Released::Free) => print(&format!("{name}: nothing holds it\n"))?,
            Ok(Released::Removed) => print(&format!("{name}: released; its keys are removed from Consul\n"))?,
            Ok(Released::Left) => print(&format!("{name}: released; its keys are left in Consul\n"))?,
            Ok(Released::Unclaimed) => {
                print(&format!("{name}: released; its keys are left in Consul, and are nobody's now\n"))?;
            }
            Err(error) => {
                failed += 1;
                report.warn(&format!("{name}: {error}"));
            }
        }
    }
    consul.logout().await?;
    if failed == 0 {
        return Ok(0);
    }
    let why = format!("{failed} of {} could not be released", found.len());
    Err(Error::Release(why).into())
}
