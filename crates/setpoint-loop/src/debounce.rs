//! Waits for a quiet moment, but never for ever.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::trigger::Listener;

/// Finds when a burst of events is over: after a quiet time without one, or when the first of them has waited
/// as long as any may.
///
/// ```
/// use std::time::Duration;
/// use tokio::time::Instant;
///
/// let mut debouncer = setpoint_loop::Debouncer::new(Duration::from_secs(1), Duration::from_secs(5));
/// let start = Instant::now();
/// assert_eq!(debouncer.due(), None, "nothing happened yet");
/// debouncer.note(start);
/// assert_eq!(debouncer.due(), Some(start + Duration::from_secs(1)));
/// debouncer.note(start + Duration::from_millis(4_500));
/// assert_eq!(debouncer.due(), Some(start + Duration::from_secs(5)), "the first has waited long enough");
/// ```
#[derive(Clone, Debug)]
pub struct Debouncer {
    quiet: Duration,
    longest: Duration,
    burst: Option<Burst>,
    /// How many firings of the burst were seen by [`settled`](Self::settled).
    seen: u64,
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    first: Instant,
    last: Instant,
}

impl Debouncer {
    /// Makes one that waits for `quiet` without an event, and never longer than `longest` after the first.
    pub fn new(quiet: Duration, longest: Duration) -> Self {
        Self { quiet, longest: longest.max(quiet), burst: None, seen: 0 }
    }

    /// Records an event.
    pub fn note(&mut self, now: Instant) {
        self.burst = Some(match self.burst {
            Some(burst) => Burst { last: now.max(burst.last), ..burst },
            None => Burst { first: now, last: now },
        });
    }

    /// When the burst is over; none if there is none.
    pub fn due(&self) -> Option<Instant> {
        self.burst.map(|burst| (burst.last + self.quiet).min(burst.first + self.longest))
    }

    /// Forgets the burst: it was acted upon.
    pub fn reset(&mut self) {
        self.burst = None;
        self.seen = 0;
    }

    /// Waits for a burst of firings and its end; gives how many there were, or none when no trigger is left.
    ///
    /// What was fired before the last trigger was dropped is still reported. Dropping the future loses nothing: the next call
    /// goes on with the burst that it was in.
    pub async fn settled(&mut self, listener: &mut Listener) -> Option<u64> {
        loop {
            let due = self.due();
            let over = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = over => break,
                more = listener.fired() => match more {
                    Some(more) => {
                        self.seen += more;
                        self.note(Instant::now());
                    }
                    None if due.is_some() => break,
                    None => return None,
                },
            }
        }
        let seen = self.seen;
        self.reset();
        Some(seen)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::time::sleep;

    use super::*;
    use crate::trigger;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_reported_once_when_it_is_over() {
        let (trigger, mut listener) = trigger();
        let start = Instant::now();
        tokio::spawn(async move {
            for _ in 0..3 {
                trigger.fire();
                sleep(SECOND / 2).await;
            }
            sleep(SECOND * 60).await;
        });
        let mut debouncer = Debouncer::new(SECOND, SECOND * 5);
        assert_eq!(debouncer.settled(&mut listener).await, Some(3));
        assert_eq!(start.elapsed(), SECOND * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_that_never_ends_is_reported_again_and_again() {
        let (trigger, mut listener) = trigger();
        let start = Instant::now();
        let endless = tokio::spawn(async move {
            loop {
                trigger.fire();
                sleep(SECOND / 10).await;
            }
        });
        let mut debouncer = Debouncer::new(SECOND, SECOND * 5);
        assert!(debouncer.settled(&mut listener).await.is_some());
        assert!(debouncer.settled(&mut listener).await.is_some());
        assert!(start.elapsed() <= SECOND * 11);
        endless.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_burst_is_reported_after_the_triggers_are_gone() {
        let (trigger, mut listener) = trigger();
        trigger.fire();
        drop(trigger);
        let mut debouncer = Debouncer::new(SECOND, SECOND);
        assert_eq!(debouncer.settled(&mut listener).await, Some(1));
        assert_eq!(debouncer.settled(&mut listener).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_was_given_up_loses_no_burst() {
        let (trigger, mut listener) = trigger();
        let mut debouncer = Debouncer::new(SECOND, SECOND * 5);
        trigger.fire();
        let start = Instant::now();
        // Given up in the middle of the burst, again and again.
        for _ in 0..3 {
            assert!(tokio::time::timeout(SECOND / 4, debouncer.settled(&mut listener)).await.is_err());
        }
        assert_eq!(debouncer.settled(&mut listener).await, Some(1));
        assert_eq!(start.elapsed(), SECOND, "the burst is as old as its firing");
    }

    proptest! {
        #[test]
        fn no_event_waits_longer_than_the_longest_nor_shorter_than_the_quiet_time(
            gaps in prop::collection::vec(0_u64..3_000, 1..50),
        ) {
            let (quiet, longest) = (SECOND, SECOND * 5);
            let start = Instant::now();
            let mut debouncer = Debouncer::new(quiet, longest);
            let mut now = start;
            debouncer.note(start);
            for gap in gaps {
                now += Duration::from_millis(gap);
                debouncer.note(now);
                let due = debouncer.due().unwrap();
                prop_assert!(due <= start + longest);
                prop_assert!(due == now + quiet || due == start + longest);
            }
        }
    }
}
