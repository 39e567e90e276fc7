//! A token bucket: a few at once, then so many in a time.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Lets a burst pass at once, and one more for each interval after that.
///
/// It holds no count but the time at which it would be full again, so it is exact whatever the intervals.
///
/// ```
/// use std::time::Duration;
/// use tokio::time::Instant;
///
/// let mut bucket = setpoint_loop::TokenBucket::new(2, Duration::from_secs(3));
/// let now = Instant::now();
/// assert_eq!(bucket.take(now), Ok(()));
/// assert_eq!(bucket.take(now), Ok(()));
/// assert_eq!(bucket.take(now), Err(now + Duration::from_secs(3)), "the next token is there then");
/// ```
#[derive(Clone, Debug)]
pub struct TokenBucket {
    burst: u32,
    refill: Duration,
    /// When the bucket would be full if nothing more were taken; none while it is full.
    full: Option<Instant>,
}

impl TokenBucket {
    /// Makes a full bucket of `burst` tokens (at least one) that gains one each `refill`.
    pub fn new(burst: u32, refill: Duration) -> Self {
        Self { burst: burst.max(1), refill, full: None }
    }

    /// Takes a token, or returns when there will be one.
    pub fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let full = self.full.map_or(now, |full| full.max(now)) + self.refill;
        let there = full.checked_sub(self.refill.saturating_mul(self.burst)).unwrap_or(now);
        if there > now {
            return Err(there);
        }
        self.full = Some(full);
        Ok(())
    }

    /// Takes a token, waiting until there is one.
    ///
    /// Dropping the future takes none.
    pub async fn acquire(&mut self) {
        while let Err(there) = self.take(Instant::now()) {
            sleep_until(there).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_at_once_and_the_rest_at_the_rate() {
        let mut bucket = TokenBucket::new(2, SECOND * 3);
        let start = Instant::now();
        let mut passed = Vec::new();
        for _ in 0..5 {
            bucket.acquire().await;
            passed.push(start.elapsed().as_secs());
        }
        assert_eq!(passed, [0, 0, 3, 6, 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_silence_saves_up_no_more_than_the_burst() {
        let mut bucket = TokenBucket::new(2, SECOND);
        tokio::time::sleep(SECOND * 3_600).await;
        let now = Instant::now();
        let passed = (0..10).filter(|_| bucket.take(now).is_ok()).count();
        assert_eq!(passed, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_was_given_up_takes_no_token() {
        let mut bucket = TokenBucket::new(1, SECOND);
        bucket.acquire().await;
        assert!(timeout(SECOND / 2, bucket.acquire()).await.is_err());
        let start = Instant::now();
        bucket.acquire().await;
        assert_eq!(start.elapsed(), SECOND / 2);
    }

    #[test]
    fn a_bucket_without_a_refill_time_lets_everything_pass() {
        let mut bucket = TokenBucket::new(0, Duration::ZERO);
        let now = Instant::now();
        assert!((0..1_000).all(|_| bucket.take(now).is_ok()));
    }

    proptest! {
        #[test]
        fn no_window_passes_more_than_the_burst_and_what_it_refilled(
            burst in 1_u32..5,
            gaps in prop::collection::vec(0_u64..400, 1..200),
        ) {
            let refill = Duration::from_millis(300);
            let mut bucket = TokenBucket::new(burst, refill);
            let mut now = Instant::now();
            let mut passed = Vec::new();
            for gap in gaps {
                now += Duration::from_millis(gap);
                match bucket.take(now) {
                    Ok(()) => passed.push(now),
                    Err(there) => {
                        prop_assert!(there > now && there <= now + refill);
                    }
                }
            }
            for (first, start) in passed.iter().enumerate() {
                for (last, end) in passed.iter().enumerate().skip(first) {
                    let refilled = (*end - *start).as_millis() / refill.as_millis();
                    prop_assert!((last - first + 1) as u128 <= u128::from(burst) + refilled);
                }
            }
        }
    }
}
