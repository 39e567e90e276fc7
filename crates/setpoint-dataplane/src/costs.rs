//! What the ways to carry over a difference cost.
//!
//! A way is a number of calls, and perhaps a reload. What a call costs is estimated from what it sends and from the size of the
//! configuration that is there, which the original parses and writes anew for each of them.

use serde::{Deserialize, Serialize};

/// What one call costs, in seconds: `base + per_held_byte · bytes of the configuration + per_sent_byte · bytes that are sent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// What it costs whatever it is about.
    #[serde(default)]
    pub base: f64,
    /// What each byte of the configuration that is there adds.
    #[serde(default)]
    pub per_held_byte: f64,
    /// What each byte that is sent adds.
    #[serde(default)]
    pub per_sent_byte: f64,
}

impl Cost {
    const fn new(base: f64, per_held_byte: f64, per_sent_byte: f64) -> Self {
        Self { base, per_held_byte, per_sent_byte }
    }

    /// What a call costs that sends so much, where so much is held.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn of(self, held: usize, sent: usize) -> f64 {
        self.base + self.per_held_byte * held as f64 + self.per_sent_byte * sent as f64
    }
}

/// What calls to a target cost, and what a reload is worth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Beginning a transaction.
    pub begin: Cost,
    /// A change in a transaction.
    pub change: Cost,
    /// Committing a transaction.
    pub commit: Cost,
    /// A change that takes effect by itself.
    pub direct: Cost,
    /// Pushing the whole text.
    pub push: Cost,
    /// What a commit or a push takes longer where HAProxy has to check the configuration before it answers.
    pub check: Cost,
    /// What a reload weighs, in seconds: connections that it closes, and a second process for as long as the old one drains.
    pub reload: f64,
}

/// What a reload weighs where nobody says otherwise.
const RELOAD: f64 = 10.0;

impl Costs {
    /// Those of Setpoint's own API, and of an instance on this machine: `cargo xtask bench sync` and `bench dataplane` measure them.
    pub const SETPOINT: Self = Self {
        begin: Cost::new(0.000_4, 0.0, 0.0),
        change: Cost::new(0.000_4, 0.0, 1e-7),
        commit: Cost::new(0.003, 5e-9, 0.0),
        direct: Cost::new(0.003, 2e-9, 1e-7),
        push: Cost::new(0.004, 3e-8, 5e-8),
        check: Cost::new(0.02, 3e-7, 0.0),
        reload: RELOAD,
    };

    /// Those of the original API, as they were measured at 1 MB: it reads and writes the whole configuration for each call.
    pub const ORIGINAL: Self = Self {
        begin: Cost::new(0.002, 5.5e-7, 0.0),
        change: Cost::new(0.002, 1.05e-7, 1e-7),
        commit: Cost::new(0.005, 1.5e-7, 0.0),
        direct: Cost::new(0.02, 1.1e-6, 1e-7),
        push: Cost::new(0.005, 4e-7, 5e-7),
        check: Cost::new(0.02, 4.5e-7, 0.0),
        reload: RELOAD,
    };

    /// The same with another weight of a reload.
    #[must_use]
    pub const fn with_reload(self, reload: f64) -> Self {
        Self { reload, ..self }
    }
}

/// What somebody says of costs; the target says the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weights {
    /// What calls cost.
    pub costs: Option<Costs>,
    /// What a reload weighs, in seconds.
    pub reload: Option<f64>,
}

impl Weights {
    /// The costs that count at a target.
    pub fn over(self, target: Costs) -> Costs {
        let costs = self.costs.unwrap_or(target);
        costs.with_reload(self.reload.unwrap_or(costs.reload))
    }
}

/// How much is held and sent, by way.
#[derive(Clone, Debug)]
pub(crate) enum Calls {
    /// A transaction with changes that send so much each.
    Transaction(Vec<usize>),
    /// Changes by themselves, which send so much each.
    OneByOne(Vec<usize>),
    /// The whole text.
    Push,
}

/// What a way is expected to take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// How many calls it takes.
    pub calls: usize,
    /// How long they take, in seconds.
    pub seconds: f64,
    /// How often HAProxy reloads.
    pub reloads: u32,
    /// What it costs, in seconds: how long it takes, and what reloads weigh.
    pub cost: f64,
}

impl Costs {
    /// What a change in a transaction costs that sends so much.
    pub(crate) fn change(&self, held: usize, sent: usize) -> f64 {
        self.change.of(held, sent)
    }

    /// What a way takes, where so much is held.
    pub(crate) fn estimate(&self, calls: &Calls, held: usize, reloads: bool) -> Estimate {
        let (count, seconds) = match calls {
            Calls::Transaction(changes) => {
                let changed: f64 = changes.iter().map(|sent| self.change.of(held, *sent)).sum();
                (changes.len() + 2, self.begin.of(held, 0) + changed + self.commit.of(held, 0))
            }
            Calls::OneByOne(changes) => {
                (changes.len(), changes.iter().map(|sent| self.direct.of(held, *sent)).sum())
            }
            Calls::Push => (1, self.push.of(held, held)),
        };
        let checks = reloads && !matches!(calls, Calls::OneByOne(_));
        let seconds = seconds + if checks { self.check.of(held, 0) } else { 0.0 };
        let cost = seconds + if reloads { self.reload } else { 0.0 };
        Estimate { calls: count, seconds, reloads: u32::from(reloads), cost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1_050_000;

    /// Holds an estimate to what was measured at the original, within a fifth.
    #[track_caller]
    fn about(estimate: Estimate, measured: f64) {
        let ratio = estimate.seconds / measured;
        assert!((0.8..1.2).contains(&ratio), "{estimate:?} beside {measured}");
    }

    #[test]
    fn the_costs_of_the_original_are_those_that_were_measured() {
        let costs = Costs::ORIGINAL;
        about(costs.estimate(&Calls::Push, MB, true), 1.45);
        about(costs.estimate(&Calls::Transaction(vec![100; 100]), MB, true), 0.6 + 11.0 + 0.65);
        about(costs.estimate(&Calls::OneByOne(vec![100; 100]), MB, false), 120.0);
    }

    #[test]
    fn a_reload_is_weighed_and_not_counted_as_time() {
        let costs = Costs::SETPOINT.with_reload(3.0);
        let (with, without) =
            (costs.estimate(&Calls::Push, MB, true), costs.estimate(&Calls::Push, MB, false));
        assert!((with.cost - with.seconds - 3.0).abs() < 1e-9, "{with:?}");
        assert!((without.cost - without.seconds).abs() < 1e-9, "{without:?}");
        assert_eq!((with.reloads, without.reloads), (1, 0));
    }
}
