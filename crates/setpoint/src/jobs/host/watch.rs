//! `setpoint watch`: keeps the host in the declared state, or only says what differs from it.
//!
//! ```text
//!  events of manifests ─┐
//!  events of the host ──┤                                           ┌▶ reconcile ─▶ remember, report
//!  ends of processes ───┼─▶ what may have changed ─▶ read ─▶ plan ──┤
//!  every so often ──────┘                                           └▶ report, with `--report-only`
//! ```
//!
//! Nothing rests on having seen an event: everything is read again at an interval. What happens while a pass is made is reported
//! at once, and looked at by the next one.

mod events;
mod follow;
mod links;
mod manifests;
mod meanwhile;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use setpoint_engine::{CurrentGraph, Drifted, Engine, Interruption, Refreshed, Selection};
use setpoint_graph::ItemRef;
use setpoint_host::{Host, bytes_read, registry};
use setpoint_plan::Plan;
use setpoint_state::{StateVersion, Writer};
use tokio::time::Instant;

use super::args::{SetArgs, WatchArgs};
use super::details::run_details;
use super::error::Error;
use super::history::operations;
use super::preview::{self, Preview};
use super::print::counted;
use super::progress;
use super::rename::{self, Renamed};
use super::root::RootIdentity;
use super::run::PlannedRun;
use super::set::{self, Set, add_parents, report_damage};
use super::stop::Stop;
use super::unreadable::{self, Readable};
use crate::error::CliError;
use crate::report::Report;
use crate::service::running::Running;
use crate::service::{allow_many_files, runtime};
use events::{EventWriter, OperationEvents};
use follow::{Changes, Follower};
use meanwhile::Meanwhile;

/// No pass for something that is due follows the last one faster.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// How long what still reads, or runs for that, has to end.
const TIME_TO_END: Duration = Duration::from_secs(5);
/// The most passes in a row that find the state written by somebody else meanwhile, before one reports all the same.
const MOST_OVERTAKEN: u32 = 10;

pub(crate) fn run(args: &WatchArgs, report: Report) -> Result<u8, CliError> {
    let set = manifests::load_when_quiet(&args.set, report)?;
    set.report_foreign(report);
    let open_files = allow_many_files();
    let runtime = runtime()?;
    let ended = runtime.block_on(watch(set, args, open_files, report));
    runtime.shutdown_timeout(TIME_TO_END);
    ended
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

/// Repairs what differs, or reports it, for ever. `open_files` limits how many files its processes may open; none for no change.
async fn watch(set: Set, args: &WatchArgs, open_files: Option<u64>, report: Report) -> Result<u8, CliError> {
    let events = EventWriter::new(args.json);
    let mut watch = WatchLoop::new(set, args, events, report)?;
    if let Some(most) = open_files {
        watch.host.limit_open_files(most);
    }
    let mut running = Running::start("watch", args.observe, report, bytes_read)?;
    events.started(watch.set.name(), watch.set.manifest.len())?;
    let follower = &mut watch.meanwhile.follower;
    // Everything is looked at; of what is written from here on there will be events.
    follower.follow(&watch.set.manifest, report);
    let mut changed = follower.everything(&watch.set.manifest);
    let mut pauses = Pauses::new();
    // When everything is looked at again, whatever happens until then.
    let mut full_look = Instant::now() + args.interval;
    while !watch.stop.drain().is_cancelled() {
        let passed = watch.pass(&changed).await;
        if changed.items.is_none() {
            full_look = Instant::now() + args.interval;
        }
        // What was not looked at is looked at by the next pass.
        let mut unread = Changes::nothing();
        let retry = match passed {
            Ok(_) if watch.stop.drain().is_cancelled() => break,
            Ok(passed) => {
                pauses = Pauses::new();
                match watch.trouble(&passed) {
                    None => running.passed(&watch.status),
                    Some(why) => running.partly_failed(&watch.status, why),
                }
                match passed {
                    Passed::Read { retry } => retry,
                    Passed::Unread => {
                        unread = changed;
                        None
                    }
                }
            }
            // The disk may be full, and not for ever: what was done is known, and saved when that can be.
            Err(error) if error.is_passing() => {
                let pause = pauses.pause();
                unread = changed;
                events.failed(&error.to_string(), pause)?;
                running.failed(&error.to_string());
                Some(Timestamp::now().checked_add(pause).unwrap_or(Timestamp::MAX))
            }
            Err(error) => return Err(error),
        };
        // What was only read is forgotten: the next pass begins with what the state says.
        let is_kept = matches!(watch.mode, Mode::Reconcile(_));
        watch.meanwhile.pass_on(watch.current.as_ref().filter(|_| is_kept));
        // Since directories come and go.
        let unseen = watch.meanwhile.follower.follow(&watch.set.manifest, report);
        if !unseen.is_empty() {
            changed = Changes { manifests: false, items: Some(unseen) };
            changed.add(unread);
            continue;
        }
        let until_retry = retry.map(|at| {
            let wait = at.duration_since(Timestamp::now());
            Duration::try_from(wait).unwrap_or_default().max(SHORTEST_PAUSE)
        });
        let next_look = until_retry.map_or(full_look, |retry| full_look.min(Instant::now() + retry));
        let WatchLoop { meanwhile: Meanwhile { follower, ends, .. }, stop, set, .. } = &mut watch;
        tokio::select! {
            seen = follower.next(&set.manifest) => changed = seen,
            ended = ends.next() => changed = Changes { manifests: false, items: Some(ended) },
            () = tokio::time::sleep_until(next_look) => changed = follower.everything(&set.manifest),
            () = stop.drain().cancelled() => changed = Changes::nothing(),
        }
        changed.add(unread);
    }
    running.stopping();
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
    mode: Mode,
    stop: Stop,
    current: Option<CurrentGraph>,
    events: EventWriter,
    report: Report,
    /// What was wrong with the manifests when they were loaded last.
    wrong: String,
    /// Whether manifests that declare nothing any more are meant so.
    allow_empty: bool,
    /// Why the last plan was not carried out, or could not be made.
    refused: String,
    /// What the last pass came to, in a line.
    status: String,
    /// What could not be read when it was last looked at, and why.
    unreadable: BTreeMap<ItemRef, String>,
}

/// What is done about what differs.
enum Mode {
    /// It is put right.
    Reconcile(Box<Writer>),
    /// It is reported. Others may put it right: what is known is read in each pass.
    Report {
        /// What differed when it was reported last.
        last: Option<Box<Plan>>,
        /// How the state was damaged when it was last read.
        damaged: Option<String>,
        /// What tells the state that was last read from what others make of it.
        version: StateVersion,
        /// How many passes in a row have found that it was written meanwhile.
        overtaken: u32,
    },
}

impl Mode {
    /// Returns whether somebody else has written the state since it was read: what was read of the host does not belong to it then.
    /// Where that is so all the while, it is used all the same.
    fn is_overtaken(&mut self, now: StateVersion) -> bool {
        let Self::Report { version, overtaken, .. } = self else { return false };
        *overtaken = if now == *version { 0 } else { overtaken.saturating_add(1) };
        (1..MOST_OVERTAKEN).contains(overtaken)
    }
}

/// How a pass ended.
enum Passed {
    /// What may have changed was read; what failed is tried again at this time.
    Read { retry: Option<Timestamp> },
    /// Nothing was read, for a reason that was reported.
    Unread,
}

/// What a pass looks at.
struct Look {
    selection: Selection,
    /// The items of processes whose end was reported before.
    ended: BTreeSet<ItemRef>,
}

impl WatchLoop {
    fn new(mut set: Set, args: &WatchArgs, events: EventWriter, report: Report) -> Result<Self, CliError> {
        let (mode, mut current, stop) = if args.report_only {
            let stop = Stop::listen()?;
            let snapshot = set.read_state(report)?;
            let (last, damaged, version) = (None, snapshot.damaged, StateVersion::default());
            (Mode::Report { last, damaged, version, overtaken: 0 }, snapshot.graph, stop)
        } else {
            let (writer, current) = set.lock("watch", args.lock)?;
            // While it was waited for the lock, a signal ended the program at once.
            (Mode::Reconcile(Box::new(writer)), current, Stop::listen()?)
        };
        let host = set.host(&current)?;
        // As they are added when the manifests are read again: else they would seem to have changed.
        add_parents(&mut set.manifest, &host, &current);
        let mut engine = Engine::new(registry(&host)).with_concurrency(args.parallelism.get());
        if let Mode::Reconcile(writer) = &mode {
            super::apply::clean_up(&host, writer, &mut current, Some(set.intended()), report);
            engine = engine.with_hooks(OperationEvents::new(events));
            progress::show_output(&host, report);
        } else {
            // Nothing is done here: what others back off from differs all the same.
            engine = engine.retrying_now();
        }
        progress::name_slow_checks(&host, report);
        let watch = Self {
            args: args.set.clone(),
            meanwhile: Meanwhile::new(
                Follower::new(&args.set.at.file, events)?,
                &host,
                events,
                !args.report_only,
            ),
            set,
            host,
            engine,
            mode,
            stop,
            current: Some(current),
            events,
            report,
            wrong: String::new(),
            allow_empty: args.allow_empty,
            refused: String::new(),
            status: String::new(),
            unreadable: BTreeMap::new(),
        };
        match watch.nothing_left(&watch.set.manifest).or_else(|| watch.emptied(&watch.set.manifest)) {
            Some(error) if !args.report_only => Err(error),
            _ => Ok(watch),
        }
    }

    /// What is not as it should be after a pass, in a line.
    fn trouble(&self, passed: &Passed) -> Option<&str> {
        let reported = [&self.wrong, &self.refused].into_iter().find(|why| !why.is_empty());
        let failed = matches!(passed, Passed::Read { retry: Some(_) }).then_some(&self.status);
        reported.or(failed).map(|why| why.lines().next().unwrap_or_default())
    }

    /// Reads what may have changed, and puts it right or reports it. Where it was asked to stop meanwhile, nothing more is begun.
    async fn pass(&mut self, changed: &Changes) -> Result<Passed, CliError> {
        let began = Instant::now();
        if changed.manifests {
            self.reload()?;
        }
        let Look { selection, ended } = match self.prepare(changed) {
            Ok(look) => look,
            Err(error) => {
                self.refuse(error)?;
                return Ok(Passed::Unread);
            }
        };
        let Some(current) = &mut self.current else { return Ok(Passed::Unread) };
        let refresh = self.engine.refresh(current, &selection);
        let refresh = self.meanwhile.during(&self.set.manifest, refresh);
        // Reading changes nothing, and may be left at any time.
        let Some(mut refreshed) = self.stop.drain().run_until_cancelled(refresh).await else {
            return Ok(Passed::Unread);
        };
        if self.mode.is_overtaken(self.set.state.version()) {
            // What somebody else was doing just then would be reported as drift.
            let soon = Timestamp::now().checked_add(SHORTEST_PAUSE).unwrap_or(Timestamp::MAX);
            return Ok(Passed::Read { retry: Some(soon) });
        }
        let renamed = match self.set.adjust_read(current, &mut refreshed) {
            Ok(renamed) => renamed,
            Err(error) => return self.refuse(error),
        };
        if let Mode::Reconcile(writer) = &self.mode
            && !renamed.is_empty()
        {
            writer.save(current, None)?;
        }
        // The new name could not be read as long as the old one could not.
        for Renamed { to, .. } in &renamed {
            self.unreadable.remove(to);
        }
        super::apply::report_notices(&self.host, self.report);
        report_unreadable(self.events, &mut self.unreadable, &refreshed, &selection)?;
        self.meanwhile
            .report_ends_of(&refreshed.drifted.iter().map(|drifted| drifted.item.clone()).collect());
        let is_reported = |item: &ItemRef| self.meanwhile.has_reported(item);
        let drifted: Vec<_> =
            refreshed.drifted.iter().map(|drifted| (drifted, is_reported(&drifted.item))).collect();
        self.meanwhile.forget_ends(&ended);
        if matches!(self.mode, Mode::Reconcile(_)) {
            for (drifted, is_reported) in &drifted {
                self.events.drift(drifted, *is_reported)?;
            }
        }
        let errors: Vec<(ItemRef, String)> =
            self.unreadable.iter().map(|(item, why)| (item.clone(), why.clone())).collect();
        let intended = Some(Cow::Borrowed(self.set.intended()));
        let left = unreadable::leave(&self.engine, current, intended, Selection::all(), &errors);
        let Readable { selection, intended, .. } = match left {
            Ok(readable) => readable,
            Err(error) => return self.refuse(error),
        };
        let intended = intended.as_deref();
        let (engine, host, manifest) = (&self.engine, &self.host, &self.set.manifest);
        // Where something is done, checks are asked then.
        let only_reports = matches!(self.mode, Mode::Report { .. });
        let preview = async {
            let mut preview =
                preview::preview(engine, host, manifest, current, intended, &selection, &refreshed).await?;
            if only_reports {
                preview.ask_checks(engine, intended, &refreshed).await;
            }
            Ok::<_, CliError>(preview)
        };
        let Some(preview) = self.stop.drain().run_until_cancelled(preview).await else {
            return Ok(Passed::Unread);
        };
        let Preview { plan, drift, theirs, .. } = match preview {
            Ok(preview) => preview,
            Err(error) => return self.refuse(error),
        };
        let details = run_details(&plan, &drift, &theirs, current, intended);
        self.refused.clear();
        let writer = match &mut self.mode {
            Mode::Reconcile(writer) => writer,
            Mode::Report { last, .. } => {
                // The same differences are reported once.
                if last.as_deref() != Some(&plan) {
                    for (drifted, is_reported) in drifted {
                        // Nothing is put right here, often or not.
                        let drifted = Drifted { contested: false, ..drifted.clone() };
                        self.events.drift(&drifted, is_reported)?;
                    }
                    self.events.plan(&plan)?;
                    *last = Some(Box::new(plan));
                }
                self.status = format!("reporting what differs from {}", self.set.name());
                return Ok(Passed::Read { retry: None });
            }
        };
        let planned = PlannedRun {
            command: "watch",
            engine: self.engine.clone(),
            host: &self.host,
            manifest: &self.set.manifest,
            writer,
            details,
            unreadable: self.unreadable.len(),
            stop: self.stop.clone(),
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
            writer.save(current, None)?;
        }
        self.report.detail(|| {
            let (read, did) = (counted(refreshed.read), operations(done.run.entries.len()));
            format!("{read} read, {did}, {:.1} ms", began.elapsed().as_secs_f64() * 1e3)
        });
        let failed = done.status.failures().len() + self.unreadable.len();
        let troubles = if failed == 0 { String::new() } else { format!(", {failed} failed") };
        let declared = counted(self.set.manifest.len());
        self.status = format!("watching {}: {declared} declared{troubles}", self.set.name());
        Ok(Passed::Read { retry: done.status.next_retry() })
    }

    /// Learns what is known, and finds what is to be read.
    fn prepare(&mut self, changed: &Changes) -> Result<Look, CliError> {
        let recalled = self.recall();
        let name = self.set.name().to_owned();
        let current = self.current.get_or_insert_with(|| CurrentGraph::new(name.as_str()));
        self.meanwhile.ends.follow(current);
        // Also where nothing is done: what was not reported would be waited for no more.
        self.meanwhile.report_ends(|_| true);
        recalled?;
        let ended = self.meanwhile.ended();
        let renamed = self.set.adjust(&self.host, current)?;
        if let Mode::Reconcile(writer) = &self.mode
            && !renamed.is_empty()
        {
            writer.save(current, None)?;
        }
        // What could not be made anew in an earlier pass may not be declared any more.
        self.host.recognise_set_aside(current, Some(self.set.intended()));
        self.host.set_unwanted(self.set.unwanted(current));
        // How the last operation of one that is called differently now has ended is read first.
        let renamed = rename::called_differently(current, self.set.intended());
        // Before it is read, so that what changes meanwhile is seen.
        let unseen = self.meanwhile.follower.follow(&self.set.manifest, self.report);
        let selection = match (&changed.items, &self.mode) {
            // Also those that ended since it was known what changed.
            (Some(items), Mode::Reconcile(_)) => {
                let renamed = renamed.iter().map(|renamed| &renamed.from);
                Selection::items(items.iter().chain(&ended).chain(&unseen).chain(renamed).cloned())
            }
            // What was read in earlier passes is not in the state.
            (None, _) | (_, Mode::Report { .. }) => Selection::all(),
        };
        Ok(Look { selection, ended })
    }

    /// Reads what is known, where others write it, and refuses to work in another directory than before, which may have come to
    /// the path of the root meanwhile.
    fn recall(&mut self) -> Result<(), CliError> {
        match &mut self.mode {
            Mode::Reconcile(writer) => {
                let Some(current) = &self.current else { return Ok(()) };
                RootIdentity::of(self.set.manifest.root())?.check(writer.location().as_deref(), current)
            }
            Mode::Report { damaged, version, .. } => {
                *version = self.set.state.version();
                let mut snapshot = self.set.own(self.set.state.read()?)?;
                if snapshot.damaged != *damaged {
                    report_damage(snapshot.damaged.as_deref(), self.report);
                    damaged.clone_from(&snapshot.damaged);
                }
                self.host.recall(&snapshot.graph);
                set::recognise(&self.host, &mut snapshot.graph, Some(self.set.intended()));
                self.current = Some(snapshot.graph);
                Ok(())
            }
        }
    }

    /// Says, once, why nothing is done; what may pass is for the caller.
    fn refuse(&mut self, error: CliError) -> Result<Passed, CliError> {
        if error.is_passing() {
            return Err(error);
        }
        let why = error.to_string();
        if why != self.refused {
            self.events.refused(&error, matches!(self.mode, Mode::Reconcile(_)))?;
            self.status.clone_from(&why);
            self.refused = why;
        }
        Ok(Passed::Read { retry: None })
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
    let unreadable: BTreeSet<&ItemRef> = refreshed.unreadable.iter().map(|(item, _)| item).collect();
    known.retain(|item, _| !is_looked_at(item) || unreadable.contains(item));
    for (item, why) in &refreshed.unreadable {
        let why = why.to_string();
        if known.get(item) != Some(&why) {
            events.unreadable(item, &why)?;
            known.insert(item.clone(), why);
        }
    }
    Ok(())
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
