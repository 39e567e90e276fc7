//! Development commands of the workspace: `cargo xtask --help`.
//!
//! One module per subcommand. A new one is a variant of [`Command`] that holds its arguments and a line in
//! [`main`]; what it returns becomes the exit status. One that is made of the product's crates is in `product/`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line talks to the terminal")]

mod bench;
mod fuzz;
mod keywords;
mod mutants;
mod parts;
#[cfg(test)]
mod shown;
mod soak;
mod test;
mod up;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::product::{self, CONFORMANCE, DIST, SCHEMA};
use xtask::{console, exit, one_test, optimised, workspace};

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
    /// Obtains the real parts that tests run against.
    Parts(parts::Args),
    /// Checks and tests everything, or one crate or group.
    Test(test::Args),
    /// Runs one test binary with a limit; cargo is told to use it by `test`.
    #[command(hide = true)]
    RunTest(test::limited::Args),
    /// Measures with optimisation, each case in a process of its own.
    Bench(bench::Args),
    #[command(about = DIST)]
    Dist(product::Args),
    #[command(about = CONFORMANCE)]
    Conformance(product::Args),
    /// Asks each HAProxy which words it knows, and writes the list of them anew.
    Keywords(keywords::Args),
    #[command(about = SCHEMA)]
    Schema(product::Args),
    /// Runs random schedules against a model for as long as asked.
    Soak(soak::Args),
    /// Mutates a corpus of inputs for as long as asked.
    Fuzz(fuzz::Args),
    /// Changes rows of a table at random, and looks whether a test notices.
    Mutants(mutants::Args),
    /// Starts parts for a person to play with, until Ctrl-C.
    Up(up::Args),
}

/// The words of the command line: `help NAME` is asked of whoever knows.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if let [_, help, name] = words.as_mut_slice()
        && help == "help"
        && ["conformance", "dist", "schema"].iter().any(|known| name == known)
    {
        std::mem::swap(help, name);
        *name = "--help".into();
    }
    words
}

fn main() -> ExitCode {
    let outcome = test::compile::run().unwrap_or_else(|| match Cli::parse_from(words()).command {
        Command::Parts(args) => parts::run(&args),
        Command::Test(args) => Ok(test::run(&args)),
        Command::RunTest(args) => test::limited::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Dist(args) => product::run("dist", &args),
        Command::Conformance(args) => product::run("conformance", &args),
        Command::Keywords(args) => keywords::run(&args),
        Command::Schema(args) => product::run("schema", &args),
        Command::Soak(args) => soak::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Mutants(args) => mutants::run(&args),
        Command::Up(args) => up::run(&args),
    });
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_the_pages_have_for_this_command_is_understood() {
        shown::assert_all_are_understood::<Cli>(|_| true);
    }
}
