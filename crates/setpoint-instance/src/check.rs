//! Asks a program of HAProxy whether it would accept a configuration.
//!
//! What is checked is a file that holds exactly the bytes that are to be written, in the place of the one that it will
//! replace: with all other files, the working directory and the environment of the instance. So what was accepted here is
//! what the instance is going to read.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// So much of what HAProxy prints is kept: a configuration in which every line is wrong would fill any memory.
const KEPT: u64 = 1 << 20;

/// How HAProxy is asked.
#[derive(Clone, Debug)]
pub struct Check {
    /// The program.
    pub program: PathBuf,
    /// The files in the order in which they are read, each with what takes its place, if something does.
    pub files: Vec<(PathBuf, Option<PathBuf>)>,
    /// Where the instance runs.
    pub working_directory: PathBuf,
    /// The whole environment of the instance; that of this process if there is none.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// How long it may take.
    pub within: Duration,
}

/// What HAProxy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it would start with this configuration.
    pub accepted: bool,
    /// What it printed, with the names that the files are going to have.
    pub messages: String,
}

/// Variables by which a master talks to itself across its reloads, and a service to systemd: with them, HAProxy is something
/// else than what is asked here. Before 3.2, one that is told to wait as a master does refuses every configuration.
pub(crate) const NOT_INHERITED: [&str; 9] = [
    "HAPROXY_MWORKER",
    "HAPROXY_MWORKER_REEXEC",
    "HAPROXY_MWORKER_WAIT_ONLY",
    "HAPROXY_LOAD_SUCCESS",
    "HAPROXY_PROCESSES",
    "HAPROXY_STARTUPLOGS_FD",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The program can't be started.
    #[error("can't start {} to check a configuration: {source}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It took too long, and was ended.
    #[error("checking the configuration took longer than {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    /// Something ended it.
    #[error("what checks the configuration was ended by {status}: {messages}")]
    Killed {
        /// How it ended.
        status: ExitStatus,
        /// What it had printed.
        messages: String,
    },
}

impl Check {
    /// Asks.
    pub async fn run(&self) -> Result<Verdict, CheckError> {
        let mut command = tokio::process::Command::new(&self.program);
        command.arg("-c");
        for (file, instead) in &self.files {
            command.arg("-f").arg(instead.as_ref().unwrap_or(file));
        }
        if let Some(environment) = &self.environment {
            command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        command.current_dir(&self.working_directory).stdin(Stdio::null()).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |source| CheckError::Program { program: self.program.clone(), source };
        let mut child = command.spawn().map_err(failed)?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let ended = async { tokio::join!(child.wait(), beginning(output), beginning(errors)) };
        let (status, output, errors) =
            timeout(self.within, ended).await.map_err(|_| CheckError::TimedOut(self.within))?;
        let status = status.map_err(failed)?;
        let messages = self.renamed(&(errors + &output));
        match status.code() {
            None => Err(CheckError::Killed { status, messages }),
            Some(code) => Ok(Verdict { accepted: code == 0, messages }),
        }
    }

    /// Puts the names that files are going to have for those that they have meanwhile.
    fn renamed(&self, messages: &str) -> String {
        let replaced = self.files.iter().filter_map(|(file, instead)| Some((file, instead.as_ref()?)));
        replaced.fold(messages.trim_end().to_owned(), |text, (file, instead)| {
            text.replace(name(instead).as_ref(), name(file).as_ref())
        })
    }
}

fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.to_string_lossy()
}

/// The beginning of a stream as text; the rest is read and dropped, so that who writes it is not held up.
async fn beginning(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let mut kept = Vec::new();
    let read = (&mut stream).take(KEPT).read_to_end(&mut kept).await;
    if read.is_ok() {
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&kept).into_owned()
}
