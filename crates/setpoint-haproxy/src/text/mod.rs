//! The text of a configuration, without loss.
//!
//! ```text
//! bytes ─▶ Document ─▶ Arc<Section> ─▶ Line ─▶ Word          each made when it is asked for
//!             │             │
//!             │             └─ owns its bytes, knows its kind, hash and shape; positions are its own
//!             └─ diagnostics: every error of the file, with its place and a hint
//! ```
//!
//! A [`Document`] is a vector of shared [`Section`]s and nothing else: printing it is writing the bytes of its
//! sections one after the other, and an edit replaces one of them. A section is divided into [`Line`]s, and a line
//! into [`Word`]s, only where someone looks. The rules for words are HAProxy's own: see [`Words`].

mod chunk;
mod diagnostic;
mod directive;
mod document;
mod edit;
mod format;
mod kind;
pub(crate) mod lex;
mod line;
mod section;

pub(crate) use chunk::Chunk;
pub(crate) use diagnostic::nearest;
pub use diagnostic::{Diagnostic, Problem, Severity};
pub use directive::Directive;
pub use document::Document;
pub use edit::LineEdit;
pub(crate) use edit::Style;
pub use kind::{Governed, SectionKind};
pub use lex::{LexError, LexErrorKind, MAX_WORDS, Word, Words, escape_word, quote};
pub use line::{Line, Lines};
pub use section::Section;
