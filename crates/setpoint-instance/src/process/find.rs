//! Finds the HAProxy of a configuration among the processes of this machine, and tells its workers: where a master has no socket,
//! the system knows what `show proc` would say.
//!
//! ```text
//!  files ──/proc/*/cmdline──▶ master ──environ: HAPROXY_PROCESSES──▶ reloads, failures
//!                                └────children────────────────────▶ workers
//! ```
//!
//! A master hands its list of processes on to itself, in its environment, when it starts anew for a reload. Up to 3.0 it does so
//! once more when it has loaded, and waits then: the list is complete. From 3.1 on the list is that of before, without the failure
//! of the last reload.

use std::fs;
use std::path::{Path, PathBuf};

use super::Identity;
use crate::cli::{Process, Processes};

/// The variable in which a master hands on its list of processes.
const LIST: &str = "HAPROXY_PROCESSES";
/// What a master of up to 3.0 sets.
const MASTER: &str = "HAPROXY_MWORKER";
/// What it sets as well when it has loaded.
const WAITS: &str = "HAPROXY_MWORKER_WAIT_ONLY";

/// The processes of HAProxy that were started with one of these files: masters, workers, and checks.
pub fn running_with(files: &[PathBuf]) -> Vec<Identity> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let files: Vec<PathBuf> = files.iter().map(|file| real(file)).collect();
    // In a container, files of the same names are others.
    let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let own = mounts("self");
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_haproxy = |pid: &u32| {
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"haproxy"))
    };
    let identities = pids.filter(is_haproxy).filter_map(Identity::of);
    let reads_one = |identity: &Identity| {
        let held = identity.command_line().and_then(|line| line.files().ok()).unwrap_or_default();
        mounts(&identity.pid().to_string()) == own && held.iter().any(|file| files.contains(&real(file)))
    };
    identities.filter(reads_one).collect()
}

/// The master of a HAProxy that was started with one of these files, and whose processes have the ids here that they have there.
pub fn master_of(files: &[PathBuf]) -> Option<Identity> {
    let all = running_with(files);
    let has = |pid: u32| all.iter().any(|one| one.pid() == pid);
    // A worker is a child of its master, and has its command line.
    let is_master = |one: &&Identity| {
        !one.parent().is_some_and(has) && children(one.pid()).iter().any(|child| has(*child))
    };
    all.iter().filter(|one| one.shares_process_ids()).find(is_master).copied()
}

/// What a master would say of itself and its workers; none if it has ended, is another user's, or is just loading.
pub(crate) fn processes_of(master: Identity) -> Option<Processes> {
    let line = master.command_line()?;
    let variable = |wanted: &str| line.environment.iter().find(|(name, _)| name == wanted);
    let waits = variable(WAITS).is_some();
    if variable(MASTER).is_some() && !waits {
        return None;
    }
    let list = variable(LIST).map(|(_, list)| list.to_string_lossy());
    let listed = read_list(&list.unwrap_or_default());
    let known = |pid: u32| listed.iter().find(|process| process.pid == pid);
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program(master.pid());
    // A master may run other programs beside its workers.
    let workers = children(master.pid()).into_iter().filter(|pid| program(*pid) == own);
    let workers =
        workers.map(|pid| Process { pid, reloads: known(pid).map_or(0, |held| held.reloads), uptime: None });
    let (reloads, failed) = known(master.pid()).map_or((0, 0), |held| (held.reloads, held.failed));
    let failed = if waits { failed } else { 0 };
    let workers = workers.collect();
    let master = Process { pid: master.pid(), reloads, uptime: None };
    Some(Processes { master, failed, workers, old: Vec::new(), are_ours: true })
}

/// The processes that a process has started, and that it has not collected.
fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// One process in the list that a master hands on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Listed {
    pid: u32,
    reloads: u32,
    failed: u32,
}

fn read_list(list: &str) -> Vec<Listed> {
    let processes = list.split('|').filter(|process| !process.is_empty());
    let read = |process: &str| {
        let mut listed = Listed::default();
        for (name, value) in process.split(';').filter_map(|field| field.split_once('=')) {
            match name {
                "pid" => listed.pid = value.parse().ok()?,
                "reloads" => listed.reloads = value.parse().ok()?,
                "failedreloads" => listed.failed = value.parse().ok()?,
                _ => {}
            }
        }
        Some(listed)
    };
    processes.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_that_a_master_hands_on_is_read() {
        let list = "|type=w;fd=4;pid=25135;reloads=1;failedreloads=1;timestamp=1794957259;id=;version=2.6.12-1+deb12u3\
                    |type=m;fd=-1;pid=25128;reloads=2;failedreloads=1;timestamp=1794957258;id=;version=(null)";
        let worker = Listed { pid: 25_135, reloads: 1, failed: 1 };
        let master = Listed { pid: 25_128, reloads: 2, failed: 1 };
        assert_eq!(read_list(list), [worker, master]);
        assert_eq!(read_list(""), []);
    }

    #[test]
    fn a_configuration_that_nothing_runs_with_has_no_master() {
        assert_eq!(master_of(&["/nonexistent/haproxy.cfg".into()]), None);
    }
}
