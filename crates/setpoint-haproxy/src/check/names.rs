//! The names that a configuration gives.

use std::collections::BTreeSet;

use crate::text::{Document, Section, SectionKind, Word};

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
    /// Whether HAProxy only warns of, or passes over, such a name that is not given.
    pub(super) fn is_tolerated(self) -> bool {
        matches!(self, Self::Ring | Self::Mailers | Self::LogProfile)
    }

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
            SectionKind::Backend | SectionKind::Listen => &[Self::Backend, Self::Table],
            SectionKind::Frontend => &[Self::Table],
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

/// The names that a whole document gives.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: BTreeSet<(Name, String)>,
    /// Servers, as `backend/server`.
    servers: BTreeSet<String>,
    /// Whether some name is made of a variable: then any name may be given.
    open: bool,
}

impl Names {
    pub(super) fn of(document: &Document) -> Self {
        let mut names = Self::default();
        for section in document.sections() {
            let name = section.name().map(|name| String::from_utf8_lossy(&name).into_owned());
            names.open |= section.header().is_some_and(|header| header.words().any(|word| word.variable));
            for kind in Name::of(section.kind()) {
                names.given.extend(name.clone().map(|name| (*kind, name)));
            }
            if let (SectionKind::Peers, Some(name)) = (section.kind(), &name) {
                let tables =
                    second_words(section, "table").map(|table| (Name::Table, format!("{name}/{table}")));
                names.given.extend(tables);
            }
            if let Some(name) = name.filter(|_| section.kind().is_proxy()) {
                names
                    .servers
                    .extend(second_words(section, "server").map(|server| format!("{name}/{server}")));
            }
        }
        // HAProxy makes one by itself from /etc/resolv.conf.
        names.given.insert((Name::Resolvers, "default".to_owned()));
        names
    }

    pub(super) fn has(&self, kind: Name, name: &str) -> bool {
        self.open || self.given.contains(&(kind, name.to_owned()))
    }

    pub(super) fn has_server(&self, path: &str) -> bool {
        self.open || self.servers.contains(path)
    }

    /// All names of a kind.
    pub(super) fn all(&self, kind: Name) -> impl Iterator<Item = &str> {
        self.given.iter().filter(move |(held, _)| *held == kind).map(|(_, name)| name.as_str())
    }
}

fn second_words<'s>(section: &'s Section, keyword: &'static str) -> impl Iterator<Item = String> + 's {
    section.lines().filter_map(move |line| {
        let mut words = line.words();
        let first: Word<'_> = words.next()?;
        first.is(keyword).then(|| words.next().map(|word| word.to_str_lossy().into_owned())).flatten()
    })
}
