//! `setpoint composite`: keeps the structure of composites in Consul and in ConfigMaps.

mod connect;
mod election;
mod error;
mod manifests;
mod parameters;
mod plan;
mod release;
mod render;
mod run;
mod show;
mod structure;
mod target;

use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::report::Report;

/// Arguments of `setpoint composite`.
#[derive(Debug, Args)]
pub(crate) struct CompositeArgs {
    #[command(subcommand)]
    pub(crate) command: CompositeCommand,
}

/// What can be done about composites.
#[derive(Debug, Subcommand)]
pub(crate) enum CompositeCommand {
    /// Runs the operator: writes what Composites declare to Consul, and publishes the structure to ConfigMaps.
    ///
    /// Each parameter is taken from its flag, else from its environment variable, else from the file that `--config`
    /// names, else it has its default. Times are written as 30s or 5m; a bare number is milliseconds.
    Run(Box<run::RunArgs>),
    /// Shows the structure of a composite straight from Consul, and how the ConfigMap differs from it.
    Show(Box<show::ShowArgs>),
    /// Shows what the operator would write for a Composite: the keys in Consul, and the ConfigMap.
    Plan(Box<plan::PlanArgs>),
    /// Lets Composites go where no operator is at work, such as after it was uninstalled.
    ///
    /// The finalizer is removed; of a Composite that is being deleted, the keys are removed from Consul before. While an
    /// operator is at work, it would put the finalizer back.
    Release(Box<release::ReleaseArgs>),
    /// Makes the payload of a list of keys in a file, without Consul and Kubernetes.
    Render(render::RenderArgs),
    /// Prints the definition of the resource `Composite`.
    Crd(manifests::CrdArgs),
    /// Prints the manifests that install the operator.
    Manifests(manifests::ManifestArgs),
}

pub(crate) fn dispatch(command: &CompositeCommand, report: Report) -> Result<u8, CliError> {
    match command {
        CompositeCommand::Run(args) => run::run(args, report),
        CompositeCommand::Show(args) => show::run(args, report),
        CompositeCommand::Plan(args) => plan::run(args, report),
        CompositeCommand::Release(args) => release::run(args, report),
        CompositeCommand::Render(args) => render::run(args, report),
        CompositeCommand::Crd(args) => manifests::crd(args),
        CompositeCommand::Manifests(args) => manifests::print_all(args),
    }
}
