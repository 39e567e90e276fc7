//! Tasks that somebody owns: restarted when they panic or fail, watched for life, ended by their owner.
//!
//! ```text
//!            ┌──────── waits a pause ◀────────────────────┐
//!            ▼                                            │
//!  spawn ─▶ Running ──panics, or fails──▶ Restarting ─────┘
//!            │  └── succeeds, or is cancelled and returns ──▶ Ended
//! ```

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;

/// Where a supervised task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is at work.
    Running,
    /// It panicked or failed, and waits for its pause to be over before it is started again.
    Restarting,
    /// It returned, and will not be started again.
    Ended,
}

/// How one task is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// What it is called.
    pub name: String,
    /// Where it is in its life.
    pub phase: Phase,
    /// How often it was started again.
    pub restarts: u64,
    /// The message of its last panic, or its last error.
    pub failure: Option<String>,
    /// How long ago it gave its last sign of life: a start, or a [`Task::beat`].
    pub silent: Duration,
}

/// Why and when a task is started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart<'a> {
    /// What the task is called.
    pub task: &'a str,
    /// The message of its panic, or its error.
    pub failure: &'a str,
    /// Whether it panicked.
    pub panicked: bool,
    /// How long it is paused before it is started again.
    pub pause: Duration,
}

/// What a task may return.
pub trait Outcome: Send + 'static {
    /// Returns why the task failed, if it did.
    fn failure(self) -> Option<String>;
}

impl Outcome for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: fmt::Display + Send + 'static> Outcome for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

type Report = Arc<dyn Fn(&Restart<'_>) + Send + Sync>;

/// Owns tasks.
///
/// A task that panics, or returns an error, is started again after a pause that grows while it keeps failing. Cancelling the
/// supervisor's token asks all of them to return; dropping the supervisor ends them where they are.
/// A task may own a supervisor itself.
///
/// ```
/// use std::time::Duration;
/// use setpoint_loop::{Phase, Supervisor};
/// use tokio_util::sync::CancellationToken;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let pauses = (Duration::from_millis(100), Duration::from_secs(30));
/// let supervisor = Supervisor::new(CancellationToken::new(), pauses, fastrand::Rng::with_seed(1));
/// let watcher = supervisor.spawn("watcher", |task| async move {
///     while task.cancel.run_until_cancelled(tokio::time::sleep(Duration::from_secs(1))).await.is_some() {
///         task.beat();
///     }
/// });
/// tokio::time::sleep(Duration::from_secs(5)).await;
/// assert_eq!(watcher.health().phase, Phase::Running);
/// let aborted = supervisor.shutdown(Duration::from_secs(1)).await;
/// assert!(aborted.is_empty(), "it returned when it was asked to");
/// # });
/// ```
pub struct Supervisor {
    cancel: CancellationToken,
    pauses: (Duration, Duration),
    random: Mutex<Rng>,
    tasks: Mutex<JoinSet<()>>,
    registry: Arc<Registry>,
    report: Report,
}

/// What a supervised task is given at each start.
#[derive(Clone, Debug)]
pub struct Task {
    /// Cancelled when the task is to return.
    pub cancel: CancellationToken,
    record: Arc<Record>,
}

impl Task {
    /// Gives a sign of life.
    pub fn beat(&self) {
        lock(&self.record.life).last_sign = Instant::now();
    }
}

/// Holds on to one task. Dropping it lets the task go on.
#[derive(Clone, Debug)]
pub struct TaskHandle {
    cancel: CancellationToken,
    record: Arc<Record>,
}

impl TaskHandle {
    /// Asks the task to return, and does not wait for it.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Waits until the task has ended: returned, or gone with its supervisor.
    pub async fn ended(&self) {
        let mut phase = self.record.phase.subscribe();
        // The record holds the sender, so the wait can only end with the phase.
        let _ = phase.wait_for(|phase| *phase == Phase::Ended).await;
    }

    /// Asks the task to return, and waits until it has.
    pub async fn stop(&self) {
        self.cancel();
        self.ended().await;
    }

    /// How it is doing.
    pub fn health(&self) -> Health {
        self.record.health()
    }
}

#[derive(Debug, Default)]
struct Registry {
    records: Mutex<BTreeMap<u64, Arc<Record>>>,
}

#[derive(Debug)]
struct Record {
    name: String,
    phase: watch::Sender<Phase>,
    life: Mutex<Life>,
}

#[derive(Debug)]
struct Life {
    restarts: u64,
    failure: Option<String>,
    last_sign: Instant,
}

impl Record {
    fn health(&self) -> Health {
        let phase = *self.phase.borrow();
        let life = lock(&self.life);
        Health {
            name: self.name.clone(),
            phase,
            restarts: life.restarts,
            failure: life.failure.clone(),
            silent: life.last_sign.elapsed(),
        }
    }
}

/// Takes a task off the list when it ends, in whatever way.
struct Listed {
    registry: Arc<Registry>,
    id: u64,
    record: Arc<Record>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        lock(&self.registry.records).remove(&self.id);
        self.record.phase.send_replace(Phase::Ended);
    }
}

impl Supervisor {
    /// Makes one. Its tasks are given children of `cancel`; after a panic they pause as [`Backoff`] does with
    /// the first bound and the ceiling in `pauses`.
    pub fn new(cancel: CancellationToken, pauses: (Duration, Duration), random: Rng) -> Self {
        Self {
            cancel,
            pauses,
            random: Mutex::new(random),
            tasks: Mutex::default(),
            registry: Arc::default(),
            report: Arc::new(|_| ()),
        }
    }

    /// Reports each restart of its tasks, such as to a log.
    #[must_use]
    pub fn reporting(mut self, report: impl Fn(&Restart<'_>) + Send + Sync + 'static) -> Self {
        self.report = Arc::new(report);
        self
    }

    /// Starts a task; `make` is called again after each panic and each error.
    pub fn spawn<F, T>(&self, name: impl Into<String>, make: F) -> TaskHandle
    where
        F: Fn(Task) -> T + Send + Sync + 'static,
        T: Future<Output: Outcome> + Send + 'static,
    {
        let cancel = self.cancel.child_token();
        let record = Arc::new(Record {
            name: name.into(),
            phase: watch::Sender::new(Phase::Running),
            life: Mutex::new(Life { restarts: 0, failure: None, last_sign: Instant::now() }),
        });
        let listed = self.list(&record);
        let (first, ceiling) = self.pauses;
        let backoff = Backoff::new(first, ceiling, lock(&self.random).fork());
        let task = Task { cancel: cancel.clone(), record: Arc::clone(&record) };
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        let report = Arc::clone(&self.report);
        tasks.spawn(keep_running(task, Arc::new(make), (backoff, ceiling), report, listed));
        TaskHandle { cancel, record }
    }

    /// How each task is doing that has not ended, in the order in which they were spawned.
    pub fn health(&self) -> Vec<Health> {
        lock(&self.registry.records).values().map(|record| record.health()).collect()
    }

    /// Asks all tasks to return, waits up to `limit` for it, and ends those that have not returned where they
    /// are; gives their names.
    pub async fn shutdown(self, limit: Duration) -> Vec<String> {
        self.cancel.cancel();
        let deadline = Instant::now() + limit;
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        while let Ok(Some(_)) = timeout_at(deadline, tasks.join_next()).await {}
        let left = self.health().into_iter().map(|health| health.name).collect();
        tasks.shutdown().await;
        left
    }

    fn list(&self, record: &Arc<Record>) -> Listed {
        let mut records = lock(&self.registry.records);
        let id = records.last_key_value().map_or(0, |(id, _)| id + 1);
        records.insert(id, Arc::clone(record));
        Listed { registry: Arc::clone(&self.registry), id, record: Arc::clone(record) }
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("tasks", &self.health()).finish_non_exhaustive()
    }
}

/// Starts the task again after each panic and each error, until it succeeds or is cancelled. One that ran for as long as
/// the longest pause is paused as if it had never failed.
async fn keep_running<F, T>(
    task: Task,
    make: Arc<F>,
    (mut backoff, stable): (Backoff, Duration),
    report: Report,
    _listed: Listed,
) where
    F: Fn(Task) -> T + Send + Sync + 'static,
    T: Future<Output: Outcome> + Send + 'static,
{
    loop {
        let started = Instant::now();
        let (failure, panicked) = {
            let (make, task) = (Arc::clone(&make), task.clone());
            match catch_panic(Box::pin(async move { make(task).await.failure() })).await {
                Ok(None) => return,
                Ok(Some(failure)) => (failure, false),
                Err(panic) => (message(panic.as_ref()), true),
            }
        };
        if task.cancel.is_cancelled() {
            return;
        }
        if started.elapsed() >= stable {
            backoff.reset();
        }
        let pause = backoff.pause();
        report(&Restart { task: &task.record.name, failure: &failure, panicked, pause });
        lock(&task.record.life).failure = Some(failure);
        task.record.phase.send_replace(Phase::Restarting);
        if task.cancel.run_until_cancelled(sleep(pause)).await.is_none() {
            return;
        }
        lock(&task.record.life).restarts += 1;
        task.record.phase.send_replace(Phase::Running);
        task.beat();
    }
}

/// Gives what a future gives, or what it panicked with. Nothing looks at what it was made of after that: it is dropped.
async fn catch_panic<T>(mut future: Pin<Box<impl Future<Output = T>>>) -> Result<T, Box<dyn Any + Send>> {
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

/// Nothing under these locks can be half done, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[expect(clippy::unused_async, reason = "a task is a future")]
    async fn always() {
        panic!("always");
    }

    fn supervisor() -> Supervisor {
        Supervisor::new(CancellationToken::new(), (SECOND, SECOND * 30), Rng::with_seed(3))
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_started_again_and_says_why() {
        let supervisor = supervisor();
        let starts = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&starts);
        let handle = supervisor.spawn("shaky", move |task| {
            let start = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                assert!(start >= 3, "start {start} fails");
                task.cancel.cancelled().await;
            }
        });
        while starts.load(Ordering::Relaxed) < 4 {
            sleep(SECOND).await;
        }
        sleep(SECOND).await;
        let health = handle.health();
        assert_eq!((health.phase, health.restarts), (Phase::Running, 3));
        assert_eq!(health.failure.as_deref(), Some("start 2 fails"));
        handle.stop().await;
        assert_eq!(handle.health().phase, Phase::Ended);
        assert_eq!(supervisor.health(), [], "what ended is off the list");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_always_panics_does_not_spin() {
        let supervisor = supervisor();
        let handle = supervisor.spawn("hopeless", |_| always());
        sleep(SECOND * 3_600).await;
        let restarts = handle.health().restarts;
        assert!((100..1_000).contains(&restarts), "{restarts} in an hour with pauses of 15 s on average");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_fails_is_started_again_and_its_restarts_are_reported() {
        let reported = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&reported);
        let supervisor = supervisor().reporting(move |restart| {
            lock(&noted).push((restart.task.to_owned(), restart.failure.to_owned(), restart.panicked));
        });
        let starts = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&starts);
        let handle = supervisor.spawn("fallible", move |_| {
            let start = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                match start {
                    0 => Err("no route"),
                    1 => panic!("a bug"),
                    _ => Ok(()),
                }
            }
        });
        handle.ended().await;
        assert_eq!(starts.load(Ordering::Relaxed), 3);
        let reported_as = |failure: &str, panicked| ("fallible".to_owned(), failure.to_owned(), panicked);
        assert_eq!(*lock(&reported), [reported_as("no route", false), reported_as("a bug", true)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_while_the_task_is_made_is_caught_too() {
        let supervisor = supervisor();
        let handle = supervisor.spawn("unmakeable", |_| -> std::future::Ready<()> { panic!("no parts") });
        sleep(SECOND * 60).await;
        assert_eq!(handle.health().failure.as_deref(), Some("no parts"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_returns_is_not_started_again() {
        let supervisor = supervisor();
        let handle = supervisor.spawn("done", |_| async {});
        handle.ended().await;
        assert_eq!((handle.health().phase, handle.health().restarts), (Phase::Ended, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_measured_from_the_last_beat() {
        let supervisor = supervisor();
        let handle = supervisor.spawn("quiet", |task| async move {
            sleep(SECOND * 10).await;
            task.beat();
            task.cancel.cancelled().await;
        });
        sleep(SECOND * 25).await;
        assert_eq!(handle.health().silent, SECOND * 15);
    }

    #[tokio::test(start_paused = true)]
    async fn stopping_one_task_leaves_the_others() {
        let supervisor = supervisor();
        let [one, _two] = ["one", "two"]
            .map(|name| supervisor.spawn(name, |task| async move { task.cancel.cancelled().await }));
        one.stop().await;
        let names: Vec<_> = supervisor.health().into_iter().map(|health| health.name).collect();
        assert_eq!(names, ["two"]);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_ends_what_does_not_return_and_names_it() {
        let supervisor = supervisor();
        let polite = supervisor.spawn("polite", |task| async move { task.cancel.cancelled().await });
        let deaf = supervisor.spawn("deaf", |_| std::future::pending::<()>());
        assert_eq!(supervisor.shutdown(SECOND).await, ["deaf"]);
        polite.ended().await;
        deaf.ended().await;
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_the_supervisor_ends_its_tasks() {
        let supervisor = supervisor();
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let handle = supervisor.spawn("held", move |_| {
            let held = Arc::clone(&held);
            async move {
                std::future::pending::<()>().await;
                drop(held);
            }
        });
        sleep(SECOND).await;
        drop(supervisor);
        handle.ended().await;
        sleep(SECOND).await;
        assert_eq!(Arc::strong_count(&alive), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_waits_for_its_restart_can_be_stopped() {
        let supervisor = supervisor();
        let handle = supervisor.spawn("hopeless", |_| always());
        sleep(SECOND * 120).await;
        let start = Instant::now();
        handle.stop().await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
