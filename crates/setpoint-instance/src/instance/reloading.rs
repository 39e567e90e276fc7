//! Reloads, and what happens beside commits: checks that were put off, servers that wait for their end, files that change.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Event, Instance, ReloadStatus, Writer};
use crate::check::Check;
use crate::reload::{self, Outcome};
use crate::runtime::apply;

/// How often is looked at what nobody tells: files, and servers that wait for their end.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Instance {
    /// Does what is due, for as long as it is polled: reloads, checks that were put off, servers to be removed.
    pub async fn run(&self) {
        self.begin_with_what_runs().await;
        let mut look = Instant::now() + LOOK_EVERY;
        loop {
            let due = self.state().reloads.due();
            let until = due.map_or(look, |due| due.min(look));
            // Somebody may have ordered something meanwhile.
            let _ = timeout_at(until, self.inner.wake.notified()).await;
            if due.is_some_and(|due| due <= Instant::now()) {
                let mut writer = self.inner.writer.lock().await;
                // Who forced a reload meanwhile has seen to it.
                if self.state().reloads.due().is_some() {
                    let _ = self.reload_now(&mut writer).await;
                }
            }
            let unchecked = {
                let mut writer = self.inner.writer.lock().await;
                if writer.unnoted {
                    self.note(&mut writer);
                }
                writer.unchecked
            };
            if unchecked {
                self.check_what_was_applied().await;
            }
            if Instant::now() >= look {
                look = Instant::now() + LOOK_EVERY;
                let _ = self.refresh();
                self.remove_leftovers().await;
            }
        }
    }

    /// Waits until no reload waits, or until a time.
    pub async fn settled(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            if self.state().reloads.due().is_none() && self.inner.writer.try_lock().is_ok() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            sleep_until(Instant::now() + Duration::from_millis(5)).await;
        }
    }

    /// Reloads at once, whatever waits.
    pub async fn reload(&self) -> Result<String, String> {
        let mut writer = self.inner.writer.lock().await;
        self.reload_now(&mut writer).await
    }

    /// Reloads, and returns what HAProxy printed. What HAProxy refuses is taken back.
    pub(super) async fn reload_now(&self, writer: &mut Writer) -> Result<String, String> {
        let settings = &self.inner.settings;
        if writer.unchecked
            && let Err(why) = self.undo_if_refused(writer).await
        {
            self.end_reload(ReloadStatus::Failed, &why);
            return Err(why);
        }
        let before = self.worker().servers(None).await.ok().flatten().unwrap_or_default();
        let outcome = reload::reload(&self.inner.master, &settings.reload, settings.reload_within).await;
        match outcome {
            Ok(Outcome::Succeeded { worker, messages }) => {
                let applied = std::mem::replace(&mut writer.applied, self.state().current.whole());
                writer.good = self.state().current.fork();
                // They went with the worker that had them.
                writer.leftovers.clear();
                writer.record.set_worker(worker);
                self.note(writer);
                self.keep_what_operators_set(&before, applied, &writer.applied).await;
                self.end_reload(ReloadStatus::Succeeded, &messages);
                Ok(messages)
            }
            Ok(Outcome::Failed { messages }) => {
                let why = if messages.is_empty() { "HAProxy refused it".to_owned() } else { messages };
                self.restore(writer, &why).await;
                self.end_reload(ReloadStatus::Failed, &why);
                Err(why)
            }
            Err(error) => {
                // HAProxy has not said anything against the text.
                let why = error.to_string();
                self.end_reload(ReloadStatus::Failed, &why);
                Err(why)
            }
        }
    }

    fn end_reload(&self, status: ReloadStatus, response: &str) {
        let ended = self.state().reloads.end(status, response);
        self.say(Event::Reloaded {
            id: ended.map(|reload| reload.id),
            succeeded: status == ReloadStatus::Succeeded,
            response: response.to_owned(),
        });
    }

    /// Writes the last good text back, and makes the running HAProxy run it.
    async fn restore(&self, writer: &mut Writer, why: &str) {
        let current = self.state().current.fork();
        let mut good = writer.good.fork();
        good.set_version(current.version() + 1);
        if let Err(error) = self.place(&good, &current, Vec::new()) {
            tracing::error!(%error, "the last good configuration could not be written back");
            return;
        }
        let version = good.version();
        let text = good.whole();
        self.take(writer, good);
        // What had been told at runtime on top of the bad text is taken back, too.
        if let Ok(diff) = self.compare(&writer.applied, &text)
            && !diff.is_empty()
        {
            match apply::apply(&self.worker(), diff.operations(), self.inner.cx).await {
                Ok(leftovers) => {
                    writer.leftovers.extend(leftovers);
                    writer.applied = text;
                }
                Err(refused) => self.say(Event::Drift { difference: refused.to_string() }),
            }
        }
        self.note(writer);
        self.say(Event::Restored { version, reason: why.to_owned() });
    }

    /// Asks HAProxy about the files as they are; takes back what it refuses.
    async fn undo_if_refused(&self, writer: &mut Writer) -> Result<(), String> {
        match self.ask_about_files().await {
            Ok(()) => {
                writer.unchecked = false;
                writer.good = self.state().current.fork();
                Ok(())
            }
            Err(why) => {
                writer.unchecked = false;
                self.restore(writer, &why).await;
                Err(why)
            }
        }
    }

    async fn ask_about_files(&self) -> Result<(), String> {
        let settings = &self.inner.settings;
        let check = Check {
            program: settings.program.clone(),
            files: settings.files.iter().map(|file| (file.clone(), None)).collect(),
            working_directory: settings.working_directory.clone(),
            environment: settings.environment.clone(),
            within: settings.check_within,
        };
        match check.run().await {
            Ok(verdict) if verdict.accepted => Ok(()),
            Ok(verdict) => Err(verdict.messages),
            // Nobody said anything against the text.
            Err(error) => {
                tracing::warn!(%error, "what was applied at runtime could not be checked");
                Ok(())
            }
        }
    }

    /// Checks what was applied at runtime, beside whatever else goes on; commits meanwhile are checked the next time.
    async fn check_what_was_applied(&self) {
        let version = self.state().current.version();
        let verdict = self.ask_about_files().await;
        let mut writer = self.inner.writer.lock().await;
        if self.state().current.version() != version {
            // It will be looked at again.
            self.inner.wake.notify_one();
            return;
        }
        writer.unchecked = false;
        match verdict {
            Ok(()) => writer.good = self.state().current.fork(),
            Err(why) => self.restore(&mut writer, &why).await,
        }
    }

    /// Removes servers from HAProxy that are gone from the configuration, as soon as nothing uses them.
    async fn remove_leftovers(&self) {
        let mut writer = self.inner.writer.lock().await;
        if writer.leftovers.is_empty() {
            return;
        }
        let (worker, mut left) = (self.worker(), Vec::new());
        for leftover in std::mem::take(&mut writer.leftovers) {
            match leftover.remove(&worker).await {
                Ok(true) => {}
                Ok(false) | Err(_) => left.push(leftover),
            }
        }
        writer.leftovers = left;
    }
}
