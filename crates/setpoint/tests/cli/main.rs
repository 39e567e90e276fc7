//! The `setpoint` command as a person or a script runs it.
#![expect(clippy::unwrap_used, reason = "tests")]

#[cfg(feature = "host")]
mod adopting;
#[cfg(feature = "host")]
mod alone;
#[cfg(feature = "host")]
mod answers;
#[cfg(feature = "host")]
mod asked;
#[cfg(feature = "host")]
mod causes;
#[cfg(feature = "host")]
mod change;
#[cfg(feature = "host")]
mod closed;
#[cfg(feature = "host")]
mod codes;
#[cfg(feature = "composite")]
mod composite;
#[cfg(feature = "host")]
mod damaged;
#[cfg(feature = "host")]
mod demo;
#[cfg(feature = "host")]
mod emptied;
#[cfg(feature = "host")]
mod failed;
#[cfg(feature = "host")]
mod following;
#[cfg(feature = "host")]
mod full;
#[cfg(feature = "haproxy")]
mod haproxy;
mod history;
mod index;
#[cfg(feature = "host")]
mod inside;
mod jobs;
#[cfg(feature = "host")]
mod kills;
#[cfg(feature = "host")]
mod leftovers;
mod links;
#[cfg(feature = "host")]
mod lost;
#[cfg(feature = "host")]
mod manifests;
#[cfg(feature = "host")]
mod memory;
#[cfg(feature = "host")]
mod originals;
mod pages;
#[cfg(feature = "host")]
mod places;
#[cfg(feature = "host")]
mod power;
#[cfg(feature = "host")]
mod processes;
#[cfg(feature = "host")]
mod progress;
#[cfg(feature = "host")]
mod protection;
#[cfg(feature = "host")]
mod refused;
#[cfg(feature = "host")]
mod release;
#[cfg(feature = "host")]
mod replaced;
#[cfg(feature = "host")]
mod reports;
#[cfg(feature = "host")]
mod restarts;
#[cfg_attr(not(feature = "host"), expect(dead_code, reason = "the other jobs need less of it"))]
mod sandbox;
#[cfg(feature = "host")]
mod service;
#[path = "../shared/pages.rs"]
mod shared;
#[cfg(feature = "host")]
mod shown;
#[cfg(feature = "host")]
mod theirs;
#[cfg(feature = "host")]
mod transcript;
#[cfg(feature = "host")]
mod usage;
#[cfg(feature = "host")]
mod watching;
#[cfg(feature = "host")]
mod whose;

#[cfg(feature = "host")]
use std::path::Path;
#[cfg(feature = "host")]
use std::process::{Command, Output};

/// The command, with a place for temporary files that nobody else uses.
#[cfg(feature = "host")]
fn setpoint(temporary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
    command.env("TMPDIR", temporary);
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    command
}

#[cfg(feature = "host")]
fn run(args: &[&str]) -> Output {
    let temporary = tempfile::tempdir().unwrap();
    setpoint(temporary.path()).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
