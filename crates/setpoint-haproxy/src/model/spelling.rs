//! How a value is spelled in the text: one word or several, with quotes where it needs them.
//!
//! The API's JSON holds texts as they are spelled, quotes included. So a text that is fine as it is stays untouched, and
//! only what would fall apart or vanish (a blank, a lone quote, the start of a comment) is put in quotes.

use std::borrow::Cow;

use crate::text::lex;

/// Splits a spelling into its decoded words; `None` where HAProxy would refuse it, or where a comment starts in it.
pub fn split(text: &str) -> Option<Vec<String>> {
    let line = text.as_bytes();
    if text.contains(['\n', '\r', '\0']) {
        return None;
    }
    let (mut words, mut at) = (Vec::new(), 0);
    while let Some(span) = lex::scan(line, at) {
        if span.error.is_some() {
            return None;
        }
        words.push(lex::word(line, &span).to_str_lossy().into_owned());
        at = span.end;
    }
    // What is left begins a comment.
    (lex::skip_spaces(line, at) == line.len()).then_some(words)
}

/// Returns whether two different spellings mean the same words.
pub(crate) fn same_words(a: &str, b: &str) -> bool {
    let special = |text: &str| text.bytes().any(|byte| matches!(byte, b'"' | b'\'' | b'\\' | b' ' | b'\t'));
    // A variable inside of double quotes is expanded, so that there quotes make a difference.
    if a.contains('$') || b.contains('$') || !(special(a) || special(b)) {
        return false;
    }
    matches!((split(a), split(b)), (Some(a), Some(b)) if a == b)
}

/// Returns whether a text is one word that needs neither quotes nor escapes.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte > b' ' && !matches!(byte, b'"' | b'\'' | b'\\' | b'#' | b'$'))
}

/// Spells a text as one word, with quotes only if it is not one already.
pub fn one_word(text: &str) -> Cow<'_, str> {
    if is_plain(text) || split(text).is_some_and(|words| words.len() == 1) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(quoted(text))
    }
}

/// Spells a text as words, or as one in quotes if it would not be read as words.
pub(crate) fn words(text: &str) -> Cow<'_, str> {
    if split(text).is_some_and(|words| !words.is_empty()) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(quoted(text))
    }
}

/// Puts a text in double quotes; what is in quotes already, and can't be read only for a dollar, gets it escaped.
fn quoted(text: &str) -> String {
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let text = inside.filter(|inside| !inside.contains(['"', '\\'])).unwrap_or(text);
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' | '$' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_one_word_stays_as_it_is() {
        for word in ["a", "%[src]", "\"two words\"", "a\\ b", "'it is'", "back\\slash"] {
            assert_eq!(one_word(word), word);
        }
    }

    #[test]
    fn what_would_fall_apart_is_quoted() {
        assert_eq!(one_word("two words"), "\"two words\"");
        assert_eq!(one_word("it's"), "\"it's\"");
        assert_eq!(one_word("a#b"), "\"a#b\"");
        assert_eq!(one_word("say \"hi\""), "\"say \\\"hi\\\"\"");
        assert_eq!(one_word(""), "\"\"");
        assert_eq!(one_word("\"^a b$\""), "\"^a b\\$\"", "no name follows the dollar");
    }

    #[test]
    fn quoting_survives_reading() {
        for text in ["two words", "it's", "a#b", "say \"hi\"", "tab\there", "a\\", "100% $sure"] {
            let spelled = one_word(text);
            assert_eq!(split(&spelled), Some(vec![text.to_owned()]), "{spelled}");
        }
    }

    #[test]
    fn quotes_that_change_nothing_compare_equal() {
        assert!(same_words("\"a\"", "a"));
        assert!(same_words("a  b", "a b"));
        assert!(!same_words("a", "b"));
        assert!(!same_words("\"${A}\"", "${A}"));
    }
}
