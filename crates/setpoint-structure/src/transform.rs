//! The transform itself.

use std::collections::{BTreeMap, BTreeSet};

use setpoint_kv::Entry;

use crate::group::{Outcome, assign};
use crate::issue::Issue;
use crate::namespace::{BluegreenRole, CompositeRole, Namespace, read};
use crate::payload::{Payload, Roles, Structure};

/// What the baseline is called in an issue.
const BASELINE: &str = "baseline";

/// Makes the payload of all entries below one structure, and returns what could not be used.
///
/// All baseline namespaces form one group. A satellite belongs to the group of its controller: its own name if
/// it is one, else its `controllerNamespace`, else its own name. Groups are in the order of their names.
///
/// A group in which a role is held twice, or which has several namespaces without a role and no origin, keeps
/// what `previous` has of its namespaces; what `previous` does not know is left out. No namespace is ever
/// named twice: where a clear group has taken one, the ambiguous group that held it before is left out.
pub fn transform(entries: &[Entry], provider: &str, previous: Option<&Payload>) -> (Payload, Vec<Issue>) {
    let mut issues = Vec::new();
    let namespaces = read(entries, &mut issues);
    let (baseline, satellites): (Vec<_>, Vec<_>) =
        namespaces.iter().partition(|one| one.composite == CompositeRole::Baseline);

    let mut groups: BTreeMap<&str, Vec<&Namespace<'_>>> = BTreeMap::new();
    for satellite in satellites {
        groups.entry(group_of(satellite)).or_default().push(satellite);
    }
    let baseline = (!baseline.is_empty()).then(|| {
        let outcome = assign(BASELINE, &baseline, &mut issues);
        (baseline, outcome)
    });
    let satellites: Vec<_> = groups
        .into_iter()
        .map(|(name, members)| {
            let outcome = assign(name, &members, &mut issues);
            (name, members, outcome)
        })
        .collect();

    let clear =
        baseline.iter().map(|(_, outcome)| outcome).chain(satellites.iter().map(|(.., outcome)| outcome));
    let mut kept = Kept {
        named: clear.filter_map(Outcome::roles).flat_map(Roles::namespaces).map(str::to_owned).collect(),
    };
    let known = previous.map(|payload| &payload.composite);
    let baseline = baseline.and_then(|(_, outcome)| match outcome {
        Outcome::Clear(roles) => Some(roles),
        Outcome::Ambiguous(reasons) => {
            let old = known.and_then(|known| known.baseline.as_ref()).and_then(|old| kept.keep(old));
            issues.extend(reasons.into_iter().map(|reason| reason.and(old.is_some())));
            old
        }
    });
    let mut composite = Structure { baseline, satellites: Vec::new() };
    for (name, members, outcome) in satellites {
        match outcome {
            Outcome::Clear(roles) => composite.satellites.push(roles),
            Outcome::Ambiguous(reasons) => {
                let of_group = |old: &&Roles| {
                    old.namespaces().any(|old| old == name || members.iter().any(|member| member.name == old))
                };
                let before = known.iter().flat_map(|known| &known.satellites).filter(of_group);
                let old: Vec<_> = before.filter_map(|old| kept.keep(old)).collect();
                issues.extend(reasons.into_iter().map(|reason| reason.and(!old.is_empty())));
                composite.satellites.extend(old);
            }
        }
    }
    (Payload { cloud_provider: provider.to_owned(), composite }, issues)
}

/// The name of the group that a satellite belongs to.
fn group_of<'a>(satellite: &Namespace<'a>) -> &'a str {
    match satellite.bluegreen {
        Some(BluegreenRole::Controller) => satellite.name,
        _ => satellite.controller.unwrap_or(satellite.name),
    }
}

/// Keeps what was there before, unless that would name a namespace twice.
struct Kept {
    named: BTreeSet<String>,
}

impl Kept {
    fn keep(&mut self, old: &Roles) -> Option<Roles> {
        if old.namespaces().any(|name| self.named.contains(name)) {
            return None;
        }
        self.named.extend(old.namespaces().map(str::to_owned));
        Some(old.clone())
    }
}
