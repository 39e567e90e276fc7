//! Waits for the ends of processes, on one thread for all of them.
//!
//! ```text
//!  process ids ──▶ a descriptor of the kernel for each ──▶ one thread ──▶ which have ended
//! ```

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::sync::Notify;

/// What a thread that only waits needs.
const STACK: usize = 64 * 1024;
/// How many ends are taken at once.
const AT_ONCE: usize = 64;
/// What stands for the end of the one who waits; processes are numbered from 1.
const CLOSED: u64 = 0;

/// Waits for the ends of any number of processes. The thread ends with this value.
#[derive(Debug)]
pub(super) struct EndsOfProcesses {
    epoll: Arc<OwnedFd>,
    ended: Arc<Mutex<BTreeSet<WaitId>>>,
    last: u64,
    /// The thread sees that it is closed.
    _held: OwnedFd,
}

/// One process that is waited for: tells it from any other, also from a later one with its process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WaitId(u64);

/// A process that is waited for, until this value is dropped.
#[derive(Debug)]
pub(super) struct AwaitedEnd {
    pub(super) id: WaitId,
    /// The kernel forgets who waits when it is closed.
    _process: OwnedFd,
}

impl EndsOfProcesses {
    /// Waits for nothing yet. `changed` is notified of each end.
    pub(super) fn new(changed: Arc<Notify>) -> io::Result<Self> {
        let epoll = Arc::new(epoll::create(CreateFlags::CLOEXEC)?);
        let (closed, held) = pipe_with(PipeFlags::CLOEXEC)?;
        epoll::add(&epoll, &closed, EventData::new_u64(CLOSED), EventFlags::empty())?;
        let ended = Arc::default();
        let thread =
            WaitingThread { epoll: Arc::clone(&epoll), _closed: closed, ended: Arc::clone(&ended), changed };
        std::thread::Builder::new()
            .name("ends of processes".to_owned())
            .stack_size(STACK)
            .spawn(move || thread.run())?;
        Ok(Self { epoll, ended, last: CLOSED, _held: held })
    }

    /// Waits for the end of a process, from now on.
    pub(super) fn wait_for(&mut self, pid: i32) -> io::Result<AwaitedEnd> {
        let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("it is no process id"))?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        self.last += 1;
        let id = WaitId(self.last);
        epoll::add(&self.epoll, &process, EventData::new_u64(id.0), EventFlags::IN | EventFlags::ONESHOT)?;
        Ok(AwaitedEnd { id, _process: process })
    }

    /// The processes that have ended since this was asked last.
    pub(super) fn take(&self) -> BTreeSet<WaitId> {
        std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the thread has.
struct WaitingThread {
    epoll: Arc<OwnedFd>,
    _closed: OwnedFd,
    ended: Arc<Mutex<BTreeSet<WaitId>>>,
    changed: Arc<Notify>,
}

impl WaitingThread {
    fn run(self) {
        let mut events = Vec::with_capacity(AT_ONCE);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                // What ends from now on is noticed when it is read.
                Err(_) => return,
            }
            let ids: BTreeSet<u64> = events.iter().map(|event: &epoll::Event| event.data.u64()).collect();
            if ids.contains(&CLOSED) {
                return;
            }
            if !ids.is_empty() {
                let ended = ids.into_iter().map(WaitId);
                self.ended.lock().unwrap_or_else(PoisonError::into_inner).extend(ended);
                self.changed.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::time::Duration;

    use super::*;

    fn sleeping() -> Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    fn pid(child: &Child) -> i32 {
        i32::try_from(child.id()).unwrap()
    }

    #[tokio::test]
    async fn each_end_is_noticed_once_and_only_of_what_is_waited_for() {
        let changed = Arc::new(Notify::new());
        let mut ends = EndsOfProcesses::new(Arc::clone(&changed)).unwrap();
        let mut children: Vec<Child> = (0..20).map(|_| sleeping()).collect();
        let mut waits: Vec<AwaitedEnd> =
            children.iter().map(|child| ends.wait_for(pid(child)).unwrap()).collect();
        // Nobody wants to know of the last one any more.
        drop(waits.pop());
        for i in [19, 3, 7] {
            children[i].kill().unwrap();
            children[i].wait().unwrap();
        }
        let mut ended = BTreeSet::new();
        while ended.len() < 2 {
            tokio::time::timeout(Duration::from_mins(1), changed.notified()).await.unwrap();
            ended.extend(ends.take());
        }
        assert_eq!(ended, BTreeSet::from([waits[3].id, waits[7].id]));
        assert_eq!(ends.take(), BTreeSet::new(), "each is noticed once");
        for child in &mut children {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    #[test]
    fn the_thread_ends_with_who_asked_for_it_also_while_processes_run() {
        let changed = Arc::new(Notify::new());
        let mut ends = EndsOfProcesses::new(Arc::clone(&changed)).unwrap();
        let mut child = sleeping();
        let wait = ends.wait_for(pid(&child)).unwrap();
        drop((wait, ends));
        while Arc::strong_count(&changed) > 1 {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
