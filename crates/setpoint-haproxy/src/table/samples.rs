//! Sample expressions: a fetch and the converters after it, such as `req.hdr(host),lower,field(1,:)`.
//!
//! Only names are looked up, and only what HAProxy surely refuses is complained of: what stands in parentheses depends on
//! the fetch or the converter, and is not looked at.

use super::limits::Complaint;
use crate::keywords::{ALL_STAGES, Knowledge, Place, knowledge_of, stages_of};
use crate::model::{Edition, ObjectKind, Version};

/// What begins the names of all that Lua registers, which only Lua knows.
pub(crate) const LUA: &str = "lua.";

/// What an expression stands in: which HAProxy reads it, and when it is evaluated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) version: Version,
    pub(crate) edition: Edition,
    /// The rules in which it is evaluated, as bits in the order in which HAProxy lists them.
    pub(crate) stages: u32,
}

impl Scene {
    /// Says whether a word is known in one of some places. The enterprise edition has words that are not listed.
    pub(crate) fn knows(self, places: &[Place], word: &str) -> bool {
        let known = |place: &Place| matches!(knowledge_of(*place, word, self.version), Knowledge::Known);
        self.edition == Edition::Enterprise || word.starts_with(LUA) || places.iter().any(known)
    }
}

/// The rules that evaluate expressions, by the words their lines begin with: the bit of a frontend's, and of a backend's.
const STAGES: [(&str, u8, u8); 11] = [
    ("tcp-request connection", 0, 0),
    ("tcp-request session", 1, 1),
    ("tcp-request content", 2, 6),
    ("http-request", 3, 7),
    ("tcp-response content", 15, 11),
    ("http-response", 16, 12),
    ("http-after-response", 16, 12),
    ("http-check", 19, 19),
    ("tcp-check", 19, 19),
    ("set-var", 20, 20),
    ("set-var-fmt", 20, 20),
];

/// Finds when a line that begins with some words is evaluated in a section.
pub(crate) fn stages(start: &str, section: Option<ObjectKind>) -> u32 {
    let begins =
        |words: &str| start.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    let Some((_, frontend, backend)) = STAGES.iter().find(|row| begins(row.0)) else { return ALL_STAGES };
    match section {
        Some(ObjectKind::Frontend) => 1 << frontend,
        Some(ObjectKind::Backend) => 1 << backend,
        _ => 1 << frontend | 1 << backend,
    }
}

/// Says what is wrong with the words of an expression, if something is.
pub(super) fn expression(words: &[String], scene: Scene) -> Option<Complaint> {
    let (first, rest) = words.split_first()?;
    if let Some(complaint) = chain(first, &[Place::Fetch], scene) {
        return Some(complaint);
    }
    // What follows in words of their own are converters, as long as there are any.
    rest.iter().find_map(|word| {
        let (name, after) = term(word);
        if !scene.knows(&[Place::Converter], name) {
            return Some(Complaint {
                word: Some(word.clone()),
                ..Complaint::new(format!("`{word}` is no part of the expression before it"))
            });
        }
        converters(after, scene)
    })
}

/// Says what is wrong with the expression that some words begin with, if something is.
pub(super) fn leading(words: &[String], scene: Scene) -> Option<Complaint> {
    let is_part = |word: &&String| scene.knows(&[Place::Converter], term(word).0);
    let rest = words.get(1..).unwrap_or_default().iter().take_while(is_part).count();
    expression(words.get(..=rest)?, scene)
}

/// Says what is wrong with the first word of what an ACL compares, if something is: it may be a keyword of ACLs, too.
pub(crate) fn criterion(words: &[String], scene: Scene) -> Option<Complaint> {
    // An ACL that can't be evaluated never matches, of which HAProxy only warns.
    let scene = Scene { stages: ALL_STAGES, ..scene };
    chain(words.first()?, &[Place::Fetch, Place::Criterion], scene)
}

/// Says what is wrong with the expressions in a format such as `%[src]:%[src_port]`, if something is.
pub(super) fn format(words: &[String], scene: Scene) -> Option<Complaint> {
    words.iter().find_map(|word| {
        let mut rest = word.as_str();
        while let Some((_, after)) = rest.split_once('%') {
            rest = after;
            if let Some(after) = after.strip_prefix('%') {
                rest = after;
                continue;
            }
            // A name in parentheses and flags in braces may stand between.
            let after = skip(skip(after, '(', ')'), '{', '}');
            if let Some(text) = after.strip_prefix('[') {
                if let Some(complaint) = chain(text, &[Place::Fetch], scene) {
                    return Some(complaint);
                }
                // What stands in brackets may hold a `%` itself.
                match bracketed(text) {
                    Some(after) => rest = after,
                    None => return Some(Complaint::new(format!("`%[{text}` has no `]`"))),
                }
                continue;
            }
            if let Some(complaint) = alias(after) {
                return Some(complaint);
            }
        }
        None
    })
}

/// What formats can tell of a request, by the names that follow a `%`.
const ALIASES: [&str; 66] = [
    "o", "OG", "B", "CC", "CS", "H", "ID", "ST", "T", "Ta", "Tc", "Th", "Ti", "Tl", "Tq", "Tr", "TR", "Td",
    "Ts", "Tt", "Tu", "Tw", "U", "ac", "b", "bc", "bi", "bp", "bq", "ci", "cp", "f", "fc", "fi", "fp", "ft",
    "hr", "hrl", "hs", "hsl", "HM", "HP", "HPO", "HQ", "HU", "HV", "lc", "ms", "pid", "r", "rc", "rt", "s",
    "sc", "si", "sp", "sq", "sslc", "sslv", "t", "tr", "trg", "trl", "ts", "tsc", "F",
];

/// Says what is wrong with what follows a `%` in a format, if something is.
fn alias(text: &str) -> Option<Complaint> {
    let end = text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    let name = text.get(..end).unwrap_or_default();
    let known = match text.bytes().next() {
        Some(byte) if byte.is_ascii_alphabetic() => ALIASES.contains(&name),
        // A lone `%` stands before nothing, a blank or a number.
        Some(byte) => byte != b' ' && !byte.is_ascii_digit(),
        None => false,
    };
    (!known).then(|| Complaint {
        why: if name.is_empty() {
            "a `%` that nothing follows".to_owned()
        } else {
            format!("HAProxy has no `%{name}` in formats")
        },
        word: Some(format!("%{name}")),
        hint: Some("write `%%` for a percent sign".to_owned()),
    })
}

/// Finds what follows the bracket that closes an expression.
fn bracketed(text: &str) -> Option<&str> {
    let (mut quote, mut escaped) = (None, false);
    for (position, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            _ if escaped => escaped = false,
            (None | Some(b'"'), b'\\') => escaped = true,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None, b']') => return text.get(position + 1..),
            _ => {}
        }
    }
    // A quote that is not closed is a character like any other.
    text.split_once(']').map(|(_, after)| after)
}

/// Skips what stands between two characters.
fn skip(text: &str, open: char, close: char) -> &str {
    text.strip_prefix(open).and_then(|inside| inside.split_once(close)).map_or(text, |(_, after)| after)
}

/// Looks up the names of one word: a fetch, and converters after commas.
fn chain(word: &str, first: &[Place], scene: Scene) -> Option<Complaint> {
    let (name, after) = term(word);
    if !scene.knows(first, name) {
        return Some(Complaint::unknown("sample fetch", name, first, scene.version));
    }
    if stages_of(name) & scene.stages == 0 {
        return Some(Complaint {
            word: Some(name.to_owned()),
            ..Complaint::new(format!("`{name}` has nothing to fetch in such a rule"))
        });
    }
    converters(after, scene)
}

/// Looks up the converters after a term.
fn converters(mut rest: &str, scene: Scene) -> Option<Complaint> {
    while let Some(after) = rest.strip_prefix(',') {
        rest = after.trim_start_matches(',');
        if rest.is_empty() {
            break;
        }
        let (name, after) = term(rest);
        if !scene.knows(&[Place::Converter], name) {
            return Some(Complaint::unknown("converter", name, &[Place::Converter], scene.version));
        }
        rest = after;
    }
    None
}

/// Splits a name off, and what it has in parentheses.
fn term(text: &str) -> (&str, &str) {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b':');
    let end = text.bytes().position(|byte| !is_name(byte)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match rest.strip_prefix('(') {
        Some(inside) => (name, inside.get(closing(inside)..).unwrap_or_default()),
        None => (name, rest),
    }
}

/// Finds what follows the parenthesis that closes arguments, which may be in quotes and escaped.
fn closing(arguments: &str) -> usize {
    let (mut quote, mut escaped) = (None, false);
    for (position, byte) in arguments.bytes().enumerate() {
        match (quote, byte) {
            _ if escaped => escaped = false,
            (None | Some(b'"'), b'\\') => escaped = true,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None, b')') => return position + 1,
            _ => {}
        }
    }
    arguments.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: Scene = Scene { version: Version::V3_4, edition: Edition::Community, stages: ALL_STAGES };

    fn wrong_in(text: &str, scene: Scene) -> Option<String> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        expression(&words, scene).map(|complaint| complaint.word.unwrap_or_default())
    }

    fn wrong(text: &str) -> Option<String> {
        wrong_in(text, SCENE)
    }

    #[test]
    fn fetches_and_converters_are_looked_up_by_their_names() {
        let fine = [
            "src",
            "base32+src",
            "req.hdr(host),lower",
            "str(a),regsub(\"(x)\",\")\"),upper",
            "lua.any,lua.c",
        ];
        for text in fine {
            assert_eq!(wrong(text), None, "{text}");
        }
        assert_eq!(wrong("srcc").as_deref(), Some("srcc"));
        assert_eq!(wrong("src,lowre").as_deref(), Some("lowre"));
        assert_eq!(wrong("str(a),regsub(x,')'),lowre").as_deref(), Some("lowre"));
    }

    #[test]
    fn converters_may_be_words_of_their_own() {
        assert_eq!(wrong("src ipmask(24)"), None);
        assert_eq!(wrong("src words").as_deref(), Some("words"));
    }

    #[test]
    fn formats_hold_expressions() {
        let wrong = |text: &str| format(&[text.to_owned()], SCENE).and_then(|complaint| complaint.word);
        for fine in
            ["plain", "100%%[srcc]", "%ci:%cp", "%[src]:%{+Q}[req.hdr(a),lower] %(name)[src_port]", "%-"]
        {
            assert_eq!(wrong(fine), None, "{fine}");
        }
        assert_eq!(wrong("a-%[srcc]").as_deref(), Some("srcc"));
        assert_eq!(wrong("%ci %zz").as_deref(), Some("%zz"));
        assert_eq!(wrong("100%").as_deref(), Some("%"));
        assert_eq!(wrong("%[src] %{+Q}[src,lowre]").as_deref(), Some("lowre"));
    }

    #[test]
    fn a_fetch_needs_something_to_fetch() {
        let response = Scene { stages: stages("http-response set-var", Some(ObjectKind::Frontend)), ..SCENE };
        assert_eq!(wrong_in("path,lower", response).as_deref(), Some("path"));
        assert_eq!(wrong_in("res.hdr(server)", response), None);
        let request = Scene { stages: stages("http-request set-var", Some(ObjectKind::Backend)), ..SCENE };
        assert_eq!(wrong_in("path,lower", request), None);
    }

    #[test]
    fn the_enterprise_edition_has_words_that_are_not_listed() {
        assert_eq!(wrong_in("srcc", Scene { edition: Edition::Enterprise, ..SCENE }), None);
    }
}
