//! The processes that this program started itself: their ends must be collected.

use std::collections::BTreeMap;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Children by their id.
#[derive(Debug, Default)]
pub(crate) struct Children(Mutex<BTreeMap<u32, Known>>);

#[derive(Debug)]
enum Known {
    /// It was running when it was looked at last.
    Running(Child),
    /// It has ended, and nobody has asked how.
    Ended(ExitStatus),
}

impl Children {
    pub(crate) fn add(&self, child: Child) {
        self.lock().insert(child.id(), Known::Running(child));
    }

    /// How a child ended; none while it runs, if it is no child of this program, or if this was asked before.
    pub(crate) fn ended(&self, pid: u32) -> Option<ExitStatus> {
        let mut children = self.lock();
        let status = match children.get_mut(&pid)? {
            Known::Running(child) => child.try_wait().ok()??,
            Known::Ended(status) => *status,
        };
        children.remove(&pid);
        Some(status)
    }

    /// Collects all that have ended. How they did is kept until somebody asks.
    pub(crate) fn reap(&self) {
        self.lock().retain(|_, known| {
            let Known::Running(child) = known else { return true };
            match child.try_wait() {
                Ok(None) => true,
                Ok(Some(status)) => {
                    *known = Known::Ended(status);
                    true
                }
                Err(_) => false,
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn how_a_child_ended_is_told_once_also_if_it_was_collected_before() {
        let children = Children::default();
        let child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let pid = child.id();
        children.add(child);
        while matches!(children.lock().get(&pid), Some(Known::Running(_))) {
            children.reap();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(children.ended(pid).and_then(|status| status.code()), Some(3));
        assert_eq!(children.ended(pid), None);
    }
}
