//! `setpoint apply`: shows the plan, asks, and carries it out.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use setpoint_engine::{CurrentGraph, Drifted, Engine, Interruption, Refreshed, Selection};
use setpoint_graph::{Graph, ItemHandle, ItemRef};
use setpoint_host::Host;
use setpoint_state::{Run, Writer};

use super::args::ApplyArgs;
use super::confirm::confirm;
use super::details::run_details;
use super::error::Error;
use super::planfile::PlanFile;
use super::preview::{self, Preview, TheirChanges};
use super::progress::{self, Progress};
use super::protect;
use super::rename::{self, Renamed};
use super::run::{self, Done, FailureView, PlannedRun};
use super::set::{self, Scope, Set};
use super::stop::Stop;
use super::unreadable::{self, Readable, Unreadable};
use crate::error::CliError;
use crate::report::{Report, print, print_json, read_or_not};
use crate::service::runtime;

/// What was planned and what came of it, as data.
#[derive(Debug, Serialize)]
struct Applied<'a> {
    #[serde(flatten)]
    preview: &'a Preview,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a Run>,
    failures: Vec<FailureView>,
}

/// A change that is about to be made. Where the result is wanted as data, nothing is shown along the way.
pub(crate) struct PendingChange<'a> {
    pub(crate) command: &'static str,
    pub(crate) set: &'a Set,
    pub(crate) engine: Engine,
    pub(crate) host: Host,
    pub(crate) writer: Arc<Writer>,
    pub(crate) intended: Option<&'a Graph>,
    pub(crate) selection: Selection,
    pub(crate) unreadable: Vec<Unreadable>,
    pub(crate) renamed: Vec<Renamed>,
    /// What runs that were cut off have left and could not be removed, in words.
    pub(crate) left_over: Vec<String>,
    pub(crate) yes: bool,
    /// Whether the host is read before anything is done.
    pub(crate) reads: bool,
    pub(crate) json: bool,
    pub(crate) report: Report,
}

pub(crate) fn run(args: &ApplyArgs, report: Report) -> Result<u8, CliError> {
    apply(args, report)?.finish(args.write.json)
}

/// Shows the plan, asks, and carries it out. With `--json` nothing is shown yet.
pub(crate) fn apply(args: &ApplyArgs, report: Report) -> Result<Made, CliError> {
    let kept = args.plan.as_ref().map(|path| PlanFile::read(path)).transpose()?;
    let mut wanted = args.write.set.clone();
    if let Some(kept) = &kept
        && wanted.var.is_empty()
    {
        wanted.var.clone_from(&kept.var);
    }
    let mut set = Set::load(&wanted)?;
    set.report_foreign(report);
    if let Some(kept) = &kept {
        set.take_digest()?;
        check_kept(kept, &set)?;
    }
    let (writer, mut current) = set.lock("apply", args.write.lock)?;
    let writer = Arc::new(writer);
    let host = set.host(&current)?;
    progress::name_slow_checks(&host, report);
    let left_over = clean_up(&host, &writer, &mut current, Some(set.intended()), report);
    let mut renamed = set.adjust(&host, &mut current)?;
    host.set_unwanted(set.unwanted(&current));
    if let Some(kept) = &kept {
        let change = PendingChange {
            command: "apply",
            engine: set::engine(&host, &args.write.change, &kept.replace),
            set: &set,
            host,
            writer,
            intended: None,
            selection: Selection::all(),
            unreadable: Vec::new(),
            renamed,
            left_over,
            // Whoever kept a plan has seen it.
            yes: true,
            reads: true,
            json: args.write.json,
            report,
        };
        return apply_kept(change, kept, current);
    }
    let engine = set::engine(&host, &args.write.change, &args.replace);
    let Scope { selection, intended } = set::scope(&args.write.change.target, set.intended(), &current)?;
    set::check_known(&args.replace, set.intended(), &current)?;
    set::check_replaced(&args.replace, &selection)?;
    let runtime = runtime()?;
    let mut refreshed = if args.write.change.refresh || args.refresh_only || writer.has_unsaved_runs() {
        runtime.block_on(engine.refresh(&mut current, &to_refresh(&writer, &selection)))
    } else {
        Refreshed::default()
    };
    renamed.extend(set.adjust_read(&mut current, &mut refreshed)?);
    if args.refresh_only {
        return refresh_only(args, &host, &writer, &mut current, &refreshed, &set)
            .map(|made| Made { left_over, ..made });
    }
    let Readable { selection, intended, unreadable } =
        unreadable::leave(&engine, &current, Some(intended), selection, &unreadable::errors(&refreshed))?;
    let change = PendingChange {
        command: "apply",
        set: &set,
        engine,
        host,
        writer,
        intended: intended.as_deref(),
        selection,
        unreadable,
        renamed,
        left_over,
        yes: args.write.yes,
        reads: args.write.change.refresh,
        json: args.write.json,
        report,
    };
    change.make(current, &refreshed)
}

/// What is to be read: after a run that was cut off, nobody knows where anything is.
pub(crate) fn to_refresh(writer: &Writer, selection: &Selection) -> Selection {
    if writer.has_unsaved_runs() { Selection::all() } else { selection.clone() }
}

/// Removes what a run that was cut off left lying about. Returns what could not be removed, in words.
pub(crate) fn clean_up(
    host: &Host,
    writer: &Writer,
    current: &mut CurrentGraph,
    intended: Option<&Graph>,
    report: Report,
) -> Vec<String> {
    set::report_damage(writer.damaged(), report);
    let left_over = sweep(host, writer, current, report);
    for item in set::recognise(host, current, intended) {
        report.info(&format!("{item} was gone, and is back in its place: it is looked after again"));
    }
    left_over
}

/// Removes what a run that was cut off left beside items. What can't be removed is reported and remembered, and stops nothing: the
/// next run tries again. Returns it in words.
pub(crate) fn sweep(host: &Host, writer: &Writer, current: &CurrentGraph, report: Report) -> Vec<String> {
    let swept = host.sweep(current, writer.interrupted_items());
    for path in swept.removed {
        report.detail(|| format!("removed {}, which a run that was cut off had left", path.display()));
    }
    let is_left = |item: &&ItemHandle| swept.left.iter().any(|(left, _)| left == item.reference());
    let items = writer.interrupted_items().iter().filter(is_left).cloned().collect();
    if writer.set_left_over(items) && !writer.has_unsaved_runs() {
        // Where that fails, the next run finds what it was, and saves it.
        let _ = writer.save(current, None);
    }
    let left_over = swept.left.iter().map(|(item, why)| format!("{item}: {why}")).collect();
    for (item, why) in swept.left {
        report.warn(&format!("what a run that was cut off may have left of {item} is not removed: {why}"));
    }
    report_notices(host, report);
    left_over
}

/// Says what was found of files that are not Setpoint's work.
pub(crate) fn report_notices(host: &Host, report: Report) {
    for notice in host.take_notices() {
        report.warn(&notice.to_string());
    }
}

/// Refuses a plan that was kept and is not what would be planned for these manifests.
fn check_kept(kept: &PlanFile, set: &Set) -> Result<(), CliError> {
    if kept.set != set.name() {
        return Err(Error::Stale(format!("it was made for the set \"{}\"", kept.set)).into());
    }
    if let Some(how) = kept.root_difference(set.manifest.root())? {
        return Err(Error::Stale(how).into());
    }
    if !kept.is_for(set)? {
        let what = "the manifests, or files that they refer to, have changed since it was made";
        return Err(Error::Stale(what.to_owned()).into());
    }
    Ok(())
}

/// Carries out a plan that was kept, if it is still what would be done.
fn apply_kept(
    mut change: PendingChange<'_>,
    kept: &PlanFile,
    mut current: CurrentGraph,
) -> Result<Made, CliError> {
    if kept.serial != change.writer.found_serial() {
        return Err(Error::Stale("the state has changed since it was made".to_owned()).into());
    }
    if change.writer.has_unsaved_runs() && !kept.unfinished {
        return Err(Error::Stale("a run was cut off since it was made".to_owned()).into());
    }
    let Scope { selection, intended } = set::scope(&kept.target, change.set.intended(), &current)?;
    let to_read = to_refresh(&change.writer, &selection);
    let mut refreshed = runtime()?.block_on(change.engine.refresh(&mut current, &to_read));
    change.renamed.extend(change.set.adjust_read(&mut current, &mut refreshed)?);
    let PendingChange { engine, host, set, .. } = &change;
    let Readable { selection, intended, unreadable } =
        unreadable::leave(engine, &current, Some(intended), selection, &unreadable::errors(&refreshed))?;
    let intended = intended.as_deref();
    let now = preview::preview(engine, host, &set.manifest, &current, intended, &selection, &refreshed);
    let mut now = runtime()?.block_on(now)?;
    runtime()?.block_on(now.ask_checks(engine, intended, &refreshed));
    if selection == Selection::All {
        now.warn_of_left_out(change.writer.manifests().as_ref(), &set.manifest);
    }
    now.renamed.clone_from(&change.renamed);
    now.unreadable.clone_from(&unreadable);
    if !kept.has_shown(&now)? {
        return Err(Error::Stale("the host has changed since it was made".to_owned()).into());
    }
    PendingChange { intended, selection, unreadable, ..change }.make(current, &refreshed)
}

/// Takes over what was found on the host, and changes nothing there.
fn refresh_only(
    args: &ApplyArgs,
    host: &Host,
    writer: &Writer,
    current: &mut CurrentGraph,
    refreshed: &Refreshed,
    set: &Set,
) -> Result<Made, CliError> {
    let drift = refreshed.drifted.iter().map(preview::DriftView::from).collect();
    let preview = Preview {
        drift,
        warnings: Vec::new(),
        plan: setpoint_plan::Plan::new(set.name()),
        unreadable: unreadable::list(refreshed),
        renamed: Vec::new(),
        theirs: TheirChanges::default(),
    };
    let show = |text: &str| if args.write.json { Ok(()) } else { print(text) };
    if preview.drift.is_empty() {
        run::checkpoint(host, writer, current)?;
        show(&format!("{}: the host is as the state says.\n", set.name()))?;
    } else {
        show(&super::print::drift(&preview.drift))?;
        if !confirm("Take this over into the state?", args.write.yes)? {
            return Err(Error::Declined.into());
        }
        writer.save(current, None)?;
        let count = preview.drift.len();
        let items = if count == 1 { "1 item".to_owned() } else { format!("{count} items") };
        let done =
            format!("{}: the state of {items} was taken over; the host was not changed.\n", set.name());
        read_or_not(show(&done))?;
    }
    Ok(Made { preview, done: None, left_over: Vec::new() })
}

/// What was planned and what came of it.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) preview: Preview,
    /// None if there was nothing to do.
    pub(crate) done: Option<Done>,
    /// What runs that were cut off have left and could not be removed, in words.
    pub(crate) left_over: Vec<String>,
}

impl Made {
    /// Shows it as data, if that was asked for, and says with what to exit.
    pub(crate) fn finish(self, json: bool) -> Result<u8, CliError> {
        let Self { preview, done, .. } = &self;
        if json {
            let failures =
                done.iter().flat_map(|done| done.status.failures()).map(FailureView::from).collect();
            let shown = print_json(&Applied { preview, run: done.as_ref().map(|done| &done.run), failures });
            if done.is_some() { read_or_not(shown)? } else { shown? }
        }
        self.result().map(|()| 0)
    }

    /// Returns whether all was done.
    pub(crate) fn result(&self) -> Result<(), CliError> {
        if let Some(done) = &self.done
            && let Err(error) = done.status.result()
        {
            if let Some(Interruption::Journal(why)) = error.interruption {
                return Err(Error::Journal(why).into());
            }
            let (why, command) = (error.to_string(), done.run.command.clone());
            let failed =
                error.failures.into_iter().map(|failure| (failure.item, failure.operation)).collect();
            return Err(Error::Incomplete { why, command, failed }.into());
        }
        self.preview.result()?;
        if self.left_over.is_empty() { Ok(()) } else { Err(Error::LeftOver(self.left_over.clone()).into()) }
    }
}

impl PendingChange<'_> {
    /// Shows what is going to be done, asks, does it, and shows what came of it.
    pub(crate) fn make(self, mut current: CurrentGraph, refreshed: &Refreshed) -> Result<Made, CliError> {
        let Self { engine, host, set, intended, selection, .. } = &self;
        report_notices(host, self.report);
        let preview =
            preview::preview(engine, host, &set.manifest, &current, *intended, selection, refreshed);
        let mut preview = runtime()?.block_on(preview)?;
        if self.reads {
            runtime()?.block_on(preview.ask_checks(engine, *intended, refreshed));
        }
        if intended.is_some() && *selection == Selection::All {
            preview.warn_of_left_out(self.writer.manifests().as_ref(), &set.manifest);
        }
        preview.renamed.clone_from(&self.renamed);
        preview.unreadable.clone_from(&self.unreadable);
        if self.json {
            preview.warnings.extend(set.foreign());
        } else {
            print(&super::print::preview(&preview, &current, *intended))?;
        }
        if preview.plan.is_empty() {
            let protects = protect::remember(&set.manifest, &mut current);
            let moved = run::remember_manifests(&set.manifest, &self.writer, selection);
            // What was found on the host is worth remembering all the same.
            let news = protects || moved || !preview.drift.is_empty() || !self.renamed.is_empty();
            if news || self.writer.has_unsaved_runs() {
                host.settle(&mut current);
                self.writer.save(&current, rename::run(&self.writer, self.command, &self.renamed))?;
            }
            return Ok(Made { preview, done: None, left_over: self.left_over });
        }
        let question = match self.command {
            "destroy" => "Delete all of this?",
            _ => "Carry this out?",
        };
        if !confirm(question, self.yes)? {
            return Err(Error::Declined.into());
        }
        if !self.yes && self.reads {
            self.look_again(&mut current, &preview)?;
        }
        if !self.renamed.is_empty() {
            // A run that is cut off is taken over from here.
            self.writer.save(&current, None)?;
        }
        let mut current = Some(current);
        let done = self.carry_out(&mut current, &preview)?;
        report_notices(host, self.report);
        if !self.json {
            read_or_not(print(&format!("\n{}", run::summary(&done, &preview.plan))))?;
        }
        Ok(Made { preview, done: Some(done), left_over: self.left_over })
    }

    /// Refuses to go on where the host has changed while a person thought about what was shown: what somebody wrote meanwhile
    /// would be replaced, and nobody would have seen it.
    fn look_again(&self, current: &mut CurrentGraph, shown: &Preview) -> Result<(), CliError> {
        let concerned = shown.plan.operations.iter();
        let concerned: BTreeSet<ItemRef> =
            concerned.map(|one| ItemRef::new(one.kind.as_str(), one.name.as_str())).collect();
        let Refreshed { drifted, unreadable, .. } =
            runtime()?.block_on(self.engine.refresh(current, &Selection::items(concerned)));
        let gone = |drifted: &Drifted| if drifted.found.is_some() { "is changed" } else { "is gone" };
        let drifted = drifted.iter().map(|one| format!("{} {}", one.item, gone(one)));
        let unreadable = unreadable.iter().map(|(item, why)| format!("{item} can't be read any more: {why}"));
        let changed: Vec<String> = drifted.chain(unreadable).collect();
        if changed.is_empty() { Ok(()) } else { Err(Error::ChangedMeanwhile(changed).into()) }
    }

    fn carry_out(&self, current: &mut Option<CurrentGraph>, preview: &Preview) -> Result<Done, CliError> {
        let mut engine = self.engine.clone();
        progress::show_output(&self.host, self.report);
        if !self.json {
            print("\n")?;
            engine = engine.with_hooks(Progress::new(preview.plan.operations.len()));
        }
        let Preview { plan, drift, theirs, .. } = preview;
        let known = current.get_or_insert_with(|| CurrentGraph::new(self.set.name()));
        let details = run_details(plan, drift, theirs, known, self.intended);
        let runtime = runtime()?;
        let stop = {
            let _inside = runtime.enter();
            Stop::listen()?
        };
        let planned = PlannedRun {
            command: self.command,
            engine,
            host: &self.host,
            manifest: &self.set.manifest,
            writer: &self.writer,
            details,
            unreadable: self.unreadable.len(),
            stop,
            report: self.report,
        };
        runtime.block_on(planned.carry_out(current, self.intended, &self.selection))
    }
}
