//! What can be seen of a command that makes pass after pass.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Observed;
use crate::health::{Health, Role};

/// A command that makes pass after pass, as it is seen from outside.
///
/// ```
/// use std::time::Duration;
/// use setpoint_observe::{ObservedCommand, Observed, Role};
///
/// let patience = Duration::from_secs(60);
/// let command = ObservedCommand::new(/* its name */ "watch", patience);
/// assert!(command.readiness().is_err(), "nothing is done yet");
/// command.passed("all is as declared");
/// assert_eq!(command.readiness().as_deref(), Ok("working"));
/// command.failed("the disk is full");
/// assert_eq!(command.health().role(), Role::Failing);
/// assert!(command.metrics().contains("setpoint_passes_total{command=\"watch\",result=\"error\"} 1"));
/// ```
#[derive(Debug)]
pub struct ObservedCommand {
    name: &'static str,
    health: Health,
    succeeded: AtomicU64,
    failed: AtomicU64,
    /// When the last pass that succeeded ended, in seconds since 1970; 0 before there was one.
    last: AtomicI64,
}

impl ObservedCommand {
    /// Makes one, which counts as dead without a sign of life for longer than `patience`.
    pub fn new(name: &'static str, patience: Duration) -> Self {
        let (succeeded, failed, last) = Default::default();
        Self { name, health: Health::new(patience), succeeded, failed, last }
    }

    /// Its signs of life and its state.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Records a pass, and its outcome in a line.
    pub fn passed(&self, status: &str) {
        self.health.beat();
        self.succeeded.fetch_add(1, Ordering::Relaxed);
        self.last.store(Timestamp::now().as_second(), Ordering::Relaxed);
        self.health.set(Role::Working, status);
    }

    /// Records a pass that failed, and why.
    pub fn failed(&self, why: &str) {
        self.health.beat();
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.health.set(Role::Failing, why);
    }

    /// Records that the command ends.
    pub fn stopping(&self) {
        self.health.set_role(Role::Stopping);
    }
}

impl Observed for ObservedCommand {
    fn liveness(&self) -> Result<(), String> {
        self.health.liveness()
    }

    fn readiness(&self) -> Result<String, String> {
        self.health.readiness()
    }

    fn metrics(&self) -> String {
        let (name, load) = (self.name, |counter: &AtomicU64| counter.load(Ordering::Relaxed));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "# HELP setpoint_passes Passes by their result.\n\
             # TYPE setpoint_passes counter\n\
             setpoint_passes_total{{command=\"{name}\",result=\"ok\"}} {}\n\
             setpoint_passes_total{{command=\"{name}\",result=\"error\"}} {}\n\
             # HELP setpoint_last_pass_timestamp_seconds When the last pass that succeeded ended.\n\
             # TYPE setpoint_last_pass_timestamp_seconds gauge\n\
             setpoint_last_pass_timestamp_seconds{{command=\"{name}\"}} {}\n\
             # HELP setpoint_ready Whether the command does its work.\n\
             # TYPE setpoint_ready gauge\n\
             setpoint_ready{{command=\"{name}\"}} {}\n\
             # EOF\n",
            load(&self.succeeded),
            load(&self.failed),
            self.last.load(Ordering::Relaxed),
            u8::from(self.readiness().is_ok()),
        );
        text
    }

    fn state(&self) -> Value {
        let mut state = self.health.json();
        state["command"] = json!(self.name);
        state
    }
}
