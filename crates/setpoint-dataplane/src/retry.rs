//! Tries again what may succeed the next time.
//!
//! ```
//! use std::time::Duration;
//! use setpoint_dataplane::retry::{Backoff, Retry, RetryError};
//! use tokio_util::sync::CancellationToken;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//! let retry = Retry { max_attempts: 3, backoff: Backoff::Exponential, base_delay: Duration::from_millis(100) };
//! let (cancel, mut attempts) = (CancellationToken::new(), 0);
//! let outcome = retry.run(&cancel, |error: &&str| *error == "refused", async || {
//!     attempts += 1;
//!     if attempts < 3 { Err("refused") } else { Ok(attempts) }
//! });
//! assert_eq!(outcome.await.unwrap(), 3);
//! # });
//! ```

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How the delay grows from attempt to attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backoff {
    /// There is no delay.
    None,
    /// The base delay, twice that, three times that.
    Linear,
    /// The base delay, twice that, four times that.
    #[default]
    Exponential,
}

/// How often something is tried, and how long is waited between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often it is tried altogether, at least once.
    pub max_attempts: u32,
    /// How the delay grows.
    pub backoff: Backoff,
    /// The delay after the first attempt.
    pub base_delay: Duration,
}

impl Default for Retry {
    /// Three attempts, 100 and 200 milliseconds apart.
    fn default() -> Self {
        Self { max_attempts: 3, backoff: Backoff::Exponential, base_delay: Duration::from_millis(100) }
    }
}

/// Why something that was tried several times did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum RetryError<E> {
    /// The last attempt failed, or one that is not worth another.
    #[error(transparent)]
    Failed(E),
    /// Nobody wants it any more.
    #[error("it was cancelled before attempt {attempt}")]
    Cancelled {
        /// The attempt that was not made.
        attempt: u32,
    },
}

impl Retry {
    /// The delay after an attempt, counted from 1.
    pub fn delay_after(&self, attempt: u32) -> Duration {
        match self.backoff {
            Backoff::None => Duration::ZERO,
            Backoff::Linear => self.base_delay.saturating_mul(attempt),
            Backoff::Exponential => {
                let factor = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
                self.base_delay.saturating_mul(factor)
            }
        }
    }

    /// Tries something until it succeeds, fails for good, or nobody wants it any more.
    pub async fn run<T, E>(
        &self,
        cancel: &CancellationToken,
        retry_if: impl Fn(&E) -> bool,
        mut attempt: impl AsyncFnMut() -> Result<T, E>,
    ) -> Result<T, RetryError<E>> {
        let mut number = 1;
        loop {
            match attempt().await {
                Ok(value) => return Ok(value),
                Err(error) if number >= self.max_attempts || !retry_if(&error) => {
                    return Err(RetryError::Failed(error));
                }
                Err(_) => {}
            }
            let delay = self.delay_after(number);
            number += 1;
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(RetryError::Cancelled { attempt: number }),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const BASE: Duration = Duration::from_millis(100);

    fn retry(backoff: Backoff, max_attempts: u32) -> Retry {
        Retry { max_attempts, backoff, base_delay: BASE }
    }

    #[test]
    fn exponential_backoff_doubles_delay() {
        let delays = [1, 2, 3].map(|attempt| retry(Backoff::Exponential, 4).delay_after(attempt));
        assert_eq!(delays, [100, 200, 400].map(Duration::from_millis));
        assert_eq!(retry(Backoff::Linear, 4).delay_after(3), 3 * BASE);
        assert_eq!(retry(Backoff::None, 4).delay_after(3), Duration::ZERO);
        // A delay that nobody can wait for is no panic.
        assert!(retry(Backoff::Exponential, u32::MAX).delay_after(200) > Duration::from_hours(1));
    }

    #[tokio::test(start_paused = true)]
    async fn every_attempt_comes_after_its_delay_and_the_last_error_is_returned() {
        let started = Instant::now();
        let mut at = Vec::new();
        let outcome = retry(Backoff::Exponential, 4)
            .run(
                &CancellationToken::new(),
                |_: &usize| true,
                async || {
                    at.push(started.elapsed());
                    Err::<(), usize>(at.len())
                },
            )
            .await;
        assert!(matches!(outcome, Err(RetryError::Failed(4))), "{outcome:?}");
        assert_eq!(at, [0, 100, 300, 700].map(Duration::from_millis));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_worth_another_attempt_is_not_tried_again() {
        let mut attempts = 0;
        let outcome = retry(Backoff::Exponential, 4)
            .run(
                &CancellationToken::new(),
                |error: &&str| *error == "connection refused",
                async || {
                    attempts += 1;
                    Err::<(), &str>(if attempts == 1 { "connection refused" } else { "validation failed" })
                },
            )
            .await;
        assert!(matches!(outcome, Err(RetryError::Failed("validation failed"))), "{outcome:?}");
        assert_eq!(attempts, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn context_cancellation_aborts_retry() {
        let cancel = CancellationToken::new();
        let (started, mut attempts) = (Instant::now(), 0);
        let retry = Retry { base_delay: Duration::from_hours(1), ..retry(Backoff::Exponential, 4) };
        let run = retry.run(
            &cancel,
            |(): &()| true,
            async || {
                attempts += 1;
                Err::<(), ()>(())
            },
        );
        let cancels = async {
            tokio::time::sleep(BASE).await;
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(run, cancels);
        assert!(matches!(outcome, Err(RetryError::Cancelled { attempt: 2 })), "{outcome:?}");
        assert_eq!((attempts, started.elapsed()), (1, BASE));
    }
}
