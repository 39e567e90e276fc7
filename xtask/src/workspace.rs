//! The workspace this command belongs to: where it is, and which packages it has.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// A `cargo` command that runs in the workspace, with the toolchain that runs this one.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The names of the workspace's packages.
pub(crate) fn packages() -> Result<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
    }

    let output = cargo()
        .args(["metadata", "--format-version=1", "--no-deps"])
        .output()
        .context("can't run `cargo metadata`")?;
    ensure!(output.status.success(), "`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("`cargo metadata` printed something unexpected")?;
    Ok(metadata.packages.into_iter().map(|package| package.name).collect())
}
