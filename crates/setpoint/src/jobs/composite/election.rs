//! How instances agree on who works.

use clap::Args;
use serde::{Deserialize, Serialize};
use setpoint_composite::settings::Election;
use setpoint_kube::lease::Timing;

use super::parameters::{Time, time};

/// The parameters of leader election.
#[derive(Clone, Debug, Default, Args, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", default)]
#[command(next_help_heading = "Leader election")]
pub(crate) struct ElectionArgs {
    /// Whether instances agree by a Lease on who works [default: true].
    #[arg(long, value_name = "BOOL", env = "SETPOINT_COMPOSITE_LEADER_ELECT")]
    leader_elect: Option<bool>,
    /// The name of the Lease [default: setpoint-composite].
    #[arg(long, value_name = "NAME", env = "SETPOINT_COMPOSITE_LEASE_NAME")]
    lease_name: Option<String>,
    /// The namespace of the Lease [default: the own namespace].
    #[arg(long, value_name = "NAME", env = "SETPOINT_COMPOSITE_LEASE_NAMESPACE")]
    lease_namespace: Option<String>,
    /// For how long others leave a Lease alone that is not renewed [default: 15s].
    #[arg(long, value_name = "TIME", env = "SETPOINT_COMPOSITE_LEASE_DURATION")]
    lease_duration: Option<Time>,
    /// After how long a leader that can't renew the Lease stops by itself [default: 10s].
    #[arg(long, value_name = "TIME", env = "SETPOINT_COMPOSITE_LEASE_RENEW_DEADLINE")]
    lease_renew_deadline: Option<Time>,
    /// How often the Lease is renewed or looked at [default: 2s].
    #[arg(long, value_name = "TIME", env = "SETPOINT_COMPOSITE_LEASE_RETRY_TIME")]
    lease_retry_time: Option<Time>,
}

impl ElectionArgs {
    /// How it is agreed, if it is; `home` is the own namespace.
    pub(crate) fn election(&self, home: &str) -> Option<Election> {
        let timing = Timing::default();
        self.leader_elect.unwrap_or(true).then(|| Election {
            namespace: self.lease_namespace.clone().unwrap_or_else(|| home.to_owned()),
            name: self.lease_name.clone().unwrap_or_else(|| "setpoint-composite".to_owned()),
            timing: Timing {
                duration: time(self.lease_duration, timing.duration),
                deadline: time(self.lease_renew_deadline, timing.deadline),
                retry: time(self.lease_retry_time, timing.retry),
            },
        })
    }
}
