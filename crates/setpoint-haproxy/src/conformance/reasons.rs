//! Why the model differs from the original where it does: one row for each reason.

use serde_json::Value as Json;

use super::Difference;
use super::case::without_zeros;
use crate::model::spelling::{one_word, split};
use crate::table::directives;

/// A reason to differ from the original.
#[derive(Debug)]
pub struct Reason {
    /// A short name.
    pub name: &'static str,
    /// What the original does, and why the model does not.
    pub why: &'static str,
    /// Says whether a difference is of this kind.
    applies: fn(&Difference) -> bool,
}

impl Reason {
    /// Says whether this is the reason of a difference.
    pub fn explains(&self, difference: &Difference) -> bool {
        (self.applies)(difference)
    }
}

/// All reasons. The first that applies is counted.
pub const REASONS: &[Reason] = &[
    Reason {
        name: "refused",
        why: "HAProxy refuses what the original writes or keeps, so there is nothing to agree with.",
        applies: |difference| difference.accepted == Some(false),
    },
    Reason {
        name: "lost",
        why: "The original accepts something and then loses it, puts it elsewhere or reads it as something else; what the \
              model writes or reads is what was sent.",
        applies: |difference| difference.lost,
    },
    Reason {
        name: "empty",
        why: "An empty text, structure or element, or one of nothing but zeros, says nothing; the original writes a keyword \
              without a value for it.",
        applies: |difference| has_nothing(&difference.sent),
    },
    Reason {
        name: "quoted",
        why: "The original writes a text with a blank, a quote or a # as it is, so that HAProxy sees other words; the \
              model puts it in quotes.",
        applies: is_quoted,
    },
    Reason {
        name: "words",
        why: "The original reads as one value what are several words to HAProxy, or what ends in a comment; HAProxy takes \
              the first word and ignores the rest.",
        applies: is_several_words,
    },
];

/// Says whether some JSON holds something that says nothing.
fn has_nothing(json: &Json) -> bool {
    let says_nothing = |json: &Json| match json {
        Json::String(text) => text.is_empty(),
        json @ Json::Object(_) => without_zeros(json).as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    };
    match json {
        Json::Array(values) => values.iter().any(|value| says_nothing(value) || has_nothing(value)),
        Json::Object(properties) => properties.values().any(|value| says_nothing(value) || has_nothing(value)),
        _ => false,
    }
}

/// Says whether both write the same words, but for quotes that only the model puts.
fn is_quoted(difference: &Difference) -> bool {
    let Some((theirs, Ok(ours))) = &difference.text else { return false };
    let same = |(ours, theirs): (&String, &String)| {
        let words: Vec<&str> = theirs.split_whitespace().collect();
        let decoded = split(ours).unwrap_or_default().join(" ");
        ours == theirs || decoded.split_whitespace().collect::<Vec<_>>() == words
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
}

/// Says whether what the original reads holds a text that is not the one word it should be.
fn is_several_words(difference: &Difference) -> bool {
    let Some((theirs, ours)) = &difference.read else { return false };
    let mut found = false;
    differing_texts(theirs, ours, "", &mut |name, text| {
        found |= split(text).is_none() || (text.contains(' ') && one_word(text) != text && !directives().takes_words(name));
    });
    found
}

/// Calls a function for each text, with the name of its property, that is in one JSON and not at the same place of another.
fn differing_texts<'j>(theirs: &'j Json, ours: &Json, name: &'j str, each: &mut dyn FnMut(&'j str, &'j str)) {
    match theirs {
        _ if theirs == ours => {}
        Json::String(text) => each(name, text),
        Json::Array(values) => {
            for (position, value) in values.iter().enumerate() {
                differing_texts(value, ours.get(position).unwrap_or(&Json::Null), name, each);
            }
        }
        Json::Object(properties) => {
            for (name, value) in properties {
                differing_texts(value, ours.get(name).unwrap_or(&Json::Null), name, each);
            }
        }
        _ => {}
    }
}
