//! Which section, and which child of it.

use std::fmt;

use smol_str::SmolStr;

use crate::text::SectionKind;

/// Which section of a document.
///
/// `nth`, counted from 0, distinguishes sections that share kind and name: anonymous `defaults`, above all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionKey {
    /// What it is.
    pub kind: SectionKind,
    /// Its name, if it has one. Of a section that nobody knows, the words of its header.
    pub name: Option<SmolStr>,
    /// How many of the same kind and name stand before it.
    pub nth: u32,
}

impl SectionKey {
    /// Makes the key of the first section of a kind and name.
    pub fn named(kind: SectionKind, name: impl Into<SmolStr>) -> Self {
        Self { kind, name: Some(name.into()), nth: 0 }
    }

    /// Makes the key of the first section of a kind that has no name.
    pub const fn unnamed(kind: SectionKind) -> Self {
        Self { kind, name: None, nth: 0 }
    }
}

impl fmt::Display for SectionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, &self.name) {
            (SectionKind::Unknown, Some(name)) => write!(f, "{name}")?,
            (kind, Some(name)) => write!(f, "{kind} {name}")?,
            (kind, None) => write!(f, "{kind}")?,
        }
        if self.nth > 0 { write!(f, " #{}", self.nth + 1) } else { Ok(()) }
    }
}

/// Which child of a section.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChildKey {
    /// The one of this name.
    Name(SmolStr),
    /// The one at this place among those of its kind.
    Index(u32),
}

impl fmt::Display for ChildKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Index(index) => index.fmt(f),
        }
    }
}
