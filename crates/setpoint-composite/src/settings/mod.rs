//! All parameters with their defaults and their validation.
//!
//! The binary reads them from flags, the environment and a file; here they are values.

mod detect;
mod provider;

use std::collections::BTreeSet;
use std::time::Duration;

pub use detect::{METADATA, detect_provider};
pub use provider::{CloudProvider, UnknownProvider};

use setpoint_consul::watch::LONGEST_WAIT;
use setpoint_kube::lease::Timing;

/// The namespaces whose Composites are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// All of the cluster.
    All,
    /// These.
    Only(BTreeSet<String>),
}

/// How instances agree on who works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The times.
    pub timing: Timing,
}

/// How an operator works.
///
/// ```
/// use setpoint_composite::settings::{CloudProvider, Settings};
///
/// let settings = Settings::default();
/// assert_eq!(settings.check_interval.as_millis(), 300_000);
/// assert_eq!(settings.retry_time.as_millis(), 20_000);
/// assert_eq!(settings.on_success_delay_time.as_millis(), 3_000);
/// assert_eq!(settings.cloud_provider, CloudProvider::OnPrem);
/// assert!(settings.validate().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespaces that are served.
    pub namespaces: Namespaces,
    /// Whether the structure is published to ConfigMaps.
    pub sync_enabled: bool,
    /// How often ownership is checked and everything is looked at again, whatever events there were.
    pub check_interval: Duration,
    /// The longest pause before Consul is asked again after an error.
    pub retry_time: Duration,
    /// How long it takes until Consul may be asked once more after an answer: the refill of a bucket that holds two.
    pub on_success_delay_time: Duration,
    /// How long Consul may hold a question back while nothing changes. More than 5 s are taken for 5 s: Consul does not report
    /// every removal, so that it has to be asked from time to time.
    pub wait_time: Duration,
    /// How many structures are watched by a connection of their own. One connection for all others finds out in which of them
    /// something changed.
    pub consul_watches: usize,
    /// How long a structure must be gone before its absence is published.
    pub removal_grace: Duration,
    /// The cloud provider that the payload names.
    pub cloud_provider: CloudProvider,
    /// The name of the ConfigMap.
    pub config_map: String,
    /// The manager of the ConfigMap, for its label.
    pub managed_by: String,
    /// The application that the ConfigMap is a part of, for its label.
    pub part_of: String,
    /// The longest first pause after a ConfigMap could not be written.
    pub apply_retry_time: Duration,
    /// The longest pause after a ConfigMap could not be written.
    pub apply_retry_max_time: Duration,
    /// How often writing the ConfigMap may fail in a row before the condition reports it.
    pub tolerated_failures: u32,
    /// How long one request to the API server may take.
    pub request_timeout: Duration,
    /// How instances agree on who works; none if there is only this one.
    pub election: Option<Election>,
    /// What this instance is called in statuses and Events.
    pub instance: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespaces: Namespaces::All,
            sync_enabled: true,
            check_interval: Duration::from_mins(5),
            retry_time: Duration::from_secs(20),
            on_success_delay_time: Duration::from_secs(3),
            wait_time: LONGEST_WAIT,
            consul_watches: 32,
            removal_grace: Duration::from_secs(10),
            cloud_provider: CloudProvider::OnPrem,
            config_map: "composite-structure".to_owned(),
            managed_by: "core-operator".to_owned(),
            part_of: "Cloud-Core".to_owned(),
            apply_retry_time: Duration::from_secs(3),
            apply_retry_max_time: Duration::from_secs(30),
            tolerated_failures: 10,
            request_timeout: Duration::from_secs(10),
            election: None,
            instance: "setpoint".to_owned(),
        }
    }
}

/// A parameter that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}: {why}")]
pub struct InvalidSetting {
    /// The parameter, as its flag is called.
    pub parameter: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl Settings {
    /// Checks all of them; returns the first that can't be used.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let wrong = |parameter, why: &str| Err(InvalidSetting { parameter, why: why.to_owned() });
        let at_least = |parameter, value: Duration, least: Duration| {
            if value < least {
                Err(InvalidSetting {
                    parameter,
                    why: format!("must be at least {least:?}, and is {value:?}"),
                })
            } else {
                Ok(())
            }
        };
        let (millisecond, second) = (Duration::from_millis(1), Duration::from_secs(1));
        at_least("check-interval", self.check_interval, Duration::from_millis(100))?;
        at_least("retry-time", self.retry_time, Duration::from_millis(10))?;
        at_least("on-success-delay-time", self.on_success_delay_time, millisecond)?;
        at_least("consul-wait-time", self.wait_time, second)?;
        if self.wait_time > Duration::from_mins(10) {
            return wrong(
                "consul-wait-time",
                "must be at most 10 minutes, which is the most that Consul waits",
            );
        }
        at_least("request-timeout", self.request_timeout, Duration::from_millis(100))?;
        at_least("apply-retry-time", self.apply_retry_time, millisecond)?;
        if self.apply_retry_max_time < self.apply_retry_time {
            return wrong("apply-retry-max-time", "must not be shorter than apply-retry-time");
        }
        if !is_object_name(&self.config_map) {
            return wrong(
                "config-map",
                "must be a name that Kubernetes takes: small letters, digits, `-` and `.`",
            );
        }
        for (parameter, value) in [("managed-by", &self.managed_by), ("part-of", &self.part_of)] {
            if !is_label_value(value) {
                return wrong(
                    parameter,
                    "must be a value that Kubernetes takes for a label, and not be empty",
                );
            }
        }
        if let Namespaces::Only(names) = &self.namespaces {
            if names.is_empty() {
                return wrong("namespace", "name at least one namespace, or serve all of them");
            }
            if names.iter().any(|name| !is_object_name(name) || name.contains('.')) {
                return wrong("namespace", "must be the name of a namespace");
            }
        }
        if let Some(election) = &self.election {
            if !is_object_name(&election.name) {
                return wrong("lease-name", "must be a name that Kubernetes takes");
            }
            if let Err(why) = election.timing.validate() {
                return wrong("lease-duration", why);
            }
        }
        Ok(())
    }
}

/// Whether Kubernetes takes it as the name of an object: a DNS subdomain.
fn is_object_name(name: &str) -> bool {
    let inside =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=253).contains(&bytes.len())
        && bytes.iter().copied().all(inside)
        && bytes.first().copied().is_some_and(edge)
        && bytes.last().copied().is_some_and(edge)
}

fn is_label_value(value: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let bytes = value.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().copied().all(inside)
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_used_is_reported_by_the_name_of_its_flag() {
        type Change = fn(&mut Settings);
        let changes: [(&str, Change); 9] = [
            ("check-interval", |settings| settings.check_interval = Duration::ZERO),
            ("retry-time", |settings| settings.retry_time = Duration::ZERO),
            ("on-success-delay-time", |settings| settings.on_success_delay_time = Duration::ZERO),
            ("consul-wait-time", |settings| settings.wait_time = Duration::from_mins(11)),
            ("apply-retry-max-time", |settings| settings.apply_retry_max_time = Duration::ZERO),
            ("config-map", |settings| settings.config_map = "Composite".to_owned()),
            ("managed-by", |settings| settings.managed_by = String::new()),
            ("part-of", |settings| settings.part_of = "a b".to_owned()),
            ("namespace", |settings| settings.namespaces = Namespaces::Only(BTreeSet::new())),
        ];
        for (parameter, change) in changes {
            let mut settings = Settings::default();
            change(&mut settings);
            assert_eq!(settings.validate().unwrap_err().parameter, parameter);
        }
    }
}
