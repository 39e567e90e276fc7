//! The kinds of section, as one table.

use serde::{Deserialize, Serialize};

/// What a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "a variant is named as the keyword that opens the section")]
pub enum SectionKind {
    /// What stands before the first section: comments, blank lines, conditionals.
    Preamble,
    Global,
    Defaults,
    Frontend,
    Backend,
    Listen,
    Userlist,
    Peers,
    Mailers,
    Resolvers,
    Cache,
    Ring,
    Traces,
    LogForward,
    LogProfile,
    HttpErrors,
    Healthcheck,
    Acme,
    CrtStore,
    FcgiApp,
    Program,
    UdpLb,
    WafGlobal,
    WafProfile,
    BotmgmtProfile,
    Captcha,
    DynamicUpdate,
    /// A section that no HAProxy from 2.6 to 3.4 knows.
    Unknown,
}

/// Which `defaults` sections a section takes values from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Governed {
    /// It takes none.
    No,
    /// Those it names with `from`, or else the last before it.
    ByDefaults,
}

/// Whether the keyword that opens a section is followed by a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Must,
    May,
    Never,
}

/// Keyword, whether it takes a name, whether it is of the enterprise edition.
const KINDS: [(SectionKind, &str, Named, bool); 26] = {
    use Named::{May, Must, Never};
    use SectionKind as K;
    [
        (K::Global, "global", Never, false),
        (K::Defaults, "defaults", May, false),
        (K::Frontend, "frontend", Must, false),
        (K::Backend, "backend", Must, false),
        (K::Listen, "listen", Must, false),
        (K::Userlist, "userlist", Must, false),
        (K::Peers, "peers", Must, false),
        (K::Mailers, "mailers", Must, false),
        (K::Resolvers, "resolvers", Must, false),
        (K::Cache, "cache", Must, false),
        (K::Ring, "ring", Must, false),
        (K::Traces, "traces", Never, false),
        (K::LogForward, "log-forward", Must, false),
        (K::LogProfile, "log-profile", Must, false),
        (K::HttpErrors, "http-errors", Must, false),
        (K::Healthcheck, "healthcheck", Must, false),
        (K::Acme, "acme", Must, false),
        (K::CrtStore, "crt-store", May, false),
        (K::FcgiApp, "fcgi-app", Must, false),
        (K::Program, "program", Must, false),
        (K::UdpLb, "udp-lb", May, true),
        (K::WafGlobal, "waf-global", May, true),
        (K::WafProfile, "waf-profile", May, true),
        (K::BotmgmtProfile, "botmgmt-profile", May, true),
        (K::Captcha, "captcha", May, true),
        (K::DynamicUpdate, "dynamic-update", May, true),
    ]
};

impl SectionKind {
    /// All kinds that a keyword opens.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|row| row.0)
    }

    /// The kind that a decoded first word opens, if it opens one.
    pub fn from_keyword(word: &[u8]) -> Option<Self> {
        // Asked for every line there is: length and first letter decide for most words.
        Some(match word {
            b"global" => Self::Global,
            b"defaults" => Self::Defaults,
            b"frontend" => Self::Frontend,
            b"backend" => Self::Backend,
            b"listen" => Self::Listen,
            b"userlist" => Self::Userlist,
            b"peers" => Self::Peers,
            b"mailers" => Self::Mailers,
            b"resolvers" => Self::Resolvers,
            b"cache" => Self::Cache,
            b"ring" => Self::Ring,
            b"traces" => Self::Traces,
            b"log-forward" => Self::LogForward,
            b"log-profile" => Self::LogProfile,
            b"http-errors" => Self::HttpErrors,
            b"healthcheck" => Self::Healthcheck,
            b"acme" => Self::Acme,
            b"crt-store" => Self::CrtStore,
            b"fcgi-app" => Self::FcgiApp,
            b"program" => Self::Program,
            b"udp-lb" => Self::UdpLb,
            b"waf-global" => Self::WafGlobal,
            b"waf-profile" => Self::WafProfile,
            b"botmgmt-profile" => Self::BotmgmtProfile,
            b"captcha" => Self::Captcha,
            b"dynamic-update" => Self::DynamicUpdate,
            _ => return None,
        })
    }

    /// The keyword that opens it; a preamble and an unknown section have none of their own.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Preamble => "",
            Self::Unknown => "unknown",
            kind => KINDS.iter().find(|row| row.0 == kind).map_or("", |row| row.1),
        }
    }

    /// Returns whether it exists in the enterprise edition only, and is known here as text.
    pub fn is_enterprise(self) -> bool {
        KINDS.iter().any(|row| row.0 == self && row.3)
    }

    /// Returns whether HAProxy refuses the section without a name.
    pub fn needs_name(self) -> bool {
        KINDS.iter().any(|row| row.0 == self && row.2 == Named::Must)
    }

    /// Returns whether the keyword is followed by a name at all.
    pub fn takes_name(self) -> bool {
        self == Self::Unknown || KINDS.iter().any(|row| row.0 == self && row.2 != Named::Never)
    }

    /// Returns whether it is a frontend, a backend or both.
    pub fn is_proxy(self) -> bool {
        matches!(self, Self::Frontend | Self::Backend | Self::Listen)
    }

    /// Which `defaults` sections it takes values from.
    pub fn governed(self) -> Governed {
        if self.is_proxy() || self == Self::Defaults { Governed::ByDefaults } else { Governed::No }
    }
}

impl std::fmt::Display for SectionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Preamble => "preamble",
            kind => kind.keyword(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_opened_by_its_keyword() {
        for kind in SectionKind::all() {
            assert_eq!(SectionKind::from_keyword(kind.keyword().as_bytes()), Some(kind), "{kind}");
        }
        assert_eq!(SectionKind::all().count(), KINDS.len());
        assert_eq!(SectionKind::from_keyword(b"server"), None);
    }
}
