//! Reloads, and what happens beside commits: checks that were put off, servers that wait for their end, files that change.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Event, Instance, ReloadStatus, Writer};
use crate::check::Check;
use crate::reload::{self, Outcome};
use crate::runtime::apply;

/// How often is looked at what nobody tells: files, and servers that wait for their end.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Whether HAProxy runs a text that was written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restored {
    /// It does, or as much of it as it did before.
    Runs,
    /// It has been told something else, and can't be told this.
    NeedsReload,
}

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

    /// Does what still waits, before the program ends: a reload, the check of what was applied at runtime, and the note of it.
    pub async fn finish(&self) {
        let mut writer = self.inner.writer.lock().await;
        if self.state().reloads.due().is_some() {
            // What came of it is written down, and seen at the next start.
            let _ = self.reload_now(&mut writer).await;
        } else if writer.unchecked && self.undo_if_refused(&mut writer).await.is_ok() {
            self.accept(&mut writer);
        }
        if writer.unnoted {
            self.note(&mut writer);
        }
    }

    /// Returns whether HAProxy was asked about all that is written.
    pub async fn is_checked(&self) -> bool {
        !self.inner.writer.lock().await.unchecked
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
            && let Err((why, restored)) = self.undo_if_refused(writer).await
        {
            self.end_reload(ReloadStatus::Failed, &why);
            self.load_restored(restored);
            return Err(why);
        }
        // What a check accepts may still fail to load: it is good when a worker serves.
        let before = self.worker().servers(None).await.ok().flatten().unwrap_or_default();
        let outcome = reload::reload(&self.inner.master, &settings.reload, settings.reload_within).await;
        match outcome {
            Ok(Outcome::Succeeded { worker, messages }) => {
                let applied = std::mem::replace(&mut writer.applied, self.state().current.whole());
                self.accept(writer);
                // They went with the worker that had them.
                self.state().leftovers.clear();
                writer.record.set_worker(worker);
                self.note(writer);
                self.keep_what_operators_set(&before, applied, &writer.applied).await;
                self.end_reload(ReloadStatus::Succeeded, &messages);
                Ok(messages)
            }
            Ok(Outcome::Failed { messages }) => {
                let why = if messages.is_empty() { "HAProxy refused it".to_owned() } else { messages };
                let restored = self.restore(writer, &why).await;
                self.end_reload(ReloadStatus::Failed, &why);
                self.load_restored(restored);
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

    /// Orders a reload if it takes one to make HAProxy run what was restored.
    fn load_restored(&self, restored: Restored) {
        if restored == Restored::NeedsReload {
            self.order_reload();
        }
    }

    /// Writes the last good text back, and makes the running HAProxy run it.
    async fn restore(&self, writer: &mut Writer, why: &str) -> Restored {
        let current = self.state().current.fork();
        let mut good = writer.good.fork();
        good.set_version(current.version());
        if good.changed_since(&current).is_empty() {
            // It is something else than the text: a file that it names, say.
            self.say(Event::Drift {
                difference: format!("HAProxy refuses the configuration as it is: {why}"),
            });
            return Restored::Runs;
        }
        let why = &match self.keep_refused(&current) {
            Ok(path) => format!("{why}\nwhat was refused is in {}", path.display()),
            Err(error) => format!("{why}\nwhat was refused could not be kept: {error}"),
        };
        good.set_version(current.version() + 1);
        if let Err(error) = self.place(&good, &current, Vec::new()) {
            tracing::error!(%error, "the last good configuration could not be written back");
            return Restored::Runs;
        }
        let version = good.version();
        let text = good.whole();
        self.take(writer, good);
        self.accept(writer);
        let mut restored = Restored::Runs;
        // What had been told at runtime on top of the bad text is taken back, too.
        if let Ok(diff) = self.compare(&writer.applied, &text)
            && !diff.is_empty()
        {
            match apply::apply(&self.worker(), diff.operations(), self.inner.cx, Duration::ZERO).await {
                Ok(leftovers) => {
                    self.state().leftovers.extend(leftovers);
                    writer.applied = text;
                }
                Err(refused) => {
                    self.say(Event::Drift { difference: refused.to_string() });
                    restored = Restored::NeedsReload;
                }
            }
        }
        self.note(writer);
        self.say(Event::Restored { version, reason: why.to_owned() });
        restored
    }

    /// Asks HAProxy about the files as they are; takes back what it refuses.
    async fn undo_if_refused(&self, writer: &mut Writer) -> Result<(), (String, Restored)> {
        let verdict = self.ask_about_files().await;
        writer.unchecked = false;
        match verdict {
            Ok(()) => Ok(()),
            Err(why) => {
                let restored = self.restore(writer, &why).await;
                Err((why, restored))
            }
        }
    }

    /// Asks HAProxy about the files before somebody uses them. What a program that was killed had not had checked is undone if
    /// HAProxy refuses it.
    pub async fn verify(&self) -> Result<(), String> {
        let mut writer = self.inner.writer.lock().await;
        if writer.unchecked && self.undo_if_refused(&mut writer).await.is_ok() {
            return Ok(());
        }
        self.ask_about_files().await
    }

    /// Asks HAProxy about the files as they are, with all that they name. An error is what HAProxy said against them.
    pub async fn ask_about_files(&self) -> Result<(), String> {
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
        let reload_waits = self.state().reloads.due().is_some();
        match verdict {
            // What else was committed may still fail to load.
            Ok(()) if reload_waits => {}
            Ok(()) => self.accept(&mut writer),
            Err(why) => {
                let restored = self.restore(&mut writer, &why).await;
                self.load_restored(restored);
            }
        }
    }

    /// Removes servers from HAProxy that are gone from the configuration, as soon as nothing uses them.
    async fn remove_leftovers(&self) {
        if self.leftovers() == 0 {
            return;
        }
        // Nobody may add such a server meanwhile.
        let _writer = self.inner.writer.lock().await;
        let (worker, mut left) = (self.worker(), Vec::new());
        let waiting = std::mem::take(&mut self.state().leftovers);
        for mut leftover in waiting {
            match leftover.remove(&worker).await {
                Ok(true) => {}
                Ok(false) | Err(_) => left.push(leftover),
            }
        }
        self.state().leftovers.extend(left);
    }
}
