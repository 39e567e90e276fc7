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
        error => Failed::Error(SyncError::new(stage, message).caused_by(flat(error))),
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
    SyncError::new(Stage::SyncFiles, format!("{kind} {name} can't be written")).caused_by(flat(error))
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
    let (operation, error) = failures.into_iter().next()?;
    let cause: Cause = match error {
        OperateError::Api(error) => flat(error),
        OperateError::NoCall(error) => Box::new(error),
    };
    let resource = operation.to_plan();
    let error = OperationError {
        operation_type: operation.action,
        section: operation.section.to_string(),
        resource: format!("{} {}", resource.kind, resource.name),
        source: cause,
    };
    let noun = if count == 1 { "operation" } else { "operations" };
    let error = SyncError::new(Stage::Apply, format!("{count} {noun} failed")).caused_by(error);
    Some(Failed::Error(error.hint("the API's own words are above: what it refuses has to be changed")))
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
