//! Sample expressions: a fetch and the converters after it, such as `req.hdr(host),lower,field(1,:)`.
//!
//! Names and types are those that HAProxy lists; only what it surely refuses is complained of.

use super::calls::Call;
use super::limits::Complaint;
use super::{Row, accepted};
use crate::keywords::{ALL_STAGES, Knowledge, Place, SampleType, knowledge_of, signature, stages_of};
use crate::model::{Edition, ObjectKind, Version};

/// What begins the names of all that Lua registers, which only Lua knows.
pub(crate) const LUA: &str = "lua.";

/// What an expression stands in: which HAProxy reads it, and when it is evaluated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleContext {
    pub(crate) version: Version,
    pub(crate) edition: Edition,
    /// The rules in which it is evaluated, as bits in the order in which HAProxy lists them.
    pub(crate) stages: u32,
}

impl SampleContext {
    /// Returns whether a word is known in one of some places. The enterprise edition has words that are not listed.
    pub(crate) fn knows(self, places: &[Place], word: &str) -> bool {
        let known = |place: &Place| matches!(knowledge_of(*place, word, self.version), Knowledge::Known);
        self.edition == Edition::Enterprise || word.starts_with(LUA) || places.iter().any(known)
    }
}

/// When the expressions of a line are evaluated, by the names that rows use for it: the bit of a frontend's, and of a
/// backend's.
#[derive(Debug)]
pub(crate) struct Stage {
    name: &'static str,
    frontend: u8,
    backend: u8,
    /// Whether HAProxy reads the expressions where a proxy takes the line over, and not where it stands.
    pub(crate) is_late: bool,
}

const fn stage(name: &'static str, frontend: u8, backend: u8) -> Stage {
    Stage { name, frontend, backend, is_late: false }
}

const STAGES: [Stage; 10] = [
    stage("connection", 0, 0),
    stage("session", 1, 1),
    stage("content", 2, 6),
    stage("http-request", 3, 7),
    stage("response-content", 15, 11),
    stage("http-response", 16, 12),
    stage("check", 19, 19),
    stage("configuration", 20, 20),
    Stage { is_late: true, ..stage("log", 18, 18) },
    Stage { is_late: true, ..stage("unique-id", 3, 7) },
];

impl Stage {
    /// Finds what rows call by a name.
    pub(super) fn by_name(name: &str) -> Option<&'static Self> {
        STAGES.iter().find(|stage| stage.name == name)
    }

    fn bits(&self, section: Option<ObjectKind>) -> u32 {
        match section {
            Some(ObjectKind::Frontend) => 1 << self.frontend,
            Some(ObjectKind::Backend) => 1 << self.backend,
            _ => 1 << self.frontend | 1 << self.backend,
        }
    }
}

/// Returns when a line of a row is evaluated in a section.
pub(crate) fn stages(row: &Row, section: Option<ObjectKind>) -> u32 {
    row.attributes.stage.map_or(ALL_STAGES, |stage| stage.bits(section))
}

/// Returns what is wrong with the words of an expression, if something is.
pub(super) fn expression(words: &[String], sample_cx: SampleContext) -> Option<Complaint> {
    let (first, rest) = words.split_first()?;
    let mut given = match chain(first, &[Place::Fetch], End::Word, sample_cx) {
        Ok(given) => given,
        Err(complaint) => return Some(complaint),
    };
    // What follows in words of their own are converters, as long as there are any.
    for word in rest {
        if !sample_cx.knows(&[Place::Converter], Call::read(word).name) {
            return Some(Complaint {
                word: Some(word.clone()),
                ..Complaint::new(format!("`{word}` is no part of the expression before it"))
            });
        }
        match converters(word, given, End::Word, sample_cx) {
            Ok(ty) => given = ty,
            Err(complaint) => return Some(complaint),
        }
    }
    None
}

/// Returns what is wrong with the expression that some words begin with, if something is.
pub(super) fn leading(words: &[String], sample_cx: SampleContext) -> Option<Complaint> {
    let is_part = |word: &&String| sample_cx.knows(&[Place::Converter], Call::read(word).name);
    let rest = words.get(1..).unwrap_or_default().iter().take_while(is_part).count();
    expression(words.get(..=rest)?, sample_cx)
}

/// Returns what is wrong with the first word of what an ACL compares, if something is: it may be a keyword of ACLs, too.
pub(crate) fn criterion(words: &[String], sample_cx: SampleContext) -> Option<Complaint> {
    // An ACL that can't be evaluated never matches, of which HAProxy only warns.
    let sample_cx = SampleContext { stages: ALL_STAGES, ..sample_cx };
    chain(words.first()?, &[Place::Fetch, Place::Criterion], End::Word, sample_cx).err()
}

/// Returns the type of what a criterion gives, if that is known.
pub(super) fn given_by(criterion: &str, sample_cx: SampleContext) -> Option<SampleType> {
    let sample_cx = SampleContext { stages: ALL_STAGES, ..sample_cx };
    let given = chain(criterion, &[Place::Fetch, Place::Criterion], End::Word, sample_cx).ok()?;
    let call = Call::read(criterion);
    let signature = signature(Place::Fetch, call.name).filter(|_| call.rest.is_empty());
    Some(signature.and_then(|signature| signature.compared).unwrap_or(given))
}

/// Finds a flag of an ACL that HAProxy does not know, among the words after what it compares: which word it is, and why.
pub(crate) fn unknown_flag(words: &[impl AsRef<str>], version: Version) -> Option<(usize, Complaint)> {
    let mut at = 0;
    while let Some(word) = words.get(at).map(AsRef::as_ref).filter(|word| word.starts_with('-')) {
        let next = words.get(at + 1).map(AsRef::as_ref).unwrap_or_default();
        at += match word {
            "--" => return None,
            "-m" if !accepted().has_word("match-method", next, version) && !next.contains('$') => {
                let known = accepted().list("match-method", version);
                return Some((at + 1, Complaint::one_of("the method", next, &known)));
            }
            "-m" | "-f" | "-u" => 2,
            "-i" | "-n" | "-M" => 1,
            flag => {
                let why = format!("`{flag}` is no flag of an ACL");
                let hint = Some("write `--` before a pattern that begins with a `-`".to_owned());
                return Some((at, Complaint { word: Some(flag.to_owned()), hint, ..Complaint::new(why) }));
            }
        };
    }
    None
}

/// Returns what is wrong with the expressions in a format such as `%[src]:%[src_port]`, if something is.
pub(super) fn format(words: &[String], sample_cx: SampleContext) -> Option<Complaint> {
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
            if after.starts_with('{') {
                return Some(Complaint::new(format!("`%{after}` has no `}}`")));
            }
            if let Some(text) = after.strip_prefix('[') {
                if let Err(complaint) = chain(text, &[Place::Fetch], End::Bracket, sample_cx) {
                    return Some(complaint);
                }
                // What stands in brackets may hold a `%` itself.
                match bracketed(text) {
                    Some(after) => rest = after,
                    None => return Some(Complaint::new(format!("`%[{text}` has no `]`"))),
                }
                continue;
            }
            if let Some(complaint) = alias(after, sample_cx.version) {
                return Some(complaint);
            }
        }
        None
    })
}

/// Returns what is wrong with what follows a `%` in a format, if something is.
fn alias(text: &str, version: Version) -> Option<Complaint> {
    let end = text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    let name = text.get(..end).unwrap_or_default();
    let known = match text.bytes().next() {
        Some(byte) if byte.is_ascii_alphabetic() => accepted().has_word("format-alias", name, version),
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
        known: Vec::new(),
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

/// Where an expression ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// With its word.
    Word,
    /// With the bracket that closes it in a format.
    Bracket,
}

impl End {
    /// Returns what follows a call after a comma, if something does.
    fn next<'t>(self, call: &Call<'t>) -> Result<Option<&'t str>, Complaint> {
        if let Some(after) = call.rest.strip_prefix(',') {
            return Ok(Some(after.trim_start_matches(',')));
        }
        if call.rest.is_empty() || self == Self::Bracket && call.rest.starts_with(']') {
            return Ok(None);
        }
        let why = format!("`{}` follows `{}`, and no comma is between them", call.rest, call.name);
        Err(Complaint { word: Some(call.rest.to_owned()), ..Complaint::new(why) })
    }
}

/// Looks up the names of one word: a fetch, and converters after commas. Returns the type of what it gives.
fn chain(word: &str, first: &[Place], end: End, sample_cx: SampleContext) -> Result<SampleType, Complaint> {
    let call = Call::read(word);
    if !sample_cx.knows(first, call.name) {
        return Err(Complaint::unknown("sample fetch", call.name, first, sample_cx.version));
    }
    if stages_of(call.name) & sample_cx.stages == 0 {
        return Err(Complaint {
            word: Some(call.name.to_owned()),
            ..Complaint::new(format!("`{}` has nothing to fetch in such a rule", call.name))
        });
    }
    let signature = signature(Place::Fetch, call.name);
    if let Some(complaint) =
        signature.and_then(|signature| call.wrong_arguments(signature, sample_cx.version))
    {
        return Err(complaint);
    }
    let given = signature.map_or(SampleType::Any, |signature| signature.gives);
    match end.next(&call)? {
        Some(rest) => converters(rest, given, end, sample_cx),
        None => Ok(given),
    }
}

/// Looks up converters that are applied to something one after the other. Returns the type of what they give.
fn converters(
    text: &str,
    mut given: SampleType,
    end: End,
    sample_cx: SampleContext,
) -> Result<SampleType, Complaint> {
    let mut rest = text.trim_start_matches(',');
    while !(rest.is_empty() || end == End::Bracket && rest.starts_with(']')) {
        let call = Call::read(rest);
        if !sample_cx.knows(&[Place::Converter], call.name) {
            return Err(Complaint::unknown("converter", call.name, &[Place::Converter], sample_cx.version));
        }
        match signature(Place::Converter, call.name) {
            None => given = SampleType::Any,
            Some(signature) => {
                if let Some(complaint) = call.wrong_arguments(signature, sample_cx.version) {
                    return Err(complaint);
                }
                if !given.casts_to(signature.takes) {
                    let why = format!("`{}` can't be applied to what stands before it", call.name);
                    return Err(Complaint { word: Some(call.name.to_owned()), ..Complaint::new(why) });
                }
                if signature.gives != SampleType::Same {
                    given = signature.gives;
                }
            }
        }
        match end.next(&call)? {
            Some(after) => rest = after,
            None => break,
        }
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE_CX: SampleContext =
        SampleContext { version: Version::V3_4, edition: Edition::Community, stages: ALL_STAGES };

    fn wrong_in(text: &str, sample_cx: SampleContext) -> Option<String> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        expression(&words, sample_cx).map(|complaint| complaint.word.unwrap_or_default())
    }

    fn wrong(text: &str) -> Option<String> {
        wrong_in(text, SAMPLE_CX)
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
        assert_eq!(wrong("path,").as_deref(), None);
        assert_eq!(wrong("str(a),regsub(x,')'),lowre").as_deref(), Some("lowre"));
    }

    #[test]
    fn what_a_converter_takes_is_what_was_given_before() {
        for fine in
            ["path,length", "src,ipmask(24),lower", "bin(00),hex,length", "str(1),add(1)", "method,lower"]
        {
            assert_eq!(wrong(fine), None, "{fine}");
        }
        assert_eq!(wrong("bin(00),add(1)").as_deref(), Some("add"));
        assert_eq!(wrong("always_true,ipmask(24)").as_deref(), Some("ipmask"));
    }

    #[test]
    fn converters_may_be_words_of_their_own() {
        assert_eq!(wrong("src ipmask(24)"), None);
        assert_eq!(wrong("src words").as_deref(), Some("words"));
    }

    #[test]
    fn formats_hold_expressions() {
        let wrong = |text: &str| format(&[text.to_owned()], SAMPLE_CX).and_then(|complaint| complaint.word);
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
        let stages = |name: &str, section| Stage::by_name(name).unwrap().bits(Some(section));
        let response = SampleContext { stages: stages("http-response", ObjectKind::Frontend), ..SAMPLE_CX };
        assert_eq!(wrong_in("path,lower", response).as_deref(), Some("path"));
        assert_eq!(wrong_in("res.hdr(server)", response), None);
        let request = SampleContext { stages: stages("http-request", ObjectKind::Backend), ..SAMPLE_CX };
        assert_eq!(wrong_in("path,lower", request), None);
    }

    #[test]
    fn the_enterprise_edition_has_words_that_are_not_listed() {
        assert_eq!(wrong_in("srcc", SampleContext { edition: Edition::Enterprise, ..SAMPLE_CX }), None);
    }
}
