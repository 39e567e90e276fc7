//! Edits of a configuration in the API's own terms: objects are read, listed, created, replaced and deleted.
//!
//! ```text
//!  Object, SectionModel ──Editor──▶ LineEdit ──▶ Document        all other lines stay byte for byte
//!                           │
//!                           └─ errors: Exists, NotFound, OutOfRange, TextOnly, WrongPlace, Invalid
//! ```
//!
//! What an edit costs follows the change: a long section is kept in chunks of a few lines, each with what it says, and an edit
//! reads and writes one of them. A section is found by its kind and name in an index that is made once.
//!
//! ```
//! use setpoint_haproxy::edit::{ChildKey, EditError, Editor, SectionKey};
//! use setpoint_haproxy::model::{Context, Object, ObjectKind};
//! use setpoint_haproxy::text::{Document, SectionKind};
//!
//! let cx = Context::default();
//! let mut editor = Editor::new(Document::parse(b"backend web\n    server s1 192.0.2.1:80 # old\n"), &cx);
//! let web = SectionKey::named(SectionKind::Backend, "web");
//! let json = serde_json::json!({ "name": "s2", "address": "192.0.2.2", "port": 80 });
//! let (server, _) = Object::from_json(ObjectKind::Server, &json, &cx)?;
//! editor.create(&web, &server, None)?;
//! assert!(matches!(editor.create(&web, &server, None), Err(EditError::Exists { .. })));
//! editor.delete(&web, ObjectKind::Server, &ChildKey::Name("s1".into()))?;
//! assert_eq!(editor.finish().print(), b"backend web\n    server s2 192.0.2.2:80\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod children;
mod error;
mod index;
mod key;
mod patch;
mod place;
mod sections;
mod settings;
mod view;

use crate::model::{Context, Object, ObjectKind, SectionModel};
use crate::schema::{Asked, Violation, validate};
use crate::table::directives;
use crate::text::Document;

pub use error::{EditError, Fault};
pub(crate) use index::find;
pub use key::{ChildKey, SectionKey};

/// Edits a document. A copy edits a copy, and shares with it what neither changes.
#[derive(Clone, Debug)]
pub struct Editor<'c> {
    document: Document,
    cx: &'c Context,
    /// Whether what HAProxy would refuse is refused.
    judges: bool,
    index: index::Index,
}

impl<'c> Editor<'c> {
    /// Begins to edit a document.
    pub fn new(document: Document, cx: &'c Context) -> Self {
        Self { document, cx, judges: true, index: index::Index::default() }
    }

    /// Begins to edit a document with what another text says, whether HAProxy accepts it or not.
    pub(crate) fn unjudged(document: Document, cx: &'c Context) -> Self {
        Self { judges: false, ..Self::new(document, cx) }
    }

    /// Returns the document as it is now.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Returns the document after all edits.
    pub fn finish(self) -> Document {
        self.document
    }

    /// Puts another document in the place of this one.
    pub(crate) fn replace_document(&mut self, document: Document) {
        self.document = document;
        self.index.forget();
    }

    /// Returns the place of a section.
    fn at(&mut self, key: &SectionKey) -> Result<usize, EditError> {
        self.index.find(&self.document, key).ok_or_else(|| EditError::no_section(key))
    }

    /// Refuses an object that the API's schema does not allow.
    fn valid(&self, object: &Object) -> Result<(), EditError> {
        if self.judges { refused(self.faults(object)) } else { Ok(()) }
    }

    /// Lists what the API's schema does not allow of an object. A text may leave out the name of `defaults`, and a list that is
    /// empty is to the model as one that is not there.
    fn faults(&self, object: &Object) -> Vec<Fault> {
        let may_be_missing = |field: &str| {
            let is_unnamed = object.kind == ObjectKind::Defaults && field == "name";
            is_unnamed || directives().shape(object.kind).is_some_and(|shape| shape.is_list(field))
        };
        let found = validate(object.kind, &object.to_json(), self.cx.api).into_iter();
        let counts = |found: &Violation| found.asked != Asked::Required || !may_be_missing(&found.field);
        found.filter(counts).map(Fault::from).collect()
    }

    /// Refuses a section that the API's schema does not allow, with what stands in it.
    fn valid_section(&self, section: &SectionModel) -> Result<(), EditError> {
        let Some(object) = section.object.as_ref().filter(|_| self.judges) else { return Ok(()) };
        let mut faults = self.faults(object);
        for (index, child) in section.children.iter().enumerate() {
            let before = section.children.get(..index).unwrap_or_default();
            let place = || before.iter().filter(|other| other.kind == child.kind).count().to_string();
            for violation in validate(child.kind, &child.to_json(), self.cx.api) {
                let collection = child.kind.collection_in(object.kind, self.cx.api);
                let key = child.name().filter(|_| !child.kind.is_ordered()).map_or_else(place, str::to_owned);
                let field = format!("{collection}.{key}.{}", violation.field);
                faults.push(Violation { field, ..violation }.into());
            }
        }
        refused(faults)
    }

    /// Writes an object as the line of a child, without the line feed at its end.
    fn line_of(&self, object: &Object, section: ObjectKind) -> Result<Vec<u8>, EditError> {
        let mut text = Vec::new();
        self.valid(object)?;
        if self.judges {
            object.write_in(section, self.cx, &mut text)?;
        } else {
            object.write_unjudged(self.cx, &mut text)?;
        }
        Ok(text.trim_ascii_end().to_vec())
    }
}

fn refused(faults: Vec<Fault>) -> Result<(), EditError> {
    if faults.is_empty() { Ok(()) } else { Err(EditError::Invalid { faults }) }
}
