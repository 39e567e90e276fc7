//! Processes that are kept running.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Pid;
use setpoint_engine::{Configurator, Observed, OpCx, OpError, Operation};

use crate::fs::untouched;
use crate::host::Host;
use crate::item::Process;
use crate::process::{Alive, TAG, Tag, stop, tail};

/// So long a new process is watched: one that ends at once has failed.
const WATCHED: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(10);

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
            let opened = self.host.0.root.open_log(log);
            return opened.map_err(|error| OpError::untouched(format!("its log file: {error}")));
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
        let child = std::process::Command::new(program)
            .args(arguments)
            .envs(&item.env)
            .env(TAG, tag.value(digest))
            .current_dir(cwd.path())
            .stdin(Stdio::null())
            .stdout(Stdio::from(out))
            .stderr(Stdio::from(err))
            .process_group(0)
            .spawn()
            .map_err(|error| OpError::untouched(format!("can't start {}: {error}", item.command)))?;
        let pid = child.id();
        self.host.0.children.add(child);
        Ok(pid)
    }

    async fn end(&self, cx: &OpCx, item: &Process, processes: &[Alive]) -> Result<(), OpError> {
        let (signal, timeout) = (item.stop_signal.signal(), item.stop_timeout.duration());
        stop(processes, signal, timeout, &self.host.0.children, cx.cancellation())
            .await
            .map_err(|error| OpError::new(error.to_string()))
    }
}

impl Configurator<Process> for Processes {
    async fn create(&self, cx: &OpCx, new: &Process) -> Result<(), OpError> {
        let (tag, digest, runtime) = (self.tag(new), new.digest(), &self.host.0.runtime);
        self.host.0.children.reap();
        let found = tag.find(runtime);
        if let Some((alive, running)) = &found.main
            && *running == digest
        {
            // An earlier run started it and could not say so.
            let noted = tag.write_record(runtime, alive, &digest);
            return noted.map_err(|error| OpError::new(format!("can't record the process: {error}")));
        }
        self.end(cx, new, &found.all).await?;
        if cx.is_cancelled() {
            return Err(OpError::untouched("cancelled before the process was started"));
        }
        let log = self.open_log(new)?;
        let before = log.metadata().map_or(0, |metadata| metadata.len());
        let pid = self.start(new, &tag, &digest, &log)?;
        let alive = i32::try_from(pid).ok().and_then(Pid::from_raw).and_then(Alive::look);
        if let Some(alive) = &alive {
            let noted = tag.write_record(runtime, alive, &digest);
            noted.map_err(|error| OpError::new(format!("can't record the process: {error}")))?;
        }
        let until = tokio::time::Instant::now() + WATCHED;
        loop {
            if let Some(status) = self.host.0.children.ended(pid) {
                tag.remove_record(runtime);
                let said = said_since(&self.host.log_of(new), before);
                let said = if said.is_empty() { said } else { format!(": {said}") };
                let hint = if status.success() { "; a process stays in the foreground" } else { "" };
                // What it may have started itself is ended by the clean-up.
                return Err(OpError::new(format!("it ended at once, {status}{hint}{said}")));
            }
            if tokio::time::Instant::now() >= until {
                return Ok(());
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = cx.cancelled() => return Err(OpError::new("cancelled while the process was starting")),
            }
        }
    }

    async fn modify(&self, _: &OpCx, _: &Process, _: &Process) -> Result<(), OpError> {
        // Only how it is ended has changed: there is nothing to do before that.
        Ok(())
    }

    async fn delete(&self, cx: &OpCx, old: &Process) -> Result<(), OpError> {
        let tag = self.tag(old);
        let found = tag.find(&self.host.0.runtime);
        self.end(cx, old, &found.all).await?;
        // Started meanwhile by one that was ending.
        let left = tag.find(&self.host.0.runtime);
        self.end(cx, old, &left.all).await?;
        tag.remove_record(&self.host.0.runtime);
        Ok(())
    }

    /// It may take as long as it is allowed to end, more than once, and some time to start.
    fn limit(&self, operation: Option<Operation>, item: &Process) -> Option<Duration> {
        operation.map(|_| item.stop_timeout.duration() * 2 + Duration::from_mins(1))
    }

    fn needs_recreate(&self, old: &Process, new: &Process) -> bool {
        old.runs_other.is_some() || old.digest() != new.digest()
    }

    async fn read(&self, _: &OpCx, item: &Process) -> Result<Observed<Process>, OpError> {
        self.host.0.children.reap();
        let tag = self.tag(item);
        let main = tag.recorded(&self.host.0.runtime).or_else(|| tag.find(&self.host.0.runtime).main);
        Ok(match main {
            None => Observed::Absent,
            Some((_, digest)) if digest == item.digest() => {
                Observed::Present(Process { runs_other: None, ..item.clone() })
            }
            Some((_, digest)) => Observed::Present(Process { runs_other: Some(digest), ..item.clone() }),
        })
    }
}

/// What was written to a log since it had this length.
fn said_since(log: &std::path::Path, length: u64) -> String {
    let mut said = Vec::new();
    let read = fs::File::open(log).and_then(|mut file| {
        file.seek(SeekFrom::Start(length))?;
        file.take(4000).read_to_end(&mut said)
    });
    if read.is_ok() { tail(&said) } else { String::new() }
}
