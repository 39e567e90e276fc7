//! `setpoint composite render`: the transform, without Consul and Kubernetes.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use setpoint_composite::settings::CloudProvider;
use setpoint_consul as consul;
use setpoint_structure::{Entry, Key, Payload, prefix, transform};

use super::error::Error;
use super::structure::{IssueView, warn};
use crate::error::CliError;
use crate::report::{Report, print, print_json};

/// The exit code of `--detailed-exitcode` for a structure with issues.
const ISSUES: u8 = 2;

/// Arguments of `setpoint composite render`.
#[derive(Debug, Args)]
pub(crate) struct RenderArgs {
    /// A list of keys, as `consul kv export` or `GET /v1/kv/composite/ID/structure/?recurse` gives it; `-` is the
    /// standard input.
    file: PathBuf,
    /// The id of the composite; needed only where the file holds several.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The cloud provider: `AKS`, `GKE`, `EKS` or `OnPrem`.
    #[arg(long, value_name = "NAME", env = "CLOUD_PROVIDER", default_value_t)]
    cloud_provider: CloudProvider,
    /// A payload that was published before: groups that are ambiguous keep what it says of them.
    #[arg(long, value_name = "FILE")]
    previous: Option<PathBuf>,
    /// Prints the payload with its issues as one JSON object.
    #[arg(long)]
    json: bool,
    /// Exits with 2 if there are issues.
    #[arg(long)]
    detailed_exitcode: bool,
}

#[derive(Serialize)]
struct Rendered<'a> {
    payload: &'a Payload,
    issues: Vec<IssueView>,
}

pub(crate) fn run(args: &RenderArgs, report: Report) -> Result<u8, CliError> {
    let wrong = |path: &Path, why: String| Error::Export { path: path.to_owned(), why };
    let entries = consul::entries(&read(&args.file)?).map_err(|error| wrong(&args.file, in_a_file(error)))?;
    let entries = of_one(entries, args.id.as_deref()).map_err(|why| wrong(&args.file, why))?;
    let previous = match &args.previous {
        Some(path) => {
            let text = String::from_utf8_lossy(&read(path)?).into_owned();
            Some(Payload::from_json(&text).map_err(|error| wrong(path, format!("no payload: {error}")))?)
        }
        None => None,
    };
    let (payload, issues) = transform(&entries, args.cloud_provider.as_str(), previous.as_ref());
    if args.json {
        print_json(&Rendered { payload: &payload, issues: issues.iter().map(IssueView::from).collect() })?;
    } else {
        print(&(payload.to_json() + "\n"))?;
        warn(&issues, report);
    }
    Ok(if args.detailed_exitcode && !issues.is_empty() { ISSUES } else { 0 })
}

/// The entries of one composite: the one that is named, or the only one.
fn of_one(entries: Vec<Entry>, id: Option<&str>) -> Result<Vec<Entry>, String> {
    let ids: BTreeSet<_> = entries
        .iter()
        .filter_map(|entry| Key::parse(&entry.key))
        .map(|key| key.composite_id.to_owned())
        .collect();
    let id = match (id, ids.len()) {
        (Some(id), _) => id.to_owned(),
        (None, 0 | 1) => return Ok(entries),
        (None, _) => {
            let ids: Vec<_> = ids.into_iter().collect();
            return Err(format!("it holds several composites: name one of {} with `--id`", ids.join(", ")));
        }
    };
    let prefix = prefix(&id);
    Ok(entries.into_iter().filter(|entry| entry.key.starts_with(&prefix)).collect())
}

/// Reads a file, or the standard input if it is called `-`.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    bytes.map_err(|source| Error::Read { path: path.to_owned(), source }.into())
}

/// What is wrong with a list of keys; it is the same in a file as in an answer.
fn in_a_file(error: consul::Error) -> String {
    match error {
        consul::Error::Malformed(why) => why,
        other => other.to_string(),
    }
}
