//! Which keys of Consul belong to a structure.

use std::fmt;

/// An attribute of a namespace.
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
/// assert_eq!(setpoint_structure::prefix("shop"), "composite/shop/structure/");
/// ```
pub fn prefix(composite_id: &str) -> String {
    format!("composite/{composite_id}/structure/")
}

/// The parts of a key `composite/{id}/structure/{namespace}/{attribute}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a> {
    /// The composite's id.
    pub composite_id: &'a str,
    /// The namespace that has the attribute.
    pub namespace: &'a str,
    /// Which attribute.
    pub attribute: Attribute,
}

impl<'a> Key<'a> {
    /// Takes a key apart; none if it is not of this form, or of an attribute that is none of ours.
    ///
    /// ```
    /// use setpoint_structure::{Attribute, Key};
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
