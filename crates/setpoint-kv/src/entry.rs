//! Entries of Consul's key-value store.

use std::fmt;

/// One key of Consul with its value.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The whole key.
    pub key: String,
    /// The value; none where Consul gives `null`, as it does for an empty one.
    pub value: Option<Vec<u8>>,
    /// The index at which it was made.
    pub create_index: u64,
    /// The index of its last change.
    pub modify_index: u64,
    /// The number that Consul keeps beside the value.
    pub flags: u64,
}

impl Entry {
    /// Makes an entry with a text as its value, at no index.
    pub fn new(key: impl Into<String>, value: impl AsRef<str>) -> Self {
        let value = Some(value.as_ref().as_bytes().to_vec());
        Self { key: key.into(), value, create_index: 0, modify_index: 0, flags: 0 }
    }

    /// The value as a text for people: what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.value.as_deref().unwrap_or_default()).into_owned()
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:?}@{}", self.key, self.value.as_ref().map(|_| self.text()), self.modify_index)
    }
}
