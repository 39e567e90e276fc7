//! Why an edit is refused. Nothing was changed then.

use super::key::{ChildKey, SectionKey};
use crate::model::{ModelError, ObjectKind, TextOnly};
use crate::schema::Violation;

/// Why an edit is refused. Nothing was changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// What is to be created is there.
    #[error("{what} is there already")]
    Exists {
        /// What it is, such as `backend web` or `server s1 of backend web`.
        what: String,
    },
    /// What is to be read, replaced or deleted is not there.
    #[error("there is no {what}")]
    NotFound {
        /// What it is.
        what: String,
    },
    /// A list is not that long.
    #[error("{section} has {length} of {kind}: there is no place {index}")]
    OutOfRange {
        /// The section.
        section: SectionKey,
        /// What the list is of.
        kind: ObjectKind,
        /// The place.
        index: u32,
        /// How many there are.
        length: u32,
    },
    /// The section can be changed only as text.
    #[error("{section} can be changed only as text: {}", why.reason())]
    TextOnly {
        /// The section.
        section: SectionKey,
        /// Why.
        why: TextOnly,
    },
    /// There is no such thing in such a section.
    #[error("there is no {kind} in a {section} section")]
    WrongPlace {
        /// What it is.
        kind: ObjectKind,
        /// The section.
        section: ObjectKind,
    },
    /// The object breaks the API's schema, or can't be written.
    #[error("{}", faults.iter().map(|fault| fault.why.as_str()).collect::<Vec<_>>().join("; "))]
    Invalid {
        /// All that is wrong with it.
        faults: Vec<Fault>,
    },
}

/// What is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The path of the property that is wrong; empty if it is about several, or about none.
    pub field: String,
    /// What is wrong with it, with its path.
    pub why: String,
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        Self { why: violation.to_string(), field: violation.field }
    }
}

impl EditError {
    pub(super) fn invalid(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid { faults: vec![Fault { field: field.into(), why: why.into() }] }
    }

    pub(super) fn no_section(key: &SectionKey) -> Self {
        Self::NotFound { what: key.to_string() }
    }

    pub(super) fn no_child(section: &SectionKey, kind: ObjectKind, key: &ChildKey) -> Self {
        Self::NotFound { what: format!("{kind} {key} in {section}") }
    }

    pub(super) fn child_exists(section: &SectionKey, kind: ObjectKind, name: &str) -> Self {
        Self::Exists { what: format!("{kind} {name} of {section}") }
    }
}

impl From<ModelError> for EditError {
    fn from(error: ModelError) -> Self {
        let field = match &error {
            ModelError::WrongType { path, .. } => path.clone(),
            ModelError::Unwritten { fields, .. } => match fields.as_slice() {
                [(field, _)] => field.clone(),
                _ => String::new(),
            },
            ModelError::NotAnObject { .. } | ModelError::Refused { .. } | ModelError::Incomplete { .. } => {
                String::new()
            }
        };
        Self::invalid(field, error.to_string())
    }
}
