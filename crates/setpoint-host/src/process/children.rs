//! The processes that this program started itself: their ends must be collected.

use std::collections::BTreeMap;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it is looked whether a process has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Children by their id.
#[derive(Debug, Default)]
pub(crate) struct Children(Mutex<BTreeMap<u32, KnownChild>>);

#[derive(Debug)]
enum KnownChild {
    /// It was running when it was looked at last.
    Running(Child),
    /// It has ended, and nobody has asked how.
    Ended(ExitStatus),
}

impl Children {
    pub(crate) fn add(&self, child: Child) {
        self.lock().insert(child.id(), KnownChild::Running(child));
    }

    /// How a child ended; none while it runs, if it is no child of this program, or if this was asked before.
    pub(crate) fn ended(&self, pid: u32) -> Option<ExitStatus> {
        let mut children = self.lock();
        let status = match children.get_mut(&pid)? {
            KnownChild::Running(child) => child.try_wait().ok()??,
            KnownChild::Ended(status) => *status,
        };
        children.remove(&pid);
        Some(status)
    }

    /// Waits for the end of a process. Gives its exit status if it is a child of this program.
    pub(crate) async fn end_of(&self, pid: u32, is_alive: impl Fn() -> bool) -> Option<ExitStatus> {
        loop {
            // In this order: the status of one that ends between the two is still collected.
            let alive = is_alive();
            let status = self.ended(pid);
            if status.is_some() || !alive {
                return status;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Collects all that have ended. How they did is kept until somebody asks.
    pub(crate) fn reap(&self) {
        self.lock().retain(|_, known| {
            let KnownChild::Running(child) = known else { return true };
            match child.try_wait() {
                Ok(None) => true,
                Ok(Some(status)) => {
                    *known = KnownChild::Ended(status);
                    true
                }
                Err(_) => false,
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, KnownChild>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::process::{Command, Stdio};

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    #[tokio::test]
    async fn how_a_child_ended_is_told_also_if_it_ends_while_it_is_looked_at() {
        let children = Children::default();
        let mut child =
            Command::new("sh").args(["-c", "read line; exit 3"]).stdin(Stdio::piped()).spawn().unwrap();
        let (pid, stdin) = (child.id(), Cell::new(child.stdin.take()));
        children.add(child);
        let pidfd = pidfd_open(Pid::from_raw(pid.cast_signed()).unwrap(), PidfdFlags::empty()).unwrap();
        let ends_meanwhile = || {
            drop(stdin.take());
            poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
            false
        };
        let status = children.end_of(pid, ends_meanwhile).await;
        assert_eq!(status.and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn how_a_child_ended_is_told_once_also_if_it_was_collected_before() {
        let children = Children::default();
        let child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let pid = child.id();
        children.add(child);
        while matches!(children.lock().get(&pid), Some(KnownChild::Running(_))) {
            children.reap();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(children.ended(pid).and_then(|status| status.code()), Some(3));
        assert_eq!(children.ended(pid), None);
    }
}
