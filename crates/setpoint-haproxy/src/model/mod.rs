//! The typed model: the Dataplane API's own objects, read from text and written back.
//!
//! ```text
//!                 ┌──────────── the table of directives ────────────┐
//!                 ▼                                                 ▼
//!  Document ──model()──▶ Model: sections with their objects ──write──▶ canonical text
//!                                   ▲          │
//!                             from_json      to_json
//!                                   │          ▼
//!                            the API's JSON, as its schemas say
//! ```
//!
//! An [`Object`] is a sparse list of fields with values; JSON is made only when someone asks for it. What a section
//! contains and the table does not know is never lost: its lines are [`unmodelled`](SectionModel::unmodelled).

mod behaviour;
mod chunk;
mod context;
mod json;
mod kind;
mod object;
mod read;
pub mod spelling;
mod write;

use std::sync::Arc;

use smol_str::SmolStr;

pub(crate) use chunk::{ChunkModel, chunk_model, name_hash};
pub use context::{Context, Edition, UnknownVersion, Version};
pub use json::ModelError;
pub use kind::{ObjectKind, Order};
pub use object::{Field, Fields, Object, Value};
pub(crate) use read::{Fold, OwnLine, modelled_kind};
pub use read::{model, section_model};

use crate::text::SectionKind;

/// Why a section is compared and pushed as text only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextOnly {
    /// There is no model of such a section: what only the enterprise edition knows.
    NoModel,
    /// A conditional such as `.if` stands in it or around it.
    Conditional,
    /// A variable whose value is not known stands in its header or begins one of its lines.
    Variable,
    /// It can't be read: a word is broken, or a line is too long.
    Broken,
}

impl TextOnly {
    /// Returns the reason as a part of a sentence.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NoModel => "there is no model of such a section",
            Self::Conditional => "a conditional stands in it or around it",
            Self::Variable => "a variable that is not known stands in its header or begins a line",
            Self::Broken => "some of it can't be read",
        }
    }
}

/// Holds what a whole document says, section by section in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The sections, as many and in the same order as in the document.
    pub sections: Vec<Arc<SectionModel>>,
}

/// Holds what one section says.
#[derive(Clone, Debug, PartialEq)]
pub struct SectionModel {
    /// The kind of section.
    pub kind: SectionKind,
    /// The name after the keyword.
    pub name: Option<SmolStr>,
    /// The section's own settings. A section without a model has none.
    pub object: Option<Object>,
    /// What stands in it, in the order of the text.
    pub children: Vec<Object>,
    /// The lines that the model does not cover, by their number within the section.
    pub unmodelled: Vec<u32>,
    /// The lines whose order counts, in the order of the text.
    pub(crate) sequences: Vec<Placed>,
    /// Why this section is text only, if it is.
    pub text_only: Option<TextOnly>,
    /// What it was read for: see [`Context`].
    pub(crate) fingerprint: u64,
}

impl SectionModel {
    /// Makes the model of a section in which nothing stands.
    pub(crate) fn of(kind: SectionKind, name: Option<SmolStr>, object: Object) -> Self {
        let (children, unmodelled, sequences) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            kind,
            name,
            object: Some(object),
            children,
            unmodelled,
            sequences,
            text_only: None,
            fingerprint: 0,
        }
    }
}

/// A line whose place among others of its sequence counts: the last of them wins, or each works on what the one before left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) sequence: &'static str,
    /// The word that lines must share for their order to count; none if it counts among all.
    pub(crate) key: Option<SmolStr>,
    /// The directive.
    pub(crate) family: usize,
}
