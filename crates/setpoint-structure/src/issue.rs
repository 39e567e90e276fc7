//! What a transform could not use, and why.

use std::fmt;

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IssueKind {
    /// An entry has no value: it counts as absent.
    EmptyValue,
    /// A value is not UTF-8, or has spaces around it.
    MalformedValue,
    /// A `compositeRole` is neither `baseline` nor `satellite`.
    UnknownCompositeRole,
    /// A `bluegreenRole` is none of `controller`, `origin` and `peer`.
    UnknownBluegreenRole,
    /// A namespace has attributes, but none says whether it is a baseline or a satellite.
    NoCompositeRole,
    /// Two namespaces of a group have the same role.
    DuplicateRole,
    /// Several namespaces of a group have no role, and none of them is the origin.
    SeveralWithoutRole,
    /// A namespace without a role is in a group that has an origin.
    NoPlace,
}

impl IssueKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::EmptyValue,
        Self::MalformedValue,
        Self::UnknownCompositeRole,
        Self::UnknownBluegreenRole,
        Self::NoCompositeRole,
        Self::DuplicateRole,
        Self::SeveralWithoutRole,
        Self::NoPlace,
    ];

    /// Its name in one word, as reasons of conditions and Events are written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EmptyValue => "EmptyValue",
            Self::MalformedValue => "MalformedValue",
            Self::UnknownCompositeRole => "UnknownCompositeRole",
            Self::UnknownBluegreenRole => "UnknownBluegreenRole",
            Self::NoCompositeRole => "NoCompositeRole",
            Self::DuplicateRole => "DuplicateRole",
            Self::SeveralWithoutRole => "SeveralWithoutRole",
            Self::NoPlace => "NoPlace",
        }
    }
}

impl fmt::Display for IssueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something in the input that was not used as it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Issue {
    /// What kind of thing is wrong.
    pub kind: IssueKind,
    /// The key, namespace or group that it is wrong with.
    pub subject: String,
    /// What is wrong and what was done about it, as a sentence.
    pub message: String,
}

impl Issue {
    pub(crate) fn new(kind: IssueKind, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, subject: shortened(subject.into()), message: shortened(message.into()) }
    }

    /// Adds what became of a group that is ambiguous.
    pub(crate) fn and(mut self, kept: bool) -> Self {
        self.message += if kept { "; what was published before is kept" } else { "; the group is left out" };
        self
    }
}

/// A text as long as a status may hold a few of: a value in Consul may have half a megabyte.
fn shortened(text: String) -> String {
    const MOST: usize = 400;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.message)
    }
}
