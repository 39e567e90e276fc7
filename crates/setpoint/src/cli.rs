//! The command line: one subcommand for each job.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::demo;
use crate::error::CliError;

/// Keeps systems in the state that was declared for them.
///
/// Setpoint compares what is with what should be, plans the operations that lead from one to the other in an
/// order that no dependency forbids, carries them out, and says what it did and why.
#[derive(Debug, Parser)]
#[command(name = "setpoint", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
enum Command {
    /// Shows the engine at work on a real directory: create, change, repair, remove.
    ///
    /// Makes a temporary directory, brings a small tree of files into it, changes the intent, lets something
    /// else break the files and repairs them, takes away what they stand on, and cleans up. Needs no set-up
    /// and touches nothing outside of its directory.
    Demo(DemoArgs),
}

/// Arguments of `setpoint demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Works in this directory, which must be new or empty, and leaves the files there at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Prints one JSON object for each step instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Does what was asked for.
pub(crate) fn run(cli: &Cli) -> Result<(), CliError> {
    match &cli.command {
        Command::Demo(args) => demo::run(args),
    }
}
