//! Symbolic links.

mod configurator;

use serde::{Deserialize, Serialize};
use setpoint_engine::OpError;
use setpoint_graph::{Attributes, Deps, Item, Kind, Name};

use super::{HostKind, Left, Nature, OnDisk};
use crate::configure::entries;
use crate::configure::kept::Original;
use crate::fs;
use crate::host::Host;
use crate::item::{Because, Dependence, Need, RootPath, need};
use crate::manifest::{Build, Section, Type, field, fields};

pub use configurator::Symlinks;

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

impl HostKind for Symlink {
    const SECTION: Section = Section {
        key: "symlinks",
        kind: Self::KIND_TEXT,
        about: "Symbolic links by name.",
        nature: Nature::Link,
        references: Dependence::After,
        required: &["target"],
        one_of: &[],
        fields: &[
            fields::PATH,
            field("target", Type::Text, "What it points to, as it is written into the link."),
            fields::AFTER,
            fields::PREVENT,
            fields::ADOPT,
        ],
        referable: &["name", "path", "target"],
    };

    type Configurator = Symlinks;

    fn configurator(host: &Host) -> Self::Configurator {
        Symlinks::new(host)
    }

    fn declare(build: &mut Build<'_, '_, '_>, path: Option<RootPath>) -> Option<Self> {
        let (path, target) = (path?, build.text("target")?);
        if target.is_empty() {
            build.report("target", "a link points to something", None);
            return None;
        }
        let from_link = match path.parent() {
            Some(parent) if !target.starts_with('/') => format!("{parent}/{target}"),
            _ => target.clone(),
        };
        if let Ok(to) = RootPath::below(build.root(), &from_link) {
            build.needs_at(&to, Because::Target);
        }
        Some(Self {
            name: build.name(),
            path,
            target,
            adopt: build.is_set("adopt"),
            needs: build.take_needs(),
        })
    }

    fn needs(&self) -> &[Need] {
        &self.needs
    }

    fn needs_mut(&mut self) -> &mut Vec<Need> {
        &mut self.needs
    }

    fn on_disk(&self) -> Option<OnDisk<'_>> {
        let (path, kind, access) = (&self.path, fs::FileType::Symlink, None);
        Some(OnDisk { path, kind, access, adopt: self.adopt })
    }

    fn is_as_it_was(&self, host: &Host) -> bool {
        host.0.root.read_link(&self.path).is_ok_and(|target| target.as_ref() == Some(&self.target))
    }

    fn keep_original(&self, host: &Host) -> Result<Option<String>, OpError> {
        entries::keep_original(&Symlinks::new(host), self)
    }

    fn keep_left(host: &Host, left: &Left<'_, Self>) -> Result<(), OpError> {
        entries::keep_left(&Symlinks::new(host), left)
    }

    fn restored(&self, original: &Original) -> Option<Self> {
        let Original::Link { target, .. } = original else { return None };
        Some(Self { target: target.clone(), ..self.clone() })
    }
}
