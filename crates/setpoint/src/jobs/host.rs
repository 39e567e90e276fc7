//! A host: directories, files, links, processes and commands that manifests declare.

mod ahead;
mod apply;
mod args;
mod changes;
mod confirm;
mod demo;
mod destroy;
mod details;
mod error;
mod explain;
mod graph;
mod history;
mod moves;
mod plan;
mod planfile;
mod preview;
mod print;
mod progress;
mod protect;
mod rename;
mod root;
mod run;
mod schema;
mod set;
mod state;
mod stop;
mod unreadable;
mod validate;
mod watch;

use clap::Subcommand;

use crate::error::CliError;
use crate::report::Report;

/// What can be asked for of a host.
#[derive(Debug, Subcommand)]
pub(crate) enum HostCommand {
    /// Shows what `apply` would do, and changes nothing.
    Plan(args::PlanArgs),
    /// Brings the host to the declared state: shows the plan, asks, and carries it out.
    Apply(args::ApplyArgs),
    /// Keeps the host in the declared state: follows the manifests and the host, and repairs drift.
    Watch(args::WatchArgs),
    /// Removes all that Setpoint made, and leaves alone what it did not.
    Destroy(args::WriteArgs),
    /// Checks the manifests, all errors at once.
    Validate(args::ValidateArgs),
    /// Says why an item is as it is.
    Explain(args::ExplainArgs),
    /// Draws the declared items and what they depend on.
    Graph(args::GraphArgs),
    /// Shows and mends what Setpoint remembers.
    State(args::StateArgs),
    /// Lists the runs so far, latest first.
    History(args::HistoryArgs),
    /// Shows one run, or the latest.
    Show(args::ShowArgs),
    /// Prints what manifests may hold: a JSON Schema for editors, or a page for readers.
    Schema(args::SchemaArgs),
    /// Shows Setpoint at work on a real directory: create, change, repair, remove.
    ///
    /// Makes a temporary directory with a manifest in it, applies it, changes it, lets something else break
    /// the files and repairs them, removes everything, and cleans up. Needs no set-up and touches nothing
    /// outside of its directory.
    Demo(args::DemoArgs),
}

/// Does what was asked for, and says with what to exit.
pub(crate) fn dispatch(command: &HostCommand, report: Report) -> Result<u8, CliError> {
    match command {
        HostCommand::Plan(args) => plan::run(args, report),
        HostCommand::Apply(args) => apply::run(args, report),
        HostCommand::Watch(args) => watch::run(args, report),
        HostCommand::Destroy(args) => destroy::run(args, report),
        HostCommand::Validate(args) => validate::run(args, report),
        HostCommand::Explain(args) => explain::run(args, report),
        HostCommand::Graph(args) => graph::run(args, report),
        HostCommand::State(args) => state::run(&args.command, report),
        HostCommand::History(args) => history::list(args, report),
        HostCommand::Show(args) => history::show(args, report),
        HostCommand::Schema(args) => schema::run(args),
        HostCommand::Demo(args) => demo::run(args, report).map(|()| 0),
    }
}
