//! How versions differ in what no row of the table can say: the one place for such thresholds.

use super::{ObjectKind, Version};

/// What HAProxy does.
impl Version {
    /// Returns whether a backend can be added while HAProxy runs.
    pub(crate) fn adds_backends(self) -> bool {
        self >= Self::V3_4
    }

    /// Returns whether HAProxy reaches servers by QUIC.
    pub(crate) fn reaches_servers_by_quic(self) -> bool {
        self >= Self::V3_3
    }

    /// Returns whether a server that is added takes its name for TLS from the requests where none is stated, as those of a file do if
    /// the version does so at all.
    pub(crate) fn names_added_servers(self) -> bool {
        self != Self::V3_3
    }

    /// Returns whether HAProxy looks up what the rules of `defaults` name whether or not a proxy uses them.
    pub(crate) fn looks_at_unused_defaults(self) -> bool {
        self >= Self::V3_3
    }

    /// Returns whether HAProxy refuses the name of a section for its characters; newer ones warn.
    pub(crate) fn refuses_characters_of_names(self) -> bool {
        self <= Self::V3_2
    }

    /// Returns whether nothing may follow the name of a proxy but `from`; older ones warn.
    pub(crate) fn refuses_words_after_names(self) -> bool {
        self >= Self::V3_2
    }

    /// Returns whether HAProxy ignores what follows the digits of a port.
    pub(crate) fn ignores_what_follows_ports(self) -> bool {
        self <= Self::V2_6
    }

    /// Returns whether HAProxy refuses a line that an empty word ends; older ones read what stands before it.
    pub(crate) fn refuses_empty_words(self) -> bool {
        self >= Self::V3_3
    }

    /// Returns whether HAProxy takes the name of an option after `default option` for an argument too many.
    pub(crate) fn miscounts_default_option(self) -> bool {
        self <= Self::V3_0
    }
}

/// What the Dataplane API does.
impl Version {
    /// Returns the schema by which objects of a version are read: the oldest is that of 3.0.
    pub(crate) fn schema(self) -> Self {
        self.max(Self::V3_0)
    }

    /// Returns whether comments of such objects are kept as their metadata.
    pub(crate) fn keeps_metadata(self, kind: ObjectKind) -> bool {
        match kind {
            ObjectKind::Server => true,
            // The API knows no such sections.
            ObjectKind::Listen => false,
            _ => self >= Self::V3_2,
        }
    }

    /// Returns whether what a `crt-store` loads is in its property `loads`.
    pub(crate) fn calls_list_of_certificates_loads(self) -> bool {
        self <= Self::V3_1
    }
}
