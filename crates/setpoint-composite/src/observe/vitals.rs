//! Whether an operator lives, and whether it is ready.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use crate::lease::boot_time;

/// What an instance does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has not heard of the others yet.
    Starting,
    /// Another leads, and it would take over.
    Standby,
    /// It leads, and has not seen all Composites yet.
    TakingOver,
    /// It leads and works.
    Leading,
}

/// Signs of life.
#[derive(Debug)]
pub struct Vitals {
    role: AtomicU8,
    /// When the main loop last gave a sign, in milliseconds of [`boot_time`].
    beat: AtomicU64,
    patience: Duration,
}

impl Vitals {
    /// Makes them; without a sign for longer than `patience`, an instance counts as dead.
    pub fn new(patience: Duration) -> Self {
        let vitals = Self { role: AtomicU8::new(0), beat: AtomicU64::new(0), patience };
        vitals.beat();
        vitals
    }

    /// Gives a sign of life.
    pub fn beat(&self) {
        self.beat.store(milliseconds(boot_time()), Ordering::Relaxed);
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

    /// What the instance does.
    pub fn role(&self) -> Role {
        match self.role.load(Ordering::Relaxed) {
            0 => Role::Starting,
            1 => Role::Standby,
            2 => Role::TakingOver,
            _ => Role::Leading,
        }
    }

    /// Whether it does its work, or stands by to do it.
    pub fn is_ready(&self) -> bool {
        self.is_alive() && matches!(self.role(), Role::Standby | Role::Leading)
    }

    /// Whether there was a sign of life lately.
    pub fn is_alive(&self) -> bool {
        let silent = milliseconds(boot_time()).saturating_sub(self.beat.load(Ordering::Relaxed));
        Duration::from_millis(silent) <= self.patience
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_ready_while_it_leads_or_stands_by_and_lives() {
        let vitals = Vitals::new(Duration::from_mins(1));
        let ready = |role| {
            vitals.set_role(role);
            vitals.is_ready()
        };
        assert_eq!(
            [Role::Starting, Role::Standby, Role::TakingOver, Role::Leading].map(ready),
            [false, true, false, true]
        );
        let silent = Vitals::new(Duration::ZERO);
        silent.set_role(Role::Leading);
        std::thread::sleep(Duration::from_millis(5));
        assert!(!silent.is_alive() && !silent.is_ready());
    }
}
