//! What fetches and converters take and give, as HAProxy lists it.

use crate::model::Version;
use crate::table::Name;

/// What is known of a fetch or a converter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signature {
    /// How many arguments it can't be without.
    pub(crate) least: usize,
    pub(crate) arguments: Vec<Argument>,
    /// For arguments that not every version has, or of which not every one asks something: the first that does.
    since: Vec<(usize, Since)>,
    /// What it gives.
    pub(crate) gives: SampleType,
    /// What a converter takes.
    pub(crate) takes: SampleType,
    /// What an ACL compares it as, where that is more than what all versions give.
    pub(crate) compared: Option<SampleType>,
    /// The arguments that are never shown.
    pub(crate) secrets: Vec<usize>,
    /// Whether its first argument names a file of patterns and values.
    pub(crate) is_map: bool,
}

/// From which version on something holds of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    /// It is there.
    Known(Version),
    /// It is looked at.
    Asked(Version),
}

/// What an argument has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    Text,
    Integer,
    /// A whole number from some one on.
    From(i64),
    /// A mask of IPv4: how many bits, or an address.
    Mask4,
    /// The same of IPv6.
    Mask6,
    /// The name of something; where it is empty, the section's own.
    Named(Name),
    /// What can't be empty, and is not looked at.
    Other,
    /// A variable, or a number from some one on; empty where `or_nothing`.
    Variable {
        or_from: Option<i64>,
        or_nothing: bool,
    },
    /// One character.
    Character,
    /// One of some words.
    Words {
        words: Vec<&'static str>,
        or_nothing: bool,
    },
}

/// The types of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SampleType {
    #[default]
    Any,
    /// What was there before.
    Same,
    Bool,
    Integer,
    Address,
    Ipv4,
    Ipv6,
    Text,
    Binary,
    Method,
}

impl SampleType {
    fn read(text: &str) -> Self {
        match text {
            "same" => Self::Same,
            "bool" => Self::Bool,
            "sint" => Self::Integer,
            "addr" => Self::Address,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "str" => Self::Text,
            "bin" => Self::Binary,
            "meth" => Self::Method,
            _ => Self::Any,
        }
    }

    /// Returns whether HAProxy can make another type of it.
    pub(crate) fn casts_to(self, to: Self) -> bool {
        match (self, to) {
            (Self::Any | Self::Same | Self::Text, _)
            | (_, Self::Any | Self::Same | Self::Text | Self::Binary) => true,
            (from, Self::Method) => matches!(from, Self::Binary | Self::Method),
            (Self::Method | Self::Binary, _) => false,
            (Self::Bool, to) => matches!(to, Self::Bool | Self::Integer),
            (Self::Integer, _) => true,
            (Self::Address | Self::Ipv6, to) => !matches!(to, Self::Bool | Self::Integer),
            (Self::Ipv4, to) => to != Self::Bool,
        }
    }
}

impl Signature {
    /// Reads `(string[,integer])`.
    pub(super) fn arguments(&mut self, text: &str) {
        let inner = text.trim_start_matches('(').trim_end_matches(')');
        let (needed, optional) = inner.split_once('[').unwrap_or((inner, ""));
        let types = |text: &str| -> Vec<Argument> {
            let text = text.trim_end_matches(']');
            text.split(',').filter(|ty| !ty.is_empty()).map(Argument::read).collect()
        };
        self.arguments = types(needed);
        self.least = self.arguments.len();
        self.arguments.extend(types(optional));
    }

    /// Reads `str`, or `str<bin` of a converter that makes the one of the other.
    pub(super) fn types(&mut self, text: &str) {
        let (gives, takes) = text.split_once('<').unwrap_or((text, ""));
        (self.gives, self.takes) = (SampleType::read(gives), SampleType::read(takes));
    }

    /// Takes what `arguments.txt` states of the arguments, and of what is given.
    pub(super) fn refine(&mut self, words: impl Iterator<Item = &'static str>) {
        let mut words = words.peekable();
        let given = words.next_if(|word| word.starts_with(':'));
        self.compared = given.map(|given| SampleType::read(given.trim_start_matches(':')));
        for (position, (argument, word)) in self.arguments.iter_mut().zip(words).enumerate() {
            let mut word = word;
            if let Some((before, version)) = word.split_once('@') {
                self.since.extend(version.parse().ok().map(|first| (position, Since::Known(first))));
                word = before;
            }
            if let Some((before, version)) = word.split_once('/') {
                self.since.extend(version.parse().ok().map(|first| (position, Since::Asked(first))));
                word = before;
            }
            let (word, or_nothing) = word.strip_suffix('?').map_or((word, false), |word| (word, true));
            match word {
                "_" => {}
                "secret" => self.secrets.push(position),
                "file" => self.is_map = true,
                "variable" => *argument = Argument::Variable { or_from: None, or_nothing },
                "number" => *argument = Argument::Variable { or_from: Some(i64::MIN), or_nothing },
                "acl" => *argument = Argument::Named(Name::Acl),
                "integer" => *argument = Argument::Integer,
                "from-0" => *argument = Argument::From(0),
                "from-1" => *argument = Argument::From(1),
                "count" => *argument = Argument::Variable { or_from: Some(0), or_nothing },
                "positive" => *argument = Argument::Variable { or_from: Some(1), or_nothing },
                "character" => *argument = Argument::Character,
                words => *argument = Argument::Words { words: words.split('|').collect(), or_nothing },
            }
        }
    }
}

impl Signature {
    /// Returns how many arguments a version knows.
    pub(crate) fn most(&self, version: Version) -> usize {
        let unknown = |(position, since): &(usize, Since)| {
            matches!(since, Since::Known(first) if *first > version).then_some(*position)
        };
        self.since.iter().filter_map(unknown).min().unwrap_or(self.arguments.len())
    }

    /// Returns whether a version looks at an argument.
    pub(crate) fn is_asked(&self, position: usize, version: Version) -> bool {
        let is_later = |(held, since): &(usize, Since)| {
            *held == position && matches!(since, Since::Asked(first) if *first > version)
        };
        !self.since.iter().any(is_later)
    }
}

impl Argument {
    fn read(text: &str) -> Self {
        match text {
            "string" => Self::Text,
            "integer" => Self::Integer,
            "mask4" => Self::Mask4,
            "mask6" => Self::Mask6,
            name => Name::by_keyword(name).map_or(Self::Other, Self::Named),
        }
    }

    /// Returns whether HAProxy refuses it where it is empty.
    pub(crate) fn must_be_given(&self) -> bool {
        match self {
            Self::Integer | Self::From(_) | Self::Named(Name::Acl) => true,
            Self::Variable { or_nothing, .. } | Self::Words { or_nothing, .. } => !or_nothing,
            Self::Text | Self::Mask4 | Self::Mask6 | Self::Named(_) | Self::Other | Self::Character => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_cast_as_haproxy_casts_them() {
        use SampleType::{Address, Binary, Bool, Integer, Ipv4, Method, Text};
        for (from, to, expected) in [
            (Text, Address, true),
            (Binary, Integer, false),
            (Binary, Text, true),
            (Bool, Address, false),
            (Integer, Ipv4, true),
            (Address, Integer, false),
            (Ipv4, Integer, true),
            (Method, Integer, false),
            (Method, Text, true),
            (Integer, Method, false),
        ] {
            assert_eq!(from.casts_to(to), expected, "{from:?} to {to:?}");
        }
    }
}
