//! How each item stands, in one word and in many.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use setpoint_graph::{Graph, ItemRef, SubgraphPath};
use setpoint_plan::{Action, ReasonCode, Standing};

use crate::engine::Engine;
use crate::op::Operation;
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

impl ConditionKind {
    /// The verb of a sentence that says how an item stands: `has` failed, `is` in sync.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Failed | Self::Drifted => "has",
            _ => "is",
        }
    }
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

/// Why an item stands as it does: the item itself, and then what that is due to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The items of the chain, each cause behind what it is the cause of.
    pub causes: Vec<Cause>,
    /// What tries again what failed; none if that is done when it is due.
    #[serde(skip)]
    retried_by: Option<RetriedBy>,
}

/// The commands that try again what failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RetriedBy {
    /// Whatever the intent still asks for.
    reconcile: &'static str,
    /// The deletion of what is intended.
    delete: &'static str,
}

impl Explanation {
    /// Says which commands try again what failed, where nothing does so by itself: one that brings about what is intended, and
    /// one that deletes it.
    #[must_use]
    pub fn retried_by(mut self, reconcile: &'static str, delete: &'static str) -> Self {
        self.retried_by = Some(RetriedBy { reconcile, delete });
        self
    }
}

/// One item of a chain of causes: how it stands, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The item, as `kind/name`.
    #[serde(serialize_with = "as_text")]
    pub item: ItemRef,
    /// How far it is from the item that was asked for.
    pub depth: usize,
    /// How it stands; none if it is neither there nor intended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    #[serde(skip)]
    is_intended: bool,
    /// Whether it stands earlier in the chain, with all that is known of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub seen_before: bool,
    /// The failure that has not been overcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<CauseFailure>,
    /// The changes by something else that have not been put right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<CauseDrift>,
    /// What the next run does to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextStep>,
    /// Why it is left as it is, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_because: Vec<String>,
}

/// A failure as the cause of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseFailure {
    /// What failed.
    pub operation: Operation,
    /// How often in a row.
    pub attempts: u32,
    /// When it failed last.
    pub at: Timestamp,
    /// Why, in words.
    pub error: String,
    /// When it is tried again; none if not until the intent changes.
    pub due: Option<Timestamp>,
}

/// A change by something else as the cause of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseDrift {
    /// How often in a row.
    pub times: u32,
    /// When it was found last.
    pub at: Timestamp,
}

/// What the next run does to an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextStep {
    /// What it does.
    pub action: Action,
    /// Why, in words.
    pub reason: String,
    /// Why, in a word that stays the same.
    pub code: ReasonCode,
}

fn as_text<S: serde::Serializer>(item: &ItemRef, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(item)
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.causes.iter().try_for_each(|cause| cause.write(f, self.retried_by))
    }
}

impl Cause {
    /// Writes a line for the item, and one below it for each thing that is known.
    fn write(&self, f: &mut fmt::Formatter<'_>, retried_by: Option<RetriedBy>) -> fmt::Result {
        let (item, margin, indent) = (&self.item, self.depth * 2, self.depth * 2 + 2);
        if self.seen_before {
            return writeln!(f, "{:margin$}{item}: see above", "");
        }
        let Some(condition) = &self.condition else {
            return writeln!(f, "{:margin$}{item} is neither there nor intended", "");
        };
        write!(f, "{:margin$}{item} {} {}", "", condition.kind.verb(), condition.kind)?;
        // Of a change by something else nobody knows when it was made, only when it was found.
        let is_found = matches!(condition.kind, ConditionKind::Drifted | ConditionKind::Contested);
        match condition.since.filter(|_| !is_found) {
            Some(since) => writeln!(f, " since {since:.0}")?,
            None => writeln!(f)?,
        }
        if let Some(CauseFailure { operation, attempts, at, error, due }) = &self.failure {
            let times = match attempts {
                0 | 1 => "once".to_owned(),
                times => format!("{times} times, last"),
            };
            let what = match operation {
                Operation::Create => "creation",
                Operation::Modify => "modification",
                Operation::Delete => "deletion",
            };
            writeln!(f, "{:indent$}its {what} failed {times} at {at:.0}: {error}", "")?;
            match (due, retried_by) {
                (Some(_), Some(by)) => {
                    let is_unwanted = *operation == Operation::Delete && self.is_intended;
                    let command = if is_unwanted { by.delete } else { by.reconcile };
                    writeln!(f, "{:indent$}`{command}` tries it again", "")?;
                }
                (Some(due), None) => writeln!(f, "{:indent$}the next attempt is due at {due:.0}", "")?,
                (None, _) => writeln!(f, "{:indent$}it is not tried again until the intent changes", "")?,
            }
        }
        match &self.drift {
            None => {}
            Some(CauseDrift { times: 0 | 1, at }) => {
                writeln!(f, "{:indent$}found changed by something else at {at:.0}", "")?;
            }
            Some(CauseDrift { times, at }) => {
                writeln!(
                    f,
                    "{:indent$}found changed by something else {times} times in a row, last at {at:.0}",
                    ""
                )?;
            }
        }
        if let Some(NextStep { action, reason, .. }) = &self.next {
            let what = match action {
                Action::Create => "created",
                Action::Modify => "modified",
                Action::Delete => "deleted",
                Action::Recreate => "made anew",
            };
            writeln!(f, "{:indent$}the next run has it {what}: {reason}", "")?;
        }
        self.left_because.iter().try_for_each(|cause| writeln!(f, "{:indent$}{cause}", ""))
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
        if let Some(unfinished) = &state.unfinished {
            let kind =
                if unfinished.live.0.is_some() { ConditionKind::Progressing } else { ConditionKind::Unknown };
            return found(kind, Some(unfinished.started));
        }
        if state.last_failure.is_some() {
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
    let present = state.is_none_or(|state| state.presence == Presence::Present);
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
        let mut causes = Vec::new();
        let mut seen = FxHashSet::default();
        let mut todo = vec![(0, item.clone())];
        while let Some((depth, item)) = todo.pop() {
            let mut cause = Cause::of(item.clone(), depth);
            cause.seen_before = !seen.insert(item);
            if !cause.seen_before {
                let behind = explain_one(&mut planner, current, intended, &mut cause);
                todo.extend(behind.into_iter().rev().map(|item| (depth + 1, item)));
            }
            causes.push(cause);
        }
        Some(Explanation { causes, retried_by: None })
    }
}

impl Cause {
    /// An item of which nothing is known yet.
    fn of(item: ItemRef, depth: usize) -> Self {
        Self {
            item,
            depth,
            condition: None,
            is_intended: false,
            seen_before: false,
            failure: None,
            drift: None,
            next: None,
            left_because: Vec::new(),
        }
    }
}

/// Finds out all that is known of one item; returns the items that it waits for.
fn explain_one(
    planner: &mut Planner<'_>,
    current: &CurrentGraph,
    intended: &Graph,
    cause: &mut Cause,
) -> Vec<ItemRef> {
    cause.condition = condition(current, intended, &cause.item);
    if cause.condition.is_none() {
        return Vec::new();
    }
    cause.is_intended = intended.contains(&cause.item);
    let Some(id) = planner.at(&cause.item) else { return Vec::new() };
    let state = current.state(&cause.item);
    cause.failure = state.and_then(|state| state.last_failure.as_ref()).map(|failure| CauseFailure {
        operation: failure.operation,
        attempts: failure.attempts,
        at: failure.at,
        error: failure.error.to_string(),
        due: failure.due,
    });
    cause.drift = state
        .and_then(|state| state.drift.as_ref())
        .filter(|drift| !drift.repaired)
        .map(|drift| CauseDrift { times: drift.times, at: drift.at });
    let action = match planner.subject(id).outcome {
        Outcome::Keep => None,
        Outcome::Create => Some(Action::Create),
        Outcome::Modify => Some(Action::Modify),
        Outcome::Delete => Some(Action::Delete),
        Outcome::Recreate => Some(Action::Recreate),
    };
    if let Some(action) = action {
        let (reason, code) = (planner.reason(id), planner.reason_code(id));
        cause.next = Some(NextStep { action, reason, code });
        return planner.reason_items(id);
    }
    match planner.standing(id, false) {
        Some((Standing::Pending, causes)) => {
            cause.left_because = causes;
            planner.unmet_items(id)
        }
        Some((Standing::Failed, _)) | None => Vec::new(),
        Some((_, causes)) => {
            cause.left_because = causes;
            Vec::new()
        }
    }
}
