//! Exit codes of commands that only pass on what another program said.

use std::process::{ExitCode, ExitStatus};

/// The exit code of a program that ended; that of a failure if a signal ended it.
pub fn like(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
