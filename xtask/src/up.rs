//! `cargo xtask up PART…`: starts parts for a person to play with, until Ctrl-C.
//!
//! What starts them is `setpoint-up` in `setpoint-testutils`, the same code that tests use. This command makes the
//! parts, builds it, and becomes it, so that Ctrl-C reaches it and nothing in between.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use setpoint_testutils::manifest::{MANIFEST_FILE, MANIFEST_VARIABLE};

use crate::parts::{self, Effort, Table};
use crate::workspace;

/// Arguments of `cargo xtask up`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to start: haproxy, dataplaneapi, kubernetes, consul, consul-acl, consul-cluster, etcd, etcd-cluster,
    /// network, browser.
    #[arg(required = true)]
    names: Vec<String>,
    /// Stops by itself after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    #[command(flatten)]
    folder: parts::Folder,
}

/// Makes the parts and hands over.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let table = Table::load()?;
    // `consul-cluster` is made of the group `consul`.
    let groups: Vec<_> =
        args.names.iter().map(|name| name.split('-').next().unwrap_or(name).to_owned()).collect();
    let mut chosen = parts::choose(&table, &groups)?;
    if chosen.contains("dataplaneapi") {
        chosen.extend(parts::choose(&table, &["haproxy".to_owned()])?);
    }
    parts::obtain(&table, &args.folder, &chosen, Effort::Make)?;
    let manifest = args.folder.path()?.join(MANIFEST_FILE);

    let mut command = Command::new(build()?);
    command.args(&args.names).env(MANIFEST_VARIABLE, manifest);
    if let Some(seconds) = args.seconds {
        command.arg("--seconds").arg(seconds.to_string());
    }
    Err(command.exec()).context("can't start setpoint-up")
}

/// Builds `setpoint-up` and says where it is.
fn build() -> Result<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
    }
    let output = workspace::cargo()
        // As tests are built: what a test run has compiled is not compiled again.
        .args(["build", "--profile", "test", "--package", "setpoint-testutils", "--bin", "setpoint-up"])
        .arg("--message-format=json")
        .stderr(Stdio::inherit())
        .output()
        .context("can't run `cargo build`")?;
    ensure!(output.status.success(), "setpoint-up can't be built");
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut executables =
        messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok()?.executable);
    match executables.next_back() {
        Some(path) => Ok(path),
        None => bail!("cargo does not say where setpoint-up is"),
    }
}
