//! One group of namespaces, the baseline's or a satellite's, and the roles in it.

use crate::issue::{Issue, IssueKind};
use crate::namespace::{BluegreenRole, Namespace};
use crate::payload::Roles;

/// What became of a group.
pub(crate) enum Outcome {
    /// Every role has one namespace at most.
    Clear(Roles),
    /// Which namespace has which role is ambiguous, for these reasons.
    Ambiguous(Vec<Issue>),
}

impl Outcome {
    pub(crate) fn roles(&self) -> Option<&Roles> {
        match self {
            Self::Clear(roles) => Some(roles),
            Self::Ambiguous(_) => None,
        }
    }
}

/// Finds who has which role in a group. The origin is the namespace with that role, or else the only one
/// without any.
pub(crate) fn assign(group: &str, members: &[&Namespace<'_>], issues: &mut Vec<Issue>) -> Outcome {
    let mut reasons = Vec::new();
    let mut holder = |role: BluegreenRole| {
        let holders: Vec<_> =
            members.iter().filter(|one| one.bluegreen == Some(role)).map(|one| one.name).collect();
        if holders.len() > 1 {
            let message = format!("{} are all `{}`", list(&holders), role.as_str());
            reasons.push(Issue::new(IssueKind::DuplicateRole, group, message));
        }
        holders.first().map(|name| (*name).to_owned())
    };
    let mut roles = Roles {
        controller: holder(BluegreenRole::Controller),
        origin: holder(BluegreenRole::Origin),
        peer: holder(BluegreenRole::Peer),
    };
    let without: Vec<_> = members.iter().filter(|one| one.bluegreen.is_none()).map(|one| one.name).collect();
    match (without.as_slice(), &roles.origin) {
        ([], _) => {}
        (names, Some(origin)) => issues.extend(names.iter().map(|name| {
            let message =
                format!("it has no bluegreenRole, and `{origin}` is the origin of its group; it is left out");
            Issue::new(IssueKind::NoPlace, *name, message)
        })),
        ([only], None) => roles.origin = Some((*only).to_owned()),
        (names, None) => {
            let message = format!("{} have no bluegreenRole, and none is the origin", list(names));
            reasons.push(Issue::new(IssueKind::SeveralWithoutRole, group, message));
        }
    }
    if reasons.is_empty() { Outcome::Clear(roles) } else { Outcome::Ambiguous(reasons) }
}

fn list(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
