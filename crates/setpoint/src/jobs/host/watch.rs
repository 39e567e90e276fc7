//! `setpoint watch`: keeps the host in the declared state.
//!
//! ```text
//!  events of manifests ─┐
//!  events of the host ──┤
//!  ends of processes ───┼─▶ what may have changed ─▶ read ─▶ reconcile ─▶ remember, report
//!  every so often ──────┘
//! ```
//!
//! Nothing rests on having seen an event: everything is read again at an interval. What happens while a pass is made is reported
//! at once, and looked at by the next one.

mod events;
mod follow;
mod meanwhile;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_engine::{CurrentGraph, Engine, Interruption, Refreshed, Selection};
use setpoint_graph::ItemRef;
use setpoint_host::{Host, Manifest, ProcessEnds, bytes_read, registry};
use setpoint_plan::Plan;
use setpoint_state::Writer;

use super::args::{SetArgs, WatchArgs};
use super::details::run_details;
use super::error::Error;
use super::history::operations;
use super::preview::{self, Preview};
use super::print::counted;
use super::progress;
use super::root::RootIdentity;
use super::run::PlannedRun;
use super::set::{Set, add_parents, load_manifest, report_damage, unwanted};
use super::unreadable::{self, Readable};
use crate::error::CliError;
use crate::report::Report;
use crate::service::systemd::Systemd;
use crate::service::{Signals, runtime};
use events::{EventWriter, OperationEvents};
use follow::{Changed, Follower};
use meanwhile::Meanwhile;

pub(crate) fn run(args: &WatchArgs, report: Report) -> Result<u8, CliError> {
    let set = Set::load(&args.set)?;
    set.report_foreign(report);
    runtime()?.block_on(async {
        if args.report_only {
            report_differences(set, args, report).await
        } else {
            reconcile(set, args, report).await
        }
    })
}

/// The first pause after an error that may pass, such as a full disk; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How long it is waited after something that may pass.
#[derive(Debug)]
struct Pauses(Duration);

impl Pauses {
    fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    /// The next pause; each is longer than the last.
    fn pause(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

/// Repairs what differs, for ever.
async fn reconcile(set: Set, args: &WatchArgs, report: Report) -> Result<u8, CliError> {
    let (writer, mut current) = set.lock("watch", args.lock)?;
    let writer = Arc::new(writer);
    let host = set.host(&current)?;
    let mut set = set;
    // As they are added when the manifests are read again: else they would seem to have changed.
    add_parents(&mut set.manifest, &host, &current);
    super::apply::clean_up(&host, &writer, &mut current, Some(set.intended()), report)?;
    let events = EventWriter::new(args.json);
    let engine = Engine::new(registry(&host))
        .with_concurrency(args.parallelism.get())
        .with_hooks(OperationEvents::new(events));
    progress::show_output(&host, report);
    progress::name_slow_checks(&host, report);
    let mut signals = Signals::new()?;
    let mut systemd = Systemd::from_environment();
    let _alive = systemd.keep_alive(bytes_read);
    let follower = Follower::new(&args.set.at.file)?;
    let mut watch = WatchLoop {
        set,
        args: args.set.clone(),
        meanwhile: Meanwhile::new(follower, &host, events),
        host,
        engine,
        writer,
        current: Some(current),
        events,
        report,
        wrong: String::new(),
        allow_empty: args.allow_empty,
        refused: String::new(),
        status: String::new(),
        unreadable: BTreeMap::new(),
    };
    if let Some(error) = watch.nothing_left(&watch.set.manifest) {
        return Err(error);
    }
    events.started(watch.set.name(), watch.set.manifest.len())?;
    let mut changed = Changed::everything();
    let mut pauses = Pauses::new();
    loop {
        let retry = match watch.pass(&changed).await {
            Ok(retry) => {
                pauses = Pauses::new();
                systemd.passed(&watch.status);
                retry
            }
            // The disk may be full, and not for ever: what was done is known, and saved when that can be.
            Err(error) if error.is_passing() => {
                let pause = pauses.pause();
                events.failed(&error.to_string(), pause)?;
                systemd.status(&error.to_string());
                Some(Timestamp::now().checked_add(pause).unwrap_or(Timestamp::MAX))
            }
            Err(error) => return Err(error),
        };
        watch.meanwhile.pass_on(watch.current.as_ref());
        // Since directories come and go.
        let unseen = watch.meanwhile.follower.follow(&watch.set.manifest, report);
        if !unseen.is_empty() {
            changed = Changed { manifests: false, items: Some(unseen) };
            continue;
        }
        let until_retry = retry.map(|at| {
            let wait = at.duration_since(Timestamp::now());
            Duration::try_from(wait).unwrap_or_default()
        });
        let wait = until_retry.map_or(args.interval, |retry| retry.min(args.interval));
        let Meanwhile { follower, ends, .. } = &mut watch.meanwhile;
        tokio::select! {
            seen = follower.next(&watch.set.manifest) => changed = seen,
            ended = ends.next() => changed = Changed { manifests: false, items: Some(ended) },
            () = tokio::time::sleep(wait) => changed = follower.everything(&watch.set.manifest),
            () = signals.next() => break,
        }
    }
    systemd.stopping();
    events.stopped()?;
    Ok(0)
}

/// What is watched, and what is known of it.
struct WatchLoop {
    set: Set,
    /// Where the manifests are, and what is set of their values.
    args: SetArgs,
    /// What happens while a pass is made.
    meanwhile: Meanwhile,
    host: Host,
    engine: Engine,
    writer: Arc<Writer>,
    current: Option<CurrentGraph>,
    events: EventWriter,
    report: Report,
    /// What was wrong with the manifests when they were loaded last.
    wrong: String,
    /// Whether manifests that declare nothing any more are meant so.
    allow_empty: bool,
    /// Why the last plan was not carried out.
    refused: String,
    /// What the last pass came to, in a line.
    status: String,
    /// What could not be read when it was last looked at, and why.
    unreadable: BTreeMap<ItemRef, String>,
}

impl WatchLoop {
    /// Reads what may have changed and puts it right; returns when to try again what failed.
    async fn pass(&mut self, changed: &Changed) -> Result<Option<Timestamp>, CliError> {
        let began = Instant::now();
        if changed.manifests {
            self.reload()?;
        }
        if let Err(error) = self.is_same_root() {
            return self.refuse(&error);
        }
        let name = self.set.name().to_owned();
        let current = self.current.get_or_insert_with(|| CurrentGraph::new(name.as_str()));
        self.meanwhile.ends.follow(current);
        self.meanwhile.report_ends(|_| true);
        let ended = self.meanwhile.ended();
        let renamed = self.set.adjust(&self.host, current)?;
        if !renamed.is_empty() {
            self.writer.save(current, None)?;
        }
        self.host.set_unwanted(unwanted(current, Some(self.set.intended())));
        // Before it is read, so that what changes meanwhile is seen.
        let unseen = self.meanwhile.follower.follow(&self.set.manifest, self.report);
        let selection = match &changed.items {
            None => Selection::all(),
            // Also those that ended since it was known what changed.
            Some(items) => Selection::items(items.iter().chain(&ended).chain(&unseen).cloned()),
        };
        let refresh = self.engine.refresh(current, &selection);
        let refreshed = self.meanwhile.during(&self.set.manifest, refresh).await;
        super::apply::report_notices(&self.host, self.report);
        report_unreadable(self.events, &mut self.unreadable, &refreshed, &selection)?;
        self.meanwhile.report_ends(|item| refreshed.drifted.iter().any(|drifted| drifted.item == *item));
        for drifted in &refreshed.drifted {
            self.events.drift(drifted, self.meanwhile.has_reported(&drifted.item))?;
        }
        self.meanwhile.forget_ends(&ended);
        let intended_count = self.set.manifest.len();
        let errors: Vec<(ItemRef, String)> =
            self.unreadable.iter().map(|(item, why)| (item.clone(), why.clone())).collect();
        let intended = Some(Cow::Borrowed(self.set.intended()));
        let Readable { selection, intended, .. } =
            unreadable::leave(&self.engine, current, intended, Selection::all(), &errors)?;
        let intended = intended.as_deref();
        let (engine, host, manifest) = (&self.engine, &self.host, &self.set.manifest);
        let preview =
            preview::preview(engine, host, manifest, current, intended, &selection, &refreshed).await;
        let Preview { plan, drift, taken_over, .. } = match preview {
            Ok(preview) => preview,
            Err(error) => return self.refuse(&error),
        };
        let details = run_details(&plan, &drift, &taken_over, current, intended);
        self.refused.clear();
        let planned = PlannedRun {
            command: "watch",
            engine: self.engine.clone(),
            host: &self.host,
            manifest: &self.set.manifest,
            writer: &self.writer,
            details,
            unreadable: self.unreadable.len(),
            report: self.report,
        };
        let run = planned.carry_out(&mut self.current, intended, &selection);
        let done = self.meanwhile.during(&self.set.manifest, run).await?;
        super::apply::report_notices(&self.host, self.report);
        if let Some(Interruption::Journal(why)) = done.status.interruption() {
            return Err(Error::Journal(why.clone()).into());
        }
        if done.run.entries.is_empty()
            && !refreshed.drifted.is_empty()
            && let Some(current) = &self.current
        {
            self.writer.save(current, None)?;
        }
        self.report.detail(|| {
            let (read, did) = (counted(refreshed.read), operations(done.run.entries.len()));
            format!("{read} read, {did}, {:.1} ms", began.elapsed().as_secs_f64() * 1e3)
        });
        let failed = done.status.failures().len() + self.unreadable.len();
        let troubles = if failed == 0 { String::new() } else { format!(", {failed} failed") };
        self.status = format!("watching {}: {} declared{troubles}", self.set.name(), counted(intended_count));
        Ok(done.status.next_retry())
    }

    /// Refuses to work in another directory than before, which may have come to the path of the root meanwhile.
    fn is_same_root(&self) -> Result<(), CliError> {
        let Some(current) = &self.current else { return Ok(()) };
        RootIdentity::of(self.set.manifest.root())?.check(self.writer.place().as_deref(), current)
    }

    /// Says, once, why nothing is done.
    fn refuse(&mut self, error: &CliError) -> Result<Option<Timestamp>, CliError> {
        let why = error.to_string();
        if why != self.refused {
            self.events.refused(&why)?;
            self.status.clone_from(&why);
            self.refused = why;
        }
        Ok(None)
    }

    /// What is wrong with manifests that declare nothing of what is there.
    fn nothing_left(&self, manifest: &Manifest) -> Option<CliError> {
        let current = self.current.as_ref().filter(|_| !self.allow_empty)?;
        let mut there = current.items().filter(|node| !node.item().external()).peekable();
        there.peek()?;
        let left = there.any(|node| manifest.declared(node.reference()).is_some());
        (!left).then(|| Error::NothingLeft { declared: manifest.len(), there: current.len() }.into())
    }

    /// A file that is there, declared something, and does not any more: it is being written, or was damaged.
    fn emptied(&self, manifest: &Manifest) -> Option<PathBuf> {
        if self.allow_empty {
            return None;
        }
        let declaring = |manifest: &Manifest| -> BTreeSet<PathBuf> {
            manifest.all_declared().map(|(_, declared)| declared.file.to_path_buf()).collect()
        };
        let (before, now) = (declaring(&self.set.manifest), declaring(manifest));
        before.difference(&now).find(|file| file.exists()).cloned()
    }

    /// Takes over what the manifests say now; while they are wrong, what they said last stands.
    fn reload(&mut self) -> Result<(), CliError> {
        let old = &self.set.manifest;
        let loaded = load_manifest(&self.args).and_then(|manifest| {
            if let Some(error) = self.nothing_left(&manifest) {
                Err(error)
            } else if let Some(file) = self.emptied(&manifest) {
                Err(Error::Emptied(file).into())
            } else if manifest.name() == old.name() && manifest.root() == old.root() {
                Ok(manifest)
            } else {
                Err(Error::OtherSetNow.into())
            }
        });
        match loaded {
            Ok(mut manifest) => {
                if let Some(current) = &self.current {
                    add_parents(&mut manifest, &self.host, current);
                }
                if !manifest.graph().diff(old.graph()).is_empty() || !self.wrong.is_empty() {
                    self.events.reloaded(manifest.len())?;
                }
                self.set.manifest = manifest;
                self.wrong.clear();
            }
            Err(error) => {
                let wrong = error.to_string();
                if wrong != self.wrong {
                    self.events.wrong(&error)?;
                    self.wrong = wrong;
                }
            }
        }
        Ok(())
    }
}

/// Reports what can't be read, once for each reason.
fn report_unreadable(
    events: EventWriter,
    known: &mut BTreeMap<ItemRef, String>,
    refreshed: &Refreshed,
    selection: &Selection,
) -> Result<(), CliError> {
    let is_looked_at = |item: &ItemRef| match selection {
        Selection::Items(items) => items.contains(item),
        _ => true,
    };
    known.retain(|item, _| {
        !is_looked_at(item) || refreshed.unreadable.iter().any(|(unreadable, _)| unreadable == item)
    });
    for (item, why) in &refreshed.unreadable {
        let why = why.to_string();
        if known.get(item) != Some(&why) {
            events.unreadable(item, &why)?;
            known.insert(item.clone(), why);
        }
    }
    Ok(())
}

/// Reports what differs, for ever, and changes nothing.
async fn report_differences(set: Set, args: &WatchArgs, report: Report) -> Result<u8, CliError> {
    let events = EventWriter::new(args.json);
    let mut signals = Signals::new()?;
    let mut systemd = Systemd::from_environment();
    let _alive = systemd.keep_alive(bytes_read);
    let mut follower = Follower::new(&args.set.at.file)?;
    events.started(set.name(), set.manifest.len())?;
    let mut differences = Differences {
        set,
        events,
        report,
        last: None,
        unreadable: BTreeMap::new(),
        ends: None,
        damaged: None,
        refused: String::new(),
    };
    let mut pauses = Pauses::new();
    let mut manifests = false;
    loop {
        if manifests {
            match load_manifest(&args.set) {
                Ok(manifest) => differences.set.manifest = manifest,
                Err(error) => events.wrong(&error)?,
            }
        }
        // A look changes nothing, and may be left at any time.
        let looked = tokio::select! {
            looked = differences.look() => looked,
            () = signals.next() => break,
        };
        let wait = match looked {
            Ok(()) => {
                pauses = Pauses::new();
                systemd.passed(&format!("reporting what differs from {}", differences.set.name()));
                args.interval
            }
            Err(error) if error.is_passing() => {
                let pause = pauses.pause();
                events.failed(&error.to_string(), pause)?;
                systemd.status(&error.to_string());
                pause.min(args.interval)
            }
            Err(error) => return Err(error),
        };
        let Differences { set, ends, .. } = &mut differences;
        let manifest = &set.manifest;
        if !follower.follow(manifest, report).is_empty() {
            manifests = false;
            continue;
        }
        let ended = async {
            match ends {
                Some(ends) => drop(ends.next().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = follower.next(manifest) => manifests = changed.manifests,
            () = ended => manifests = false,
            () = tokio::time::sleep(wait) => manifests = follower.everything(manifest).manifests,
            () = signals.next() => break,
        }
    }
    systemd.stopping();
    events.stopped()?;
    Ok(0)
}

/// What differs, as it was reported last.
struct Differences {
    set: Set,
    events: EventWriter,
    report: Report,
    last: Option<Plan>,
    /// What could not be read when it was last looked at, and why.
    unreadable: BTreeMap<ItemRef, String>,
    ends: Option<ProcessEnds>,
    /// How the state was damaged when it was last read.
    damaged: Option<String>,
    /// Why the last plan would not be carried out.
    refused: String,
}

impl Differences {
    /// Looks at everything, and reports what was not reported yet.
    async fn look(&mut self) -> Result<(), CliError> {
        let Self { set, events, report, last, unreadable: known_unreadable, ends, damaged, refused } = self;
        let mut snapshot = set.own(set.state.read()?)?;
        if snapshot.damaged != *damaged {
            report_damage(snapshot.damaged.as_deref(), *report);
            damaged.clone_from(&snapshot.damaged);
        }
        let host = set.host(&snapshot.graph)?;
        progress::name_slow_checks(&host, *report);
        host.recognise_returned(&mut snapshot.graph);
        set.adjust(&host, &mut snapshot.graph)?;
        host.set_unwanted(unwanted(&snapshot.graph, Some(set.intended())));
        let engine = Engine::new(registry(&host));
        let ends = ends.get_or_insert_with(|| ProcessEnds::new(&host));
        ends.follow(&snapshot.graph);
        let ended = ends.take(|_| true);
        for process in &ended {
            events.ended(process)?;
        }
        let all = Selection::all();
        let refreshed = engine.refresh(&mut snapshot.graph, &all).await;
        report_unreadable(*events, known_unreadable, &refreshed, &all)?;
        let current = &snapshot.graph;
        let intended = Some(Cow::Borrowed(set.intended()));
        let Readable { selection, intended, .. } =
            unreadable::leave(&engine, current, intended, all, &unreadable::errors(&refreshed))?;
        let intended = intended.as_deref();
        let preview =
            preview::preview(&engine, &host, &set.manifest, current, intended, &selection, &refreshed).await;
        let plan = match preview {
            Ok(preview) => {
                refused.clear();
                preview.plan
            }
            Err(error) => {
                let why = error.to_string();
                if why != *refused {
                    events.refused(&why)?;
                    *refused = why;
                }
                return Ok(());
            }
        };
        // The same differences are reported once.
        if last.as_ref() != Some(&plan) {
            for drifted in &refreshed.drifted {
                events.drift(drifted, ended.iter().any(|process| process.item == drifted.item))?;
            }
            events.plan(&plan)?;
            *last = Some(plan);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_is_twice_as_long_as_the_last_up_to_a_minute() {
        let mut pauses = Pauses::new();
        let lengths: Vec<u64> = std::iter::repeat_with(|| pauses.pause().as_secs()).take(8).collect();
        assert_eq!(lengths, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
