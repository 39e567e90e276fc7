//! What stands in a section: children, by name or by place.

use smol_str::SmolStr;

use super::Editor;
use super::error::EditError;
use super::key::{ChildKey, SectionKey};
use super::patch::patched;
use super::place::{line_for, raised_acls};
use super::view::{Found, View};
use crate::model::{Object, ObjectKind};
use crate::table::{Multiplicity, directives};
use crate::text::LineEdit;

impl Editor<'_> {
    /// Returns a child of a section.
    pub fn get(
        &mut self,
        section: &SectionKey,
        kind: ObjectKind,
        key: &ChildKey,
    ) -> Result<Object, EditError> {
        let index = self.at(section)?;
        let view = self.view(index, section)?;
        self.fits(&view, kind)?;
        Ok(found(&view, section, kind, key)?.object)
    }

    /// Returns all children of a kind, in the order of the text.
    pub fn list(&mut self, section: &SectionKey, kind: ObjectKind) -> Result<Vec<Object>, EditError> {
        let index = self.at(section)?;
        let view = self.view(index, section)?;
        self.fits(&view, kind)?;
        Ok(view.all(kind).map(|(line, child)| Object { line, ..child.clone() }).collect())
    }

    /// Creates a child of a section. In a list it comes to a place, or to the end.
    pub fn create(
        &mut self,
        section: &SectionKey,
        object: &Object,
        place: Option<u32>,
    ) -> Result<(), EditError> {
        let index = self.at(section)?;
        let view = self.view(index, section)?;
        let kind = object.kind;
        self.fits(&view, kind)?;
        let length = view.count(kind);
        if self.judges && place.is_some() && !kind.is_ordered() {
            let name = object.name().unwrap_or_default();
            let why = format!("{kind} {name} is known by its name: it takes no index");
            return Err(EditError::invalid("index", why));
        }
        let place = place.filter(|_| kind.is_ordered()).unwrap_or(length);
        if place > length {
            return Err(EditError::OutOfRange { section: section.clone(), kind, index: place, length });
        }
        self.free(&view, section, object, None)?;
        let text = self.line_of(object, view.kind)?;
        let before = line_for(&view, kind, place);
        let mut edits = raised_acls(&view, object, before);
        edits.push(LineEdit::Insert { before, text });
        self.edit_lines(index, &edits);
        Ok(())
    }

    /// Replaces a child of a section; another name in the object renames it.
    pub fn replace(
        &mut self,
        section: &SectionKey,
        key: &ChildKey,
        object: &Object,
    ) -> Result<(), EditError> {
        let index = self.at(section)?;
        let view = self.view(index, section)?;
        self.fits(&view, object.kind)?;
        let held = found(&view, section, object.kind, key)?;
        self.free(&view, section, object, Some(held.line))?;
        let mut edits = raised_acls(&view, object, held.line);
        edits.push(self.line_edit(&view, &held, object)?);
        self.edit_lines(index, &edits);
        Ok(())
    }

    /// Deletes a child of a section.
    pub fn delete(
        &mut self,
        section: &SectionKey,
        kind: ObjectKind,
        key: &ChildKey,
    ) -> Result<(), EditError> {
        let index = self.at(section)?;
        let view = self.view(index, section)?;
        self.fits(&view, kind)?;
        let line = found(&view, section, kind, key)?.line;
        self.edit_lines(index, &[LineEdit::Delete { line }]);
        Ok(())
    }

    /// Replaces all children of a kind. Those that stay the same at the beginning and the end of a list stay as they are.
    pub fn replace_list(
        &mut self,
        section: &SectionKey,
        kind: ObjectKind,
        objects: &[Object],
    ) -> Result<(), EditError> {
        let index = self.at(section)?;
        let view = self.view(index, section)?;
        self.fits(&view, kind)?;
        if let Some(other) = objects.iter().find(|object| object.kind != kind) {
            return Err(EditError::WrongPlace { kind: other.kind, section: view.kind });
        }
        self.all_different(&view, section, kind, objects)?;
        let held: Vec<Found> =
            view.all(kind).map(|(line, object)| Found { object: object.clone(), line }).collect();
        let alike = |(held, new): &(&Found, &Object)| held.object == **new;
        let prefix = held.iter().zip(objects).take_while(alike).count();
        let rest = held.len().min(objects.len()) - prefix;
        let suffix = held.iter().rev().zip(objects.iter().rev()).take(rest).take_while(alike).count();
        let old = held.get(prefix..held.len() - suffix).unwrap_or_default();
        let new = objects.get(prefix..objects.len() - suffix).unwrap_or_default();
        let mut edits = Vec::new();
        for (held, object) in old.iter().zip(new) {
            edits.extend(raised_acls(&view, object, held.line));
            edits.push(self.line_edit(&view, held, object)?);
        }
        edits.extend(old.iter().skip(new.len()).map(|held| LineEdit::Delete { line: held.line }));
        let place = u32::try_from(prefix + old.len()).unwrap_or(u32::MAX);
        let before = line_for(&view, kind, place);
        for object in new.iter().skip(old.len()) {
            edits.extend(raised_acls(&view, object, before));
            edits.push(LineEdit::Insert { before, text: self.line_of(object, view.kind)? });
        }
        self.edit_lines(index, &edits);
        Ok(())
    }

    pub(super) fn view(&self, index: usize, key: &SectionKey) -> Result<View<'_>, EditError> {
        let section = self.document.sections().get(index).ok_or_else(|| EditError::no_section(key))?;
        View::new(section, key, self.cx)
    }

    pub(super) fn edit_lines(&mut self, index: usize, edits: &[LineEdit]) {
        if !edits.is_empty() && !self.document.edit_lines(index, edits) {
            self.index.forget();
        }
    }

    /// Returns whether such a section has children of a kind at all.
    fn fits(&self, view: &View<'_>, kind: ObjectKind) -> Result<(), EditError> {
        self.several(view, kind).map(|_| ()).ok_or(EditError::WrongPlace { kind, section: view.kind })
    }

    fn several(&self, view: &View<'_>, kind: ObjectKind) -> Option<Multiplicity> {
        let mut rows = directives().written(view.kind, self.cx.api);
        rows.find(|row| row.child == Some(kind)).map(|row| row.attributes.several)
    }

    /// Returns whether the name of an object is free, or borne by the child in a line that it is to replace.
    fn free(
        &self,
        view: &View<'_>,
        section: &SectionKey,
        object: &Object,
        instead: Option<u32>,
    ) -> Result<(), EditError> {
        let kind = object.kind;
        let name = object.name().unwrap_or_default();
        let several = self.several(view, kind);
        let must_differ = !kind.is_ordered() || several == Some(Multiplicity::UniqueNames);
        let taken = must_differ && view.named(kind, name).any(|(line, _)| Some(line) != instead)
            || several == Some(Multiplicity::One) && view.all(kind).any(|(line, _)| Some(line) != instead);
        if taken { Err(EditError::child_exists(section, kind, name)) } else { Ok(()) }
    }

    /// Returns whether the names of objects that are to be all of their kind differ where they must.
    fn all_different(
        &self,
        view: &View<'_>,
        section: &SectionKey,
        kind: ObjectKind,
        objects: &[Object],
    ) -> Result<(), EditError> {
        let several = self.several(view, kind);
        if kind.is_ordered() && several != Some(Multiplicity::UniqueNames) {
            return Ok(());
        }
        let mut names = rustc_hash::FxHashSet::default();
        for object in objects {
            let name = SmolStr::new(object.name().unwrap_or_default());
            let is_second = several == Some(Multiplicity::One) && !names.is_empty();
            if is_second || !names.insert(name.clone()) {
                return Err(EditError::child_exists(section, kind, &name));
            }
        }
        Ok(())
    }

    /// The edit that makes a line say something else. The words that need not change stay; so does the comment, unless the
    /// model keeps it and it is another.
    fn line_edit(&self, view: &View<'_>, held: &Found, new: &Object) -> Result<LineEdit, EditError> {
        let line = held.line;
        let metadata = |object: &Object| {
            let field = directives().metadata_field().filter(|_| self.cx.api.keeps_metadata(object.kind))?;
            object.fields.get(field).cloned()
        };
        if metadata(&held.object) != metadata(new) {
            return Ok(LineEdit::ReplaceAll { line, text: self.line_of(new, view.kind)? });
        }
        let (old, new) = (bare(&held.object), bare(new));
        let text = self.line_of(&new, view.kind)?;
        let mut before = Vec::new();
        old.write_unjudged(self.cx, &mut before)?;
        let canonical = (before.trim_ascii_end(), text.as_slice());
        let patched =
            view.section.line(line).and_then(|line| patched(view.section, &line, canonical, &new, self.cx));
        Ok(LineEdit::Replace { line, text: patched.unwrap_or(text) })
    }
}

fn found(
    view: &View<'_>,
    section: &SectionKey,
    kind: ObjectKind,
    key: &ChildKey,
) -> Result<Found, EditError> {
    match key {
        ChildKey::Index(index) if *index >= view.count(kind) => {
            let length = view.count(kind);
            Err(EditError::OutOfRange { section: section.clone(), kind, index: *index, length })
        }
        key => view.child(kind, key).ok_or_else(|| EditError::no_child(section, kind, key)),
    }
}

/// An object without the comment that the model keeps.
pub(super) fn bare(object: &Object) -> Object {
    let mut bare = object.clone();
    if let Some(field) = directives().metadata_field() {
        bare.fields.remove(field);
    }
    bare
}
