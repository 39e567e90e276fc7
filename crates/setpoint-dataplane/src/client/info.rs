//! What is at the other end.

use std::fmt;
use std::str::FromStr;

use serde_json::Value as Json;
use setpoint_haproxy::model::{Edition, Version};

use super::ConnectError;
use super::transport::{Call, Transport};

/// A version of the API, such as `3.2.13`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiVersion {
    minor: u32,
    patch: u32,
    /// As the API tells it.
    text: String,
    is_setpoint: bool,
}

/// What answers is no Dataplane API that is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownApi {
    /// It tells no version.
    #[error("what answers there tells no version of a Dataplane API")]
    NoVersion,
    /// It tells another one.
    #[error("it is a Dataplane API {0}, and 3.0 and later are spoken")]
    Other(String),
}

impl ApiVersion {
    /// The schema that its objects have: the newest that is known, for a newer API.
    pub fn schema(&self) -> Version {
        match self.minor {
            0 => Version::V3_0,
            1 => Version::V3_1,
            2 => Version::V3_2,
            3 => Version::V3_3,
            _ => Version::V3_4,
        }
    }

    /// Returns whether it is Setpoint that serves the API.
    pub(super) fn is_setpoint(&self) -> bool {
        self.is_setpoint
    }

    /// Returns whether certificates of a store are found below the store, which changed from one patch to the next.
    pub fn has_loads_below_stores(&self) -> bool {
        match self.minor {
            0 | 1 => false,
            2 => self.patch >= 9,
            3 => self.patch >= 1,
            _ => true,
        }
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ApiVersion {
    type Err = UnknownApi;

    /// Reads `v3.2.13 ab12cd3`, `3.2` and what an enterprise edition tells, such as `v3.0r1`.
    fn from_str(text: &str) -> Result<Self, UnknownApi> {
        let word = text.split_ascii_whitespace().next().unwrap_or_default();
        let mut numbers = word.strip_prefix('v').unwrap_or(word).split('.').map(leading_number);
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(3), Some(minor)) => {
                let patch = numbers.next().flatten().unwrap_or_default();
                let is_setpoint = text.contains(" setpoint-");
                Ok(Self { minor, patch, text: word.to_owned(), is_setpoint })
            }
            (Some(_), Some(_)) => Err(UnknownApi::Other(word.to_owned())),
            _ => Err(UnknownApi::NoVersion),
        }
    }
}

/// The number that a text begins with.
fn leading_number(text: &str) -> Option<u32> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// The edition, by the version that an API tells: `3.1-ee2`, `3.0r1`, or in words.
fn edition_of(text: &str) -> Edition {
    let word = text.split_ascii_whitespace().next().unwrap_or_default();
    let is_release = |word: &str| {
        let (number, release) = word.trim_start_matches('v').split_once('r')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        Some(number.split('.').all(is_number) && number.contains('.') && leading_number(release).is_some())
    };
    let is_numbered = word.split_once("-ee").is_some_and(|(_, number)| leading_number(number).is_some());
    if text.to_ascii_lowercase().contains("enterprise") || is_numbered || is_release(word) == Some(true) {
        Edition::Enterprise
    } else {
        Edition::Community
    }
}

/// Asks which version of the API it is, and of which edition.
pub(super) async fn detect(transport: &Transport) -> Result<(ApiVersion, Edition), ConnectError> {
    let (info, _) = transport.json::<Json>(Call::get("info"), &[200]).await?;
    let told = info.pointer("/api/version").and_then(Json::as_str).unwrap_or_default();
    let version = match told.parse() {
        // One that somebody built by hand tells none, but serves the specification that it was made from.
        Err(UnknownApi::NoVersion) => {
            let (specification, _) = transport.json::<Json>(Call::get("specification"), &[200]).await?;
            let version = specification.pointer("/info/version").and_then(Json::as_str);
            version.unwrap_or_default().parse()
        }
        version => version,
    };
    match version {
        Ok(version) => Ok((version, edition_of(told))),
        Err(source) => Err(ConnectError::Unknown { endpoint: transport.endpoint().to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_apis_tell_them() {
        for (told, schema, below) in [
            ("v3.0.21 1234abc", Version::V3_0, false),
            ("3.1", Version::V3_1, false),
            ("v3.2.8 x", Version::V3_2, false),
            ("v3.2.9 x", Version::V3_2, true),
            ("v3.3.0", Version::V3_3, false),
            ("v3.3.1-ee1", Version::V3_3, true),
            ("v3.4.0", Version::V3_4, true),
            ("v3.9.0", Version::V3_4, true),
        ] {
            let version: ApiVersion = told.parse().unwrap();
            assert_eq!((version.schema(), version.has_loads_below_stores()), (schema, below), "{told}");
        }
        assert_eq!("v2.9.1".parse::<ApiVersion>(), Err(UnknownApi::Other("v2.9.1".to_owned())));
        for nonsense in ["", "dev", "v3", "x.y", "v3.x"] {
            assert_eq!(nonsense.parse::<ApiVersion>(), Err(UnknownApi::NoVersion), "{nonsense:?}");
        }
    }

    #[test]
    fn the_edition_is_told_by_the_version() {
        for told in ["v3.0.2-ee1 abc", "v3.1r2", "3.0r1 abc", "v3.2.0 HAProxy Enterprise"] {
            assert_eq!(edition_of(told), Edition::Enterprise, "{told}");
        }
        for told in ["v3.0.2 abc", "v3.1-rc1", "v3.1.0-dev", "", "v3.2.0 -eel"] {
            assert_eq!(edition_of(told), Edition::Community, "{told}");
        }
    }
}
