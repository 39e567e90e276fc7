//! `setpoint state kept`: what was there before Setpoint, and what somebody wrote in its place since.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;
use setpoint_graph::ItemRef;
use setpoint_host::{Kept, KeptEntry, KeptThing, RootPath};

use super::super::args::PlaceArgs;
use super::super::error::Error;
use super::super::set::{runtime_directory, state_of};
use crate::error::CliError;
use crate::report::{print, print_bytes, print_json};

/// One that is kept, as the list shows it.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    name: &'a str,
    /// What it is: `file`, `link` or `directory`.
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    /// The item whose original it is; none of what nobody remembers any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<String>,
    /// Whether it is the original of an item, and put back in the end.
    original: bool,
    bytes: usize,
    since: Timestamp,
}

/// Lists what is kept, or prints one of them.
pub(crate) fn run(name: Option<&str>, args: &PlaceArgs, json: bool) -> Result<u8, CliError> {
    let state = state_of(args);
    let entries = Kept::new(&runtime_directory(&state)).list().map_err(Error::KeptList)?;
    if let Some(name) = name {
        let entry =
            entries.iter().find(|entry| entry.name == name).ok_or_else(|| Error::NotKept(name.to_owned()))?;
        return write(entry);
    }
    let known = state.read()?;
    let items: BTreeMap<String, ItemRef> = known
        .iter()
        .flat_map(|snapshot| snapshot.graph.items())
        .map(|node| (Kept::name_of(node.reference()), node.reference().clone()))
        .collect();
    let mut text = String::new();
    for entry in &entries {
        let listed = listed(entry, &items);
        if json {
            print_json(&listed)?;
        } else {
            let Listed { name, what, path, item, original, bytes, since } = listed;
            let place = path.map(|path| format!(" {path}")).unwrap_or_default();
            let whose = match (item, original) {
                (Some(item), true) => format!("the original of {item}"),
                (Some(item), false) => format!("written in the place of {item}, or kept of an earlier one"),
                (None, _) => "of an item that nobody remembers".to_owned(),
            };
            let size = if what == "file" { format!(", {bytes} bytes") } else { String::new() };
            let since = since.strftime("%Y-%m-%d %H:%M:%S");
            let _ = writeln!(text, "{name}  {what}{place}{size}: {whose}, kept since {since} UTC");
        }
    }
    if entries.is_empty() && !json {
        text.push_str("Nothing is kept.\n");
    }
    print(&text)?;
    Ok(0)
}

fn listed<'a>(entry: &'a KeptEntry, items: &BTreeMap<String, ItemRef>) -> Listed<'a> {
    let of = entry.name.split('.').next().unwrap_or_default();
    let (what, bytes) = match &entry.what {
        KeptThing::File { content, .. } => ("file", content.len()),
        KeptThing::Link { target } => ("link", target.len()),
        KeptThing::Directory { .. } => ("directory", 0),
    };
    Listed {
        name: &entry.name,
        what,
        path: entry.path.as_ref().map(RootPath::as_str),
        item: items.get(of).map(ToString::to_string),
        original: !entry.is_earlier(),
        bytes,
        since: Timestamp::try_from(entry.since).unwrap_or_default(),
    }
}

/// Writes what is kept as it was: any bytes.
fn write(entry: &KeptEntry) -> Result<u8, CliError> {
    match &entry.what {
        KeptThing::File { content, .. } => print_bytes(content)?,
        KeptThing::Link { target } => print(&format!("{target}\n"))?,
        KeptThing::Directory { mode, uid, gid } => print(&format!("mode {mode:04o}, owner {uid}:{gid}\n"))?,
    }
    Ok(0)
}
