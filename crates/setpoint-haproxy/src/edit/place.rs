//! Where a line is put: lists keep their order, and an ACL stands above the rules that name it.

use super::view::View;
use crate::model::spelling::split;
use crate::model::{Object, ObjectKind, Value};
use crate::table::facts::facts;
use crate::text::LineEdit;

/// The order in which the children of a section are written.
pub(super) fn rank(kind: ObjectKind) -> u8 {
    facts().place(kind)
}

/// The line before which a child is put that is to be at a place of its list; past the end, it is appended.
pub(super) fn line_for(view: &View<'_>, kind: ObjectKind, index: u32) -> u32 {
    let before = index.checked_sub(1).and_then(|index| view.nth(kind, index)).map(|(line, _)| line);
    let after = view.nth(kind, index).map(|(line, _)| line);
    if kind == ObjectKind::Acl {
        // As high as its list allows: rules below may come to name it.
        let first_rule = || view.first_of(|kind| rank(kind) > rank(ObjectKind::Acl));
        return match (before, after) {
            (Some(before), _) => before + 1,
            (None, Some(after)) => first_rule().map_or(after, |rule| rule.min(after)),
            (None, None) => first_rule().unwrap_or(u32::MAX),
        };
    }
    match (after, before) {
        (Some(after), _) => after,
        (None, Some(before)) => before + 1,
        (None, None) => view.first_of(|other| rank(other) > rank(kind)).unwrap_or(if rank(kind) == 0 {
            view.section.first_own_line()
        } else {
            u32::MAX
        }),
    }
}

/// The edits that put ACLs above a line that is to name them. Those before them in their list go with them.
pub(super) fn raised_acls(view: &View<'_>, object: &Object, line: u32) -> Vec<LineEdit> {
    raised(view, &acl_names(object), line)
}

/// The edits that put ACLs above lines that are to name them, each with its number.
pub(super) fn acls_raised_above(view: &View<'_>, lines: &[(u32, &[u8])]) -> Vec<LineEdit> {
    let below = lines.iter().filter_map(|(line, text)| {
        let mut names = names_of(text);
        names.retain(|name| view.first_acl(name).is_some_and(|place| place > *line));
        (!names.is_empty()).then_some((*line, names))
    });
    let below: Vec<(u32, Vec<String>)> = below.collect();
    let first = below.iter().map(|(line, _)| *line).min();
    let names: Vec<String> = below.into_iter().flat_map(|(_, names)| names).collect();
    first.map(|line| raised(view, &names, line)).unwrap_or_default()
}

/// The line before which one that names ACLs can stand; `before` where it names none that stand below.
pub(super) fn behind_its_acls(view: &View<'_>, text: &[u8], before: u32) -> u32 {
    let acls = names_of(text).into_iter().filter_map(|name| view.first_acl(&name));
    acls.map(|place| place + 1).fold(before, u32::max)
}

fn raised(view: &View<'_>, names: &[String], line: u32) -> Vec<LineEdit> {
    let places = names.iter().filter_map(|name| view.first_acl(name));
    let Some(last) = places.filter(|place| *place > line).max() else { return Vec::new() };
    let mut edits = Vec::new();
    let acls = view.all(ObjectKind::Acl).map(|(line, _)| line);
    for number in acls.filter(|number| (line..=last).contains(number)) {
        if let Some(acl) = view.section.line(number) {
            edits.push(LineEdit::Insert { before: line, text: acl.raw().trim_ascii().to_vec() });
            edits.push(LineEdit::Delete { line: number });
        }
    }
    edits
}

/// The names that may be those of ACLs in the condition of a line.
fn names_of(line: &[u8]) -> Vec<String> {
    let words = std::str::from_utf8(line).ok().and_then(split).unwrap_or_default();
    let condition = words.iter().position(|word| word == "if" || word == "unless");
    names_in(words.get(condition.map_or(words.len(), |at| at + 1)..).unwrap_or_default())
}

/// The names that may be those of ACLs in the conditions of an object.
fn acl_names(object: &Object) -> Vec<String> {
    let mut names = Vec::new();
    for (field, value) in &object.fields {
        let Value::Text(test) = value else { continue };
        if !field.path().ends_with("cond_test") {
            continue;
        }
        names.extend(names_in(&split(test).unwrap_or_default()));
    }
    names
}

/// The names of ACLs among the words of a condition.
fn names_in(words: &[String]) -> Vec<String> {
    let mut names = Vec::new();
    let mut nested = false;
    for word in words {
        match word.trim_start_matches('!') {
            "{" => nested = true,
            "}" => nested = false,
            name if !nested && !name.is_empty() => names.push(name.to_owned()),
            _ => {}
        }
    }
    names
}
