//! Commands: checked, applied, undone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use setpoint_engine::{Configurator, Observed, OpCx, OpError, Operation};
use setpoint_graph::ItemRef;

use crate::fs::untouched;
use crate::host::Host;
use crate::item::{Command, Run, Wait};
use crate::process::{Ended, Job, run};

/// Runs the commands of items.
#[derive(Debug)]
pub struct Commands {
    host: Host,
    /// One command at a time for each item, also where nobody waits for an earlier one any more.
    turns: Mutex<BTreeMap<ItemRef, Arc<Mutex<()>>>>,
}

impl Commands {
    /// The configurator for a host.
    pub fn new(host: &Host) -> Self {
        Self { host: host.clone(), turns: Mutex::default() }
    }

    async fn run(&self, cx: &OpCx, item: &Command, what: &Run, within: Wait) -> Result<Ended, OpError> {
        let job = Job {
            argv: what.argv().into_iter().map(ToOwned::to_owned).collect(),
            env: item.env.clone(),
            cwd: self.host.directory_of(item.cwd.as_ref()).map_err(|error| untouched(&error))?,
            timeout: within.duration(),
        };
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(turns.entry(cx.item().clone()).or_default())
        };
        run(job, turn, cx.cancellation())
            .await
            .map_err(|error| OpError::untouched(format!("can't run {what}: {error}")))
    }

    /// Whether the state is there; none where that can't be told.
    async fn check(&self, cx: &OpCx, item: &Command) -> Result<Option<bool>, OpError> {
        let Some(check) = &item.check else { return Ok(None) };
        match self.run(cx, item, check, item.check_timeout).await? {
            Ended::Exited(status, _) => Ok(Some(status.success())),
            Ended::TimedOut(after, said) => Err(OpError::untouched(words(
                "check",
                &format!("took longer than {}s", after.as_secs_f32()),
                &said,
            ))),
            Ended::Cancelled => Err(OpError::untouched("cancelled while checking")),
        }
    }

    /// Brings the state about, and sees whether it is.
    async fn apply(&self, cx: &OpCx, item: &Command) -> Result<(), OpError> {
        self.must(cx, item, "apply", &item.apply, item.apply_timeout).await?;
        if self.check(cx, item).await? == Some(false) {
            return Err(OpError::new("`apply` succeeded, and `check` still fails"));
        }
        Ok(())
    }

    async fn must(
        &self,
        cx: &OpCx,
        item: &Command,
        verb: &str,
        what: &Run,
        within: Wait,
    ) -> Result<(), OpError> {
        match self.run(cx, item, what, within).await? {
            Ended::Exited(status, _) if status.success() => Ok(()),
            Ended::Exited(status, said) => {
                Err(OpError::new(words(verb, &format!("failed, {status}"), &said)))
            }
            Ended::TimedOut(after, said) => {
                let how = format!("took longer than {}s and was killed", after.as_secs_f32());
                Err(OpError::new(words(verb, &how, &said)))
            }
            Ended::Cancelled => Err(OpError::new(format!("`{verb}` was cancelled and killed"))),
        }
    }
}

fn words(verb: &str, how: &str, said: &str) -> String {
    if said.is_empty() { format!("`{verb}` {how}") } else { format!("`{verb}` {how}: {said}") }
}

impl Configurator<Command> for Commands {
    async fn create(&self, cx: &OpCx, new: &Command) -> Result<(), OpError> {
        if !cx.again() && self.check(cx, new).await? == Some(true) {
            // Nobody but the system itself brought it about: it is not ours to undo.
            return cx.adopt().await;
        }
        self.apply(cx, new).await
    }

    async fn modify(&self, cx: &OpCx, old: &Command, new: &Command) -> Result<(), OpError> {
        let same = old.apply == new.apply && old.env == new.env && old.cwd == new.cwd;
        if !cx.again() && (same || self.check(cx, new).await? == Some(true)) {
            return Ok(());
        }
        self.apply(cx, new).await
    }

    async fn delete(&self, cx: &OpCx, old: &Command) -> Result<(), OpError> {
        // What is about to be applied again is still wanted.
        if cx.returns() || cx.ownership().is_adopted() {
            return Ok(());
        }
        let Some(undo) = &old.undo else { return Ok(()) };
        if self.check(cx, old).await? == Some(false) {
            return Ok(());
        }
        self.must(cx, old, "undo", undo, old.undo_timeout).await
    }

    /// Its own limits, and some time to start and to end.
    fn limit(&self, operation: Option<Operation>, item: &Command) -> Option<Duration> {
        let check = item.check_timeout.duration();
        let own = match operation {
            None => check,
            Some(Operation::Create | Operation::Modify) => check * 2 + item.apply_timeout.duration(),
            Some(Operation::Delete) => check + item.undo_timeout.duration(),
        };
        Some(own + Duration::from_mins(1))
    }

    fn needs_recreate(&self, _: &Command, _: &Command) -> bool {
        false
    }

    async fn read(&self, cx: &OpCx, item: &Command) -> Result<Observed<Command>, OpError> {
        Ok(match self.check(cx, item).await? {
            None => Observed::Unsupported,
            Some(true) => Observed::Present(item.clone()),
            Some(false) => Observed::Absent,
        })
    }
}
