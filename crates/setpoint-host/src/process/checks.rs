//! Checks of commands while they run, for whoever wants to say which take long.

use std::fmt;
use std::sync::{Arc, OnceLock};

use setpoint_graph::ItemRef;

type Listener = Arc<dyn Fn(&ItemRef, CheckEvent) + Send + Sync>;

/// What happens to the check of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckEvent {
    /// It has to wait: what a run that was cut off had begun for the command still runs.
    Waits,
    /// It begins.
    Begins,
    /// It has ended, or was given up; so has the waiting.
    Ended,
}

/// Who listens to the checks of all commands of a host; nobody at first.
#[derive(Default)]
pub(crate) struct Checks(OnceLock<Listener>);

impl Checks {
    /// Sets who listens, once.
    pub(crate) fn listen(&self, listener: impl Fn(&ItemRef, CheckEvent) + Send + Sync + 'static) {
        // Whoever listens first goes on doing so.
        let _ = self.0.set(Arc::new(listener));
    }

    /// A check begins; it has ended when this is dropped.
    pub(crate) fn begin(&self, item: &ItemRef) -> Option<Check> {
        self.tell(item, CheckEvent::Begins)
    }

    /// A check has to wait, until this is dropped.
    pub(crate) fn wait(&self, item: &ItemRef) -> Option<Check> {
        self.tell(item, CheckEvent::Waits)
    }

    fn tell(&self, item: &ItemRef, event: CheckEvent) -> Option<Check> {
        let listener = Arc::clone(self.0.get()?);
        listener(item, event);
        Some(Check { listener, item: item.clone() })
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").field("is_listened_to", &self.0.get().is_some()).finish()
    }
}

/// A check that runs, or waits.
pub(crate) struct Check {
    listener: Listener,
    item: ItemRef,
}

impl Drop for Check {
    fn drop(&mut self) {
        (self.listener)(&self.item, CheckEvent::Ended);
    }
}
