//! Directories.

mod configurator;

use serde::{Deserialize, Serialize};
use setpoint_engine::OpError;
use setpoint_graph::{Attributes, Deps, Item, Kind, Name};

use super::{HostKind, Nature, OnDisk};
use crate::configure::Accounts;
use crate::configure::kept::Original;
use crate::fs;
use crate::host::Host;
use crate::item::{Access, Dependence, Need, RootPath, need};
use crate::manifest::{Build, Section, fields};

pub use configurator::Directories;

/// A directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// What it is called, wherever it is.
    pub name: Name,
    /// Where it is.
    pub path: RootPath,
    /// Who may do what with it.
    #[serde(default, skip_serializing_if = "Access::is_unmanaged")]
    pub access: Access,
    /// Whether one that is already there is taken over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
    /// Whether nobody declared it: it is made for what is declared inside of it, and goes with that if nothing else is in
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
    /// What it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
}

impl Directory {
    /// The kind of all directories.
    pub(crate) const KIND_TEXT: &'static str = "directory";
}

impl Item for Directory {
    const KIND: Kind = Kind::from_static(Self::KIND_TEXT);

    fn name(&self) -> Name {
        self.name.clone()
    }

    fn label(&self) -> Option<String> {
        Some(format!("{}/", self.path))
    }

    fn dependencies(&self, deps: &mut Deps) {
        need::derive(&self.needs, deps);
        deps.claims(format!("path {}", self.path));
    }

    fn attributes(&self, attributes: &mut Attributes) {
        attributes.add("path", &self.path);
        self.access.attributes(attributes);
        if self.adopt {
            attributes.add("adopt", true);
        }
        if self.implicit {
            attributes.add("implicit", true);
        }
    }
}

impl HostKind for Directory {
    const SECTION: Section = Section {
        key: "directories",
        kind: Self::KIND_TEXT,
        about: "Directories by name.",
        nature: Nature::Container,
        references: Dependence::After,
        required: &[],
        one_of: &[],
        fields: &[
            fields::PATH,
            fields::MODE,
            fields::OWNER,
            fields::GROUP,
            fields::AFTER,
            fields::PREVENT,
            fields::ADOPT,
        ],
        referable: &["name", "path"],
    };

    type Configurator = Directories;

    fn configurator(host: &Host) -> Self::Configurator {
        Directories::new(host)
    }

    fn declare(build: &mut Build<'_, '_, '_>, path: Option<RootPath>) -> Option<Self> {
        let (access, needs) = (build.access(), build.take_needs());
        let (name, adopt) = (build.name(), build.is_set("adopt"));
        Some(Self { name, path: path?, access, adopt, implicit: false, needs })
    }

    fn needs(&self) -> &[Need] {
        &self.needs
    }

    fn needs_mut(&mut self) -> &mut Vec<Need> {
        &mut self.needs
    }

    fn on_disk(&self) -> Option<OnDisk<'_>> {
        let (path, kind, access) = (&self.path, fs::FileType::Directory, Some(&self.access));
        Some(OnDisk { path, kind, access, adopt: self.adopt })
    }

    fn keep_original(&self, host: &Host) -> Result<Option<String>, OpError> {
        Directories::new(host).keep_original(&self.path)
    }

    fn restored(&self, original: &Original) -> Option<Self> {
        let Original::Directory { mode, uid, gid, .. } = original else { return None };
        let access = Accounts::default().of_managed(&self.access, *mode, *uid, *gid);
        Some(Self { access, ..self.clone() })
    }
}
