//! How each item stands, in one word and in many.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use setpoint_graph::{Graph, ItemRef, SubgraphPath};
use setpoint_plan::Standing;

use crate::engine::Engine;
use crate::plan::{Outcome, Planner};
use crate::selection::Selection;
use crate::state::{CurrentGraph, Presence};

/// How an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConditionKind {
    /// It is as intended.
    InSync,
    /// It waits for something.
    Pending,
    /// An operation on it is under way.
    Progressing,
    /// Its last operation failed.
    Failed,
    /// Nobody knows how its last operation ended.
    Unknown,
    /// Something else changed it.
    Drifted,
    /// Something else keeps changing it.
    Contested,
    /// It can't be handled as declared.
    Invalid,
}

impl fmt::Display for ConditionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InSync => "in sync",
            Self::Pending => "pending",
            Self::Progressing => "progressing",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Drifted => "drifted",
            Self::Contested => "contested",
            Self::Invalid => "invalid",
        })
    }
}

/// How an item stands, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// How it stands.
    pub kind: ConditionKind,
    /// Since when; none if no run has noticed yet.
    pub since: Option<Timestamp>,
}

/// How many items of a subgraph stand how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubgraphStatus {
    /// The number of items by condition.
    pub counts: BTreeMap<ConditionKind, usize>,
}

impl SubgraphStatus {
    /// Returns whether every item is as intended.
    pub fn is_in_sync(&self) -> bool {
        self.counts.keys().all(|kind| *kind == ConditionKind::InSync)
    }
}

/// Why an item stands as it does: the chain of causes, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The causes, each with how deep in the chain it is.
    pub lines: Vec<(usize, String)>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, line) in &self.lines {
            writeln!(f, "{:indent$}{line}", "", indent = depth * 2)?;
        }
        Ok(())
    }
}

/// How an item stands by the two graphs; none if neither has it.
pub fn condition(current: &CurrentGraph, intended: &Graph, item: &ItemRef) -> Option<Condition> {
    let (is, should_be) = (current.item(item), intended.item(item));
    if is.is_none() && should_be.is_none() {
        return None;
    }
    let found = |kind, since| Some(Condition { kind, since });
    let state = current.state(item);
    if let Some(state) = state {
        if let Some(flight) = &state.flight {
            let kind =
                if flight.live.0.is_some() { ConditionKind::Progressing } else { ConditionKind::Unknown };
            return found(kind, Some(flight.started));
        }
        if state.trouble.is_some() {
            return found(ConditionKind::Failed, Some(state.since));
        }
        if let Some(drift) = state.drift.as_ref().filter(|drift| !drift.repaired) {
            let kind = if drift.is_contested() { ConditionKind::Contested } else { ConditionKind::Drifted };
            return found(kind, Some(drift.at));
        }
    }
    if let Some(waiting) = current.shared().waiting.get(item) {
        let kind = match waiting.standing {
            Standing::Invalid => ConditionKind::Invalid,
            _ => ConditionKind::Pending,
        };
        return found(kind, Some(waiting.since));
    }
    let present = state.is_none_or(|state| state.presence == Presence::Present && !state.tainted);
    if is.is_some() && present && (is == should_be || is.is_some_and(setpoint_graph::ItemHandle::external)) {
        return found(ConditionKind::InSync, state.map(|state| state.since));
    }
    found(ConditionKind::Pending, None)
}

impl Engine {
    /// How the items of a subgraph stand, nested ones included.
    pub fn subgraph_status(
        &self,
        current: &CurrentGraph,
        intended: &Graph,
        path: &SubgraphPath,
    ) -> SubgraphStatus {
        let of_current = current.subgraph(path);
        let of_intended = intended.subgraph(path);
        let mut items: FxHashSet<&ItemRef> = FxHashSet::default();
        items.extend(of_current.iter().flat_map(setpoint_graph::View::items).map(|node| node.reference()));
        items.extend(of_intended.iter().flat_map(setpoint_graph::View::items).map(|node| node.reference()));
        let mut status = SubgraphStatus::default();
        for condition in items.into_iter().filter_map(|item| condition(current, intended, item)) {
            *status.counts.entry(condition.kind).or_default() += 1;
        }
        status
    }

    /// Why an item stands as it does, followed to its causes; none if neither graph has it.
    pub fn explain(
        &self,
        current: &CurrentGraph,
        intended: &Graph,
        item: &ItemRef,
        now: Timestamp,
    ) -> Option<Explanation> {
        condition(current, intended, item)?;
        let (selection, nothing_failed) = (Selection::All, FxHashSet::default());
        let mut planner = self.planner(current, intended, &selection, now, &nothing_failed);
        let mut lines = Vec::new();
        let mut seen = FxHashSet::default();
        let mut todo = vec![(0, item.clone())];
        while let Some((depth, item)) = todo.pop() {
            if !seen.insert(item.clone()) {
                lines.push((depth, format!("{item}: see above")));
                continue;
            }
            let causes = explain_one(&mut planner, current, intended, &item, depth, &mut lines);
            todo.extend(causes.into_iter().rev().map(|cause| (depth + 1, cause)));
        }
        Some(Explanation { lines })
    }
}

/// Writes the lines of one item; returns the items that it waits for.
fn explain_one(
    planner: &mut Planner<'_>,
    current: &CurrentGraph,
    intended: &Graph,
    item: &ItemRef,
    depth: usize,
    lines: &mut Vec<(usize, String)>,
) -> Vec<ItemRef> {
    let Some(condition) = condition(current, intended, item) else {
        lines.push((depth, format!("{item} is neither there nor intended")));
        return Vec::new();
    };
    let since = condition.since.map_or_else(String::new, |since| format!(" since {since:.0}"));
    let verb = match condition.kind {
        ConditionKind::Failed | ConditionKind::Drifted => "has",
        _ => "is",
    };
    lines.push((depth, format!("{item} {verb} {}{since}", condition.kind)));
    let Some(id) = planner.at(item) else { return Vec::new() };
    let mut say = |text: String| lines.push((depth + 1, text));
    if let Some(trouble) = current.state(item).and_then(|state| state.trouble.as_ref()) {
        let times = match trouble.attempts {
            0 | 1 => "once".to_owned(),
            times => format!("{times} times, last"),
        };
        say(format!("its {} failed {times} at {:.0}: {}", trouble.operation, trouble.at, trouble.error));
        match trouble.due {
            Some(due) => say(format!("the next attempt is due at {due:.0}")),
            None => say("it is not tried again until the intent changes".to_owned()),
        }
    }
    if let Some(drift) =
        current.state(item).and_then(|state| state.drift.as_ref()).filter(|drift| !drift.repaired)
    {
        say(match drift.times {
            0 | 1 => format!("something else changed it at {:.0}", drift.at),
            times => format!("something else changed it {times} times in a row, last at {:.0}", drift.at),
        });
    }
    let outcome = planner.subject(id).outcome;
    if outcome != Outcome::Keep {
        let what = match outcome {
            Outcome::Create => "created",
            Outcome::Modify => "modified",
            Outcome::Delete => "deleted",
            _ => "made anew",
        };
        say(format!("the next run has it {what}: {}", planner.reason(id)));
        return planner.reason_items(id);
    }
    match planner.standing(id, false) {
        Some((Standing::Pending, causes)) => {
            causes.into_iter().for_each(&mut say);
            planner.unmet_items(id)
        }
        Some((Standing::Failed, _)) | None => Vec::new(),
        Some((_, causes)) => {
            causes.into_iter().for_each(say);
            Vec::new()
        }
    }
}
