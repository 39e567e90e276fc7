//! `cargo xtask bench NAME [CASE…]`: builds the measurements with optimisation and runs them.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::{exit, workspace};

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure: `engine`, `host`, `haproxy` or `composite`.
    name: String,
    /// The cases to run; all if none is named.
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Prints one JSON object a line.
    #[arg(long)]
    json: bool,
    /// Multiplies the number of items of each case.
    #[arg(long, value_name = "FACTOR")]
    scale: Option<f64>,
}

/// Runs the measurements; they know their cases themselves.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if matches!(args.name.as_str(), "host" | "composite") {
        // What is measured is the command itself.
        let mut build = workspace::cargo();
        build.args(["build", "--quiet", "--release", "--package", "setpoint"]);
        let status = build.status().context("can't build setpoint")?;
        if !status.success() {
            return Ok(exit::like(status));
        }
    }
    let mut command = workspace::cargo();
    command.args(["run", "--quiet", "--release", "--package", "setpoint-bench"]);
    if args.name != "composite" {
        // Without Consul and Kubernetes, it is built in a fraction of the time.
        command.arg("--no-default-features");
    }
    command.arg("--").args(arguments(args));
    let status = command.status().context("can't run the measurements")?;
    Ok(exit::like(status))
}

/// The arguments as the measurements take them.
fn arguments(args: &Args) -> Vec<String> {
    let mut arguments = vec![args.name.clone()];
    arguments.extend(args.cases.iter().cloned());
    arguments.extend(args.json.then(|| "--json".to_owned()));
    arguments.extend(args.scale.map(|scale| format!("--scale={scale}")));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_asked_for_is_passed_on() {
        let args = Args {
            name: "engine".into(),
            cases: vec!["no-op".into(), "fan-in".into()],
            json: true,
            scale: Some(0.5),
        };
        assert_eq!(arguments(&args), ["engine", "no-op", "fan-in", "--json", "--scale=0.5"]);
    }
}
