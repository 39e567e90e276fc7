//! Edits of single lines, in the style of the section around them.

use std::sync::Arc;

use super::chunk::{Chunk, divide_lines};
use super::document::Document;
use super::line::Line;
use super::section::Section;

/// One edit of a line of a section; lines are numbered as by [`Line::number`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineEdit {
    /// Puts a line before another; a number past the end appends it after the last line that has words.
    Insert {
        /// The line it is put before.
        before: u32,
        /// The line without indentation.
        text: Vec<u8>,
    },
    /// Writes a line anew. Its indentation stays, and its comment unless the new text has one.
    Replace {
        /// The line.
        line: u32,
        /// The line without indentation.
        text: Vec<u8>,
    },
    /// Writes a line anew, its comment included. Its indentation stays.
    ReplaceAll {
        /// The line.
        line: u32,
        /// The line without indentation.
        text: Vec<u8>,
    },
    /// Takes a line away.
    Delete {
        /// The line.
        line: u32,
    },
}

impl LineEdit {
    /// The line that it writes.
    fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Insert { text, .. } | Self::Replace { text, .. } | Self::ReplaceAll { text, .. } => {
                Some(text)
            }
            Self::Delete { .. } => None,
        }
    }

    fn line(&self) -> u32 {
        match self {
            Self::Insert { before, .. } => *before,
            Self::Replace { line, .. } | Self::ReplaceAll { line, .. } | Self::Delete { line } => *line,
        }
    }
}

/// How the lines of a section are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) indentation: Vec<u8>,
    pub(crate) crlf: bool,
}

impl Style {
    /// The style of a section, or of the nearest one with lines before or after it.
    pub(crate) fn around(document: &Document, index: usize) -> Self {
        let sections = document.sections();
        let (before, after) = sections.split_at(index.min(sections.len()));
        after
            .first()
            .into_iter()
            .chain(before.iter().rev())
            .chain(after.iter().skip(1))
            .find_map(|section| Self::of(section))
            .unwrap_or_else(|| Self { indentation: b"    ".to_vec(), crlf: false })
    }

    fn of(section: &Section) -> Option<Self> {
        section.header()?;
        let line = section.lines().find(|line| !line.is_blank() && line.directive().is_none())?;
        Some(Self { indentation: line.indentation().to_vec(), crlf: line.is_crlf() })
    }

    pub(crate) fn end(&self) -> &'static [u8] {
        if self.crlf { b"\r\n" } else { b"\n" }
    }
}

impl Document {
    /// The same document with some lines of a section edited, in the style of that section; every line that no edit
    /// speaks of stays byte for byte. Line numbers are those before all edits.
    ///
    /// ```
    /// use setpoint_haproxy::text::{Document, LineEdit};
    ///
    /// let document = Document::parse(b"backend b\n\tmode http   # as ever\n\tretries 3\n");
    /// let edits = [
    ///     LineEdit::Replace { line: 1, text: b"mode tcp".to_vec() },
    ///     LineEdit::Insert { before: u32::MAX, text: b"server s 10.0.0.1:80".to_vec() },
    /// ];
    /// let edited = document.with_lines(0, &edits).print();
    /// assert_eq!(edited, b"backend b\n\tmode tcp   # as ever\n\tretries 3\n\tserver s 10.0.0.1:80\n");
    /// ```
    #[must_use]
    pub fn with_lines(&self, index: usize, edits: &[LineEdit]) -> Self {
        let mut document = self.clone();
        document.edit_lines(index, edits);
        document
    }

    /// Edits lines of a section; returns whether all other sections stayed as they were.
    pub(crate) fn edit_lines(&mut self, index: usize, edits: &[LineEdit]) -> bool {
        let Some(section) = self.sections().get(index) else { return true };
        let style = Style::around(self, index);
        if let Some(edited) = edited_in_place(section, &style, edits) {
            self.set_section(index, edited);
            return true;
        }
        let bytes = edited(section, &style, edits);
        self.splice(index, 1, &bytes)
    }
}

/// A long section after edits of some of its lines, of which only the chunks with these are made anew. None where the edits
/// might change where the section ends, or what the parser knows after it.
fn edited_in_place(section: &Section, style: &Style, edits: &[LineEdit]) -> Option<Section> {
    let exit = section.exit();
    let is_plain = !section.is_conditional() && !exit.leads && section.is_ended();
    if section.tail().is_empty() || !is_plain {
        return None;
    }
    let first = if exit.indented && !style.indentation.is_empty() {
        section.first_own_line()
    } else {
        // Below a line that is not indented, none opens a section for standing out.
        let first = section.lines().find(is_line_of_section).filter(|line| line.indentation().is_empty())?;
        first.number() + 1
    };
    if !edits.iter().all(|edit| edit.line() >= first && edit.text().is_none_or(is_content)) {
        return None;
    }
    let end = last_with_words(section) + 1;
    let mut placed: Vec<(u32, &LineEdit)> = edits
        .iter()
        .map(|edit| (if edit.line() >= section.line_count() { end } else { edit.line() }, edit))
        .collect();
    placed.sort_by_key(|(line, _)| *line);
    let mut placed = placed.as_slice();
    let mut base = 0;
    let chunks: Vec<&Chunk> = section.chunks().collect();
    let mut head = section.head().clone();
    let mut tail: Vec<Arc<Chunk>> = Vec::with_capacity(section.tail().len() + 1);
    for (position, chunk) in chunks.iter().enumerate() {
        let next = base + chunk.line_count();
        let is_last = position + 1 == chunks.len();
        let here = placed.iter().take_while(|(line, _)| *line < next || is_last).count();
        let (own, rest) = placed.split_at(here);
        placed = rest;
        match (position.checked_sub(1).and_then(|position| section.tail().get(position)), own.is_empty()) {
            (None, true) => {}
            (Some(shared), true) => tail.push(Arc::clone(shared)),
            (None, false) => {
                let bytes = edited_chunk(chunk, base, style, own);
                let lines = u32::try_from(memchr::memchr_iter(b'\n', &bytes).count()).ok()?;
                head = Chunk::new(&bytes, lines);
            }
            (Some(_), false) => tail.extend(divide_lines(&edited_chunk(chunk, base, style, own))),
        }
        base = next;
    }
    let edited = section.with_chunks(head, tail);
    let leads = edited.last_line().is_some_and(|line| line.raw().first() == Some(&b'#'));
    let has_content = edited.lines().any(|line| !line.is_blank());
    (has_content && !leads).then_some(edited)
}

/// Returns whether a line says something to the section it is put into, and neither opens another nor is a directive.
fn is_content(text: &[u8]) -> bool {
    !text.contains(&b'\n') && is_line_of_section(&Line::of(text))
}

/// Returns whether a line has words, and neither opens a section nor is a directive.
fn is_line_of_section(line: &Line<'_>) -> bool {
    line.words().next().is_some_and(|word| {
        !word.text.is_empty()
            && super::SectionKind::from_keyword(&word.text).is_none()
            && super::Directive::from_word(&word.text).is_none()
    })
}

/// The bytes of a chunk after edits, whose first line has a number.
fn edited_chunk(chunk: &Chunk, base: u32, style: &Style, edits: &[(u32, &LineEdit)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(chunk.bytes().len() + 128);
    let mut edits = edits.iter().peekable();
    for line in chunk.lines(base) {
        let mut outcome = Outcome::Keep;
        while let Some((_, edit)) = edits.next_if(|(number, _)| *number == line.number()) {
            outcome.take(edit, style, &mut out);
        }
        outcome.write(style, &line, &mut out);
    }
    for (_, edit) in edits {
        if let LineEdit::Insert { text, .. } = edit {
            write_line(&mut out, style, text);
        }
    }
    out
}

/// What becomes of a line.
enum Outcome<'e> {
    Keep,
    Replace { text: &'e [u8], keeps_comment: bool },
    Delete,
}

impl<'e> Outcome<'e> {
    /// Takes an edit of the line; one that puts another before it is written at once.
    fn take(&mut self, edit: &'e LineEdit, style: &Style, out: &mut Vec<u8>) {
        match edit {
            LineEdit::Insert { text, .. } => write_line(out, style, text),
            LineEdit::Replace { text, .. } => *self = Self::Replace { text, keeps_comment: true },
            LineEdit::ReplaceAll { text, .. } => *self = Self::Replace { text, keeps_comment: false },
            LineEdit::Delete { .. } => *self = Self::Delete,
        }
    }

    fn write(&self, style: &Style, line: &Line<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Keep => line.write_whole(out),
            Self::Replace { text, keeps_comment } => replace(out, style, line, text, *keeps_comment),
            Self::Delete => {}
        }
    }
}

/// The bytes of a section after edits.
fn edited(section: &Section, style: &Style, edits: &[LineEdit]) -> Vec<u8> {
    let past_end = |edit: &&LineEdit| edit.line() >= section.line_count();
    let (appended, mut placed): (Vec<_>, Vec<_>) = edits.iter().partition(past_end);
    // Stable: several lines put before the same one keep their order.
    placed.sort_by_key(|edit| edit.line());
    let last = last_with_words(section);
    let mut placed = placed.into_iter().peekable();
    let mut out = Vec::with_capacity(section.len() + 128);
    for line in section.all_lines() {
        let mut outcome = Outcome::Keep;
        while let Some(edit) = placed.next_if(|edit| edit.line() == line.number()) {
            outcome.take(edit, style, &mut out);
        }
        outcome.write(style, &line, &mut out);
        // Blank lines and comments between this section and the next stay between them.
        if line.number() == last {
            for edit in &appended {
                if let LineEdit::Insert { text, .. } = edit {
                    write_line(&mut out, style, text);
                }
            }
        }
    }
    out
}

/// The number of the last line with words: what is appended comes after it.
fn last_with_words(section: &Section) -> u32 {
    let chunks: Vec<&Chunk> = section.chunks().collect();
    let mut end = section.line_count();
    for (position, chunk) in chunks.iter().enumerate().rev() {
        let base = end.saturating_sub(chunk.line_count());
        let first = if position == 0 { section.first_own_line().saturating_sub(1) } else { 0 };
        let last = chunk.lines(base).filter(|line| line.number() >= first && !line.is_blank()).last();
        if let Some(line) = last {
            return line.number();
        }
        end = base;
    }
    0
}

fn write_line(out: &mut Vec<u8>, style: &Style, text: &[u8]) {
    end_line(out, style);
    out.extend_from_slice(&style.indentation);
    out.extend_from_slice(text);
    out.extend_from_slice(style.end());
}

/// Ends a last line that nothing ended so far.
fn end_line(out: &mut Vec<u8>, style: &Style) {
    if out.last().is_some_and(|&byte| byte != b'\n') {
        out.extend_from_slice(style.end());
    }
}

/// Writes a line anew between its own indentation and, if that is to be kept, its own comment.
fn replace(out: &mut Vec<u8>, style: &Style, line: &Line<'_>, text: &[u8], keep_comment: bool) {
    out.extend_from_slice(line.indentation());
    out.extend_from_slice(text);
    let keep = keep_comment && Line::of(text).comment().is_none();
    if let Some(comment) = line.comment().filter(|_| keep) {
        let raw = line.raw();
        let before = raw.get(..raw.len() - comment.len()).unwrap_or_default();
        let blanks = before.len() - before.trim_ascii_end().len();
        let gap = before.get(before.len() - blanks..).filter(|gap| !gap.is_empty()).unwrap_or(b" ");
        out.extend_from_slice(gap);
        out.extend_from_slice(comment);
    }
    if line.is_crlf() {
        out.push(b'\r');
    }
    if line.is_ended() {
        out.push(b'\n');
    } else {
        end_line(out, style);
    }
}
