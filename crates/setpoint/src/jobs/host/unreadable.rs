//! Items that can't be read: they are left as they are, with all that stands on them, and the rest goes on.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use setpoint_engine::{CurrentGraph, Engine, Refreshed, Selection};
use setpoint_graph::{Graph, ItemRef};
use setpoint_plan::Action;

use super::error::Error;
use super::set;
use crate::error::CliError;

/// An item that can't be read.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Unreadable {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) error: String,
    /// What is left as it is for that reason, as `kind/name`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) leaves: Vec<String>,
}

/// What a command is about, without what has to be left as it is.
pub(crate) struct Readable<'a> {
    pub(crate) selection: Selection,
    /// None where nothing is intended.
    pub(crate) intended: Option<Cow<'a, Graph>>,
    pub(crate) unreadable: Vec<Unreadable>,
}

/// Takes out of what a command is about the items that can't be read, all that needs them, and what can't be removed or
/// made anew while they are there.
pub(crate) fn leave<'a>(
    engine: &Engine,
    current: &CurrentGraph,
    intended: Option<Cow<'a, Graph>>,
    selection: Selection,
    errors: &[(ItemRef, String)],
) -> Result<Readable<'a>, CliError> {
    if errors.is_empty() {
        return Ok(Readable { selection, intended, unreadable: Vec::new() });
    }
    let mut unreadable: Vec<(&ItemRef, &str, BTreeSet<ItemRef>)> = Vec::new();
    let mut left: BTreeSet<ItemRef> = BTreeSet::new();
    for (item, why) in errors {
        let mut with = set::dependents(current, [item]);
        if let Some(intended) = &intended {
            with.extend(set::held_back(intended, [item]));
        }
        left.extend(with.iter().cloned());
        unreadable.push((item, why, with));
    }
    let known = current.items().map(|node| node.reference().clone());
    let declared = intended.iter().flat_map(|intended| intended.items()).map(|node| node.reference().clone());
    let all: BTreeSet<ItemRef> = known.chain(declared).collect();
    // What a plan would take away from below them stays too. Each round leaves more, so that this ends.
    let (selection, changed) = loop {
        let selected = without(&all, &selection, &left);
        let round =
            Round { selection: selected, intended: made_without(current, intended.as_deref(), &left) };
        let now = Timestamp::now();
        let plan = engine.plan(Some(current), round.intended.as_deref(), &round.selection, now)?;
        // Each item that the plan touches, and whether it goes, if only for a while.
        let mut operations: BTreeMap<ItemRef, bool> = BTreeMap::new();
        for operation in &plan.operations {
            let item = ItemRef::new(operation.kind.as_str(), operation.name.as_str());
            *operations.entry(item).or_default() |= operation.temporary || operation.action != Action::Modify;
        }
        let touched: Vec<&ItemRef> = left.iter().filter(|item| operations.contains_key(*item)).collect();
        if touched.is_empty() {
            break round.into_changed();
        }
        let below = set::requirements(current, touched);
        let goes = |below: &ItemRef| operations.get(below) == Some(&true);
        let before = left.len();
        let more: Vec<ItemRef> = below.iter().filter(|item| goes(item)).cloned().collect();
        left.extend(if more.is_empty() { below.into_iter().collect() } else { more });
        if left.len() == before {
            break round.into_changed();
        }
    };
    let reported = reported(unreadable.iter().map(|(item, _, with)| (*item, with)));
    let unreadable = unreadable.iter().filter(|(item, ..)| reported.contains(item));
    let unreadable: Vec<Unreadable> = unreadable
        .map(|(item, why, with)| {
            let leaves = with.iter().filter(|other| other != item).map(ToString::to_string).collect();
            Unreadable { leaves, ..view(item, why) }
        })
        .collect();
    Ok(Readable { selection, intended: changed.map(Cow::Owned).or(intended), unreadable })
}

/// Which items that can't be read are reported by themselves. One that is left because of another one which is reported is named
/// with that. Each is given with all that is left because of it, itself included.
fn reported<'a>(
    unreadable: impl Iterator<Item = (&'a ItemRef, &'a BTreeSet<ItemRef>)> + Clone,
) -> BTreeSet<&'a ItemRef> {
    let mut left_by: BTreeMap<&ItemRef, usize> = BTreeMap::new();
    for item in unreadable.clone().flat_map(|(_, with)| with) {
        *left_by.entry(item).or_default() += 1;
    }
    let is_left_by_itself = |item: &ItemRef| left_by.get(item) == Some(&1);
    let (mut reported, mut named) = (BTreeSet::new(), BTreeSet::new());
    // Those that are left because of no other one come first. What remains are items that are left because of each other.
    let first = unreadable.clone().filter(|(item, _)| is_left_by_itself(item));
    for (item, with) in first.chain(unreadable) {
        if !named.contains(item) {
            reported.insert(item);
            named.extend(with);
        }
    }
    reported
}

/// What could not be read, and why.
pub(crate) fn errors(refreshed: &Refreshed) -> Vec<(ItemRef, String)> {
    refreshed.unreadable.iter().map(|(item, why)| (item.clone(), why.to_string())).collect()
}

/// Returns whether all could be read.
pub(crate) fn result(unreadable: &[Unreadable]) -> Result<(), CliError> {
    if unreadable.is_empty() {
        return Ok(());
    }
    let lines =
        unreadable.iter().map(|Unreadable { kind, name, error, .. }| format!("{kind}/{name}: {error}"));
    Err(Error::Unreadable(lines.collect()).into())
}

/// What can't be read, where nothing else depends on that.
pub(crate) fn list(refreshed: &Refreshed) -> Vec<Unreadable> {
    errors(refreshed).iter().map(|(item, why)| view(item, why)).collect()
}

fn view(item: &ItemRef, why: &str) -> Unreadable {
    let (kind, name) = (item.kind().to_string(), item.name().to_string());
    Unreadable { kind, name, error: why.to_owned(), leaves: Vec::new() }
}

/// What a round plans.
struct Round<'a> {
    selection: Selection,
    intended: Option<Cow<'a, Graph>>,
}

impl Round<'_> {
    /// The selection, and what is intended, where that is not what was given.
    fn into_changed(self) -> (Selection, Option<Graph>) {
        let changed = match self.intended {
            Some(Cow::Owned(changed)) => Some(changed),
            _ => None,
        };
        (self.selection, changed)
    }
}

/// What is selected of all items, without some.
fn without(all: &BTreeSet<ItemRef>, selection: &Selection, left: &BTreeSet<ItemRef>) -> Selection {
    let is_selected = |item: &ItemRef| match selection {
        Selection::Items(items) => items.contains(item),
        _ => true,
    };
    Selection::items(all.iter().filter(|item| !left.contains(*item) && is_selected(item)).cloned())
}

/// What is intended, without those of some items that are not there: they are not made. Most often all of them are.
fn made_without<'a>(
    current: &CurrentGraph,
    intended: Option<&'a Graph>,
    left: &BTreeSet<ItemRef>,
) -> Option<Cow<'a, Graph>> {
    let mut intended = Cow::Borrowed(intended?);
    for item in left.iter().filter(|item| !set::is_there(current, item)) {
        if intended.contains(item) {
            // It is there, and nobody else has a hand in it.
            let _ = intended.to_mut().del_item(item);
        }
    }
    Some(intended)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which items are reported, of those that are left because of each.
    fn reported_of(left: &[(&str, &[&str])]) -> Vec<String> {
        let item = |name: &&str| ItemRef::new("file", *name);
        let left: Vec<(ItemRef, BTreeSet<ItemRef>)> =
            left.iter().map(|(name, with)| (item(name), with.iter().map(item).collect())).collect();
        let reported = reported(left.iter().map(|(item, with)| (item, with)));
        reported.into_iter().map(|item| item.name().to_string()).collect()
    }

    #[test]
    fn what_is_left_because_of_something_that_is_reported_is_named_with_that_and_nothing_is_hidden() {
        assert_eq!(reported_of(&[("a", &["a"]), ("b", &["b"])]), ["a", "b"]);
        assert_eq!(reported_of(&[("a", &["a"]), ("b", &["a", "b"])]), ["b"]);
        assert_eq!(
            reported_of(&[("a", &["a", "b"]), ("b", &["a", "b"])]),
            ["a"],
            "each is left because of the other"
        );
        assert_eq!(reported_of(&[("a", &["a", "b"]), ("b", &["b", "c"]), ("c", &["c", "a"])]), ["a", "c"]);
    }
}
