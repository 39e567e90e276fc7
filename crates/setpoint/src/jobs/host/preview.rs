//! What a command is going to do: drift, warnings and the plan, before anything is changed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use setpoint_engine::{CurrentGraph, Drifted, Engine, Observed, Refreshed, Selection, ToRead};
use setpoint_graph::{Graph, Item as _, ItemHandle, ItemRef};
use setpoint_host::{Command, Existing, Host, Manifest, path_of};
use setpoint_plan::{Action, AttributeChange, Plan, PlannedOperation, ReasonCode};

use super::changes::{ChangedAttribute, changes};
use super::rename::Renamed;
use super::set::{directory_of, is_adopted, is_there, no_longer_declaring};
use super::unreadable::{self, Unreadable};
use super::{moves, protect};
use crate::error::CliError;

/// What a command is going to do.
#[derive(Debug, Serialize)]
pub(crate) struct Preview {
    /// What something else changed since the last run.
    pub(crate) drift: Vec<DriftView>,
    /// What a person should know before going on.
    pub(crate) warnings: Vec<String>,
    pub(crate) plan: Plan,
    /// What can't be read, and is left as it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unreadable: Vec<Unreadable>,
    /// What is called differently now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) renamed: Vec<Renamed>,
    /// What changes of what was there before Setpoint.
    #[serde(skip)]
    pub(crate) theirs: TheirChanges,
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
    pub(crate) changes: Vec<ChangedAttribute>,
}

/// What changes of what was there before Setpoint, where an item takes it over, or it is put back: the graphs don't say.
#[derive(Debug, Default)]
pub(crate) struct TheirChanges(BTreeMap<ItemRef, Vec<ChangedAttribute>>);

impl TheirChanges {
    /// What an operation changes about its item.
    pub(crate) fn of(
        &self,
        action: Action,
        item: &ItemRef,
        old: Option<&ItemHandle>,
        new: Option<&ItemHandle>,
    ) -> Vec<ChangedAttribute> {
        let known = self.0.get(item).filter(|_| matches!(action, Action::Create | Action::Delete));
        known.cloned().unwrap_or_else(|| operation_changes(action, old, new))
    }

    fn insert(&mut self, operation: &mut PlannedOperation, changes: Vec<ChangedAttribute>) {
        let item = ItemRef::new(operation.kind.as_str(), operation.name.as_str());
        operation.detail = changes.iter().map(ChangedAttribute::data).collect();
        self.0.insert(item, changes);
    }
}

impl Preview {
    /// Returns whether all could be read.
    pub(crate) fn result(&self) -> Result<(), CliError> {
        unreadable::result(&self.unreadable)
    }
}

impl Preview {
    /// Warns of a manifest that is there, declared something, and does not any more, where something is deleted. `before` are the
    /// names of the manifests that declared anything when the last run ended.
    pub(crate) fn warn_of_left_out(&mut self, before: Option<&BTreeSet<String>>, manifest: &Manifest) {
        let deletes = self.plan.operations.iter().any(|one| one.action == Action::Delete && !one.temporary);
        if deletes && let Some(before) = before {
            self.warnings.extend(left_out(before, manifest));
        }
    }

    /// Asks the checks of commands that are about to be applied for the first time: where one holds already, nothing is run.
    pub(crate) async fn ask_checks(
        &mut self,
        engine: &Engine,
        intended: Option<&Graph>,
        refreshed: &Refreshed,
    ) {
        // What was found to be gone was asked for right now.
        let gone: BTreeSet<&ItemRef> = refreshed.drifted.iter().map(|drifted| &drifted.item).collect();
        let (mut asked, mut items) = (Vec::new(), Vec::new());
        for operation in &mut self.plan.operations {
            let is_first = operation.action == Action::Create
                && !operation.temporary
                && operation.code == Some(ReasonCode::Missing);
            let item = ItemRef::new(operation.kind.as_str(), operation.name.as_str());
            if let Some(new) = intended.and_then(|graph| graph.item(&item)).filter(|_| is_first)
                && new.get::<Command>().is_some_and(|command| command.check.is_some())
                && !gone.contains(&item)
            {
                asked.push(operation);
                items.push(ToRead::from(new.clone()));
            }
        }
        if items.is_empty() {
            return;
        }
        for (operation, reading) in asked.into_iter().zip(engine.read_items(items).await) {
            // What could not be asked now may well be when its turn comes.
            if matches!(reading.observed, Ok(Observed::Present(_))) {
                operation.code = Some(ReasonCode::TakenOver);
                operation.reason = String::from("its `check` holds already: it is adopted, and never undone");
            }
        }
        self.plan.recount();
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
            detail: changes.iter().map(ChangedAttribute::data).collect(),
            changes,
        }
    }
}

/// Plans, and looks at what a plan can't know.
pub(crate) async fn preview(
    engine: &Engine,
    host: &Host,
    manifest: &Manifest,
    current: &CurrentGraph,
    intended: Option<&Graph>,
    selection: &Selection,
    refreshed: &Refreshed,
) -> Result<Preview, CliError> {
    let mut plan = engine.plan(Some(current), intended, selection, Timestamp::now())?;
    // What is ours is moved or deleted before something else comes to its place, or that is refused.
    let ours = current.items().filter(|node| is_there(current, node.reference()));
    let ours: BTreeMap<&str, &ItemRef> =
        ours.filter_map(|node| Some((path_of(node.item())?.as_str(), node.reference()))).collect();
    let is_foreign = |existing: &Existing| !ours.contains_key(existing.path.as_str());
    // What was made here has left by then; only an original that is put back is taken over.
    let leaves =
        |existing: &Existing| ours.get(existing.path.as_str()).is_some_and(|item| !is_adopted(current, item));
    let mut theirs = complete(&mut plan, host, current, intended);
    let (mut warnings, mut taken_over) = (Vec::new(), Vec::new());
    for operation in &mut plan.operations {
        let item = ItemRef::new(operation.kind.as_str(), operation.name.as_str());
        let new = intended.and_then(|graph| graph.item(&item));
        if operation.action == Action::Create
            && !operation.temporary
            && let Some(new) = new
            && let Some(existing) = host.in_the_way(new)
        {
            if existing.adopts && existing.adoptable && !leaves(&existing) {
                taken_over.push((operation, new.clone()));
            } else if is_foreign(&existing) {
                warnings.push(in_the_way(new.reference(), &existing));
            }
        } else if operation.action == Action::Modify
            && let (Some(old), Some(new)) = (current.item(&item), new)
            && path_of(old) != path_of(new)
            && let Some(existing) = host.in_the_way(new)
            && is_foreign(&existing)
        {
            warnings.push(format!(
                "{item} can't be moved: {} is there already ({})",
                existing.path, existing.what
            ));
        }
    }
    // What is there already is read, so that the difference is seen before it is replaced.
    let (operations, items): (Vec<_>, Vec<_>) = taken_over.into_iter().unzip();
    let items: Vec<ToRead> = items.into_iter().map(ToRead::from).collect();
    let readings = if items.is_empty() { Vec::new() } else { engine.read_items(items).await };
    for (operation, reading) in operations.into_iter().zip(readings) {
        operation.code = Some(ReasonCode::TakenOver);
        operation.reason = String::from("it exists and is adopted; `destroy` restores the original");
        if let Ok(Observed::Present(found)) = reading.observed {
            let item = reading.was.reference();
            if let Some(why) = host.can_not_be_kept(&found, &reading.was) {
                warnings.push(format!("{item} can't be taken over: {why}"));
            }
            theirs.insert(operation, changes(Some(&found), Some(&reading.was)));
        }
    }
    plan.recount();
    let made = plan.operations.iter().filter(|operation| operation.action != Action::Delete);
    let made: BTreeSet<(&str, &str)> =
        made.map(|operation| (operation.kind.as_str(), operation.name.as_str())).collect();
    for (item, account) in manifest.unknown_accounts() {
        if made.contains(&(item.kind().as_str(), item.name().as_str())) {
            warnings.push(format!("{item} can't be made as declared: {account} on this host"));
        }
    }
    if manifest.is_empty() && intended.is_some() && *selection == Selection::All && !plan.is_empty() {
        warnings.push(String::from("the manifests declare nothing: everything goes"));
    }
    refuse(&plan, host, manifest, current, intended)?;
    let ends = protect::changes(manifest, current).into_iter().filter(|(_, protected)| !protected);
    warnings.extend(ends.map(|(item, _)| {
        format!("{item} is not protected any more: it is declared without `prevent_destroy`")
    }));
    let drift = refreshed.drifted.iter().map(DriftView::from).collect();
    Ok(Preview { drift, warnings, plan, unreadable: Vec::new(), renamed: Vec::new(), theirs })
}

/// Refuses a plan that would delete what is protected, or in which something moves that can't.
pub(crate) fn refuse(
    plan: &Plan,
    host: &Host,
    manifest: &Manifest,
    current: &CurrentGraph,
    intended: Option<&Graph>,
) -> Result<(), CliError> {
    protect::check(manifest, current, plan)?;
    moves::check_state(plan, current, intended, host)?;
    intended.map_or(Ok(()), |intended| moves::check(current, intended))
}

/// Completes a plan with what people want to know: what the engine shows of an item is on one line; here content is whole,
/// secrets are masked, and it is said what a deletion does. Returns what is put back by releases.
fn complete(plan: &mut Plan, host: &Host, current: &CurrentGraph, intended: Option<&Graph>) -> TheirChanges {
    let mut theirs = TheirChanges::default();
    for operation in &mut plan.operations {
        let item = ItemRef::new(operation.kind.as_str(), operation.name.as_str());
        let new = intended.and_then(|graph| graph.item(&item));
        let changes = operation_changes(operation.action, current.item(&item), new);
        operation.detail = changes.iter().map(ChangedAttribute::data).collect();
        let is_deletion = operation.action == Action::Delete && !operation.temporary;
        let put_back = if is_deletion { put_back(host, current, &item) } else { None };
        let effect = match is_deletion {
            true => deletion_effect(current, &item, put_back.is_some()),
            false if operation.temporary && *item.kind() == Command::KIND => {
                Some("it is applied again, and nothing is undone")
            }
            false => None,
        };
        if let Some(effect) = effect {
            operation.reason = format!("{}; {effect}", operation.reason);
        }
        if is_deletion && is_adopted(current, &item) {
            operation.code = Some(ReasonCode::Released);
        }
        if let Some(original) = put_back {
            let is = current.item(&item);
            let mut shown = deletion(is);
            shown.extend(self::changes(is, Some(&original)));
            theirs.insert(operation, shown);
        }
    }
    plan.recount();
    theirs
}

/// What is put back in the place of an item when it is released; none if it stays as it is.
pub(crate) fn put_back(host: &Host, current: &CurrentGraph, item: &ItemRef) -> Option<ItemHandle> {
    let (is, state) = (current.item(item)?, current.state(item)?);
    let original = host.released(is, state)?;
    (!is_there(current, item) || !changes(Some(is), Some(&original)).is_empty()).then_some(original)
}

/// What an operation changes about its item.
pub(crate) fn operation_changes(
    action: Action,
    old: Option<&ItemHandle>,
    new: Option<&ItemHandle>,
) -> Vec<ChangedAttribute> {
    match action {
        Action::Create => changes(None, new),
        Action::Modify | Action::Recreate => changes(old, new),
        Action::Delete => deletion(old),
    }
}

/// What a person wants to know of an item that goes: where it is, and what is run.
fn deletion(old: Option<&ItemHandle>) -> Vec<ChangedAttribute> {
    let mut shown = changes(old, None);
    shown.retain(|change| ["path", "undo", "command"].contains(&change.name));
    shown
}

/// What a deletion does beside making Setpoint forget the item, where that is not what one would expect.
fn deletion_effect(current: &CurrentGraph, item: &ItemRef, is_put_back: bool) -> Option<&'static str> {
    if is_adopted(current, item) {
        return Some(if is_put_back {
            "it was there before Setpoint, and what it was then is put back"
        } else {
            "it was there before Setpoint, and stays"
        });
    }
    let command = current.item(item).and_then(|item| item.get::<Command>());
    let undo = &command?.undo;
    Some(if undo.is_some() { "its `undo` is run" } else { "it has no `undo`, and what it did stays" })
}

/// What is to be said of a manifest that is there, declared something, and does not any more.
fn left_out(before: &BTreeSet<String>, manifest: &Manifest) -> Option<String> {
    let directory = directory_of(manifest.files().first()?);
    let file = no_longer_declaring(before, manifest, directory)?;
    let is_read = manifest.files().iter().any(|read| read.file_name() == file.file_name());
    Some(if is_read {
        format!("{} declares nothing any more: what it declared goes", file.display())
    } else {
        format!("{} declared some of what is there, and is not read: what it declared goes", file.display())
    })
}

fn in_the_way(item: &ItemRef, existing: &Existing) -> String {
    let (path, what) = (&existing.path, existing.what);
    if existing.adoptable {
        format!(
            "{item} can't be created: {path} is there already ({what}); say `adopt: true` to take it over"
        )
    } else {
        format!("{item} can't be created: {path} is there already, and is {what}")
    }
}
