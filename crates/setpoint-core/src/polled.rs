//! A source that is asked at an interval.

use std::fmt;
use std::time::Duration;

use setpoint_graph::Graph;
use tokio::time::{Instant, sleep_until};

use crate::source::{Changed, Source};

/// How often a source is asked, unless the caller says otherwise.
const INTERVAL: Duration = Duration::from_secs(10);

/// Makes a source that calls a function for the intended graph: at the start, and then every ten seconds, or
/// [as often](Polled::every) as is wanted.
///
/// For what can't say that it changed, or where waiting for the interval is good enough. An error of the function leaves what
/// was intended last, and the function is called again with growing pauses.
///
/// ```
/// # use std::time::Duration;
/// use setpoint_core::{Graph, polled};
///
/// async fn declared() -> Result<Graph, std::io::Error> {
///     Ok(Graph::new("read from a file"))
/// }
///
/// let source = polled(declared).every(Duration::from_mins(1));
/// # let _ = source;
/// ```
pub fn polled<L, F, E>(load: L) -> Polled<L>
where
    L: FnMut() -> F + Send + 'static,
    F: Future<Output = Result<Graph, E>> + Send,
    E: fmt::Display + Send,
{
    Polled { interval: INTERVAL, load, next: None, intended: None }
}

/// The source that [`polled`] makes.
#[derive(Debug)]
pub struct Polled<L> {
    interval: Duration,
    load: L,
    /// When it is asked next; none before the first time.
    next: Option<Instant>,
    intended: Option<Graph>,
}

impl<L> Polled<L> {
    /// Asks at this interval.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }
}

impl<L, F, E> Source for Polled<L>
where
    L: FnMut() -> F + Send + 'static,
    F: Future<Output = Result<Graph, E>> + Send,
    E: fmt::Display + Send,
{
    type Error = E;

    async fn load(&mut self) -> Result<(), E> {
        let loaded = (self.load)().await?;
        // The engine looks at nothing while the graph stays the same one.
        let same = self
            .intended
            .as_ref()
            .is_some_and(|known| known.name() == loaded.name() && known.diff(&loaded).is_empty());
        if !same {
            self.intended = Some(loaded);
        }
        Ok(())
    }

    fn intended(&self) -> Option<&Graph> {
        self.intended.as_ref()
    }

    async fn changed(&mut self) -> Changed {
        let due = *self.next.get_or_insert_with(|| Instant::now() + self.interval);
        sleep_until(due).await;
        self.next = None;
        Changed::Intended
    }
}
