//! What lines give names to and refer to: `name=` and `ref=` of rows.

use crate::model::Field;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Name {
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
    Acme,
    Healthcheck,
    /// What holds a stick table: a proxy, or `peers/table`.
    Table,
    /// A server, as `backend/server` or within its own section.
    Server,
    /// Servers whose names are written nowhere, by what they begin with.
    ServerTemplate,
    /// A name server, within its section.
    Nameserver,
    /// A user, within its section.
    User,
    /// A group of users, within its section.
    Group,
    /// An ACL, within its section.
    Acl,
    /// A filter that limits bandwidth, within its section.
    BandwidthLimit,
    /// An SPOE engine, within its section.
    Engine,
}

/// The names, as rows call them and as messages do.
const NAMES: [(Name, &str, &str); 22] = [
    (Name::Defaults, "defaults", "defaults section"),
    (Name::Backend, "backend", "backend"),
    (Name::Userlist, "userlist", "userlist"),
    (Name::Peers, "peers", "peers section"),
    (Name::Mailers, "mailers", "mailers section"),
    (Name::Resolvers, "resolvers", "resolvers section"),
    (Name::Cache, "cache", "cache"),
    (Name::Ring, "ring", "ring"),
    (Name::HttpErrors, "http-errors", "http-errors section"),
    (Name::FcgiApp, "fcgi-app", "fcgi-app"),
    (Name::LogProfile, "log-profile", "log-profile"),
    (Name::Acme, "acme", "acme section"),
    (Name::Healthcheck, "healthcheck", "healthcheck section"),
    (Name::Table, "table", "stick table"),
    (Name::Server, "server", "server"),
    (Name::ServerTemplate, "server-template", "server"),
    (Name::Nameserver, "nameserver", "name server"),
    (Name::User, "user", "user"),
    (Name::Group, "group", "group of this userlist"),
    (Name::Acl, "acl", "ACL"),
    (Name::BandwidthLimit, "bandwidth-limit", "bandwidth limit of this section"),
    (Name::Engine, "spoe-engine", "SPOE engine of this section"),
];

impl Name {
    /// Finds what rows call by a name.
    pub(crate) fn by_keyword(keyword: &str) -> Option<Self> {
        NAMES.iter().find(|row| row.1 == keyword).map(|row| row.0)
    }

    /// Returns what it is called in a message.
    pub(crate) fn noun(self) -> &'static str {
        NAMES.iter().find(|row| row.0 == self).map_or("", |row| row.2)
    }

    /// Returns whether it holds within the section that gives it only.
    pub(crate) fn is_local(self) -> bool {
        matches!(
            self,
            Self::Nameserver | Self::User | Self::Group | Self::Acl | Self::BandwidthLimit | Self::Engine
        )
    }
}

/// A value that refers to something by its name: `ref=backend`, `ref=path:backend`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    pub(crate) field: Field,
    pub(crate) name: Name,
    /// `ref=ring?`: HAProxy accepts a configuration in which nothing has the name.
    pub(crate) may_dangle: bool,
}

/// A value that gives a name to something: `name=server`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naming {
    /// The value; none where the section's own name is given, `name=@:table`.
    pub(crate) field: Option<Field>,
    pub(crate) name: Name,
}
