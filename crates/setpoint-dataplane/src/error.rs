//! What can go wrong on the way, each with what somebody can do about it.
//!
//! A [`SyncError`] names the step that failed; below it, in the chain of sources, is what happened:
//!
//! ```
//! use setpoint_dataplane::error::{ConnectionError, Stage, SyncError};
//!
//! let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
//! let error = SyncError::new(Stage::Connect, "the API can't be reached")
//!     .caused_by(ConnectionError::new("http://192.0.2.1:5555", refused))
//!     .hint("check that the API listens there");
//! assert_eq!(error.to_string(), "connect: the API can't be reached");
//! assert_eq!(error.cause::<ConnectionError>().unwrap().endpoint, "http://192.0.2.1:5555");
//! ```

use std::error::Error as StdError;
use std::fmt;

use setpoint_haproxy::check::without_secrets;
use setpoint_haproxy::text::{Diagnostic, Document};
use setpoint_plan::Action;

/// Any error that another was caused by.
pub type Cause = Box<dyn StdError + Send + Sync + 'static>;

/// The step of a sync that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Finding out what is at the other end.
    Connect,
    /// Reading the current configuration.
    Fetch,
    /// Splitting the current configuration into lines and words.
    ParseCurrent,
    /// Splitting the desired configuration into lines and words.
    ParseDesired,
    /// Comparing the two.
    Compare,
    /// Comparing files.
    CompareFiles,
    /// Writing files that the new configuration needs.
    SyncFiles,
    /// Waiting for the reloads that files have caused.
    AuxiliaryReloadVerification,
    /// Carrying out operations.
    Apply,
    /// Committing a transaction, or pushing a text.
    Commit,
    /// Pushing the whole text where operations had failed.
    Fallback,
    /// Waiting for the reload.
    ReloadVerification,
    /// Reading back what was written.
    ReadBack,
    /// Watching whether HAProxy is well afterwards.
    Verify,
}

impl Stage {
    /// The word for it, which stays the same whatever the sentence is.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Fetch => "fetch",
            Self::ParseCurrent => "parse-current",
            Self::ParseDesired => "parse-desired",
            Self::Compare => "compare",
            Self::CompareFiles => "compare_files",
            Self::SyncFiles => "sync_files_pre",
            Self::AuxiliaryReloadVerification => "auxiliary_reload_verification",
            Self::Apply => "apply",
            Self::Commit => "commit",
            Self::Fallback => "fallback",
            Self::ReloadVerification => "reload_verification",
            Self::ReadBack => "read_back",
            Self::Verify => "verify",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a sync failed.
#[derive(Debug, thiserror::Error)]
#[error("{stage}: {message}")]
pub struct SyncError {
    /// The step that failed.
    pub stage: Stage,
    /// What happened, in words.
    pub message: String,
    /// What it was caused by.
    #[source]
    pub source: Option<Cause>,
    /// What can be done.
    pub hints: Vec<String>,
}

impl SyncError {
    /// Makes an error of a step.
    pub fn new(stage: Stage, message: impl Into<String>) -> Self {
        Self { stage, message: message.into(), source: None, hints: Vec::new() }
    }

    /// Says what it was caused by.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Cause>) -> Self {
        self.source = Some(cause.into());
        self
    }

    /// Says what can be done.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Finds an error of a type in the chain of causes.
    pub fn cause<E: StdError + 'static>(&self) -> Option<&E> {
        causes(self).find_map(<dyn StdError>::downcast_ref)
    }

    /// The message with those of all its causes.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        for cause in causes(self) {
            let cause = cause.to_string();
            // Some errors repeat what they were caused by.
            if !text.ends_with(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        text
    }
}

/// What an error was caused by, what that was caused by, and so on.
pub(crate) fn causes<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}

/// Nobody answered.
#[derive(Debug, thiserror::Error)]
#[error("{endpoint} can't be reached")]
pub struct ConnectionError {
    /// Who was asked, without credentials.
    pub endpoint: String,
    /// Why there was no answer.
    #[source]
    pub source: Cause,
}

impl ConnectionError {
    /// Makes an error of an endpoint.
    pub fn new(endpoint: impl Into<String>, cause: impl Into<Cause>) -> Self {
        Self { endpoint: endpoint.into(), source: cause.into() }
    }
}

/// Which of two configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConfigType {
    /// The one that is there.
    Current,
    /// The one that is wanted.
    Desired,
}

impl fmt::Display for ConfigType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Current => "current",
            Self::Desired => "desired",
        })
    }
}

/// How many characters of a configuration are shown with an error about it.
const SNIPPET: usize = 200;

/// A configuration can't be split into lines and words.
///
/// A keyword that nobody knows is none of these: it is carried over as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {config_type} configuration can't be read: line {}: {}", cause.line, cause.message)]
pub struct ParseError {
    /// Which configuration.
    pub config_type: ConfigType,
    /// How it begins, without passwords.
    pub config_snippet: String,
    /// What is wrong with it.
    pub cause: Diagnostic,
}

impl ParseError {
    /// Finds the first thing for which a text can't be split into lines and words.
    pub fn find(config_type: ConfigType, document: &Document) -> Option<Self> {
        let cause = document.diagnostics().into_iter().find(|found| found.problem.is_of_words())?;
        Some(Self { config_type, config_snippet: snippet(document), cause })
    }
}

/// How a configuration begins, without passwords.
fn snippet(document: &Document) -> String {
    let mut text = String::new();
    let lines = document.sections().iter().flat_map(|section| section.all_lines());
    for line in lines {
        // As many characters as are shown fit into so many bytes.
        if text.len() > 4 * SNIPPET {
            break;
        }
        text.push_str(&without_secrets(line.raw(), 1).0);
        text.push('\n');
    }
    text.chars().take(SNIPPET).collect()
}

/// Somebody else changed the configuration again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the configuration was changed by somebody else: version {actual_version} is there, {expected_version} was expected \
     ({retries} {} made)",
    if *retries == 1 { "attempt was" } else { "attempts were" }
)]
pub struct ConflictError {
    /// How often it was tried.
    pub retries: u32,
    /// The version that the changes were made for.
    pub expected_version: u64,
    /// The version that is there; 0 where the API did not say.
    pub actual_version: u64,
}

/// One operation failed.
#[derive(Debug, thiserror::Error)]
#[error("can't {} {resource} in {section}", verb(*operation_type))]
pub struct OperationError {
    /// What was to be done.
    pub operation_type: Action,
    /// In which section.
    pub section: String,
    /// To what.
    pub resource: String,
    /// What the API said.
    #[source]
    pub source: Cause,
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Modify => "update",
        Action::Delete => "delete",
        Action::Recreate => "re-create",
    }
}

/// Operations failed, and so did the push of the whole text that came after.
#[derive(Debug, thiserror::Error)]
#[error("the operations failed ({original_error}), and so did the push of the whole text")]
pub struct FallbackError {
    /// Why the operations failed.
    pub original_error: Box<SyncError>,
    /// Why the push failed.
    #[source]
    pub fallback_cause: Box<SyncError>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ApiError;

    fn refused() -> ConnectionError {
        ConnectionError::new("http://h", std::io::Error::from(std::io::ErrorKind::ConnectionRefused))
    }

    #[test]
    fn sync_error_includes_stage_and_hints() {
        let error = SyncError::new(Stage::Apply, "2 operations failed")
            .caused_by(OperationError {
                operation_type: Action::Create,
                section: "backend web".to_owned(),
                resource: "server s1".to_owned(),
                source: "it exists".into(),
            })
            .hint("look at the API's log");
        assert_eq!(error.stage.as_str(), "apply");
        assert_eq!(error.hints, ["look at the API's log"]);
        assert_eq!(
            error.chain(),
            "apply: 2 operations failed: can't create server s1 in backend web: it exists"
        );
    }

    #[test]
    fn error_chain_unwrapping() {
        let error = SyncError::new(Stage::Connect, "nobody is there").caused_by(refused());
        assert_eq!(error.cause::<ConnectionError>().unwrap().endpoint, "http://h");
        assert!(error.cause::<std::io::Error>().is_some(), "what is below is found too");
        assert!(error.cause::<ApiError>().is_none());
        let error = FallbackError {
            original_error: Box::new(SyncError::new(Stage::Apply, "a")),
            fallback_cause: Box::new(SyncError::new(Stage::Fallback, "b").caused_by(refused())),
        };
        let error = SyncError::new(Stage::Fallback, "both failed").caused_by(error);
        assert!(error.cause::<ConnectionError>().is_some());
    }

    #[test]
    fn a_parse_error_is_a_lexical_one_and_shows_no_password() {
        let unknown = Document::parse(b"backend b\n  frobnicate 1\nnonsense x\n");
        assert_eq!(ParseError::find(ConfigType::Current, &unknown), None);
        let text = format!(
            "userlist u\n  user a insecure-password geheim\n  user b password \"open\n{}",
            "#".repeat(300)
        );
        let error = ParseError::find(ConfigType::Desired, &Document::parse(text.as_bytes())).unwrap();
        assert_eq!((error.config_snippet.chars().count(), error.cause.line), (SNIPPET, 3));
        assert!(!error.config_snippet.contains("geheim"), "{}", error.config_snippet);
        assert!(
            error.to_string().starts_with("the desired configuration can't be read: line 3: "),
            "{error}"
        );
    }
}
