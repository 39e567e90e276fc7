//! The events of `watch`: a line for each thing that it saw or did.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use setpoint_engine::{Drifted, Hooks, LogEntry, OpError, Operation};
use setpoint_graph::{ItemHandle, ItemRef};
use setpoint_host::EndedProcess;
use setpoint_plan::Plan;
use setpoint_state::RunEntry;

use crate::error::{CliError, ErrorData};
use crate::jobs::host::preview::DriftView;
use crate::jobs::host::print::counted;
use crate::jobs::host::progress::{Reminder, Work, still_running};
use crate::report::{print, print_json};

/// Writes of each operation when it has ended, and while it runs for long.
#[derive(Debug)]
pub(super) struct OperationEvents {
    events: EventWriter,
    reminder: Reminder,
}

impl OperationEvents {
    pub(super) fn new(events: EventWriter) -> Arc<Self> {
        let reminder = Reminder::new(move |item, work, elapsed| {
            if let Work::Operation(operation) = work {
                // A line that can't be written stops no operation.
                let _ = events.running(item, operation, elapsed);
            }
        });
        Arc::new(Self { events, reminder })
    }
}

impl Hooks for OperationEvents {
    fn before(&self, operation: Operation, item: &ItemHandle) -> Result<(), OpError> {
        self.reminder.begin(Work::Operation(operation), item.reference());
        Ok(())
    }

    fn after(&self, entry: &LogEntry) {
        self.reminder.end(entry.item().reference());
        let _ = self.events.operation(entry);
    }
}

/// Writes lines, or JSON objects one a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventWriter {
    json: bool,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Started {
        set: &'a str,
        items: usize,
    },
    /// Manifests may have changed while a pass is made.
    Changed,
    /// Manifests are being written, and for so long that somebody may wonder why they are not read.
    BeingWritten,
    Reloaded {
        items: usize,
    },
    Wrong {
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<&'a str>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        diagnostics: &'a [serde_json::Value],
    },
    Refused {
        message: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<&'a str>,
    },
    Unreadable {
        kind: &'a str,
        name: &'a str,
        error: &'a str,
    },
    Failed {
        message: &'a str,
        again_in_seconds: u64,
    },
    Drift(DriftView),
    ProcessEnded {
        kind: &'a str,
        name: &'a str,
        pid: i32,
        /// None if it was ended by a signal, or is not known.
        exit_code: Option<i32>,
        signal: Option<i32>,
        log: &'a [String],
    },
    /// An operation takes long.
    Running {
        kind: &'a str,
        name: &'a str,
        operation: Operation,
        seconds: u64,
    },
    Operation(RunEntry),
    Plan {
        plan: &'a Plan,
    },
    Stopped,
}

#[derive(Serialize)]
struct Line<'a> {
    at: Timestamp,
    #[serde(flatten)]
    event: Event<'a>,
}

impl EventWriter {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(super) fn started(self, set: &str, items: usize) -> Result<(), CliError> {
        self.write(Event::Started { set, items }, || format!("watching {set}: {} declared", counted(items)))
    }

    pub(super) fn reloaded(self, items: usize) -> Result<(), CliError> {
        self.write(Event::Reloaded { items }, || {
            format!("the manifests have changed: {} declared", counted(items))
        })
    }

    /// Writes that manifests may have changed, and are not read yet.
    pub(super) fn changed(self) -> Result<(), CliError> {
        self.write(Event::Changed, || {
            "manifests may have changed; they are read when what runs now has ended".to_owned()
        })
    }

    /// Writes that manifests are being written, and are not read yet.
    pub(super) fn being_written(self) -> Result<(), CliError> {
        self.write(Event::BeingWritten, || {
            "manifests are being written; the last good ones stand until these were left alone for a moment"
                .to_owned()
        })
    }

    pub(super) fn wrong(self, error: &CliError) -> Result<(), CliError> {
        let ErrorData { message, diagnostics } = &error.data();
        let hint = error.hint();
        let hint = hint.as_deref();
        self.write(Event::Wrong { message, hint, diagnostics }, || {
            let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
            format!("{error}{hint}\nthe last good manifests stand until this is mended")
        })
    }

    /// Writes why nothing is done. Whoever holds the state keeps others from mending it.
    pub(super) fn refused(self, error: &CliError, holds_state: bool) -> Result<(), CliError> {
        let (message, mut hint) = (error.to_string(), error.hint());
        if holds_state
            && let Some(hint) = &mut hint
            && hint.contains("`setpoint state ")
        {
            hint.to_mut().push_str("; `setpoint state` can be used while this `watch` does not run");
        }
        let hint = hint.as_deref();
        self.write(Event::Refused { message: &message, hint }, || {
            let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
            format!("{message}{hint}\nnothing is changed until this is mended")
        })
    }

    pub(super) fn unreadable(self, item: &ItemRef, error: &str) -> Result<(), CliError> {
        let (kind, name) = (item.kind().as_str(), item.name().as_str());
        self.write(Event::Unreadable { kind, name, error }, || {
            format!("! {item} can't be read, and is left as it is: {error}")
        })
    }

    pub(super) fn failed(self, message: &str, again: Duration) -> Result<(), CliError> {
        let again_in_seconds = again.as_secs();
        self.write(Event::Failed { message, again_in_seconds }, || {
            format!("{message}\nit is tried again in {again_in_seconds} s")
        })
    }

    pub(super) fn ended(self, process: &EndedProcess) -> Result<(), CliError> {
        let EndedProcess { item, pid, status, log } = process;
        let (exit_code, signal) = (status.and_then(|s| s.code()), status.and_then(|s| s.signal()));
        let (kind, name) = (item.kind().as_str(), item.name().as_str());
        self.write(Event::ProcessEnded { kind, name, pid: *pid, exit_code, signal, log }, || {
            let how = match (exit_code, signal) {
                (Some(code), _) => format!(": exit status {code}"),
                (None, Some(signal)) => format!(": signal {signal}"),
                // The system says it to the program that has started a process, and to no other.
                (None, None) => {
                    "; its exit status is not known, as another program had started it".to_owned()
                }
            };
            let log = match log.join(" | ") {
                log if log.is_empty() => log,
                log => format!("; the last lines of its log: {log}"),
            };
            format!("! {item} ended{how}{log}")
        })
    }

    /// Writes what something else changed. That a process is gone is written once, where its end was reported.
    pub(super) fn drift(self, drifted: &Drifted, reported: bool) -> Result<(), CliError> {
        if reported && drifted.found.is_none() && !drifted.contested && !self.json {
            return Ok(());
        }
        let what = match &drifted.found {
            None => "is gone",
            Some(_) => "was changed",
        };
        let often =
            if drifted.contested { "; it is contested, and put right less and less often" } else { "" };
        self.write(Event::Drift(drifted.into()), || format!("! {} {what}{often}", drifted.item))
    }

    fn running(self, item: &ItemRef, operation: Operation, elapsed: Duration) -> Result<(), CliError> {
        let (kind, name, seconds) = (item.kind().as_str(), item.name().as_str(), elapsed.as_secs());
        self.write(Event::Running { kind, name, operation, seconds }, || {
            still_running(item, Work::Operation(operation), elapsed)
        })
    }

    fn operation(self, entry: &LogEntry) -> Result<(), CliError> {
        let line = || crate::jobs::host::run::line(entry).trim().to_owned();
        self.write(Event::Operation(entry.into()), line)
    }

    pub(super) fn plan(self, plan: &Plan) -> Result<(), CliError> {
        self.write(Event::Plan { plan }, || {
            let mut lines = vec![plan.summary().to_string()];
            for operation in &plan.operations {
                let item = ItemRef::new(operation.kind.as_str(), operation.name.as_str());
                lines.push(format!("  {} {item}: {}", operation.action.sign(), operation.reason));
            }
            lines.join("\n")
        })
    }

    pub(super) fn stopped(self) -> Result<(), CliError> {
        self.write(Event::Stopped, || "stopped".to_owned())
    }

    fn write(self, event: Event<'_>, text: impl FnOnce() -> String) -> Result<(), CliError> {
        let at = Timestamp::now();
        let written =
            if self.json { print_json(&Line { at, event }) } else { print(&format!("{at:.3} {}\n", text())) };
        match written {
            // What is declared is kept up all the same, and there may be room for a later line.
            Err(CliError::Output(error)) if error.kind() == ErrorKind::StorageFull => Ok(()),
            written => written,
        }
    }
}
