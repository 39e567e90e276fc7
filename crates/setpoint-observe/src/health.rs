//! Whether a process lives, and whether it is ready.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// What an instance does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has not heard of the others yet.
    Starting,
    /// Another leads, and it would take over.
    Standby,
    /// It leads, and has not seen everything yet.
    TakingOver,
    /// It leads and works.
    Leading,
}

impl Role {
    /// Its name in an answer to a probe.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Standby => "standby",
            Self::TakingOver => "takingover",
            Self::Leading => "leading",
        }
    }
}

/// Signs of life, and what the instance does.
#[derive(Debug)]
pub struct Health {
    role: AtomicU8,
    began: Instant,
    /// When the main loop last gave a sign, in milliseconds since the beginning.
    beat: AtomicU64,
    patience: Duration,
}

impl Health {
    /// Makes one; without a sign for longer than `patience`, an instance counts as dead.
    pub fn new(patience: Duration) -> Self {
        Self { role: AtomicU8::new(0), began: Instant::now(), beat: AtomicU64::new(0), patience }
    }

    /// Gives a sign of life.
    pub fn beat(&self) {
        self.beat.store(self.now(), Ordering::Relaxed);
    }

    /// Says what the instance does now.
    pub fn set_role(&self, role: Role) {
        let number = match role {
            Role::Starting => 0,
            Role::Standby => 1,
            Role::TakingOver => 2,
            Role::Leading => 3,
        };
        self.role.store(number, Ordering::Relaxed);
    }

    /// Returns what the instance does.
    pub fn role(&self) -> Role {
        match self.role.load(Ordering::Relaxed) {
            0 => Role::Starting,
            1 => Role::Standby,
            2 => Role::TakingOver,
            _ => Role::Leading,
        }
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
        let role = self.role();
        let text = role.as_str().to_owned();
        if matches!(role, Role::Standby | Role::Leading) { Ok(text) } else { Err(text) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_ready_while_it_leads_or_stands_by_and_lives() {
        let health = Health::new(Duration::from_mins(1));
        let ready = |role| {
            health.set_role(role);
            health.readiness().is_ok()
        };
        assert_eq!(
            [Role::Starting, Role::Standby, Role::TakingOver, Role::Leading].map(ready),
            [false, true, false, true]
        );
        let silent = Health::new(Duration::ZERO);
        silent.set_role(Role::Leading);
        std::thread::sleep(Duration::from_millis(5));
        assert!(silent.liveness().is_err() && silent.readiness().is_err());
    }
}
