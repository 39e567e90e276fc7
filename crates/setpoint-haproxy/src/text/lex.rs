//! Words, by HAProxy's own rules.
//!
//! Each rule is held against the real HAProxy of each version by the tests in `tests/all/words.rs`.

use std::borrow::Cow;
use std::fmt::Write as _;

/// How many words a line may have.
pub const MAX_WORDS: usize = 64;

/// One word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// What it says: without quotes, with escapes resolved. An expansion of a variable is left as it is written.
    pub text: Cow<'a, [u8]>,
    /// How it is written.
    pub raw: &'a [u8],
    /// Where it begins in its line, in bytes, counted from 1.
    pub column: u32,
    /// Whether some of it is in quotes.
    pub quoted: bool,
    /// Whether it contains an expansion of a variable.
    pub variable: bool,
}

impl Word<'_> {
    /// Returns whether it says `other`; never so if a variable decides what it says.
    pub fn is(&self, other: &str) -> bool {
        !self.variable && *self.text == *other.as_bytes()
    }

    /// What it says, with bytes that are no UTF-8 replaced.
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }
}

/// What makes a line unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexErrorKind {
    /// A quote that is not closed.
    UnmatchedQuote,
    /// `\x` without two hexadecimal digits.
    BadHex,
    /// `$` inside double quotes that no name follows.
    BadVariable,
    /// `${` without its `}`.
    UnmatchedBrace,
    /// `[` inside `${…}` that is not `[*]`.
    BadExpansion,
    /// A NUL byte.
    Nul,
}

/// What makes a line unreadable, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexError {
    /// What is wrong.
    pub kind: LexErrorKind,
    /// Where, in bytes from the beginning of the line.
    pub at: usize,
}

/// The words of a line, split and decoded one after the other.
///
/// - Blanks separate words, outside of quotes.
/// - An unquoted `#` begins a comment, also in mid-word.
/// - Inside single quotes everything is literal. Elsewhere `\` escapes a blank, `\`, `#`, and both quotes; `\t`, `\n`,
///   `\r` and `\xHH` are bytes; before anything else `\` stands for itself.
/// - Inside double quotes `$NAME`, `${NAME}`, `${NAME-default}` and `${NAME[*]}` are expansions, and `\$` is a dollar.
/// - A carriage return ends the line.
///
/// A line that can't be read ends with a word that holds the rest of it as it is written. Empty words at the end are
/// nothing to HAProxy, and are not given.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    line: &'a [u8],
    at: usize,
    /// Up to here an empty word is known to have a word with content after it.
    filled: usize,
}

/// One word as it lies in its line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) quoted: bool,
    pub(crate) escaped: bool,
    pub(crate) variable: bool,
    pub(crate) error: Option<LexError>,
}

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Self { line, at: 0, filled: 0 }
    }

    /// The place after the last word that was given, in bytes from the beginning of the line.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns whether a word with content comes after `at`; remembers where.
    fn content_follows(&mut self, at: usize) -> bool {
        let mut next = at;
        while let Some(span) = scan(self.line, next) {
            if !word(self.line, &span).text.is_empty() {
                self.filled = span.start;
                return true;
            }
            next = span.end;
        }
        false
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let span = scan(self.line, self.at)?;
        let found = word(self.line, &span);
        self.at = span.end;
        if found.text.is_empty() && span.start >= self.filled && !self.content_follows(span.end) {
            self.at = self.line.len();
            return None;
        }
        Some(found)
    }
}

/// Decodes a word of a line.
pub(crate) fn word<'a>(line: &'a [u8], span: &Span) -> Word<'a> {
    let raw = line.get(span.start..span.end).unwrap_or_default();
    let plain = span.error.is_some() || !(span.quoted || span.escaped);
    Word {
        text: if plain { Cow::Borrowed(raw) } else { Cow::Owned(decode(raw)) },
        raw,
        column: u32::try_from(span.start).unwrap_or(u32::MAX).saturating_add(1),
        quoted: span.quoted,
        variable: span.variable,
    }
}

/// What C calls a space.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Whether a byte means more than itself in a word.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let special = b"\0\t\n\x0b\x0c\r \"#$'\\";
    let mut i = 0;
    while i < special.len() {
        table[special[i] as usize] = true;
        i += 1;
    }
    table
};

/// The place of the first byte from `at` on that is no space.
pub(crate) fn skip_spaces(line: &[u8], at: usize) -> usize {
    at + line.get(at..).map_or(0, |rest| rest.iter().take_while(|&&byte| is_space(byte)).count())
}

/// Finds the next word from `at` on.
pub(crate) fn scan(line: &[u8], at: usize) -> Option<Span> {
    // A carriage return ends the line unless blanks stand before it, which take it with them.
    if line.get(at).is_some_and(|&byte| byte == b'\r') && at > 0 {
        return None;
    }
    let start = skip_spaces(line, at);
    if *line.get(start)? == b'#' {
        return None;
    }
    let mut span = Span { start, end: start, quoted: false, escaped: false, variable: false, error: None };
    let mut quote: Option<(u8, usize)> = None;
    let mut at = start;
    let failed = loop {
        let Some(&byte) = line.get(at) else { break None };
        if !SPECIAL[usize::from(byte)] {
            at += 1;
            continue;
        }
        match (byte, quote) {
            (b'\0', _) => break Some(LexError { kind: LexErrorKind::Nul, at }),
            (b'\r', _) | (b'#', None) => break None,
            (b'"' | b'\'', None) => {
                quote = Some((byte, at));
                span.quoted = true;
                at += 1;
            }
            (_, Some((open, _))) if byte == open => {
                quote = None;
                at += 1;
            }
            (b'\\', None | Some((b'"', _))) => match escape(line, at, quote.is_some()) {
                Ok((_, next)) => {
                    span.escaped = true;
                    at = next;
                }
                Err(error) => break Some(error),
            },
            (b'$', Some((b'"', _))) => match Variable::read(line, at) {
                Ok(variable) => {
                    span.variable = true;
                    at = variable.end;
                }
                Err(error) => break Some(error),
            },
            (_, None) if is_space(byte) => break None,
            _ => at += 1,
        }
    };
    span.error = failed.or_else(|| quote.map(|(_, at)| LexError { kind: LexErrorKind::UnmatchedQuote, at }));
    // What follows an error can't be read: it is one word, up to the end of the line.
    span.end = if span.error.is_some() { trimmed_end(line).max(start) } else { at };
    Some(span)
}

/// Gives the words of a line in which no byte means more than itself, without decoding anything; says whether it is such
/// a line. What was given of any other is of no use.
pub(crate) fn plain<'a>(line: &'a str, mut give: impl FnMut(&'a str)) -> bool {
    let bytes = line.as_bytes();
    let mut at = 0;
    loop {
        while let Some(b' ' | b'\t') = bytes.get(at) {
            at += 1;
        }
        let start = at;
        while bytes.get(at).is_some_and(|&byte| !SPECIAL[usize::from(byte)]) {
            at += 1;
        }
        if at > start {
            give(line.get(start..at).unwrap_or_default());
        }
        match bytes.get(at) {
            None => return true,
            // A NUL makes a line unreadable wherever it stands.
            Some(b'#') => return memchr::memchr(0, bytes.get(at..).unwrap_or_default()).is_none(),
            Some(b' ' | b'\t') => {}
            Some(_) => return false,
        }
    }
}

/// The length of a line without the carriage return at its end.
pub(crate) fn trimmed_end(line: &[u8]) -> usize {
    line.len() - usize::from(line.last() == Some(&b'\r'))
}

/// The byte that an escape stands for, and the place after it.
fn escape(line: &[u8], at: usize, in_double_quotes: bool) -> Result<(u8, usize), LexError> {
    let hex = |at: usize| line.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    Ok(match line.get(at + 1) {
        Some(&byte @ (b' ' | b'\\' | b'#' | b'\'' | b'"')) => (byte, at + 2),
        Some(b'$') if in_double_quotes => (b'$', at + 2),
        Some(b't') => (b'\t', at + 2),
        Some(b'n') => (b'\n', at + 2),
        Some(b'r') => (b'\r', at + 2),
        Some(b'x') => match (hex(at + 2), hex(at + 3)) {
            (Some(high), Some(low)) => (u8::try_from(high * 16 + low).unwrap_or_default(), at + 4),
            _ => return Err(LexError { kind: LexErrorKind::BadHex, at }),
        },
        _ => (b'\\', at + 1),
    })
}

/// An expansion of a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) default: Option<&'a [u8]>,
    /// Whether its value is split into words.
    pub(crate) split: bool,
    /// The place after it.
    pub(crate) end: usize,
}

impl<'a> Variable<'a> {
    /// Reads the expansion whose `$` is at `at`.
    fn read(line: &'a [u8], dollar: usize) -> Result<Self, LexError> {
        let error = |kind, at| Err(LexError { kind, at });
        let brace = (line.get(dollar + 1) == Some(&b'{')).then_some(dollar + 1);
        let start = dollar + 1 + usize::from(brace.is_some());
        match line.get(start) {
            Some(&byte) if byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.') => {}
            _ => return error(LexErrorKind::BadVariable, start),
        }
        let rest = line.get(start + 1..).unwrap_or_default();
        let tail = rest.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
        let mut end = start + 1 + tail;
        let name = line.get(start..end).unwrap_or_default();
        if name.first() == Some(&b'.') && !matches!(name, b".LINE" | b".FILE" | b".SECTION") {
            return error(LexErrorKind::BadVariable, start);
        }
        let mut variable = Self { name, default: None, split: false, end };
        let Some(brace) = brace else { return Ok(variable) };
        if line.get(end) == Some(&b'[') {
            if line.get(end..end + 3) != Some(b"[*]") {
                return error(LexErrorKind::BadExpansion, end);
            }
            variable.split = true;
            end += 3;
        }
        if line.get(end) == Some(&b'-') {
            let rest = line.get(end + 1..).unwrap_or_default();
            let Some(length) = rest.iter().position(|&byte| byte == b'}') else {
                return error(LexErrorKind::UnmatchedBrace, brace);
            };
            variable.default = rest.get(..length);
            end += 1 + length;
        } else if line.get(end) != Some(&b'}') {
            return error(LexErrorKind::UnmatchedBrace, brace);
        }
        variable.end = end + 1;
        Ok(variable)
    }
}

/// What becomes of the expansions in a word.
pub(crate) type Environment<'e> = dyn Fn(&[u8]) -> Option<Vec<u8>> + 'e;

/// Decodes a word; expansions are left as they are written.
fn decode(raw: &[u8]) -> Vec<u8> {
    decode_with(raw, None).pop().unwrap_or_default()
}

/// Decodes a word, which becomes several where a variable is split.
fn decode_with(raw: &[u8], environment: Option<&Environment<'_>>) -> Vec<Vec<u8>> {
    let mut words = vec![Vec::with_capacity(raw.len())];
    let mut quote: Option<u8> = None;
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        let Some(word) = words.last_mut() else { break };
        match (byte, quote) {
            (b'"' | b'\'', None) => quote = Some(byte),
            (_, Some(open)) if byte == open => quote = None,
            (b'\\', None | Some(b'"')) => {
                let (byte, next) = escape(raw, at, quote.is_some()).unwrap_or((byte, at + 1));
                word.push(byte);
                at = next;
                continue;
            }
            (b'$', Some(b'"')) => {
                if let Ok(variable) = Variable::read(raw, at) {
                    match environment {
                        None => word.extend_from_slice(raw.get(at..variable.end).unwrap_or_default()),
                        Some(environment) => expand(&variable, environment, &mut words),
                    }
                    at = variable.end;
                    continue;
                }
                word.push(byte);
            }
            _ => word.push(byte),
        }
        at += 1;
    }
    words
}

/// Adds the value of a variable to the last word; one that is split begins a word at each blank.
fn expand(variable: &Variable<'_>, environment: &Environment<'_>, words: &mut Vec<Vec<u8>>) {
    let value = environment(variable.name);
    let value = value.as_deref().or(variable.default).unwrap_or_default();
    let mut after_space = false;
    for &byte in value {
        let space = variable.split && is_space(byte);
        if space && !after_space && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(Vec::new());
        } else if !space && let Some(word) = words.last_mut() {
            word.push(byte);
        }
        after_space = space;
    }
}

/// The words of a line with all variables expanded, as HAProxy of the newest version expands them: what is not set
/// is empty, and a split variable without a value is no word at all.
pub(crate) fn expanded<'a>(line: &'a [u8], environment: &Environment<'_>) -> Vec<Word<'a>> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(span) = scan(line, at) {
        at = span.end;
        let word = word(line, &span);
        if !span.variable || span.error.is_some() {
            all.push(word);
            continue;
        }
        let texts = decode_with(word.raw, Some(environment));
        let several = texts.len() > 1;
        all.extend(texts.into_iter().filter(|text| !(several && text.is_empty())).map(|text| Word {
            text: Cow::Owned(text),
            variable: false,
            ..word.clone()
        }));
    }
    while all.last().is_some_and(|word| word.text.is_empty()) {
        all.pop();
    }
    all
}

/// Writes a word so that it is read back as `text`: as it is where that is possible, else in quotes.
///
/// ```
/// use setpoint_haproxy::text::quote;
///
/// assert_eq!(*quote(b"roundrobin"), *b"roundrobin");
/// assert_eq!(*quote(b"two words"), *b"\"two words\"");
/// assert_eq!(*quote(b"it's $5"), *b"\"it's \\$5\"");
/// ```
pub fn quote(text: &[u8]) -> Cow<'_, [u8]> {
    let literal = |byte: &u8| !SPECIAL[usize::from(*byte)] || *byte == b'$';
    if !text.is_empty() && text.iter().all(literal) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' | b'$' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\0' => out.extend(b"\\x00"),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
    Cow::Owned(out)
}

/// Writes text so that it is read back as it is wherever it stands in a word, also within double quotes: each character that means
/// more than itself is escaped. None of a text that holds a line's end or a NUL.
///
/// ```
/// use setpoint_haproxy::text::{Document, escape_word};
///
/// for around in ["", "\""] {
///     let line = format!("backend b\n  description {around}on-{}-off{around}\n", escape_word("it's $5 # \\ \"").unwrap());
///     let document = Document::parse(line.as_bytes());
///     let words: Vec<_> = document.sections()[0].lines().next().unwrap().words().map(|word| word.text.into_owned()).collect();
///     assert_eq!(words, [&b"description"[..], b"on-it's $5 # \\ \"-off"]);
/// }
/// assert_eq!(escape_word("two\nlines"), None);
/// ```
pub fn escape_word(text: &str) -> Option<Cow<'_, str>> {
    if text.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | b'\0')) {
        return None;
    }
    let is_special = |byte: u8| SPECIAL[usize::from(byte)];
    if !text.bytes().any(is_special) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            ' ' | '#' | '\\' | '"' | '\'' => out.extend(['\\', letter]),
            // In quotes it begins a variable; outside, a backslash before it stays. Other blanks have no escape of their own.
            _ if u8::try_from(letter).is_ok_and(|byte| byte.is_ascii() && is_special(byte)) => {
                let _ = write!(out, "\\x{:02x}", u32::from(letter));
            }
            _ => out.push(letter),
        }
    }
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        Words::new(line.as_bytes()).map(|word| word.to_str_lossy().into_owned()).collect()
    }

    #[test]
    fn blanks_separate_words_and_a_hash_ends_the_line_also_in_mid_word() {
        assert_eq!(words("  server\ts1 \x0b10.0.0.1:80#old one"), ["server", "s1", "10.0.0.1:80"]);
        assert_eq!(words("# all of it"), [""; 0]);
        assert_eq!(words(r#"a "b # c" 'd#' \# e"#), ["a", "b # c", "d#", "#", "e"]);
    }

    #[test]
    fn quotes_and_escapes_are_resolved_as_haproxy_does() {
        assert_eq!(words(r#"a\ b "c\"d" 'e\t"f' g\x41\t\q"#), ["a b", "c\"d", "e\\t\"f", "gA\t\\q"]);
        assert_eq!(words(r"x \$y '$z'"), ["x", "\\$y", "$z"]);
        assert_eq!(words(r#""\$HOME" tail\"#), ["$HOME", "tail\\"]);
    }

    #[test]
    fn an_empty_word_counts_only_before_one_with_content() {
        assert_eq!(words(r#"a "" b "" '' "#), ["a", "", "b"]);
        assert_eq!(words(r#""" ''"#), [""; 0]);
    }

    #[test]
    fn variables_are_expansions_only_inside_double_quotes() {
        let line = br#"a $A '$B' "$C" "${D-x y}z" "${E[*]}""#;
        let found: Vec<_> = Words::new(line).map(|word| word.variable).collect();
        assert_eq!(found, [false, false, false, true, true, true]);
        let set = |name: &[u8]| (name == b"E").then(|| b" one  two ".to_vec());
        let texts: Vec<_> =
            expanded(line, &set).iter().map(|word| word.to_str_lossy().into_owned()).collect();
        assert_eq!(texts, ["a", "$A", "$B", "", "x yz", "one", "two"]);
    }

    #[test]
    fn a_carriage_return_ends_the_line() {
        assert_eq!(words("mode http\r"), ["mode", "http"]);
        assert_eq!(words("foo\rbar baz"), ["foo"]);
        assert_eq!(words("foo \rbar"), ["foo", "bar"]);
    }

    #[test]
    fn what_can_not_be_read_is_one_word_up_to_the_end_of_the_line() {
        for (line, kind, at) in [
            ("a \"b c # d", LexErrorKind::UnmatchedQuote, 2),
            ("a b\\xZZ c", LexErrorKind::BadHex, 3),
            ("a \"$1\" c", LexErrorKind::BadVariable, 4),
            ("a \"${B c\" d", LexErrorKind::UnmatchedBrace, 4),
            ("a \"${B-c\" d", LexErrorKind::UnmatchedBrace, 4),
            ("a \"${B[1]}\" d", LexErrorKind::BadExpansion, 6),
            ("a \"${.NO}\" d", LexErrorKind::BadVariable, 5),
            ("a b\0c d", LexErrorKind::Nul, 3),
        ] {
            let bytes = line.as_bytes();
            let span = scan(bytes, 1).unwrap();
            assert_eq!(span.error, Some(LexError { kind, at }), "{line:?}");
            assert_eq!(words(line), ["a", &line[2..]], "{line:?}");
        }
    }

    #[test]
    fn plain_lines_have_the_same_words_however_they_are_split() {
        let split = |line: &str| {
            let mut words = Vec::new();
            plain(line, |word| words.push(word.to_owned())).then_some(words)
        };
        for line in ["", "  ", "a", "\tserver  s1\t1.2.3.4:80 check ", "a b#c", "a # b", "#", "é ü x"] {
            assert_eq!(split(line), Some(words(line)), "{line:?}");
        }
        for line in ["a \"b\"", "a 'b'", "a\\ b", "a $b", "a\rb", "a \x0bb", "a\0", "a # b\0"] {
            assert_eq!(split(line), None, "{line:?}");
        }
    }

    #[test]
    fn what_is_quoted_reads_back_as_it_was() {
        for text in
            ["", "plain", "two words", "a#b", "it's", "\"", "\\", "$x", "${x} y", "a\tb\nc\rd", "\\x41"]
        {
            let line = [b"k ", &*quote(text.as_bytes()), b" end"].concat();
            let read: Vec<_> = Words::new(&line).collect();
            assert_eq!((read.len(), &*read[1].text), (3, text.as_bytes()), "{text:?}");
            assert!(!read[1].variable, "{text:?}");
        }
    }
}
