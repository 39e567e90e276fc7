//! Edits of single lines, in the style of the section around them.

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
        let Some(section) = self.sections().get(index) else { return self.clone() };
        let style = Style::around(self, index);
        self.with_section(index, &edited(section, &style, edits))
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
    let mut out = Vec::with_capacity(section.bytes().len() + 128);
    for line in section.all_lines() {
        let mut outcome = Some(None);
        while let Some(edit) = placed.next_if(|edit| edit.line() == line.number()) {
            match edit {
                LineEdit::Insert { text, .. } => write_line(&mut out, style, text),
                LineEdit::Replace { text, .. } => outcome = Some(Some((text, true))),
                LineEdit::ReplaceAll { text, .. } => outcome = Some(Some((text, false))),
                LineEdit::Delete { .. } => outcome = None,
            }
        }
        match outcome {
            Some(Some((text, keep))) => replace(&mut out, style, &line, text, keep),
            Some(None) => out.extend_from_slice(with_end(section, &line)),
            None => {}
        }
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
    let lines = section.header().into_iter().chain(section.lines());
    lines.filter(|line| !line.is_blank()).last().map_or(0, |line| line.number())
}

fn with_end<'a>(section: &'a Section, line: &Line<'_>) -> &'a [u8] {
    section.bytes().get(line.offset()..line.offset() + line.len_with_end()).unwrap_or_default()
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
