//! Symbolic links.

use serde::{Deserialize, Serialize};
use setpoint_graph::{Attributes, Deps, Item, Kind, Name};

use super::{Need, RootPath, need};

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symlink {
    /// What it is called, wherever it is.
    pub name: Name,
    /// Where it is.
    pub path: RootPath,
    /// What it points to, as it is written into the link.
    pub target: String,
    /// Whether one that is already there is taken over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
    /// What it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
}

impl Symlink {
    /// The kind of all symbolic links.
    pub(crate) const KIND_TEXT: &'static str = "symlink";
}

impl Item for Symlink {
    const KIND: Kind = Kind::from_static(Self::KIND_TEXT);

    fn name(&self) -> Name {
        self.name.clone()
    }

    fn label(&self) -> Option<String> {
        Some(format!("{} -> {}", self.path, self.target))
    }

    fn dependencies(&self, deps: &mut Deps) {
        need::derive(&self.needs, deps);
        deps.claims(format!("path {}", self.path));
    }

    fn attributes(&self, attributes: &mut Attributes) {
        attributes.add("path", &self.path).add("target", &self.target);
        if self.adopt {
            attributes.add("adopt", true);
        }
    }
}
