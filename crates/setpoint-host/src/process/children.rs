//! The processes that this program started itself: their ends must be collected.

use std::collections::BTreeMap;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, PoisonError};

/// Children by their id.
#[derive(Debug, Default)]
pub(crate) struct Children(Mutex<BTreeMap<u32, Child>>);

impl Children {
    pub(crate) fn add(&self, child: Child) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(child.id(), child);
    }

    /// How a child ended; none while it runs, or if it is no child of this program.
    pub(crate) fn ended(&self, pid: u32) -> Option<ExitStatus> {
        let mut children = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let status = children.get_mut(&pid)?.try_wait().ok()??;
        children.remove(&pid);
        Some(status)
    }

    /// Collects all that have ended.
    pub(crate) fn reap(&self) {
        let mut children = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|_, child| matches!(child.try_wait(), Ok(None)));
    }
}
