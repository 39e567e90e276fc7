//! How long to wait before the next attempt: longer each time, never longer than a ceiling, and never all at
//! the same moment.

use std::time::Duration;

use fastrand::Rng;
use tokio::time::sleep;

/// Exponential backoff with full jitter: each pause is drawn evenly from zero to a bound that doubles with
/// each attempt up to a ceiling. Many that failed together don't come back together.
///
/// ```
/// use std::time::Duration;
///
/// let mut backoff = setpoint_loop::Backoff::new(
///     Duration::from_millis(250),
///     Duration::from_secs(20),
///     fastrand::Rng::with_seed(1),
/// );
/// assert!(backoff.pause() <= Duration::from_millis(250));
/// assert!(backoff.pause() <= Duration::from_millis(500));
/// assert_eq!(backoff.attempts(), 2);
/// backoff.reset();
/// assert!(backoff.pause() <= Duration::from_millis(250));
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    ceiling: Duration,
    attempts: u32,
    random: Rng,
}

impl Backoff {
    /// Makes one whose first pause is at most `first` and whose every pause is at most `ceiling`.
    pub fn new(first: Duration, ceiling: Duration, random: Rng) -> Self {
        Self { first: first.min(ceiling), ceiling, attempts: 0, random }
    }

    /// How many pauses there were since the last success.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The most that the next pause can be.
    pub fn bound(&self) -> Duration {
        self.first.saturating_mul(2_u32.saturating_pow(self.attempts)).min(self.ceiling)
    }

    /// The next pause.
    pub fn pause(&mut self) -> Duration {
        let bound = self.bound();
        self.attempts = self.attempts.saturating_add(1);
        bound.mul_f64(self.random.f64())
    }

    /// The next pause, where the other side asked for at least so long: it is added to the jitter, and is
    /// itself held to the ceiling.
    pub fn pause_after(&mut self, asked: Duration) -> Duration {
        asked.min(self.ceiling) + self.pause()
    }

    /// Starts over: an attempt succeeded.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

/// Tries until it succeeds, or until it fails in a way that `again` does not want to see tried again; pauses
/// in between. The operation and `again` get the number of the attempt, from 1.
///
/// ```
/// use std::time::Duration;
/// use setpoint_loop::{Backoff, retry};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let mut backoff = Backoff::new(Duration::from_secs(3), Duration::from_secs(30), fastrand::Rng::new());
/// let flaky = async |attempt| if attempt < 4 { Err("not yet") } else { Ok(attempt) };
/// assert_eq!(retry(&mut backoff, flaky, |_, attempt| attempt < 10).await, Ok(4));
/// # });
/// ```
pub async fn retry<T, E>(
    backoff: &mut Backoff,
    mut operation: impl AsyncFnMut(u32) -> Result<T, E>,
    mut again: impl FnMut(&E, u32) -> bool,
) -> Result<T, E> {
    let mut attempt = 1;
    loop {
        match operation(attempt).await {
            Ok(value) => {
                backoff.reset();
                return Ok(value);
            }
            Err(error) if again(&error, attempt) => sleep(backoff.pause()).await,
            Err(error) => return Err(error),
        }
        attempt = attempt.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use tokio::time::Instant;

    use super::*;

    const FIRST: Duration = Duration::from_millis(250);
    const CEILING: Duration = Duration::from_secs(20);

    #[test]
    fn equal_seeds_give_equal_pauses_and_different_seeds_others() {
        let pauses = |seed| {
            let mut backoff = Backoff::new(FIRST, CEILING, Rng::with_seed(seed));
            (0..10).map(|_| backoff.pause()).collect::<Vec<_>>()
        };
        assert_eq!(pauses(7), pauses(7));
        assert_ne!(pauses(7), pauses(8));
    }

    #[test]
    fn pauses_use_all_of_their_range() {
        let mut backoff = Backoff::new(CEILING, CEILING, Rng::with_seed(1));
        let pauses: Vec<_> = (0..1_000).map(|_| backoff.pause()).collect();
        assert!(pauses.iter().any(|pause| *pause < CEILING / 10));
        assert!(pauses.iter().any(|pause| *pause > CEILING / 10 * 9));
    }

    #[test]
    fn what_the_other_side_asks_for_is_kept_up_to_the_ceiling() {
        let mut backoff = Backoff::new(FIRST, CEILING, Rng::with_seed(1));
        let asked = Duration::from_secs(5);
        assert!(backoff.pause_after(asked) >= asked);
        assert!(backoff.pause_after(Duration::from_hours(24)) <= CEILING * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_to_be_tried_again_is_tried_once() {
        let mut backoff = Backoff::new(FIRST, CEILING, Rng::with_seed(1));
        let start = Instant::now();
        let mut tries = 0;
        let result: Result<(), _> = retry(
            &mut backoff,
            async |_| {
                tries += 1;
                Err("forbidden")
            },
            |error, _| *error != "forbidden",
        )
        .await;
        assert_eq!((result, tries, start.elapsed()), (Err("forbidden"), 1, Duration::ZERO));
    }

    proptest! {
        #[test]
        fn no_pause_is_above_its_bound_and_bounds_double_up_to_the_ceiling(
            seed in any::<u64>(), first in 0_u64..100_000, ceiling in 0_u64..100_000, attempts in 0_u32..200,
        ) {
            let ceiling = Duration::from_millis(ceiling);
            let mut backoff = Backoff::new(Duration::from_millis(first), ceiling, Rng::with_seed(seed));
            let mut before = None;
            for _ in 0..attempts {
                let bound = backoff.bound();
                prop_assert!(bound <= ceiling);
                if let Some(before) = before {
                    prop_assert_eq!(bound, ceiling.min(before * 2));
                }
                prop_assert!(backoff.pause() <= bound);
                before = Some(bound);
            }
        }
    }
}
