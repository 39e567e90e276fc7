//! Asks a HAProxy to read its configuration anew, and finds out what came of it.
//!
//! ```text
//!  show proc ──▶ ask: master's socket, else SIGUSR2, else a command ──▶ show proc … show proc ──▶ verdict
//! ```
//!
//! The verdict is read from the processes that are there afterwards, not from the answer: a master of 2.6 gives none, and
//! a signal or a command never does. A reload succeeded when a worker serves that was not there before, and this worker
//! itself says who it is; it failed when the master has counted one more and no new worker came. What HAProxy printed
//! meanwhile is passed on where its version tells.
//!
//! A master that has no socket, or does not let its socket reload, gets SIGUSR2, if its process id is one of this machine: what it
//! says of itself in a container is the id of somebody else here. Where it can't be asked for its processes either,
//! the system is: it failed then when a new worker has gone without having served, or none came.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep, timeout};

use crate::cli::{Processes, Request, Socket, SocketError};
use crate::process::{Identity, Start, master_of, processes_of};

/// How often is looked whether a worker has come.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a master that starts anew may be without its socket. One that is dead is called so after this time.
const REBINDING: Duration = Duration::from_secs(3);

/// How a reload is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// By `reload` on the master's socket.
    Socket,
    /// By SIGUSR2 to the master.
    Signal,
    /// By a program and its arguments, such as `systemctl reload haproxy`.
    Command(Vec<OsString>),
}

/// A master, as it is reached.
#[derive(Clone, Debug)]
pub enum Master {
    /// By its socket.
    Socket(Socket),
    /// As a process of this machine: it has no socket.
    Process {
        /// The files that it was started with.
        files: Vec<PathBuf>,
        /// The socket of its worker, as the configuration that is to be loaded says.
        worker: Socket,
    },
}

impl From<&Socket> for Master {
    fn from(socket: &Socket) -> Self {
        Self::Socket(socket.clone())
    }
}

/// What came of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A new worker serves.
    Succeeded {
        /// Its process id, as HAProxy says it.
        worker: u32,
        /// When it started, if that is known.
        start: Option<Start>,
        /// What HAProxy printed, where it tells: warnings too.
        messages: String,
    },
    /// HAProxy refused; the worker that served before goes on.
    Failed {
        /// What HAProxy printed, where it tells.
        messages: String,
    },
}

/// Why it is not known what came of a reload.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The master does not answer.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// What listens on the master's socket is no master.
    #[error("what listens on {path} is no master of HAProxy: it answered `show proc` with {answer:?}")]
    NoMaster {
        /// The socket.
        path: String,
        /// The beginning of its answer.
        answer: String,
    },
    /// There is no such process.
    #[error("no HAProxy in master-worker mode runs with {0}, as a process that this user may look at")]
    NoProcess(String),
    /// The signal could not be sent.
    #[error("can't ask HAProxy to reload by SIGUSR2: {0}")]
    Signal(#[source] io::Error),
    /// Its process id is not the one that it has here.
    #[error(
        "can't ask HAProxy to reload by SIGUSR2: its master is process {0} in a container, which is another process here, if it is one; \
         give its socket the right to reload (`-S SOCKET,level,admin`), or name a command that reloads it"
    )]
    Elsewhere(u32),
    /// The command can't be started.
    #[error("can't start `{command}`, which reloads HAProxy: {source}")]
    Command {
        /// The command.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// The command failed.
    #[error("`{command}`, which reloads HAProxy, ended with {status}: {output}")]
    CommandFailed {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it printed.
        output: String,
    },
    /// The master is another one than before.
    #[error("HAProxy was replaced during a reload: its master was process {before}, and is {after}")]
    Replaced {
        /// The former master.
        before: u32,
        /// The present one.
        after: u32,
    },
    /// There was neither a new worker nor a failure in time.
    #[error("HAProxy has not reloaded within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
}

impl ReloadError {
    /// Returns whether nobody was there to be asked: HAProxy has not read anything.
    pub(crate) fn is_unasked(&self) -> bool {
        matches!(self, Self::Socket(_) | Self::NoMaster { .. } | Self::NoProcess(_) | Self::Elsewhere(_))
    }

    /// Returns whether the master could not be asked by its socket: nobody listens, or it does not say what it runs.
    pub(crate) fn is_about_socket(&self) -> bool {
        matches!(self, Self::Socket(SocketError::Unreachable { .. }) | Self::NoMaster { .. })
    }

    /// Returns whether a master that is just starting anew gives this error.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Socket(SocketError::Unreachable { .. } | SocketError::Broken { .. })
            | Self::NoProcess(_) => true,
            Self::NoMaster { answer, .. } => answer.is_empty(),
            _ => false,
        }
    }
}

/// Asks a master for its processes.
pub async fn processes(master: impl Into<Master>) -> Result<Processes, ReloadError> {
    master.into().processes().await
}

impl Master {
    async fn processes(&self) -> Result<Processes, ReloadError> {
        match self {
            Self::Socket(socket) => {
                let (answer, listener) = socket.ask_listener(&Request::new("show proc")).await?;
                let processes = Processes::read(&answer).ok_or_else(|| ReloadError::NoMaster {
                    path: socket.path().display().to_string(),
                    answer: answer.chars().take(100).collect(),
                })?;
                let master = processes.master.pid;
                let is_ours = |master: Identity| master.shares_process_ids();
                let are_ours = listener == Some(master) && Identity::of(master).is_some_and(is_ours);
                Ok(Processes { are_ours, ..processes })
            }
            Self::Process { files, .. } => {
                let names = || files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>();
                let found = master_of(files).and_then(processes_of);
                found.ok_or_else(|| ReloadError::NoProcess(names().join(", ")))
            }
        }
    }

    /// Returns whether its worker answers by this process id.
    pub(crate) async fn is_serving(&self, pid: u32) -> bool {
        let worker = match self {
            Self::Socket(master) => Socket::of_worker_behind(master),
            Self::Process { worker, .. } => worker.clone(),
        };
        let answer = worker.ask(&Request::new("show info")).await.unwrap_or_default();
        let mut pids = answer.lines().filter_map(|line| line.strip_prefix("Pid: ")?.trim().parse().ok());
        pids.any(|held: u32| held == pid)
    }

    /// Asks for its processes, and tries again for a while where nobody answers: a master that starts anew drops its connections
    /// and binds its socket anew.
    async fn patient_processes(&self, until: Instant) -> Result<Processes, ReloadError> {
        let until = until.min(Instant::now() + REBINDING);
        loop {
            match self.processes().await {
                Err(error) if error.is_passing() && Instant::now() < until => sleep(LOOK_EVERY).await,
                done => return done,
            }
        }
    }
}

/// Reloads, and waits for what comes of it.
///
/// What the master counts is looked at after the configuration was written, so that whoever else reloads meanwhile has read
/// the same text.
pub async fn reload(
    master: impl Into<Master>,
    method: &Method,
    within: Duration,
) -> Result<Outcome, ReloadError> {
    let (master, until) = (master.into(), Instant::now() + within);
    let before = master.patient_processes(until).await?;
    let mut messages = ask(&master, method, &before, until).await?;
    let mut asked = Instant::now();
    let (mut has_come, mut missing_since) = (false, None);
    loop {
        match progress(&before, &master).await? {
            Progress::Succeeded(worker, start) => return Ok(Outcome::Succeeded { worker, start, messages }),
            Progress::Failed => return Ok(Outcome::Failed { messages }),
            // A reload that something else had begun was in the way: ours was refused, or lost with its connection.
            Progress::NotBegun if messages.contains(IN_PROGRESS) || asked.elapsed() > REBINDING => {
                messages = ask(&master, method, &before, until).await?;
                asked = Instant::now();
            }
            Progress::Starting => has_come = true,
            // The system does not count what failed.
            Progress::NoWorker if matches!(master, Master::Process { .. }) => {
                let since = *missing_since.get_or_insert_with(Instant::now);
                if has_come || since.elapsed() > REBINDING {
                    return Ok(Outcome::Failed { messages });
                }
            }
            Progress::NotBegun | Progress::NoWorker | Progress::UnderWay => {}
        }
        if Instant::now() >= until {
            return Err(ReloadError::TimedOut(within));
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Sends `reload` to a master, and tries again for a while where nobody answers.
async fn patient_reload(master: &Socket, until: Instant) -> Result<String, ReloadError> {
    let until = until.min(Instant::now() + REBINDING);
    loop {
        match master.ask(&Request::new("reload")).await.map_err(ReloadError::from) {
            Err(error) if error.is_passing() && Instant::now() < until => sleep(LOOK_EVERY).await,
            done => return done,
        }
    }
}

/// What a master says that is still busy with an earlier reload.
const IN_PROGRESS: &str = "Another reload is still in progress";
/// What a master says whose socket has too low a level for a command.
const NOT_ALLOWED: &str = "Permission denied";

/// Asks for a reload, and returns what HAProxy printed, where it tells.
async fn ask(
    master: &Master,
    method: &Method,
    before: &Processes,
    until: Instant,
) -> Result<String, ReloadError> {
    match (method, master) {
        (Method::Socket, Master::Socket(socket)) => {
            match patient_reload(socket, until).await {
                // What it may not do by its socket, it does by a signal.
                Ok(answer) if answer.contains(NOT_ALLOWED) => signal(before),
                Ok(answer) => Ok(printed(&answer)),
                // A master that starts anew drops its connections, and one that reads a long configuration is slow.
                Err(ReloadError::Socket(SocketError::Broken { .. } | SocketError::TimedOut { .. })) => {
                    Ok(String::new())
                }
                Err(error) => Err(error),
            }
        }
        (Method::Socket, Master::Process { .. }) | (Method::Signal, _) => signal(before),
        (Method::Command(words), _) => run(words, until.saturating_duration_since(Instant::now())).await,
    }
}

/// Sends SIGUSR2 to a master. It prints nothing here.
fn signal(before: &Processes) -> Result<String, ReloadError> {
    if !before.are_ours {
        return Err(ReloadError::Elsewhere(before.master.pid));
    }
    let gone = || io::Error::new(io::ErrorKind::NotFound, "its master is no process of this machine");
    let identity = Identity::of(before.master.pid).ok_or_else(gone).map_err(ReloadError::Signal)?;
    identity.signal(Signal::USR2).map_err(ReloadError::Signal)?;
    Ok(String::new())
}

/// What stands after the first line of an answer, which is `Success=1` or `Success=0`.
fn printed(answer: &str) -> String {
    let rest = answer.split_once("--\n").map_or("", |(_, rest)| rest);
    rest.trim_end().to_owned()
}

async fn run(words: &[OsString], within: Duration) -> Result<String, ReloadError> {
    let line = || words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let failed = |source| ReloadError::Command { command: line(), source };
    let empty = || io::Error::new(io::ErrorKind::InvalidInput, "the command is empty");
    let (program, arguments) = words.split_first().ok_or_else(empty).map_err(failed)?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(within, command.output()).await;
    let output = output.map_err(|_| ReloadError::TimedOut(within))?.map_err(failed)?;
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let text = text.trim_end().to_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(ReloadError::CommandFailed { command: line(), status: output.status, output: text })
    }
}

/// How far a reload has come.
enum Progress {
    /// The master has not counted it.
    NotBegun,
    /// There is no verdict yet.
    UnderWay,
    /// A new worker has come, and does not serve yet.
    Starting,
    /// It is counted, and there are no workers but those of before.
    NoWorker,
    /// This worker serves, which has started then.
    Succeeded(u32, Option<Start>),
    /// No new worker came.
    Failed,
}

async fn progress(before: &Processes, master: &Master) -> Result<Progress, ReloadError> {
    let now = match master.processes().await {
        Ok(now) => now,
        // It is starting anew: whoever waits gives up when the time is over.
        Err(ReloadError::Socket(_) | ReloadError::NoMaster { .. } | ReloadError::NoProcess(_)) => {
            return Ok(Progress::UnderWay);
        }
        Err(error) => return Err(error),
    };
    if now.master.pid != before.master.pid {
        return Err(ReloadError::Replaced { before: before.master.pid, after: now.master.pid });
    }
    if now.master.reloads <= before.master.reloads {
        return Ok(Progress::NotBegun);
    }
    Ok(match now.serving() {
        Some(worker) if !before.has_worker(worker.pid) => {
            // From 3.1 on a worker is listed while it still reads its configuration, and may yet fail.
            if master.is_serving(worker.pid).await {
                Progress::Succeeded(worker.pid, now.start_of(worker))
            } else {
                Progress::Starting
            }
        }
        // An earlier one may have failed, too: it is counted until one succeeds.
        Some(_) if now.failed > before.failed => Progress::Failed,
        Some(_) => Progress::NoWorker,
        None => Progress::UnderWay,
    })
}
