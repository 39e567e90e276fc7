//! Entries of Consul's key-value store, and which of their keys belong to a structure.

use std::fmt;

/// One key of Consul with its value.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The whole key.
    pub key: String,
    /// The value; none where Consul gives `null`, as it does for an empty one.
    pub value: Option<Vec<u8>>,
    /// The index of its last change.
    pub modify_index: u64,
    /// The number that Consul keeps beside the value. Ours is the term of the leader that wrote it.
    pub flags: u64,
}

impl Entry {
    /// Makes an entry with a text as its value, at no index.
    pub fn new(key: impl Into<String>, value: impl AsRef<str>) -> Self {
        Self { key: key.into(), value: Some(value.as_ref().as_bytes().to_vec()), modify_index: 0, flags: 0 }
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

/// What is said of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// `baseline` or `satellite`.
    CompositeRole,
    /// `controller`, `origin` or `peer`.
    BluegreenRole,
    /// The namespace of the controller that an origin or a peer belongs to.
    ControllerNamespace,
}

impl Attribute {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::CompositeRole, Self::BluegreenRole, Self::ControllerNamespace];

    /// How it is spelled in a key.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CompositeRole => "compositeRole",
            Self::BluegreenRole => "bluegreenRole",
            Self::ControllerNamespace => "controllerNamespace",
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The prefix of all keys of a composite's structure, with its slash at the end: without it, the structure of
/// another composite whose id begins alike would be read with it.
///
/// ```
/// assert_eq!(setpoint_composite::structure::prefix("shop"), "composite/shop/structure/");
/// ```
pub fn prefix(composite_id: &str) -> String {
    format!("composite/{composite_id}/structure/")
}

/// The parts of a key `composite/{id}/structure/{namespace}/{attribute}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a> {
    /// The composite's id.
    pub composite_id: &'a str,
    /// The namespace that something is said of.
    pub namespace: &'a str,
    /// What is said.
    pub attribute: Attribute,
}

impl<'a> Key<'a> {
    /// Takes a key apart; none if it is not of this form, or says something that is none of ours.
    ///
    /// ```
    /// use setpoint_composite::structure::{Attribute, Key};
    ///
    /// let key = Key::parse("composite/shop/structure/cart/compositeRole").unwrap();
    /// assert_eq!((key.namespace, key.attribute), ("cart", Attribute::CompositeRole));
    /// assert_eq!(key.to_string(), "composite/shop/structure/cart/compositeRole");
    /// assert_eq!(Key::parse("composite/shop/structure/cart/deep/compositeRole"), None);
    /// ```
    pub fn parse(key: &'a str) -> Option<Self> {
        let mut parts = key.split('/');
        let mut next = || parts.next().filter(|part| !part.is_empty());
        let ("composite", composite_id, "structure") = (next()?, next()?, next()?) else { return None };
        let (namespace, attribute) = (next()?, next()?);
        let attribute = Attribute::ALL.into_iter().find(|known| known.as_str() == attribute)?;
        parts.next().is_none().then_some(Self { composite_id, namespace, attribute })
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}/{}", prefix(self.composite_id), self.namespace, self.attribute)
    }
}
