//! What lines give to others, and what they can't be without: `provides=` and `requires=` of rows.
//!
//! What an option provides, its line has; what a line provides, its section has; and what a line of `global` or `defaults`
//! provides, all sections have. An option of what others start from, such as `default-server`, is its section's.

use crate::model::{Field, Fields, Value};

/// Something that HAProxy wants to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Resource {
    /// Lua that registers what rules call.
    Lua,
    /// How the certificate of a server is verified.
    Verification,
    /// A certificate that a listener shows.
    Certificate,
    /// A health check of a server.
    HealthCheck,
    /// That HAProxy accepts what is experimental.
    Experimental,
    /// A port that an agent of a server listens on.
    AgentPort,
    /// A port that a health check connects to.
    CheckPort,
    /// That a proxy speaks HTTP.
    HttpMode,
    /// That a proxy passes on what it does not look at.
    TcpMode,
    /// That a proxy speaks to filters.
    SpopMode,
    /// That HAProxy may run programs that check servers.
    ExternalCheck,
    /// That the health checks of a proxy speak HTTP.
    HttpCheck,
}

/// How a resource is called in rows, what is reported where it is missing, and what helps. `{}` is the word that requires it.
const RESOURCES: [(Resource, &str, &str, &str); 12] = [
    (
        Resource::Lua,
        "lua",
        "nothing loads the Lua that registers `{}`",
        "a line `lua-load FILE` in `global` does",
    ),
    (
        Resource::Verification,
        "verification",
        "the server's certificate is to be verified, and no `ca-file` says by which",
        "write `ca-file FILE`, `ca-file @system-ca`, or `verify none` to trust every server",
    ),
    (Resource::Certificate, "certificate", "no certificate is given", "write `crt FILE`"),
    (
        Resource::HealthCheck,
        "health-check",
        "`{}` has no health check that could be tracked",
        "write `check` or `agent-check` in its line",
    ),
    (
        Resource::Experimental,
        "experimental",
        "`{}` is experimental",
        "a line `expose-experimental-directives` in `global` allows it",
    ),
    (Resource::AgentPort, "agent-port", "no port of the agent is given", "write `agent-port PORT`"),
    (
        Resource::CheckPort,
        "check-port",
        "neither the address nor `port` says which port to check",
        "write `port PORT`, or a port after the address",
    ),
    (Resource::HttpMode, "http-mode", "`{}` needs a proxy of HTTP", "write `mode http` in the section"),
    (
        Resource::TcpMode,
        "tcp-mode",
        "`{}` needs a proxy that does not speak HTTP",
        "write `mode tcp` in the section",
    ),
    (Resource::SpopMode, "spop-mode", "`{}` needs a proxy of SPOP", "write `mode spop` in the section"),
    (
        Resource::ExternalCheck,
        "external-check",
        "`global` does not allow external checks",
        "a line `external-check` in `global` does",
    ),
    (
        Resource::HttpCheck,
        "http-check",
        "`check-proto` says that checks speak HTTP, and they don't",
        "write `option httpchk` in the section, or leave `check-proto` out",
    ),
];

impl Resource {
    /// Finds what rows call by a name.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        RESOURCES.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Returns whether it is what a proxy speaks, which its `mode` says or that of its `defaults`.
    pub(crate) fn is_mode(self) -> bool {
        matches!(self, Self::HttpMode | Self::TcpMode | Self::SpopMode)
    }

    /// Returns whether HAProxy looks for it where it sets up servers, and so not in proxies that are disabled.
    pub(crate) fn is_of_servers(self) -> bool {
        matches!(
            self,
            Self::Verification
                | Self::HealthCheck
                | Self::AgentPort
                | Self::CheckPort
                | Self::HttpMode
                | Self::TcpMode
                | Self::SpopMode
                | Self::ExternalCheck
                | Self::HttpCheck
        )
    }

    /// Returns what is reported where it is missing, about the word that requires it.
    pub(crate) fn message(self, word: &str) -> String {
        let text = RESOURCES.iter().find(|row| row.0 == self).map_or("", |row| row.2);
        text.replace("{}", word)
    }

    /// Returns what helps where it is missing.
    pub(crate) fn hint(self) -> &'static str {
        RESOURCES.iter().find(|row| row.0 == self).map_or("", |row| row.3)
    }
}

/// A resource that a row or an option provides or requires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Provision {
    pub(crate) resource: Resource,
    /// The value that has to begin with some text for it to count.
    pub(crate) when: Option<(Field, &'static str)>,
}

impl Provision {
    /// Returns whether it counts for an object with some fields.
    pub(crate) fn holds(&self, fields: &Fields) -> bool {
        self.when.is_none_or(|(field, start)| {
            fields.get(field).and_then(Value::as_str).is_some_and(|text| text.starts_with(start))
        })
    }
}

/// What a step of a health check does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It opens a connection: `step=connect`. Where one does, the first has to.
    Connects,
    /// It uses the connection: `step`.
    Uses,
}

/// What a line does to the environment that later lines are read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnvironmentChange {
    /// `env=set`: it gives a variable a value.
    Sets,
    /// `env=preset`: it does so where the variable has none.
    Presets,
    /// `env=unset`: it removes some variables.
    Unsets,
    /// `env=reset`: it removes all but some variables.
    Resets,
}

impl EnvironmentChange {
    /// Finds what rows call by a name.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "set" => Self::Sets,
            "preset" => Self::Presets,
            "unset" => Self::Unsets,
            "reset" => Self::Resets,
            _ => return None,
        })
    }
}

/// On what it depends whether a running HAProxy can be told another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeRule {
    /// `runtime`: on nothing.
    Always,
    /// `runtime=balance`: on the algorithm, which must not be a static one.
    Balance,
    /// `runtime=address`: on the address, which has to be one of IP.
    Address,
    /// `runtime=limit`: on `minconn`, beside which HAProxy does not set the limit alone.
    Limit,
    /// `runtime=check`: on whether the server is checked, before and after, at a port that is stated.
    Check,
    /// `runtime=agent`: on whether an agent of the server is asked, before and after.
    Agent,
    /// `runtime=backlog`: on `backlog`, without which listeners are made for it when HAProxy starts.
    Backlog,
}

impl RuntimeRule {
    /// Finds what rows call by a name.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "" => Self::Always,
            "balance" => Self::Balance,
            "address" => Self::Address,
            "limit" => Self::Limit,
            "check" => Self::Check,
            "agent" => Self::Agent,
            "backlog" => Self::Backlog,
            _ => return None,
        })
    }
}
