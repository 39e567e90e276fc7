//! What is known of a namespace between two passes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use setpoint_consul::watch::Snapshot;
use setpoint_kube::known::{Known, News};
use tokio::sync::watch;
use tokio::time::Instant;

use super::contest::Contest;
use super::keys::intact;
use super::publishing::Publishing;
use super::references::ObservedKey;
use super::structures::{Expected, Followed, Structures};
use crate::api::Composite;
use crate::settings::Settings;
use setpoint_structure::prefix;

/// How long a status that something else changed is left as it is.
const STATUS_REPAIR: Duration = Duration::from_secs(5);

/// What is known between two passes.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) publishing: Option<Publishing>,
    /// The structure that the winner is a part of, as Consul shows it.
    pub(super) structure: Option<Structure>,
    /// What was observed of the key that refers to the structure.
    pub(super) reference: Option<ObservedKey>,
    /// The Composite that counts, as it was last read or written.
    pub(super) winner: Option<Composite>,
    pub(super) declared: BTreeMap<String, String>,
    /// The Composites of the namespace as they were last looked at, or written.
    pub(super) known: Known,
    /// When a status is repaired that something else changed.
    pub(super) repair_at: Option<Instant>,
    /// Keys that something else keeps changing.
    pub(super) keys: Mutex<Contest>,
    /// Statuses that something else keeps changing.
    pub(super) status: Contest,
    /// Whether it was reported that something else keeps changing the status.
    pub(super) status_reported: bool,
    /// What the namespace keeps in which structure, shared with all that follow that structure.
    pub(super) expected: Option<(String, Arc<Expected>)>,
    /// Whether something was written to Consul that was not looked at since.
    pub(super) wrote: bool,
}

impl Memory {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            publishing: None,
            structure: None,
            reference: None,
            winner: None,
            declared: BTreeMap::new(),
            known: Known::default(),
            repair_at: None,
            keys: Mutex::new(Contest::new(settings.apply_retry_time, settings.check_interval)),
            status: Contest::new(STATUS_REPAIR, settings.check_interval),
            status_reported: false,
            expected: None,
            wrote: false,
        }
    }

    /// Follows the structure of a composite, whether it is published or not: own keys are put back in any case.
    pub(super) fn follow(&mut self, structures: &Structures, composite: &str) {
        if self.structure.as_ref().is_none_or(|structure| structure.composite != composite) {
            self.structure = Some(Structure::follow(structures, composite));
        }
    }

    /// Returns whether the latest snapshot shows our own keys as they should be, as far as they may be put back now.
    pub(super) fn is_structure_intact(&self) -> bool {
        let shown = self.structure.as_ref().is_none_or(|structure| structure.shows(&self.declared));
        shown || self.keys().waits(Instant::now())
    }

    /// The keys that something else keeps changing.
    pub(super) fn keys(&self) -> MutexGuard<'_, Contest> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules what follows from a change; a status is repaired after a while, and not at once: another that does the same would
    /// answer for ever.
    pub(super) fn note(&mut self, news: News) {
        let now = Instant::now();
        self.repair_at = match news {
            News::Status => {
                self.repair_at.or_else(|| Some(self.status.free_at(now).max(now + STATUS_REPAIR)))
            }
            // What was seen before was an own status, older than the last one.
            News::None | News::Declared => None,
        };
    }

    /// Records that everything is about to be looked at, and that statuses are repaired which something else changed.
    pub(super) fn begin_repair(&mut self) {
        if self.repair_at.take().is_some() {
            self.status.take("the status".to_owned(), Instant::now());
            self.status.settled();
        }
    }

    /// Returns the next time at which there is something to look at by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        [self.repair_at, self.keys().due(now), self.status.due(now)].into_iter().flatten().min()
    }
}

/// A structure that is followed.
#[derive(Debug)]
pub(super) struct Structure {
    composite: String,
    snapshot: watch::Receiver<Option<Snapshot>>,
    _followed: Arc<Followed>,
}

impl Structure {
    fn follow(structures: &Structures, composite: &str) -> Self {
        let followed = structures.follow(composite);
        let mut snapshot = followed.snapshot.clone();
        snapshot.mark_unchanged();
        Self { composite: composite.to_owned(), snapshot, _followed: followed }
    }

    /// Waits until Consul shows something new of it; of none there is never anything.
    pub(super) async fn changed(structure: Option<&mut Self>) {
        if let Some(structure) = structure
            && structure.snapshot.changed().await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Returns whether it shows declared keys as they should be, as far as anything is known of it.
    fn shows(&self, declared: &BTreeMap<String, String>) -> bool {
        let snapshot = self.snapshot.borrow();
        snapshot
            .as_ref()
            .is_none_or(|snapshot| intact(declared, &prefix(&self.composite), snapshot.present()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_status_that_is_seen_late_is_not_repaired() {
        let mut memory = Memory::new(&Settings::default());
        memory.note(News::Status);
        assert!(memory.due().is_some());
        // The last own write is seen.
        memory.note(News::None);
        assert_eq!(memory.due(), None);
        // What stays different is repaired, once for all that was seen.
        memory.note(News::Status);
        let due = memory.due();
        memory.note(News::Status);
        assert_eq!(memory.due(), due);
    }
}
