//! When a failed operation may be tried again.

use std::time::Duration;

use jiff::Timestamp;

use crate::clock::after;

/// How long to wait before the next attempt: the delay doubles with each failure up to a ceiling.
///
/// ```
/// use std::time::Duration;
/// use setpoint_engine::RetryPolicy;
/// let policy = RetryPolicy::exponential(Duration::from_secs(1), Duration::from_secs(5));
/// let delays: Vec<_> = (1..=4).map(|attempts| policy.delay(attempts).unwrap().as_secs()).collect();
/// assert_eq!(delays, [1, 2, 4, 5]);
/// assert_eq!(RetryPolicy::never().delay(1), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    first: Duration,
    ceiling: Duration,
    attempts: u32,
}

impl RetryPolicy {
    /// Doubles from the first delay up to the ceiling, and never gives up.
    pub const fn exponential(first: Duration, ceiling: Duration) -> Self {
        Self { first, ceiling, attempts: u32::MAX }
    }

    /// Tries again on every run.
    pub const fn every_run() -> Self {
        Self::exponential(Duration::ZERO, Duration::ZERO)
    }

    /// Never tries again until the intent changes.
    pub const fn never() -> Self {
        Self { first: Duration::ZERO, ceiling: Duration::ZERO, attempts: 0 }
    }

    /// Gives up after that many attempts, until the intent changes.
    #[must_use]
    pub const fn at_most(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The delay after that many failed attempts; none if there is no further one.
    pub fn delay(&self, attempts: u32) -> Option<Duration> {
        if attempts >= self.attempts {
            return None;
        }
        let factor = 1_u32.checked_shl(attempts.saturating_sub(1).min(31)).unwrap_or(u32::MAX);
        Some(self.first.saturating_mul(factor).min(self.ceiling))
    }

    /// When the next attempt is due; none if there is no further one.
    pub(crate) fn due(&self, attempts: u32, now: Timestamp) -> Option<Timestamp> {
        self.delay(attempts).map(|delay| after(now, delay))
    }
}

impl Default for RetryPolicy {
    /// From one second to five minutes.
    fn default() -> Self {
        Self::exponential(Duration::from_secs(1), Duration::from_mins(5))
    }
}
