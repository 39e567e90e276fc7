//! Which worker serves, and what it has read: whoever started it.

use std::time::{Duration, UNIX_EPOCH};

use super::{Event, Instance, Running, Standing, Writer};
use crate::blocking::run_blocking;
use crate::process::{Identity, Start};
use crate::reload;
use crate::runtime::Leftover;

/// How exactly it is known when a process started, and a file was written.
const PRECISION: Duration = Duration::from_millis(100);
/// How exactly HAProxy says when a process started that this program does not see.
const ABOUT: Duration = Duration::from_millis(1100);

impl Instance {
    /// Finds out whether the running HAProxy has read the files as they are. What it has not read is loaded, if it was this
    /// program that wrote it. Servers that are missing come with a reload. It is done once, before anything is changed.
    pub(super) async fn begin_with_what_runs(&self, writer: &mut Writer) {
        if std::mem::replace(&mut writer.has_looked, true) {
            return;
        }
        let Ok(processes) = reload::processes(self.master()).await else { return };
        let Some(serving) = processes.serving() else { return };
        let start = processes.start_of(serving);
        if writer.record.is_of(serving.pid, start) {
            if writer.record.loaded.as_ref() != Some(&self.hash_of_current()) {
                self.report_unread();
                self.order_reload();
            }
        } else {
            self.take_worker(writer, serving.pid, start);
        }
        // Nobody changes anything until it is compared.
        let Ok(Some(states)) = self.worker().servers(None).await else { return };
        let current = self.state().current.whole().into_owned();
        let differences = run_blocking(|| self.compare_servers(&states, current));
        for difference in differences.found {
            self.emit(Event::Drift { difference });
        }
        if differences.missing {
            self.order_reload();
        }
        // They were to be removed when this program ended.
        let mut state = self.state();
        let mut surplus = differences.surplus;
        surplus.retain(|one: &Leftover| !state.leftovers.iter().any(|held| held.is_same(one)));
        state.leftovers.extend(surplus);
    }

    /// Looks whether another worker serves than the one that is known: somebody else has reloaded HAProxy, or started it anew.
    pub(super) async fn look_at_worker(&self) {
        if !self.another_serves().await {
            return;
        }
        // A reload of this program may have been under way.
        let mut writer = self.inner.writer.lock().await;
        let Ok(processes) = reload::processes(self.master()).await else { return };
        let Some(serving) = processes.serving() else { return };
        let start = processes.start_of(serving);
        if writer.record.is_of(serving.pid, start) || !self.master().is_serving(serving.pid).await {
            return;
        }
        self.emit(Event::Drift {
            difference: format!(
                "worker {} serves, which this program did not load: somebody else has reloaded or started HAProxy",
                serving.pid
            ),
        });
        self.take_worker(&mut writer, serving.pid, start);
        self.report_differences().await;
    }

    async fn another_serves(&self) -> bool {
        let Ok(processes) = reload::processes(self.master()).await else { return false };
        match (processes.serving(), self.inner.writer.try_lock()) {
            (Some(serving), Ok(writer)) => !writer.record.is_of(serving.pid, processes.start_of(serving)),
            // Who writes at this moment may be reloading.
            _ => false,
        }
    }

    /// Says in what the servers that run differ from the configuration.
    pub(super) async fn report_differences(&self) {
        match self.differences().await {
            Ok(found) => found.into_iter().for_each(|difference| self.emit(Event::Drift { difference })),
            Err(error) => {
                self.emit(Event::Drift { difference: format!("it is not known which servers run: {error}") });
            }
        }
    }

    /// Takes a worker that somebody else started for the one that serves.
    fn take_worker(&self, writer: &mut Writer, pid: u32, start: Option<Start>) {
        // They went with the worker that had them.
        self.state().leftovers.clear();
        writer.changed_servers.clear();
        writer.record.set_worker(pid, start);
        if self.has_read(writer, pid, start) {
            let (whole, reload_waits) = {
                let state = self.state();
                (state.current.whole().into_owned(), state.reloads.due().is_some())
            };
            writer.running = Running::text(whole);
            if !reload_waits {
                self.accept(writer);
            }
        } else {
            writer.running = Running::Since(None);
            self.report_unread();
        }
        self.note(writer);
    }

    /// Returns whether a worker was started after the files were written; also if that is not known.
    fn has_read(&self, writer: &Writer, pid: u32, start: Option<Start>) -> bool {
        let (started, precision) = match start {
            Some(Start::At(_)) => (Identity::of(pid).and_then(Identity::started_at), PRECISION),
            Some(Start::About(seconds)) => (UNIX_EPOCH.checked_add(Duration::from_secs(seconds)), ABOUT),
            None => (None, PRECISION),
        };
        let Some(started) = started else { return true };
        // As they were when they were read here: whoever edits one now has another version.
        let signatures = self.state().signatures.clone();
        // One that somebody has edited since this program began, or wrote, may be just too late for the worker.
        let until = if signatures == writer.record.files {
            started.checked_add(precision)
        } else {
            started.checked_sub(precision)
        };
        let mut files = signatures.iter().flatten().filter_map(|signature| {
            let (seconds, nanoseconds) = signature.modified.max(signature.changed);
            let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
            UNIX_EPOCH.checked_add(since)
        });
        files.all(|written| until.is_none_or(|until| written <= until))
    }

    fn report_unread(&self) {
        self.emit(Event::Drift { difference: "HAProxy has not read the configuration as it is".to_owned() });
    }

    /// Takes the current text for what HAProxy accepts, and for good if it runs it.
    pub(super) fn accepted(&self, writer: &mut Writer) {
        let is_running = {
            let mut state = self.state();
            let is_running = writer.running.is(&state.current.whole());
            state.standing = Standing::accepted(is_running);
            is_running
        };
        if is_running {
            self.accept(writer);
        }
    }
}
