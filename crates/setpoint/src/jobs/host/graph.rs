//! `setpoint graph`: draws the declared items, or what a plan would change about them.

use std::borrow::Cow;

use jiff::Timestamp;
use setpoint_engine::{CurrentGraph, Engine};
use setpoint_graph::{Drawing, ItemRef, Mark, Marks};
use setpoint_host::registry;
use setpoint_plan::{Action, Plan, Standing};

use super::args::{GraphArgs, GraphFormat};
use super::progress;
use super::set::{self, Set};
use super::unreadable::{self, Readable, Unreadable};
use crate::error::CliError;
use crate::report::{Report, print};
use crate::service::runtime;

pub(crate) fn run(args: &GraphArgs, report: Report) -> Result<u8, CliError> {
    let mut set = Set::load(&args.set)?;
    let (drawing, unreadable) =
        if args.plan { transition(&mut set, report)? } else { (Drawing::of(set.intended()), Vec::new()) };
    let mut text = match args.format {
        GraphFormat::Dot => drawing.to_dot(),
        GraphFormat::Json => drawing.to_json().map_err(|error| CliError::Output(error.into()))?,
        GraphFormat::Svg => drawing.to_svg(),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    print(&text)?;
    unreadable::result(&unreadable).map(|()| 0)
}

/// Draws a plan. Returns what can't be read as well.
fn transition(set: &mut Set, report: Report) -> Result<(Drawing, Vec<Unreadable>), CliError> {
    let mut snapshot = set.read_state(report)?;
    let host = set.host(&snapshot.graph)?;
    progress::name_slow_checks(&host, report);
    set::recognise(&host, &mut snapshot.graph, Some(set.intended()));
    set.adjust(&host, &mut snapshot.graph)?;
    host.set_unwanted(set.unwanted(&snapshot.graph));
    let engine = Engine::new(registry(&host)).retrying_now();
    let all = setpoint_engine::Selection::all();
    let mut refreshed = runtime()?.block_on(engine.refresh(&mut snapshot.graph, &all));
    set.adjust_read(&mut snapshot.graph, &mut refreshed)?;
    let intended = Some(Cow::Borrowed(set.intended()));
    let Readable { selection, intended, unreadable } =
        unreadable::leave(&engine, &snapshot.graph, intended, all, &unreadable::errors(&refreshed))?;
    let plan = engine.plan(Some(&snapshot.graph), intended.as_deref(), &selection, Timestamp::now())?;
    let there: CurrentGraph = present(&snapshot.graph);
    Ok((Drawing::transition(&there, set.intended(), &marks(&plan)), unreadable))
}

/// What the plan knows better than a comparison of the two graphs.
fn marks(plan: &Plan) -> Marks {
    let mut marks = Marks::new();
    for operation in &plan.operations {
        let mark = match operation.action {
            _ if operation.temporary => Mark::Recreated,
            Action::Recreate => Mark::Recreated,
            // It may be applied again without a difference.
            Action::Modify => Mark::Changed,
            Action::Create | Action::Delete => continue,
        };
        marks.insert(ItemRef::new(operation.kind.as_str(), operation.name.as_str()), mark);
    }
    for left in &plan.left {
        let mark = match left.standing {
            Standing::Failed | Standing::Invalid => Mark::Failed,
            _ => Mark::Pending,
        };
        marks.insert(ItemRef::new(left.kind.as_str(), left.name.as_str()), mark);
    }
    marks
}

/// Only what really exists: the memory of something that is gone is no item.
fn present(graph: &CurrentGraph) -> CurrentGraph {
    let mut there = graph.clone();
    let gone: Vec<ItemRef> = graph
        .items()
        .filter(|node| node.state().is_some_and(|s| s.presence() == setpoint_engine::Presence::Absent))
        .map(|node| node.reference().clone())
        .collect();
    for item in gone {
        // It was listed by the same graph.
        let _ = there.del_item(&item);
    }
    there
}
