//! Ends processes: first asks, then kills.

use std::time::Duration;

use rustix::process::{Signal, kill_process, kill_process_group};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::children::Children;
use super::find::Alive;

const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The kernel ends what was killed in no time, unless it hangs in a system call.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

/// Why processes could not be ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StopError {
    #[error("process {pid} can't be signalled: {errno}")]
    Refused { pid: i32, errno: rustix::io::Errno },
    #[error("process {0} does not end, not even when it is killed")]
    Unkillable(i32),
    #[error("cancelled while waiting for process {0} to end")]
    Cancelled(i32),
}

/// Ends some processes and their groups.
pub(crate) async fn stop(
    processes: &[Alive],
    signal: Signal,
    timeout: Duration,
    children: &Children,
    cancel: &CancellationToken,
) -> Result<(), StopError> {
    send(processes, signal)?;
    if wait(processes, timeout, children, cancel).await?.is_none() {
        return Ok(());
    }
    send(processes, Signal::KILL)?;
    match wait(processes, KILLED_WITHIN, children, cancel).await? {
        None => Ok(()),
        Some(alive) => Err(StopError::Unkillable(alive.pid.as_raw_nonzero().get())),
    }
}

/// Signals each group whose leader is among them, and each other process on its own.
fn send(processes: &[Alive], signal: Signal) -> Result<(), StopError> {
    let leads = |group| processes.iter().any(|process| process.pid == group);
    for process in processes.iter().filter(|process| process.is_alive()) {
        let sent = if process.pid == process.group {
            kill_process_group(process.group, signal)
        } else if leads(process.group) {
            continue;
        } else {
            kill_process(process.pid, signal)
        };
        match sent {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(errno) => {
                return Err(StopError::Refused { pid: process.pid.as_raw_nonzero().get(), errno });
            }
        }
    }
    // What lost its leader is signalled on its own.
    for process in processes.iter().filter(|process| process.pid != process.group && process.is_alive()) {
        let _ = kill_process(process.pid, signal);
    }
    Ok(())
}

/// Waits until all have ended; returns one that has not.
async fn wait(
    processes: &[Alive],
    timeout: Duration,
    children: &Children,
    cancel: &CancellationToken,
) -> Result<Option<Alive>, StopError> {
    let until = Instant::now() + timeout;
    loop {
        children.reap();
        let Some(alive) = processes.iter().find(|process| process.is_alive()) else { return Ok(None) };
        if Instant::now() >= until {
            return Ok(Some(*alive));
        }
        tokio::select! {
            () = sleep(LOOK_EVERY) => {}
            () = cancel.cancelled() => return Err(StopError::Cancelled(alive.pid.as_raw_nonzero().get())),
        }
    }
}
