//! The status of a Composite, and the Events that report how it changed. Computed, not written.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use kube::runtime::events::{Event, EventType};
use setpoint_kube::conditions::{Finding, Verdict, set_condition};

use crate::api::{
    Composite, CompositeStatus, ConditionType, MAX_ISSUES, Phase, Published, Role, StatusIssue, condition,
};
use crate::publish::{PublishState, Standing};
use crate::settings::Settings;
use setpoint_structure::declare::{Claimant, Conflict};

/// How reading Consul goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConsulState {
    /// Why Consul can't be read, in one word and in a sentence, if it can't.
    pub trouble: Option<(&'static str, String)>,
}

impl ConsulState {
    /// Why Consul can't be read, in one word, if it can't.
    pub fn reason(&self) -> Option<&'static str> {
        self.trouble.as_ref().map(|(reason, _)| *reason)
    }
}

/// All that was found out about a Composite.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Whether it counts.
    pub accepted: Finding,
    /// Whether Consul holds its keys; none if that was not looked at.
    pub synced: Option<Finding>,
    /// Whether the ConfigMap holds the structure in Consul; none if nothing new is known.
    pub published: Option<Finding>,
    /// The keys that belong to it; none if they are as they were.
    pub owned: Option<BTreeSet<String>>,
    /// The state of the publisher, if one is at work.
    pub publisher: Option<PublishState>,
}

impl Facts {
    /// Of a Composite that does not count.
    pub fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        let not_accepted = || Finding::fails("NotAccepted", "the Composite is not accepted");
        Self {
            accepted: Finding::fails(reason, message),
            synced: Some(not_accepted()),
            published: Some(not_accepted()),
            owned: None,
            publisher: None,
        }
    }
}

/// The finding about the ConfigMap; none if nothing new is known.
pub(super) fn published(
    settings: &Settings,
    state: Option<&PublishState>,
    consul: &ConsulState,
) -> Option<Finding> {
    if !settings.sync_enabled {
        return Some(Finding::fails("Disabled", "synchronisation is switched off"));
    }
    let state = state?;
    if let Standing::Foreign(found) = &state.standing {
        return Some(Finding::fails(
            "NotOwned",
            format!("{found}; the structure in Consul is not published"),
        ));
    }
    if state.failures >= settings.tolerated_failures {
        let why = state.failure.as_deref().unwrap_or("it can't be written");
        return Some(Finding::fails("ApplyFailed", format!("{} attempts failed: {why}", state.failures)));
    }
    if let Some((reason, message)) = &consul.trouble {
        return Some(Finding::fails(reason, message.clone()));
    }
    if let Some(rival) = &state.contested {
        let message = format!(
            "{rival} keeps changing ConfigMap `{}`; it is repaired less and less often, until it is left alone",
            settings.config_map
        );
        return Some(Finding::fails("Contested", message));
    }
    match (state.applied, state.failures) {
        (Some(_), 0) => Some(Finding::holds(
            "Applied",
            format!("ConfigMap `{}` holds the structure in Consul", settings.config_map),
        )),
        _ => None,
    }
}

/// The status that follows from what was found out.
pub fn status_of(
    composite: &Composite,
    facts: &Facts,
    settings: &Settings,
    now: Timestamp,
) -> CompositeStatus {
    let mut status = composite.status.clone().unwrap_or_default();
    let generation = composite.metadata.generation;
    status.observed_generation = generation;
    if facts.accepted.verdict == Verdict::True {
        let spec = composite.declared();
        status.composite_id = Some(spec.composite_id().to_owned());
        status.role = Some(if spec.is_baseline() { Role::Baseline } else { Role::Satellite });
    }
    if let Some(owned) = &facts.owned {
        status.owned_keys.clone_from(owned);
    }
    let unknown = |kind| {
        let is_set = condition(&status.conditions, kind).is_some();
        (!is_set).then(|| Finding::unknown("Waiting", "nothing is known yet"))
    };
    let (synced, published) = (
        facts.synced.clone().or_else(|| unknown(ConditionType::Synced)),
        facts.published.clone().or_else(|| unknown(ConditionType::Published)),
    );
    set_condition(&mut status.conditions, ConditionType::Accepted.as_str(), &facts.accepted, generation, now);
    for (kind, finding) in [(ConditionType::Synced, synced), (ConditionType::Published, published)] {
        if let Some(finding) = finding {
            set_condition(&mut status.conditions, kind.as_str(), &finding, generation, now);
        }
    }
    let ready = ready(&status.conditions);
    set_condition(&mut status.conditions, ConditionType::Ready.as_str(), &ready, generation, now);
    status.phase = Some(phase(&status.conditions));
    if let Some(state) = &facts.publisher {
        say_published(&mut status, state, settings);
    }
    status
}

/// The reasons for which a ConfigMap may differ from the structure in Consul because somebody asked for that.
const NOT_WANTED: [&str; 2] = ["Disabled", "NotOwned"];

/// The first step that is not reached, if there is one.
fn open_step(conditions: &[Condition]) -> Option<&Condition> {
    let steps = ConditionType::STEPS.into_iter().filter_map(|kind| condition(conditions, kind));
    let is_open = |step: &&Condition| {
        step.status != Verdict::True.as_str() && !NOT_WANTED.contains(&step.reason.as_str())
    };
    let mut open = steps.filter(is_open);
    let first = open.next();
    // A failure explains more than what is not known yet.
    let failed = open.find(|step| step.status == Verdict::False.as_str());
    first.filter(|first| first.status == Verdict::False.as_str()).or(failed).or(first)
}

/// Whether everything is as it should be.
fn ready(conditions: &[Condition]) -> Finding {
    let Some(open) = open_step(conditions) else {
        return Finding::holds("AsDeclared", "what it declares is in Consul, and the structure is published");
    };
    let message = format!("{}: {}", open.type_, open.message);
    if open.status == Verdict::False.as_str() {
        Finding {
            verdict: Verdict::False,
            reason: "NotAsDeclared",
            message: format!("{} {message}", open.reason),
        }
    } else {
        Finding::unknown("Waiting", message)
    }
}

/// How far it is, in one word.
fn phase(conditions: &[Condition]) -> Phase {
    match open_step(conditions) {
        None => Phase::Updated,
        Some(open) if open.status != Verdict::False.as_str() => Phase::Updating,
        Some(open) => match open.reason.as_str() {
            "Invalid" => Phase::InvalidConfiguration,
            "NotOldest" => Phase::WaitingForDependency,
            _ => Phase::BackingOff,
        },
    }
}

fn say_published(status: &mut CompositeStatus, state: &PublishState, settings: &Settings) {
    if let Some((index, at)) = state.applied {
        status.published = Some(Published {
            config_map: settings.config_map.clone(),
            index,
            // The API keeps whole seconds.
            at: Time(Timestamp::from_second(at.as_second()).unwrap_or(at)),
            by: settings.instance.clone(),
        });
        let listed = state.issues.iter().take(MAX_ISSUES);
        status.issues = listed
            .map(|issue| StatusIssue {
                kind: issue.kind.as_str().to_owned(),
                subject: issue.subject.clone(),
                message: issue.message.clone(),
            })
            .collect();
        let count = u32::try_from(state.issues.len()).unwrap_or(u32::MAX);
        status.issue_count = (count > 0).then_some(count);
    }
}

/// The Events for the step from one status to the next: one for each condition that changed, and one for issues.
pub(super) fn events(before: Option<&CompositeStatus>, after: &CompositeStatus) -> Vec<Event> {
    let mut events = Vec::new();
    for kind in ConditionType::STEPS {
        let Some(now) = condition(&after.conditions, kind) else { continue };
        let old = before.and_then(|status| condition(&status.conditions, kind));
        let known = old.is_some_and(|old| (&old.status, &old.reason) == (&now.status, &now.reason));
        if known || now.status == Verdict::Unknown.as_str() {
            continue;
        }
        let type_ = if now.status == Verdict::True.as_str() { EventType::Normal } else { EventType::Warning };
        events.push(event(type_, &now.reason, &now.message));
    }
    let issues = |status: &CompositeStatus| status.issues.clone();
    if !after.issues.is_empty() && before.map(issues).as_ref() != Some(&after.issues) {
        let lines: Vec<_> = after
            .issues
            .iter()
            .take(5)
            .map(|issue| format!("{}: {}", issue.subject, issue.message))
            .collect();
        events.push(event(EventType::Warning, "EntriesNotUsed", &lines.join("\n")));
    }
    events
}

/// An Event, as long as one may be.
pub(super) fn event(type_: EventType, reason: &str, note: &str) -> Event {
    let note = note.chars().take(900).collect();
    Event {
        type_,
        reason: reason.to_owned(),
        note: Some(note),
        action: "Reconcile".to_owned(),
        secondary: None,
    }
}

/// Why a Composite does not count while an older one does, as a message.
pub(super) fn not_oldest(winner: &Composite) -> String {
    format!("Composite `{}` of this namespace is older, and only the oldest counts", winner.name_any())
}

/// The message about a key that another Composite claimed earlier.
pub(super) fn conflict(claimant: &Claimant, first: &Conflict, count: usize) -> String {
    let Conflict { key, declared, held, holder } = first;
    let more =
        if count > 1 { format!("; so it is with {} more of its keys", count - 1) } else { String::new() };
    format!(
        "`{key}` is `{held}`, as Composite `{holder}` declares it, whose claim is older; Composite `{claimant}` declares `{declared}`{more}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: ConditionType, status: &str, reason: &str) -> Condition {
        Condition {
            type_: kind.as_str().to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: "why".to_owned(),
            observed_generation: None,
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn a_composite_is_ready_when_every_step_is_reached_or_not_wanted() {
        use ConditionType::{Accepted, Published, Synced};
        let of = |steps: [(&str, &str); 3]| {
            let kinds = [Accepted, Synced, Published].into_iter();
            let conditions: Vec<_> =
                kinds.zip(steps).map(|(kind, (status, reason))| step(kind, status, reason)).collect();
            (ready(&conditions).verdict.as_str(), phase(&conditions))
        };
        let valid = ("True", "Valid");
        let (written, waiting) = (("True", "Written"), ("Unknown", "Waiting"));
        for (steps, expected) in [
            ([valid, written, ("True", "Applied")], ("True", Phase::Updated)),
            ([valid, written, ("False", "NotOwned")], ("True", Phase::Updated)),
            ([valid, written, ("False", "Disabled")], ("True", Phase::Updated)),
            ([valid, written, waiting], ("Unknown", Phase::Updating)),
            ([valid, waiting, ("False", "ConsulDenied")], ("False", Phase::BackingOff)),
            ([valid, ("False", "Contested"), ("True", "Applied")], ("False", Phase::BackingOff)),
            (
                [("False", "Invalid"), ("False", "NotAccepted"), ("False", "NotAccepted")],
                ("False", Phase::InvalidConfiguration),
            ),
            (
                [("False", "NotOldest"), ("False", "NotAccepted"), ("False", "NotAccepted")],
                ("False", Phase::WaitingForDependency),
            ),
        ] {
            assert_eq!(of(steps), expected, "{steps:?}");
        }
        assert_eq!(ready(&[step(Synced, "False", "KeyConflict")]).message, "KeyConflict Synced: why");
    }
}
