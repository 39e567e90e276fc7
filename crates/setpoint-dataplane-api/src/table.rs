//! The table of all that is served beside sections and what stands in them, which [`setpoint_haproxy::api`] has: each with the
//! versions that have it.
//!
//! Routes, models and text are driven by both: there is no handler for a single operation of a section or a child.

pub(crate) use setpoint_haproxy::api::{
    CHILDREN, Child, IN_LISTENS, Key, Parent, SECTIONS, Section, Shape, Since, section_of,
};
use setpoint_haproxy::model::Version;

const ALL: Since = (Version::V3_0, Version::V3_4);
const FROM_1: Since = (Version::V3_1, Version::V3_4);
const FROM_2: Since = (Version::V3_2, Version::V3_4);
const TO_3: Since = (Version::V3_0, Version::V3_3);

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
