//! `setpoint haproxy`: reads, checks and compares configurations of HAProxy, serves the Dataplane API of one, and brings one
//! to a configuration.

mod args;
mod check;
mod coverage;
#[cfg(all(feature = "dataplane", feature = "host"))]
pub(crate) mod demo;
mod diff;
mod error;
mod fmt;
#[cfg(feature = "dataplane")]
mod serve;
#[cfg(feature = "sync")]
mod sync;

use std::io::Read;
use std::path::{Path, PathBuf};

use setpoint_haproxy::model::Version;
use setpoint_haproxy::text::Document;

use crate::error::CliError;
use crate::report::Report;
pub(crate) use args::HaproxyArgs;
use args::HaproxyCommand;
use error::Error;

pub(crate) fn dispatch(command: &HaproxyCommand, report: Report) -> Result<u8, CliError> {
    match command {
        HaproxyCommand::Fmt(args) => fmt::run(args, report),
        HaproxyCommand::Check(args) => check::run(args, report),
        HaproxyCommand::Diff(args) => diff::run(args, report),
        HaproxyCommand::Coverage(args) => coverage::run(args, report),
        #[cfg(feature = "dataplane")]
        HaproxyCommand::Serve(args) => serve::run(args, report),
        #[cfg(feature = "sync")]
        HaproxyCommand::Plan(args) => sync::plan(args, report),
        #[cfg(feature = "sync")]
        HaproxyCommand::Sync(args) => sync::sync(args, report),
        #[cfg(feature = "sync")]
        HaproxyCommand::Watch(args) => sync::watch(args, report),
    }
}

/// Reads a configuration from a file, or from the standard input if it is called `-`.
fn read(path: &Path, report: Report) -> Result<Document, CliError> {
    let bytes = if is_stdin(path) {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    match bytes {
        Ok(bytes) => {
            let document = Document::parse(&bytes);
            report.detail(|| {
                format!("{}: {} bytes read, {} sections", name(path), bytes.len(), document.sections().len())
            });
            Ok(document)
        }
        Err(source) => Err(Error::Configuration { path: path.to_owned(), source }.into()),
    }
}

/// The standard input can be read once.
fn read_once<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), CliError> {
    let count = paths.into_iter().filter(|path| is_stdin(path)).count();
    if count > 1 { Err(Error::InputTwice.into()) } else { Ok(()) }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// What a file is called in what is printed.
fn name(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// The version that was asked for.
fn parse_version(text: &str) -> Result<Version, String> {
    text.parse().map_err(|error: setpoint_haproxy::model::UnknownVersion| error.to_string())
}
