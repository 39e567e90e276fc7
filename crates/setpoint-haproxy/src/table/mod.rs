//! The one table of directives: what HAProxy's lines say in terms of the Dataplane API's models.
//!
//! The table is text, in `rows/*.txt`, one row for each form of a line:
//!
//! ```text
//! [defaults frontend backend]
//! dfb *      mode <mode>                                  ; default=tcp
//! d-b 3.2+   option http-drop-request-trailers <http-drop-request-trailers:toggle>
//!
//! sections   versions   the grammar of the line           ; attributes
//! ```
//!
//! Adding a keyword is adding a row. The columns:
//!
//! - **sections**, where the block is for several: their first letters, `-` for those that don't know the line.
//! - **versions**: `*`, `3.1+`, `-3.2`, `3.1-3.3`, `3.2`. The oldest schema is 3.0, so `-3.1` means 3.0 and 3.1.
//! - **grammar**: words, values and options; the `grammar` module says what each means. The path of a field is that of the schema.
//!   A `0` after a type says that a zero is kept in JSON, `0@3.0` that it is up to a version; elsewhere zero means «not there».
//!   `= …` is the line that opens the section, and `@server` the place of a section's children of that kind.
//! - **attributes**: what HAProxy makes of the line beyond its words; the `attributes` module lists them, and `docs/haproxy-table.md`
//!   teaches them with examples. What all rows of a block share stands after the header of the block.
//!
//! Blocks `[params name]` hold options that several lines share, `[words name]` words that several values are one of, and
//! `[order section]` the order in which a section's lines are written.

pub(crate) mod accept;
mod accepted;
pub(crate) mod address;
mod attributes;
mod build;
pub(crate) mod calls;
mod compile;
mod defaults;
pub(crate) mod facts;
pub(crate) mod forms;
pub(crate) mod grammar;
pub(crate) mod limits;
mod lookup;
mod names;
pub(crate) mod patterns;
pub(crate) mod read;
mod read_attributes;
pub(crate) mod resources;
mod row;
mod rules;
pub(crate) mod samples;
pub(crate) mod secrets;
mod shape;
mod source;
pub mod units;
mod values;
mod words;
pub(crate) mod write;

use std::sync::LazyLock;

pub(crate) use accepted::{Text, accepted};
pub(crate) use attributes::{Company, Distinct, Multiplicity, Repeat, Sequence, Unless};
pub use lookup::Directives;
pub(crate) use names::{Name, Reference};
pub(crate) use row::Row;
pub(crate) use shape::{Shape, Slot};
pub(crate) use words::Words;

use crate::model::Version;
use build::collect_fields;
pub(crate) use build::fields_of;
use shape::path_of;

/// Returns the table; it is read once.
pub fn directives() -> &'static Directives {
    static DIRECTIVES: LazyLock<Directives> = LazyLock::new(|| Directives::of(&source::schema()));
    &DIRECTIVES
}

/// What is known of a field apart from any object.
#[derive(Debug)]
pub(crate) struct FieldInfo {
    path: &'static str,
    zero: Zero,
}

/// What a zero means in JSON, or a flag that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Zero {
    /// That the field is not there.
    Dropped,
    /// Just that.
    Kept,
    /// Just that up to a version, and then that the field is not there.
    KeptUntil(Version),
}

impl Zero {
    /// Returns whether a version keeps a zero that it is sent.
    pub(crate) fn is_kept(self, version: Version) -> bool {
        match self {
            Self::Dropped => false,
            Self::Kept => true,
            Self::KeptUntil(last) => version <= last,
        }
    }
}

/// What becomes of a second line of a directive, as a caller may want to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repetition {
    /// It takes the place of the first.
    Replaces,
    /// HAProxy ignores it.
    Ignored,
    /// HAProxy refuses it.
    Refused,
    /// It counts beside the first.
    Counts,
}
