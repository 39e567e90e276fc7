//! Regular files.

mod configurator;

use std::fmt;

use serde::{Deserialize, Serialize};
use setpoint_engine::OpError;
use setpoint_graph::{Attributes, Deps, Item, Kind, Name};

use super::{HostKind, Left, Nature, OnDisk};
use crate::configure::Accounts;
use crate::configure::entries::{self, Entries as _};
use crate::configure::kept::Original;
use crate::fs;
use crate::host::Host;
use crate::item::{Access, Content, Dependence, Need, RootPath, need};
use crate::manifest::{Build, Section, Type, field, fields};

pub use configurator::Files;

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

impl HostKind for File {
    const SECTION: Section = Section {
        key: "files",
        kind: Self::KIND_TEXT,
        about: "Regular files by name.",
        nature: Nature::Content,
        references: Dependence::After,
        required: &[],
        one_of: &["content", "source", "template", "template_source"],
        fields: &[
            fields::PATH,
            field("content", Type::Content, "What it holds, as it is; base64 with the tag `!!binary`."),
            field("source", Type::Text, "A file that it is a copy of, seen from the manifest."),
            field("template", Type::Text, "A template (Jinja) that gives what it holds."),
            field("template_source", Type::Text, "A file with the template, seen from the manifest."),
            field("values", Type::Values, "Values for the template, over those of the whole set."),
            field("sensitive", Type::Boolean, "Never shows what it holds."),
            fields::FILE_MODE,
            fields::OWNER,
            fields::GROUP,
            fields::AFTER,
            fields::PREVENT,
            fields::ADOPT,
        ],
        referable: &["name", "path", "sha256"],
    };

    type Configurator = Files;

    fn configurator(host: &Host) -> Self::Configurator {
        Files::new(host)
    }

    fn declare(build: &mut Build<'_, '_, '_>, path: Option<RootPath>) -> Option<Self> {
        let (content, access) = (build.content(), build.access());
        let (name, needs) = (build.name(), build.take_needs());
        let (sensitive, adopt) = (build.is_set("sensitive"), build.is_set("adopt"));
        Some(Self { name, path: path?, content: content?, sensitive, access, adopt, log: false, needs })
    }

    fn needs(&self) -> &[Need] {
        &self.needs
    }

    fn needs_mut(&mut self) -> &mut Vec<Need> {
        &mut self.needs
    }

    fn long_text(&self) -> Option<(&'static str, &str)> {
        self.content.text().map(|text| ("content", text))
    }

    fn on_disk(&self) -> Option<OnDisk<'_>> {
        let (path, kind, access) = (&self.path, fs::FileType::File, Some(&self.access));
        Some(OnDisk { path, kind, access, adopt: self.adopt })
    }

    fn is_as_it_was(&self, host: &Host) -> bool {
        let read = host.0.root.read(&self.path);
        read.is_ok_and(|read| read.is_some_and(|(_, content)| self.log || content == self.content))
    }

    fn keep_original(&self, host: &Host) -> Result<Option<String>, OpError> {
        entries::keep_original(&Files::new(host), self)
    }

    fn keep_left(host: &Host, left: &Left<'_, Self>) -> Result<(), OpError> {
        entries::keep_left(&Files::new(host), left)
    }

    fn restored(&self, original: &Original) -> Option<Self> {
        let Original::File { mode, uid, gid, .. } = original else { return None };
        let restored = Files::restored(original, &self.path).ok()?.filter(|_| !original.is_partial())?;
        let access = Accounts::default().of_managed(&self.access, *mode, *uid, *gid);
        Some(Self { content: restored.item.content, access, ..self.clone() })
    }
}
