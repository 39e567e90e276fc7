//! What can go wrong between us and Consul.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::StatusCode;
use setpoint_loop::Backoff;

/// Why Consul did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings can't be used.
    #[error("{0}")]
    Settings(String),
    /// A file can't be read: a token, or a certificate.
    #[error("can't read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The token does not allow it, or is not known (any more). Nothing is known about what is there.
    #[error("Consul denies it: {0}")]
    Denied(String),
    /// Something else changed a key since it was read. Nothing was changed.
    #[error("Consul's keys changed meanwhile: {0}")]
    Conflict(String),
    /// Too many requests, or the server is too busy.
    #[error("Consul is overloaded: {message}")]
    Overloaded {
        /// How long it asks us to wait.
        retry_after: Option<Duration>,
        /// The text of the answer.
        message: String,
    },
    /// Consul answers, but can't serve: it has no leader, or fails.
    #[error("Consul can't serve ({status}): {message}")]
    Unavailable {
        /// Its answer.
        status: StatusCode,
        /// The text of the answer.
        message: String,
    },
    /// No answer in time.
    #[error("Consul did not answer in time")]
    Timeout,
    /// It can't be reached, or the connection broke.
    #[error("Consul can't be reached")]
    Transport(#[source] reqwest::Error),
    /// An answer that makes no sense.
    #[error("Consul's answer can't be understood: {0}")]
    Malformed(String),
    /// An answer that nobody expected.
    #[error("Consul refuses ({status}): {message}")]
    Refused {
        /// Its answer.
        status: StatusCode,
        /// The text of the answer.
        message: String,
    },
}

/// How much of an answer is kept.
const LONGEST_MESSAGE: usize = 300;

impl Error {
    /// One word for metrics and for reasons of conditions.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Settings(_) => "Settings",
            Self::File { .. } => "File",
            Self::Denied(_) => "Denied",
            Self::Conflict(_) => "Conflict",
            Self::Overloaded { .. } => "Overloaded",
            Self::Unavailable { .. } => "Unavailable",
            Self::Timeout => "Timeout",
            Self::Transport(_) => "Unreachable",
            Self::Malformed(_) => "Malformed",
            Self::Refused { .. } => "Refused",
        }
    }

    /// What went wrong, with what lies at the bottom of it: for a condition, or a line of a log.
    pub fn message(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("{self}: {}", root(source)),
            None => self.to_string(),
        }
    }

    /// How long Consul asks us to wait before we ask again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Overloaded { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The next pause before Consul is asked again, which is at least as long as it asks for.
    pub fn pause(&self, backoff: &mut Backoff) -> Duration {
        match self.retry_after() {
            Some(asked) => backoff.pause_after(asked),
            None => backoff.pause(),
        }
    }

    /// Returns whether the token is one that Consul does not know: expired, or deleted.
    pub(crate) fn is_unknown_token(&self) -> bool {
        matches!(self, Self::Denied(message) if message.contains("ACL not found"))
    }

    /// What a status that is no success means.
    pub(crate) fn of_status(status: StatusCode, retry_after: Option<Duration>, body: &str) -> Self {
        let message: String = body.trim().chars().take(LONGEST_MESSAGE).collect();
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Self::Denied(message),
            // The server has it in the text where its status is only 500.
            _ if body.contains("ACL not found") || body.contains("Permission denied") => {
                Self::Denied(message)
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Self::Overloaded { retry_after, message }
            }
            _ if status.is_server_error() => Self::Unavailable { status, message },
            _ => Self::Refused { status, message },
        }
    }
}

/// What lies at the bottom of an error.
pub(crate) fn root<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> &'a (dyn std::error::Error + 'static) {
    std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error)
}

impl From<reqwest::Error> for Error {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() { Self::Timeout } else { Self::Transport(error.without_url()) }
    }
}
