//! `setpoint watch`: keeps the host in the declared state.
//!
//! ```text
//!  events of manifests ─┐
//!  events of the host ──┼─▶ what may have changed ─▶ read ─▶ reconcile ─▶ remember, say
//!  every so often ──────┘
//! ```
//!
//! Nothing rests on having seen an event: everything is read again at an interval.

mod follow;
mod say;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use setpoint_engine::{CurrentGraph, Engine, Selection};
use setpoint_host::{Host, Manifest, registry};
use setpoint_state::Writer;

use super::args::WatchArgs;
use super::error::Error;
use super::protect;
use super::run::Running;
use super::set::{Set, load_manifest};
use crate::error::CliError;
use crate::report::Report;
use crate::service::{Signals, runtime};
use follow::{Changed, Follower};
use say::Say;

pub(crate) fn run(args: &WatchArgs, report: Report) -> Result<u8, CliError> {
    let set = Set::load(&args.set)?;
    runtime()?.block_on(async {
        if args.report_only {
            report_differences(set, args, report).await
        } else {
            keep(set, args, report).await
        }
    })
}

/// After something that may pass, such as a full disk, it is tried again after so long, and twice as long each time.
const FIRST_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);
const LONGEST_PAUSE: std::time::Duration = std::time::Duration::from_mins(1);

/// Repairs what differs, for ever.
async fn keep(set: Set, args: &WatchArgs, report: Report) -> Result<u8, CliError> {
    let (writer, current) = set.state.lock(set.name(), "watch", args.lock.lock_timeout)?;
    let writer = Arc::new(writer);
    let host = set.host(&current)?;
    super::apply::clean_up(&host, &writer, report)?;
    let engine = Engine::new(registry(&host)).with_concurrency(args.parallelism.get());
    let say = Say::new(args.json);
    let mut signals = Signals::new()?;
    let mut follower = Follower::new(&args.set.file)?;
    let mut keeper = Keeper {
        set,
        file: args.set.file.clone(),
        host,
        engine,
        writer,
        current: Some(current),
        say,
        report,
        wrong: String::new(),
        allow_empty: args.allow_empty,
        refused: String::new(),
    };
    if let Some(error) = keeper.nothing_left(&keeper.set.manifest) {
        return Err(error);
    }
    say.started(keeper.set.name(), keeper.set.intended().len())?;
    let mut changed = Changed::everything();
    let mut pause = FIRST_PAUSE;
    loop {
        // Before it is read, so that what changes meanwhile is seen; and after, since directories come and go.
        follower.follow(&keeper.set.manifest, report);
        let retry = match keeper.pass(&changed).await {
            Ok(retry) => {
                pause = FIRST_PAUSE;
                retry
            }
            // The disk may be full, and not for ever: what was done is known, and saved when that can be.
            Err(error) if error.is_passing() => {
                say.failed(&error.to_string(), pause)?;
                let at = Timestamp::now().checked_add(pause).unwrap_or(Timestamp::MAX);
                pause = (pause * 2).min(LONGEST_PAUSE);
                Some(at)
            }
            Err(error) => return Err(error),
        };
        let unseen = follower.follow(&keeper.set.manifest, report);
        if !unseen.is_empty() {
            changed = Changed { manifests: false, items: Some(unseen) };
            continue;
        }
        let until_retry = retry.map(|at| {
            let wait = at.duration_since(Timestamp::now());
            std::time::Duration::try_from(wait).unwrap_or_default()
        });
        let wait = until_retry.map_or(args.interval, |retry| retry.min(args.interval));
        tokio::select! {
            seen = follower.next(&keeper.set.manifest) => changed = seen,
            () = tokio::time::sleep(wait) => changed = Changed::everything(),
            () = signals.next() => break,
        }
    }
    say.stopped()?;
    Ok(0)
}

/// What is kept, and how.
struct Keeper {
    set: Set,
    /// Where the manifests are.
    file: PathBuf,
    host: Host,
    engine: Engine,
    writer: Arc<Writer>,
    current: Option<CurrentGraph>,
    say: Say,
    report: Report,
    /// What was wrong with the manifests when they were loaded last.
    wrong: String,
    /// Whether manifests that declare nothing any more are meant so.
    allow_empty: bool,
    /// Why the last plan was not carried out.
    refused: String,
}

impl Keeper {
    /// Reads what may have changed and puts it right; returns when to try again what failed.
    async fn pass(&mut self, changed: &Changed) -> Result<Option<Timestamp>, CliError> {
        let began = Instant::now();
        if changed.manifests {
            self.reload()?;
        }
        let name = self.set.name().to_owned();
        let current = self.current.get_or_insert_with(|| CurrentGraph::new(name.as_str()));
        let selection = match &changed.items {
            None => Selection::all(),
            Some(items) => Selection::items(items.iter().cloned()),
        };
        let refreshed = self.engine.refresh(current, &selection).await;
        for (item, why) in &refreshed.unreadable {
            self.report.warn(&format!("{item} can't be read: {why}"));
        }
        for drifted in &refreshed.drifted {
            self.say.drift(drifted)?;
        }
        let (intended, all) = (Some(self.set.intended()), Selection::all());
        if protect::any(&self.set.manifest, current) {
            let plan = self.engine.plan(Some(current), intended, &all, Timestamp::now())?;
            if let Err(error) = protect::check(&self.set.manifest, current, &plan) {
                let why = error.to_string();
                if why != self.refused {
                    self.say.refused(&why)?;
                    self.refused = why;
                }
                return Ok(None);
            }
            self.refused.clear();
        }
        let running = Running {
            command: "watch",
            engine: self.engine.clone(),
            host: &self.host,
            manifest: &self.set.manifest,
            writer: &self.writer,
            report: self.report,
        };
        let done = running.carry_out(&mut self.current, intended, &all).await?;
        for entry in done.status.log() {
            self.say.operation(entry)?;
        }
        if done.run.entries.is_empty()
            && !refreshed.drifted.is_empty()
            && let Some(current) = &self.current
        {
            self.writer.save(current, None)?;
        }
        self.report.detail(|| {
            let (read, did) = (refreshed.read, done.run.entries.len());
            format!("{read} items read, {did} operations, {:.1} ms", began.elapsed().as_secs_f64() * 1e3)
        });
        Ok(done.status.next_retry())
    }

    /// What is wrong with manifests that declare nothing of what is there.
    fn nothing_left(&self, manifest: &Manifest) -> Option<CliError> {
        let current = self.current.as_ref().filter(|_| !self.allow_empty)?;
        let mut there = current.items().filter(|node| !node.item().external()).peekable();
        there.peek()?;
        let left = there.any(|node| manifest.declared(node.reference()).is_some());
        (!left).then(|| Error::NothingLeft(current.len()).into())
    }

    /// Takes over what the manifests say now; while they are wrong, what they said last stands.
    fn reload(&mut self) -> Result<(), CliError> {
        let old = &self.set.manifest;
        let loaded = load_manifest(&self.file).map_err(|error| error.to_string()).and_then(|manifest| {
            if let Some(error) = self.nothing_left(&manifest) {
                Err(error.to_string())
            } else if manifest.name() == old.name() && manifest.root() == old.root() {
                Ok(manifest)
            } else {
                Err("the set has another name or another root now; stop and start `setpoint watch`"
                    .to_owned())
            }
        });
        match loaded {
            Ok(manifest) => {
                if !manifest.graph().diff(old.graph()).is_empty() || !self.wrong.is_empty() {
                    self.say.reloaded(manifest.graph().len())?;
                }
                self.set.manifest = manifest;
                self.wrong.clear();
            }
            Err(wrong) => {
                if wrong != self.wrong {
                    self.say.wrong(&wrong)?;
                    self.wrong = wrong;
                }
            }
        }
        Ok(())
    }
}

/// Says what differs, for ever, and changes nothing.
async fn report_differences(mut set: Set, args: &WatchArgs, report: Report) -> Result<u8, CliError> {
    let say = Say::new(args.json);
    let mut signals = Signals::new()?;
    let mut follower = Follower::new(&args.set.file)?;
    say.started(set.name(), set.intended().len())?;
    let mut last = None;
    loop {
        match load_manifest(&args.set.file) {
            Ok(manifest) => set.manifest = manifest,
            Err(error) => say.wrong(&error.to_string())?,
        }
        let mut snapshot = set.read_state()?;
        let host = set.host(&snapshot.graph)?;
        let engine = Engine::new(registry(&host));
        let all = Selection::all();
        let refreshed = engine.refresh(&mut snapshot.graph, &all).await;
        let plan = engine.plan(Some(&snapshot.graph), Some(set.intended()), &all, Timestamp::now())?;
        // The same differences are told once.
        if last.as_ref() != Some(&plan) {
            for drifted in &refreshed.drifted {
                say.drift(drifted)?;
            }
            say.plan(&plan)?;
            last = Some(plan);
        }
        if !follower.follow(&set.manifest, report).is_empty() {
            continue;
        }
        tokio::select! {
            _ = follower.next(&set.manifest) => {}
            () = tokio::time::sleep(args.interval) => {}
            () = signals.next() => break,
        }
    }
    say.stopped()?;
    Ok(0)
}
