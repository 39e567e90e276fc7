//! The names that a configuration gives.

use rustc_hash::{FxHashMap, FxHashSet};

use super::configuration::{Configuration, Part};
use crate::text::SectionKind;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Name {
    Defaults,
    Backend,
    Userlist,
    Peers,
    Mailers,
    Resolvers,
    Cache,
    Ring,
    HttpErrors,
    FcgiApp,
    LogProfile,
    /// What holds a stick table: a proxy, or `peers/table`.
    Table,
}

impl Name {
    /// What it is called in a message.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Defaults => "defaults section",
            Self::Backend => "backend",
            Self::Userlist => "userlist",
            Self::Peers => "peers section",
            Self::Mailers => "mailers section",
            Self::Resolvers => "resolvers section",
            Self::Cache => "cache",
            Self::Ring => "ring",
            Self::HttpErrors => "http-errors section",
            Self::FcgiApp => "fcgi-app",
            Self::LogProfile => "log-profile",
            Self::Table => "stick table",
        }
    }

    /// What a section of a kind gives names to.
    fn of(kind: SectionKind) -> &'static [Self] {
        match kind {
            SectionKind::Defaults => &[Self::Defaults],
            SectionKind::Backend | SectionKind::Listen => &[Self::Backend],
            SectionKind::Userlist => &[Self::Userlist],
            SectionKind::Peers => &[Self::Peers],
            SectionKind::Mailers => &[Self::Mailers],
            SectionKind::Resolvers => &[Self::Resolvers],
            SectionKind::Cache => &[Self::Cache],
            SectionKind::Ring => &[Self::Ring],
            SectionKind::HttpErrors => &[Self::HttpErrors],
            SectionKind::FcgiApp => &[Self::FcgiApp],
            SectionKind::LogProfile => &[Self::LogProfile],
            _ => &[],
        }
    }
}

/// The names that a whole configuration gives.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: FxHashMap<Name, FxHashSet<String>>,
    /// Servers, as `backend/server`.
    servers: FxHashSet<String>,
    /// Proxies whose servers have names that are written nowhere.
    templated: FxHashSet<String>,
    /// Whether some name is made of a variable: then any name may be given.
    open: bool,
}

impl Names {
    pub(super) fn of(configuration: &Configuration<'_>) -> Self {
        let mut names = Self::default();
        for part in &configuration.parts {
            names.add(part);
        }
        // HAProxy makes one by itself from /etc/resolv.conf.
        names.given.entry(Name::Resolvers).or_default().insert("default".to_owned());
        names
    }

    fn add(&mut self, part: &Part<'_>) {
        self.open |= part.header.as_ref().is_some_and(super::configuration::CheckedLine::is_open);
        let Some(name) = part.name() else { return };
        for kind in Name::of(part.kind) {
            self.given.entry(*kind).or_default().insert(name.clone().into_owned());
        }
        if !(part.kind.is_proxy() || part.kind == SectionKind::Peers) {
            return;
        }
        for line in &part.lines {
            let (Some(keyword), Some(second)) = (line.words.first(), line.words.get(1)) else { continue };
            let path = || format!("{name}/{}", second.to_str_lossy());
            if keyword.is("server") {
                if second.variable {
                    self.templated.insert(name.clone().into_owned());
                }
                self.servers.insert(path());
            } else if keyword.is("server-template") {
                self.templated.insert(name.clone().into_owned());
            } else if keyword.is("table") && part.kind == SectionKind::Peers {
                self.given.entry(Name::Table).or_default().insert(path());
            } else if keyword.is("stick-table") {
                self.given.entry(Name::Table).or_default().insert(name.clone().into_owned());
            }
        }
    }

    pub(super) fn has(&self, kind: Name, name: &str) -> bool {
        self.open || self.given.get(&kind).is_some_and(|names| names.contains(name))
    }

    /// Whether a server is there, as `backend/server`; one of a template may be.
    pub(super) fn has_server(&self, path: &str) -> bool {
        let proxy = path.split_once('/').map_or(path, |(proxy, _)| proxy);
        self.open || self.servers.contains(path) || self.templated.contains(proxy)
    }

    /// All names of a kind.
    pub(super) fn all(&self, kind: Name) -> impl Iterator<Item = &str> {
        self.given.get(&kind).into_iter().flatten().map(String::as_str)
    }
}
