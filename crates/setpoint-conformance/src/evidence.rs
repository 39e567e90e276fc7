//! What is looked at in a difference to tell its reason.

use serde_json::Value as Json;

use setpoint_haproxy::model::spelling::{one_word, split};
use setpoint_haproxy::table::directives;
use setpoint_haproxy::table::units::read_time;

use crate::Difference;
use crate::case::without_zeros;

/// Collects what some JSON says: its texts and numbers, as text.
fn leaves(json: &Json, into: &mut Vec<String>) {
    match json {
        Json::String(text) => into.push(text.clone()),
        Json::Number(number) if number.as_i64() == Some(0) => {}
        Json::Number(number) => into.push(number.to_string()),
        Json::Array(values) => values.iter().for_each(|value| leaves(value, into)),
        Json::Object(properties) => properties.values().for_each(|value| leaves(value, into)),
        Json::Null | Json::Bool(_) => {}
    }
}

/// Counts what some JSON says that some lines say, too.
fn stated_count(json: &Json, lines: &[String]) -> usize {
    let mut all = Vec::new();
    leaves(json, &mut all);
    let decoded = |line: &String| split(line).map_or_else(|| line.clone(), |words| words.join(" "));
    let text = lines.iter().map(decoded).chain(lines.iter().cloned()).collect::<Vec<_>>().join("\n");
    let parts: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let number = |leaf: &str| leaf.bytes().all(|byte| byte.is_ascii_digit());
    all.iter()
        .filter(
            |leaf| if number(leaf) { parts.contains(&leaf.as_str()) } else { text.contains(leaf.as_str()) },
        )
        .count()
}

/// Returns whether our text says more of what was sent.
pub(crate) fn keeps_more(difference: &Difference) -> bool {
    matches!(&difference.text, Some((theirs, Ok(ours))) if stated_count(&difference.sent, ours) > stated_count(&difference.sent, theirs))
}

/// Returns whether the model reads in what the original wrote just what was sent, and the original something else.
pub(crate) fn is_misread(difference: &Difference) -> bool {
    difference.kind == crate::Kind::Model
        && difference.text.is_none()
        && without_zeros(&difference.reread) == without_zeros(&difference.sent)
}

/// Returns whether the original reads back what its text does not say, and the model no more than that.
pub(crate) fn is_unwritten(difference: &Difference) -> bool {
    let Some((theirs, ours)) = &difference.read else { return false };
    let count = |json: &Json| {
        let mut all = Vec::new();
        leaves(json, &mut all);
        all.len()
    };
    difference.kind == crate::Kind::Model
        && !ours.is_null()
        && stated_count(theirs, &difference.recorded) < count(theirs)
        && contains(theirs, ours)
}

/// Returns whether one JSON holds all that another does.
pub(crate) fn contains(whole: &Json, part: &Json) -> bool {
    match (whole, part) {
        (Json::Object(whole), Json::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        (Json::Array(whole), Json::Array(part)) => {
            part.len() <= whole.len()
                && part.iter().all(|part| whole.iter().any(|whole| contains(whole, part)))
        }
        (_, Json::Null) => true,
        (whole, part) => whole == part,
    }
}

/// Decodes each text.
pub(crate) fn unquoted(json: &Json) -> Json {
    match json {
        Json::String(text) => Json::from(split(text).map_or_else(|| text.clone(), |words| words.join(" "))),
        Json::Array(values) => Json::Array(values.iter().map(unquoted).collect()),
        Json::Object(properties) => {
            Json::Object(properties.iter().map(|(name, value)| (name.clone(), unquoted(value))).collect())
        }
        json => json.clone(),
    }
}

/// Returns whether all that differs are times that one side takes for seconds and the other for milliseconds.
pub(crate) fn is_in_seconds(difference: &Difference) -> bool {
    fn read(theirs: &Json, ours: &Json) -> bool {
        match (theirs, ours) {
            _ if theirs == ours => true,
            (Json::Number(theirs), Json::Number(ours)) => {
                theirs.as_i64().zip(ours.as_i64()).is_some_and(|(theirs, ours)| theirs * 1000 == ours)
            }
            (Json::Object(theirs), Json::Object(ours)) => {
                theirs.len() == ours.len()
                    && theirs
                        .iter()
                        .all(|(name, theirs)| ours.get(name).is_some_and(|ours| read(theirs, ours)))
            }
            (Json::Array(theirs), Json::Array(ours)) => {
                theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(theirs, ours)| read(theirs, ours))
            }
            _ => false,
        }
    }
    let written = |(theirs, ours): (&str, &str)| {
        theirs == ours
            || theirs.parse().is_ok_and(|milliseconds: i64| read_time(ours, 1) == Some(milliseconds))
    };
    let text = match &difference.text {
        None => true,
        Some((_, Err(_))) => false,
        Some((theirs, Ok(ours))) => {
            let (theirs, ours) = (theirs.join(" "), ours.join(" "));
            let (theirs, ours): (Vec<_>, Vec<_>) =
                (theirs.split_whitespace().collect(), ours.split_whitespace().collect());
            theirs.len() == ours.len() && theirs.into_iter().zip(ours).all(written)
        }
    };
    text && difference.read.as_ref().is_none_or(|(theirs, ours)| read(theirs, ours))
}

/// Returns whether each line that the model keeps as text has a word that is nowhere in what the original reads.
pub(crate) fn drops_words(difference: &Difference) -> bool {
    let Some((theirs, ours)) = &difference.read else { return false };
    let (mut cut, mut others) = (0, 0);
    differing_pairs(theirs, ours, &mut |theirs, ours| match (theirs, ours) {
        (Json::String(theirs), Json::String(ours)) if ours.starts_with(&format!("{theirs} ")) => cut += 1,
        _ => others += 1,
    });
    if cut > 0 && others == 0 {
        return true;
    }
    !difference.unmodelled.is_empty()
        && difference.unmodelled.iter().all(|line| is_cut(difference, line))
        && contains(theirs, ours)
}

/// Returns whether HAProxy refuses the text, and all that the model keeps as text are lines that `check` blames, or of which the
/// original drops a part.
pub(crate) fn is_blamed(difference: &Difference) -> bool {
    let is_explained = |line: &String| difference.blamed.contains(line) || is_cut(difference, line);
    difference.accepted == Some(false)
        && !difference.blamed.is_empty()
        && difference.unmodelled.iter().all(is_explained)
}

/// Returns whether something stands right after the parentheses of `usesrc hdr_ip(…)`.
pub(crate) fn has_text_after_hdr_ip(line: &str) -> bool {
    let after = line.split_once("usesrc hdr_ip(").and_then(|(_, rest)| rest.split_once(')'));
    after.is_some_and(|(_, after)| after.starts_with(|c: char| !c.is_whitespace()))
}

/// Returns whether a line has a word that is nowhere in what the original reads.
fn is_cut(difference: &Difference, line: &str) -> bool {
    let Some((theirs, _)) = &difference.read else { return false };
    let mut read = Vec::new();
    leaves(theirs, &mut read);
    let words = split(line).unwrap_or_default();
    let mut rest = words.iter().skip(1).flat_map(|word| word.split(|c: char| !c.is_ascii_alphanumeric()));
    rest.any(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic()) && !read.iter().any(|leaf| leaf.contains(part))
    })
}

/// Returns whether two sides say the same of everything that both say something of.
pub(crate) fn agree_on_what_both_read(theirs: &Json, ours: &Json) -> bool {
    match (theirs, ours) {
        (Json::Object(theirs), Json::Object(ours)) => theirs
            .iter()
            .all(|(name, theirs)| ours.get(name).is_none_or(|ours| agree_on_what_both_read(theirs, ours))),
        (Json::Array(theirs), Json::Array(ours)) if theirs.len() == ours.len() => {
            theirs.iter().zip(ours).all(|(theirs, ours)| agree_on_what_both_read(theirs, ours))
        }
        (Json::Array(_), Json::Array(_)) => contains(theirs, ours) || contains(ours, theirs),
        // A line that is kept as text is read by nobody.
        (_, Json::Null) => true,
        (theirs, ours) => theirs == ours,
    }
}

/// Returns whether both write the same but for words that forbid versions of TLS.
pub(crate) fn differs_in_tls_versions(difference: &Difference) -> bool {
    let Some((theirs, Ok(ours))) = &difference.text else { return false };
    let others = |lines: &[String]| {
        let words = lines.iter().flat_map(|line| line.split_whitespace());
        words
            .filter(|word| !word.starts_with("no-tlsv1") && *word != "no-sslv3")
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    others(theirs) == others(ours)
}

/// Returns whether all that the original writes and the model does not are keywords without a value.
pub(crate) fn has_bare_lines(difference: &Difference) -> bool {
    let Some((theirs, Ok(ours))) = &difference.text else { return false };
    let extra: Vec<&String> = theirs.iter().filter(|line| !ours.contains(line)).collect();
    extra.iter().all(|line| line.split_whitespace().count() == 1) && extra.len() + ours.len() == theirs.len()
}

/// Returns whether some JSON holds something that says nothing.
pub(crate) fn has_nothing(json: &Json) -> bool {
    let says_nothing = |json: &Json| match json {
        Json::String(text) => text.is_empty(),
        Json::Object(properties) => properties.is_empty(),
        _ => false,
    };
    match json {
        Json::Array(values) => values.iter().any(|value| says_nothing(value) || has_nothing(value)),
        Json::Object(properties) => {
            properties.values().any(|value| says_nothing(value) || has_nothing(value))
        }
        _ => false,
    }
}

/// Returns whether both write the same words, but for quotes that only one puts.
pub(crate) fn is_quoted(difference: &Difference) -> bool {
    let Some((theirs, Ok(ours))) = &difference.text else { return false };
    let same = |(ours, theirs): (&String, &String)| {
        let words: Vec<&str> = theirs.split_whitespace().collect();
        let decoded = split(ours).unwrap_or_default();
        ours == theirs
            || decoded.join(" ").split_whitespace().collect::<Vec<_>>() == words
            || split(theirs).is_some_and(|theirs| theirs == decoded)
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
}

/// Returns whether what the original reads holds a text that is not the one word it should be.
pub(crate) fn is_several_words(difference: &Difference) -> bool {
    let Some((theirs, ours)) = &difference.read else { return false };
    let mut found = false;
    differing_texts(theirs, ours, "", &mut |name, text| {
        found |= split(text).is_none()
            || (text.contains(' ') && one_word(text) != text && !directives().takes_words(name));
    });
    found
}

/// Calls a function for each pair of values that differ at the same place.
fn differing_pairs<'j>(theirs: &'j Json, ours: &'j Json, each: &mut dyn FnMut(&'j Json, &'j Json)) {
    match (theirs, ours) {
        _ if theirs == ours => {}
        (Json::Object(theirs), Json::Object(ours)) if theirs.len() == ours.len() => {
            for (name, theirs) in theirs {
                differing_pairs(theirs, ours.get(name).unwrap_or(&Json::Null), each);
            }
        }
        (Json::Array(theirs), Json::Array(ours)) if theirs.len() == ours.len() => {
            theirs.iter().zip(ours).for_each(|(theirs, ours)| differing_pairs(theirs, ours, each));
        }
        (theirs, ours) => each(theirs, ours),
    }
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
