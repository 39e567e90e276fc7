//! `setpoint composite crd` and `manifests`: what installs the operator.

use clap::Args;
use serde::Serialize;
use setpoint_composite::api;

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
    /// Prints them as one JSON object a line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn crd(args: &CrdArgs) -> Result<u8, CliError> {
    if args.json {
        print_json(&api::crd())?;
    } else {
        print(&yaml(&api::crd())?)?;
    }
    Ok(0)
}

pub(crate) fn print_all(args: &ManifestArgs) -> Result<u8, CliError> {
    crd(&CrdArgs { json: args.json })
}

fn yaml(value: &impl Serialize) -> Result<String, CliError> {
    let text = serde_saphyr::to_string(value);
    text.map_err(|error| CliError::Output(std::io::Error::other(error.to_string())))
}
