//! What commands share that wait for something: a runtime, the signals that end it, the log, and what is seen of them from outside.

mod endpoints;
pub(crate) mod lifecycle;
#[cfg(any(feature = "dataplane", feature = "composite"))]
pub(crate) mod parameters;
#[cfg(any(feature = "host", feature = "dataplane", feature = "sync"))]
pub(crate) mod running;
mod systemd;

use std::io;

#[cfg(any(feature = "dataplane", feature = "composite"))]
use setpoint_observe::logging::{self, Format, LevelFilter};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Reportable;

/// Why nothing can be waited for.
#[derive(Debug, thiserror::Error)]
#[error("can't start the runtime: {0}")]
pub(crate) struct RuntimeError(#[source] io::Error);

impl Reportable for RuntimeError {}

/// What a command runs on.
pub(crate) fn runtime() -> Result<Runtime, RuntimeError> {
    Builder::new_current_thread().enable_all().build().map_err(RuntimeError)
}

/// What connections are served on, beside what a command does.
#[cfg(feature = "dataplane")]
pub(crate) fn threads() -> Result<Runtime, RuntimeError> {
    Builder::new_multi_thread().enable_all().build().map_err(RuntimeError)
}

/// Writes on the standard error output what goes on: of our own crates, and of these targets, from a level on.
#[cfg(any(feature = "dataplane", feature = "composite"))]
pub(crate) fn log_to_stderr(report: crate::report::Report, level: Option<LevelFilter>, targets: &[&str]) {
    let level = match report.verbosity {
        0 => level.unwrap_or(LevelFilter::INFO),
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let format = match report.format {
        crate::report::LogFormat::Text => Format::Text,
        crate::report::LogFormat::Json => Format::Json,
    };
    logging::to_stderr(level, format, targets);
}

/// Takes memory in small pages: in those of two megabytes, a few bytes that are left of what was freed keep all of them, and whoever
/// runs for long is given twice of what is used.
fn take_small_pages() {
    // Where that is refused, it takes more memory and works as well.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Lets this process open as many files as the system allows it to: each connection, and each process that is followed, is one.
/// Returns how many it could before, if that was limited.
#[cfg(any(feature = "host", feature = "dataplane"))]
pub(crate) fn allow_many_files() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // With fewer, connections wait, and the end of a process is noticed when it is read.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    limit.current
}

/// The signals that ask a command to stop.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, RuntimeError> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        Ok(Self { interrupt: interrupt.map_err(RuntimeError)?, terminate: terminate.map_err(RuntimeError)? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
