//! What leads from one configuration to another.
//!
//! ```text
//! current ─┐                      ┌─ written alike ─▶ nothing
//!          ├─ sections by key ────┼─ modelled ──────▶ fields, named children, lists by longest common subsequence
//! desired ─┘                      └─ text only ─────▶ words
//!                                          │
//!                                          ▼
//!                        operations in a safe order, each with its verdict ─▶ plan, summary, Document::apply
//! ```
//!
//! Only sections that are not written alike are split into words, and only those that differ are modelled.
//!
//! ```
//! use setpoint_haproxy::compare::compare;
//! use setpoint_haproxy::model::Context;
//! use setpoint_haproxy::text::Document;
//!
//! let current = Document::parse(b"backend web\n  balance roundrobin\n  server s1 10.0.0.1:80 weight 10\n");
//! let desired = Document::parse(b"backend web\n  balance   roundrobin # same\n  server s1 10.0.0.1:80 weight 20\n");
//! let diff = compare(&current, &desired, &Context::default())?;
//! assert_eq!(diff.operations().len(), 1);
//! assert_eq!(diff.operations()[0].to_string(), "~ backend web: server s1");
//! assert_eq!(diff.operations()[0].changes[0].to_string(), "weight: 10 → 20");
//! assert!(diff.operations()[0].runtime.is_possible());
//! # Ok::<(), setpoint_haproxy::compare::CompareError>(())
//! ```

mod added;
mod apply;
mod as_text;
mod below;
mod content;
pub(crate) mod lcs;
mod named;
mod operation;
mod places;
mod runtime;
mod sections;
mod summary;
mod unmodelled;

use std::sync::Arc;

use rustc_hash::FxHashSet;
use setpoint_plan::{Action, AttributeChange, Plan, Runtime};

use crate::model::{Context, Field, Object, ObjectKind, SectionModel, TextOnly, Value, section_model};
use crate::table::facts::facts;
use crate::text::{Document, Section, SectionKind};
use as_text::{AsText, only_as_text, text_only, unlike_the_model};
use content::ChildChange;
use named::NamedServers;
use sections::{Entry, InheritedDefaults, Side};

pub use crate::edit::{ChildKey, SectionKey};
pub use operation::{Operation, OrderKey, Subject};
pub use runtime::with_default_server;
pub use summary::{DiffSummary, Names, Servers};

/// Why two configurations can't be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// There is no current configuration.
    #[error("there is no current configuration to compare with")]
    NoCurrent,
    /// There is no desired configuration.
    #[error("there is no desired configuration to compare with")]
    NoDesired,
    /// The desired configuration has no section.
    #[error("the desired configuration has no section: that would delete everything")]
    EmptyDesired,
}

/// The operations that lead from one configuration to another, in an order that is safe to follow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diff {
    operations: Vec<Operation>,
    summary: DiffSummary,
}

impl Diff {
    /// The operations, in the order in which they are to be applied.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The same in numbers and names.
    pub fn summary(&self) -> &DiffSummary {
        &self.summary
    }

    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns whether all of it can be told to a running HAProxy.
    pub fn is_possible_at_runtime(&self) -> bool {
        self.operations.iter().all(|operation| operation.runtime.is_possible())
    }

    /// Lets a target that can do less at runtime say so: `refuses` gives the reason why it can't do an operation.
    pub fn narrow(&mut self, refuses: impl Fn(&Operation) -> Option<String>) {
        for operation in &mut self.operations {
            if operation.runtime.is_possible()
                && let Some(why) = refuses(operation)
            {
                operation.runtime = Runtime::no(why);
            }
        }
    }

    /// The same in the plan envelope.
    ///
    /// An operation comes after the one before it in its list, and a child after the creation of its section.
    pub fn plan(&self, subject: impl Into<String>) -> Plan {
        let mut plan = Plan::new(subject);
        let mut last_in_group = std::collections::HashMap::new();
        let mut created = std::collections::HashMap::new();
        for (position, operation) in self.operations.iter().enumerate() {
            let mut planned = operation.to_plan();
            planned.after.extend(created.get(&operation.section).copied());
            if let Some(group) = operation.group() {
                planned.after.extend(last_in_group.insert(group, position));
            }
            if operation.action == Action::Create && !matches!(operation.subject, Subject::Child { .. }) {
                created.insert(operation.section.clone(), position);
            }
            planned.after.sort_unstable();
            planned.after.dedup();
            plan.push(planned);
        }
        plan
    }
}

/// Compares two configurations.
///
/// # Errors
///
/// A missing side is an error, and so is a desired configuration without any section: never is it taken for the wish to
/// delete everything.
pub fn compare<'a>(
    current: impl Into<Option<&'a Document>>,
    desired: impl Into<Option<&'a Document>>,
    cx: &Context,
) -> Result<Diff, CompareError> {
    let current = current.into().ok_or(CompareError::NoCurrent)?;
    let desired = desired.into().ok_or(CompareError::NoDesired)?;
    if desired.sections().iter().all(|section| section.kind() == SectionKind::Preamble) {
        return Err(CompareError::EmptyDesired);
    }
    let sides = sides(current, desired);
    let mut operations = operations_between(&sides, [current, desired], cx, &FxHashSet::default());
    if sections::placed_ones_move(current, desired) {
        operations = vec![whole(current, desired, "a section that others are read after stands elsewhere")];
    } else if are_fragile(&operations, &sides, cx) {
        let mut result = apply::applied(current, &operations, cx);
        let misplaced = result.as_ref().map(|result| below::misplaced(result, desired, &operations, cx));
        if let Ok(misplaced) = misplaced
            && !misplaced.is_empty()
        {
            operations = operations_between(&sides, [current, desired], cx, &misplaced);
            result = apply::applied(current, &operations, cx);
        }
        let leads_there = |result: Document| {
            !sections::placed_ones_move(&result, desired) && differences(&result, desired, cx).is_empty()
        };
        if !result.is_ok_and(leads_there) {
            operations = vec![whole(current, desired, "sections can't be matched one to one")];
        }
    }
    let summary = DiffSummary::of(&operations);
    Ok(Diff { operations, summary })
}

/// The operations between two configurations, section by section.
fn differences(current: &Document, desired: &Document, cx: &Context) -> Vec<Operation> {
    operations_between(&sides(current, desired), [current, desired], cx, &FxHashSet::default())
}

/// The sections of both configurations that may differ.
fn sides<'a>(current: &'a Document, desired: &'a Document) -> (Side<'a>, Side<'a>) {
    let (prefix, suffix) = sections::alike(current, desired);
    let (old, new) = (Side::between(current, prefix, suffix), Side::between(desired, prefix, suffix));
    if old.reaches_beyond || new.reaches_beyond {
        // Which of several sections is which is decided among all of them.
        return (Side::between(current, prefix, 0), Side::between(desired, prefix, 0));
    }
    (old, new)
}

/// The operations between two sides; some sections are carried over as text.
fn operations_between(
    (old, new): &(Side<'_>, Side<'_>),
    documents: [&Document; 2],
    cx: &Context,
    as_text: &FxHashSet<SectionKey>,
) -> Vec<Operation> {
    let named = NamedServers::new(documents);
    let mut comparison = Comparison { old, new, cx, named: &named, as_text, operations: Vec::new() };
    comparison.run();
    let mut operations = comparison.operations;
    operations.sort_by_key(|operation| operation.order);
    operations
}

/// Returns whether an operation might not lead where it should: text may end elsewhere than it seems to, and a backslash may
/// join what stands beside it.
///
/// So might one in a section of which some lines have to stand below others, or in an order that counts, and one that makes
/// a section whose place counts.
fn are_fragile(operations: &[Operation], (old, new): &(Side<'_>, Side<'_>), cx: &Context) -> bool {
    let has_backslash = |section: &Section| section.lines().any(|line| line.raw().contains(&b'\\'));
    let may_misplace = |section: &Section| {
        below::may_misplace(section) || places::may_misplace(section, &section_model(section, cx))
    };
    let may_move = |operation: &Operation| {
        operation.is_text()
            || operation.action == Action::Create && sections::is_placed(operation.section.kind)
    };
    // What is put behind a conditional that is not closed stands in it.
    let creates = |operation: &Operation| {
        operation.action == Action::Create && !matches!(operation.subject, Subject::Child { .. })
    };
    let is_conditional = operations.iter().any(creates)
        && old.document.sections().iter().any(|section| section.is_conditional());
    // The indentation of the lines before it decides whether an unknown word opens a section.
    let is_unknown = |section: &&Arc<Section>| section.kind() == SectionKind::Unknown;
    let has_unknown = [old, new].iter().any(|side| side.document.sections().iter().any(|it| is_unknown(&it)));
    let are_placed_first = [old, new].iter().all(|side| sections::are_placed_first(side.document));
    let is_any = !operations.is_empty();
    is_conditional || ((has_unknown || !are_placed_first) && is_any) || operations.iter().any(may_move) || {
        let sections: FxHashSet<&SectionKey> =
            operations.iter().map(|operation| &operation.section).collect();
        sections.into_iter().any(|key| {
            old.get(key).is_some_and(|entry| has_backslash(entry.section))
                || new.get(key).is_some_and(|entry| may_misplace(entry.section))
        })
    }
}

/// The operation that pushes the whole text.
fn whole(current: &Document, desired: &Document, reason: &str) -> Operation {
    Operation {
        action: Action::Modify,
        section: SectionKey::unnamed(SectionKind::Preamble),
        subject: Subject::Configuration { old: current.clone(), new: desired.clone() },
        inherited: None,
        changes: content::lines(current.sections(), desired.sections()),
        reason: reason.to_owned(),
        runtime: Runtime::no(format!("text is pushed: {reason}")),
        effective: None,
        order: order(Action::Modify, 0, 0, None, 0),
    }
}

/// Why a modelled section is changed, made or taken away, in the words that all plans use.
fn reason(action: Action) -> &'static str {
    match action {
        Action::Create => "it is intended and not there",
        Action::Delete => "it is there and not intended",
        Action::Modify | Action::Recreate => "its state differs from the intended one",
    }
}

struct Comparison<'a> {
    old: &'a Side<'a>,
    new: &'a Side<'a>,
    cx: &'a Context,
    named: &'a NamedServers<'a>,
    /// The sections of which the order of lines matters more than the model shows.
    as_text: &'a FxHashSet<SectionKey>,
    operations: Vec<Operation>,
}

impl<'a> Comparison<'a> {
    fn run(&mut self) {
        let (old, new) = (self.old, self.new);
        for entry in &old.entries {
            if new.get(&entry.key).is_none() {
                self.delete(entry);
            }
        }
        for entry in &new.entries {
            match old.get(&entry.key) {
                None => self.create(entry),
                Some(held) => self.update(held, entry),
            }
        }
    }

    /// Why a section is text only by itself, or for others that share its kind and name.
    fn text_only(&self, model: &SectionModel, entry: &Entry<'_>) -> Option<AsText> {
        let repeated = self.old.is_repeated(&entry.key) || self.new.is_repeated(&entry.key);
        let is_ordered = self.as_text.contains(&entry.key).then_some(AsText::Sequence);
        text_only(model, entry).or(is_ordered).or(repeated.then_some(AsText::SectionRepeated))
    }

    fn delete(&mut self, entry: &Entry<'_>) {
        if is_blank_preamble(entry.section) {
            return;
        }
        let model = section_model(entry.section, self.cx);
        let Some(old) = model.object.clone().filter(|_| self.text_only(&model, entry).is_none()) else {
            let why = self.text_only(&model, entry).unwrap_or(AsText::Own(TextOnly::NoModel));
            return self.text(why, Some(entry), None, None);
        };
        let runtime = runtime::deleted_section(entry.key.kind);
        let subject = Subject::Section { old: Some(old), new: None };
        self.push(Action::Delete, entry, subject, Vec::new(), None, runtime);
    }

    fn create(&mut self, entry: &Entry<'_>) {
        if is_blank_preamble(entry.section) {
            return;
        }
        let inherited = self.new.inherited(entry);
        let placed = inherited.key.clone().filter(|_| !inherited.named);
        let model = section_model(entry.section, self.cx);
        let textual = self.text_only(&model, entry).or_else(|| unlike_the_model(entry.section, &model));
        let Some(new) = model.object.as_ref().filter(|_| textual.is_none()) else {
            return self.text(textual.unwrap_or(AsText::Own(TextOnly::NoModel)), None, Some(entry), placed);
        };
        let surroundings = self.surroundings(None, Some((entry, &model)), None, &inherited);
        let runtime = surroundings.new_section(entry.key.kind, new);
        let changes = content::attributes(None, Some(new), &|_, _| None);
        let subject = Subject::Section { old: None, new: Some(new.clone()) };
        self.push(Action::Create, entry, subject, changes, placed, runtime.clone());
        let empty = SectionModel { children: Vec::new(), ..(*model).clone() };
        for change in content::children(&empty, &model, self.cx.haproxy, &|_, _| false) {
            let runtime = if runtime.is_possible() {
                surroundings.child(&change, &[])
            } else {
                Runtime::no("its section is new, and comes with a reload")
            };
            self.child(entry, &change, &|_, _| None, (runtime, surroundings.whole_server(&change)));
        }
    }

    fn update(&mut self, held: &Entry<'a>, wanted: &Entry<'a>) {
        let (from, to) = (self.old.inherited(held), self.new.inherited(wanted));
        let placed = to.key.clone().filter(|_| !to.named);
        let inherits_other_defaults = from.key != to.key && !to.named;
        if Arc::ptr_eq(held.section, wanted.section) || held.section.same_bytes(wanted.section) {
            if inherits_other_defaults {
                self.text(AsText::InheritedDefaults, Some(held), Some(wanted), placed);
            }
            return;
        }
        let (old, new) = (section_model(held.section, self.cx), section_model(wanted.section, self.cx));
        let textual = self.text_only(&old, held).or_else(|| self.text_only(&new, wanted));
        if textual.is_some_and(|why| why != AsText::Anonymous) || old.object.is_none() || new.object.is_none()
        {
            let why = textual.unwrap_or(AsText::Own(TextOnly::NoModel));
            let all = content::lines(of(held), of(wanted));
            if !all.is_empty() || inherits_other_defaults {
                self.text(why, Some(held), Some(wanted), placed);
            }
            return;
        }
        let defaults = self.defaults_of(self.new, &to);
        let placement = |entry: &Entry<'a>, model| places::Placement {
            section: entry.section,
            model,
            defaults: &defaults,
        };
        let moved = || places::differ(placement(held, &old), placement(wanted, &new));
        if let Some(why) = only_as_text((held, &old), (wanted, &new), inherits_other_defaults).or_else(moved)
        {
            return self.text(why, Some(held), Some(wanted), placed);
        }
        let surroundings = self.surroundings(Some((held, &old)), Some((wanted, &new)), Some(&from), &to);
        let assumed = |kind: ObjectKind, field: Field| surroundings.assumed(kind, field);
        let mut changes = content::attributes(old.object.as_ref(), new.object.as_ref(), &assumed);
        if from.key == to.key {
            // Named or not, it is the same.
            changes.retain(|change| change.attribute != "from");
        }
        let stated_as_text = |entry: &Entry<'_>, model: &SectionModel| {
            unmodelled::states_one_of(&changes, entry.section, model, self.cx.api)
        };
        if stated_as_text(held, &old) || stated_as_text(wanted, &new) {
            return self.text(AsText::Unmodelled, Some(held), Some(wanted), placed);
        }
        let has_variables =
            unmodelled::has_variables(held.section, &old) || unmodelled::has_variables(wanted.section, &new);
        if !changes.is_empty() {
            let runtime = surroundings.changed_section(wanted.key.kind, &changes);
            let subject = Subject::Section { old: old.object.clone(), new: new.object.clone() };
            self.push(Action::Modify, wanted, subject, changes, placed, runtime);
        }
        let equal = |a: &Object, b: &Object| content::attributes(Some(a), Some(b), &assumed).is_empty();
        for change in content::children(&old, &new, self.cx.haproxy, &equal) {
            let changes = content::attributes(change.old, change.new, &assumed);
            let runtime = if has_variables {
                Runtime::no("a line of its section has a variable that is not known")
            } else {
                surroundings.child(&change, &changes)
            };
            self.child(wanted, &change, &assumed, (runtime, surroundings.whole_server(&change)));
        }
    }

    fn text(
        &mut self,
        why: AsText,
        old: Option<&Entry<'_>>,
        new: Option<&Entry<'_>>,
        inherited: Option<SectionKey>,
    ) {
        let Some(entry) = new.or(old) else { return };
        let action = match (old, new) {
            (None, _) => Action::Create,
            (_, None) => Action::Delete,
            _ => Action::Modify,
        };
        let section = |entry: Option<&Entry<'_>>| entry.map(|entry| Arc::clone(entry.section));
        let subject = Subject::Text { old: section(old), new: section(new) };
        let changes = content::lines(old.map(of).unwrap_or_default(), new.map(of).unwrap_or_default());
        let runtime = Runtime::no(format!("text is pushed: {}", why.reason()));
        let order = order(action, facts().section(entry.key.kind).rank, entry.index, None, 0);
        let reason = why.reason().to_owned();
        let section = entry.key.clone();
        self.operations.push(Operation {
            action,
            section,
            subject,
            inherited,
            changes,
            reason,
            runtime,
            effective: None,
            order,
        });
    }

    fn child(
        &mut self,
        entry: &Entry<'_>,
        change: &ChildChange<'_>,
        assumed: &dyn Fn(ObjectKind, Field) -> Option<Value>,
        (runtime, effective): (Runtime, Option<Object>),
    ) {
        let action = match (change.old, change.new) {
            (None, _) => Action::Create,
            (_, None) => Action::Delete,
            _ => Action::Modify,
        };
        let changes = match action {
            Action::Delete => Vec::new(),
            _ => content::attributes(change.old, change.new, assumed),
        };
        let subject = Subject::Child {
            kind: change.kind,
            key: change.key.clone(),
            old: change.old.cloned(),
            new: change.new.cloned(),
        };
        self.push(action, entry, subject, changes, None, runtime);
        if let Some(operation) = self.operations.last_mut() {
            operation.effective = effective;
        }
    }

    fn push(
        &mut self,
        action: Action,
        entry: &Entry<'_>,
        subject: Subject,
        changes: Vec<AttributeChange>,
        inherited: Option<SectionKey>,
        runtime: Runtime,
    ) {
        let order = match &subject {
            Subject::Child { kind, key, old, new } => {
                let line = new.as_ref().or(old.as_ref()).map_or(0, |object| i64::from(object.line));
                let place = match key {
                    ChildKey::Index(index) => i64::from(*index),
                    ChildKey::Name(_) => line,
                };
                order(action, facts().rank(*kind), entry.index, Some(*kind), place)
            }
            _ => order(action, facts().section(entry.key.kind).rank, entry.index, None, 0),
        };
        let (section, reason) = (entry.key.clone(), reason(action).to_owned());
        self.operations.push(Operation {
            action,
            section,
            subject,
            inherited,
            changes,
            reason,
            runtime,
            effective: None,
            order,
        });
    }

    fn surroundings<'m>(
        &self,
        old: Option<(&Entry<'_>, &'m SectionModel)>,
        new: Option<(&Entry<'_>, &'m SectionModel)>,
        from: Option<&InheritedDefaults>,
        to: &InheritedDefaults,
    ) -> runtime::RuntimeContext<'m>
    where
        'a: 'm,
    {
        let backend = new.or(old).and_then(|(entry, _)| entry.key.name.clone());
        runtime::RuntimeContext {
            version: self.cx.haproxy,
            backend,
            old: old.map(|(_, model)| model),
            new: new.map(|(_, model)| model),
            old_defaults: match from {
                Some(from) => self.defaults_of(self.old, from),
                None => self.defaults_of(self.new, to),
            },
            defaults: self.defaults_of(self.new, to),
            documents: [self.old.document, self.new.document],
            named: self.named,
            found: added::Found::default(),
        }
    }

    /// The `defaults` that govern a section of a side, nearest first.
    fn defaults_of(&self, side: &Side<'_>, inherited: &InheritedDefaults) -> Vec<Object> {
        let mut found = Vec::new();
        let mut next = inherited.key.clone();
        // A cycle of `from` ends after as many steps as there are sections.
        let mut left = side.document.sections().len();
        while let Some(section) = next.take().and_then(|key| side.defaults(&key))
            && left > 0
        {
            left -= 1;
            found.extend(section_model(section, self.cx).object.clone());
            next = section.from().map(|name| SectionKey {
                kind: SectionKind::Defaults,
                name: Some(String::from_utf8_lossy(&name).into()),
                nth: 0,
            });
        }
        found
    }
}

/// The section of an entry, as a slice.
fn of<'e>(entry: &'e Entry<'_>) -> &'e [Arc<Section>] {
    std::slice::from_ref(entry.section)
}

/// Returns whether nothing in it speaks to HAProxy: what stands before the first section mostly.
fn is_blank_preamble(section: &Section) -> bool {
    section.kind() == SectionKind::Preamble && section.lines().all(|line| line.is_blank())
}

fn order(action: Action, rank: i32, section: usize, kind: Option<ObjectKind>, place: i64) -> OrderKey {
    let section = i64::try_from(section).unwrap_or(i64::MAX);
    let kind = kind.map_or(-1, |kind| kind as i32);
    match action {
        Action::Delete => (0, -rank, -section, kind, -place),
        Action::Create => (1, rank, section, kind, place),
        Action::Modify | Action::Recreate => (2, rank, section, kind, place),
    }
}
