//! Whether a process lives, what it does, and an event for each change of that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::time::Instant;

/// How many changes are kept for those who have not taken them yet.
const KEPT: usize = 64;

/// What an instance does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It has not done anything yet.
    Starting,
    /// Another leads, and it would take over.
    Standby,
    /// It leads, and has not seen everything yet.
    TakingOver,
    /// It leads and works.
    Leading,
    /// It works, where there is nobody to lead.
    Working,
    /// What it does fails, and is tried again.
    Failing,
    /// It ends.
    Stopping,
}

impl Role {
    /// Its name in an answer to a probe.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Standby => "standby",
            Self::TakingOver => "takingover",
            Self::Leading => "leading",
            Self::Working => "working",
            Self::Failing => "failing",
            Self::Stopping => "stopping",
        }
    }

    /// Returns whether it does its work, or stands by to do it.
    pub const fn is_ready(self) -> bool {
        matches!(self, Self::Standby | Self::Leading | Self::Working)
    }
}

/// The state of an instance changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StateChange {
    /// When.
    pub at: Timestamp,
    /// What it did before.
    pub from: Role,
    /// What it does now.
    pub to: Role,
    /// Why, for people; empty where there is nothing to add.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Signs of life, and what the instance does.
#[derive(Debug)]
pub struct Health {
    state: Mutex<State>,
    changes: broadcast::Sender<StateChange>,
    began: Instant,
    /// When the main loop last gave a sign, in milliseconds since the beginning.
    beat: AtomicU64,
    patience: Duration,
}

/// What it does, since when, and why.
#[derive(Debug)]
struct State {
    role: Role,
    since: Timestamp,
    reason: String,
}

impl Health {
    /// Makes one; without a sign for longer than `patience`, an instance counts as dead.
    pub fn new(patience: Duration) -> Self {
        let state = State { role: Role::Starting, since: Timestamp::now(), reason: String::new() };
        Self {
            state: Mutex::new(state),
            changes: broadcast::Sender::new(KEPT),
            began: Instant::now(),
            beat: AtomicU64::new(0),
            patience,
        }
    }

    /// Gives a sign of life.
    pub fn beat(&self) {
        self.beat.store(self.now(), Ordering::Relaxed);
    }

    /// Sets what the instance does now.
    pub fn set_role(&self, role: Role) {
        self.set(role, "");
    }

    /// Sets what the instance does now, and why. If that is something else than before, all subscribers get the change.
    pub fn set(&self, role: Role, reason: &str) {
        let change = {
            let mut state = self.state();
            reason.clone_into(&mut state.reason);
            if state.role == role {
                return;
            }
            let (from, at) = (std::mem::replace(&mut state.role, role), Timestamp::now());
            state.since = at;
            StateChange { at, from, to: role, reason: reason.to_owned() }
        };
        tracing::debug!(from = change.from.as_str(), to = role.as_str(), reason, "the state changed");
        // There may be no subscriber.
        let _ = self.changes.send(change);
    }

    /// Subscribes to the changes from now on; a slow subscriber misses the oldest.
    pub fn subscribe(&self) -> broadcast::Receiver<StateChange> {
        self.changes.subscribe()
    }

    /// Returns what the instance does.
    pub fn role(&self) -> Role {
        self.state().role
    }

    /// Returns what the instance does, since when, and why, as JSON.
    pub fn json(&self) -> Value {
        let State { role, since, reason } = &*self.state();
        let mut json = json!({ "role": role, "since": since });
        if !reason.is_empty() {
            json["reason"] = json!(reason);
        }
        json
    }

    /// Returns for how long there was no sign of life, if that is too long.
    pub fn liveness(&self) -> Result<(), String> {
        let silent = Duration::from_millis(self.now().saturating_sub(self.beat.load(Ordering::Relaxed)));
        if silent <= self.patience {
            return Ok(());
        }
        Err(format!("no sign of life for {} s", silent.as_secs()))
    }

    /// Returns what the instance does, as an error if it neither works nor stands by.
    pub fn readiness(&self) -> Result<String, String> {
        self.liveness()?;
        let State { role, reason, .. } = &*self.state();
        let name = role.as_str();
        if role.is_ready() {
            return Ok(name.to_owned());
        }
        Err(if reason.is_empty() { name.to_owned() } else { format!("{name}: {reason}") })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Nothing under this lock can be half done, so a panic elsewhere does not spoil it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_ready_while_it_leads_or_stands_by_and_lives() {
        use Role::{Failing, Leading, Standby, Starting, Stopping, TakingOver, Working};
        let health = Health::new(Duration::from_mins(1));
        let ready = |role| {
            health.set_role(role);
            health.readiness().is_ok()
        };
        let roles = [Starting, Standby, TakingOver, Leading, Working, Failing, Stopping];
        assert_eq!(roles.map(ready), [false, true, false, true, true, false, false]);
        let silent = Health::new(Duration::ZERO);
        silent.set_role(Role::Leading);
        std::thread::sleep(Duration::from_millis(5));
        assert!(silent.liveness().is_err() && silent.readiness().is_err());
    }

    #[test]
    fn every_change_of_the_state_is_an_event_and_the_same_state_is_none() {
        let health = Health::new(Duration::from_mins(1));
        let mut changes = health.subscribe();
        health.set(Role::Failing, "the disk is full");
        health.set(Role::Failing, "the disk is still full");
        assert_eq!(health.readiness(), Err("failing: the disk is still full".to_owned()));
        assert_eq!(health.json()["reason"], "the disk is still full");
        health.set_role(Role::Working);
        let mut next = || changes.try_recv().map(|change| (change.from, change.to, change.reason)).ok();
        assert_eq!(next(), Some((Role::Starting, Role::Failing, "the disk is full".to_owned())));
        assert_eq!(next(), Some((Role::Failing, Role::Working, String::new())));
        assert_eq!(next(), None);
        assert_eq!(
            (health.readiness(), health.json()["role"].as_str()),
            (Ok("working".to_owned()), Some("working"))
        );
    }
}
