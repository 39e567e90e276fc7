//! Regular files.

use std::fmt;

use serde::{Deserialize, Serialize};
use setpoint_graph::{Attributes, Deps, Item, Kind, Name};

use super::{Access, Content, Need, RootPath, need};

/// A regular file with its content.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// What it is called, wherever it is.
    pub name: Name,
    /// Where it is.
    pub path: RootPath,
    /// What it holds.
    pub content: Content,
    /// Whether its content must not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// Who may do what with it.
    #[serde(default, skip_serializing_if = "Access::is_unmanaged")]
    pub access: Access,
    /// Whether one that is already there is taken over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
    /// Whether it is the log of a process, which nobody declared as a file: what it holds is not Setpoint's business, and
    /// one that is already there stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log: bool,
    /// What it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
}

impl File {
    /// The kind of all files.
    pub(crate) const KIND_TEXT: &'static str = "file";
}

impl fmt::Debug for File {
    /// Never shows content that is sensitive.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("File");
        debug.field("name", &self.name).field("path", &self.path);
        if self.sensitive {
            debug.field("content", &format_args!("(sensitive)"));
        } else {
            debug.field("content", &self.content);
        }
        debug.field("access", &self.access).field("needs", &self.needs).finish_non_exhaustive()
    }
}

impl Item for File {
    const KIND: Kind = Kind::from_static(Self::KIND_TEXT);

    fn name(&self) -> Name {
        self.name.clone()
    }

    fn label(&self) -> Option<String> {
        Some(self.path.to_string())
    }

    fn dependencies(&self, deps: &mut Deps) {
        need::derive(&self.needs, deps);
        deps.claims(format!("path {}", self.path));
    }

    fn attributes(&self, attributes: &mut Attributes) {
        attributes.add("path", &self.path);
        if self.log {
            attributes.add("log", true);
        } else if self.sensitive {
            attributes.add_sensitive("content", self.content.line());
            attributes.add("sensitive", true);
        } else {
            attributes.add("content", self.content.line());
        }
        self.access.attributes(attributes);
        if self.adopt {
            attributes.add("adopt", true);
        }
    }
}
