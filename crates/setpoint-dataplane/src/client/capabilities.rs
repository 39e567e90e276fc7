//! What an API can do, by its version and edition.

use std::collections::BTreeSet;
use std::fmt;

use setpoint_haproxy::model::{Edition, Version};

use super::info::ApiVersion;

/// Something that not every API can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Sections of profiles of logs.
    LogProfiles,
    /// The section of traces.
    Traces,
    /// Rules for the first packet of a QUIC connection.
    QuicInitialRules,
    /// Lists of certificates as files of their own.
    CrtLists,
    /// Files of authorities and of revoked certificates of a running HAProxy.
    SslCaFiles,
    /// Certificates of a running HAProxy.
    RuntimeCertificates,
    /// Sections that order certificates.
    Acme,
    /// Comments of lines.
    Metadata,
    /// Rules of `defaults` sections.
    RulesOfDefaults,
    /// Sections that describe checks.
    Healthchecks,
    /// Web application firewall.
    Waf,
    /// Profiles of the web application firewall.
    WafProfiles,
}

/// From which version on, and whether only the edition that is sold has it.
const TABLE: &[(Capability, Version, Edition, &str)] = &[
    (Capability::LogProfiles, Version::V3_1, Edition::Community, "log profiles"),
    (Capability::Traces, Version::V3_1, Edition::Community, "traces"),
    (Capability::QuicInitialRules, Version::V3_1, Edition::Community, "rules for QUIC"),
    (Capability::CrtLists, Version::V3_2, Edition::Community, "lists of certificates"),
    (Capability::SslCaFiles, Version::V3_2, Edition::Community, "CA files at runtime"),
    (Capability::RuntimeCertificates, Version::V3_2, Edition::Community, "certificates at runtime"),
    (Capability::Acme, Version::V3_2, Edition::Community, "acme sections"),
    (Capability::Metadata, Version::V3_2, Edition::Community, "comments"),
    (Capability::RulesOfDefaults, Version::V3_2, Edition::Community, "rules of defaults sections"),
    (Capability::Healthchecks, Version::V3_4, Edition::Community, "healthcheck sections"),
    (Capability::Waf, Version::V3_0, Edition::Enterprise, "the web application firewall"),
    (Capability::WafProfiles, Version::V3_2, Edition::Enterprise, "profiles of the web application firewall"),
];

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = TABLE.iter().find(|(capability, ..)| capability == self);
        f.write_str(row.map_or("it", |(_, _, _, words)| words))
    }
}

/// What an API can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    there: BTreeSet<Capability>,
    version: String,
    is_enterprise: bool,
}

/// An API can't do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{capability} {} the Dataplane API {needs}, and this is {version}", if *is_plural { "need" } else { "needs" })]
pub struct NotSupported {
    /// What it can't do.
    pub capability: Capability,
    /// What could, in words.
    pub needs: String,
    /// What is there.
    pub version: String,
    is_plural: bool,
}

impl Capabilities {
    /// What an API of a version and an edition can do.
    pub(super) fn of(version: &ApiVersion, edition: Edition) -> Self {
        let has = |since: Version, of: Edition| version.schema() >= since && edition >= of;
        let rows = TABLE.iter().filter(|(_, since, of, _)| has(*since, *of));
        Self {
            there: rows.map(|(capability, ..)| *capability).collect(),
            version: version.to_string(),
            is_enterprise: edition == Edition::Enterprise,
        }
    }

    /// Returns whether an API can do something.
    pub fn has(&self, capability: Capability) -> bool {
        self.there.contains(&capability)
    }

    /// Refuses what an API can't do, and says what could.
    pub fn require(&self, capability: Capability) -> Result<(), NotSupported> {
        if self.has(capability) {
            return Ok(());
        }
        let row = TABLE.iter().find(|(held, ..)| *held == capability);
        let needs = row.map_or_else(String::new, |(_, since, edition, _)| match edition {
            Edition::Enterprise if !self.is_enterprise => format!("{since}+ of HAProxy Enterprise"),
            _ => format!("{since}+"),
        });
        let is_plural = !matches!(capability, Capability::Waf);
        Err(NotSupported { capability, needs, version: self.version.clone(), is_plural })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: &str, edition: Edition) -> Capabilities {
        Capabilities::of(&version.parse().unwrap(), edition)
    }

    #[test]
    fn capability_gated_dispatch_rejects_unsupported_feature() {
        let error = of("v3.0.21", Edition::Community).require(Capability::CrtLists).unwrap_err();
        assert_eq!(
            error.to_string(),
            "lists of certificates need the Dataplane API 3.2+, and this is v3.0.21"
        );
        assert!(of("v3.2.0", Edition::Community).require(Capability::CrtLists).is_ok());
        let error = of("v3.4.0", Edition::Community).require(Capability::Waf).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the web application firewall needs the Dataplane API 3.0+ of HAProxy Enterprise, and this is v3.4.0"
        );
    }

    #[test]
    fn a_newer_api_can_do_all_that_an_older_one_can() {
        let versions = ["v3.0.0", "v3.1.0", "v3.2.0", "v3.3.0", "v3.4.0", "v3.5.0"];
        for edition in [Edition::Community, Edition::Enterprise] {
            let counts: Vec<usize> =
                versions.iter().map(|version| of(version, edition).there.len()).collect();
            assert!(counts.is_sorted(), "{counts:?}");
        }
        let rows: BTreeSet<Capability> = TABLE.iter().map(|(capability, ..)| *capability).collect();
        assert_eq!(of("v3.4.0", Edition::Enterprise).there, rows, "and the newest all of it");
        assert_eq!(rows.len(), TABLE.len(), "each has one row");
    }
}
