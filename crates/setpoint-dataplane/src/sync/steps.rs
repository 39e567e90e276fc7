//! Which calls carry out operations: one each, or one for several.
//!
//! ```text
//! operations ─┬─ of a new section, with what stands in it ─▶ one creation of all of it ─┐
//!             ├─ several of one list ─────────────────────▶ one replacement of the list ├─▶ steps, where that is cheaper
//!             └─ all others ──────────────────────────────▶ a call each ────────────────┘
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use setpoint_haproxy::compare::{Operation, SectionKey, Subject};
use setpoint_haproxy::edit::Editor;
use setpoint_haproxy::model::{Object, ObjectKind, SectionModel};
use setpoint_haproxy::text::Document;
use setpoint_plan::Action;

use crate::client::{Bundle, BundleEffect};
use crate::costs::Costs;
use crate::target::Target;

/// What one call carries out.
#[derive(Clone, Debug)]
pub(super) enum Step<'o> {
    /// One operation.
    One(&'o Operation),
    /// Several of them.
    Several {
        /// What is sent.
        bundle: Bundle,
        /// The one in whose place the call is made: the section that is created, or the last of a list.
        leading: &'o Operation,
        /// All of them.
        operations: Vec<&'o Operation>,
    },
}

impl<'o> Step<'o> {
    /// How many bytes it sends.
    pub(super) fn sent(&self) -> usize {
        match self {
            Self::One(operation) => sent(operation),
            Self::Several { bundle, .. } => length(&bundle.body),
        }
    }

    /// The operations that it carries out.
    pub(super) fn operations(&self) -> &[&'o Operation] {
        match self {
            Self::One(operation) => std::slice::from_ref(operation),
            Self::Several { operations, .. } => operations,
        }
    }

    /// The operation that stands for all of them.
    pub(super) fn leading(&self) -> &'o Operation {
        match self {
            Self::One(operation) => operation,
            Self::Several { leading, .. } => leading,
        }
    }
}

/// How many bytes the call of an operation sends.
pub(super) fn sent(operation: &Operation) -> usize {
    let new = match &operation.subject {
        Subject::Section { new, .. } | Subject::Child { new, .. } => new.as_ref(),
        Subject::Text { .. } | Subject::Configuration { .. } => None,
    };
    new.map_or(0, |object| length(&object.to_json()))
}

fn length(json: &Json) -> usize {
    json.to_string().len()
}

/// A call for each operation.
pub(super) fn one_each(operations: &[Operation]) -> Vec<Step<'_>> {
    operations.iter().map(Step::One).collect()
}

/// Operations that one call may carry out: a new section with what stands in it, or a list.
type Group<'k> = (&'k SectionKey, Option<ObjectKind>);

/// The group that an operation belongs to. `created` are the sections that are new.
fn group<'o>(operation: &'o Operation, created: &BTreeSet<&SectionKey>) -> Option<Group<'o>> {
    let section = &operation.section;
    match (&operation.subject, operation.action) {
        (Subject::Section { .. } | Subject::Child { .. }, Action::Create) if created.contains(section) => {
            Some((section, None))
        }
        (Subject::Child { kind, .. }, _) if operation.group().is_some() => Some((section, Some(*kind))),
        _ => None,
    }
}

/// The calls that carry out operations, several by one where that is cheaper.
pub(super) fn cheapest<'o, T: Target>(
    operations: &'o [Operation],
    desired: &Document,
    target: &T,
    costs: &Costs,
    held: usize,
) -> Vec<Step<'o>> {
    let is_new = |operation: &&Operation| {
        operation.action == Action::Create && matches!(operation.subject, Subject::Section { .. })
    };
    let created: BTreeSet<&SectionKey> =
        operations.iter().filter(is_new).map(|operation| &operation.section).collect();
    let mut groups: BTreeMap<Group<'o>, Vec<&'o Operation>> = BTreeMap::new();
    for operation in operations {
        if let Some(group) = group(operation, &created) {
            groups.entry(group).or_default().push(operation);
        }
    }
    groups.retain(|_, operations| operations.len() > 1);
    if groups.is_empty() {
        return one_each(operations);
    }
    let mut editor = Editor::new(desired.clone(), target.context());
    let mut steps = Vec::new();
    let mut bundled: BTreeSet<*const Operation> = BTreeSet::new();
    for ((section, list), operations) in groups {
        let (effect, body, operations, leading) = match list {
            None => {
                let Ok(model) = editor.section(section) else { continue };
                let Some((body, operations)) = whole(&model, &operations, target) else { continue };
                let leading = operations.iter().copied().find(is_new);
                (BundleEffect::CreateSection, body, operations, leading)
            }
            Some(kind) => {
                let Ok(objects) = editor.list(section, kind) else { continue };
                let body = Json::Array(objects.iter().map(Object::to_json).collect());
                let leading = operations.last().copied();
                (BundleEffect::ReplaceList(kind), body, operations, leading)
            }
        };
        let (Some(leading), bundle) = (leading, Bundle { section: section.clone(), effect, body }) else {
            continue;
        };
        let alone: f64 = operations.iter().map(|operation| costs.change(held, sent(operation))).sum();
        if target.carries(&bundle) && costs.change(held, length(&bundle.body)) < alone {
            bundled.extend(operations.iter().map(|operation| std::ptr::from_ref(*operation)));
            steps.push(Step::Several { bundle, leading, operations });
        }
    }
    let is_alone = |operation: &&Operation| !bundled.contains(&std::ptr::from_ref(*operation));
    operations.iter().filter(is_alone).map(Step::One).chain(steps).collect()
}

/// A section with what stands in it, and the operations that this carries out. An object keeps no order: things with names that don't
/// stand in the order of their names follow one by one.
fn whole<'o, T: Target>(
    model: &SectionModel,
    operations: &[&'o Operation],
    target: &T,
) -> Option<(Json, Vec<&'o Operation>)> {
    let kinds: BTreeSet<ObjectKind> =
        model.children.iter().map(|child| child.kind).filter(|kind| !kind.is_ordered()).collect();
    let in_order = |kind: ObjectKind| {
        model.children.iter().filter(|child| child.kind == kind).map(Object::name).is_sorted()
    };
    let alone: BTreeSet<ObjectKind> = kinds.into_iter().filter(|kind| !in_order(*kind)).collect();
    let mut model = model.clone();
    model.children.retain(|child| !alone.contains(&child.kind));
    let operations: Vec<&Operation> = operations
        .iter()
        .copied()
        .filter(|operation| match &operation.subject {
            Subject::Child { kind, .. } => !alone.contains(kind),
            _ => true,
        })
        .collect();
    // The section's own settings and each thing that stands in it, or something would be lost.
    let is_all = operations.len() == model.children.len() + 1 && model.unmodelled.is_empty();
    (is_all && operations.len() > 1).then(|| (model.to_json(target.context()), operations))
}
