//! Conditions as the conventions of Kubernetes define them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows yet.
    Unknown,
}

impl Verdict {
    /// How it is written in a resource.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// What was found out about one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it holds.
    pub verdict: Verdict,
    /// Why, in one word for programs.
    pub reason: &'static str,
    /// Why, for people.
    pub message: String,
}

impl Finding {
    /// It holds.
    pub fn holds(reason: &'static str, message: impl Into<String>) -> Self {
        Self { verdict: Verdict::True, reason, message: message.into() }
    }

    /// It does not hold.
    pub fn fails(reason: &'static str, message: impl Into<String>) -> Self {
        Self { verdict: Verdict::False, reason, message: message.into() }
    }

    /// Nobody knows yet.
    pub fn unknown(reason: &'static str, message: impl Into<String>) -> Self {
        Self { verdict: Verdict::Unknown, reason, message: message.into() }
    }
}

/// Returns the condition of a type, if it was ever set.
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Sets a condition; the time of its last transition changes only if its status does.
pub fn set_condition(
    conditions: &mut Vec<Condition>,
    kind: &str,
    finding: &Finding,
    generation: Option<i64>,
    now: Timestamp,
) {
    let status = finding.verdict.as_str();
    let since = match condition(conditions, kind) {
        Some(old) if old.status == status => old.last_transition_time.clone(),
        // The API keeps whole seconds: what is compared later must have been cut already.
        _ => Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
    };
    let new = Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: finding.reason.to_owned(),
        message: shortened(&finding.message),
        observed_generation: generation,
        last_transition_time: since,
    };
    match conditions.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

/// A message as long as a resource may hold, and as people may want to read.
fn shortened(message: &str) -> String {
    const MOST: usize = 1000;
    if message.chars().count() <= MOST {
        return message.to_owned();
    }
    message.chars().take(MOST).chain("…".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_time_of_a_condition_changes_with_its_status_only() {
        let mut conditions = Vec::new();
        let kind = "Synced";
        set_condition(&mut conditions, kind, &Finding::fails("Denied", "no"), Some(1), at(1));
        set_condition(&mut conditions, kind, &Finding::fails("Unavailable", "away"), Some(2), at(2));
        let found = condition(&conditions, kind).unwrap();
        assert_eq!((found.reason.as_str(), found.observed_generation), ("Unavailable", Some(2)));
        assert_eq!(found.last_transition_time.0, at(1));
        set_condition(&mut conditions, kind, &Finding::holds("Written", "all"), Some(2), at(3));
        assert_eq!(condition(&conditions, kind).unwrap().last_transition_time.0, at(3));
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn a_long_message_is_cut() {
        let mut conditions = Vec::new();
        let finding = Finding::fails("Long", "ü".repeat(40_000));
        set_condition(&mut conditions, "Synced", &finding, None, at(1));
        assert_eq!(conditions[0].message.chars().count(), 1001);
    }
}
