//! Why the model differs from the original where it does: one row for each reason.

use serde_json::Value as Json;

use super::Difference;
use crate::model::spelling::one_word;

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
        name: "quoted",
        why: "The original writes a text with a blank, a quote or a # as it is, so that HAProxy sees other words; \
              the model puts it in quotes.",
        applies: is_quoted,
    },
];

/// Calls a function for each text in some JSON.
fn texts<'j>(json: &'j Json, each: &mut dyn FnMut(&'j str)) {
    match json {
        Json::String(text) => each(text),
        Json::Array(values) => values.iter().for_each(|value| texts(value, each)),
        Json::Object(properties) => properties.values().for_each(|value| texts(value, each)),
        _ => {}
    }
}

/// Says whether both write the same but for texts that would fall apart without quotes.
fn is_quoted(difference: &Difference) -> bool {
    let Some((theirs, Ok(ours))) = &difference.text else { return false };
    let mut unquoted = ours.join("\n");
    let mut quoted = 0;
    texts(&difference.sent, &mut |text| {
        let spelled = one_word(text);
        if spelled != text && unquoted.contains(spelled.as_ref()) {
            unquoted = unquoted.replace(spelled.as_ref(), text);
            quoted += 1;
        }
    });
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    quoted > 0 && words(&unquoted) == words(&theirs.join("\n"))
}
