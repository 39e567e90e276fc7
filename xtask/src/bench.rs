//! `cargo xtask bench NAME [CASE…]`: builds the measurements with optimisation and runs them.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{exit, workspace};

/// The package of the measurements, and its program.
const BENCH: &str = "setpoint-bench";

/// Arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure: `engine`, `host`, `haproxy`, `dataplane`, `sync` or `composite`.
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
    let mut build = workspace::cargo();
    build.args(["build", "--release", "--message-format=json-render-diagnostics", "--package", BENCH]);
    build.args(packages(&args.name));
    let built = build.stderr(Stdio::inherit()).output().context("can't build the measurements")?;
    if !built.status.success() {
        return Ok(exit::like(built.status));
    }
    let program = program(&built.stdout).context("cargo does not say where it put the measurements")?;
    let status = Command::new(&program).args(arguments(args)).current_dir(workspace::root()).status();
    Ok(exit::like(status.with_context(|| format!("can't run {}", program.display()))?))
}

/// What is built beside the measurements. Where the command itself is measured, they are built together, and share what they
/// are made of; without Consul and Kubernetes that takes a fraction of the time.
fn packages(name: &str) -> &'static [&'static str] {
    match name {
        "composite" => &["--package", "setpoint"],
        // Without default features counts for both packages: the job has to be named.
        "host" => &["--package", "setpoint", "--no-default-features", "--features", "setpoint/host"],
        "dataplane" => {
            &["--package", "setpoint", "--no-default-features", "--features", "setpoint/dataplane"]
        }
        "sync" => &[
            "--package",
            "setpoint",
            "--no-default-features",
            "--features",
            "setpoint/dataplane,setpoint/sync",
        ],
        _ => &["--no-default-features"],
    }
}

/// Where cargo put the measurements, as its messages say.
fn program(messages: &[u8]) -> Option<PathBuf> {
    let messages = messages.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    messages
        .filter(|message: &Value| message["target"]["name"] == BENCH)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
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
    fn the_command_that_is_measured_has_the_job_that_is_measured() {
        let tree = |name: &str| {
            let mut cargo = workspace::cargo();
            cargo.args(["tree", "--offline", "--prefix", "none", "--edges", "normal", "--package", BENCH]);
            let output = cargo.args(packages(name)).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert!(tree("host").contains("setpoint-host v") && !tree("host").contains("setpoint-composite v"));
        assert!(!tree("engine").contains("setpoint-host v"));
    }

    #[test]
    fn the_program_is_where_cargo_says_it_put_it() {
        let messages =
            br#"{"reason":"compiler-artifact","target":{"name":"setpoint"},"executable":"/t/setpoint"}
{"reason":"compiler-artifact","target":{"name":"setpoint-bench"},"executable":"/t/setpoint-bench"}
{"reason":"build-finished","success":true}
"#;
        assert_eq!(program(messages), Some(PathBuf::from("/t/setpoint-bench")));
        assert_eq!(program(b"{\"reason\":\"build-finished\",\"success\":true}"), None);
    }

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
