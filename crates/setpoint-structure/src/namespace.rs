//! The attributes of each namespace, read from the entries.

use std::collections::BTreeMap;

use setpoint_kv::Entry;

use crate::issue::{Issue, IssueKind};
use crate::key::{Attribute, Key};

/// What a namespace is in its composite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompositeRole {
    Baseline,
    Satellite,
}

/// What a namespace is in its blue-green group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BluegreenRole {
    Controller,
    Origin,
    Peer,
}

impl BluegreenRole {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Origin => "origin",
            Self::Peer => "peer",
        }
    }
}

/// A namespace whose place is known.
#[derive(Debug)]
pub(crate) struct Namespace<'a> {
    pub(crate) name: &'a str,
    pub(crate) composite: CompositeRole,
    pub(crate) bluegreen: Option<BluegreenRole>,
    pub(crate) controller: Option<&'a str>,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
struct Value<'a> {
    key: &'a str,
    /// None if it can't be used: its issue is noted already.
    text: Option<&'a str>,
}

/// Reads all entries: the namespaces that can be placed, in the order of their names, and what is wrong with
/// the rest. Of two entries with the same key the last counts.
pub(crate) fn read<'a>(entries: &'a [Entry], issues: &mut Vec<Issue>) -> Vec<Namespace<'a>> {
    let mut latest = BTreeMap::new();
    for entry in entries {
        if let Some(key) = Key::parse(&entry.key) {
            latest.insert((key.namespace, key.attribute), entry);
        }
    }
    let mut found: BTreeMap<&str, BTreeMap<Attribute, Value<'_>>> = BTreeMap::new();
    for ((namespace, attribute), entry) in latest {
        let text = match value(entry) {
            Ok(text) => Some(text),
            Err(issue) => {
                let empty = issue.kind == IssueKind::EmptyValue;
                issues.push(issue);
                empty.then_some("")
            }
        };
        // A blank value is as good as none.
        if text != Some("") {
            found.entry(namespace).or_default().insert(attribute, Value { key: &entry.key, text });
        }
    }
    found.into_iter().filter_map(|(name, attributes)| place(name, &attributes, issues)).collect()
}

/// The value as a text; empty where it is blank.
fn value(entry: &Entry) -> Result<&str, Issue> {
    let issue = |kind, message| Issue::new(kind, &entry.key, message);
    let Some(bytes) = &entry.value else {
        return Err(issue(IssueKind::EmptyValue, "it has no value, and counts as absent"));
    };
    let Ok(text) = str::from_utf8(bytes) else {
        return Err(issue(IssueKind::MalformedValue, "its value is not UTF-8; it is left out"));
    };
    match text.trim() {
        trimmed if trimmed == text || trimmed.is_empty() => Ok(trimmed),
        _ => Err(issue(IssueKind::MalformedValue, "its value has spaces around it; it is left out")),
    }
}

/// Places a namespace; none if its attributes do not suffice.
///
/// A namespace whose role can't be read is left out: taken for one without a role, it would become the origin.
fn place<'a>(
    name: &'a str,
    attributes: &BTreeMap<Attribute, Value<'a>>,
    issues: &mut Vec<Issue>,
) -> Option<Namespace<'a>> {
    let role = attributes.get(&Attribute::CompositeRole);
    if role.is_none() {
        issues.push(Issue::new(IssueKind::NoCompositeRole, name, "it has no compositeRole; it is left out"));
    }
    let composite =
        role.and_then(|role| one_of(*role, &COMPOSITE_ROLES, IssueKind::UnknownCompositeRole, issues));
    let bluegreen = match attributes.get(&Attribute::BluegreenRole) {
        Some(role) => one_of(*role, &BLUEGREEN_ROLES, IssueKind::UnknownBluegreenRole, issues).map(Some),
        None => Some(None),
    };
    let (composite, bluegreen) = (composite?, bluegreen?);
    let controller = attributes.get(&Attribute::ControllerNamespace);
    let matters = composite == CompositeRole::Satellite && bluegreen != Some(BluegreenRole::Controller);
    if matters && controller.is_some_and(|value| value.text.is_none()) {
        return None;
    }
    Some(Namespace { name, composite, bluegreen, controller: controller.and_then(|value| value.text) })
}

/// How much of a value is shown.
const SHOWN: usize = 60;
const COMPOSITE_ROLES: [(&str, CompositeRole); 2] =
    [("baseline", CompositeRole::Baseline), ("satellite", CompositeRole::Satellite)];
const BLUEGREEN_ROLES: [(&str, BluegreenRole); 3] = [
    ("controller", BluegreenRole::Controller),
    ("origin", BluegreenRole::Origin),
    ("peer", BluegreenRole::Peer),
];

/// The role that a text names, in whatever case.
fn one_of<R: Copy>(
    value: Value<'_>,
    roles: &[(&str, R)],
    kind: IssueKind,
    issues: &mut Vec<Issue>,
) -> Option<R> {
    let text = value.text?;
    let found = roles.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, role)| *role);
    if found.is_none() {
        let names: Vec<_> = roles.iter().map(|(name, _)| format!("`{name}`")).collect();
        let shown: String = text.chars().take(SHOWN).collect();
        let cut = if shown.len() < text.len() { "…" } else { "" };
        let message = format!("`{shown}{cut}` is none of {}; the namespace is left out", names.join(", "));
        issues.push(Issue::new(kind, value.key, message));
    }
    found
}
