//! Processes of the host: how they are found again, followed, ended, and run to their end.

mod checks;
mod children;
mod ends;
mod find;
mod follow;
mod limits;
mod log;
mod output;
mod ready;
mod run;
mod stop;

pub use checks::CheckEvent;
pub(crate) use checks::Checks;
pub(crate) use children::Children;
pub use find::Started;
pub(crate) use find::{Alive, Tag};
pub(crate) use follow::ProcessOperations;
pub use follow::{EndedProcess, ProcessEnds};
pub(crate) use limits::spawn_with_limit;
pub(crate) use log::last_lines_since;
pub(crate) use output::{Lines, Output};
pub(crate) use ready::Probe;
pub(crate) use run::{Ended, Job, run};
pub(crate) use stop::stop;

use setpoint_graph::Name;

/// The variable that marks what Setpoint started, in the environment of the process and all it starts.
pub(crate) const TAG: &str = "SETPOINT_PROCESS";

/// The variable that marks the commands of an item while they run, and all that they start.
pub(crate) const COMMAND_TAG: &str = "SETPOINT_COMMAND";

/// What systemd tells the service in its environment is not for what the service starts.
pub(crate) const NOT_INHERITED: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// What the runtime files of a process begin with: readable, and different for different names.
pub(crate) fn file_stem(name: &Name) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let readable: String = name.as_str().chars().map(plain).take(60).collect();
    if readable == name.as_str() {
        return format!("process-{readable}");
    }
    format!("process-{readable}-{}", crate::fs::short(&[name.as_str()]))
}
