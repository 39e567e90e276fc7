//! The kinds of objects: sections, and what stands in them.

use std::fmt;

use super::Version;

/// How the objects of one kind stand together in their section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// There is one such object in its section: the section itself.
    Section,
    /// Order matters, and names, where there are any, may repeat: rules, ACLs, filters.
    Listed,
    /// Each has a name of its own in its section, and order does not matter: servers, binds, users.
    Named,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $model:literal $list:literal $order:ident $key:literal;)*) => {
        /// Names a kind of object, as the schemas of the Dataplane API do.
        ///
        /// ```
        /// use setpoint_haproxy::model::{ObjectKind, Order};
        ///
        /// assert_eq!(ObjectKind::Server.model(), "server");
        /// assert_eq!(ObjectKind::Server.collection(), "servers");
        /// assert_eq!(ObjectKind::HttpRequestRule.order(), Order::Listed);
        /// assert_eq!(ObjectKind::by_model("acl"), Some(ObjectKind::Acl));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ObjectKind {
            $($(#[$doc])* $variant,)*
        }

        impl ObjectKind {
            /// Lists all kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name of its schema, such as `http_request_rule`.
            pub const fn model(self) -> &'static str {
                match self { $(Self::$variant => $model,)* }
            }

            /// Returns the property of a full section that holds objects of this kind, such as `http_request_rule_list`;
            /// for a section, the collection of such sections.
            pub const fn collection(self) -> &'static str {
                match self { $(Self::$variant => $list,)* }
            }

            /// Returns how objects of this kind stand together in their section.
            pub const fn order(self) -> Order {
                match self { $(Self::$variant => Order::$order,)* }
            }

            /// Returns the path of the field that names an object of this kind, if one does.
            pub const fn name_path(self) -> Option<&'static str> {
                match self { $(Self::$variant => if $key.is_empty() { None } else { Some($key) },)* }
            }
        }
    };
}

kinds! {
    /// The `global` section.
    Global "global" "global" Section "";
    /// A `defaults` section.
    Defaults "defaults" "defaults" Section "name";
    /// A `frontend` section.
    Frontend "frontend" "frontends" Section "name";
    /// A `backend` section.
    Backend "backend" "backends" Section "name";
    /// A `listen` section: a frontend and a backend in one, which the API has no schema for.
    Listen "listen" "listens" Section "name";
    /// A `userlist` section.
    Userlist "userlist" "userlists" Section "name";
    /// A `peers` section.
    Peers "peer_section" "peer_section" Section "name";
    /// A `mailers` section.
    Mailers "mailers_section" "mailers_section" Section "name";
    /// A `resolvers` section.
    Resolvers "resolver" "resolvers" Section "name";
    /// A `cache` section.
    Cache "cache" "caches" Section "name";
    /// A `ring` section.
    Ring "ring" "rings" Section "name";
    /// The `traces` section.
    Traces "traces" "traces" Section "";
    /// A `log-forward` section.
    LogForward "log_forward" "log_forwards" Section "name";
    /// A `log-profile` section.
    LogProfile "log_profile" "log_profiles" Section "name";
    /// An `http-errors` section.
    HttpErrors "http_errors_section" "http_errors_sections" Section "name";
    /// A `healthcheck` section.
    Healthcheck "healthcheck" "healthchecks" Section "name";
    /// An `acme` section.
    Acme "acme_provider" "acme" Section "name";
    /// A `crt-store` section.
    CrtStore "crt_store" "crt_stores" Section "name";
    /// An `fcgi-app` section.
    FcgiApp "fcgi_app" "fcgi_apps" Section "name";
    /// A `program` section.
    Program "program" "programs" Section "name";

    /// A `bind` line.
    Bind "bind" "binds" Named "name";
    /// A `dgram-bind` line.
    DgramBind "dgram_bind" "dgram_binds" Named "name";
    /// A `server` line.
    Server "server" "servers" Named "name";
    /// A `server-template` line.
    ServerTemplate "server_template" "server_templates" Named "prefix";
    /// An `acl` line.
    Acl "acl" "acl_list" Listed "acl_name";
    /// A `use_backend` line.
    BackendSwitchingRule "backend_switching_rule" "backend_switching_rule_list" Listed "";
    /// A `use-server` line.
    ServerSwitchingRule "server_switching_rule" "server_switching_rule_list" Listed "";
    /// A `force-be-switch` line.
    ForceBeSwitch "force_be_switch" "force_be_switch_list" Listed "";
    /// A `declare capture` line.
    Capture "capture" "capture_list" Listed "";
    /// A `filter` line.
    Filter "filter" "filter_list" Listed "";
    /// A `filter-sequence` line.
    FilterSequence "filter_sequence" "filter_sequence_list" Listed "";
    /// An `http-request` line.
    HttpRequestRule "http_request_rule" "http_request_rule_list" Listed "";
    /// An `http-response` line.
    HttpResponseRule "http_response_rule" "http_response_rule_list" Listed "";
    /// An `http-after-response` line.
    HttpAfterResponseRule "http_after_response_rule" "http_after_response_rule_list" Listed "";
    /// An `http-error` line.
    HttpErrorRule "http_error_rule" "http_error_rule_list" Listed "";
    /// An `http-check` line.
    HttpCheck "http_check" "http_check_list" Listed "";
    /// A `tcp-check` line.
    TcpCheck "tcp_check" "tcp_check_rule_list" Listed "";
    /// A `tcp-request` line.
    TcpRequestRule "tcp_request_rule" "tcp_request_rule_list" Listed "";
    /// A `tcp-response` line.
    TcpResponseRule "tcp_response_rule" "tcp_response_rule_list" Listed "";
    /// A `quic-initial` line.
    QuicInitialRule "quic_initial_rule" "quic_initial_rule_list" Listed "";
    /// A `stick` line.
    StickRule "stick_rule" "stick_rule_list" Listed "";
    /// A `log` line.
    LogTarget "log_target" "log_target_list" Listed "";
    /// An `ssl-f-use` line.
    SslFrontUse "ssl_front_use" "ssl_front_use_list" Listed "";
    /// A `nameserver` line.
    Nameserver "nameserver" "nameservers" Named "name";
    /// A `peer` line.
    PeerEntry "peer_entry" "peer_entries" Named "name";
    /// A `mailer` line.
    MailerEntry "mailer_entry" "mailer_entries" Named "name";
    /// A `table` line.
    Table "table" "tables" Named "name";
    /// A `user` line.
    User "user" "users" Named "username";
    /// A `group` line.
    Group "group" "groups" Named "name";
    /// A `load` line.
    CrtLoad "crt_load" "crt_loads" Named "certificate";
}

impl ObjectKind {
    /// Finds a kind by the name of its schema.
    pub fn by_model(model: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.model() == model)
    }

    /// Returns the property that holds objects of this kind in a full section of the given kind.
    ///
    /// It is [`collection`](Self::collection), but for the checks of a `healthcheck`, and up to 3.1 the list of what a
    /// `crt-store` loads.
    pub fn collection_in(self, section: Self, version: Version) -> &'static str {
        match (self, section) {
            (Self::TcpCheck, Self::Healthcheck) => "tcp_check_list",
            (Self::CrtLoad, Self::CrtStore) if version.calls_list_of_certificates_loads() => "loads",
            _ => self.collection(),
        }
    }

    /// Returns whether order matters among the objects of this kind.
    pub const fn is_ordered(self) -> bool {
        matches!(self.order(), Order::Listed)
    }

    /// Returns whether this is a section rather than something that stands in one.
    pub const fn is_section(self) -> bool {
        matches!(self.order(), Order::Section)
    }
}

impl fmt::Display for ObjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.model())
    }
}
