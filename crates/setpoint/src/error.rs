//! Errors as the command line reports them: words, a hint, and an exit code.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use setpoint_engine::{EngineError, ReconcileError};
use setpoint_graph::GraphError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The directory to keep already holds something.
    #[error("{} is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// The directory to keep can't be made or read.
    #[error("can't use {} as a directory: {source}", .dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The temporary directory could not be made.
    #[error("can't make a temporary directory: {0}")]
    Temporary(#[source] io::Error),
    /// The temporary directory could not be removed.
    #[error("can't remove the temporary directory: {0}")]
    Cleanup(#[source] io::Error),
    /// The real state could not be read.
    #[error("can't read {what}: {why}")]
    Read {
        /// Of what.
        what: String,
        /// Why.
        why: String,
    },
    /// The part that is there to break something did not manage to.
    #[error("can't change {what} behind the engine's back: {source}")]
    Sabotage {
        /// What was to be changed.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// A declared state makes no sense.
    #[error("the declared state is wrong: {0}")]
    Declaration(String),
    /// An intended graph was refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A run was refused.
    #[error(transparent)]
    Refused(#[from] EngineError),
    /// A run did not reach the intended state.
    #[error("the intended state was not reached: {0}")]
    Reconcile(#[from] ReconcileError),
    /// The runtime could not be started.
    #[error("can't start the runtime: {0}")]
    Runtime(#[source] io::Error),
    /// The output could not be written.
    #[error("can't write the output: {0}")]
    Output(#[source] io::Error),
}

impl CliError {
    /// What a person can do about it.
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotEmpty(_) => Some("name a directory that does not exist yet, or an empty one"),
            Self::Directory { .. } => Some("name a directory that you may write to"),
            Self::Temporary(_) => {
                Some("set TMPDIR to a directory that you may write to, or use `--keep DIR`")
            }
            Self::Cleanup(_) => Some("something else uses it; remove it by hand"),
            Self::Read { .. } | Self::Sabotage { .. } | Self::Reconcile(_) => {
                Some("something else may be at work in the same directory; run it again")
            }
            _ => None,
        }
    }

    /// What the process exits with: 2 for what was asked for wrongly, as for any usage error, else 1.
    fn exit_code(&self) -> u8 {
        match self {
            Self::NotEmpty(_) | Self::Directory { .. } => 2,
            _ => 1,
        }
    }

    /// Tells the person, and gives the exit code. Nobody reading the output any more is no failure.
    pub(crate) fn report(&self) -> ExitCode {
        if matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        let mut text = format!("error: {self}\n");
        if let Some(hint) = self.hint() {
            text = format!("{text}hint: {hint}\n");
        }
        // There is nobody left to tell if this fails too.
        let _ = io::stderr().write_all(text.as_bytes());
        ExitCode::from(self.exit_code())
    }
}
