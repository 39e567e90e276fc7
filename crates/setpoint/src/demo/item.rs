//! What the demo declares: directories and files, and the root that they stand on.
//!
//! ```text
//!  file/index (site/index.html) ──▶ directory/site ──▶ root/sandbox (external)
//! ```
//!
//! A directory is known by its path. A file is known by a name of its own, so that another path is a move
//! and not another file.

use setpoint_graph::{Attributes, Deps, Item, ItemRef, Kind, Name};

use super::sandbox::RelPath;

/// What everything stands on: the sandbox itself, which the demo does not manage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root;

impl Root {
    pub(crate) const KIND: Kind = Kind::from_static("root");
    pub(crate) const NAME: Name = Name::from_static("sandbox");

    /// What it is referred to by.
    pub(crate) fn reference() -> ItemRef {
        ItemRef::new(Self::KIND, Self::NAME)
    }
}

impl Item for Root {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn name(&self) -> Name {
        Self::NAME
    }

    fn external(&self) -> bool {
        true
    }
}

/// A directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    /// Where it is.
    pub(crate) path: RelPath,
}

impl Directory {
    pub(crate) const KIND: Kind = Kind::from_static("directory");
}

impl Item for Directory {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn name(&self) -> Name {
        Name::new(self.path.as_str())
    }

    fn dependencies(&self, deps: &mut Deps) {
        stands_in_its_parent(&self.path, deps);
    }
}

/// A file with its content, or a symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// What it is called, wherever it is.
    pub(crate) name: Name,
    /// Where it is.
    pub(crate) path: RelPath,
    /// What it holds.
    pub(crate) body: Body,
}

/// What a file holds. One sort does not turn into the other in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Text.
    Text(String),
    /// A symbolic link to this path, seen from the directory of the link.
    Link(String),
}

impl File {
    pub(crate) const KIND: Kind = Kind::from_static("file");
}

impl Item for File {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn name(&self) -> Name {
        self.name.clone()
    }

    fn label(&self) -> Option<String> {
        Some(self.path.to_string())
    }

    fn dependencies(&self, deps: &mut Deps) {
        stands_in_its_parent(&self.path, deps);
    }

    fn attributes(&self, attributes: &mut Attributes) {
        attributes.add("path", &self.path);
        match &self.body {
            Body::Text(text) => attributes.add("content", format_args!("{text:?}")),
            Body::Link(target) => attributes.add("link to", target),
        };
    }
}

/// Only one item can be at a path, and only in a directory that is there.
fn stands_in_its_parent(path: &RelPath, deps: &mut Deps) {
    let parent = match path.parent() {
        Some(parent) => ItemRef::new(Directory::KIND, parent),
        None => Root::reference(),
    };
    deps.requires(parent).because("it stands in it");
    deps.claims(format!("path {path}"));
}
