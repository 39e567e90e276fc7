//! The commands of `xtask-product`, which `cargo xtask` starts as its own.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::{exit, workspace};

/// What `conformance` does.
pub const CONFORMANCE: &str = "Holds what is built to recordings of the original";
/// What `dist` does.
pub const DIST: &str =
    "Makes what people install: a static binary, a Debian package, an image, checksums, a bill of materials";
/// What `schema` does.
pub const SCHEMA: &str = "Writes what the Dataplane API's specifications ask of properties anew";

/// The arguments of such a command, which it reads itself.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// What it is told.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Builds the commands and runs one, in the folder in which this was started.
pub fn run(name: &str, args: &Args) -> Result<ExitCode> {
    let here = std::env::current_dir().context("can't tell which folder this is")?;
    let mut cargo = workspace::cargo();
    let status =
        command(&mut cargo, name, args).current_dir(here).status().context("can't run `cargo run`")?;
    Ok(exit::like(status))
}

fn command<'a>(cargo: &'a mut Command, name: &str, args: &Args) -> &'a mut Command {
    cargo.args(["run", "--quiet", "--package", "xtask-product", "--manifest-path"]);
    cargo.arg(workspace::root().join("Cargo.toml")).args(["--", name]).args(&args.arguments)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn all_arguments_are_passed_on_as_they_are() {
        let line = ["dist", "--help", "check", "--out", "-", "--", "-x"];
        let Line { args } = Line::parse_from(line);
        let mut cargo = Command::new("cargo");
        let passed: Vec<_> =
            command(&mut cargo, "dist", &args).get_args().skip_while(|arg| *arg != "--").collect();
        assert_eq!(passed, ["--", "dist", "--help", "check", "--out", "-", "--", "-x"]);
    }
}
