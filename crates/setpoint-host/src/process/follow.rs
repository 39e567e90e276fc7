//! Notices at once when a process of the set ends.
//!
//! ```text
//!  state of the items ─────────┐
//!  what operations start, end ─┴─▶ process ids ──▶ a thread that waits for each end ──▶ exit status, log
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use setpoint_engine::{CurrentGraph, ItemState, Presence};
use setpoint_graph::ItemRef;
use tokio::sync::Notify;

use super::find::{Started, Tag};
use super::log::last_lines_since;
use crate::host::Host;
use crate::kinds::Process;

/// What a thread that only waits needs.
const STACK: usize = 64 * 1024;

/// Follows the processes of a set, and notices at once when one ends.
///
/// What it can't follow is noticed when it is read.
#[derive(Debug)]
pub struct ProcessEnds {
    host: Host,
    followed: BTreeMap<ItemRef, Followed>,
}

/// What operations have started and are about to end: so processes are followed also while a run goes on.
#[derive(Debug, Default)]
pub(crate) struct ProcessOperations {
    unseen: Mutex<Vec<ProcessOperation>>,
    /// Is notified of each of them, and whenever a process has ended that is followed.
    changed: Arc<Notify>,
}

#[derive(Debug)]
enum ProcessOperation {
    /// A process runs for an item.
    Started { item: ItemRef, started: Started, log: Option<PathBuf> },
    /// The processes of an item are asked to end.
    Ends(ItemRef),
}

impl ProcessOperations {
    /// A process runs for an item from now on.
    pub(crate) fn started(&self, item: &ItemRef, started: Started, log: Option<PathBuf>) {
        self.add(ProcessOperation::Started { item: item.clone(), started, log });
    }

    /// The processes of an item are about to be asked to end.
    pub(crate) fn ends(&self, item: &ItemRef) {
        self.add(ProcessOperation::Ends(item.clone()));
    }

    fn add(&self, operation: ProcessOperation) {
        self.unseen.lock().unwrap_or_else(PoisonError::into_inner).push(operation);
        self.changed.notify_one();
    }

    fn take(&self) -> Vec<ProcessOperation> {
        std::mem::take(&mut *self.unseen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A process that has ended without anyone having asked it to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedProcess {
    /// Whose process it was.
    pub item: ItemRef,
    /// Its process id.
    pub pid: i32,
    /// How it ended; none if another program had started it.
    pub status: Option<ExitStatus>,
    /// The last lines of its log; none of an item that is sensitive.
    pub log: Vec<String>,
}

#[derive(Debug)]
struct Followed {
    started: Started,
    log: Option<PathBuf>,
    stage: Stage,
}

/// How far it is with a process that is followed.
#[derive(Debug)]
enum Stage {
    /// It runs, and a thread waits for its end.
    Runs { _waiter: Waiter },
    /// It runs, and nothing waits for its end.
    RunsUnseen,
    /// It has ended, which nobody knows yet.
    Ended,
    /// It has ended, which was reported.
    Reported,
}

impl ProcessEnds {
    /// Follows nothing yet.
    pub fn new(host: &Host) -> Self {
        Self { host: host.clone(), followed: BTreeMap::new() }
    }

    /// Follows the processes that are known to run, and no others.
    pub fn follow(&mut self, current: &CurrentGraph) {
        self.follow_operations();
        let mut earlier = std::mem::take(&mut self.followed);
        for node in current.items() {
            let Some(process) = node.item().get::<Process>() else { continue };
            if node.state().is_some_and(|state| state.presence() != Presence::Present || state.is_unknown()) {
                continue;
            }
            let Some(started) = self.started(process, node.state()) else { continue };
            let item = node.reference();
            let kept = earlier.remove(item).filter(|followed| followed.started == started);
            let followed = kept
                .unwrap_or_else(|| Followed::new(started, self.host.shown_log_of(process), self.changed()));
            self.followed.insert(item.clone(), followed);
        }
    }

    /// Follows what operations have started, and not what they end.
    fn follow_operations(&mut self) {
        for operation in self.host.0.process_operations.take() {
            match operation {
                ProcessOperation::Started { item, started, log } => {
                    let followed = Followed::new(started, log, self.changed());
                    self.followed.insert(item, followed);
                }
                ProcessOperation::Ends(item) => drop(self.followed.remove(&item)),
            }
        }
    }

    /// What is notified whenever something may be different.
    fn changed(&self) -> &Arc<Notify> {
        &self.host.0.process_operations.changed
    }

    /// The process of an item: as it was noted, or, where an earlier version started it, as it is found.
    fn started(&self, process: &Process, state: Option<&ItemState>) -> Option<Started> {
        state.and_then(Started::of).or_else(|| {
            let tag = Tag::new(self.host.set(), self.host.root(), &process.name);
            let (alive, digest) = tag.main(None)?;
            Some(Started::new(&alive, &digest, None))
        })
    }

    /// Waits until a process has ended, and gives the items of all that have and were not taken yet.
    pub async fn next(&mut self) -> BTreeSet<ItemRef> {
        loop {
            self.follow_operations();
            let ended = self.followed.iter().filter(|(_, followed)| followed.has_ended());
            let ended: BTreeSet<ItemRef> = ended.map(|(item, _)| item.clone()).collect();
            if !ended.is_empty() {
                return ended;
            }
            // One that ends meanwhile is not missed: the notification waits.
            self.changed().notified().await;
        }
    }

    /// Takes the processes that have ended, of the items that are wanted. Each is taken once.
    pub fn take(&mut self, wanted: impl Fn(&ItemRef) -> bool) -> Vec<EndedProcess> {
        self.follow_operations();
        let mut taken = Vec::new();
        for (item, followed) in &mut self.followed {
            if !wanted(item) || !followed.has_ended() {
                continue;
            }
            followed.stage = Stage::Reported;
            let Followed { started, log, .. } = followed;
            let status = self.host.0.children.ended(started.pid().unsigned_abs());
            let log = log.as_ref().map(|log| last_lines_since(log, started.log_from.unwrap_or(0)));
            let (item, pid, log) = (item.clone(), started.pid(), log.unwrap_or_default());
            taken.push(EndedProcess { item, pid, status, log });
        }
        taken
    }
}

impl Followed {
    fn new(started: Started, log: Option<PathBuf>, changed: &Arc<Notify>) -> Self {
        Self { stage: Stage::of(&started, changed), started, log }
    }

    /// Returns whether it has ended, which was not reported.
    fn has_ended(&self) -> bool {
        match self.stage {
            Stage::Runs { .. } | Stage::RunsUnseen => !self.started.is_running(),
            Stage::Ended => true,
            Stage::Reported => false,
        }
    }
}

impl Stage {
    fn of(started: &Started, changed: &Arc<Notify>) -> Self {
        let waiter = Waiter::new(started.pid(), Arc::clone(changed));
        // Looked at afterwards: what is waited for is then this process, and no later one with its id.
        match waiter {
            _ if !started.is_running() => Self::Ended,
            Some(waiter) => Self::Runs { _waiter: waiter },
            None => Self::RunsUnseen,
        }
    }
}

/// A thread that waits for the end of a process. It ends with this value.
#[derive(Debug)]
struct Waiter {
    /// The thread sees that it is closed.
    _held: OwnedFd,
}

impl Waiter {
    fn new(pid: i32, ended: Arc<Notify>) -> Option<Self> {
        let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let (let_go, held) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        let wait = move || {
            let mut descriptors =
                [PollFd::new(&process, PollFlags::IN), PollFd::new(&let_go, PollFlags::empty())];
            while poll(&mut descriptors, None) == Err(rustix::io::Errno::INTR) {}
            if descriptors.first().is_some_and(|process| !process.revents().is_empty()) {
                ended.notify_one();
            }
        };
        let thread = std::thread::Builder::new().name(format!("process {pid}")).stack_size(STACK).spawn(wait);
        thread.ok().map(|_| Self { _held: held })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_waiter_notices_an_end_and_is_gone_with_who_holds_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let ended = Arc::new(Notify::new());
        let waiter = Waiter::new(i32::try_from(child.id()).unwrap(), Arc::clone(&ended)).unwrap();
        let other = Waiter::new(i32::try_from(child.id()).unwrap(), Arc::clone(&ended)).unwrap();
        drop(other);
        while Arc::strong_count(&ended) > 2 {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        runtime.block_on(async {
            tokio::time::timeout(Duration::from_mins(1), ended.notified()).await.unwrap();
        });
        child.wait().unwrap();
        drop(waiter);
    }
}
