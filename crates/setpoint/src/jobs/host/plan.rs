//! `setpoint plan`: shows what `apply` would do, and changes nothing.

use setpoint_engine::Refreshed;
use setpoint_host::item_types;

use super::ahead;
use super::args::PlanArgs;
use super::planfile::PlanFile;
use super::preview::{self, Preview};
use super::print::counted;
use super::set::{self, Scope};
use crate::error::CliError;
use crate::report::{Report, print, print_json};
use crate::service::runtime;

/// What `--detailed-exitcode` says of a plan with something to do.
const CHANGES: u8 = 2;

pub(crate) fn run(args: &PlanArgs, report: Report) -> Result<u8, CliError> {
    let (set, mut snapshot, ahead) = ahead::load(&args.set, args.change.refresh)?;
    report.detail(|| format!("{}: {} declared", set.name(), counted(set.intended().len())));
    if let Some(why) = &snapshot.damaged {
        report.warn(&set::damage(why));
    }
    if snapshot.unfinished {
        report.warn("a run is under way, or was cut off: the plan is of what it has done so far");
    }
    let host = set.host(&snapshot.graph)?;
    let engine = set::engine(&host, &args.change, &args.replace);
    let Scope { selection, intended } = set::scope(&args.change.target, set.intended(), &snapshot.graph)?;
    set::check_known(&args.replace, set.intended(), &snapshot.graph)?;
    let refreshed = if args.change.refresh {
        let reading =
            preview::refresh(&engine, &mut snapshot.graph, &selection, ahead.in_root(set.manifest.root()));
        runtime()?.block_on(reading)?
    } else {
        Refreshed::default()
    };
    report.detail(|| format!("{} read", counted(refreshed.read)));
    let current = &snapshot.graph;
    let intended = Some(&*intended);
    let preview: Preview =
        preview::preview(&engine, &host, &set.manifest, current, intended, &selection, &refreshed)?;
    if let Some(path) = &args.out {
        let (target, replace) = (args.change.target.clone(), args.replace.clone());
        let plan = preview.plan.clone();
        let kept =
            PlanFile::new(set.name(), snapshot.serial, target, replace, plan, set.intended(), &item_types())?;
        kept.write(path)?;
    }
    if args.json {
        print_json(&preview)?;
    } else {
        print(&super::print::preview(&preview, current, intended))?;
        if let Some(path) = &args.out {
            print(&format!("Kept in {0}; `setpoint apply {0}` carries it out.\n", path.display()))?;
        }
    }
    let changes = args.detailed_exitcode && !preview.plan.is_empty();
    // The process is about to end, and taking large graphs apart takes its time.
    std::mem::forget(snapshot);
    std::mem::forget(set);
    Ok(if changes { CHANGES } else { 0 })
}
