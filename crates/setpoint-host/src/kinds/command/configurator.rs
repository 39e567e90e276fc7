//! Commands: checked, applied, undone.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use setpoint_engine::{Configurator, Damage, Observed, OpCx, OpError, Operation};
use setpoint_graph::ItemRef;
use tokio::sync::oneshot;

use super::Command;
use crate::configure::PassingNote;
use crate::fs::untouched;
use crate::host::Host;
use crate::item::{Invocation, Wait};
use crate::process::{COMMAND_TAG, Ended, Job, Lines, Tag, run};

/// How often is looked whether what was cut off has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Runs the commands of items.
#[derive(Debug)]
pub struct Commands {
    host: Host,
    /// One command at a time for each item, also where nobody waits for an earlier one any more.
    run_locks: Mutex<BTreeMap<ItemRef, Arc<Mutex<()>>>>,
}

impl Commands {
    /// The configurator for a host.
    pub fn new(host: &Host) -> Self {
        Self { host: host.clone(), run_locks: Mutex::default() }
    }

    async fn run(
        &self,
        cx: &OpCx,
        item: &Command,
        what: &Invocation,
        within: Wait,
        lines: Option<Lines>,
        is_noted: IsNoted,
    ) -> Result<Ended, OpError> {
        let (started, has_started) = oneshot::channel();
        let tag = self.tag(item);
        let mut env = item.env.clone();
        env.insert(COMMAND_TAG.to_owned(), tag.unique_value());
        let job = Job {
            argv: what.argv().into_iter().map(ToOwned::to_owned).collect(),
            env,
            cwd: self.host.directory_of(item.cwd.as_ref()).map_err(|error| untouched(&error))?,
            timeout: within.duration(),
            lines,
            open_files: self.host.open_files(),
            started: (is_noted == IsNoted::Yes).then_some(started),
        };
        let run_lock = {
            let mut run_locks = self.run_locks.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(run_locks.entry(cx.item().clone()).or_default())
        };
        let cancellation = cx.cancellation().child_token();
        let mut running = std::pin::pin!(run(job, run_lock, &cancellation));
        let ended = tokio::select! {
            biased;
            ended = &mut running => ended,
            Ok(started) = has_started => {
                if let Err(why) = cx.note(&PassingNote::Running(started)).await {
                    // Nobody would find it again.
                    cancellation.cancel();
                    let _ = running.await;
                    return Err(OpError::new(format!("{what} was begun, and killed, as its process {why}")));
                }
                running.await
            }
        };
        ended.map_err(|error| OpError::untouched(format!("can't run {what}: {error}")))
    }

    fn tag(&self, item: &Command) -> Tag {
        Tag::new(self.host.set(), self.host.root(), &item.name)
    }

    /// Waits for what a run that was cut off had begun: two at a time would be worse than a late one.
    async fn wait_for_orphan(&self, cx: &OpCx, item: &Command) -> Result<(), OpError> {
        let tag = self.tag(item);
        let most = item.apply_timeout.duration().max(item.undo_timeout.duration());
        let until = tokio::time::Instant::now() + most;
        let noted = || match cx.noted() {
            Some(PassingNote::Running(started)) => started.alive(),
            _ => None,
        };
        while let Some(orphan) = noted().or_else(|| tag.orphaned_command()) {
            if tokio::time::Instant::now() >= until || cx.is_cancelled() {
                let pid = orphan.pid.as_raw_nonzero();
                let message = format!(
                    "what a run that was cut off had begun still runs, as process {pid}; end it first"
                );
                return Err(OpError::untouched(message));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Asks whether the state is there.
    async fn check(&self, cx: &OpCx, item: &Command) -> Result<Checked, OpError> {
        let Some(check) = &item.check else { return Ok(Checked::Unknown) };
        match self.run(cx, item, check, item.check_timeout, None, IsNoted::No).await? {
            Ended::Exited(status, _) if status.success() => Ok(Checked::Holds),
            Ended::Exited(status, output) => {
                Ok(Checked::Fails(words("check", &format!("still fails, {status}"), shown(item, &output))))
            }
            Ended::TimedOut(after, output) => Err(OpError::untouched(words(
                "check",
                &format!("took longer than {}s", after.as_secs_f32()),
                shown(item, &output),
            ))),
            Ended::Cancelled => Err(OpError::untouched("`check` was cancelled and killed")),
            Ended::Unwatched(error) => Err(OpError::untouched(unwatched("check", &error))),
        }
    }

    /// Brings the state about, and sees whether it is.
    async fn apply(&self, cx: &OpCx, item: &Command) -> Result<(), OpError> {
        cx.note(&PassingNote::Applying).await?;
        let applied = self.must(cx, item, "apply", &item.apply, item.apply_timeout).await;
        if let Err(why) = &applied
            && why.damage() == Damage::Untouched
        {
            return applied;
        }
        // The first `apply` of all: where `check` still fails, nothing is there that `undo` would take back. The next run asks
        // first, and what somebody has brought about until then is theirs.
        let is_first = cx.operation() == Some(Operation::Create) && !cx.must_reapply();
        let failed = |why: String| if is_first { OpError::untouched(why) } else { OpError::new(why) };
        match (applied, self.check(cx, item).await) {
            (Ok(()), Ok(Checked::Holds | Checked::Unknown)) => Ok(()),
            (Ok(()), Ok(Checked::Fails(how))) => Err(failed(format!("`apply` succeeded, and {how}"))),
            // What `check` could not say, it is asked by the next run: the state may well be there, and is ours then.
            (Ok(()), Err(why)) => Err(OpError::unknown(format!("`apply` succeeded, but {why}"))),
            (Err(why), Err(_)) if is_first => Err(OpError::unknown(why.to_string())),
            (Err(why), Ok(Checked::Fails(_))) => Err(failed(why.to_string())),
            (Err(why), _) => Err(why),
        }
    }

    async fn must(
        &self,
        cx: &OpCx,
        item: &Command,
        verb: &str,
        what: &Invocation,
        within: Wait,
    ) -> Result<(), OpError> {
        let lines = self.host.0.output.of(cx.item()).filter(|_| !item.sensitive);
        match self.run(cx, item, what, within, lines, IsNoted::Yes).await? {
            Ended::Exited(status, _) if status.success() => Ok(()),
            Ended::Exited(status, output) => {
                Err(OpError::new(words(verb, &format!("failed, {status}"), shown(item, &output))))
            }
            Ended::TimedOut(after, output) => {
                let how = format!("took longer than {}s and was killed", after.as_secs_f32());
                Err(OpError::new(words(verb, &how, shown(item, &output))))
            }
            Ended::Cancelled => Err(OpError::new(format!("`{verb}` was cancelled and killed"))),
            Ended::Unwatched(error) => Err(OpError::new(unwatched(verb, &error))),
        }
    }
}

/// Whether it is noted which process a command runs as, so that the next run finds it where this one is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsNoted {
    Yes,
    No,
}

/// What `check` says.
#[derive(Debug, PartialEq)]
enum Checked {
    /// The state is there.
    Holds,
    /// It is not, in these words.
    Fails(String),
    /// There is no `check`.
    Unknown,
}

/// Returns whether the `apply` of a command that was cut off may have been run.
fn is_applying(cx: &OpCx) -> bool {
    cx.ownership().is_adopted() || matches!(cx.noted(), Some(PassingNote::Applying | PassingNote::Running(_)))
}

/// What a command wrote, as far as it may be shown.
fn shown<'a>(item: &Command, output: &'a str) -> &'a str {
    if item.sensitive && !output.is_empty() { "(its output is sensitive)" } else { output }
}

fn unwatched(verb: &str, error: &io::Error) -> String {
    format!("`{verb}` was killed, as it could not be watched: {error}")
}

fn words(verb: &str, how: &str, output: &str) -> String {
    if output.is_empty() { format!("`{verb}` {how}") } else { format!("`{verb}` {how}: {output}") }
}

impl Configurator<Command> for Commands {
    async fn create(&self, cx: &OpCx, new: &Command) -> Result<(), OpError> {
        if !cx.must_reapply() && self.check(cx, new).await? == Checked::Holds {
            // Whose it was before it was found to be gone right now, it is again. Otherwise nobody but the system itself, or
            // somebody, brought it about: it is not ours to undo.
            return if cx.was_lost() { Ok(()) } else { cx.adopt().await };
        }
        self.apply(cx, new).await
    }

    async fn modify(&self, cx: &OpCx, old: &Command, new: &Command) -> Result<(), OpError> {
        let runs_alike = old.env == new.env && old.cwd == new.cwd;
        let asks_alike = runs_alike && old.check == new.check;
        if !cx.must_reapply() {
            if asks_alike && old.apply == new.apply {
                return Ok(());
            }
            match self.check(cx, new).await? {
                // Another state, which holds already: what another `undo` would take away is not what was made here.
                Checked::Holds if old.is_of_another_state(new) => return cx.adopt().await,
                Checked::Holds => return Ok(()),
                // How one asked for it before is no reason to bring it about again.
                Checked::Unknown if runs_alike && old.apply == new.apply => return Ok(()),
                Checked::Fails(_) | Checked::Unknown => {}
            }
        }
        self.apply(cx, new).await
    }

    async fn delete(&self, cx: &OpCx, old: &Command) -> Result<(), OpError> {
        // What is about to be applied again is still wanted.
        if cx.is_recreation() || cx.ownership().is_adopted() {
            return Ok(());
        }
        let Some(undo) = &old.undo else { return Ok(()) };
        if matches!(self.check(cx, old).await?, Checked::Fails(_)) {
            return Ok(());
        }
        let undone = self.must(cx, old, "undo", undo, old.undo_timeout).await;
        // What is left of it is for `check` to say, by the next attempt and by whoever declares it again.
        undone.map_err(|why| if old.check.is_some() { OpError::untouched(why.to_string()) } else { why })
    }

    /// Its own limits, and some time to start and to end.
    fn limit(&self, operation: Option<Operation>, item: &Command) -> Option<Duration> {
        let check = item.check_timeout.duration();
        let own = match operation {
            // What a run that was cut off had begun may be waited for.
            None => check + item.apply_timeout.duration().max(item.undo_timeout.duration()),
            Some(Operation::Create | Operation::Modify) => check * 2 + item.apply_timeout.duration(),
            Some(Operation::Delete) => check + item.undo_timeout.duration(),
        };
        Some(own + Duration::from_mins(1))
    }

    async fn read(&self, cx: &OpCx, item: &Command) -> Result<Observed<Command>, OpError> {
        if cx.unfinished().is_some() {
            let _waiting = self.host.0.checks.wait(cx.item());
            self.wait_for_orphan(cx, item).await?;
        }
        let _checking = self.host.0.checks.begin(cx.item());
        // Where it runs is made anew first, and then it is asked. One that goes can't be asked, nor undone.
        if item.check.is_some() && !self.host.is_unwanted(cx.item()) && self.host.lacks(item.cwd.as_ref()) {
            return Ok(Observed::Absent);
        }
        Ok(match self.check(cx, item).await? {
            Checked::Unknown => Observed::Unsupported,
            // A creation was cut off before it had done anything: somebody else brought it about.
            Checked::Holds if cx.unfinished() == Some(Operation::Create) && !is_applying(cx) => {
                Observed::Absent
            }
            Checked::Holds => Observed::Present(item.clone()),
            Checked::Fails(_) => Observed::Absent,
        })
    }
}
