//! `setpoint explain`: why an item is as it is, followed to its causes.

use std::fmt::Write;

use jiff::Timestamp;
use serde::Serialize;
use setpoint_engine::{Engine, Selection};
use setpoint_host::registry;

use super::args::ExplainArgs;
use super::error::Error;
use super::set::{Set, is_adopted};
use crate::error::CliError;
use crate::report::{print, print_json};
use crate::service::runtime;

#[derive(Debug, Serialize)]
struct Explained {
    kind: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    declared_in: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    adopted: bool,
    explanation: Vec<String>,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<u8, CliError> {
    let set = Set::load(&args.set)?;
    let mut snapshot = set.read_state()?;
    let host = set.host(&snapshot.graph)?;
    let engine = Engine::new(registry(&host));
    let item = &args.item;
    // What is on the host now is part of why it is as it is; what can't be read is told by the rest.
    let only = Selection::item(item.clone());
    let refreshed = runtime()?.block_on(engine.refresh(&mut snapshot.graph, &only));
    let explanation = engine
        .explain(&snapshot.graph, set.intended(), item, Timestamp::now())
        .ok_or_else(|| Error::NoSuchItem(item.clone()))?;
    let declared = set.manifest.declared(item);
    let declared_in = declared.map(|declared| format!("{}:{}", declared.file.display(), declared.line));
    let adopted = is_adopted(&snapshot.graph, item);
    let mut text = explanation.to_string();
    if let Some((_, why)) = refreshed.unreadable.first() {
        // What is remembered may not be true any more.
        text = format!("{item} can't be read: {why}\n  when it could be read last: {text}");
    }
    if args.json {
        let explanation = text.lines().map(ToOwned::to_owned).collect();
        let (kind, name) = (item.kind().to_string(), item.name().to_string());
        print_json(&Explained { kind, name, declared_in, adopted, explanation })?;
        return Ok(0);
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let _ = match declared_in {
        Some(place) => writeln!(text, "  it is declared in {place}"),
        None => writeln!(text, "  it is not declared"),
    };
    if adopted {
        text.push_str("  it was there before Setpoint, and stays when it is not declared any more\n");
    }
    print(&text)?;
    Ok(0)
}
