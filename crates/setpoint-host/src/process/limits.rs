//! How many files what is started may open.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// How many files this program may have to open, on any thread, while it starts another one.
const RESERVE: u64 = 128;

/// The limit is one for all threads: who starts something waits for who does so just now.
static STARTING: Mutex<()> = Mutex::new(());

/// Starts a program that may open so many files: as many as this program could before it raised its own limit; none if it did not.
pub(crate) fn spawn_with_limit(command: &mut Command, open_files: Option<u64>) -> io::Result<Child> {
    let Some(most) = open_files else { return command.spawn() };
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let own = getrlimit(Resource::Nofile);
    let limit = Rlimit { current: Some(most), maximum: own.maximum };
    if has_room(most) && setrlimit(Resource::Nofile, limit).is_ok() {
        // What is started inherits the limit, and sees no other.
        let child = command.spawn();
        // It could be raised before.
        let _ = setrlimit(Resource::Nofile, own);
        return child;
    }
    // This program could not open what it needs meanwhile. One that looks at its limit in its first instant may see the other one.
    let child = command.spawn()?;
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended.
        let _ = prlimit(Some(pid), Resource::Nofile, limit);
    }
    Ok(child)
}

/// Returns whether this program could work with so low a limit for a moment: files that it has open stay open.
fn has_room(most: u64) -> bool {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return false };
    let numbers = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let below = numbers.filter(|&number| number < most).count();
    most.saturating_sub(below as u64) >= RESERVE
}
