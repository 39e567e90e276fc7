//! How much of a configuration the table of the model describes, line by line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Checks;
use super::configuration::{CheckedLine, Configuration};
use super::lines::kinds;
use crate::model::{Context, ObjectKind, Version};
use crate::table::directives;
use crate::table::read::{Token, read_row};
use crate::text::{Document, SectionKind};

/// How many lines of sections of a kind HAProxy reads, and how many of these the table describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// How many lines there are, without headers, comments, and what stands in a false `.if`.
    pub lines: usize,
    /// How many of them a row of the table describes. A line with a variable that is not known is not among them.
    pub described: usize,
}

/// Counts the lines of a configuration that the table describes, by kind of section. A `listen` section is a frontend and
/// a backend in one: a line that either has a row for is described.
///
/// ```
/// use setpoint_haproxy::check::covered;
/// use setpoint_haproxy::model::Context;
/// use setpoint_haproxy::text::{Document, SectionKind};
///
/// let document = Document::parse(b"listen l\n  bind :80\n  balance roundrobin\n  server s \"${HOST}\"\n");
/// let listen = covered(&document, &Context::default())[&SectionKind::Listen];
/// assert_eq!((listen.lines, listen.described), (3, 2));
/// ```
pub fn covered(document: &Document, cx: &Context) -> BTreeMap<SectionKind, Covered> {
    let mut covered: BTreeMap<SectionKind, Covered> = BTreeMap::new();
    each_line(document, cx, |section, line, is_described| {
        let entry = covered.entry(section).or_default();
        entry.lines += usize::from(line.is_some());
        entry.described += usize::from(is_described);
    });
    covered
}

/// Lists the lines that HAProxy reads and no row of the table describes, by their numbers, counted from 1.
pub fn undescribed(document: &Document, cx: &Context) -> Vec<u32> {
    let mut found = Vec::new();
    each_line(document, cx, |_, line, is_described| found.extend(line.filter(|_| !is_described)));
    found
}

/// Calls for each section, and for each line of it with its number and whether the table describes it.
fn each_line(document: &Document, cx: &Context, mut call: impl FnMut(SectionKind, Option<u32>, bool)) {
    let checks = Checks { version: Some(cx.haproxy), env: cx.env.clone() };
    let configuration = Configuration::read(&[document], &checks, &mut []);
    for part in configuration.parts.iter().filter(|part| part.header.is_some()) {
        let (kinds, _) = kinds(part.kind);
        call(part.kind, None, false);
        for line in &part.lines {
            call(part.kind, Some(line.number), is_described(line, kinds, cx.api));
        }
    }
}

/// Returns whether some row of the schema describes a line in objects of some kinds.
fn is_described(line: &CheckedLine<'_>, kinds: &[ObjectKind], version: Version) -> bool {
    if line.is_open() {
        return false;
    }
    let tokens: Vec<Token<'_>> = line
        .words
        .iter()
        .map(|word| Token { raw: String::from_utf8_lossy(word.raw), text: word.to_str_lossy() })
        .map(|token| {
            // What a variable stood for is spelled as its value, not as its name.
            let raw = if token.raw.contains("${") { Cow::Owned(token.text.to_string()) } else { token.raw };
            Token { raw, ..token }
        })
        .collect();
    let reads = |words: &[Token<'_>], negated: bool| {
        let (Some(first), second) = (words.first(), words.get(1).map(|word| &*word.text)) else {
            return false;
        };
        kinds.iter().any(|kind| {
            let mut rows = directives().candidates(*kind, &first.text, second, version);
            rows.any(|row| read_row(row, words, negated, version).is_some())
        })
    };
    let is_negated = tokens.first().is_some_and(|first| first.text == "no");
    reads(&tokens, false) || is_negated && reads(tokens.get(1..).unwrap_or_default(), true)
}
