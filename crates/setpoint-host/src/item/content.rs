//! What a file holds: any bytes, cheap to clone.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The bytes of a file. As data they are a text where they are one, else `{"base64": "…"}`.
///
/// ```
/// use setpoint_host::Content;
/// assert_eq!(serde_json::to_string(&Content::from("hi"))?, "\"hi\"");
/// assert_eq!(serde_json::to_string(&Content::from(&[0xff_u8][..]))?, "{\"base64\":\"/w==\"}");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Content(Arc<[u8]>);

/// So many bytes are shown whole on a single line.
const SHOWN: usize = 120;

impl Content {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as text, where they are one that can be shown.
    pub fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.0).ok()?;
        let shown = |c: char| !c.is_control() || matches!(c, '\n' | '\t' | '\r');
        text.chars().all(shown).then_some(text)
    }

    /// The SHA-256 digest in hexadecimal.
    pub fn sha256(&self) -> String {
        hex(&Sha256::digest(&self.0))
    }

    /// A single line that tells this content from others.
    pub(crate) fn line(&self) -> String {
        match self.text() {
            Some(text) if text.len() <= SHOWN => format!("{text:?}"),
            Some(_) => format!("{} bytes of text, sha256 {}", self.0.len(), &self.sha256()[..16]),
            None => format!("{} bytes, sha256 {}", self.0.len(), &self.sha256()[..16]),
        }
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}

#[derive(Serialize, Deserialize)]
struct Encoded {
    base64: String,
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Encoded { base64: STANDARD.encode(&self.0) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or {\"base64\": \"…\"}")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content::from(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content, A::Error> {
        let Encoded { base64 } = Encoded::deserialize(MapAccessDeserializer::new(map))?;
        STANDARD.decode(base64).map(Content::from).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_as_data() {
        for bytes in [&b""[..], b"text\n", b"\0\xff\xfe", "\u{1}ü".as_bytes()] {
            let content = Content::from(bytes);
            let json = serde_json::to_string(&content).unwrap();
            assert_eq!(serde_json::from_str::<Content>(&json).unwrap(), content);
        }
    }

    #[test]
    fn two_long_texts_are_told_apart_on_a_line() {
        let (a, b) = ("x".repeat(500), "y".repeat(500));
        assert_ne!(Content::from(a.as_str()).line(), Content::from(b.as_str()).line());
    }
}
