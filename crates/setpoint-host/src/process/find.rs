//! Finds what Setpoint started: by the process id in the item's state, and by a mark in the environment.
//!
//! The process id may be missing, where a run was killed between the start and the note of it; the mark is
//! there from the first instant, but a program may overwrite it. What both miss is a program without the mark, such as one
//! that is started by `env -i`, of a run that was killed in the very instant between its start and its note.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use setpoint_engine::ItemState;
use setpoint_graph::Name;

use super::{COMMAND_TAG, TAG};
use crate::configure::LastingNote;
use crate::fs::{Number, number_at, short};

/// How often is looked for what a killed process has just started.
const KILL_ROUNDS: usize = 20;

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
    /// Whether it leads a session of its own, as a service does that a command has left behind.
    leads_session: bool,
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

/// The process that was started for an item, as the item's state has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pid: i32,
    start: u64,
    digest: String,
    /// The boot of the system in which it was started: process ids and ticks begin anew with each. None of one that an earlier
    /// version noted, and where the system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<String>,
    /// The length of its log when it was started; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log_from: Option<u64>,
    /// The file that it writes to as its declared log; none if there is none, or that can't be known for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log: Option<Number>,
}

impl Started {
    pub(crate) fn new(alive: &Alive, digest: &str, log_from: Option<u64>) -> Self {
        let pid = alive.pid.as_raw_nonzero().get();
        Self { pid, start: alive.start, digest: digest.to_owned(), boot: boot(), log_from, log: None }
    }

    /// Says to which file it writes as its declared log.
    pub(crate) fn with_log(mut self, log: Option<Number>) -> Self {
        self.log = log;
        self
    }

    /// The process that was noted in the state of an item; none if the item is no process, or none was started.
    pub fn of(state: &ItemState) -> Option<Self> {
        state.noted().map(|LastingNote::Started(started)| started)
    }

    /// The process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns whether it still runs: this very process, and no later one with its id.
    pub fn is_running(&self) -> bool {
        self.alive().is_some()
    }

    pub(crate) fn alive(&self) -> Option<Alive> {
        if self.boot.is_some() && self.boot != boot() {
            return None;
        }
        Alive::look(Pid::from_raw(self.pid)?).filter(|alive| alive.start == self.start)
    }

    /// Returns whether the process, which runs, still writes to the file that was its log when it was started.
    pub(crate) fn writes_to(&self, log: Number) -> bool {
        let (output, errors) = (1, 2);
        [output, errors].into_iter().any(|descriptor| {
            let open = number_at(&format!("/proc/{}/fd/{descriptor}", self.pid));
            open.is_some_and(|open| log.is(open))
        })
    }

    /// The process with the digest of what it was started as, if it runs.
    fn running(&self) -> Option<(Alive, String)> {
        Some((self.alive()?, self.digest.clone()))
    }
}

impl Alive {
    /// Looks at a process; none if it has ended, also if nobody has collected its end yet.
    pub(crate) fn look(pid: Pid) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?)
    }

    /// Looks at a process that was just started.
    pub(crate) fn of(child: &Child) -> Option<Self> {
        i32::try_from(child.id()).ok().and_then(Pid::from_raw).and_then(Self::look)
    }

    /// Reads what the kernel says of a process in its `stat` file.
    ///
    /// The session is read here and not asked for by `getsid`: it is 0 where its leader is outside the namespace of
    /// processes, as in a container that was entered, and such a number is no process id.
    fn parse(pid: Pid, stat: &str) -> Option<Self> {
        // The name before the last bracket may hold anything.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let state = *fields.first()?;
        let threads: u64 = fields.get(17)?.parse().ok()?;
        // The state is that of the first thread: while others run, the process does, with its files and ports.
        if matches!(state, "Z" | "X" | "x") && threads <= 1 {
            return None;
        }
        let group = Pid::from_raw(fields.get(2)?.parse().ok()?)?;
        let session: i32 = fields.get(3)?.parse().ok()?;
        let leads_session = session == pid.as_raw_nonzero().get();
        Some(Self { pid, group, leads_session, start: fields.get(19)?.parse().ok()? })
    }

    /// Returns whether the very same process is still alive.
    pub(crate) fn is_alive(&self) -> bool {
        Self::look(self.pid).is_some_and(|now| now.start == self.start)
    }
}

/// The boot that the system is in; none where it does not say.
fn boot() -> Option<String> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    BOOT.get_or_init(read).clone()
}

/// Kills all processes in whose environment a variable has this value, and what they start meanwhile.
pub(crate) fn kill_marked(variable: &str, value: &str) {
    let mark = format!("{variable}={value}");
    // One that is starting another may be overtaken by it.
    for _ in 0..KILL_ROUNDS {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let marked = entries.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let is_marked = environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes());
            is_marked.then(|| Alive::look(pid)).flatten()
        });
        let marked: Vec<Alive> = marked.collect();
        if marked.is_empty() {
            return;
        }
        for process in marked {
            // It may have ended by itself.
            let _ = kill_process(process.pid, Signal::KILL);
        }
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
        self.digest_of(TAG, environment)
    }

    fn digest_of<'a>(&self, tag: &str, environment: &'a [u8]) -> Option<&'a str> {
        environment.split(|&byte| byte == 0).find_map(|variable| {
            let value = std::str::from_utf8(variable).ok()?.strip_prefix(tag)?.strip_prefix('=')?;
            let rest = value.strip_prefix(self.set.as_str())?.strip_prefix('/')?;
            let (digest, name) = rest.split_once('/')?;
            (name == self.name.as_str()).then_some(digest)
        })
    }

    /// The main process, if it runs. All processes are only looked at where none was noted.
    pub(crate) fn main(&self, noted: Option<&Started>) -> Option<(Alive, String)> {
        noted.and_then(Started::running).or_else(|| self.find(noted).main)
    }

    /// Looks at all processes of the host.
    pub(crate) fn find(&self, noted: Option<&Started>) -> Running {
        let mut running = Running { main: noted.and_then(Started::running), all: Vec::new() };
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

    /// The command of the item that a run which was cut off had begun, if it still runs. What such a command has left
    /// behind, such as a service, has a session of its own.
    pub(crate) fn orphaned_command(&self) -> Option<Alive> {
        let entries = fs::read_dir("/proc").ok()?;
        entries.flatten().find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            self.digest_of(COMMAND_TAG, &environment)?;
            Alive::look(pid).filter(|alive| alive.pid == alive.group && !alive.leads_session)
        })
    }

    /// Marks that no other run of a command has, so that what this one started is told from what earlier ones did.
    pub(crate) fn unique_value(&self) -> String {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let number = RUNS.fetch_add(1, Ordering::Relaxed).to_string();
        let me = Alive::look(rustix::process::getpid()).map_or(0, |me| me.start).to_string();
        self.value(&short(&[&std::process::id().to_string(), &me, &number]))
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{PidfdFlags, pidfd_open};

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
    fn a_session_outside_the_namespace_is_nobodys() {
        let pid = Pid::from_raw(7).unwrap();
        let stat = |session| format!("7 (a) b) S 1 7 {session} 0{} 1 0 99 0", " 0".repeat(12));
        let alive = Alive::parse(pid, &stat(0)).unwrap();
        assert_eq!((alive.group, alive.leads_session, alive.start), (pid, false, 99));
        assert!(Alive::parse(pid, &stat(7)).unwrap().leads_session);
        assert!(!Alive::parse(pid, &stat(8)).unwrap().leads_session);
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_alive_until_the_others_have_ended_too() {
        let directory = tempfile::tempdir().unwrap();
        let (source, program) = (directory.path().join("p.c"), directory.path().join("p"));
        let text = "#include <pthread.h>
#include <unistd.h>
static void *other(void *p) { char c; read(0, &c, 1); return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, other, 0); pthread_exit(0); }
";
        fs::write(&source, text).unwrap();
        let compiled = Command::new("cc").arg("-pthread").arg(&source).arg("-o").arg(&program).status();
        assert!(compiled.unwrap().success());
        let mut child = Command::new(&program).stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        let state = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            let (_, rest) = stat.rsplit_once(") ").unwrap();
            rest.chars().next()
        };
        while state() != Some('Z') {
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(Alive::look(pid).is_some(), "the other thread waits for a line");
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        drop(child.stdin.take());
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
        assert_eq!(Alive::look(pid), None, "it has ended, and nobody has collected its end");
        child.wait().unwrap();
    }

    #[test]
    fn this_process_is_alive_and_known_by_its_start() {
        let me = Alive::look(rustix::process::getpid()).unwrap();
        assert!(me.is_alive());
        assert!(!Alive { start: me.start + 1, ..me }.is_alive(), "another one with the same id");
    }

    #[test]
    fn a_process_is_the_one_that_was_noted_only_while_it_runs() {
        let tag = Tag::new(&"set".into(), Path::new("/srv"), &"p".into());
        let me = Alive::look(rustix::process::getpid()).unwrap();
        let noted = Started::new(&me, "d2", None);
        assert_eq!(tag.main(Some(&noted)), Some((me, "d2".to_owned())));
        assert_eq!(tag.main(None), None);
        let ended = Started { start: me.start + 1, ..noted.clone() };
        assert_eq!(tag.main(Some(&ended)), None, "another one with the same id");
        let before = Started { boot: Some("another".to_owned()), ..noted.clone() };
        assert_eq!(
            tag.main(Some(&before)),
            None,
            "another one with the same id, as the system was started anew since"
        );
        let earlier = Started { boot: None, ..noted };
        assert!(
            tag.main(Some(&earlier)).is_some(),
            "of one that an earlier version noted, that is not known"
        );
    }
}
