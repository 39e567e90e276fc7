//! Reloads, and what happens beside commits: checks that were put off, servers that wait for their end, files that change.

use std::pin::pin;
use std::time::Duration;

use setpoint_haproxy::text::Document;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::commit::on_disk;
use super::operator::is_touched;
use super::{Event, Instance, ReloadStatus, Running, Standing, Writer};
use crate::check::{Check, CheckError};
use crate::configuration::{Configuration, same};
use crate::process::master_of;
use crate::reload::{self, Method, Outcome, ReloadError};
use crate::runtime::Refused;

/// How often is looked at what nobody tells: files, workers, and servers that wait for their end.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long it takes until HAProxy is asked again, if it could not be.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// How long commits may follow each other so fast that none of them is checked; then the next ones wait for a check.
const UNCHECKED: Duration = Duration::from_secs(10);

/// Whether HAProxy runs a text that was written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restored {
    /// It does, or as much of it as it did before.
    Runs,
    /// It runs something else, and can't be told this.
    NeedsReload,
}

/// What HAProxy says of the files as they are.
#[derive(Debug)]
pub(super) enum Asked {
    /// It would load them.
    Accepted,
    /// It would not; this is why.
    Refused(String),
    /// Nobody could ask.
    Unknown(CheckError),
}

impl Instance {
    /// Does what is due, for as long as it is polled: reloads, checks that were put off, servers to be removed.
    pub async fn run(&self) {
        self.run_until(std::future::pending()).await;
    }

    /// The same until `stop` is done. What is under way then is completed.
    pub async fn run_until(&self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        {
            let mut writer = self.inner.writer.lock().await;
            self.begin_with_what_runs(&mut writer).await;
        }
        let mut look = Instant::now() + LOOK_EVERY;
        let (mut check_from, mut unchecked_since) = (Instant::now(), None);
        loop {
            let due = self.state().reloads.due();
            let until = due.map_or(look, |due| due.min(look));
            tokio::select! {
                () = stop.as_mut() => return,
                // Somebody may have ordered something meanwhile.
                _ = timeout_at(until, self.inner.wake.notified()) => {}
            }
            if due.is_some_and(|due| due <= Instant::now()) {
                let mut writer = self.inner.writer.lock().await;
                // Who forced a reload meanwhile has seen to it.
                if self.state().reloads.due().is_some() {
                    let _ = self.reload_now(&mut writer).await;
                }
            }
            {
                let mut writer = self.inner.writer.lock().await;
                if writer.unrecorded {
                    self.note(&mut writer);
                }
            }
            if self.state().standing != Standing::Unchecked {
                unchecked_since = None;
            } else if Instant::now() >= check_from {
                let since = *unchecked_since.get_or_insert_with(Instant::now);
                if !self.check_what_was_applied(since.elapsed() > UNCHECKED).await {
                    check_from = Instant::now() + ASK_AGAIN;
                }
            }
            if Instant::now() >= look {
                self.look_around().await;
                look = Instant::now() + LOOK_EVERY;
            }
        }
    }

    /// Looks at what nobody tells.
    async fn look_around(&self) {
        let is_torn = self.state().files_are_torn;
        if is_torn {
            let mut writer = self.inner.writer.lock().await;
            if let Err(error) = self.complete(&mut writer) {
                tracing::warn!(%error, "a change that is noted could not be completed");
            }
        }
        let _ = self.refresh();
        self.look_at_worker().await;
        self.remove_leftovers().await;
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
        let standing = self.state().standing;
        if self.state().reloads.due().is_none() && standing == Standing::Unchecked {
            let version = self.state().current.version();
            match self.ask_about_files().await {
                Asked::Accepted if self.is_still(version) => self.accepted(&mut writer),
                Asked::Refused(why) if self.is_still(version) => {
                    let restored = self.restore(&mut writer, &why).await;
                    self.load_restored(restored);
                }
                // The next one that starts asks.
                _ => {}
            }
        }
        if self.state().reloads.due().is_some() {
            // What came of it is written down, and seen at the next start.
            let _ = self.reload_now(&mut writer).await;
        }
        if writer.unrecorded {
            self.note(&mut writer);
        }
    }

    /// Returns whether HAProxy was asked about all that is written.
    pub async fn is_checked(&self) -> bool {
        let _writer = self.inner.writer.lock().await;
        self.state().standing.is_checked()
    }

    /// Reloads at once, whatever waits.
    pub async fn reload(&self) -> Result<String, String> {
        let mut writer = self.inner.writer.lock().await;
        self.reload_now(&mut writer).await
    }

    /// Returns whether the files hold a version still: somebody may have edited them while HAProxy was asked.
    fn is_still(&self, version: u64) -> bool {
        let _ = self.refresh();
        self.state().current.version() == version
    }

    /// Asks HAProxy about what is to be loaded, if it was not asked before. An error says why it is not loaded.
    async fn check_before_reload(&self, writer: &mut Writer) -> Result<(), String> {
        self.complete(writer).and_then(|()| Ok(self.refresh()?)).map_err(|error| error.to_string())?;
        loop {
            let (version, standing) = {
                let state = self.state();
                (state.current.version(), state.standing)
            };
            if standing.is_checked() || !self.inner.settings.checks {
                return Ok(());
            }
            let asked = self.ask_about_files().await;
            if !self.is_still(version) {
                continue;
            }
            return match asked {
                Asked::Accepted => {
                    self.state().standing = Standing::Checked;
                    Ok(())
                }
                Asked::Refused(why) => {
                    let restored = self.restore(writer, &why).await;
                    self.end_reload(ReloadStatus::Failed, &why);
                    self.load_restored(restored);
                    Err(why)
                }
                // The reload waits until somebody can say whether it would succeed.
                Asked::Unknown(error) => {
                    self.state().reloads.postpone(ASK_AGAIN);
                    Err(error.to_string())
                }
            };
        }
    }

    /// Reloads, and returns what HAProxy printed. What HAProxy refuses is taken back.
    pub(super) async fn reload_now(&self, writer: &mut Writer) -> Result<String, String> {
        self.begin_with_what_runs(writer).await;
        self.check_before_reload(writer).await?;
        // What a check accepts may still fail to load: it is good when a worker serves.
        let loading = self.state().current.fork();
        let mut before = self.worker().servers(None).await.ok().flatten().unwrap_or_default();
        // Of very many servers, few are not as the text says.
        before.retain(|state| is_touched(state, &writer.changed_servers));
        before.shrink_to_fit();
        let outcome = self.ask_to_reload().await;
        let is_still = self.is_still(loading.version());
        match outcome {
            Ok(Outcome::Succeeded { worker, start, messages }) => {
                let whole = loading.whole().into_owned();
                let ran = std::mem::replace(&mut writer.running, Running::text(whole.clone()));
                let changed_servers = std::mem::take(&mut writer.changed_servers);
                if is_still {
                    self.accept(writer);
                } else {
                    // What somebody wrote meanwhile may have been read, or not.
                    writer.good = Some(loading);
                }
                // They went with the worker that had them.
                self.state().leftovers.clear();
                writer.record.set_worker(worker, start);
                self.note(writer);
                self.report_differences().await;
                self.keep_what_operators_set(&before, &ran, &changed_servers, &whole).await;
                self.end_reload(ReloadStatus::Succeeded, &messages);
                Ok(messages)
            }
            Ok(Outcome::Failed { messages }) => {
                let why = if messages.is_empty() { "HAProxy refused it".to_owned() } else { messages };
                let restored = if is_still {
                    self.restore(writer, &why).await
                } else {
                    let version = loading.version();
                    self.emit(Event::Drift {
                        difference: format!(
                            "HAProxy refuses version {version}, which somebody else has replaced meanwhile: {why}"
                        ),
                    });
                    Restored::Runs
                };
                self.end_reload(ReloadStatus::Failed, &why);
                self.load_restored(restored);
                Err(why)
            }
            Err(error) => {
                // HAProxy has not said anything against the text.
                if !error.is_unasked() {
                    writer.running.interrupt();
                    self.note(writer);
                }
                let why = error.to_string();
                self.end_reload(ReloadStatus::Failed, &why);
                Err(why)
            }
        }
    }

    /// Asks HAProxy to reload. A master whose socket is not there, or does not say what it runs, is asked by a signal.
    async fn ask_to_reload(&self) -> Result<Outcome, ReloadError> {
        let settings = &self.inner.settings;
        let (method, within) = (&settings.reload, settings.reload_within);
        match reload::reload(self.master(), method, within).await {
            Err(error)
                if *method == Method::Socket
                    && error.is_about_socket()
                    && master_of(&settings.files).is_some() =>
            {
                tracing::warn!(%error, "HAProxy is asked to reload by SIGUSR2");
                reload::reload(self.master_process(), &Method::Signal, within).await
            }
            asked => asked,
        }
    }

    fn end_reload(&self, status: ReloadStatus, response: &str) {
        let ended = self.state().reloads.end(status, response);
        self.emit(Event::Reloaded {
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

    /// Writes the last good text back, and makes the running HAProxy run it. What is in its place is what HAProxy refused.
    async fn restore(&self, writer: &mut Writer, why: &str) -> Restored {
        let current = self.state().current.fork();
        let is_other = |good: &Configuration| {
            let mut good = good.fork();
            good.set_version(current.version());
            good.differs_from(&current).then_some(good)
        };
        let Some(mut good) = writer.good.as_ref().and_then(is_other) else {
            // It is something else than the text, a file that it names, say; or no text was good yet.
            self.emit(Event::Drift {
                difference: format!("HAProxy refuses the configuration as it is: {why}"),
            });
            return Restored::Runs;
        };
        let why = &match self.keep_refused(&current) {
            Ok(path) => format!("{why}\nwhat was refused is in {}", path.display()),
            Err(error) => format!("{why}\nwhat was refused could not be kept: {error}"),
        };
        good.set_version(current.version() + 1);
        let (version, text) = (good.version(), good.whole().into_owned());
        let changed = good.changed_since(&current);
        let placed = self.place(writer, good, &changed, Vec::new(), Standing::Good);
        let placed = match placed {
            Ok(renamed) => on_disk(renamed).await,
            Err(error) => Err(error),
        };
        if let Err(error) = placed {
            tracing::error!(%error, "the last good configuration could not be written back");
            return Restored::Runs;
        }
        self.accept(writer);
        let restored = self.tell_restored(writer, &current.whole(), &text).await;
        self.note(writer);
        self.emit(Event::Restored { version, reason: why.to_owned() });
        restored
    }

    /// Takes back what was told at runtime on the way to a text that was refused.
    async fn tell_restored(&self, writer: &mut Writer, refused: &Document, text: &Document) -> Restored {
        let from = match &writer.running {
            Running::Text(running) => running,
            // It was told some of what leads to the refused text: it is told the way back from there, as far as it goes.
            Running::Since(Some(last)) if same(last, text) => refused,
            Running::Since(_) => return Restored::NeedsReload,
        };
        let result: Result<(), String> = match self.compare(from, text) {
            Ok(diff) => self.tell(writer, &diff, Duration::ZERO).await.map_err(|refused| refused.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match result {
            Ok(()) => {
                writer.running = Running::text(text.clone());
                Restored::Runs
            }
            Err(difference) => {
                self.emit(Event::Drift { difference });
                Restored::NeedsReload
            }
        }
    }

    /// Asks HAProxy about the files before somebody uses them. What a program that was killed had not had checked is undone if
    /// HAProxy refuses it.
    pub async fn verify(&self) -> Result<(), String> {
        let mut writer = self.inner.writer.lock().await;
        let (version, standing) = {
            let state = self.state();
            (state.current.version(), state.standing)
        };
        let mut asked = self.ask_about_files().await;
        if let (Asked::Refused(why), Standing::Unchecked, true) = (&asked, standing, self.is_still(version)) {
            let restored = self.restore(&mut writer, why).await;
            self.load_restored(restored);
            asked = self.ask_about_files().await;
        }
        match asked {
            Asked::Accepted => {
                let mut state = self.state();
                if !state.standing.is_checked() {
                    state.standing = Standing::Checked;
                }
                // Until it has run one, what it accepts is as good as it gets.
                writer.good.get_or_insert_with(|| state.current.fork());
                Ok(())
            }
            Asked::Refused(why) => Err(why),
            Asked::Unknown(error) => {
                tracing::warn!(%error, "the configuration could not be checked");
                Ok(())
            }
        }
    }

    /// Asks HAProxy about the files as they are, with all that they name.
    pub(super) async fn ask_about_files(&self) -> Asked {
        let settings = &self.inner.settings;
        let check = Check {
            program: settings.program.clone(),
            files: settings.files.iter().map(|file| (file.clone(), None)).collect(),
            working_directory: settings.working_directory.clone(),
            environment: settings.environment.clone(),
            within: settings.check_within,
        };
        match check.run().await {
            Ok(verdict) if verdict.accepted => Asked::Accepted,
            Ok(verdict) => Asked::Refused(verdict.messages),
            Err(error) => Asked::Unknown(error),
        }
    }

    /// Checks what was applied at runtime, beside whatever else goes on, or alone; commits meanwhile are checked the next time.
    /// Returns whether HAProxy could be asked.
    async fn check_what_was_applied(&self, alone: bool) -> bool {
        let held = if alone { Some(self.inner.writer.lock().await) } else { None };
        let version = self.state().current.version();
        let asked = self.ask_about_files().await;
        let mut writer = match held {
            Some(writer) => writer,
            None => self.inner.writer.lock().await,
        };
        if !self.is_still(version) {
            // It will be looked at again.
            self.inner.wake.notify_one();
            return true;
        }
        match asked {
            Asked::Accepted => self.accepted(&mut writer),
            Asked::Refused(why) => {
                let restored = self.restore(&mut writer, &why).await;
                self.load_restored(restored);
            }
            Asked::Unknown(error) => {
                tracing::warn!(%error, "what was applied at runtime could not be checked");
                return false;
            }
        }
        true
    }

    /// Removes servers from HAProxy that are gone from the configuration, as soon as nothing uses them.
    async fn remove_leftovers(&self) {
        if self.leftovers() == 0 {
            return;
        }
        // Nobody may add such a server meanwhile.
        let _writer = self.inner.writer.lock().await;
        let worker = self.worker();
        let mut waiting = std::mem::take(&mut self.state().leftovers).into_iter();
        let mut left = Vec::new();
        for mut leftover in waiting.by_ref() {
            match leftover.remove(&worker).await {
                Ok(true) => {}
                // It does not answer the others either.
                Err(Refused::Socket(_)) => {
                    left.push(leftover);
                    break;
                }
                Ok(false) | Err(_) => left.push(leftover),
            }
        }
        left.extend(waiting);
        self.state().leftovers.extend(left);
    }
}
