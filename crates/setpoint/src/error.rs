//! Errors as the command line reports them: words, a hint, and an exit code.
//!
//! ```text
//!  a job's own errors ──Reportable──▶ CliError ──report──▶ standard error output, exit code
//! ```

use std::borrow::Cow;
use std::fmt::Debug;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

use crate::jobs::{self, Job};
use crate::report::LogFormat;

/// What the process exits with where it was asked for wrongly. Not 2, which says that there is something to do.
pub(crate) const USAGE: u8 = 64;

/// What the process exits with where nobody reads its output any more: what a shell says of a program that a closed pipe
/// ended.
const CLOSED: u8 = 141;

/// What the command line has to know of an error.
pub(crate) trait Reportable: std::error::Error {
    /// What kind of error it is, for programs.
    fn kind(&self) -> &'static str {
        "failed"
    }

    /// What a person can do about it.
    fn hint(&self) -> Option<&'static str> {
        None
    }

    /// What a person can do about it, where that names something; goes before [`Self::hint`].
    fn named_hint(&self) -> Option<String> {
        None
    }

    /// What the process exits with: [`USAGE`] for what was asked for wrongly, else 1.
    fn exit_code(&self) -> u8 {
        1
    }

    /// Returns whether it may pass by itself, so that whoever keeps running goes on: a full disk, and the like.
    #[cfg(feature = "host")]
    fn is_passing(&self) -> bool {
        false
    }

    /// Returns whether its text says by itself that it is an error.
    fn has_own_heading(&self) -> bool {
        false
    }

    /// What programs get in the place of a text that is drawn for people.
    fn data(&self) -> Option<ErrorData> {
        None
    }
}

/// An error for programs: a sentence, and what it is about piece by piece.
#[derive(Debug)]
pub(crate) struct ErrorData {
    pub(crate) message: String,
    pub(crate) diagnostics: Vec<serde_json::Value>,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// What a job could not do.
    #[error("{0}")]
    Job(Box<dyn Reportable>),
    /// The command is one of a job that is not in this binary.
    #[error("this binary was built without the feature `{}`", .0.name)]
    AbsentJob(&'static Job),
    /// A manual page could not be written.
    #[error("can't write manual pages to {}: {source}", .path.display())]
    Manual {
        /// The page.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The output could not be written.
    #[error("can't write the output: {0}")]
    Output(#[source] io::Error),
}

impl<E: Reportable + 'static> From<E> for CliError {
    fn from(error: E) -> Self {
        Self::Job(Box::new(error))
    }
}

/// Lets `?` make a [`CliError`] of other crates' errors, by way of the variants that hold them in a job's error.
macro_rules! reported_as {
    ($job:ty: $($other:ty),+) => {
        $(impl From<$other> for $crate::error::CliError {
            fn from(error: $other) -> Self {
                <$job>::from(error).into()
            }
        })+
    };
}
pub(crate) use reported_as;

impl CliError {
    fn kind(&self) -> &'static str {
        match self {
            Self::Job(error) => error.kind(),
            Self::AbsentJob(_) => "absent-job",
            _ => "failed",
        }
    }

    /// What a person can do about it.
    pub(crate) fn hint(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Job(error) => {
                error.named_hint().map(Cow::Owned).or_else(|| error.hint().map(Cow::Borrowed))
            }
            Self::AbsentJob(job) => Some(jobs::how_to_add(jobs::ALL, job).into()),
            Self::Manual { .. } => {
                Some("name a directory that you may write to; it is made if it is not there".into())
            }
            Self::Output(_) => None,
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Job(error) => error.exit_code(),
            Self::AbsentJob(_) | Self::Manual { .. } => USAGE,
            Self::Output(_) => 1,
        }
    }

    /// Returns whether it was asked for wrongly.
    #[cfg(feature = "sync")]
    pub(crate) fn is_usage(&self) -> bool {
        self.exit_code() == USAGE
    }

    /// Returns whether it may pass by itself.
    #[cfg(feature = "host")]
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Job(error) if error.is_passing())
    }

    fn has_own_heading(&self) -> bool {
        matches!(self, Self::Job(error) if error.has_own_heading())
    }

    /// The error for programs.
    pub(crate) fn data(&self) -> ErrorData {
        let own = match self {
            Self::Job(error) => error.data(),
            _ => None,
        };
        own.unwrap_or_else(|| ErrorData { message: self.to_string(), diagnostics: Vec::new() })
    }

    /// Tells the person or the program, and gives the exit code. Of an output that nobody reads any more there is nobody to
    /// tell; but what was to be done may not have been, so that it is no success.
    pub(crate) fn report(&self, format: LogFormat) -> ExitCode {
        if matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe) {
            return ExitCode::from(CLOSED);
        }
        let text = match format {
            LogFormat::Text => self.text(),
            LogFormat::Json => {
                let ErrorData { message, diagnostics } = self.data();
                let (kind, hint, exit_code) = (self.kind(), self.hint(), self.exit_code());
                let line = ErrorLine { level: "error", kind, message, diagnostics, hint, exit_code };
                serde_json::to_string(&line).unwrap_or_default() + "\n"
            }
        };
        // There is nobody left to tell if this fails too.
        let _ = io::stderr().write_all(crate::report::safe(&text).as_bytes());
        ExitCode::from(self.exit_code())
    }

    fn text(&self) -> String {
        let heading = if self.has_own_heading() { "" } else { "error: " };
        let mut text = format!("{heading}{self}\n");
        if let Some(hint) = self.hint() {
            text = format!("{text}hint: {hint}\n");
        }
        text
    }
}

/// An error as a line of JSON.
#[derive(Serialize)]
struct ErrorLine {
    level: &'static str,
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Cow<'static, str>>,
    exit_code: u8,
}
