//! The loop around the engine: load, read for drift, reconcile, wait.
//!
//! ```text
//!            ┌────────────────────────── one pass ──────────────────────────┐
//!  wake ────▶│ load the source, if due ─▶ read for drift, if due ─▶ reconcile │──▶ observer ──▶ wait
//!    ▲       └──────────────────────────────────────────────────────────────┘                    │
//!    └── a change · the end of a background operation · a retry, a load or a look for drift is due ┘
//! ```

use std::fmt;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use setpoint_engine::{CurrentGraph, Engine, EngineError, Interruption, Refreshed, Selection, Status};
use setpoint_loop::Backoff;
use tokio_util::sync::CancellationToken;

use crate::source::{Changed, Source};

/// No pass for something that is due follows the last one faster: a policy that retries on every run would never rest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// How often everything is read, unless the caller says otherwise.
const DRIFT_INTERVAL: Duration = Duration::from_mins(5);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Why a pass was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The controller started.
    Started,
    /// The source said that something may have changed.
    Changed,
    /// A background operation ended.
    Resumed,
    /// Something that failed was due: an operation, a load of the source, or a whole run.
    Retried,
    /// It was time to look for drift.
    DriftCheck,
    /// The controller was stopped, and collected what background operations came to.
    Stopped,
}

/// What one pass of a [`Controller`] came to.
#[derive(Debug)]
pub struct Pass {
    /// Why it was made.
    pub reason: Reason,
    /// Why loading the source failed; none if it did not, or was not tried.
    pub source_error: Option<String>,
    /// What reading the real system showed; empty if it was not read.
    pub refreshed: Refreshed,
    /// How the run went; none if nothing is known yet of what is intended.
    pub outcome: Option<Result<Status, EngineError>>,
    /// When the next pass is due at the latest; none if only a change leads to one.
    pub next: Option<Timestamp>,
}

impl Pass {
    fn new(reason: Reason) -> Self {
        Self { reason, source_error: None, refreshed: Refreshed::default(), outcome: None, next: None }
    }

    /// Returns how the run went; none if there was none, or if it was refused.
    pub fn status(&self) -> Option<&Status> {
        self.outcome.as_ref()?.as_ref().ok()
    }

    /// Returns whether everything is as intended: nothing failed, nothing waits, nothing goes on in the background.
    pub fn is_converged(&self) -> bool {
        self.source_error.is_none()
            && self.status().is_some_and(|status| {
                status.result().is_ok() && status.pending() == 0 && !status.background_in_progress()
            })
    }
}

type Observer = Box<dyn FnMut(&Pass, Option<&CurrentGraph>) + Send>;

/// Keeps the items of a [`Source`] in their intended state, until it is stopped.
///
/// It reconciles when the source changes, when a background operation ends, and when a failed operation is due; it reads
/// the real system at an interval, and repairs what drifted. Nothing rests on having seen an event.
pub struct Controller<S> {
    engine: Engine,
    source: S,
    current: Option<CurrentGraph>,
    drift_interval: Option<Duration>,
    source_backoff: Backoff,
    run_backoff: Backoff,
    observer: Observer,
}

impl<S: Source> Controller<S> {
    /// Makes a controller that knows of nothing that exists.
    pub fn new(engine: Engine, source: S) -> Self {
        let backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE, fastrand::Rng::new());
        Self {
            engine,
            source,
            current: None,
            drift_interval: Some(DRIFT_INTERVAL),
            source_backoff: backoff.clone(),
            run_backoff: backoff,
            observer: Box::new(|_, _| {}),
        }
    }

    /// Starts from what an earlier controller left.
    #[must_use]
    pub fn starting_from(mut self, current: CurrentGraph) -> Self {
        self.current = Some(current);
        self
    }

    /// Looks for drift at this interval, five minutes by default; none for never. The start is a look as well.
    #[must_use]
    pub fn with_drift_interval(mut self, interval: Option<Duration>) -> Self {
        self.drift_interval = interval;
        self
    }

    /// Pauses like this while loading the source fails, or while whole runs do; by default from one second to a minute.
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.source_backoff = backoff.clone();
        self.run_backoff = backoff;
        self
    }

    /// Shows each pass to an observer, with the current graph as the pass left it, once there is one: to report, and to
    /// save.
    #[must_use]
    pub fn observed_by(
        mut self,
        observer: impl FnMut(&Pass, Option<&CurrentGraph>) + Send + 'static,
    ) -> Self {
        self.observer = Box::new(observer);
        self
    }

    /// Runs until the token is cancelled; returns what is known of the real system then, to start from again.
    ///
    /// Once it is cancelled nothing new is started. Operations are asked to stop, those in the background too, and are
    /// given the engine's [grace](Engine::with_grace) to do so.
    pub async fn run(mut self, stop: CancellationToken) -> Option<CurrentGraph> {
        let mut due = Due::default();
        let mut work = Work { reason: Reason::Started, load: true, read: Some(Selection::all()) };
        let mut last = None;
        while let Some(pass) = self.pass(work, &mut due, &stop).await {
            (self.observer)(&pass, self.current.as_ref());
            let next = self.wait(&pass, &due, &stop).await;
            last = Some(pass);
            match next {
                Some(next) => work = next,
                None => break,
            }
        }
        if let Some(status) = last.as_ref().and_then(Pass::status) {
            self.stop_background(status, &stop).await;
        }
        self.current
    }

    /// Runs until a future completes, such as `tokio::signal::ctrl_c()`; then it stops as [`Controller::run`] does.
    pub async fn run_until<T>(self, stop: impl Future<Output = T>) -> Option<CurrentGraph> {
        let token = CancellationToken::new();
        let mut run = pin!(self.run(token.clone()));
        tokio::select! {
            biased;
            current = &mut run => return current,
            _ = stop => token.cancel(),
        }
        run.await
    }

    /// Runs until everything is as intended once, which may be never.
    pub async fn run_until_converged(mut self) -> Option<CurrentGraph> {
        let stop = CancellationToken::new();
        let converged = stop.clone();
        let mut observer = self.observer;
        self.observer = Box::new(move |pass, current| {
            observer(pass, current);
            if pass.is_converged() {
                converged.cancel();
            }
        });
        self.run(stop).await
    }

    /// Makes one pass; none if the controller was stopped before anything was done.
    async fn pass(&mut self, work: Work, due: &mut Due, stop: &CancellationToken) -> Option<Pass> {
        let mut pass = Pass::new(work.reason);
        if work.load {
            match stop.run_until_cancelled(self.source.load()).await? {
                Ok(()) => {
                    self.source_backoff.reset();
                    due.load = None;
                }
                Err(error) => {
                    pass.source_error = Some(error.to_string());
                    let pause = self.source_backoff.pause().max(SHORTEST_PAUSE);
                    due.load = Some(later(self.now(), pause));
                }
            }
        }
        if work.read == Some(Selection::All) {
            due.drift = self.drift_interval.map(|interval| later(self.now(), interval));
        }
        due.retry = None;
        if let Some(intended) = self.source.intended() {
            if let (Some(selection), Some(current)) = (&work.read, &mut self.current) {
                pass.refreshed = stop.run_until_cancelled(self.engine.refresh(current, selection)).await?;
            }
            let all = Selection::all();
            let outcome = self.engine.reconcile_until(&mut self.current, Some(intended), &all, stop).await;
            let retry = match &outcome {
                Ok(status) if !matches!(status.interruption(), Some(Interruption::Journal(_))) => {
                    self.run_backoff.reset();
                    status.next_retry()
                }
                _ => Some(later(self.now(), self.run_backoff.pause())),
            };
            due.retry = retry.map(|at| at.max(later(self.now(), SHORTEST_PAUSE)));
            pass.outcome = Some(outcome);
        }
        pass.next = due.first();
        Some(pass)
    }

    /// Waits for a reason to make the next pass; none when the controller is stopped.
    async fn wait(&mut self, pass: &Pass, due: &Due, stop: &CancellationToken) -> Option<Work> {
        let clock = self.engine.clock().clone();
        let timer = async {
            match due.first() {
                Some(at) => clock.sleep(until(clock.now(), at)).await,
                None => pending().await,
            }
        };
        let resumable = async {
            match pass.status().filter(|status| status.background_in_progress()) {
                Some(status) => status.ready_to_resume().await,
                None => pending().await,
            }
        };
        let mut work = tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            changed = self.source.changed() => match changed {
                Changed::Intended => Work { reason: Reason::Changed, load: true, read: None },
                Changed::Items(items) => Work { reason: Reason::Changed, load: false, read: Some(items) },
            },
            _ = resumable => Work { reason: Reason::Resumed, load: false, read: None },
            () = timer => Work { reason: Reason::Retried, load: false, read: None },
        };
        // What is due is done whatever the reason was: a source that never rests holds up nothing.
        let now = self.now();
        work.load |= due.load.is_some_and(|at| at <= now);
        if due.drift.is_some_and(|at| at <= now) {
            work.read = Some(Selection::all());
            if work.reason == Reason::Retried {
                work.reason = Reason::DriftCheck;
            }
        }
        Some(work)
    }

    /// Stops background operations, and collects what they came to.
    async fn stop_background(&mut self, status: &Status, stop: &CancellationToken) {
        if !status.background_in_progress() {
            return;
        }
        status.cancel_background();
        let limit = self.engine.clock().sleep(self.engine.grace());
        tokio::select! {
            biased;
            () = status.wait_for_background() => {}
            () = limit => {}
        }
        if let Some(intended) = self.source.intended() {
            let mut pass = Pass::new(Reason::Stopped);
            let all = Selection::all();
            let outcome = self.engine.reconcile_until(&mut self.current, Some(intended), &all, stop).await;
            pass.outcome = Some(outcome);
            (self.observer)(&pass, self.current.as_ref());
        }
    }

    fn now(&self) -> Timestamp {
        self.engine.clock().now()
    }
}

impl<S> fmt::Debug for Controller<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("engine", &self.engine)
            .field("drift_interval", &self.drift_interval)
            .finish_non_exhaustive()
    }
}

/// What the next pass does besides reconciling.
struct Work {
    reason: Reason,
    /// Whether the source is loaded.
    load: bool,
    /// What is read for drift.
    read: Option<Selection>,
}

/// When what is due.
#[derive(Default)]
struct Due {
    /// Loading the source, after it failed.
    load: Option<Timestamp>,
    /// Operations, or a whole run, that failed.
    retry: Option<Timestamp>,
    /// Reading everything for drift.
    drift: Option<Timestamp>,
}

impl Due {
    fn first(&self) -> Option<Timestamp> {
        [self.load, self.retry, self.drift].into_iter().flatten().min()
    }
}

/// Returns the time that much later, or the latest there is.
fn later(at: Timestamp, delay: Duration) -> Timestamp {
    SignedDuration::try_from(delay)
        .ok()
        .and_then(|delay| at.checked_add(delay).ok())
        .unwrap_or(Timestamp::MAX)
}

/// Returns how long it is until a time; nothing if it has passed.
fn until(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}
