//! `setpoint apply`: shows the plan, asks, and carries it out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use setpoint_engine::{CurrentGraph, Engine, Refreshed, Selection};
use setpoint_graph::Graph;
use setpoint_host::{Host, item_types};
use setpoint_state::{Run, Writer};

use super::args::ApplyArgs;
use super::confirm::confirm;
use super::error::Error;
use super::planfile::PlanFile;
use super::preview::{self, Preview};
use super::protect;
use super::run::{self, Done, FailureView, Progress, Running};
use super::set::{self, Scope, Set};
use crate::error::CliError;
use crate::report::{Report, print, print_json};
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
pub(crate) struct Change<'a> {
    pub(crate) command: &'static str,
    pub(crate) set: &'a Set,
    pub(crate) engine: Engine,
    pub(crate) host: Host,
    pub(crate) writer: Arc<Writer>,
    pub(crate) intended: Option<&'a Graph>,
    pub(crate) selection: Selection,
    pub(crate) yes: bool,
    pub(crate) json: bool,
    pub(crate) report: Report,
}

pub(crate) fn run(args: &ApplyArgs, report: Report) -> Result<u8, CliError> {
    apply(args, report)?.finish(args.write.json)
}

/// Shows the plan, asks, and carries it out. With `--json` nothing is shown yet.
pub(crate) fn apply(args: &ApplyArgs, report: Report) -> Result<Made, CliError> {
    let set = Set::load(&args.write.set)?;
    let (writer, mut current) = set.state.lock(set.name(), "apply", args.write.lock.lock_timeout)?;
    let writer = Arc::new(writer);
    let host = set.host(&current)?;
    clean_up(&host, &writer, report)?;
    if let Some(path) = &args.plan {
        let kept = PlanFile::read(path)?;
        return apply_kept(args, &set, &kept, writer, host, current, report);
    }
    let engine = set::engine(&host, &args.write.change, &args.replace);
    let Scope { selection, intended } = set::scope(&args.write.change.target, set.intended(), &current)?;
    set::check_known(&args.replace, set.intended(), &current)?;
    let runtime = runtime()?;
    let refreshed = if args.write.change.refresh || args.refresh_only {
        runtime.block_on(preview::refresh(&engine, &mut current, &selection, Vec::new()))?
    } else {
        Refreshed::default()
    };
    if args.refresh_only {
        return refresh_only(args, &writer, &current, &refreshed, &set);
    }
    let change = Change {
        command: "apply",
        set: &set,
        engine,
        host,
        writer,
        intended: Some(&intended),
        selection,
        yes: args.write.yes,
        json: args.write.json,
        report,
    };
    change.make(current, &refreshed)
}

/// Removes what a run that was cut off left lying about.
pub(crate) fn clean_up(host: &Host, writer: &Writer, report: Report) -> Result<(), CliError> {
    if let Some(why) = writer.damaged() {
        report.warn(&set::damage(why));
    }
    let removed = host.sweep(writer.in_flight()).map_err(|error| Error::Sweep(error.to_string()))?;
    for path in removed {
        report.detail(|| format!("removed {}, which a run that was cut off had left", path.display()));
    }
    Ok(())
}

/// Carries out a plan that was kept, if it is still what would be done.
fn apply_kept(
    args: &ApplyArgs,
    set: &Set,
    kept: &PlanFile,
    writer: Arc<Writer>,
    host: Host,
    mut current: CurrentGraph,
    report: Report,
) -> Result<Made, CliError> {
    if kept.set != set.name() {
        return Err(Error::Stale(format!("it was made for the set {:?}", kept.set)).into());
    }
    if kept.serial != writer.found_serial() {
        return Err(Error::Stale("the state has changed since it was made".to_owned()).into());
    }
    let intended = kept.intended(&item_types())?;
    let engine = set::engine(&host, &args.write.change, &kept.replace);
    let Scope { selection, intended } = set::scope(&kept.target, &intended, &current)?;
    let runtime = runtime()?;
    let refreshed = runtime.block_on(preview::refresh(&engine, &mut current, &selection, Vec::new()))?;
    let now =
        preview::preview(&engine, &host, &set.manifest, &current, Some(&intended), &selection, &refreshed)?;
    if now.plan != kept.plan {
        return Err(Error::Stale("the host has changed since it was made".to_owned()).into());
    }
    let change = Change {
        command: "apply",
        set,
        engine,
        host,
        writer,
        intended: Some(&intended),
        selection,
        // Whoever kept a plan has seen it.
        yes: true,
        json: args.write.json,
        report,
    };
    change.make(current, &refreshed)
}

/// Takes over what was found on the host, and changes nothing there.
fn refresh_only(
    args: &ApplyArgs,
    writer: &Writer,
    current: &CurrentGraph,
    refreshed: &Refreshed,
    set: &Set,
) -> Result<Made, CliError> {
    let drift = refreshed.drifted.iter().map(preview::DriftView::from).collect();
    let preview = Preview {
        drift,
        warnings: Vec::new(),
        plan: setpoint_plan::Plan::new(set.name()),
        taken_over: BTreeMap::new(),
    };
    let say = |text: &str| if args.write.json { Ok(()) } else { print(text) };
    if preview.drift.is_empty() {
        say(&format!("{}: the host is as the state says.\n", set.name()))?;
    } else {
        say(&super::print::drift(&preview.drift))?;
        if !confirm("Take this over into the state?", args.write.yes)? {
            return Err(Error::Declined.into());
        }
        writer.save(current, None)?;
        let count = preview.drift.len();
        let items = if count == 1 { "1 item".to_owned() } else { format!("{count} items") };
        say(&format!("{}: the state of {items} was taken over; the host was not changed.\n", set.name()))?;
    }
    Ok(Made { preview, done: None })
}

/// What was planned and what came of it.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) preview: Preview,
    /// None if there was nothing to do.
    pub(crate) done: Option<Done>,
}

impl Made {
    /// Shows it as data, if that was asked for, and says with what to exit.
    pub(crate) fn finish(self, json: bool) -> Result<u8, CliError> {
        let Self { preview, done } = &self;
        if json {
            let failures =
                done.iter().flat_map(|done| done.status.failures()).map(FailureView::from).collect();
            print_json(&Applied { preview, run: done.as_ref().map(|done| &done.run), failures })?;
        }
        self.result().map(|()| 0)
    }

    /// Whether all was done.
    pub(crate) fn result(&self) -> Result<(), CliError> {
        let result = self.done.as_ref().map_or(Ok(()), |done| done.status.result());
        result.map_err(|error| Error::Incomplete(error.to_string()).into())
    }
}

impl Change<'_> {
    /// Shows what is going to be done, asks, does it, and shows what came of it.
    pub(crate) fn make(self, mut current: CurrentGraph, refreshed: &Refreshed) -> Result<Made, CliError> {
        let Self { engine, host, set, intended, selection, .. } = &self;
        let preview =
            preview::preview(engine, host, &set.manifest, &current, *intended, selection, refreshed)?;
        if !self.json {
            print(&super::print::preview(&preview, &current, *intended))?;
        }
        let protects = protect::remember(&set.manifest, &mut current);
        if preview.plan.is_empty() {
            // What was found on the host is worth remembering all the same.
            if protects || !preview.drift.is_empty() || self.writer.has_taken_over() {
                host.settle(&mut current);
                self.writer.save(&current, None)?;
            }
            return Ok(Made { preview, done: None });
        }
        let question = match self.command {
            "destroy" => "Delete all of this?",
            _ => "Carry this out?",
        };
        if !confirm(question, self.yes)? {
            return Err(Error::Declined.into());
        }
        let done = self.carry_out(current, &preview)?;
        if !self.json {
            print(&format!("\n{}", run::summary(&done)))?;
        }
        Ok(Made { preview, done: Some(done) })
    }

    fn carry_out(&self, current: CurrentGraph, preview: &Preview) -> Result<Done, CliError> {
        let mut engine = self.engine.clone();
        if !self.json {
            print("\n")?;
            engine = engine.with_hooks(Progress::new(preview.plan.operations.len()));
        }
        let runtime = runtime()?;
        let mut current = Some(current);
        let running = Running {
            command: self.command,
            engine,
            host: &self.host,
            manifest: &self.set.manifest,
            writer: &self.writer,
            report: self.report,
        };
        runtime.block_on(running.carry_out(&mut current, self.intended, &self.selection))
    }
}
