//! Which version of the original API is spoken.

use setpoint_haproxy::model::Version;

/// A version of the API: what is routed, and how it is answered.
///
/// The original was written anew with 3.3: since then errors of parameters are 400 rather than 422, and codes in bodies are
/// those of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dialect(Version);

/// A version that the API does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no Dataplane API {0}: 3.0 to 3.4 are spoken")]
pub struct UnknownDialect(Version);

impl Dialect {
    /// All, the oldest first.
    pub const ALL: [Self; 5] = [
        Self(Version::V3_0),
        Self(Version::V3_1),
        Self(Version::V3_2),
        Self(Version::V3_3),
        Self(Version::V3_4),
    ];

    /// The dialect of a version.
    pub fn new(version: Version) -> Result<Self, UnknownDialect> {
        if version >= Version::V3_0 { Ok(Self(version)) } else { Err(UnknownDialect(version)) }
    }

    /// The version.
    pub fn version(self) -> Version {
        self.0
    }

    /// The release of the original whose specification is followed.
    pub(crate) fn release(self) -> &'static str {
        match self.0 {
            Version::V3_1 => "3.1.14",
            Version::V3_2 => "3.2.15",
            Version::V3_3 => "3.3.7",
            Version::V3_4 => "3.4.2",
            _ => "3.0.23",
        }
    }

    /// Whether it is one of those that were written anew.
    pub(crate) fn is_new(self) -> bool {
        self.0 >= Version::V3_3
    }

    /// Whether errors of the runtime socket have codes of their own.
    pub(crate) fn tells_runtime_errors(self) -> bool {
        self.0 >= Version::V3_2
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self(Version::V3_4)
    }
}
