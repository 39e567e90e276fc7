//! `setpoint haproxy`: reads, checks and compares configurations of HAProxy.

mod check;
mod coverage;
mod diff;
mod fmt;

use std::io::Read;
use std::path::Path;

use setpoint_haproxy::model::Version;
use setpoint_haproxy::text::Document;

use crate::cli::HaproxyCommand;
use crate::error::CliError;

pub(crate) fn run(command: &HaproxyCommand) -> Result<u8, CliError> {
    match command {
        HaproxyCommand::Fmt(args) => fmt::run(args),
        HaproxyCommand::Check(args) => check::run(args),
        HaproxyCommand::Diff(args) => diff::run(args),
        HaproxyCommand::Coverage(args) => coverage::run(args),
    }
}

/// Reads a configuration from a file, or from the standard input if it is called `-`.
fn read(path: &Path) -> Result<Document, CliError> {
    let bytes = if is_stdin(path) {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    match bytes {
        Ok(bytes) => Ok(Document::parse(&bytes)),
        Err(source) => Err(CliError::Configuration { path: path.to_owned(), source }),
    }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// What a file is called in what is printed.
fn name(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// The version that was asked for.
pub(crate) fn parse_version(text: &str) -> Result<Version, String> {
    text.parse().map_err(|error: setpoint_haproxy::model::UnknownVersion| error.to_string())
}
