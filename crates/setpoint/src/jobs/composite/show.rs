//! `setpoint composite show`: the structure straight from Consul, and how the ConfigMap differs from it.

use std::fmt::{self, Write};

use anstyle::Style;
use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;
use setpoint_composite::publish::{Ownership, ownership, payload_of};
use setpoint_consul::Read;
use setpoint_plan::AttributeChange;
use setpoint_structure::declare::data_changes;
use setpoint_structure::{Payload, prefix, transform};

use super::structure::{IssueView, warn, write_changes, write_tree};
use super::target::{LookArgs, published};
use crate::error::CliError;
use crate::report::{Report, print, print_json};
use crate::service::runtime;

const BOLD: Style = Style::new().bold();

/// Arguments of `setpoint composite show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The id of the composite: the origin namespace of its baseline.
    id: String,
    #[command(flatten)]
    look: LookArgs,
}

/// A structure and its ConfigMap as data.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    id: &'a str,
    index: u64,
    keys: usize,
    /// Whether there is more that our token may not see.
    filtered_by_acls: bool,
    payload: &'a Payload,
    issues: Vec<IssueView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_map: Option<Compared>,
}

/// A ConfigMap beside the structure.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Compared {
    namespace: String,
    name: String,
    state: State,
    /// Whose it is.
    ownership: String,
    /// What it would take to make it say what Consul says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<AttributeChange>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Same,
    Differs,
    Absent,
}

pub(crate) fn run(args: &ShowArgs, report: Report) -> Result<u8, CliError> {
    runtime()?.block_on(show(args, report))
}

async fn show(args: &ShowArgs, report: Report) -> Result<u8, CliError> {
    let consul = args.look.consul.clone().client()?;
    let listed = consul.list(&prefix(&args.id), Read::Default).await;
    // A login is for this one look.
    consul.logout().await?;
    let listed = listed?;
    let kubernetes = args.look.connect().await?;
    let found = match kubernetes {
        Some((client, namespace)) => Some((args.look.config_map(client, &namespace).await?, namespace)),
        None => None,
    };
    let previous = published(found.as_ref().and_then(|(config_map, _)| config_map.as_ref()));
    let (payload, issues) = transform(&listed.entries, args.look.cloud_provider.as_str(), previous.as_ref());
    let shown = Shown {
        id: &args.id,
        index: listed.index,
        keys: listed.entries.len(),
        filtered_by_acls: listed.filtered_by_acls,
        payload: &payload,
        issues: issues.iter().map(IssueView::from).collect(),
        config_map: found
            .map(|(config_map, namespace)| compare(args, namespace, config_map.as_ref(), &payload)),
    };
    if args.look.json {
        print_json(&shown)?;
    } else {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = write(&mut text, &shown);
        print(&text)?;
        warn(&issues, report);
        if shown.filtered_by_acls {
            report.warn("the token may not see all of it");
        }
    }
    let differs = shown.config_map.is_some_and(|compared| compared.state != State::Same);
    Ok(args.look.exit_code(differs))
}

fn compare(
    args: &ShowArgs,
    namespace: String,
    config_map: Option<&ConfigMap>,
    payload: &Payload,
) -> Compared {
    let changes = data_changes(config_map.and_then(payload_of), payload);
    let ownership = ownership(config_map, &args.look.managed_by);
    let state = match (&ownership, changes.is_empty()) {
        (Ownership::Absent, _) => State::Absent,
        (_, true) => State::Same,
        (_, false) => State::Differs,
    };
    let changes = if state == State::Differs { changes } else { Vec::new() };
    Compared {
        namespace,
        name: args.look.config_map.clone(),
        state,
        ownership: ownership.to_string(),
        changes,
    }
}

fn write(out: &mut String, shown: &Shown<'_>) -> fmt::Result {
    let keys = if shown.keys == 1 { "1 key".to_owned() } else { format!("{} keys", shown.keys) };
    writeln!(out, "{BOLD}{}{BOLD:#}: {keys} at index {}", shown.id, shown.index)?;
    write_tree(out, shown.payload)?;
    let Some(compared) = &shown.config_map else { return Ok(()) };
    let Compared { namespace, name, state, ownership, changes } = compared;
    let ours = *ownership == Ownership::Ours.to_string() || *state == State::Absent;
    let whose = if ours { String::new() } else { format!("; {ownership}") };
    match state {
        State::Same => writeln!(out, "\nConfigMap {namespace}/{name} says the same{whose}."),
        State::Absent => writeln!(out, "\nConfigMap {namespace}/{name} is not there."),
        State::Differs => {
            writeln!(out, "\nConfigMap {namespace}/{name} differs from Consul{whose}:")?;
            write_changes(out, "  ", changes)
        }
    }
}
