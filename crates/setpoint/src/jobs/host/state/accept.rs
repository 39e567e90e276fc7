//! `setpoint state accept` and `setpoint state relocate`: what was copied, restored or moved by hand is looked after again.
//!
//! Items are known by the directories that they are in. Whoever replaces one, or the root, says so here. Nothing is lost by
//! that: what is not as it was is kept, as if it were adopted, and put back in the end.

use std::collections::BTreeSet;

use setpoint_engine::{CurrentGraph, Engine, ItemState, Observed, Refreshed, Selection};
use setpoint_graph::{ItemRef, Node};
use setpoint_host::{Host, Process, path_of, registry};

use super::super::args::{LockArgs, SetArgs};
use super::super::error::Error;
use super::super::progress::name_slow_checks;
use super::super::root::RootIdentity;
use super::super::set::{Set, is_cut_off, is_there, lock_state, not_remembered, report_damage};
use crate::error::CliError;
use crate::report::{Report, print, read_or_not};
use crate::service::runtime;

pub(super) fn accept(
    items: &[ItemRef],
    args: &SetArgs,
    lock: LockArgs,
    report: Report,
) -> Result<u8, CliError> {
    let set = Set::load_to_remove(args)?;
    let (writer, mut graph) = set.lock("state accept", lock)?;
    report_damage(writer.damaged(), report);
    if is_cut_off(&writer, &graph) {
        // What it has set aside, or was about to take over, is known by its notes.
        return Err(Error::CutOff.into());
    }
    if let Some(unknown) = items.iter().find(|item| !graph.contains(item)) {
        return Err(not_remembered(unknown, Some(&graph)));
    }
    let host = set.host(&graph)?;
    name_slow_checks(&host, report);
    let wanted = with_inside(&graph, items);
    let Accepted { items: accepted, refreshed } = accept_locations(&host, &mut graph, &wanted)?;
    if let Some((item, why)) = refreshed.unreadable.first() {
        return Err(Error::Unreadable(vec![format!("{item}: {why}")]).into());
    }
    if accepted.is_empty() {
        print("Everything is in the directories where it was, and nothing was changed.\n")?;
        return Ok(0);
    }
    let kept = keep(&host, &mut graph, &accepted, &refreshed)?;
    writer.save(&graph, None)?;
    for item in &accepted {
        let how = if kept.contains(item) {
            "; it is not as it was, so that what is there is kept, and put back in the end"
        } else {
            ""
        };
        read_or_not(print(&format!("{item} is looked after where it is now{how}.\n")))?;
    }
    Ok(0)
}

/// Takes over the root that the manifests say now.
pub(super) fn relocate(partly: bool, args: &SetArgs, lock: LockArgs, report: Report) -> Result<u8, CliError> {
    let set = Set::load(args)?;
    let (writer, mut graph) = lock_state(&set.state, set.name(), "state relocate", lock)?;
    report_damage(writer.damaged(), report);
    let root = RootIdentity::of(set.manifest.root())?;
    if root.check(writer.location().as_deref(), &graph).is_ok() {
        print(&format!("{}: everything is in {} already.\n", set.name(), set.manifest.root().display()))?;
        return Ok(0);
    }
    if is_cut_off(&writer, &graph) {
        // What it left lying about is known by where it was.
        return Err(Error::CutOffElsewhere.into());
    }
    let host = set.host(&graph)?;
    name_slow_checks(&host, report);
    let running = running(&host, &graph)?;
    if !running.is_empty() {
        return Err(Error::Running(running).into());
    }
    let all = with_inside(&graph, &[]);
    let Accepted { refreshed, .. } = accept_locations(&host, &mut graph, &all)?;
    let unreadable = refreshed.unreadable.iter().map(|(item, _)| item);
    let missing: Vec<ItemRef> =
        refreshed.drifted.iter().map(|drifted| &drifted.item).chain(unreadable).cloned().collect();
    if !missing.is_empty() && !partly {
        return Err(Error::NotMoved(missing).into());
    }
    keep(&host, &mut graph, &all, &refreshed)?;
    writer.set_location(root.text());
    writer.save(&graph, None)?;
    let done = format!("{}: everything is in {} now.\n", set.name(), set.manifest.root().display());
    read_or_not(print(&done))?;
    if !missing.is_empty() {
        read_or_not(print(
            "Some of it is not there, or not as it was; `setpoint plan` shows what `setpoint apply` would do.\n",
        ))?;
    }
    Ok(0)
}

/// The processes that really run: the state may be a copy of one whose processes have ended since.
fn running(host: &Host, graph: &CurrentGraph) -> Result<Vec<ItemRef>, CliError> {
    let processes = graph.items().filter(|node| node.item().get::<Process>().is_some());
    let processes = Selection::items(processes.map(|node| node.reference().clone()));
    let engine = Engine::new(registry(host));
    let readings = runtime()?.block_on(engine.read_items(engine.readable(graph, &processes)));
    // One that can't be looked for may run.
    let running = readings.into_iter().filter(|reading| !matches!(reading.observed, Ok(Observed::Absent)));
    Ok(running.map(|reading| reading.was.reference().clone()).collect())
}

/// Items that are there with all that is inside of them; all that are there where none is named.
fn with_inside(graph: &CurrentGraph, items: &[ItemRef]) -> BTreeSet<ItemRef> {
    let around: Vec<String> = items
        .iter()
        .filter_map(|item| graph.item(item).and_then(path_of))
        .map(|path| format!("{path}/"))
        .collect();
    let is_wanted = |node: &Node<'_, ItemState>| {
        let path = path_of(node.item()).map(ToString::to_string).unwrap_or_default();
        items.is_empty()
            || items.contains(node.reference())
            || around.iter().any(|around| path.starts_with(around))
    };
    let wanted = graph.items().filter(|node| is_there(graph, node.reference()) && is_wanted(node));
    wanted.map(|node| node.reference().clone()).collect()
}

struct Accepted {
    /// What was in another directory than before.
    items: BTreeSet<ItemRef>,
    /// What is there now.
    refreshed: Refreshed,
}

/// Knows items by the directories that they are in now, and reads them there.
fn accept_locations(
    host: &Host,
    graph: &mut CurrentGraph,
    items: &BTreeSet<ItemRef>,
) -> Result<Accepted, CliError> {
    let accepted = host.accept(graph, items);
    let engine = Engine::new(registry(host));
    let selection = Selection::items(items.iter().cloned());
    let refreshed = runtime()?.block_on(engine.refresh(&mut graph.clone(), &selection));
    Ok(Accepted { items: accepted, refreshed })
}

/// Keeps what is there of accepted items that are not as they were. It is not known who put that there.
fn keep(
    host: &Host,
    graph: &mut CurrentGraph,
    accepted: &BTreeSet<ItemRef>,
    refreshed: &Refreshed,
) -> Result<BTreeSet<ItemRef>, CliError> {
    let mut kept = BTreeSet::new();
    let changed = refreshed.drifted.iter().filter(|drifted| accepted.contains(&drifted.item));
    for drifted in changed {
        let (Some(found), Some(node)) = (&drifted.found, graph.node_of(&drifted.item)) else { continue };
        if path_of(found).is_none() {
            continue;
        }
        let failed = |error| Error::Unreadable(vec![format!("{}: {error}", drifted.item)]);
        let (path, item) = (node.path(), node.item().clone());
        if let Some(state) = node.state().cloned() {
            let mut state = state.adopted();
            host.keep_original(found, &mut state).map_err(failed)?;
            graph.put_item_with_state(&path, item, state)?;
        }
        kept.insert(drifted.item.clone());
    }
    Ok(kept)
}
