//! What commands share that wait for something: a runtime, and the signals that end it.

#[cfg(any(feature = "host", feature = "dataplane", feature = "sync"))]
pub(crate) mod systemd;

use std::io;

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
