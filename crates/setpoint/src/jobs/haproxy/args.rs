//! The arguments of `setpoint haproxy`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use setpoint_haproxy::model::Version;

/// Arguments of `setpoint haproxy`.
#[derive(Debug, Args)]
#[command(after_help = crate::jobs::absent_help_below(crate::jobs::ALL, "haproxy"))]
pub(crate) struct HaproxyArgs {
    #[command(subcommand)]
    pub(crate) command: HaproxyCommand,
}

/// What can be done with configurations of HAProxy. A file called `-` is the standard input.
#[derive(Debug, Subcommand)]
pub(crate) enum HaproxyCommand {
    /// Writes configurations in one style, and never changes what they mean.
    Fmt(HaproxyFmtArgs),
    /// Reports all errors: syntax, undefined names, what a version does not support
    Check(HaproxyCheckArgs),
    /// Shows the operations that lead from one configuration to another, and which need a reload.
    Diff(HaproxyDiffArgs),
    /// Says how much of HAProxy's language the model covers, by section and version, or how much of some files.
    Coverage(HaproxyCoverageArgs),
    /// Serves the Dataplane API of a HAProxy on this machine.
    #[cfg(feature = "dataplane")]
    Serve(Box<super::serve::ServeArgs>),
    /// Shows what would bring a HAProxy, of this machine or behind a Dataplane API, to a configuration, and whether it would reload.
    #[cfg(feature = "sync")]
    Plan(Box<super::sync::HaproxyPlanArgs>),
    /// Brings a HAProxy, of this machine or behind a Dataplane API, to a configuration, with as few reloads as can be.
    #[cfg(feature = "sync")]
    Sync(Box<super::sync::HaproxySyncArgs>),
    /// Keeps HAProxy at a configuration: brings it there again and again, and whenever that changes.
    #[cfg(feature = "sync")]
    Watch(Box<super::sync::HaproxyWatchArgs>),
}

/// Arguments of `setpoint haproxy fmt`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyFmtArgs {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Writes nothing, and exits with 1 if a file is not in the style.
    #[arg(long)]
    pub(crate) check: bool,
    /// Prints one JSON object a line for each file.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint haproxy check`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyCheckArgs {
    /// The files, which are one configuration: HAProxy reads them in this order.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The version of HAProxy that they are for, such as 3.4: what it removed, deprecates or does not know yet is named.
    #[arg(long = "for", value_name = "VERSION", value_parser = super::parse_version)]
    pub(crate) version: Option<Version>,
    #[command(flatten)]
    pub(crate) env: EnvironmentArgs,
    /// Prints one JSON object a line for each file.
    #[arg(long)]
    pub(crate) json: bool,
    /// Shows all that was found, not only the first 100 errors and the first 100 warnings of each file.
    #[arg(long)]
    pub(crate) all: bool,
}

/// The environment that HAProxy will run in.
#[derive(Debug, Default, Args)]
pub(crate) struct EnvironmentArgs {
    /// A variable that HAProxy will have in its environment. Of a line that expands one that is not given, only the text
    /// is known, and what an `.if` decides by it.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
}

impl EnvironmentArgs {
    /// The variables by their names; the last of several counts.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        self.variables.iter().cloned().collect()
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// Arguments of `setpoint haproxy diff`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyDiffArgs {
    /// What is there.
    pub(crate) current: PathBuf,
    /// What should be there.
    pub(crate) desired: PathBuf,
    /// The version of HAProxy that they are for.
    #[arg(long = "for", value_name = "VERSION", default_value = Version::LATEST.as_str(), value_parser = super::parse_version)]
    pub(crate) version: Version,
    #[command(flatten)]
    pub(crate) env: EnvironmentArgs,
    /// Prints the plan as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Exits with 2 if there is something to do, with 0 if not, and with 1 on an error.
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

/// Arguments of `setpoint haproxy coverage`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyCoverageArgs {
    /// Files whose lines are counted; without any, the keywords of HAProxy are.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only this version of HAProxy.
    #[arg(long = "for", value_name = "VERSION", value_parser = super::parse_version)]
    pub(crate) version: Option<Version>,
    #[command(flatten)]
    pub(crate) env: EnvironmentArgs,
    /// Prints one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}
