//! Notices at once when a process of the set ends.
//!
//! ```text
//!  state of the items ─────────┐
//!  what operations start, end ─┴─▶ process ids ──▶ a thread that waits for their ends ──▶ exit status, log
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use setpoint_engine::{CurrentGraph, ItemState, Presence};
use setpoint_graph::ItemRef;
use tokio::sync::Notify;

use super::ends::{AwaitedEnd, EndsOfProcesses, WaitId};
use super::find::{Started, Tag};
use super::log::last_lines_since;
use crate::host::Host;
use crate::kinds::Process;

/// Follows the processes of a set, and notices at once when one ends.
///
/// What it can't follow is noticed when it is read.
#[derive(Debug)]
pub struct ProcessEnds {
    host: Host,
    followed: BTreeMap<ItemRef, Followed>,
    /// The items of those whose end is waited for.
    waited_for: BTreeMap<WaitId, ItemRef>,
    /// None until there is something to wait for.
    ends: Option<EndsOfProcesses>,
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
    /// It runs, and its end is waited for.
    Runs(AwaitedEnd),
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
        Self { host: host.clone(), followed: BTreeMap::new(), waited_for: BTreeMap::new(), ends: None }
    }

    /// Follows the processes that are known to run, and no others.
    pub fn follow(&mut self, current: &CurrentGraph) {
        self.catch_up();
        self.host.0.children.reap();
        let mut earlier = std::mem::take(&mut self.followed);
        self.waited_for.clear();
        for node in current.items() {
            let Some(process) = node.item().get::<Process>() else { continue };
            if node.state().is_some_and(|state| state.presence() != Presence::Present || state.is_unknown()) {
                continue;
            }
            let Some(started) = self.started(process, node.state()) else { continue };
            let item = node.reference();
            let kept = earlier.remove(item).filter(|followed| followed.started == started);
            let followed = match kept {
                Some(followed) => followed,
                None => self.followed(started, self.host.shown_log_of(process)),
            };
            self.add(item.clone(), followed);
        }
    }

    fn add(&mut self, item: ItemRef, followed: Followed) {
        self.remove(&item);
        if let Stage::Runs(wait) = &followed.stage {
            self.waited_for.insert(wait.id, item.clone());
        }
        self.followed.insert(item, followed);
    }

    /// Does not follow the process of an item any more.
    fn remove(&mut self, item: &ItemRef) -> Option<Followed> {
        let followed = self.followed.remove(item)?;
        if let Stage::Runs(wait) = &followed.stage {
            self.waited_for.remove(&wait.id);
        }
        Some(followed)
    }

    /// Follows a process from now on.
    fn followed(&mut self, started: Started, log: Option<PathBuf>) -> Followed {
        let wait = self.wait_for(started.pid());
        let stage = match wait {
            // Looked at afterwards: what is waited for is then this process, and no later one with its id.
            _ if !started.is_running() => Stage::Ended,
            Ok(wait) => Stage::Runs(wait),
            Err(_) => Stage::RunsUnseen,
        };
        Followed { started, log, stage }
    }

    fn wait_for(&mut self, pid: i32) -> io::Result<AwaitedEnd> {
        let ends = match self.ends.take() {
            Some(ends) => ends,
            None => EndsOfProcesses::new(Arc::clone(self.changed()))?,
        };
        self.ends.insert(ends).wait_for(pid)
    }

    /// Learns what has happened since.
    fn catch_up(&mut self) {
        self.follow_operations();
        for id in self.ends.as_ref().map(EndsOfProcesses::take).unwrap_or_default() {
            let Some(item) = self.waited_for.remove(&id) else { continue };
            // Another process may run for the item by now.
            let is_it = |followed: &Followed| matches!(&followed.stage, Stage::Runs(wait) if wait.id == id);
            if self.followed.get(&item).is_some_and(is_it)
                && let Some(Followed { started, log, .. }) = self.followed.remove(&item)
            {
                // It is waited for again if it runs all the same.
                let followed = self.followed(started, log);
                self.add(item, followed);
            }
        }
    }

    /// Follows what operations have started, and not what they end.
    fn follow_operations(&mut self) {
        for operation in self.host.0.process_operations.take() {
            match operation {
                ProcessOperation::Started { item, started, log } => {
                    let followed = self.followed(started, log);
                    self.add(item, followed);
                }
                ProcessOperation::Ends(item) => drop(self.remove(&item)),
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
            self.catch_up();
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
        self.catch_up();
        let mut taken = Vec::new();
        for (item, followed) in &mut self.followed {
            if !followed.has_ended() || !wanted(item) {
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

    /// Takes the processes of items that were found to be gone: also where their end was not noticed yet.
    pub fn take_of(&mut self, items: &BTreeSet<ItemRef>) -> Vec<EndedProcess> {
        self.follow_operations();
        for item in items {
            if let Some(followed) = self.followed.get_mut(item)
                && matches!(followed.stage, Stage::Runs(_))
                && !followed.started.is_running()
            {
                followed.stage = Stage::Ended;
            }
        }
        self.take(|item| items.contains(item))
    }
}

impl Followed {
    /// Returns whether it has ended, which was not reported.
    fn has_ended(&self) -> bool {
        match self.stage {
            Stage::Runs(_) | Stage::Reported => false,
            Stage::RunsUnseen => !self.started.is_running(),
            Stage::Ended => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::Duration;

    use rustix::process::Pid;

    use super::*;
    use crate::HostOptions;
    use crate::process::Alive;

    fn sleeping() -> (Child, Started) {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        (child, Started::new(&Alive::look(pid).unwrap(), "", None))
    }

    #[tokio::test]
    async fn the_end_of_an_old_process_leaves_the_new_one_of_its_item_followed() {
        let directory = tempfile::tempdir().unwrap();
        let host = Host::open(HostOptions::new(directory.path(), "set")).unwrap();
        let (item, mut ends) = (ItemRef::of::<Process>("p"), ProcessEnds::new(&host));
        let operations = &host.0.process_operations;
        let (mut old, started) = sleeping();
        operations.started(&item, started, None);
        ends.catch_up();
        operations.changed.notified().await;
        // It ends right when it is asked to, and another one is started before anybody knows of it.
        old.kill().unwrap();
        old.wait().unwrap();
        tokio::time::timeout(Duration::from_mins(1), operations.changed.notified()).await.unwrap();
        let (mut new, started) = sleeping();
        operations.ends(&item);
        operations.started(&item, started, None);
        ends.catch_up();
        assert!(ends.followed.contains_key(&item), "the new one is followed");
        new.kill().unwrap();
        new.wait().unwrap();
        let ended = tokio::time::timeout(Duration::from_mins(1), ends.next()).await.unwrap();
        assert_eq!(ended, BTreeSet::from([item]));
    }
}
