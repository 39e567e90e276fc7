//! Something that something else keeps changing back: repaired less and less often, and reported. Plain state.

use std::time::Duration;

use setpoint_loop::Repairs;
use tokio::time::Instant;

/// What is repaired, and whether it is contested.
#[derive(Clone, Debug)]
pub(super) struct Contest {
    repairs: Repairs,
    /// The last change that was found, as a message.
    last: Option<String>,
    /// Until when the next repair has to wait.
    waits: Option<Instant>,
}

impl Contest {
    /// A few repairs are made at once; each further one waits twice as long as the one before, from `first` to `longest`.
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self { repairs: Repairs::new(first, longest), last: None, waits: None }
    }

    /// Records a change that is about to be repaired; returns whether it may be repaired now.
    pub(super) fn take(&mut self, change: String, now: Instant) -> bool {
        self.last = Some(change);
        self.waits = self.repairs.take(now).err();
        self.waits.is_none()
    }

    /// Records that everything is as it should be.
    pub(super) fn settled(&mut self) {
        self.waits = None;
    }

    /// Returns when a change that is found now may be repaired.
    pub(super) fn free_at(&self, now: Instant) -> Instant {
        self.repairs.clone().take(now).err().unwrap_or(now)
    }

    /// Returns whether a repair has to wait.
    pub(super) fn waits(&self, now: Instant) -> bool {
        self.waits.is_some_and(|until| until > now)
    }

    /// Returns what keeps being changed, if anything does.
    pub(super) fn contested(&self, now: Instant) -> Option<&str> {
        self.last.as_deref().filter(|_| self.repairs.is_contested(now))
    }

    /// Returns when it is to be looked at again: to repair it, or because it may have been left alone.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let waits = self.waits.filter(|until| *until > now);
        waits.or_else(|| self.contested(now).and_then(|_| self.repairs.quiet_at()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_changed_again_and_again_waits_and_is_reported_until_it_is_left_alone() {
        let mut contest = Contest::new(SECOND * 3, SECOND * 300);
        let now = Instant::now();
        assert_eq!(contest.due(now), None);
        assert!((0..3).all(|_| contest.take("`a` is `b`".to_owned(), now)));
        assert_eq!(contest.contested(now), Some("`a` is `b`"));
        assert!(!contest.waits(now));
        assert_eq!(contest.due(now), Some(now + SECOND * 9), "it may have been left alone by then");
        assert_eq!(contest.free_at(now), now + SECOND * 3);
        assert!(!contest.take("`a` is `c`".to_owned(), now));
        assert!(contest.waits(now) && !contest.waits(now + SECOND * 3));
        assert_eq!(contest.due(now), Some(now + SECOND * 3));
        contest.settled();
        assert_eq!((contest.waits(now), contest.contested(now + SECOND * 9)), (false, None));
    }
}
