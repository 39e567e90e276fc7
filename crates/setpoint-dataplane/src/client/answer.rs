//! What the API answers, and what it means when that is no success.

use std::time::Duration;

use crate::error::ConnectionError;

/// How much of what an API says is kept.
const LONGEST_MESSAGE: usize = 4_000;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The version of the configuration, if the answer names one.
    pub(super) version: Option<u64>,
    /// The name of the reload that was ordered.
    pub(super) reload_id: Option<String>,
    /// What the API noticed about the request.
    pub(super) warnings: Vec<String>,
    /// After what time the API may be asked again, if it said so.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

/// Why a call did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Nobody answered.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// There was no answer in time.
    #[error("{endpoint} did not answer {call} within {within:?}")]
    Timeout {
        /// Who was asked.
        endpoint: String,
        /// What was asked.
        call: String,
        /// For how long was waited.
        within: Duration,
    },
    /// The configuration has another version, or the transaction was made for another.
    #[error("{call}: {message}")]
    Conflict {
        /// What was asked.
        call: String,
        /// The version that the API says it has; none where it did not say.
        version: Option<u64>,
        /// What the API said.
        message: String,
    },
    /// The API does not take more at the moment.
    #[error("{call}: {message}")]
    Overloaded {
        /// What was asked.
        call: String,
        /// After what time it may be asked again, if it said so.
        retry_after: Option<Duration>,
        /// What the API said.
        message: String,
    },
    /// What was asked for is not there.
    #[error("{call}: {message}")]
    NotFound {
        /// What was asked.
        call: String,
        /// What the API said.
        message: String,
    },
    /// The API refused.
    #[error("{call}: {message} (HTTP {status})")]
    Refused {
        /// What was asked.
        call: String,
        /// The status of the answer.
        status: u16,
        /// What the API said.
        message: String,
    },
    /// It was tried on this machine, and failed.
    #[error("{call}: {message}")]
    Failed {
        /// What was tried.
        call: String,
        /// Why it failed.
        message: String,
    },
    /// The answer makes no sense.
    #[error("{call}: the answer can't be understood: {why}")]
    Malformed {
        /// What was asked.
        call: String,
        /// What is wrong with the answer.
        why: String,
    },
    /// Something has a name that no path can hold.
    #[error("{call}: the API can't be asked about something that is called {name:?}")]
    Unnameable {
        /// What was asked.
        call: String,
        /// The name.
        name: String,
    },
    /// This version or edition has no such call.
    #[error(transparent)]
    NotSupported(#[from] super::NotSupported),
}

impl ApiError {
    /// Returns whether the connection failed, before the call or in the middle of it: what it has done then is not known, and the same
    /// may succeed a moment later.
    pub fn is_connection(&self) -> bool {
        matches!(self, Self::Connection(_))
    }

    /// Returns whether the configuration was changed by somebody else.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// What a status that is no success means.
    pub(super) fn of(call: String, answer: &Answer) -> Self {
        let Answer { status, version, retry_after, ref body, .. } = *answer;
        let message = message(body);
        match status {
            // A transaction that another commit outdated is told by 406, anything else by 409.
            406 | 409 => Self::Conflict { call, version: version.filter(|version| *version > 0), message },
            404 => Self::NotFound { call, message },
            429 => Self::Overloaded { call, retry_after, message },
            // Whoever says after what time has done nothing.
            503 if retry_after.is_some() => Self::Overloaded { call, retry_after, message },
            _ => Self::Refused { call, status, message },
        }
    }
}

/// What the API says in a body: its message, or all of it.
fn message(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(json) => json.get("message").and_then(serde_json::Value::as_str).map(str::to_owned),
        Err(_) => None,
    };
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    // What a peer says reaches a terminal.
    let text: String = text.chars().filter(|letter| *letter == '\n' || !letter.is_control()).collect();
    let text = text.trim();
    match text.char_indices().nth(LONGEST_MESSAGE) {
        _ if text.is_empty() => "the API gave no reason".to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
