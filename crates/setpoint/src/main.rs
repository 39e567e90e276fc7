//! The `setpoint` command.

mod ahead;
mod changes;
mod cli;
mod commands;
mod confirm;
mod demo;
mod error;
mod manual;
mod planfile;
mod preview;
mod print;
mod report;
mod run;
mod set;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = manual::with_examples(cli::Cli::command()).get_matches();
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli::run(&cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => error.report(cli.log_format),
    }
}
