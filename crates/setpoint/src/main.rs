//! The `setpoint` command.

mod cli;
mod demo;
mod error;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::run(&cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
