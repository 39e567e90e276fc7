//! Says of each HAProxy what came of it, as soon as that is known, and at the end whether all is well.

use serde_json::Value as Json;
use setpoint_dataplane::sync::FailedSync;

use super::args::TargetArgs;
use super::print::{failed_json, failed_text};
use super::targets::Outcome;
use crate::error::CliError;
use crate::jobs::haproxy::error::Error;
use crate::report::{Report, print};

/// Says what came of each.
pub(super) struct Teller<T> {
    report: Report,
    json: bool,
    /// Whether there is one only: then its failure is the command's.
    is_one: bool,
    shown: fn(&str, &T) -> String,
    shown_json: fn(&str, &T) -> Json,
}

impl<T> Teller<T> {
    pub(super) fn new(
        args: &TargetArgs,
        report: Report,
        shown: fn(&str, &T) -> String,
        shown_json: fn(&str, &T) -> Json,
    ) -> Self {
        Self { report, json: args.json, is_one: args.urls.len() < 2, shown, shown_json }
    }

    /// Says what came of one.
    pub(super) fn ended(&self, endpoint: &str, outcome: &Result<T, Box<FailedSync>>) -> Result<(), CliError> {
        match outcome {
            Ok(value) if self.json => print(&format!("{}\n", (self.shown_json)(endpoint, value))),
            Ok(value) => print(&(self.shown)(endpoint, value)),
            Err(failure) => {
                if self.json {
                    print(&format!("{}\n", failed_json(endpoint, failure)))?;
                } else {
                    print(&failed_text(endpoint, &failure.result))?;
                }
                if !self.is_one {
                    self.report.info(&format!("{endpoint}: failed: {}", failure.error.chain()));
                    for hint in &failure.error.hints {
                        self.report.info(&format!("{endpoint}: hint: {hint}"));
                    }
                }
                Ok(())
            }
        }
    }

    /// Returns what the process exits with. A failure of one is said by the error, one of several has been said already.
    pub(super) fn end(self, outcomes: Vec<Outcome<T>>) -> Result<u8, CliError> {
        let all = outcomes.len();
        let mut failed: Vec<_> = outcomes
            .into_iter()
            .filter_map(|(endpoint, outcome)| Some((endpoint, outcome.err()?.error)))
            .collect();
        if !self.is_one && !failed.is_empty() {
            let message = format!("{} of {all} failed; why is above", failed.len());
            return Err(Error::Sync { message, hints: String::new() }.into());
        }
        let Some((endpoint, error)) = failed.pop() else { return Ok(0) };
        let message = format!("{endpoint}: {}", error.chain());
        Err(Error::Sync { message, hints: error.hints.join("; ") }.into())
    }
}
