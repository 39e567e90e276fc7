//! Conditions after `if` and `unless`: the ACLs that they name, and those that they are made of.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use crate::model::Version;
use crate::table::accepted;

/// The ACLs that a section has defined so far.
#[derive(Debug)]
pub(super) struct Acls {
    /// The version that the configuration is for.
    version: Version,
    names: FxHashSet<String>,
    /// Whether a name is made of a variable: then any may be there.
    open: bool,
}

/// What a condition is made of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Element {
    /// The name of an ACL, and the word it stands in.
    Named(usize),
    /// An ACL between braces: its first word, and the brace that closes it.
    Inline(usize, usize),
    /// A brace that is not closed.
    Unclosed(usize),
}

impl Acls {
    /// Begins a section of a configuration for a version, or for any.
    pub(super) fn new(version: Option<Version>) -> Self {
        let version = version.unwrap_or(Version::LATEST);
        Self { version, names: FxHashSet::default(), open: false }
    }

    pub(super) fn define(&mut self, name: &str, is_open: bool) {
        self.open |= is_open;
        self.names.insert(name.to_owned());
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.open || self.names.contains(name) || accepted().has_word("predefined-acl", name, self.version)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

/// Divides a condition, whose first word is at `from`.
pub(super) fn elements(words: &[Cow<'_, str>], from: usize) -> Vec<Element> {
    let mut elements = Vec::new();
    let mut at = from;
    while let Some(word) = words.get(at) {
        match word.trim_start_matches('!') {
            "" | "||" => {}
            word if word.eq_ignore_ascii_case("or") => {}
            "{" => {
                let rest = words.get(at + 1..).unwrap_or_default();
                let Some(length) = rest.iter().position(|word| word == "}") else {
                    elements.push(Element::Unclosed(at));
                    return elements;
                };
                elements.push(Element::Inline(at + 1, at + 1 + length));
                at += length + 1;
            }
            _ => elements.push(Element::Named(at)),
        }
        at += 1;
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_divided_as_haproxy_divides_it() {
        let of = |text: &str| {
            let words: Vec<Cow<'_, str>> = text.split(' ').map(Cow::Borrowed).collect();
            elements(&words, 0)
        };
        assert_eq!(of("a !b OR || or ! !!c"), [Element::Named(0), Element::Named(1), Element::Named(6)]);
        assert_eq!(of("!{ src 10.0.0.1 } a"), [Element::Inline(1, 3), Element::Named(4)]);
        assert_eq!(of("{ src"), [Element::Unclosed(0)]);
    }
}
