//! `setpoint haproxy watch`: keeps HAProxy at a configuration.
//!
//! ```text
//! the desired files changed ─┐
//! every so often ────────────┼─▶ read, compare ─▶ sync, or report ─▶ say what is new
//! a failure, after a pause ──┘
//! ```

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value as Json, json};
use setpoint_dataplane::sync::{self, Desired};
use setpoint_dataplane::target::ApiTarget;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::args::HaproxyWatchArgs;
use super::print::failed_json;
use super::targets::{Connections, Work, each, failed, until_signal};
use super::{done, done_json, planned, planned_json, undone};
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
        let connections = Connections::default();
        let mut watch = Watch { args, report, connections, said: BTreeMap::new(), wrong: String::new() };
        let mut pause = FIRST_PAUSE;
        while !cancel.is_cancelled() {
            let seen = Seen::of(args.target.sources());
            let is_well = watch.pass(cancel).await?;
            if cancel.is_cancelled() {
                break;
            }
            let status = format!("watching {}", args.target.desired.display());
            if is_well {
                running.passed(&status);
            } else {
                running.partly_failed(&status, &watch.wrong());
            }
            let interval = Duration::from_secs(args.interval);
            let wait = if is_well { interval } else { pause.min(interval) };
            pause = if is_well { FIRST_PAUSE } else { pause.saturating_mul(2).min(interval) };
            cancel.run_until_cancelled(next(args, &seen, Instant::now() + wait)).await;
        }
        running.stopping();
        Ok(0)
    })
}

/// Waits until the desired files have changed, and were left alone since, or until a time.
async fn next(args: &HaproxyWatchArgs, seen: &Seen, until: Instant) {
    let changed = async {
        let mut before = seen.clone();
        loop {
            sleep(LOOK_EVERY).await;
            let now = Seen::of(args.target.sources());
            if now != *seen && now == before {
                return;
            }
            before = now;
        }
    };
    tokio::select! {
        () = changed => {}
        () = sleep_until(until) => {}
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
    /// What was said last of each HAProxy that is not as desired.
    said: BTreeMap<String, String>,
    /// What was wrong with the desired files when they were last read.
    wrong: String,
}

impl Watch<'_> {
    /// Looks at each of them, and puts right what differs. Returns whether all are as they should be.
    async fn pass(&mut self, cancel: &CancellationToken) -> Result<bool, CliError> {
        let desired = match self.desired() {
            Ok(desired) => desired,
            Err(error) => {
                let wrong = error.to_string();
                if wrong != self.wrong {
                    self.say(
                        None,
                        "wrong",
                        &format!("{wrong}; nothing is done until that is mended"),
                        Json::Null,
                    )?;
                    self.wrong = wrong;
                }
                return Ok(false);
            }
        };
        self.wrong.clear();
        let outcome = if self.args.report_only {
            self.look(&desired, cancel).await
        } else {
            self.repair(&desired, cancel).await
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

    /// What is desired now. A file without any section is taken for one that is being written, or a mistake.
    fn desired(&self) -> Result<Desired, CliError> {
        let target = &self.args.target;
        let document = read(&target.desired, self.report)?;
        if document.sections().is_empty() {
            return Err(Error::Empty(target.desired.clone()).into());
        }
        Ok(target.desired(document.print())?)
    }

    async fn repair(&mut self, desired: &Desired, cancel: &CancellationToken) -> Result<bool, CliError> {
        let args = self.args;
        let options = args.change.options(&args.target)?;
        let work = async |target: ApiTarget| sync::sync(&target, desired, &options, cancel).await;
        // What came of it is said in order, and once.
        let work = Work { run: &work, undone: &undone, ended: &|_, _| Ok(()) };
        let outcomes =
            each(&args.target, &self.connections, Some(&desired.text), self.report, cancel, &work).await?;
        let mut is_well = true;
        for (endpoint, outcome) in outcomes {
            match outcome {
                Ok(result) => {
                    let has_changed = !(result.applied_operations.is_empty()
                        && result.applied_files.is_empty()
                        && result.repaired.is_empty());
                    let was_wrong = self.said.remove(&endpoint).is_some();
                    if has_changed || was_wrong {
                        let event = if has_changed { "synced" } else { "as-desired" };
                        let text = done(&endpoint, &result);
                        self.say(Some(&endpoint), event, text.trim_end(), done_json(&endpoint, &result))?;
                    }
                }
                Err(failure) => {
                    is_well = false;
                    let text = format!("{endpoint}: {}", failure.error.chain());
                    self.once(&endpoint, "failed", &text, failed_json(&endpoint, &failure))?;
                }
            }
        }
        Ok(is_well)
    }

    async fn look(&mut self, desired: &Desired, cancel: &CancellationToken) -> Result<bool, CliError> {
        let args = self.args;
        let options = args.change.options(&args.target)?;
        let work =
            async |target: ApiTarget| sync::plan(&target, desired, &options, cancel).await.map_err(failed);
        let work = Work { run: &work, undone: &|_, _| None, ended: &|_, _| Ok(()) };
        let outcomes = each(&args.target, &self.connections, None, self.report, cancel, &work).await?;
        let mut is_well = true;
        for (endpoint, outcome) in outcomes {
            match outcome {
                Ok(plan) if plan.is_empty() => {
                    if self.said.remove(&endpoint).is_some() {
                        let text = format!("{endpoint}: as desired.");
                        self.say(Some(&endpoint), "as-desired", &text, Json::Null)?;
                    }
                }
                Ok(plan) => {
                    let text = planned(&endpoint, &plan);
                    self.once(&endpoint, "differs", text.trim_end(), planned_json(&endpoint, &plan))?;
                }
                Err(failure) => {
                    is_well = false;
                    let text = format!("{endpoint}: {}", failure.error.chain());
                    self.once(&endpoint, "failed", &text, failed_json(&endpoint, &failure))?;
                }
            }
        }
        Ok(is_well)
    }

    /// What is not as it should be, in a line.
    fn wrong(&self) -> String {
        let wrong = Some(&self.wrong).filter(|wrong| !wrong.is_empty()).or_else(|| self.said.values().next());
        wrong.and_then(|wrong| wrong.lines().next()).unwrap_or("it failed").to_owned()
    }

    /// Says something of a HAProxy, unless it was the last that was said of it.
    fn once(&mut self, endpoint: &str, event: &str, text: &str, details: Json) -> Result<(), CliError> {
        if self.said.get(endpoint).is_some_and(|said| said == text) {
            return Ok(());
        }
        self.said.insert(endpoint.to_owned(), text.to_owned());
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
