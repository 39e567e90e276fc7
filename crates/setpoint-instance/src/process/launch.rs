//! Starts a HAProxy that outlives whoever started it, and ends one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, sleep};

use super::Identity;
use crate::cli::Socket;
use crate::reload::{self, Master};

/// How often is looked whether it has got somewhere.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long it may take to end at once.
const GRACE: Duration = Duration::from_secs(2);
/// So much of its log is shown when it does not start.
const SHOWN: usize = 4000;

/// How a HAProxy is started: in master-worker mode, with a socket for its master.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its configuration, in order: files and folders.
    pub configuration: Vec<PathBuf>,
    /// Where it runs: paths in a configuration may be relative to it.
    pub working_directory: PathBuf,
    /// Variables that it has beside those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// Where its master listens. Longer than 90 bytes it would not fit into an address.
    pub master_socket: PathBuf,
    /// Where its warnings and errors go, anew at each start.
    pub log: PathBuf,
    /// How long it may take until a worker serves.
    pub within: Duration,
}

/// Why a HAProxy does not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The log can't be made.
    #[error("can't write HAProxy's log {}: {source}", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program can't be started.
    #[error("can't start {}: {source}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It ended instead of serving.
    #[error("HAProxy ended while it was starting, {status}:\n{log}")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// It did not come to serve in time, and was ended.
    #[error("HAProxy had no worker within {} s, and was ended:\n{log}", within.as_secs_f32())]
    TimedOut {
        /// The time that it had.
        within: Duration,
        /// The end of its log.
        log: String,
    },
}

/// A HAProxy that was started here. Dropping this leaves it running.
#[derive(Debug)]
pub struct Launched {
    identity: Identity,
    child: Child,
}

impl Launch {
    /// Starts it, and waits until a worker serves.
    pub async fn start(&self) -> Result<Launched, LaunchError> {
        let mut child = self.spawn()?;
        let until = Instant::now() + self.within;
        let master = Socket::new(&self.master_socket);
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(LaunchError::Ended { status, log: end_of(&self.log) });
            }
            if let (Some(identity), true) = (Identity::of(child.id()), serves(&master, child.id()).await) {
                return Ok(Launched { identity, child });
            }
            if Instant::now() >= until {
                let _ = child.kill();
                let _ = child.wait();
                return Err(LaunchError::TimedOut { within: self.within, log: end_of(&self.log) });
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn spawn(&self) -> Result<Child, LaunchError> {
        let at_log = |source| LaunchError::Log { path: self.log.clone(), source };
        let log = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&self.log)
            .map_err(at_log)?;
        let mut command = Command::new(&self.program);
        command.arg("-W").arg("-S").arg(&self.master_socket);
        for entry in &self.configuration {
            command.arg("-f").arg(entry);
        }
        for name in crate::check::NOT_INHERITED {
            command.env_remove(name);
        }
        command
            .current_dir(&self.working_directory)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(at_log)?)
            .stderr(log)
            // A terminal's signals, and the end of who started it, are none of its business.
            .process_group(0);
        command.spawn().map_err(|source| LaunchError::Program { program: self.program.clone(), source })
    }
}

/// Returns whether the master on a socket is this one, and has a worker that answers.
async fn serves(master: &Socket, pid: u32) -> bool {
    let processes = reload::processes(master).await.ok().filter(|processes| processes.master.pid == pid);
    match processes.and_then(|processes| processes.serving()) {
        Some(worker) => Master::from(master).is_serving(worker.pid).await,
        None => false,
    }
}

/// The end of a log, from the beginning of a line.
fn end_of(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let cut = bytes.len().saturating_sub(SHOWN);
    let text = String::from_utf8_lossy(bytes.get(cut..).unwrap_or_default()).into_owned();
    match text.split_once('\n') {
        Some((_, rest)) if cut > 0 => rest.to_owned(),
        _ => text,
    }
}

impl Launched {
    /// The master's process.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// How it ended, if it has. Asking collects its end.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Ends it: its workers finish what they have begun within the time, then it is told to end at once, then killed.
    pub async fn stop(mut self, within: Duration) -> io::Result<ExitStatus> {
        for (signal, within) in [(Signal::USR1, within), (Signal::TERM, GRACE)] {
            // An error means that it has ended by itself.
            let _ = self.identity.signal(signal);
            let until = Instant::now() + within;
            while Instant::now() < until {
                if let Some(status) = self.child.try_wait()? {
                    return Ok(status);
                }
                sleep(LOOK_EVERY).await;
            }
        }
        // With its workers: they are of its process group, as it has not been collected yet.
        if self.child.try_wait()?.is_none() {
            let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        }
        self.child.wait()
    }
}
