//! The `setpoint` command.

mod cli;
mod commands;
mod error;
mod jobs;
mod manual;
mod report;
#[cfg(any(feature = "host", feature = "dataplane", feature = "sync", feature = "composite"))]
mod service;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match cli::run(&cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => error.report(cli.log_format),
    }
}
