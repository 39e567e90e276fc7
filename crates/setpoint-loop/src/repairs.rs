//! Repairs of what something else keeps changing: a few at once, then fewer and fewer.

use std::time::Duration;

use tokio::time::Instant;

/// How many repairs may follow each other at once.
const BURST: u32 = 3;

/// Decides when something may be repaired that something else keeps changing.
///
/// A few repairs are made at once. If it is changed again and again, it is *contested*, and each further repair waits twice
/// as long as the one before, up to a ceiling. When it is left alone for a while, it starts over.
///
/// ```
/// use std::time::Duration;
/// use tokio::time::Instant;
///
/// let mut repairs = setpoint_loop::Repairs::new(Duration::from_secs(3), Duration::from_mins(5));
/// let now = Instant::now();
/// assert!((0..3).all(|_| repairs.take(now).is_ok()));
/// assert_eq!(repairs.take(now), Err(now + Duration::from_secs(3)));
/// assert!(repairs.is_contested(now));
/// ```
#[derive(Clone, Debug)]
pub struct Repairs {
    first: Duration,
    ceiling: Duration,
    made: u32,
    last: Option<Instant>,
}

impl Repairs {
    /// Makes one whose first pause is `first`, and whose every pause is at most `ceiling`.
    pub fn new(first: Duration, ceiling: Duration) -> Self {
        Self { first: first.min(ceiling), ceiling, made: 0, last: None }
    }

    /// Records a repair that is about to be made, or returns when it may be made.
    pub fn take(&mut self, now: Instant) -> Result<(), Instant> {
        if self.is_quiet(now) {
            self.made = 0;
        }
        let due = self.last.filter(|_| self.made >= BURST).map(|last| last + self.pause());
        if let Some(due) = due.filter(|due| *due > now) {
            return Err(due);
        }
        self.made = self.made.saturating_add(1);
        self.last = Some(now);
        Ok(())
    }

    /// Returns whether something else keeps changing it.
    pub fn is_contested(&self, now: Instant) -> bool {
        self.made >= BURST && !self.is_quiet(now)
    }

    /// Returns when it counts as left alone, unless it is changed again.
    pub fn quiet_at(&self) -> Option<Instant> {
        self.last.map(|last| last + self.pause().max(self.first) * 3)
    }

    fn is_quiet(&self, now: Instant) -> bool {
        self.quiet_at().is_none_or(|quiet| quiet <= now)
    }

    /// The pause before the next repair.
    fn pause(&self) -> Duration {
        let doublings = self.made.saturating_sub(BURST).min(30);
        self.first.saturating_mul(2_u32.saturating_pow(doublings)).min(self.ceiling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_changed_all_the_time_is_repaired_less_and_less_often() {
        let mut repairs = Repairs::new(SECOND * 3, SECOND * 300);
        let start = Instant::now();
        let mut made = Vec::new();
        for tenth in 0..36_000_u32 {
            let now = start + SECOND * tenth / 10;
            if repairs.take(now).is_ok() {
                made.push((now - start).as_secs());
            }
        }
        assert_eq!(made[..6], [0, 0, 0, 3, 9, 21]);
        assert!(made.len() < 24, "{} in an hour", made.len());
    }

    #[test]
    fn what_is_left_alone_is_repaired_at_once_again() {
        let mut repairs = Repairs::new(SECOND * 3, SECOND * 300);
        let start = Instant::now();
        for _ in 0..4 {
            let _ = repairs.take(start);
        }
        assert!(repairs.is_contested(start + SECOND * 8));
        let quiet = repairs.quiet_at().unwrap();
        assert_eq!(quiet, start + SECOND * 9);
        assert!(!repairs.is_contested(quiet));
        assert!((0..3).all(|_| repairs.take(quiet).is_ok()));
    }
}
