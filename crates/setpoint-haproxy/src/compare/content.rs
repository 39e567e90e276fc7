//! What two sections say, field by field, child by child, or word by word.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;
use setpoint_plan::AttributeChange;
use smol_str::SmolStr;

use super::lcs::{Stretch, align};
use crate::edit::ChildKey;
use crate::model::{Field, Object, ObjectKind, SectionModel, Value, Version};
use crate::table::secrets::another;
use crate::table::{Row, accepted, address, directives};
use crate::text::{Line, Section};

/// A change of one child.
#[derive(Clone, Debug)]
pub(super) struct ChildChange<'a> {
    pub(super) kind: ObjectKind,
    pub(super) key: ChildKey,
    pub(super) old: Option<&'a Object>,
    pub(super) new: Option<&'a Object>,
}

/// The children that differ, kind by kind; in lists, only those that are not part of what both sides have in common.
pub(super) fn children<'a>(
    old: &'a SectionModel,
    new: &'a SectionModel,
    version: Version,
    equal: &dyn Fn(&Object, &Object) -> bool,
) -> Vec<ChildChange<'a>> {
    let mut by_kind: BTreeMap<ObjectKind, (Vec<&Object>, Vec<&Object>)> = BTreeMap::new();
    for child in &old.children {
        by_kind.entry(child.kind).or_default().0.push(child);
    }
    for child in &new.children {
        by_kind.entry(child.kind).or_default().1.push(child);
    }
    let mut changes = Vec::new();
    for (kind, (old, new)) in by_kind {
        if kind.is_ordered() {
            listed(kind, &old, &new, version, &mut changes);
        } else {
            named(kind, &old, &new, equal, &mut changes);
        }
    }
    changes
}

fn named<'a>(
    kind: ObjectKind,
    old: &[&'a Object],
    new: &[&'a Object],
    equal: &dyn Fn(&Object, &Object) -> bool,
    changes: &mut Vec<ChildChange<'a>>,
) {
    let (held, wanted) = (by_name(old), by_name(new));
    for (key, object) in &held {
        if !wanted.contains_key(key) {
            changes.push(ChildChange {
                kind,
                key: ChildKey::Name(key.0.clone()),
                old: Some(object),
                new: None,
            });
        }
    }
    for (key, object) in &wanted {
        let old = held.get(key).copied();
        if !old.is_some_and(|old| equal(old, object)) {
            changes.push(ChildChange { kind, key: ChildKey::Name(key.0.clone()), old, new: Some(object) });
        }
    }
}

/// Objects by name, and by their number among those that share it.
fn by_name<'a>(objects: &[&'a Object]) -> BTreeMap<(SmolStr, usize), &'a Object> {
    let mut found = BTreeMap::new();
    for &object in objects {
        let name = SmolStr::new(object.name().unwrap_or_default());
        let nth = found.range((name.clone(), 0)..=(name.clone(), usize::MAX)).count();
        found.insert((name, nth), object);
    }
    found
}

fn listed<'a>(
    kind: ObjectKind,
    old: &[&'a Object],
    new: &[&'a Object],
    version: Version,
    changes: &mut Vec<ChildChange<'a>>,
) {
    let defaults = directives().option_defaults(kind, version);
    let identities =
        |list: &[&Object]| list.iter().map(|object| identity(object, &defaults)).collect::<Vec<u64>>();
    let index = |index: usize| ChildKey::Index(u32::try_from(index).unwrap_or(u32::MAX));
    let comment =
        |object: &Object| directives().metadata_field().and_then(|field| object.fields.get(field).cloned());
    for stretch in align(&identities(old), &identities(new)) {
        let (from, to) = match stretch {
            Stretch::Gap(from, to) => (from, to),
            Stretch::Same(i, j) => {
                // What differs in its comment alone stays where it is.
                let (old, new) = (old.get(i).copied(), new.get(j).copied());
                if old.and_then(comment) != new.and_then(comment) {
                    changes.push(ChildChange { kind, key: index(j), old, new });
                }
                continue;
            }
        };
        // What stands in the same gap on both sides is the same thing, changed.
        let pairs = from.len().min(to.len());
        for (i, j) in from.clone().zip(to.clone()) {
            changes.push(ChildChange {
                kind,
                key: index(j),
                old: old.get(i).copied(),
                new: new.get(j).copied(),
            });
        }
        for i in from.skip(pairs) {
            changes.push(ChildChange { kind, key: index(i), old: old.get(i).copied(), new: None });
        }
        for j in to.skip(pairs) {
            changes.push(ChildChange { kind, key: index(j), old: None, new: new.get(j).copied() });
        }
    }
}

/// Returns whether names that must be unique in their section are not.
pub(super) fn repeats_a_name(model: &SectionModel) -> bool {
    let mut seen = rustc_hash::FxHashSet::default();
    model
        .children
        .iter()
        .filter(|child| !child.kind.is_ordered())
        .any(|child| !seen.insert((child.kind, child.name())))
}

/// A number that is equal for objects that say the same to HAProxy: a comment says nothing, and a stated default neither.
fn identity(object: &Object, defaults: &[(&Row, Field, Value)]) -> u64 {
    let mut hasher = FxHasher::default();
    object.kind.hash(&mut hasher);
    let says_something = |(field, value): &&(Field, Value)| {
        let is_default = |(row, held, default): &(&Row, Field, Value)| {
            held == field && default == value && row.is_of(&object.fields)
        };
        Some(*field) != directives().metadata_field() && !defaults.iter().any(is_default)
    };
    hash_fields(object.fields.iter().filter(says_something), &mut hasher);
    hasher.finish()
}

fn hash_fields<'f>(fields: impl IntoIterator<Item = &'f (Field, Value)>, hasher: &mut FxHasher) {
    for (field, value) in fields {
        field.hash(hasher);
        hash_value(value, hasher);
    }
}

fn hash_value(value: &Value, hasher: &mut FxHasher) {
    match value {
        Value::Bool(flag) => flag.hash(hasher),
        Value::Int(number) => number.hash(hasher),
        Value::Text(text) => value_words(text).hash(hasher),
        Value::List(values) => {
            values.len().hash(hasher);
            for value in values {
                hash_value(value, hasher);
            }
        }
        Value::Object(fields) => hash_fields(&**fields, hasher),
        Value::Json(json) => json.to_string().hash(hasher),
    }
}

/// The words of a text: the same for all spellings that compare equal.
fn value_words(text: &str) -> Vec<String> {
    let plain = || vec![text.to_owned()];
    if text.contains('$') || !text.contains(['"', '\'', '\\', ' ', '\t']) {
        return plain();
    }
    crate::model::spelling::split(text).unwrap_or_else(plain)
}

/// The attributes that differ between two objects; `assumed` is what holds where an object says nothing.
pub(super) fn attributes(
    old: Option<&Object>,
    new: Option<&Object>,
    assumed: &dyn Fn(ObjectKind, Field) -> Option<Value>,
) -> Vec<AttributeChange> {
    let (held, wanted) = (old.map(|object| &object.fields), new.map(|object| &object.fields));
    let mut fields: BTreeMap<Field, (Option<&Value>, Option<&Value>)> = BTreeMap::new();
    for (field, value) in held.into_iter().flatten() {
        fields.entry(*field).or_default().0 = Some(value);
    }
    for (field, value) in wanted.into_iter().flatten() {
        fields.entry(*field).or_default().1 = Some(value);
    }
    let both = old.is_some() && new.is_some();
    let Some(kind) = old.or(new).map(|object| object.kind) else { return Vec::new() };
    let mut changes = Vec::new();
    for (field, (old, new)) in fields {
        let same = match (old, new) {
            (Some(old), Some(new)) => old == new || is_same_address(kind, field, old, new),
            // What an option of a rule is where it is not stated depends on the rule.
            (Some(stated), None) | (None, Some(stated)) => {
                both && !kind.is_ordered() && assumed(kind, field).as_ref() == Some(stated)
            }
            (None, None) => true,
        };
        if !same {
            let spelled = |value: Option<&Value>| value.map(|value| directives().spelled(kind, field, value));
            let (old, new) = (spelled(old), spelled(new));
            let (old, new) =
                directives().secrets().shown(field, old.as_ref().zip(held), new.as_ref().zip(wanted));
            changes.push(AttributeChange { attribute: field.path().to_owned(), old, new });
        }
    }
    changes
}

/// Returns whether two values of a field are spellings of the same address.
fn is_same_address(kind: ObjectKind, field: Field, old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_str(), new.as_str()) else { return false };
    address::is_same(old, new) && directives().is_address(kind, field)
}

/// The words of a line as HAProxy reads them; with variables, as they are written.
fn line_words(line: &Line<'_>) -> Vec<Vec<u8>> {
    line.words().map(|word| if word.variable { word.raw.to_vec() } else { word.text.into_owned() }).collect()
}

fn hash_words(words: &[Vec<u8>]) -> u64 {
    let mut hasher = FxHasher::default();
    words.hash(&mut hasher);
    hasher.finish()
}

/// The lines of sections that differ, as text.
pub(super) fn lines(old: &[Arc<Section>], new: &[Arc<Section>]) -> Vec<AttributeChange> {
    let read = |sections: &[Arc<Section>]| -> Vec<(Vec<Vec<u8>>, String)> {
        let all = sections.iter().flat_map(|section| section.all_lines());
        all.filter(|line| !line.is_blank())
            .map(|line| (line_words(&line), accepted().secrets().line(&line)))
            .collect()
    };
    let (old, new) = (read(old), read(new));
    let identities = |lines: &[(Vec<Vec<u8>>, String)]| {
        lines.iter().map(|(words, _)| hash_words(words)).collect::<Vec<_>>()
    };
    let mut changes = Vec::new();
    for stretch in align(&identities(&old), &identities(&new)) {
        let Stretch::Gap(from, to) = stretch else { continue };
        let longer = from.len().max(to.len());
        let gone: Vec<&str> =
            old.get(from.clone()).unwrap_or_default().iter().map(|(_, text)| text.as_str()).collect();
        for offset in 0..longer {
            let show = |lines: &[(Vec<Vec<u8>>, String)], range: &std::ops::Range<usize>| {
                let index = Some(range.start + offset).filter(|index| range.contains(index))?;
                lines.get(index).map(|(_, text)| text.clone())
            };
            let (old, mut new) = (show(&old, &from), show(&new, &to));
            // What is shown like a line that goes differs from it in what is hidden.
            if new.as_ref().is_some_and(|new| gone.contains(&new.as_str())) {
                new = new.map(|new| another(&new));
            }
            changes.push(AttributeChange { attribute: "line".to_owned(), old, new });
        }
    }
    changes
}
