//! What a configuration is read for: a version, an edition, and an environment.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// Names a version of HAProxy, and with it the version of the Dataplane API that goes with it.
///
/// The oldest schema is that of API 3.0; older versions of HAProxy are read by it.
///
/// ```
/// use setpoint_haproxy::model::Version;
///
/// let version: Version = "3.2".parse()?;
/// assert!(version > Version::V3_0);
/// assert_eq!(version.to_string(), "3.2");
/// # Ok::<(), setpoint_haproxy::model::UnknownVersion>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say all there is to say")]
pub enum Version {
    V2_6,
    V2_7,
    V2_8,
    V2_9,
    V3_0,
    V3_1,
    V3_2,
    V3_3,
    V3_4,
}

impl Version {
    /// Lists all versions, oldest first.
    pub const ALL: [Self; 9] = [
        Self::V2_6,
        Self::V2_7,
        Self::V2_8,
        Self::V2_9,
        Self::V3_0,
        Self::V3_1,
        Self::V3_2,
        Self::V3_3,
        Self::V3_4,
    ];

    /// The newest version that is known.
    pub const LATEST: Self = Self::V3_4;

    /// Returns the version as it is written, such as `3.2`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2_6 => "2.6",
            Self::V2_7 => "2.7",
            Self::V2_8 => "2.8",
            Self::V2_9 => "2.9",
            Self::V3_0 => "3.0",
            Self::V3_1 => "3.1",
            Self::V3_2 => "3.2",
            Self::V3_3 => "3.3",
            Self::V3_4 => "3.4",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of a version that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a known version of HAProxy (2.6 to 3.4)")]
pub struct UnknownVersion(String);

impl FromStr for Version {
    type Err = UnknownVersion;

    /// Reads `3.2`, and also a release such as `3.2.26`.
    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let mut parts = text.splitn(3, '.');
        let minor = match (parts.next(), parts.next()) {
            (Some(major), Some(minor)) => format!("{major}.{minor}"),
            _ => return Err(UnknownVersion(text.to_owned())),
        };
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == minor)
            .ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

/// Tells the free HAProxy from the one that is sold.
///
/// The sections that only the enterprise edition knows are kept as text in both: there is no schema for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edition {
    /// HAProxy as everyone can have it.
    #[default]
    Community,
    /// HAProxy Enterprise.
    Enterprise,
}

/// What a configuration is read for.
///
/// ```
/// use setpoint_haproxy::model::{Context, Version};
///
/// let context = Context::new(Version::V3_2).with_env("PORT", "8080");
/// assert_eq!(context.env.get("PORT").map(String::as_str), Some("8080"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Context {
    /// The version of the API's schema: what properties objects have.
    pub api: Version,
    /// The version of HAProxy: what it accepts, assumes, and can be told while it runs.
    pub haproxy: Version,
    /// The edition of HAProxy.
    pub edition: Edition,
    /// Variables that are known. A line that expands any other is kept as text.
    pub env: BTreeMap<String, String>,
}

impl Context {
    /// Makes a context of the community edition, in which no variable is known: a version of HAProxy, and of the API that goes
    /// with it.
    pub fn new(version: Version) -> Self {
        Self { api: version, haproxy: version, edition: Edition::default(), env: BTreeMap::new() }
    }

    /// Takes another version of HAProxy than the one that goes with the API.
    #[must_use]
    pub fn with_haproxy(mut self, version: Version) -> Self {
        self.haproxy = version;
        self
    }

    /// Returns a number that tells contexts apart in which a text may say different things.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = rustc_hash::FxHasher::default();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Adds a variable of the environment.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }
}

impl Default for Context {
    /// Makes a context of the latest version.
    fn default() -> Self {
        Self::new(Version::LATEST)
    }
}
