//! The `setpoint` command.

mod ahead;
mod changes;
mod cli;
mod commands;
mod confirm;
mod demo;
mod error;
mod planfile;
mod preview;
mod print;
mod report;
mod run;
mod set;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli::run(&cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => error.report(cli.log_format),
    }
}
