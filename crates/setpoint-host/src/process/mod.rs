//! Processes of the host: how they are found again, ended, and run to their end.

mod children;
mod find;
mod run;
mod stop;

pub(crate) use children::Children;
pub(crate) use find::{Alive, Tag};
pub(crate) use run::{Ended, Job, run, tail};
pub(crate) use stop::stop;

use setpoint_graph::Name;

/// The variable that marks what Setpoint started, in the environment of the process and all it starts.
pub(crate) const TAG: &str = "SETPOINT_PROCESS";

/// What the runtime files of a process begin with: readable, and different for different names.
pub(crate) fn file_stem(name: &Name) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let readable: String = name.as_str().chars().map(plain).take(60).collect();
    if readable == name.as_str() {
        return format!("process-{readable}");
    }
    format!("process-{readable}-{}", crate::fs::short(&[name.as_str()]))
}
