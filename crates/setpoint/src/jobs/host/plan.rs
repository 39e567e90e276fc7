//! `setpoint plan`: shows what `apply` would do, and changes nothing.

use setpoint_engine::{Refreshed, Selection};

use super::ahead;
use super::apply;
use super::args::{PlanArgs, shell_word};
use super::planfile::PlanFile;
use super::preview::{self, Preview};
use super::print::counted;
use super::progress;
use super::set::{self, Scope};
use super::unreadable::{self, Readable};
use crate::error::CliError;
use crate::report::{Report, print, print_json};
use crate::service::runtime;

/// What `--detailed-exitcode` says of a plan with something to do.
const CHANGES: u8 = 2;

pub(crate) fn run(args: &PlanArgs, report: Report) -> Result<u8, CliError> {
    let (mut set, mut snapshot, ahead) = ahead::load(&args.set, args.change.refresh)?;
    set.report_foreign(report);
    report.detail(|| format!("{}: {} declared", set.name(), counted(set.manifest.len())));
    set::report_damage(snapshot.damaged.as_deref(), report);
    if snapshot.unfinished {
        report.warn("a run is under way, or was cut off: the plan is of what it has done so far");
    }
    let host = set.host(&snapshot.graph)?;
    progress::name_slow_checks(&host, report);
    set::recognise(&host, &mut snapshot.graph, Some(set.intended()));
    if args.out.is_some() {
        set.take_digest()?;
    }
    let mut renamed = set.adjust(&host, &mut snapshot.graph)?;
    let engine = set::engine(&host, &args.change, &args.replace);
    let Scope { selection, intended } = set::scope(&args.change.target, set.intended(), &snapshot.graph)?;
    set::check_known(&args.replace, set.intended(), &snapshot.graph)?;
    set::check_replaced(&args.replace, &selection)?;
    let mut refreshed = if args.change.refresh {
        host.set_unwanted(set.unwanted(&snapshot.graph));
        let read_already = ahead.in_root(set.manifest.root(), set.intended());
        runtime()?.block_on(engine.refresh_beside(&mut snapshot.graph, &selection, read_already))
    } else {
        Refreshed::default()
    };
    renamed.extend(set.adjust_read(&mut snapshot.graph, &mut refreshed)?);
    report.detail(|| format!("{} read", counted(refreshed.read)));
    apply::report_notices(&host, report);
    let current = &snapshot.graph;
    let Readable { selection, intended, unreadable } =
        unreadable::leave(&engine, current, Some(intended), selection, &unreadable::errors(&refreshed))?;
    let intended = intended.as_deref();
    let preview = preview::preview(&engine, &host, &set.manifest, current, intended, &selection, &refreshed);
    let mut preview: Preview = runtime()?.block_on(preview)?;
    if args.change.refresh {
        runtime()?.block_on(preview.ask_checks(&engine, intended, &refreshed));
    }
    if selection == Selection::All {
        preview.warn_of_left_out(snapshot.manifests.as_ref(), &set.manifest);
    }
    preview.renamed = renamed;
    preview.unreadable = unreadable;
    if let Some(path) = &args.out {
        PlanFile::new(&set, &snapshot, args, &preview)?.write(path)?;
    }
    if args.json {
        preview.warnings.extend(set.foreign());
        print_json(&preview)?;
    } else {
        print(&super::print::preview(&preview, current, intended))?;
        if let Some(path) = &args.out {
            let (kept, options) = (shell_word(path), args.set.at.options());
            print(&format!(
                "Kept in {}; `setpoint apply{options} {kept}` carries it out.\n",
                path.display()
            ))?;
        }
    }
    preview.result()?;
    let changes = args.detailed_exitcode && !preview.plan.is_empty();
    Ok(if changes { CHANGES } else { 0 })
}
