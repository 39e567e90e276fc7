//! Development commands that are made of the product's own crates. `cargo xtask` starts them: it can be built, and say what is
//! wrong, while one of these crates can't.
//!
//! One module per subcommand, as there.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line talks to the terminal")]

mod conformance;
mod dist;
mod schema;
#[cfg(test)]
#[path = "../../src/shown.rs"]
mod shown;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::product::{CONFORMANCE, DIST, SCHEMA};

/// Development commands of the Setpoint workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
enum Command {
    #[command(about = CONFORMANCE)]
    Conformance(conformance::Args),
    #[command(about = DIST)]
    Dist(dist::Args),
    #[command(about = SCHEMA)]
    Schema(schema::Args),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Conformance(args) => conformance::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Schema(args) => schema::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_line_that_the_pages_have_for_these_commands_is_understood() {
        shown::assert_all_are_understood::<Cli>(|name| Cli::command().find_subcommand(name).is_some());
    }
}
