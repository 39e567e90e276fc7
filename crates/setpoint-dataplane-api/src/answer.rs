//! What is answered: a status, a body, and the headers that say what became of the configuration.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value as Json, json};
use setpoint_haproxy::edit::EditError;
use setpoint_instance::instance::{Applied, CommitError, Committed, TransactionStatus};

/// The body of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    None,
    Json(Json),
    Bytes(&'static str, Vec<u8>),
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content: Content,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Why HAProxy reloads, for the audit.
    pub(crate) reason: Option<String>,
    /// The version that it speaks of, if it speaks of one: by now the configuration may have another.
    pub(crate) version: Option<u64>,
}

impl Answer {
    pub(crate) fn json(status: u16, body: Json) -> Self {
        Self { content: Content::Json(body), ..Self::empty(status) }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, content: Content::None, headers: Vec::new(), reason: None, version: None }
    }

    pub(crate) fn bytes(status: u16, kind: &'static str, bytes: Vec<u8>) -> Self {
        Self { content: Content::Bytes(kind, bytes), ..Self::empty(status) }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Warns of some things: of very many, the first are named, and the others counted.
    #[must_use]
    pub(crate) fn warned(self, what: &str, things: &[String]) -> Self {
        let text = limited(things).replace('"', "'");
        self.with("warning", format!("299 - \"{what}: {text}\""))
    }

    /// Says why HAProxy reloads.
    #[must_use]
    pub(crate) fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// What became of a commit: its version, the reload that waits, and why.
    #[must_use]
    pub(crate) fn committed(mut self, committed: &Committed) -> Self {
        self.version = Some(committed.version);
        self.reason.clone_from(&committed.reason);
        match &committed.applied {
            Applied::Ordered(id) => self.with("reload-id", id.as_str()),
            Applied::Reloaded => self.because("force_reload"),
            Applied::Runtime | Applied::Skipped => self,
        }
    }

    pub(crate) fn into_response(self) -> Response {
        let (kind, bytes) = match self.content {
            Content::None => (None, Vec::new()),
            Content::Json(json) => {
                let mut bytes = serde_json::to_vec(&json).unwrap_or_default();
                bytes.push(b'\n');
                (Some("application/json"), bytes)
            }
            Content::Bytes(kind, bytes) => (Some(kind), bytes),
        };
        let mut response = Response::new(Body::from(bytes));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
        for (name, value) in self.headers {
            // Names may hold any letter; what would end a header is none.
            let value: String =
                value.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                headers.append(HeaderName::from_static(name), value);
            }
        }
        response
    }
}

/// The longest text of a warning: many clients take a few kilobytes of headers altogether.
const LONGEST_WARNING: usize = 1000;

/// A list of things, up to a length.
fn limited(things: &[String]) -> String {
    let (mut text, mut named) = (String::new(), 0);
    for thing in things {
        let thing = thing.get(..thing.floor_char_boundary(LONGEST_WARNING)).unwrap_or(thing);
        if named > 0 && text.len() + thing.len() > LONGEST_WARNING {
            break;
        }
        text.push_str(if named > 0 { ", " } else { "" });
        text.push_str(thing);
        named += 1;
    }
    let others = things.len() - named;
    if others > 0 { format!("{text} and {others} more") } else { text }
}

/// Why a request is refused.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) status: u16,
    /// The code in the body; the status if there is none.
    pub(crate) code: Option<u16>,
    pub(crate) message: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Problem {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, code: None, message: message.into(), headers: Vec::new() }
    }

    #[must_use]
    pub(crate) fn coded(mut self, code: u16) -> Self {
        self.code = Some(code);
        self
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Somebody asks too often.
    pub(crate) fn too_often(wait: Duration) -> Self {
        let seconds = wait.as_secs_f64().ceil();
        Self::new(429, format!("too many requests: ask again in {seconds} s"))
            .with("retry-after", seconds.to_string())
    }

    pub(crate) fn not_served(what: &str) -> Self {
        Self::new(501, format!("{what} is not served by this program"))
    }
}

impl From<Problem> for Answer {
    fn from(problem: Problem) -> Self {
        let code = problem.code.unwrap_or(problem.status);
        let body = json!({ "code": code, "message": problem.message });
        Self { headers: problem.headers, ..Self::json(problem.status, body) }
    }
}

impl From<CommitError> for Problem {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Stale { current, given } => stale(current, &given.to_string()),
            CommitError::TooMany(most) => Self::new(
                429,
                format!(
                    "cannot start a new transaction, reached the maximum amount of {most} active transactions available"
                ),
            ),
            CommitError::NoTransaction(id) => {
                Self::new(404, format!("transaction does not exist: transaction {id} does not exist"))
            }
            CommitError::Ended { id, status } => {
                let word = if status == TransactionStatus::Failed { "failed" } else { "outdated" };
                Self::new(406, format!("transaction {id} is {word} and cannot be committed"))
            }
            CommitError::Refused { id, messages } => Self::new(
                400,
                format!("validation error: exit status 1: err transactionId={id} {}", quoted(&messages)),
            ),
            CommitError::Reload(why) => Self::new(400, format!("Reload failed: {why}")),
            error @ (CommitError::Check(_) | CommitError::Write(_) | CommitError::Read(_)) => {
                Self::new(500, error.to_string())
            }
        }
    }
}

pub(crate) fn stale(current: u64, given: &str) -> Problem {
    Problem::new(
        409,
        format!("version mismatch: version in configuration file is {current}, given version is {given}"),
    )
}

/// What HAProxy said against a text, a line for each error.
pub(crate) fn quoted(messages: &str) -> String {
    let alerts = messages.lines().filter_map(|line| {
        let (_, text) = line.strip_prefix("[ALERT]")?.split_once(" : ")?;
        Some(format!("\nmsg=\"{}\"", text.replace(" : ", " ")))
    });
    let text: String = alerts.collect();
    if text.is_empty() { format!("\nmsg=\"{messages}\"") } else { text }
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Self {
        match &error {
            EditError::Exists { what } => Self::new(409, format!("object already exists: {what}")),
            EditError::NotFound { what } => Self::new(404, format!("missing object: {what} does not exist")),
            EditError::OutOfRange { section, index, .. } => Self::new(
                400,
                format!("index out of range: Object with id {index} in {section} out of range"),
            ),
            EditError::TextOnly { .. } => Self::new(501, error.to_string()),
            EditError::WrongPlace { .. } | EditError::Invalid { .. } => {
                Self::new(400, format!("validation error: {error}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_what_fits_and_counts_the_rest() {
        let names = |count: usize| (0..count).map(|number| format!("n\u{e4}me{number}")).collect::<Vec<_>>();
        assert_eq!(limited(&names(2)), "n\u{e4}me0, n\u{e4}me1");
        let many = limited(&names(5_000));
        assert!(many.len() < 2 * LONGEST_WARNING && many.starts_with("n\u{e4}me0, "), "{many}");
        let (named, others) = many.rsplit_once(" and ").unwrap();
        let others: usize = others.strip_suffix(" more").unwrap().parse().unwrap();
        assert_eq!(named.split(", ").count() + others, 5_000);
        let long = "\u{e4}".repeat(LONGEST_WARNING);
        assert_eq!(limited(&[long.clone(), long]).len(), LONGEST_WARNING + " and 1 more".len());
    }

    #[test]
    fn a_warning_may_hold_any_letter_and_ends_no_header() {
        let unknown = ["n\u{e4}me".to_owned(), "a\r\nx-evil: \"1\"".to_owned()];
        let response = Answer::empty(200).warned("properties that were ignored", &unknown).into_response();
        let text = String::from_utf8(response.headers()["warning"].as_bytes().to_vec()).unwrap();
        assert_eq!(text, "299 - \"properties that were ignored: n\u{e4}me, a  x-evil: '1'\"");
        assert!(!response.headers().contains_key("x-evil"));
    }
}
