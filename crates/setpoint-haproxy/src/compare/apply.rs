//! Operations applied to a document: each is an edit, in the style the document is written in.

use setpoint_plan::Action;

use super::Diff;
use super::operation::{Operation, Subject};
use crate::edit::{ChildKey, EditError, Editor};
use crate::model::{Context, SectionModel};
use crate::text::Document;

impl Document {
    /// The document after an operation, in the style it is written in.
    ///
    /// ```
    /// use setpoint_haproxy::compare::compare;
    /// use setpoint_haproxy::model::Context;
    /// use setpoint_haproxy::text::Document;
    ///
    /// let cx = Context::default();
    /// let current = Document::parse(b"backend b\n\tmode   http\n\tserver s1 10.0.0.1:80 # old\n");
    /// let desired = Document::parse(b"backend b\n  mode http\n  server s2 10.0.0.2:80\n");
    /// let mut document = current.clone();
    /// for operation in compare(&current, &desired, &cx)?.operations() {
    ///     document = document.apply(operation, &cx)?;
    /// }
    /// assert_eq!(document.print(), b"backend b\n\tmode   http\n\tserver s2 10.0.0.2:80\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What the operation speaks of must be there, and what it creates must not.
    pub fn apply(&self, operation: &Operation, cx: &Context) -> Result<Self, EditError> {
        let mut editor = Editor::unjudged(self.clone(), cx);
        apply(&mut editor, operation)?;
        Ok(editor.finish())
    }

    /// The document after all operations of a difference, in their order.
    ///
    /// # Errors
    ///
    /// Those of [`Document::apply`].
    pub fn apply_all(&self, diff: &Diff, cx: &Context) -> Result<Self, EditError> {
        applied(self, diff.operations(), cx)
    }
}

/// A document after some operations.
pub(super) fn applied(
    document: &Document,
    operations: &[Operation],
    cx: &Context,
) -> Result<Document, EditError> {
    let mut editor = Editor::unjudged(document.clone(), cx);
    for operation in operations {
        apply(&mut editor, operation)?;
    }
    Ok(editor.finish())
}

fn apply(editor: &mut Editor<'_>, operation: &Operation) -> Result<(), EditError> {
    let (key, inherited) = (&operation.section, operation.inherited.as_ref());
    match (&operation.subject, operation.action) {
        (Subject::Text { new: Some(new), .. }, Action::Create) => editor.create_text(key, new, inherited),
        (Subject::Text { new: Some(new), .. }, _) => editor.replace_text(key, new, inherited),
        (Subject::Section { new: Some(new), .. }, Action::Create) => {
            let section = SectionModel::of(key.kind, key.name.clone(), new.clone());
            editor.create_governed(key, &section, inherited)
        }
        (Subject::Section { new: Some(new), .. }, _) => editor.replace_settings(key, new),
        (Subject::Configuration { new, .. }, _) => {
            editor.replace_document(new.clone());
            Ok(())
        }
        (Subject::Text { new: None, .. } | Subject::Section { new: None, .. }, _) => {
            editor.delete_section(key)
        }
        (Subject::Child { key: child, new: Some(new), .. }, Action::Create) => {
            let place = match child {
                ChildKey::Index(index) => Some(*index),
                ChildKey::Name(_) => None,
            };
            editor.create(key, new, place)
        }
        (Subject::Child { key: child, new: Some(new), .. }, Action::Modify | Action::Recreate) => {
            editor.replace(key, child, new)
        }
        (Subject::Child { kind, key: child, .. }, _) => editor.delete(key, *kind, child),
    }
}
