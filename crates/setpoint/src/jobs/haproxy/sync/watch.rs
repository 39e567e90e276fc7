//! `setpoint haproxy watch`: keeps HAProxy at a configuration.
//!
//! ```text
//! the desired files changed ─┐
//! every so often ────────────┼─▶ read, compare ─▶ sync, or report ─▶ say what is new
//! a failure, after a pause ──┘
//! ```
//!
//! Each HAProxy has passes of its own: one that does not answer holds up no other.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::try_join_all;
use serde_json::{Value as Json, json};
use setpoint_dataplane::sync::{Desired, FailedSync};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::args::HaproxyWatchArgs;
use super::print::failed_json;
use super::targets::{Connections, Place, Tools, Work, one, places, until_signal};
use super::{Plan, Sync, done, done_json, planned, planned_json, undone};
use crate::error::CliError;
use crate::jobs::haproxy::error::Error;
use crate::jobs::haproxy::{is_stdin, read};
use crate::report::{Report, print};
use crate::service::running::Running;

/// How often is looked whether the desired files have changed. What changed has to be left alone for as long before it is read.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The pause after a first failure; each further one is twice as long, up to the interval.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn watch(args: &HaproxyWatchArgs, report: Report) -> Result<u8, CliError> {
    if is_stdin(&args.target.desired) {
        return Err(Error::InputOnce.into());
    }
    until_signal(async |cancel| {
        let mut running = Running::start("haproxy watch", args.observe, report, || 0)?;
        let places = places(&args.target)?;
        let all_places = places.len();
        let watch =
            Watch { args, report, connections: Connections::default(), cancel, said: Mutex::default() };
        let (passed, mut passes) = mpsc::unbounded_channel();
        let keep = |(number, place)| watch.keep(number, place, passed.clone());
        // The first that can't go on ends all.
        let all = try_join_all(places.into_iter().enumerate().map(keep));
        drop(passed);
        let told = async {
            let status = format!("watching {}", args.target.desired.display());
            let mut well = BTreeMap::new();
            while let Some((number, is_well)) = passes.recv().await {
                well.insert(number, is_well);
                if well.len() < all_places {
                    continue;
                }
                if well.values().all(|is_well| *is_well) {
                    running.passed(&status);
                } else {
                    running.partly_failed(&status, &watch.wrong());
                }
            }
        };
        let (ended, ()) = tokio::join!(all, told);
        running.stopping();
        ended.map(|_| 0)
    })
}

/// Waits until the desired files have changed, or until a time, and until they were left alone for a moment.
async fn next(args: &HaproxyWatchArgs, seen: &Seen, until: Instant) {
    let mut before = seen.clone();
    loop {
        sleep(LOOK_EVERY).await;
        let now = Seen::of(args.target.sources());
        if now == before && (now != *seen || Instant::now() >= until) {
            return;
        }
        before = now;
    }
}

/// Which files are there, and what tells that one was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen(BTreeMap<PathBuf, (u64, u64, i64, i64)>);

impl Seen {
    fn of<'a>(paths: impl Iterator<Item = &'a Path>) -> Self {
        let mut seen = BTreeMap::new();
        for path in paths {
            let inside = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
            for path in inside.map(|entry| entry.path()).chain([path.to_owned()]) {
                if let Ok(found) = std::fs::metadata(&path) {
                    seen.insert(path, (found.ino(), found.len(), found.mtime(), found.mtime_nsec()));
                }
            }
        }
        Self(seen)
    }
}

struct Watch<'a> {
    args: &'a HaproxyWatchArgs,
    report: Report,
    /// The APIs, which are asked in each pass by the same connections.
    connections: Connections,
    cancel: &'a CancellationToken,
    said: Mutex<Said>,
}

/// What was said last.
#[derive(Debug, Default)]
struct Said {
    /// Of each HAProxy that is not as desired.
    endpoints: BTreeMap<String, String>,
    /// What was wrong with the desired files when they were last read.
    wrong: String,
}

impl Watch<'_> {
    /// Looks at one of them again and again, and tells of each pass whether all is well.
    async fn keep(
        &self,
        number: usize,
        place: Place<'_>,
        passed: mpsc::UnboundedSender<(usize, bool)>,
    ) -> Result<(), CliError> {
        let mut pause = FIRST_PAUSE;
        while !self.cancel.is_cancelled() {
            let seen = Seen::of(self.args.target.sources());
            let is_well = self.pass(place).await?;
            if self.cancel.is_cancelled() {
                break;
            }
            // Nobody listens any more where all is over.
            let _ = passed.send((number, is_well));
            let interval = Duration::from_secs(self.args.interval);
            let wait = if is_well { interval } else { pause.min(interval) };
            pause = if is_well { FIRST_PAUSE } else { pause.saturating_mul(2).min(interval) };
            self.cancel.run_until_cancelled(next(self.args, &seen, Instant::now() + wait)).await;
        }
        Ok(())
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at one of them, and puts right what differs. Returns whether it is as it should be.
    async fn pass(&self, place: Place<'_>) -> Result<bool, CliError> {
        let desired = match self.desired() {
            Ok(desired) => desired,
            Err(error) => {
                let wrong = error.to_string();
                if wrong != self.said().wrong {
                    self.say(
                        None,
                        "wrong",
                        &format!("{wrong}; nothing is done until that is mended"),
                        Json::Null,
                    )?;
                    self.said().wrong = wrong;
                }
                return Ok(false);
            }
        };
        self.said().wrong.clear();
        let outcome = if self.args.report_only {
            self.look(place, &desired).await
        } else {
            self.repair(place, &desired).await
        };
        match outcome {
            Ok(is_well) => Ok(is_well),
            // The HAProxy of this machine can't be had: it may be by and by.
            Err(CliError::Output(error)) => Err(CliError::Output(error)),
            Err(error) if error.is_usage() => Err(error),
            Err(error) => {
                self.once("this machine", "failed", &error.to_string(), Json::Null)?;
                Ok(false)
            }
        }
    }

    fn tools(&self) -> Tools<'_> {
        Tools {
            args: &self.args.target,
            connections: &self.connections,
            report: self.report,
            cancel: self.cancel,
        }
    }

    /// What is desired now. A file without any section is taken for one that is being written, or a mistake.
    fn desired(&self) -> Result<Desired, CliError> {
        let target = &self.args.target;
        let document = read(&target.desired, self.report)?;
        if document.sections().is_empty() {
            return Err(Error::Empty(target.desired.clone()).into());
        }
        Ok(target.desired(document.print())?)
    }

    async fn repair(&self, place: Place<'_>, desired: &Desired) -> Result<bool, CliError> {
        let options = self.args.change.options(&self.args.target)?;
        let (cancel, report) = (self.cancel, self.report);
        let job = Sync { desired, options: &options, planned: None, cancel, report };
        // What came of it is said once.
        let work = Work { job: &job, undone: &undone, ended: &|_, _| Ok(()) };
        let (endpoint, outcome) = one(self.tools(), place, Some(&desired.text), &work).await?;
        match outcome {
            Ok(result) => {
                let has_changed = !(result.applied_operations.is_empty()
                    && result.applied_files.is_empty()
                    && result.repaired.is_empty());
                let was_wrong = self.said().endpoints.remove(&endpoint).is_some();
                if has_changed || was_wrong {
                    let event = if has_changed { "synced" } else { "as-desired" };
                    let text = done(&endpoint, &result);
                    self.say(Some(&endpoint), event, text.trim_end(), done_json(&endpoint, &result))?;
                }
                Ok(true)
            }
            Err(failure) => self.failed(&endpoint, &failure),
        }
    }

    async fn look(&self, place: Place<'_>, desired: &Desired) -> Result<bool, CliError> {
        let options = self.args.change.options(&self.args.target)?;
        let job = Plan { desired, options: &options, cancel: self.cancel };
        let work = Work { job: &job, undone: &|_, _| None, ended: &|_, _| Ok(()) };
        let (endpoint, outcome) = one(self.tools(), place, None, &work).await?;
        match outcome {
            Ok(plan) if plan.is_empty() => {
                let was_wrong = self.said().endpoints.remove(&endpoint).is_some();
                if was_wrong {
                    let text = format!("{endpoint}: as desired.");
                    self.say(Some(&endpoint), "as-desired", &text, Json::Null)?;
                }
                Ok(true)
            }
            Ok(plan) => {
                let text = planned(&endpoint, &plan);
                self.once(&endpoint, "differs", text.trim_end(), planned_json(&endpoint, &plan))?;
                Ok(true)
            }
            Err(failure) => self.failed(&endpoint, &failure),
        }
    }

    fn failed(&self, endpoint: &str, failure: &FailedSync) -> Result<bool, CliError> {
        let text = format!("{endpoint}: {}", failure.error.chain());
        self.once(endpoint, "failed", &text, failed_json(endpoint, failure))?;
        Ok(false)
    }

    /// What is not as it should be, in a line.
    fn wrong(&self) -> String {
        let said = self.said();
        let wrong = Some(&said.wrong).filter(|wrong| !wrong.is_empty());
        let wrong = wrong.or_else(|| said.endpoints.values().next());
        wrong.and_then(|wrong| wrong.lines().next()).unwrap_or("it failed").to_owned()
    }

    /// Says something of a HAProxy, unless it was the last that was said of it.
    fn once(&self, endpoint: &str, event: &str, text: &str, details: Json) -> Result<(), CliError> {
        let before = self.said().endpoints.insert(endpoint.to_owned(), text.to_owned());
        if before.is_some_and(|said| said == text) {
            return Ok(());
        }
        self.say(Some(endpoint), event, text, details)
    }

    fn say(&self, endpoint: Option<&str>, event: &str, text: &str, details: Json) -> Result<(), CliError> {
        if !self.args.target.json {
            return print(&format!("{text}\n"));
        }
        let mut object = match details {
            Json::Object(object) => object,
            _ => serde_json::Map::from_iter([("message".to_owned(), json!(text))]),
        };
        object.insert("event".to_owned(), json!(event));
        if let Some(endpoint) = endpoint {
            object.insert("endpoint".to_owned(), json!(endpoint));
        }
        print(&format!("{}\n", Json::Object(object)))
    }
}
