//! What a person sees while a run goes on: operations as they end, those that take long, and, with `--verbose`, what
//! commands write.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use setpoint_engine::{Hooks, LogEntry, OpError, Operation};
use setpoint_graph::{Item, ItemHandle, ItemRef};
use setpoint_host::{CheckEvent, Command, Host};

use super::run::line;
use crate::report::{Report, print};

/// How many operations are shown one by one; of more, only how far they are.
const SHOWN_ONE_BY_ONE: usize = 200;
/// After how long an operation that still runs is named; after the last of these, every minute.
const REMIND_AFTER: [Duration; 4] =
    [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(30), Duration::from_mins(1)];
/// How often it is looked for operations that take long.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Shows operations as they end, and says which still run.
#[derive(Debug)]
pub(crate) struct Progress {
    total: usize,
    done: AtomicUsize,
    reminder: Reminder,
}

/// Says which operations still run.
#[derive(Debug)]
pub(crate) struct Reminder {
    running: Arc<Underway>,
    /// A thread of its own, as operations may keep the others busy.
    thread: Option<JoinHandle<()>>,
}

/// The operations that run.
#[derive(Debug, Default)]
struct Underway {
    operations: Mutex<Operations>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Operations {
    by_item: BTreeMap<ItemRef, Begun>,
    /// The run has ended.
    is_over: bool,
}

/// What runs for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Operation(Operation),
    /// The check of a command, while the host is looked at.
    Check,
    /// What a run that was cut off had begun for a command: its check waits for that.
    Orphan,
}

impl Work {
    /// The word that the manifest has for it, or the operation.
    fn word(self, item: &ItemRef) -> &'static str {
        let is_command = *item.kind() == Command::KIND;
        match self {
            Self::Check | Self::Orphan => "check",
            Self::Operation(Operation::Create | Operation::Modify) if is_command => "apply",
            Self::Operation(Operation::Delete) if is_command => "undo",
            Self::Operation(Operation::Create) => "create",
            Self::Operation(Operation::Modify) => "modify",
            Self::Operation(Operation::Delete) => "delete",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    work: Work,
    at: Instant,
    /// How often it was named as still running.
    reminders: u32,
}

impl Begun {
    /// How long it has been running, if it is time to name it.
    fn due(&self, now: Instant) -> Option<Duration> {
        let elapsed = now.saturating_duration_since(self.at);
        let [.., last] = REMIND_AFTER;
        let position = usize::try_from(self.reminders).unwrap_or(usize::MAX);
        let due = REMIND_AFTER.get(position).copied().unwrap_or_else(|| {
            let minutes = position.saturating_sub(REMIND_AFTER.len() - 1);
            last.saturating_mul(u32::try_from(minutes + 1).unwrap_or(u32::MAX))
        });
        (elapsed >= due).then_some(elapsed)
    }
}

impl Underway {
    fn lock(&self) -> MutexGuard<'_, Operations> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what still runs until the run is over.
    fn remind(&self, say: impl Fn(&ItemRef, Work, Duration)) {
        let mut operations = self.lock();
        while !operations.is_over {
            let now = Instant::now();
            for (item, started) in &mut operations.by_item {
                if let Some(elapsed) = started.due(now) {
                    started.reminders += 1;
                    say(item, started.work, elapsed);
                }
            }
            let waited = self.ended.wait_timeout(operations, LOOK_EVERY);
            operations = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The words for something that still runs.
pub(crate) fn still_running(item: &ItemRef, work: Work, elapsed: Duration) -> String {
    let (what, seconds) = (work.word(item), elapsed.as_secs());
    if work == Work::Orphan {
        return format!(
            "… {item}: {what} has been waiting for {seconds} s for what a run that was cut off had begun"
        );
    }
    format!("… {item}: {what} has been running for {seconds} s")
}

/// Says which checks of commands still run while the host is looked at.
pub(crate) fn name_slow_checks(host: &Host, report: Report) {
    let reminder = Reminder::new(move |item, work, elapsed| report.info(&still_running(item, work, elapsed)));
    host.on_check(move |item, event| match event {
        CheckEvent::Waits => reminder.begin(Work::Orphan, item),
        CheckEvent::Begins => reminder.begin(Work::Check, item),
        CheckEvent::Ended => reminder.end(item),
    });
}

impl Progress {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        let reminder = Reminder::new(|item, work, elapsed| {
            // A line that can't be written stops nothing.
            let _ = print(&format!("  {}\n", still_running(item, work, elapsed)));
        });
        Arc::new(Self { total, done: AtomicUsize::new(0), reminder })
    }
}

impl Reminder {
    /// Lets someone say of each operation that runs for long how long that has been.
    pub(crate) fn new(say: impl Fn(&ItemRef, Work, Duration) + Send + 'static) -> Self {
        let running = Arc::new(Underway::default());
        let reminded = Arc::clone(&running);
        // Without a thread for it, no operation is named.
        let thread = std::thread::Builder::new().spawn(move || reminded.remind(say)).ok();
        Self { running, thread }
    }

    /// Something begins.
    pub(crate) fn begin(&self, work: Work, item: &ItemRef) {
        let started = Begun { work, at: Instant::now(), reminders: 0 };
        self.running.lock().by_item.insert(item.clone(), started);
    }

    /// It has ended.
    pub(crate) fn end(&self, item: &ItemRef) {
        self.running.lock().by_item.remove(item);
    }
}

impl Drop for Reminder {
    fn drop(&mut self) {
        self.running.lock().is_over = true;
        self.running.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // It does not panic, and nothing is lost if it did.
            let _ = thread.join();
        }
    }
}

impl Hooks for Progress {
    fn before(&self, operation: Operation, item: &ItemHandle) -> Result<(), OpError> {
        self.reminder.begin(Work::Operation(operation), item.reference());
        Ok(())
    }

    fn after(&self, entry: &LogEntry) {
        self.reminder.end(entry.item().reference());
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let one_by_one = self.total <= SHOWN_ONE_BY_ONE || entry.error().is_some();
        // A line that can't be written stops nothing: the run goes on, and is remembered.
        if one_by_one {
            let _ = print(&line(entry));
        } else if done.is_multiple_of(1000) {
            let _ = print(&format!("  … {done} of {}\n", self.total));
        }
    }
}

/// With `--verbose`, shows what commands write as it comes, but for sensitive ones.
pub(crate) fn show_output(host: &Host, report: Report) {
    if report.verbosity > 0 {
        host.on_output(move |item, line| report.detail(|| format!("{item} | {line}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_runs_for_long_it_is_said_less_and_less_often() {
        let at = Instant::now();
        let mut started = Begun { work: Work::Check, at, reminders: 0 };
        let mut reminded = Vec::new();
        for second in 0..=240 {
            if let Some(elapsed) = started.due(at + Duration::from_secs(second)) {
                started.reminders += 1;
                reminded.push(elapsed.as_secs());
            }
        }
        assert_eq!(reminded, [2, 10, 30, 60, 120, 180, 240]);
    }

    #[test]
    fn what_still_runs_is_named_as_the_manifest_names_it() {
        let item = |kind: &str| ItemRef::new(kind, "migrate");
        let took = Duration::from_millis(2100);
        let still_running =
            |item: &ItemRef, operation, took| still_running(item, Work::Operation(operation), took);
        assert_eq!(
            still_running(&item("command"), Operation::Modify, took),
            "… command/migrate: apply has been running for 2 s"
        );
        assert_eq!(
            still_running(&item("command"), Operation::Delete, took),
            "… command/migrate: undo has been running for 2 s"
        );
        assert_eq!(
            still_running(&item("process"), Operation::Create, took),
            "… process/migrate: create has been running for 2 s"
        );
    }
}
