//! Where the Dataplane API has each kind of section, and each kind of what stands in one.
//!
//! ```text
//! who serves the API ──▶ routes ─┐
//!                                ├──▶ one table, by version
//! who calls the API ───▶ paths ──┘
//! ```
//!
//! Paths are relative to `/v3/services/haproxy/configuration/`, with variables in braces as the specification writes them.

use std::sync::LazyLock;

use crate::model::{ObjectKind as Kind, Version};
use crate::text::SectionKind as Keyword;

/// From which version on, and up to which.
pub type Since = (Version, Version);

const ALL: Since = (Version::V3_0, Version::V3_4);
const FROM_1: Since = (Version::V3_1, Version::V3_4);
const FROM_2: Since = (Version::V3_2, Version::V3_4);
const FROM_4: Since = (Version::V3_4, Version::V3_4);
const TO_1: Since = (Version::V3_0, Version::V3_1);
const TO_3: Since = (Version::V3_0, Version::V3_3);

/// A kind of section.
#[derive(Debug)]
pub struct Section {
    /// The collection, below `configuration/`.
    pub path: &'static str,
    /// What the API calls it.
    pub kind: Kind,
    /// What HAProxy calls it.
    pub keyword: Keyword,
    /// The versions of the API that have it.
    pub since: Since,
    /// How it is called in messages.
    pub label: &'static str,
    /// Which operations there are.
    pub shape: Shape,
    /// The versions of the API that make one with all that stands in it (`full_section=true`); none where nothing stands in it.
    pub full: Option<Since>,
}

/// Which operations there are of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
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
pub enum Parent {
    /// In the path.
    Path,
    /// In a parameter of this name.
    Query(&'static str),
    /// It has no name.
    Unnamed,
}

/// How a child is named, and which operations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// By its name, in a place of the path that is called so.
    Name(&'static str),
    /// By its place in a list, which can be replaced as a whole.
    Index,
    /// By its place in a list that grows at its end.
    Appended,
}

/// Something that stands in a section.
#[derive(Debug)]
pub struct Child {
    /// The collection, below `configuration/`.
    pub path: &'static str,
    /// What it is.
    pub kind: Kind,
    /// The section it stands in.
    pub within: Kind,
    /// How that section is named.
    pub parent: Parent,
    /// How it is named itself.
    pub key: Key,
    /// The versions of the API that have it.
    pub since: Since,
}

const fn section(
    path: &'static str,
    kind: Kind,
    keyword: Keyword,
    since: Since,
    label: &'static str,
    shape: Shape,
) -> Section {
    Section { path, kind, keyword, since, label, shape, full: None }
}

impl Section {
    const fn full(self, since: Since) -> Self {
        Self { full: Some(since), ..self }
    }
}

/// The kinds of sections.
pub const SECTIONS: &[Section] = &[
    section("acme", Kind::Acme, Keyword::Acme, FROM_2, "acme", Shape::Usual),
    section("backends", Kind::Backend, Keyword::Backend, ALL, "backend", Shape::Usual).full(ALL),
    section("caches", Kind::Cache, Keyword::Cache, ALL, "cache", Shape::Usual),
    section("crt_stores", Kind::CrtStore, Keyword::CrtStore, ALL, "crt-store", Shape::Usual).full(FROM_2),
    section("defaults", Kind::Defaults, Keyword::Defaults, ALL, "defaults section", Shape::Usual).full(ALL),
    section("fcgi_apps", Kind::FcgiApp, Keyword::FcgiApp, ALL, "fcgi-app", Shape::Usual).full(ALL),
    section("frontends", Kind::Frontend, Keyword::Frontend, ALL, "frontend", Shape::Usual).full(ALL),
    section("global", Kind::Global, Keyword::Global, ALL, "global", Shape::One).full(ALL),
    section("healthchecks", Kind::Healthcheck, Keyword::Healthcheck, FROM_4, "healthcheck", Shape::Usual)
        .full(FROM_4),
    section("http_errors_sections", Kind::HttpErrors, Keyword::HttpErrors, ALL, "http-errors", Shape::Usual),
    // The original has none of these: it takes their lines for those of the section before.
    section("listens", Kind::Listen, Keyword::Listen, ALL, "listen", Shape::Usual).full(ALL),
    section("log_forwards", Kind::LogForward, Keyword::LogForward, ALL, "log-forward", Shape::Usual)
        .full(ALL),
    section("log_profiles", Kind::LogProfile, Keyword::LogProfile, FROM_1, "log-profile", Shape::Usual),
    section("mailers_section", Kind::Mailers, Keyword::Mailers, ALL, "mailers", Shape::Usual).full(ALL),
    section("peer_section", Kind::Peers, Keyword::Peers, ALL, "peers", Shape::NotReplaced).full(ALL),
    section("programs", Kind::Program, Keyword::Program, TO_3, "program", Shape::Usual),
    section("resolvers", Kind::Resolvers, Keyword::Resolvers, ALL, "resolvers", Shape::Usual).full(ALL),
    section("rings", Kind::Ring, Keyword::Ring, ALL, "ring", Shape::Usual).full(ALL),
    section("traces", Kind::Traces, Keyword::Traces, FROM_1, "traces", Shape::MayBe).full(FROM_2),
    section("userlists", Kind::Userlist, Keyword::Userlist, ALL, "userlist", Shape::NotReplaced).full(ALL),
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
pub const CHILDREN: &[Child] = &[
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
pub static IN_LISTENS: LazyLock<Vec<Child>> = LazyLock::new(|| {
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

/// Returns where sections of a kind are.
pub fn section_of(kind: Kind) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.kind == kind)
}

/// Returns where children of a kind are, in sections of a kind, in a version of the API.
///
/// ```
/// use setpoint_haproxy::api::child_of;
/// use setpoint_haproxy::model::{ObjectKind, Version};
///
/// let servers = child_of(ObjectKind::Server, ObjectKind::Backend, Version::V3_4).unwrap();
/// assert_eq!(servers.path, "backends/{parent_name}/servers");
/// assert!(child_of(ObjectKind::Acl, ObjectKind::Defaults, Version::V3_0).is_none());
/// ```
pub fn child_of(kind: Kind, within: Kind, api: Version) -> Option<&'static Child> {
    let children = CHILDREN.iter().chain(IN_LISTENS.iter());
    let mut fitting = children.filter(|child| child.kind == kind && child.within == within);
    fitting.find(|child| (child.since.0..=child.since.1).contains(&api))
}

/// Returns the name under which the API keeps a file: without folders, and without letters that mean something to anybody.
///
/// Maps get the ending `.map` besides, if they have another.
///
/// ```
/// use setpoint_haproxy::api::stored_name;
///
/// assert_eq!(stored_name("certs/www.example.test.pem").as_deref(), Some("www_example_test.pem"));
/// assert_eq!(stored_name(".."), None);
/// ```
pub fn stored_name(name: &str) -> Option<String> {
    let base = name.rsplit('/').next().unwrap_or_default();
    let (stem, ending) = match base.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem, Some(ending)),
        _ => (base, None),
    };
    let stem = replaced(stem);
    let name = match ending {
        Some(ending) => format!("{stem}.{}", replaced(ending)),
        None => stem,
    };
    let is_something = name.chars().any(|letter| letter.is_ascii_alphanumeric());
    is_something.then_some(name)
}

fn replaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut bad = false;
    for letter in text.chars() {
        let good = letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        if good {
            out.push(letter);
        } else if !bad {
            out.push('_');
        }
        bad = !good;
    }
    out
}
