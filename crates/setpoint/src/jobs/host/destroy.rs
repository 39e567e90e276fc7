//! `setpoint destroy`: removes all that Setpoint made.

use std::borrow::Cow;
use std::sync::Arc;

use setpoint_engine::{Refreshed, Selection};
use setpoint_graph::Graph;

use super::apply::{Made, PendingChange, clean_up, to_refresh};
use super::args::WriteArgs;
use super::progress;
use super::set::{self, Set};
use super::unreadable::{self, Readable};
use crate::error::CliError;
use crate::report::Report;
use crate::service::runtime;

pub(crate) fn run(args: &WriteArgs, report: Report) -> Result<u8, CliError> {
    destroy(args, report)?.finish(args.json)
}

/// Shows what goes, asks, and deletes it. With `--json` nothing is shown yet.
pub(crate) fn destroy(args: &WriteArgs, report: Report) -> Result<Made, CliError> {
    let set = Set::load_to_remove(&args.set)?;
    set.report_foreign(report);
    let (writer, mut current) = set.lock("destroy", args.lock)?;
    let writer = Arc::new(writer);
    let host = set.host(&current)?;
    progress::name_slow_checks(&host, report);
    let stays = (!args.change.target.is_empty()).then(|| set.intended());
    let left_over = clean_up(&host, &writer, &mut current, stays, report);
    let engine = set::engine(&host, &args.change, &[]);
    set::check_known(&args.change.target, &Graph::new(set.name()), &current)?;
    let gone = set::going(&current, &args.change.target);
    let staying: Vec<String> = set::staying(&current, &gone).iter().map(ToString::to_string).collect();
    if !staying.is_empty() {
        let names = staying.join(", ");
        report.warn(&format!(
            "what only comes after or refers to what goes stays: {names}; `--target` takes it too"
        ));
    }
    let selection = if gone.is_empty() { Selection::all() } else { Selection::items(gone.iter().cloned()) };
    host.set_unwanted(if gone.is_empty() { set::unwanted(&current, None) } else { gone.clone() });
    let refreshed = if args.change.refresh || writer.has_unsaved_runs() {
        runtime()?.block_on(engine.refresh(&mut current, &to_refresh(&writer, &selection)))
    } else {
        Refreshed::default()
    };
    // Of a part, everything else stays as it was declared.
    let mut rest: Option<Graph> = (selection != Selection::All).then(|| set.intended().clone());
    if let Some(rest) = &mut rest {
        for item in &gone {
            // One that is only remembered is not declared any more.
            let _ = rest.del_item(item);
        }
        // What is declared and not there is not made on the way.
        let missing = rest.items().map(|node| node.reference().clone());
        let missing: Vec<_> = missing.filter(|item| !set::is_there(&current, item)).collect();
        for item in &missing {
            let _ = rest.del_item(item);
        }
    }
    let Readable { selection, intended, unreadable } = unreadable::leave(
        &engine,
        &current,
        rest.map(Cow::Owned),
        selection,
        &unreadable::errors(&refreshed),
    )?;
    let change = PendingChange {
        command: "destroy",
        set: &set,
        engine,
        host,
        writer,
        intended: intended.as_deref(),
        selection,
        unreadable,
        renamed: Vec::new(),
        left_over,
        yes: args.yes,
        reads: args.change.refresh,
        json: args.json,
        report,
    };
    change.make(current, &refreshed)
}
