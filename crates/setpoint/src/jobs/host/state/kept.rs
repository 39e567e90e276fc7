//! `setpoint state kept`: what was there before Setpoint, and what somebody wrote in its place since.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Serialize;
use setpoint_graph::Graph;
use setpoint_host::{Kept, KeptEntry, KeptThing, RootPath, path_of};

use super::super::args::PathArgs;
use super::super::error::Error;
use super::super::set::{report_damage, runtime_directory, state_of};
use crate::error::CliError;
use crate::report::{Report, print, print_bytes, print_json};

/// One that is kept, as the list shows it.
#[derive(Debug, Serialize)]
struct ListedCopy<'a> {
    name: &'a str,
    /// What it is: `file`, `link`, `directory`, or `damaged`.
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    /// The item whose original it is, or in whose place it was; none of what nobody remembers any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<String>,
    /// Whether it is the original of an item, and put back in the end.
    original: bool,
    bytes: u64,
    since: Timestamp,
}

/// The items that are remembered.
#[derive(Default)]
struct Items {
    by_original: BTreeMap<String, String>,
    by_path: BTreeMap<String, String>,
}

/// Lists what is kept, or prints one of them.
pub(crate) fn run(name: Option<&str>, args: &PathArgs, json: bool, report: Report) -> Result<u8, CliError> {
    let state = state_of(args);
    let kept = Kept::new(&runtime_directory(&state));
    let entries = kept.list().map_err(Error::KeptList)?;
    if let Some(name) = name {
        let entry =
            entries.iter().find(|entry| entry.name == name).ok_or_else(|| Error::NotKept(name.to_owned()))?;
        return write(entry);
    }
    let snapshot = state.read()?;
    report_damage(snapshot.as_ref().and_then(|snapshot| snapshot.damaged.as_deref()), report);
    let mut known = snapshot.map(|snapshot| snapshot.graph);
    if let Some(known) = &mut known {
        kept.name_originals(known);
    }
    let mut items = Items::default();
    for node in known.iter().flat_map(Graph::items) {
        let item = node.reference().to_string();
        if let Some(original) = node.state().and_then(Kept::original_of) {
            items.by_original.insert(original, item.clone());
        }
        if let Some(path) = path_of(node.item()) {
            items.by_path.insert(path.to_string(), item);
        }
    }
    let mut text = String::new();
    for entry in &entries {
        let listed = listed(entry, &items);
        if json {
            print_json(&listed)?;
        } else {
            let ListedCopy { name, what, path, item, original, bytes, since } = listed;
            let at = path.map(|path| format!(" {path}")).unwrap_or_default();
            let whose = match (item, original) {
                (Some(item), true) => format!("the original of {item}"),
                (Some(item), false) => format!("written in the place of {item}, or kept of an earlier one"),
                (None, _) => "of an item that nobody remembers".to_owned(),
            };
            let size = if what == "file" { format!(", {bytes} bytes") } else { String::new() };
            let since = since.strftime("%Y-%m-%d %H:%M:%S");
            let _ = writeln!(text, "{name}  {what}{at}{size}: {whose}, kept since {since} UTC");
        }
    }
    if entries.is_empty() && !json {
        text.push_str("Nothing is kept.\n");
    }
    print(&text)?;
    Ok(0)
}

fn listed<'a>(entry: &'a KeptEntry, items: &Items) -> ListedCopy<'a> {
    let (what, bytes) = match &entry.what {
        KeptThing::File { content, .. } => ("file", content.len() as u64),
        KeptThing::LargeFile { size, .. } => ("file", *size),
        KeptThing::Link { target } => ("link", target.len() as u64),
        KeptThing::Directory { .. } => ("directory", 0),
        KeptThing::Damaged { .. } => ("damaged", 0),
    };
    let path = entry.path.as_ref().map(RootPath::as_str);
    let original = items.by_original.get(&entry.name);
    let item = original.or_else(|| items.by_path.get(path?)).cloned();
    let since = Timestamp::try_from(entry.since).unwrap_or_default();
    ListedCopy { name: &entry.name, what, path, item, original: original.is_some(), bytes, since }
}

/// Writes what is kept as it was: any bytes.
fn write(entry: &KeptEntry) -> Result<u8, CliError> {
    match &entry.what {
        KeptThing::File { content, .. } => print_bytes(content)?,
        KeptThing::LargeFile { size, mode, uid, gid } => print(&format!(
            "mode {mode:04o}, owner {uid}:{gid}; its {size} bytes are too many to be kept, and were not replaced\n"
        ))?,
        KeptThing::Link { target } => print(&format!("{target}\n"))?,
        KeptThing::Directory { mode, uid, gid } => print(&format!("mode {mode:04o}, owner {uid}:{gid}\n"))?,
        KeptThing::Damaged { why } => {
            return Err(Error::DamagedKept { name: entry.name.clone(), why: why.clone() }.into());
        }
    }
    Ok(0)
}
