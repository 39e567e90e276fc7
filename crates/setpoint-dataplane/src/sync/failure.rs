//! What a failure means for a sync, and the words for it.

use setpoint_haproxy::compare::Operation;

use crate::client::{ApiError, FileKind, OperateError};
use crate::error::{Cause, ConflictError, ConnectionError, FallbackError, OperationError, Stage, SyncError};

/// How it goes on where a change was not made.
pub(super) enum Failed {
    /// Somebody else changed the configuration: the version that is there, if it is known.
    Conflict(Option<u64>),
    /// It can't be made this way.
    Error(SyncError),
}

/// What a call that failed means for a sync.
pub(super) fn failed(stage: Stage, message: &str, error: ApiError) -> Failed {
    match error {
        ApiError::Conflict { version, .. } => Failed::Conflict(version),
        error => Failed::Error(hinted(SyncError::new(stage, message), &error).caused_by(flat(error))),
    }
}

/// An error with what can be done about an API that takes no more.
pub(super) fn hinted(error: SyncError, cause: &ApiError) -> SyncError {
    match cause {
        ApiError::Overloaded { .. } => error.hint(
            "the API takes no more at the moment, and did not for a while: end transactions that nobody needs, let fewer programs ask, \
             or raise its limits",
        ),
        _ => error,
    }
}

/// An error of the API, as what it is: a connection that failed is found as such.
pub(super) fn flat(error: ApiError) -> Cause {
    match error {
        ApiError::Connection(ConnectionError { endpoint, source }) => {
            Box::new(ConnectionError { endpoint, source })
        }
        error => Box::new(error),
    }
}

pub(super) fn both(original_error: SyncError, fallback_cause: SyncError) -> SyncError {
    let (original_error, fallback_cause) = (Box::new(original_error), Box::new(fallback_cause));
    let cause = FallbackError { original_error, fallback_cause };
    SyncError::new(Stage::Fallback, "neither operations nor the whole text were accepted").caused_by(cause)
}

pub(super) fn not_written(kind: FileKind, name: &str, error: ApiError) -> SyncError {
    let message = format!("{kind} {name} can't be written");
    hinted(SyncError::new(Stage::SyncFiles, message), &error).caused_by(flat(error))
}

/// What a failure of operations means: a conflict, or an error about the first.
pub(super) fn first_of(failures: Vec<(Operation, OperateError)>) -> Option<Failed> {
    let count = failures.len();
    let conflict = failures.iter().find_map(|(_, error)| match error {
        OperateError::Api(ApiError::Conflict { version, .. }) => Some(*version),
        _ => None,
    });
    if let Some(version) = conflict {
        return Some(Failed::Conflict(version));
    }
    let mut failures = failures.into_iter();
    let (operation, error) = failures.next()?;
    let (noun, others) = (if count == 1 { "operation" } else { "operations" }, others(failures));
    let failed = SyncError::new(Stage::Apply, format!("{count} {noun} failed{others}"));
    let failed = match &error {
        OperateError::Api(error) => hinted(failed, error),
        OperateError::NoCall(_) => failed,
    };
    let error = failed.caused_by(operation_error(&operation, error));
    Some(Failed::Error(error.hint("the API's own words are above: what it refuses has to be changed")))
}

/// What failed of operations after the first, in words.
fn others(failures: impl Iterator<Item = (Operation, OperateError)>) -> String {
    let words: Vec<String> = failures
        .map(|(operation, error)| {
            let error = operation_error(&operation, error);
            format!("{error}: {}", error.source)
        })
        .collect();
    if words.is_empty() { String::new() } else { format!(" ({}), and before them", words.join("; ")) }
}

fn operation_error(operation: &Operation, error: OperateError) -> OperationError {
    let source: Cause = match error {
        OperateError::Api(error) => flat(error),
        OperateError::NoCall(error) => Box::new(error),
    };
    let resource = operation.to_plan();
    OperationError {
        operation_type: operation.action,
        section: operation.section.to_string(),
        resource: format!("{} {}", resource.kind, resource.name),
        source,
    }
}

/// Somebody else changed the configuration since it was planned what to do with it.
pub(super) fn moved(expected_version: u64, actual: Option<u64>) -> SyncError {
    let cause = ConflictError { retries: 0, expected_version, actual_version: actual.unwrap_or_default() };
    SyncError::new(Stage::Compare, "the configuration was changed since the plan was made")
        .caused_by(cause)
        .hint("make a new plan, and look at it")
}

pub(super) fn conflict(retries: u32, expected_version: u64, actual: Option<u64>) -> SyncError {
    let cause = ConflictError { retries, expected_version, actual_version: actual.unwrap_or_default() };
    SyncError::new(Stage::Commit, "somebody else changes the configuration all the time")
        .caused_by(cause)
        .hint("let only one program write this configuration")
}
