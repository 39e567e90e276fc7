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
    let mut last = None;
    for name in acl_names(object) {
        let mut places = view.named(ObjectKind::Acl, &name).map(|(line, _)| line);
        // Several lines make up one ACL, and the first is enough for HAProxy to know it.
        if let Some(place) = places.next().filter(|place| *place > line) {
            last = last.max(Some(place));
        }
    }
    let Some(last) = last else { return Vec::new() };
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

/// The names that may be those of ACLs in the conditions of an object.
fn acl_names(object: &Object) -> Vec<String> {
    let mut names = Vec::new();
    for (field, value) in &object.fields {
        let Value::Text(test) = value else { continue };
        if !field.path().ends_with("cond_test") {
            continue;
        }
        let mut nested = false;
        for word in split(test).unwrap_or_default() {
            match word.trim_start_matches('!') {
                "{" => nested = true,
                "}" => nested = false,
                name if !nested && !name.is_empty() => names.push(name.to_owned()),
                _ => {}
            }
        }
    }
    names
}
