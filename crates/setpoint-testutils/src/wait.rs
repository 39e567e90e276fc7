//! Waiting for something to hold, never longer than a limit.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

/// How long something that has to come may take, on a machine that is busy with other things.
pub const LIMIT: Duration = Duration::from_mins(5);

/// Asks again and again until the answer is `Some`; panics with `what` after `limit`.
///
/// ```
/// # use std::time::Duration;
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let mut tries = 0;
/// let answer = setpoint_testutils::wait::until("the third try", Duration::from_secs(5), async || {
///     tries += 1;
///     (tries == 3).then_some("here")
/// });
/// assert_eq!(answer.await, "here");
/// # });
/// ```
pub async fn until<T>(what: &str, limit: Duration, ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(limit, ask).await.unwrap_or_else(|| panic!("waited {limit:?} in vain for {what}"))
}

/// Asks again and again until the answer is `Some`, or `limit` has passed.
pub async fn within<T>(limit: Duration, mut ask: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(5);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if let Ok(Some(answer)) = timeout(left.max(Duration::from_millis(1)), ask()).await {
            return Some(answer);
        }
        if Instant::now() + pause >= end {
            return None;
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_never_comes_is_given_up_in_time() {
        let started = Instant::now();
        assert_eq!(within(Duration::from_secs(3), async || None::<()>).await, None);
        assert_eq!(
            within(Duration::from_secs(3), async || std::future::pending::<Option<()>>().await).await,
            None
        );
        assert!(started.elapsed() <= Duration::from_secs(7));
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "in vain for rain")]
    async fn giving_up_says_what_for() {
        until("rain", Duration::from_secs(1), async || None::<()>).await;
    }
}
