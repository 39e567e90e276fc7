//! The table of what is served: sections, what stands in them, and all else, each with the versions that have it.
//!
//! Routes, models and text are driven by it: there is no handler for a single operation of a section or a child.

use std::sync::LazyLock;

use setpoint_haproxy::model::{ObjectKind as Kind, Version};
use setpoint_haproxy::text::SectionKind as Keyword;

/// From which version on, and up to which.
pub(crate) type Since = (Version, Version);

const ALL: Since = (Version::V3_0, Version::V3_4);
const FROM_1: Since = (Version::V3_1, Version::V3_4);
const FROM_2: Since = (Version::V3_2, Version::V3_4);
const FROM_4: Since = (Version::V3_4, Version::V3_4);
const TO_1: Since = (Version::V3_0, Version::V3_1);
const TO_3: Since = (Version::V3_0, Version::V3_3);

/// A kind of section.
#[derive(Debug)]
pub(crate) struct Section {
    /// The collection, below `configuration/`.
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
    pub(crate) keyword: Keyword,
    pub(crate) since: Since,
    /// How it is called in messages.
    pub(crate) label: &'static str,
    pub(crate) shape: Shape,
}

/// Which operations there are of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// List, create; get, replace, delete.
    Usual,
    /// The same without replace.
    NotReplaced,
    /// There is one: get, replace.
    One,
    /// There may be one: get, create, replace, delete.
    MayBe,
}

/// How the parent of a child is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// In the path.
    Path,
    /// In a parameter of this name.
    Query(&'static str),
    /// It has no name.
    Unnamed,
}

/// How a child is named, and which operations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// By its name, in a place of the path that is called so.
    Name(&'static str),
    /// By its place in a list, which can be replaced as a whole.
    Index,
    /// By its place in a list that grows at its end.
    Appended,
}

/// Something that stands in a section.
#[derive(Debug)]
pub(crate) struct Child {
    /// The collection, below `configuration/`.
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
    /// The section it stands in.
    pub(crate) within: Kind,
    pub(crate) parent: Parent,
    pub(crate) key: Key,
    pub(crate) since: Since,
}

const fn section(
    path: &'static str,
    kind: Kind,
    keyword: Keyword,
    since: Since,
    label: &'static str,
    shape: Shape,
) -> Section {
    Section { path, kind, keyword, since, label, shape }
}

/// The kinds of sections.
pub(crate) const SECTIONS: &[Section] = &[
    section("acme", Kind::Acme, Keyword::Acme, FROM_2, "acme", Shape::Usual),
    section("backends", Kind::Backend, Keyword::Backend, ALL, "backend", Shape::Usual),
    section("caches", Kind::Cache, Keyword::Cache, ALL, "cache", Shape::Usual),
    section("crt_stores", Kind::CrtStore, Keyword::CrtStore, ALL, "crt-store", Shape::Usual),
    section("defaults", Kind::Defaults, Keyword::Defaults, ALL, "defaults section", Shape::Usual),
    section("fcgi_apps", Kind::FcgiApp, Keyword::FcgiApp, ALL, "fcgi-app", Shape::Usual),
    section("frontends", Kind::Frontend, Keyword::Frontend, ALL, "frontend", Shape::Usual),
    section("global", Kind::Global, Keyword::Global, ALL, "global", Shape::One),
    section("healthchecks", Kind::Healthcheck, Keyword::Healthcheck, FROM_4, "healthcheck", Shape::Usual),
    section("http_errors_sections", Kind::HttpErrors, Keyword::HttpErrors, ALL, "http-errors", Shape::Usual),
    // The original has none of these: it takes their lines for those of the section before.
    section("listens", Kind::Listen, Keyword::Listen, ALL, "listen", Shape::Usual),
    section("log_forwards", Kind::LogForward, Keyword::LogForward, ALL, "log-forward", Shape::Usual),
    section("log_profiles", Kind::LogProfile, Keyword::LogProfile, FROM_1, "log-profile", Shape::Usual),
    section("mailers_section", Kind::Mailers, Keyword::Mailers, ALL, "mailers", Shape::Usual),
    section("peer_section", Kind::Peers, Keyword::Peers, ALL, "peers", Shape::NotReplaced),
    section("programs", Kind::Program, Keyword::Program, TO_3, "program", Shape::Usual),
    section("resolvers", Kind::Resolvers, Keyword::Resolvers, ALL, "resolvers", Shape::Usual),
    section("rings", Kind::Ring, Keyword::Ring, ALL, "ring", Shape::Usual),
    section("traces", Kind::Traces, Keyword::Traces, FROM_1, "traces", Shape::MayBe),
    section("userlists", Kind::Userlist, Keyword::Userlist, ALL, "userlist", Shape::NotReplaced),
];

/// Children of a list, below a section that is named in the path.
const fn listed(path: &'static str, kind: Kind, within: Kind, since: Since) -> Child {
    Child { path, kind, within, parent: Parent::Path, key: Key::Index, since }
}

/// Children with names, below a section that is named in the path.
const fn named(path: &'static str, kind: Kind, within: Kind, key: &'static str, since: Since) -> Child {
    Child { path, kind, within, parent: Parent::Path, key: Key::Name(key), since }
}

/// Children with names, of a section that is named in a parameter.
const fn asked(
    path: &'static str,
    kind: Kind,
    within: Kind,
    key: &'static str,
    parent: &'static str,
) -> Child {
    let since = match kind {
        Kind::CrtLoad => TO_1,
        _ => ALL,
    };
    Child { path, kind, within, parent: Parent::Query(parent), key: Key::Name(key), since }
}

/// What stands in sections.
pub(crate) const CHILDREN: &[Child] = &[
    listed("backends/{parent_name}/acls", Kind::Acl, Kind::Backend, ALL),
    listed("backends/{parent_name}/filters", Kind::Filter, Kind::Backend, ALL),
    listed(
        "backends/{parent_name}/http_after_response_rules",
        Kind::HttpAfterResponseRule,
        Kind::Backend,
        ALL,
    ),
    listed("backends/{parent_name}/http_checks", Kind::HttpCheck, Kind::Backend, ALL),
    listed("backends/{parent_name}/http_error_rules", Kind::HttpErrorRule, Kind::Backend, ALL),
    listed("backends/{parent_name}/http_request_rules", Kind::HttpRequestRule, Kind::Backend, ALL),
    listed("backends/{parent_name}/http_response_rules", Kind::HttpResponseRule, Kind::Backend, ALL),
    listed("backends/{parent_name}/log_targets", Kind::LogTarget, Kind::Backend, ALL),
    listed("backends/{parent_name}/server_switching_rules", Kind::ServerSwitchingRule, Kind::Backend, ALL),
    named("backends/{parent_name}/server_templates", Kind::ServerTemplate, Kind::Backend, "prefix", ALL),
    named("backends/{parent_name}/servers", Kind::Server, Kind::Backend, "name", ALL),
    listed("backends/{parent_name}/stick_rules", Kind::StickRule, Kind::Backend, ALL),
    listed("backends/{parent_name}/tcp_checks", Kind::TcpCheck, Kind::Backend, ALL),
    listed("backends/{parent_name}/tcp_request_rules", Kind::TcpRequestRule, Kind::Backend, ALL),
    listed("backends/{parent_name}/tcp_response_rules", Kind::TcpResponseRule, Kind::Backend, ALL),
    asked("crt_loads", Kind::CrtLoad, Kind::CrtStore, "certificate", "crt_store"),
    named("crt_stores/{crt_store}/crt_loads", Kind::CrtLoad, Kind::CrtStore, "certificate", FROM_2),
    listed("defaults/{parent_name}/acls", Kind::Acl, Kind::Defaults, FROM_2),
    listed(
        "defaults/{parent_name}/http_after_response_rules",
        Kind::HttpAfterResponseRule,
        Kind::Defaults,
        FROM_2,
    ),
    listed("defaults/{parent_name}/http_checks", Kind::HttpCheck, Kind::Defaults, ALL),
    listed("defaults/{parent_name}/http_error_rules", Kind::HttpErrorRule, Kind::Defaults, ALL),
    listed("defaults/{parent_name}/http_request_rules", Kind::HttpRequestRule, Kind::Defaults, FROM_2),
    listed("defaults/{parent_name}/http_response_rules", Kind::HttpResponseRule, Kind::Defaults, FROM_2),
    listed("defaults/{parent_name}/log_targets", Kind::LogTarget, Kind::Defaults, ALL),
    listed("defaults/{parent_name}/quic_initial_rules", Kind::QuicInitialRule, Kind::Defaults, FROM_1),
    listed("defaults/{parent_name}/tcp_checks", Kind::TcpCheck, Kind::Defaults, ALL),
    listed("defaults/{parent_name}/tcp_request_rules", Kind::TcpRequestRule, Kind::Defaults, FROM_2),
    listed("defaults/{parent_name}/tcp_response_rules", Kind::TcpResponseRule, Kind::Defaults, FROM_2),
    listed("fcgi_apps/{parent_name}/acls", Kind::Acl, Kind::FcgiApp, ALL),
    listed("frontends/{parent_name}/acls", Kind::Acl, Kind::Frontend, ALL),
    listed(
        "frontends/{parent_name}/backend_switching_rules",
        Kind::BackendSwitchingRule,
        Kind::Frontend,
        ALL,
    ),
    named("frontends/{parent_name}/binds", Kind::Bind, Kind::Frontend, "name", ALL),
    listed("frontends/{parent_name}/captures", Kind::Capture, Kind::Frontend, ALL),
    listed("frontends/{parent_name}/filters", Kind::Filter, Kind::Frontend, ALL),
    Child {
        path: "frontends/{parent_name}/force_be_switches",
        kind: Kind::ForceBeSwitch,
        within: Kind::Frontend,
        parent: Parent::Path,
        key: Key::Appended,
        since: FROM_4,
    },
    listed(
        "frontends/{parent_name}/http_after_response_rules",
        Kind::HttpAfterResponseRule,
        Kind::Frontend,
        ALL,
    ),
    listed("frontends/{parent_name}/http_error_rules", Kind::HttpErrorRule, Kind::Frontend, ALL),
    listed("frontends/{parent_name}/http_request_rules", Kind::HttpRequestRule, Kind::Frontend, ALL),
    listed("frontends/{parent_name}/http_response_rules", Kind::HttpResponseRule, Kind::Frontend, ALL),
    listed("frontends/{parent_name}/log_targets", Kind::LogTarget, Kind::Frontend, ALL),
    listed("frontends/{parent_name}/quic_initial_rules", Kind::QuicInitialRule, Kind::Frontend, FROM_1),
    Child {
        path: "frontends/{parent_name}/ssl_front_uses",
        kind: Kind::SslFrontUse,
        within: Kind::Frontend,
        parent: Parent::Path,
        key: Key::Appended,
        since: FROM_2,
    },
    listed("frontends/{parent_name}/tcp_request_rules", Kind::TcpRequestRule, Kind::Frontend, ALL),
    Child {
        path: "global/log_targets",
        kind: Kind::LogTarget,
        within: Kind::Global,
        parent: Parent::Unnamed,
        key: Key::Index,
        since: ALL,
    },
    asked("groups", Kind::Group, Kind::Userlist, "name", "userlist"),
    listed("healthchecks/{parent_name}/http_checks", Kind::HttpCheck, Kind::Healthcheck, FROM_4),
    listed("healthchecks/{parent_name}/tcp_checks", Kind::TcpCheck, Kind::Healthcheck, FROM_4),
    named("log_forwards/{parent_name}/binds", Kind::Bind, Kind::LogForward, "name", ALL),
    named("log_forwards/{parent_name}/dgram_binds", Kind::DgramBind, Kind::LogForward, "name", ALL),
    listed("log_forwards/{parent_name}/log_targets", Kind::LogTarget, Kind::LogForward, ALL),
    asked("mailer_entries", Kind::MailerEntry, Kind::Mailers, "name", "mailers_section"),
    asked("nameservers", Kind::Nameserver, Kind::Resolvers, "name", "resolver"),
    asked("peer_entries", Kind::PeerEntry, Kind::Peers, "name", "peer_section"),
    named("peers/{parent_name}/binds", Kind::Bind, Kind::Peers, "name", ALL),
    listed("peers/{parent_name}/log_targets", Kind::LogTarget, Kind::Peers, ALL),
    named("peers/{parent_name}/servers", Kind::Server, Kind::Peers, "name", ALL),
    named("peers/{parent_name}/tables", Kind::Table, Kind::Peers, "name", ALL),
    named("rings/{parent_name}/servers", Kind::Server, Kind::Ring, "name", ALL),
    asked("users", Kind::User, Kind::Userlist, "username", "userlist"),
];

/// What stands in a `listen` section: all that stands in a frontend or in a backend.
pub(crate) static IN_LISTENS: LazyLock<Vec<Child>> = LazyLock::new(|| {
    let mut children: Vec<Child> = Vec::new();
    for child in CHILDREN.iter().filter(|child| matches!(child.within, Kind::Frontend | Kind::Backend)) {
        let Some((_, rest)) = child.path.split_once('/') else { continue };
        if children.iter().all(|held| held.kind != child.kind) {
            // Once, and for as long as the process lives.
            let path: &'static str = Box::leak(format!("listens/{rest}").into_boxed_str());
            children.push(Child { path, within: Kind::Listen, ..*child });
        }
    }
    children
});

/// What an operation does that is not about a section or a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    Endpoints,
    Info,
    Health,
    Specification,
    SpecificationV3,
    ConfigurationVersion,
    RawGet,
    RawPush,
    DefaultsReplace,
    TraceEntryAdd,
    TraceEntryDelete,
    TransactionList,
    TransactionBegin,
    TransactionGet,
    TransactionCommit,
    TransactionDiscard,
    TransactionDiff,
    ReloadList,
    ReloadGet,
    ReloadOrder,
    Events,
    Storage(Stored, Verb),
    CrtListEntries(Verb),
    Stats,
    Runtime(Running, Verb),
    Cluster,
    NotServed(&'static str),
}

/// A kind of file that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Map,
    General,
    Certificate,
    CrtList,
}

/// Something that a running HAProxy holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    Info,
    Server,
    Map,
    MapEntry,
    Acl,
    AclEntry,
    StickTable,
    StickTableEntry,
    Certificate,
    CaFile,
    CaFileEntry,
    CrlFile,
    CrtList,
    CrtListEntry,
    Acme,
}

/// What is done to a collection or to one of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    List,
    Create,
    ReplaceAll,
    Get,
    CreateAt,
    Replace,
    Delete,
}

/// Methods and what they do.
pub(crate) type Methods = &'static [(&'static str, Other)];

const SPOE: Other = Other::NotServed("SPOE");
const SITES: Other = Other::NotServed("the collection of sites");
const DISCOVERY: Other = Other::NotServed("service discovery");
const CLUSTER: Other = Other::NotServed("cluster management");
const ENDPOINTS: Methods = &[("GET", Other::Endpoints)];

macro_rules! storage {
    ($kind:ident) => {
        (
            &[
                ("GET", Other::Storage(Stored::$kind, Verb::List)),
                ("POST", Other::Storage(Stored::$kind, Verb::Create)),
            ] as Methods,
            &[
                ("GET", Other::Storage(Stored::$kind, Verb::Get)),
                ("PUT", Other::Storage(Stored::$kind, Verb::Replace)),
                ("DELETE", Other::Storage(Stored::$kind, Verb::Delete)),
            ] as Methods,
        )
    };
}

macro_rules! running {
    ($kind:ident: $($method:literal $verb:ident),*) => {
        &[$(($method, Other::Runtime(Running::$kind, Verb::$verb)),)*] as Methods
    };
}

/// All else, by its path below `/v3/`.
pub(crate) const OTHERS: &[(&str, Since, Methods)] = &[
    ("", ALL, ENDPOINTS),
    ("info", ALL, &[("GET", Other::Info)]),
    ("health", ALL, &[("GET", Other::Health)]),
    ("specification", ALL, &[("GET", Other::Specification)]),
    ("specification_openapiv3", ALL, &[("GET", Other::SpecificationV3)]),
    ("cluster", TO_3, &[("GET", Other::Cluster), ("PUT", CLUSTER), ("POST", CLUSTER), ("DELETE", CLUSTER)]),
    ("cluster/certificate", TO_3, &[("POST", CLUSTER)]),
    ("service_discovery/aws", ALL, &[("GET", DISCOVERY), ("POST", DISCOVERY)]),
    ("service_discovery/aws/{id}", ALL, &[("GET", DISCOVERY), ("PUT", DISCOVERY), ("DELETE", DISCOVERY)]),
    ("service_discovery/consul", ALL, &[("GET", DISCOVERY), ("POST", DISCOVERY)]),
    ("service_discovery/consul/{id}", ALL, &[("GET", DISCOVERY), ("PUT", DISCOVERY), ("DELETE", DISCOVERY)]),
    ("services", ALL, ENDPOINTS),
    ("services/haproxy", ALL, ENDPOINTS),
    ("services/haproxy/configuration", ALL, ENDPOINTS),
    ("services/haproxy/configuration/version", ALL, &[("GET", Other::ConfigurationVersion)]),
    ("services/haproxy/configuration/raw", ALL, &[("GET", Other::RawGet), ("POST", Other::RawPush)]),
    (
        "services/haproxy/configuration/traces/entries",
        FROM_1,
        &[("POST", Other::TraceEntryAdd), ("DELETE", Other::TraceEntryDelete)],
    ),
    (
        "services/haproxy/transactions",
        ALL,
        &[("GET", Other::TransactionList), ("POST", Other::TransactionBegin)],
    ),
    (
        "services/haproxy/transactions/{id}",
        ALL,
        &[
            ("GET", Other::TransactionGet),
            ("PUT", Other::TransactionCommit),
            ("DELETE", Other::TransactionDiscard),
        ],
    ),
    ("services/haproxy/transactions/{id}/diff", ALL, &[("GET", Other::TransactionDiff)]),
    ("services/haproxy/reloads", ALL, &[("GET", Other::ReloadList), ("POST", Other::ReloadOrder)]),
    ("services/haproxy/reloads/{id}", ALL, &[("GET", Other::ReloadGet)]),
    ("services/haproxy/events", ALL, &[("GET", Other::Events)]),
    ("services/haproxy/storage", ALL, ENDPOINTS),
    ("services/haproxy/storage/maps", ALL, storage!(Map).0),
    ("services/haproxy/storage/maps/{name}", ALL, storage!(Map).1),
    ("services/haproxy/storage/general", ALL, storage!(General).0),
    ("services/haproxy/storage/general/{name}", ALL, storage!(General).1),
    ("services/haproxy/storage/ssl_certificates", ALL, storage!(Certificate).0),
    ("services/haproxy/storage/ssl_certificates/{name}", ALL, storage!(Certificate).1),
    ("services/haproxy/storage/ssl_crt_lists", FROM_2, storage!(CrtList).0),
    ("services/haproxy/storage/ssl_crt_lists/{name}", FROM_2, storage!(CrtList).1),
    (
        "services/haproxy/storage/ssl_crt_lists/{name}/entries",
        FROM_2,
        &[
            ("GET", Other::CrtListEntries(Verb::List)),
            ("POST", Other::CrtListEntries(Verb::Create)),
            ("DELETE", Other::CrtListEntries(Verb::Delete)),
        ],
    ),
    ("services/haproxy/stats", ALL, ENDPOINTS),
    ("services/haproxy/stats/native", ALL, &[("GET", Other::Stats)]),
    ("services/haproxy/runtime", ALL, ENDPOINTS),
    ("services/haproxy/runtime/info", ALL, running!(Info: "GET" Get)),
    ("services/haproxy/runtime/acls", ALL, running!(Acl: "GET" List)),
    ("services/haproxy/runtime/acls/{id}", ALL, running!(Acl: "GET" Get)),
    (
        "services/haproxy/runtime/acls/{parent_name}/entries",
        ALL,
        running!(AclEntry: "GET" List, "PUT" ReplaceAll, "POST" Create),
    ),
    (
        "services/haproxy/runtime/acls/{parent_name}/entries/{id}",
        ALL,
        running!(AclEntry: "GET" Get, "DELETE" Delete),
    ),
    ("services/haproxy/runtime/acme", FROM_2, running!(Acme: "GET" List, "PUT" Replace)),
    (
        "services/haproxy/runtime/backends/{parent_name}/servers",
        ALL,
        running!(Server: "GET" List, "POST" Create),
    ),
    (
        "services/haproxy/runtime/backends/{parent_name}/servers/{name}",
        ALL,
        running!(Server: "GET" Get, "PUT" Replace, "DELETE" Delete),
    ),
    ("services/haproxy/runtime/maps", ALL, running!(Map: "GET" List)),
    ("services/haproxy/runtime/maps/{name}", ALL, running!(Map: "GET" Get, "PUT" Replace, "DELETE" Delete)),
    (
        "services/haproxy/runtime/maps/{parent_name}/entries",
        ALL,
        running!(MapEntry: "GET" List, "POST" Create),
    ),
    (
        "services/haproxy/runtime/maps/{parent_name}/entries/{id}",
        ALL,
        running!(MapEntry: "GET" Get, "PUT" Replace, "DELETE" Delete),
    ),
    ("services/haproxy/runtime/ssl_ca_files", FROM_2, running!(CaFile: "GET" List, "POST" Create)),
    (
        "services/haproxy/runtime/ssl_ca_files/{name}",
        FROM_2,
        running!(CaFile: "GET" Get, "PUT" Replace, "DELETE" Delete),
    ),
    ("services/haproxy/runtime/ssl_ca_files/{name}/entries", FROM_2, running!(CaFileEntry: "POST" Create)),
    (
        "services/haproxy/runtime/ssl_ca_files/{name}/entries/{index}",
        FROM_2,
        running!(CaFileEntry: "GET" Get),
    ),
    ("services/haproxy/runtime/ssl_certs", FROM_2, running!(Certificate: "GET" List, "POST" Create)),
    (
        "services/haproxy/runtime/ssl_certs/{name}",
        FROM_2,
        running!(Certificate: "GET" Get, "PUT" Replace, "DELETE" Delete),
    ),
    ("services/haproxy/runtime/ssl_crl_files", FROM_2, running!(CrlFile: "GET" List, "POST" Create)),
    (
        "services/haproxy/runtime/ssl_crl_files/{name}",
        FROM_2,
        running!(CrlFile: "GET" Get, "PUT" Replace, "DELETE" Delete),
    ),
    ("services/haproxy/runtime/ssl_crt_lists", FROM_2, running!(CrtList: "GET" List)),
    (
        "services/haproxy/runtime/ssl_crt_lists/entries",
        FROM_2,
        running!(CrtListEntry: "GET" List, "POST" Create, "DELETE" Delete),
    ),
    ("services/haproxy/runtime/stick_tables", ALL, running!(StickTable: "GET" List)),
    ("services/haproxy/runtime/stick_tables/{name}", ALL, running!(StickTable: "GET" Get)),
    (
        "services/haproxy/runtime/stick_tables/{parent_name}/entries",
        ALL,
        running!(StickTableEntry: "GET" List, "POST" Create),
    ),
    ("services/haproxy/sites", ALL, &[("GET", SITES), ("POST", SITES)]),
    ("services/haproxy/sites/{name}", ALL, &[("GET", SITES), ("PUT", SITES), ("DELETE", SITES)]),
    ("services/haproxy/spoe", ALL, &[("GET", SPOE)]),
    ("services/haproxy/spoe/spoe_files", ALL, &[("GET", SPOE), ("POST", SPOE)]),
    ("services/haproxy/spoe/spoe_files/{name}", ALL, &[("GET", SPOE), ("DELETE", SPOE)]),
    ("services/haproxy/spoe/spoe_files/{parent_name}/scopes", ALL, &[("GET", SPOE), ("POST", SPOE)]),
    ("services/haproxy/spoe/spoe_files/{parent_name}/scopes/{name}", ALL, &[("GET", SPOE), ("DELETE", SPOE)]),
    (
        "services/haproxy/spoe/spoe_files/{parent_name}/scopes/{scope_name}/agents",
        ALL,
        &[("GET", SPOE), ("POST", SPOE)],
    ),
    (
        "services/haproxy/spoe/spoe_files/{parent_name}/scopes/{scope_name}/agents/{name}",
        ALL,
        &[("GET", SPOE), ("PUT", SPOE), ("DELETE", SPOE)],
    ),
    (
        "services/haproxy/spoe/spoe_files/{parent_name}/scopes/{scope_name}/groups",
        ALL,
        &[("GET", SPOE), ("POST", SPOE)],
    ),
    (
        "services/haproxy/spoe/spoe_files/{parent_name}/scopes/{scope_name}/groups/{name}",
        ALL,
        &[("GET", SPOE), ("PUT", SPOE), ("DELETE", SPOE)],
    ),
    (
        "services/haproxy/spoe/spoe_files/{parent_name}/scopes/{scope_name}/messages",
        ALL,
        &[("GET", SPOE), ("POST", SPOE)],
    ),
    (
        "services/haproxy/spoe/spoe_files/{parent_name}/scopes/{scope_name}/messages/{name}",
        ALL,
        &[("GET", SPOE), ("PUT", SPOE), ("DELETE", SPOE)],
    ),
    ("services/haproxy/spoe/spoe_files/{parent_name}/transactions", ALL, &[("GET", SPOE), ("POST", SPOE)]),
    (
        "services/haproxy/spoe/spoe_files/{parent_name}/transactions/{id}",
        ALL,
        &[("GET", SPOE), ("PUT", SPOE), ("DELETE", SPOE)],
    ),
    ("services/haproxy/spoe/{parent_name}/version", ALL, &[("GET", SPOE)]),
];

/// The section that a child stands in.
pub(crate) fn section_of(kind: Kind) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.kind == kind)
}
