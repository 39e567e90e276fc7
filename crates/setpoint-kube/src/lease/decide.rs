//! What is to be done about a Lease, given what was seen of it: pure.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;

/// The times of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// For how long others leave a Lease alone that is not renewed.
    pub duration: Duration,
    /// After how long a leader that could not renew it stops by itself. It is shorter than `duration`.
    pub deadline: Duration,
    /// How often it is renewed or looked at.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

impl Timing {
    /// Checks that a leader stops before another starts.
    pub fn validate(&self) -> Result<(), &'static str> {
        if self.duration < Duration::from_secs(1) {
            return Err("the duration of the lease must be at least a second");
        }
        if self.duration.subsec_nanos() != 0 {
            return Err("the duration of the lease must be a whole number of seconds");
        }
        if self.deadline >= self.duration {
            return Err("the renew deadline must be shorter than the duration of the lease");
        }
        if self.retry.is_zero() || self.retry * 2 > self.deadline {
            return Err("the renew deadline must leave time for two attempts to renew the lease");
        }
        Ok(())
    }
}

/// A Lease as it was seen, and since when it has looked like this.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Lease.
    pub lease: Lease,
    /// When it was first seen like this, by the own clock: clocks of others are not relied on.
    pub since: Duration,
}

impl Observed {
    /// Takes over what was seen now; a Lease that looks as it did keeps its time.
    pub fn update(before: Option<Self>, lease: Lease, now: Duration) -> Self {
        match before {
            Some(before) if before.lease.spec == lease.spec => Self { lease, since: before.since },
            _ => Self { lease, since: now },
        }
    }

    /// Who holds it.
    pub fn holder(&self) -> Option<&str> {
        let spec = self.lease.spec.as_ref()?;
        spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// How often it has changed hands.
    pub fn transitions(&self) -> i32 {
        self.lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or_default()
    }

    fn expired(&self, timing: &Timing, now: Duration) -> bool {
        let seconds = self.lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let duration = seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(timing.duration, Duration::from_secs);
        now >= self.since + duration
    }
}

/// What a candidate does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nobody has made the Lease yet.
    Create,
    /// Takes it, with this transition count.
    Take {
        /// How often it will have changed hands.
        transitions: i32,
    },
    /// Somebody holds it.
    Wait,
}

/// What a candidate does about a Lease.
///
/// Each leadership has a transition count of its own, also when it follows one of the same holder: what is left over from
/// the one before must be distinguished from what belongs to this one.
///
/// ```
/// use std::time::Duration;
/// use setpoint_kube::lease::{Step, Timing, decide};
///
/// assert_eq!(decide(None, &Timing::default(), Duration::ZERO), Step::Create);
/// ```
pub fn decide(observed: Option<&Observed>, timing: &Timing, now: Duration) -> Step {
    match observed {
        None => Step::Create,
        Some(seen) if seen.holder().is_none() || seen.expired(timing, now) => {
            Step::Take { transitions: seen.transitions().saturating_add(1) }
        }
        Some(_) => Step::Wait,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::coordination::v1::LeaseSpec;

    use super::*;

    fn lease(holder: &str, seconds: i32, transitions: i32) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(seconds),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_is_taken_only_after_it_has_stood_still_for_its_own_duration() {
        let timing = Timing::default();
        let seen = Observed::update(None, lease("other", 30, 4), at(100));
        assert_eq!(decide(Some(&seen), &timing, at(129)), Step::Wait);
        assert_eq!(decide(Some(&seen), &timing, at(130)), Step::Take { transitions: 5 });
    }

    #[test]
    fn a_lease_that_changed_is_looked_at_anew() {
        let timing = Timing::default();
        let seen = Observed::update(None, lease("other", 15, 4), at(100));
        let same = Observed::update(Some(seen.clone()), lease("other", 15, 4), at(110));
        assert_eq!(same.since, at(100));
        let renewed = Observed::update(Some(seen), lease("other", 15, 5), at(110));
        assert_eq!(renewed.since, at(110));
        assert_eq!(decide(Some(&renewed), &timing, at(116)), Step::Wait);
    }

    #[test]
    fn a_released_lease_is_taken_at_once() {
        let seen = Observed::update(None, lease("", 1, 7), at(100));
        assert_eq!(decide(Some(&seen), &Timing::default(), at(100)), Step::Take { transitions: 8 });
    }

    #[test]
    fn a_leader_must_stop_before_another_starts() {
        assert_eq!(Timing::default().validate(), Ok(()));
        let wrong = |timing: Timing| timing.validate().unwrap_err();
        assert!(wrong(Timing { deadline: at(15), ..Timing::default() }).contains("shorter"));
        assert!(wrong(Timing { retry: at(6), ..Timing::default() }).contains("two attempts"));
        assert!(wrong(Timing { duration: at(0), ..Timing::default() }).contains("at least a second"));
        assert!(
            wrong(Timing { duration: Duration::from_millis(1500), ..Timing::default() }).contains("whole")
        );
    }
}
