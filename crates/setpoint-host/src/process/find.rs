//! Finds what Setpoint started: by a record with the process id, and by a mark in the environment.
//!
//! The record may be missing, where a run was killed between the start and the writing of it; the mark is
//! there from the first instant, but a program may overwrite it. Together they miss nothing that matters.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use setpoint_graph::Name;

use super::{TAG, file_stem};
use crate::fs::short;

/// The mark of one process of one set.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    set: String,
    name: Name,
}

/// A process that is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alive {
    pub(crate) pid: Pid,
    pub(crate) group: Pid,
    /// When it started, in ticks since the system did: tells it from a later one with the same id.
    start: u64,
}

/// What is running of an item.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running {
    /// The process that was started, with the digest of its definition.
    pub(crate) main: Option<(Alive, String)>,
    /// All of its processes that are known, the main one too.
    pub(crate) all: Vec<Alive>,
}

/// The record of a process that was started.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pid: i32,
    start: u64,
    digest: String,
}

impl Alive {
    /// Looks at a process; none if it has ended, also if nobody has collected its end yet.
    pub(crate) fn look(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        // The name before the last bracket may hold anything.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let state = *fields.first()?;
        if matches!(state, "Z" | "X" | "x") {
            return None;
        }
        let group = Pid::from_raw(fields.get(2)?.parse().ok()?)?;
        Some(Self { pid, group, start: fields.get(19)?.parse().ok()? })
    }

    /// Whether the very same process is still alive.
    pub(crate) fn is_alive(&self) -> bool {
        Self::look(self.pid).is_some_and(|now| now.start == self.start)
    }
}

impl Tag {
    /// The mark of a process of a set in a root.
    pub(crate) fn new(set: &Name, root: &Path, name: &Name) -> Self {
        Self { set: short(&[set.as_str(), &root.to_string_lossy()]), name: name.clone() }
    }

    /// The value of the variable for a definition.
    pub(crate) fn value(&self, digest: &str) -> String {
        format!("{}/{digest}/{}", self.set, self.name)
    }

    /// The digest in the environment of a process, if it has this mark.
    fn digest_in<'a>(&self, environment: &'a [u8]) -> Option<&'a str> {
        environment.split(|&byte| byte == 0).find_map(|variable| {
            let value = std::str::from_utf8(variable).ok()?.strip_prefix(TAG)?.strip_prefix('=')?;
            let rest = value.strip_prefix(self.set.as_str())?.strip_prefix('/')?;
            let (digest, name) = rest.split_once('/')?;
            (name == self.name.as_str()).then_some(digest)
        })
    }

    /// Looks only at the recorded process.
    pub(crate) fn recorded(&self, runtime: &Path) -> Option<(Alive, String)> {
        let record: Record = serde_json::from_slice(&fs::read(self.record(runtime)).ok()?).ok()?;
        let alive = Alive::look(Pid::from_raw(record.pid)?)?;
        (alive.start == record.start).then_some((alive, record.digest))
    }

    /// Looks at all processes of the host.
    pub(crate) fn find(&self, runtime: &Path) -> Running {
        let mut running = Running { main: self.recorded(runtime), all: Vec::new() };
        running.all.extend(running.main.iter().map(|(alive, _)| *alive));
        let Ok(entries) = fs::read_dir("/proc") else { return running };
        for entry in entries.flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            let Some(pid) = pid else { continue };
            // Processes of others can't be read: they are not ours.
            let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
            let Some(digest) = self.digest_in(&environment) else { continue };
            let Some(alive) = Alive::look(pid) else { continue };
            if running.main.is_none() && alive.pid == alive.group {
                running.main = Some((alive, digest.to_owned()));
            }
            if !running.all.contains(&alive) {
                running.all.push(alive);
            }
        }
        running
    }

    fn record(&self, runtime: &Path) -> PathBuf {
        runtime.join(format!("{}.pid", file_stem(&self.name)))
    }

    /// Records the main process.
    pub(crate) fn write_record(&self, runtime: &Path, alive: &Alive, digest: &str) -> std::io::Result<()> {
        fs::create_dir_all(runtime)?;
        let record =
            Record { pid: alive.pid.as_raw_nonzero().get(), start: alive.start, digest: digest.to_owned() };
        let path = self.record(runtime);
        let beside = path.with_extension("new");
        fs::write(&beside, serde_json::to_vec(&record)?)?;
        fs::rename(beside, path)
    }

    /// Forgets the process.
    pub(crate) fn remove_record(&self, runtime: &Path) {
        // A record of a process that is not there any more says nothing.
        let _ = fs::remove_file(self.record(runtime));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_only_known_to_its_own_set_and_name() {
        let root = Path::new("/srv");
        let tag = Tag::new(&"set".into(), root, &"a/b".into());
        let environment = format!("HOME=/\0{TAG}={}\0", tag.value("d1"));
        assert_eq!(tag.digest_in(environment.as_bytes()), Some("d1"));
        for other in [
            Tag::new(&"other".into(), root, &"a/b".into()),
            Tag::new(&"set".into(), Path::new("/srv2"), &"a/b".into()),
            Tag::new(&"set".into(), root, &"b".into()),
        ] {
            assert_eq!(other.digest_in(environment.as_bytes()), None);
        }
    }

    #[test]
    fn this_process_is_alive_and_known_by_its_start() {
        let me = Alive::look(rustix::process::getpid()).unwrap();
        assert!(me.is_alive());
        assert!(!Alive { start: me.start + 1, ..me }.is_alive(), "another one with the same id");
    }
}
