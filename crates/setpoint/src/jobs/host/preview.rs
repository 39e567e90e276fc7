//! What a command is going to do: drift, warnings and the plan, before anything is changed.

use jiff::Timestamp;
use serde::Serialize;
use setpoint_engine::{CurrentGraph, Drifted, Engine, Reading, Refreshed, Selection};
use setpoint_graph::{Graph, ItemHandle, ItemRef};
use setpoint_host::{Host, Manifest};
use setpoint_plan::{Action, AttributeChange, Plan};

use super::changes::{Change, changes};
use super::error::Error;
use crate::error::CliError;

/// What a command is going to do.
#[derive(Debug, Serialize)]
pub(crate) struct Preview {
    /// What something else changed since the last run.
    pub(crate) drift: Vec<DriftView>,
    /// What a person should know before going on.
    pub(crate) warnings: Vec<String>,
    pub(crate) plan: Plan,
}

/// One item that something else changed.
#[derive(Debug, Serialize)]
pub(crate) struct DriftView {
    pub(crate) kind: String,
    pub(crate) name: String,
    /// Whether it is gone.
    pub(crate) gone: bool,
    /// Whether something keeps changing it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) contested: bool,
    /// What is different about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) detail: Vec<AttributeChange>,
    #[serde(skip)]
    pub(crate) changes: Vec<Change>,
}

impl Preview {
    /// Says of what is only looked after that it stays on the host.
    pub(crate) fn note_adopted(&mut self, is_adopted: impl Fn(&ItemRef) -> bool) {
        for operation in &mut self.plan.operations {
            let item = ItemRef::new(operation.kind.as_str(), operation.name.as_str());
            if operation.action == Action::Delete && !operation.temporary && is_adopted(&item) {
                operation.reason += "; it was there before Setpoint, and stays";
            }
        }
    }
}

impl From<&Drifted> for DriftView {
    fn from(drifted: &Drifted) -> Self {
        let found = drifted.found.as_ref();
        let changes = found.map_or_else(Vec::new, |found| changes(Some(&drifted.was), Some(found)));
        Self {
            kind: drifted.item.kind().to_string(),
            name: drifted.item.name().to_string(),
            gone: found.is_none(),
            contested: drifted.contested,
            detail: changes.iter().map(Change::data).collect(),
            changes,
        }
    }
}

/// Reads the host, but for what was read already; what can't be read is an error, since no plan could be
/// trusted.
pub(crate) async fn refresh(
    engine: &Engine,
    current: &mut CurrentGraph,
    selection: &Selection,
    read_already: Vec<Reading>,
) -> Result<Refreshed, CliError> {
    let refreshed = engine.refresh_beside(current, selection, read_already).await;
    if refreshed.unreadable.is_empty() {
        return Ok(refreshed);
    }
    let unreadable = refreshed.unreadable.iter();
    Err(Error::Unreadable(unreadable.map(|(item, why)| format!("{item}: {why}")).collect()).into())
}

/// Plans, and looks at what a plan can't know.
pub(crate) fn preview(
    engine: &Engine,
    host: &Host,
    manifest: &Manifest,
    current: &CurrentGraph,
    intended: Option<&Graph>,
    selection: &Selection,
    refreshed: &Refreshed,
) -> Result<Preview, CliError> {
    let mut plan = engine.plan(Some(current), intended, selection, Timestamp::now())?;
    // What the engine shows of an item is on one line; here content is whole, and secrets are masked.
    let mut warnings = Vec::new();
    for operation in &mut plan.operations {
        let item = ItemRef::new(operation.kind.as_str(), operation.name.as_str());
        let new = intended.and_then(|graph| graph.item(&item));
        operation.detail =
            operation_changes(operation.action, current.item(&item), new).iter().map(Change::data).collect();
        if operation.action == Action::Create
            && !operation.temporary
            && let Some(new) = new
            && let Some(warning) = in_the_way(host, new)
        {
            warnings.push(warning);
        }
    }
    refuse_protected(manifest, &plan)?;
    let drift = refreshed.drifted.iter().map(DriftView::from).collect();
    Ok(Preview { drift, warnings, plan })
}

/// What an operation changes about its item.
pub(crate) fn operation_changes(
    action: Action,
    old: Option<&ItemHandle>,
    new: Option<&ItemHandle>,
) -> Vec<Change> {
    match action {
        Action::Create => changes(None, new),
        Action::Modify | Action::Recreate => changes(old, new),
        Action::Delete => Vec::new(),
    }
}

fn in_the_way(host: &Host, item: &ItemHandle) -> Option<String> {
    let existing = host.in_the_way(item)?;
    let (reference, path, what) = (item.reference(), &existing.path, existing.what);
    if existing.adopts && existing.adoptable {
        return None;
    }
    Some(if existing.adoptable {
        format!(
            "{reference} can't be created: {path} is there already ({what}); say `adopt: true` to take it over"
        )
    } else {
        format!("{reference} can't be created: {path} is there already, and is {what}")
    })
}

/// A plan that deletes what is protected is refused as a whole.
fn refuse_protected(manifest: &Manifest, plan: &Plan) -> Result<(), CliError> {
    let deletes = plan.operations.iter().filter(|operation| operation.action == Action::Delete);
    // A restart takes nothing away.
    let lasting = deletes.filter(|operation| !(operation.temporary && is_activity(&operation.kind)));
    let protected: Vec<String> = lasting
        .map(|operation| ItemRef::new(operation.kind.as_str(), operation.name.as_str()))
        .filter(|item| manifest.declared(item).is_some_and(|declared| declared.prevent_destroy))
        .map(|item| item.to_string())
        .collect();
    if protected.is_empty() { Ok(()) } else { Err(Error::Protected(protected).into()) }
}

/// Whether items of a kind are something that runs rather than something that is kept.
fn is_activity(kind: &str) -> bool {
    matches!(kind, "process" | "command")
}
