//! Processes that are kept running.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use setpoint_engine::{Configurator, Observed, OpCx, OpError, Operation, Ownership};
use setpoint_graph::ItemRef;
use tokio_util::sync::CancellationToken;

use super::Process;
use crate::configure::{LastingNote, Notice};
use crate::fs::{Temporary, lasting_number, untouched};
use crate::host::Host;
use crate::kinds::File;
use crate::process::{
    Alive, NOT_INHERITED, Probe, Started, TAG, Tag, last_lines_since, spawn_with_limit, stop,
};

/// How long a new process is observed: one that ends within this time has failed.
const WATCHED: Duration = Duration::from_millis(100);
/// How long a process that was cancelled while it was starting may take to end before it is killed: nobody waits for it any more.
const CANCELLED_WITHIN: Duration = Duration::from_secs(10);

/// Starts, ends and finds processes.
#[derive(Debug)]
pub struct Processes {
    host: Host,
}

impl Processes {
    /// The configurator for a host.
    pub fn new(host: &Host) -> Self {
        Self { host: host.clone() }
    }

    fn tag(&self, item: &Process) -> Tag {
        Tag::new(self.host.set(), self.host.root(), &item.name)
    }

    fn open_log(&self, item: &Process) -> Result<fs::File, OpError> {
        if let Some(log) = &item.log {
            let file = ItemRef::of::<File>(format!("{}:log", item.name));
            let opened = self.host.0.root.open_log(log, &Temporary::name(self.host.set(), &file));
            let opened = opened.map_err(|error| OpError::untouched(format!("its log file: {error}")));
            let (opened, is_copied) = opened?;
            if is_copied {
                self.host.0.notices.add(Notice::OtherNames { item: file, path: log.clone() });
            }
            return Ok(opened);
        }
        let path = self.host.log_of(item);
        // What a process says may be nobody else's business.
        let made =
            path.parent().map_or(Ok(()), |dir| fs::DirBuilder::new().recursive(true).mode(0o700).create(dir));
        let open = || fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        made.and_then(|()| open()).map_err(|error| {
            OpError::untouched(format!("can't open its log file {}: {error}", path.display()))
        })
    }

    /// Starts it in a process group of its own, marked.
    fn start(&self, item: &Process, tag: &Tag, digest: &str, log: &fs::File) -> Result<u32, OpError> {
        let argv = item.command.argv();
        let Some((program, arguments)) = argv.split_first() else {
            return Err(OpError::untouched("there is nothing to run"));
        };
        let both = log.try_clone().and_then(|second| Ok((log.try_clone()?, second)));
        let (out, err) = both.map_err(|error| OpError::untouched(format!("its log file: {error}")))?;
        let cwd = self.host.directory_of(item.cwd.as_ref()).map_err(|error| untouched(&error))?;
        let mut command = std::process::Command::new(program);
        for variable in NOT_INHERITED {
            command.env_remove(variable);
        }
        command
            .args(arguments)
            .envs(&item.env)
            .env(TAG, tag.value(digest))
            .current_dir(cwd.path())
            .stdin(Stdio::null())
            .stdout(Stdio::from(out))
            .stderr(Stdio::from(err))
            .process_group(0);
        let child = spawn_with_limit(&mut command, self.host.open_files())
            .map_err(|error| OpError::untouched(format!("can't start {}: {error}", item.command)))?;
        let pid = child.id();
        self.host.0.children.add(child);
        Ok(pid)
    }

    /// Waits until a process that was started has run for a moment, and is ready. One that is not in time is ended.
    async fn until_ready(
        &self,
        cx: &OpCx,
        item: &Process,
        process: Alive,
        log_from: Option<u64>,
    ) -> Result<(), OpError> {
        let mut probe = Probe::new(&self.host, item, log_from);
        let ready = async {
            match &mut probe {
                None => Ok(true),
                Some(probe) => probe.wait(cx.cancellation()).await,
            }
        };
        let pid = process.pid.as_raw_nonzero().get().unsigned_abs();
        let settled = async { tokio::join!(tokio::time::sleep(WATCHED), ready).1 };
        let in_time = tokio::select! {
            biased;
            status = self.host.0.children.end_of(pid, || process.is_alive()) => {
                let when = if item.ready.is_some() { "before it was ready" } else { "at once" };
                return Err(self.ended(item, when, status, log_from.unwrap_or(0)));
            }
            () = cx.cancelled() => return Err(self.end_cancelled(cx, item).await),
            in_time = settled => in_time?,
        };
        if in_time {
            return Ok(());
        }
        let missing = probe.map(|probe| probe.missing()).unwrap_or_default();
        let log = self.last_lines(item, log_from.unwrap_or(0));
        self.end_all(cx, item).await?;
        Err(OpError::untouched(format!("{missing}; it was ended{log}")))
    }

    /// The last lines of a log, as an error ends with them, where they may be shown.
    fn last_lines(&self, item: &Process, log_from: u64) -> String {
        if item.sensitive {
            return String::new();
        }
        after_colon(&last_lines_since(&self.host.log_of(item), log_from))
    }

    /// The error of a process that ended too early. What it may have started itself is ended by the clean-up.
    fn ended(&self, item: &Process, when: &str, status: Option<ExitStatus>, log_from: u64) -> OpError {
        let log = self.last_lines(item, log_from);
        let how = status.map_or(String::new(), |status| format!(", {status}"));
        let succeeded = status.is_some_and(|status| status.success());
        let hint = if succeeded { "; a process stays in the foreground" } else { "" };
        OpError::new(format!("it ended {when}{how}{hint}{log}"))
    }

    /// Returns whether a process adds to a log that is not at its path any more: that was moved, or deleted, and what the process
    /// writes is not where it is declared to be.
    fn has_lost_log(&self, item: &Process, noted: Option<&Started>) -> bool {
        let (Some(path), Some(started)) = (&item.log, noted) else { return false };
        let Some(log) = started.log else { return false };
        // What can't be looked at may be there.
        let is_away =
            self.host.0.root.number(path).is_ok_and(|found| !found.is_some_and(|found| log.is(found)));
        is_away && started.writes_to(log)
    }

    /// Has the end of a process noticed that runs from now on.
    fn follow(&self, cx: &OpCx, item: &Process, started: Started) {
        self.host.0.process_operations.started(cx.item(), started, self.host.shown_log_of(item));
    }

    /// Ends all that runs for the item.
    async fn end_all(&self, cx: &OpCx, item: &Process) -> Result<(), OpError> {
        let (tag, noted) = (self.tag(item), noted(cx));
        let found = tag.find(noted.as_ref());
        self.end(cx, item, &found.all).await?;
        // Started meanwhile by one that was ending.
        let left = tag.find(noted.as_ref());
        self.end(cx, item, &left.all).await
    }

    /// Ends a process that was cancelled while it was starting, and says so: nobody would know that it runs.
    async fn end_cancelled(&self, cx: &OpCx, item: &Process) -> OpError {
        let why = "cancelled while the process was starting";
        let timeout = item.stop_timeout.duration().min(CANCELLED_WITHIN);
        let found = self.tag(item).find(noted(cx).as_ref()).all;
        // What was cancelled is not cancelled once more.
        match self.end_within(cx, item, &found, timeout, &CancellationToken::new()).await {
            Ok(()) => OpError::untouched(format!("{why}, and it was ended")),
            Err(error) => OpError::new(format!("{why}, and it may still run: {error}")),
        }
    }

    /// Asks whether a process is ready of which a run that was cut off could not say so. One of which that is not known
    /// is ended and started again.
    async fn check_ready(&self, cx: &OpCx, item: &Process, noted: Option<&Started>) -> Result<(), OpError> {
        let log_from = noted.and_then(|started| started.log_from);
        let Some(mut probe) = Probe::new(&self.host, item, log_from) else { return Ok(()) };
        // Earlier processes have written to the log as well.
        let unknown = probe.searches_log() && log_from.is_none();
        if !unknown && probe.ask(cx.cancellation()).await? {
            return Ok(());
        }
        Err(OpError::untouched("it was started by a run that was cut off, and is not ready"))
    }

    async fn end(&self, cx: &OpCx, item: &Process, processes: &[Alive]) -> Result<(), OpError> {
        self.end_within(cx, item, processes, item.stop_timeout.duration(), cx.cancellation()).await
    }

    async fn end_within(
        &self,
        cx: &OpCx,
        item: &Process,
        processes: &[Alive],
        timeout: Duration,
        cancellation: &CancellationToken,
    ) -> Result<(), OpError> {
        self.host.0.process_operations.ends(cx.item());
        let signal = item.stop_signal.signal();
        let stopped = stop(processes, signal, timeout, &self.host.0.children, cancellation).await;
        stopped.map_err(|error| OpError::new(error.to_string()))?;
        for process in processes {
            // It was asked to: nobody wants to know how it ended.
            let _ = self.host.0.children.ended(process.pid.as_raw_nonzero().get().unsigned_abs());
        }
        Ok(())
    }
}

impl Configurator<Process> for Processes {
    async fn create(&self, cx: &OpCx, new: &Process) -> Result<(), OpError> {
        let (tag, digest) = (self.tag(new), new.digest());
        let found = tag.find(noted(cx).as_ref());
        if let Some((alive, running)) = &found.main
            && *running == digest
        {
            // It was started by a run of which nothing else is known.
            let started = Started::new(alive, &digest, None);
            note(cx, &started).await?;
            self.until_ready(cx, new, *alive, None).await?;
            self.follow(cx, new, started);
            return Ok(());
        }
        self.end(cx, new, &found.all).await?;
        if cx.is_cancelled() {
            return Err(OpError::untouched("cancelled before the process was started"));
        }
        if let Some(mut probe) = Probe::new(&self.host, new, None)
            && probe.asks_port()
            && probe.ask(cx.cancellation()).await?
        {
            let message = "something else accepts connections on the port of its `ready` already";
            return Err(OpError::untouched(message));
        }
        let log = self.open_log(new)?;
        let before = log.metadata().map_or(0, |metadata| metadata.len());
        let pid = self.start(new, &tag, &digest, &log)?;
        let alive = i32::try_from(pid).ok().and_then(Pid::from_raw).and_then(Alive::look);
        let Some(alive) = alive else {
            let status = self.host.0.children.ended(pid);
            return Err(self.ended(new, "at once", status, before));
        };
        let log = new.log.as_ref().and_then(|_| lasting_number(&log));
        let started = Started::new(&alive, &digest, Some(before)).with_log(log);
        if let Err(error) = note(cx, &started).await {
            // Without the mark in its environment, nobody would find it again.
            self.end(cx, new, &[alive]).await?;
            return Err(error);
        }
        self.until_ready(cx, new, alive, Some(before)).await?;
        self.follow(cx, new, started);
        Ok(())
    }

    async fn modify(&self, _: &OpCx, _: &Process, _: &Process) -> Result<(), OpError> {
        // Only how it is ended has changed: there is nothing to do before that.
        Ok(())
    }

    async fn delete(&self, cx: &OpCx, old: &Process) -> Result<(), OpError> {
        self.end_all(cx, old).await
    }

    /// It may take as long as it is allowed to end: one that is there, and twice what was started and is not ready in time. It may
    /// take its time to get ready, and some to start.
    fn limit(&self, operation: Option<Operation>, item: &Process) -> Option<Duration> {
        let ready = item.ready.as_ref().map(|ready| ready.timeout.duration());
        match operation {
            Some(_) => {
                Some(item.stop_timeout.duration() * 3 + ready.unwrap_or_default() + Duration::from_mins(1))
            }
            None => ready.map(|ready| ready + Duration::from_mins(1)),
        }
    }

    fn needs_recreate(&self, _: Ownership, old: &Process, new: &Process) -> bool {
        old.runs_other.is_some() || old.log_lost || old.digest() != new.digest()
    }

    fn recreates_to_reapply(&self, _: &Process) -> bool {
        true
    }

    async fn read(&self, cx: &OpCx, item: &Process) -> Result<Observed<Process>, OpError> {
        let (noted, tag) = (noted(cx), self.tag(item));
        let main = tag.main(noted.as_ref());
        // What it has started may outlive it: that goes with it. Where it is wanted, it is ended before another one is started.
        if main.is_none() && self.host.is_unwanted(cx.item()) && !tag.find(noted.as_ref()).all.is_empty() {
            return Ok(Observed::Present(item.clone()));
        }
        if main.is_some() && cx.unfinished() == Some(Operation::Create) {
            self.check_ready(cx, item, noted.as_ref()).await?;
        }
        Ok(match main {
            None => Observed::Absent,
            Some((_, digest)) => {
                let runs_other = Some(digest).filter(|digest| *digest != item.digest());
                let log_lost = self.has_lost_log(item, noted.as_ref());
                Observed::Present(Process { runs_other, log_lost, ..item.clone() })
            }
        })
    }
}

/// The process that was noted of the item.
fn noted(cx: &OpCx) -> Option<Started> {
    cx.noted().map(|LastingNote::Started(started)| started)
}

/// Notes which process runs for the item.
async fn note(cx: &OpCx, started: &Started) -> Result<(), OpError> {
    let noted = cx.note(&LastingNote::Started(started.clone())).await;
    noted.map_err(|error| OpError::new(format!("the process {error}")))
}

/// The last lines of a log, as an error ends with them.
fn after_colon(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!(": {}", lines.join(" | ")) }
}
