//! Conditions after `if` and `unless`: the ACLs that they name, and those that they are made of.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

/// The ACLs that HAProxy defines by itself.
const PREDEFINED: &[&str] = &[
    "FALSE",
    "HTTP",
    "HTTP_1.0",
    "HTTP_1.1",
    "HTTP_2.0",
    "HTTP_3.0",
    "HTTP_CONTENT",
    "HTTP_START",
    "HTTP_URL_ABS",
    "HTTP_URL_SLASH",
    "HTTP_URL_STAR",
    "LOCALHOST",
    "METH_CONNECT",
    "METH_DELETE",
    "METH_GET",
    "METH_HEAD",
    "METH_OPTIONS",
    "METH_POST",
    "METH_PUT",
    "METH_TRACE",
    "RDP_COOKIE",
    "REQ_CONTENT",
    "TRUE",
    "WAIT_END",
];

/// The ACLs that a section has defined so far.
#[derive(Debug, Default)]
pub(super) struct Acls {
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
    pub(super) fn define(&mut self, name: &str, is_open: bool) {
        self.open |= is_open;
        self.names.insert(name.to_owned());
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.open || PREDEFINED.contains(&name) || self.names.contains(name)
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
