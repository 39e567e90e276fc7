//! `cargo xtask soak NAME`: runs random schedules for as long as asked, or as many as asked.
//!
//! They are a test of the crate they are about; this command builds it with optimisation, tells it
//! how long to go on, and shows what it says while it runs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::{one_test, workspace};

/// Arguments of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to soak.
    #[arg(value_enum)]
    name: Soak,
    /// For how long; parts of a minute are fine [default: 1, unless `--kills` says how often an instance is killed].
    #[arg(long, value_name = "N", value_parser = parse_minutes)]
    minutes: Option<Duration>,
    /// How often the command of a host, or of an instance, is killed [default: 2000 for a host; an instance is killed for as long
    /// as there is time].
    #[arg(long, value_name = "N")]
    kills: Option<u64>,
    /// The seed of the first schedule; the next ones count up from it.
    #[arg(long)]
    seed: Option<u64>,
}

/// What can be soaked.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Soak {
    /// The engine against a simple model.
    Engine,
    /// The commands of a host, killed at random instants.
    Host,
    /// `setpoint haproxy serve`, killed at random instants between commits and reloads.
    Instance,
    /// Syncs of HAProxy: every family of changes on every HAProxy, and connections that break, 100 times at least.
    Sync,
}

impl Soak {
    /// The package, its test binary, and the test in it.
    fn test(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Engine => ("setpoint-engine", "engine", "schedules::random_schedules_for_as_long_as_asked"),
            Self::Host => ("setpoint", "cli", "kills::killed_as_often_as_asked_nothing_is_lost"),
            Self::Sync => (
                "setpoint-dataplane",
                "all",
                "soak::a_connection_that_breaks_leaves_the_former_configuration_or_the_desired_one",
            ),
            Self::Instance => (
                "setpoint",
                "serve",
                "killed_at_random_instants_the_old_or_the_new_configuration_is_there_and_haproxy_serves",
            ),
        }
    }
}

impl Args {
    /// How often something is killed.
    fn kills(&self) -> u64 {
        let default = if matches!(self.name, Soak::Instance) { u64::MAX } else { 2000 };
        self.kills.unwrap_or(default)
    }

    /// For how long; none if it goes on until it was killed often enough.
    fn time(&self) -> Option<Duration> {
        let until_killed = matches!(self.name, Soak::Instance) && self.kills.is_some();
        self.minutes.or_else(|| (!until_killed).then_some(Duration::from_mins(1)))
    }
}

pub(crate) fn parse_minutes(text: &str) -> Result<Duration> {
    let minutes: f64 = text.parse()?;
    match Duration::try_from_secs_f64((minutes * 60.0).ceil()) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => bail!("it must be above 0"),
    }
}

/// Runs the schedules. A run in which the test was not found is a failure.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (package, binary, test) = args.name.test();
    let mut command = workspace::cargo();
    command
        .args(["test", "--release", "--package", package, "--test", binary])
        .args(["--", "--exact", test, "--nocapture"])
        .env("SETPOINT_KILLS", args.kills().to_string())
        .env_remove("SETPOINT_SOAK_SECONDS")
        .env_remove("SETPOINT_SEED");
    if let Some(time) = args.time() {
        command.env("SETPOINT_SOAK_SECONDS", time.as_secs().to_string());
    }
    if let Some(seed) = args.seed {
        command.env("SETPOINT_SEED", seed.to_string());
    }
    one_test::run(command, package, test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_minute_are_whole_seconds() {
        assert_eq!(parse_minutes("0.5").unwrap(), Duration::from_secs(30));
        assert_eq!(parse_minutes("0.001").unwrap(), Duration::from_secs(1));
        for bad in ["0", "-1", "soon", "NaN", "inf"] {
            assert!(parse_minutes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_instance_is_killed_for_a_time_or_so_often_or_both() {
        let of = |minutes: Option<u64>, kills| {
            let args =
                Args { name: Soak::Instance, minutes: minutes.map(Duration::from_mins), kills, seed: None };
            (args.time(), args.kills())
        };
        assert_eq!(of(Some(5), None), (Some(Duration::from_mins(5)), u64::MAX));
        assert_eq!(of(None, Some(1000)), (None, 1000));
        assert_eq!(of(Some(5), Some(1000)), (Some(Duration::from_mins(5)), 1000));
        assert_eq!(of(None, None), (Some(Duration::from_mins(1)), u64::MAX));
    }
}
