//! How many files what is started may open.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

/// Lets a process that was just started open as many files as this program could before it raised its own limit; none if it did
/// not. A program that looks at its limit in its first instant may see the other one.
pub(crate) fn limit_open_files(pid: u32, most: Option<u64>) {
    let Some((pid, most)) = i32::try_from(pid).ok().and_then(Pid::from_raw).zip(most) else { return };
    let limit = Rlimit { current: Some(most), maximum: getrlimit(Resource::Nofile).maximum };
    // It may have ended.
    let _ = prlimit(Some(pid), Resource::Nofile, limit);
}
