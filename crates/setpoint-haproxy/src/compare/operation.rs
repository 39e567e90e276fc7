//! One step from a configuration to another.

use std::fmt;
use std::sync::Arc;

use setpoint_plan::{Action, AttributeChange, Runtime};

use crate::edit::{ChildKey, SectionKey};
use crate::model::{Object, ObjectKind};
use crate::text::{Document, Section};

/// What an operation is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// The settings of a section itself.
    Section {
        /// What it says now.
        old: Option<Object>,
        /// What it is to say.
        new: Option<Object>,
    },
    /// Something that stands in a section.
    Child {
        /// What it is.
        kind: ObjectKind,
        /// Which one: its name, or its place in its list. A deletion counts places before all operations, a creation
        /// and an update after all of them.
        key: ChildKey,
        /// What it says now.
        old: Option<Object>,
        /// What it is to say.
        new: Option<Object>,
    },
    /// The whole text of a section, because no model carries the difference.
    Text {
        /// What is written now.
        old: Option<Arc<Section>>,
        /// What is to be written.
        new: Option<Arc<Section>>,
    },
    /// The text of the whole configuration, because no operations on its sections lead there: what conditionals, unknown
    /// sections and broken lines belong to depends on all that stands before them.
    Configuration {
        /// What is written now.
        old: Document,
        /// What is to be written.
        new: Document,
    },
}

/// Where an operation stands among all others: phase, rank of its kind, section, kind, place. Ascending.
///
/// Deletions come first, children before their sections and lists from their end; then creations, sections before
/// their children and lists from their beginning; then updates.
pub type OrderKey = (u8, i32, i64, i32, i64);

/// One step from a configuration to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// What is done.
    pub action: Action,
    /// In which section.
    pub section: SectionKey,
    /// To what.
    pub subject: Subject,
    /// The `defaults` that govern the section without being named in it; what creates or moves a section needs it.
    pub inherited: Option<SectionKey>,
    /// What it changes, old → new.
    pub changes: Vec<AttributeChange>,
    /// Why it is there.
    pub reason: String,
    /// Whether a running HAProxy can be told, and if not, why.
    pub runtime: Runtime,
    /// For a server: the server with what `default-server` lines say, as it is afterwards, or was if it goes. A running HAProxy
    /// ignores these for a server that is added to it, so that it has to be told all of this.
    pub effective: Option<Object>,
    /// Where it stands among all others.
    pub order: OrderKey,
}

impl Operation {
    /// The kind of thing it is about: `backend`, `server`, `http_request_rule`, or `text`.
    pub fn kind(&self) -> &'static str {
        match &self.subject {
            Subject::Section { .. } => self.section.kind.keyword(),
            Subject::Child { kind, .. } => kind.model(),
            Subject::Text { .. } | Subject::Configuration { .. } => "text",
        }
    }

    /// Returns whether the difference can be carried over only by pushing text.
    pub fn is_text(&self) -> bool {
        matches!(self.subject, Subject::Text { .. } | Subject::Configuration { .. })
    }

    /// Returns whether it changes a server that stays: what a running HAProxy can often be told.
    pub fn is_server_modification(&self) -> bool {
        self.action == Action::Modify
            && matches!(self.subject, Subject::Child { kind: ObjectKind::Server, .. })
    }

    /// The list it works on, if it works on one: operations of one list follow each other in the given order, and never
    /// run at the same time.
    pub fn group(&self) -> Option<String> {
        match &self.subject {
            Subject::Child { kind, key: ChildKey::Index(_), .. } => {
                Some(format!("{} {}", self.section, kind.collection()))
            }
            _ => None,
        }
    }

    /// The same in the plan envelope.
    pub fn to_plan(&self) -> setpoint_plan::PlannedOperation {
        let section_name =
            || self.section.name.as_ref().map_or_else(|| self.section.to_string(), ToString::to_string);
        let (name, path) = match &self.subject {
            Subject::Section { .. } => (section_name(), Vec::new()),
            Subject::Child { key, .. } => {
                (key.to_string(), vec![self.section.kind.keyword().to_owned(), section_name()])
            }
            Subject::Text { .. } => (self.section.to_string(), Vec::new()),
            Subject::Configuration { .. } => ("configuration".to_owned(), Vec::new()),
        };
        setpoint_plan::PlannedOperation {
            path,
            detail: self.changes.clone(),
            group: self.group(),
            runtime: Some(self.runtime.clone()),
            ..setpoint_plan::PlannedOperation::new(self.action, self.kind(), name)
                .because(self.reason.clone())
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.action.sign())?;
        match &self.subject {
            Subject::Section { .. } => write!(f, "{}", self.section),
            Subject::Child { kind, key, .. } => write!(f, "{}: {kind} {key}", self.section),
            Subject::Text { .. } => write!(f, "text of {}", self.section),
            Subject::Configuration { .. } => f.write_str("text of the configuration"),
        }
    }
}
