//! Lines of a section.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memchr;

use super::chunk::Chunk;
use super::directive::Directive;
use super::lex::{self, LexError, Word, Words};

/// One line of a section.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Without the line feed.
    raw: &'a [u8],
    /// Whether a line feed follows.
    ended: bool,
    number: u32,
}

impl<'a> Line<'a> {
    /// A text without line feed, as a line of its own.
    pub(crate) fn of(raw: &'a [u8]) -> Self {
        Self { raw, ended: false, number: 0 }
    }

    /// Where it stands in its section, counted from 0.
    ///
    /// Together with [`Document::first_line`](super::Document::first_line) this is its place in the file.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The line without what ends it, `\n` or `\r\n`.
    pub fn raw(&self) -> &'a [u8] {
        self.raw.get(..lex::trimmed_end(self.raw)).unwrap_or_default()
    }

    /// How many bytes it takes, with what ends it.
    pub fn len_with_end(&self) -> usize {
        self.raw.len() + usize::from(self.ended)
    }

    /// Returns whether a line feed ends it: only the last line of a file can be without.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Returns whether it ends as on Windows.
    pub fn is_crlf(&self) -> bool {
        self.raw.last() == Some(&b'\r')
    }

    /// The blanks it begins with.
    pub fn indentation(&self) -> &'a [u8] {
        let raw = self.raw();
        raw.get(..lex::skip_spaces(raw, 0)).unwrap_or_default()
    }

    /// Returns whether it holds nothing but blanks and a comment.
    pub fn is_blank(&self) -> bool {
        self.words().next().is_none()
    }

    /// The comment with its `#`, if there is one.
    pub fn comment(&self) -> Option<&'a [u8]> {
        let raw = self.raw();
        let mut at = 0;
        while let Some(span) = lex::scan(raw, at) {
            at = span.end;
        }
        let start = lex::skip_spaces(raw, at);
        (raw.get(start) == Some(&b'#')).then(|| raw.get(start..)).flatten()
    }

    /// The words, split and decoded while they are asked for.
    pub fn words(&self) -> Words<'a> {
        Words::new(self.raw)
    }

    /// Writes it as it is, with what ends it.
    pub(crate) fn write_whole(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.raw);
        if self.ended {
            out.push(b'\n');
        }
    }

    /// Gives the words of a plain line, see [`lex::plain`].
    pub(crate) fn plain_words(&self, give: impl FnMut(&'a str)) -> bool {
        std::str::from_utf8(self.raw()).is_ok_and(|line| lex::plain(line, give))
    }

    /// The first word, decoded.
    pub fn keyword(&self) -> Option<Cow<'a, [u8]>> {
        self.words().next().filter(|word| !word.variable).map(|word| word.text)
    }

    /// The words with all variables expanded; `environment` gives the value of a variable that is set.
    pub fn expanded(&self, environment: &dyn Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<Word<'a>> {
        lex::expanded(self.raw, environment)
    }

    /// The directive that the line is, if it is one.
    pub fn directive(&self) -> Option<Directive> {
        self.keyword().and_then(|word| Directive::from_word(&word))
    }

    /// The first word after the keyword that is empty, also at the end.
    pub(crate) fn empty_word(&self) -> Option<Word<'a>> {
        let mut at = lex::scan(self.raw, 0)?.end;
        while let Some(span) = lex::scan(self.raw, at) {
            let word = lex::word(self.raw, &span);
            if word.text.is_empty() {
                return Some(word);
            }
            at = span.end;
        }
        None
    }

    /// What makes the line unreadable, if anything does.
    pub fn error(&self) -> Option<LexError> {
        let mut at = 0;
        while let Some(span) = lex::scan(self.raw, at) {
            if span.error.is_some() {
                return span.error;
            }
            at = span.end;
        }
        memchr(0, self.raw).map(|at| LexError { kind: lex::LexErrorKind::Nul, at })
    }
}

/// The lines of a section or a part of it.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    bytes: &'a [u8],
    /// What comes after these bytes.
    more: &'a [Arc<Chunk>],
    number: u32,
}

impl<'a> Lines<'a> {
    /// The lines of some bytes, the first of which is line `number`, and those of the chunks after them.
    pub(crate) fn new(bytes: &'a [u8], more: &'a [Arc<Chunk>], number: u32) -> Self {
        Self { bytes, more, number }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        while self.bytes.is_empty() {
            let (chunk, more) = self.more.split_first()?;
            (self.bytes, self.more) = (chunk.bytes(), more);
        }
        let feed = memchr(b'\n', self.bytes);
        let (raw, rest) = self.bytes.split_at_checked(feed.unwrap_or(self.bytes.len()))?;
        self.bytes = rest.get(usize::from(feed.is_some())..).unwrap_or_default();
        let line = Line { raw, ended: feed.is_some(), number: self.number };
        self.number = self.number.saturating_add(1);
        Some(line)
    }
}
