//! Runs a command to its end, in a process group of its own, within a time.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::sync::oneshot::Sender;
use tokio_util::sync::CancellationToken;

use super::find::{Alive, Started, kill_marked};
use super::limits::spawn_with_limit;
use super::log::last_lines;
use super::output::Lines;
use super::{COMMAND_TAG, NOT_INHERITED};
use crate::host::Cwd;

/// How often is looked whether someone has cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long what was asked to end has before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How many bytes of a command's output are kept.
const KEPT: usize = 2000;

/// A command to run.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: Cwd,
    pub(crate) timeout: Duration,
    /// What it writes is passed on as it comes.
    pub(crate) lines: Option<Lines>,
    /// How many files it may open; none for as many as this program.
    pub(crate) open_files: Option<u64>,
    /// Is told which process it is, as soon as that runs.
    pub(crate) started: Option<Sender<Started>>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// By itself, with the last of what it wrote.
    Exited(ExitStatus, String),
    /// It took too long and was killed.
    TimedOut(Duration, String),
    /// Someone cancelled, and it was killed.
    Cancelled,
    /// It was begun and could not be watched, and was killed.
    Unwatched(io::Error),
}

/// Runs a command on a thread that may wait. Dropping the future kills the command. An error means that it was never begun.
///
/// While one with the same lock is still being killed, the next one waits.
pub(crate) async fn run(job: Job, run_lock: Arc<Mutex<()>>, cancel: &CancellationToken) -> io::Result<Ended> {
    let cancel = cancel.child_token();
    let dropped = cancel.clone().drop_guard();
    let ended = tokio::task::spawn_blocking(move || {
        let _running = run_lock.lock().unwrap_or_else(PoisonError::into_inner);
        if cancel.is_cancelled() { Ok(Ended::Cancelled) } else { run_blocking(job, &cancel) }
    })
    .await;
    dropped.disarm();
    ended.unwrap_or_else(|error| Ok(Ended::Unwatched(io::Error::other(error))))
}

fn run_blocking(mut job: Job, cancel: &CancellationToken) -> io::Result<Ended> {
    let (program, arguments) =
        job.argv.split_first().ok_or_else(|| io::Error::other("there is nothing to run"))?;
    let (output, input) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&output, rustix::fs::OFlags::NONBLOCK)?;
    let mut command = std::process::Command::new(program);
    for variable in NOT_INHERITED {
        command.env_remove(variable);
    }
    command
        .args(arguments)
        .envs(&job.env)
        .current_dir(job.cwd.path())
        .stdin(Stdio::null())
        .stdout(Stdio::from(input.try_clone()?))
        .stderr(Stdio::from(input))
        .process_group(0);
    let child = spawn_with_limit(&mut command, job.open_files)?;
    if let (Some(started), Some(alive)) = (job.started.take(), Alive::of(&child)) {
        // Who asked may have gone.
        let _ = started.send(Started::new(&alive, "", None));
    }
    let mark = job.env.get(COMMAND_TAG).cloned();
    let mut watched = Watched { child, output, mark, written: Vec::new(), lines: job.lines };
    let outcome = watched.wait(job.timeout, Some(cancel));
    if !matches!(outcome, Ok(Some(_))) {
        watched.kill();
    }
    watched.finish();
    Ok(match outcome {
        Ok(Some(status)) => Ended::Exited(status, watched.last_output()),
        Ok(None) if cancel.is_cancelled() => Ended::Cancelled,
        Ok(None) => Ended::TimedOut(job.timeout, watched.last_output()),
        Err(error) => Ended::Unwatched(error),
    })
}

struct Watched {
    child: Child,
    output: OwnedFd,
    /// What all that it starts has in its environment, whichever session it is in.
    mark: Option<String>,
    /// The last of what it wrote.
    written: Vec<u8>,
    lines: Option<Lines>,
}

impl Watched {
    /// Waits for the end; none if the time is over, or someone cancelled.
    fn wait(
        &mut self,
        timeout: Duration,
        cancel: Option<&CancellationToken>,
    ) -> io::Result<Option<ExitStatus>> {
        let until = Instant::now() + timeout;
        // Without one, as where no more files may be opened, it is looked at often enough.
        let pidfd = self.id().and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
        let mut open = true;
        loop {
            let ended = self.child.try_wait()?;
            open &= self.listen()?;
            if ended.is_some() {
                return Ok(ended);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || cancel.is_some_and(CancellationToken::is_cancelled) {
                return Ok(None);
            }
            let wait = left.min(LOOK_EVERY);
            let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()).max(1_000_000) };
            let mut fds: Vec<PollFd<'_>> = pidfd.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
            if open {
                fds.push(PollFd::new(&self.output, PollFlags::IN));
            }
            match poll(&mut fds, Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Reads what was written; false once nobody can write anything more.
    fn listen(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        loop {
            match rustix::io::read(&self.output, &mut buffer) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    if let Some(lines) = &mut self.lines {
                        lines.take(buffer.get(..read).unwrap_or_default());
                    }
                    self.written.extend_from_slice(buffer.get(..read).unwrap_or_default());
                    let surplus = self.written.len().saturating_sub(KEPT);
                    self.written.drain(..surplus);
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(true),
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Passes on a last line without an end.
    fn finish(&mut self) {
        if let Some(lines) = &mut self.lines {
            lines.finish();
        }
    }

    /// Ends the whole group: first asks, then kills.
    fn kill(&mut self) {
        let Some(group) = self.id() else { return };
        let _ = kill_process_group(group, Signal::TERM);
        if !matches!(self.wait(GRACE, None), Ok(Some(_))) {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.child.wait();
        }
        // What it started may outlive it and ignore the first signal.
        let _ = kill_process_group(group, Signal::KILL);
        if let Some(mark) = &self.mark {
            kill_marked(COMMAND_TAG, mark);
        }
    }

    fn id(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn last_output(&self) -> String {
        last_lines(&self.written).join(" | ")
    }
}
