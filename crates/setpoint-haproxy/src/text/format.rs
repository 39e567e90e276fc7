//! One style for all: what `setpoint haproxy fmt` does.

use super::document::Document;
use super::kind::SectionKind;
use super::lex;
use super::line::Line;
use super::section::Section;

/// How far the lines of a section are indented.
const INDENTATION: &[u8] = b"    ";

impl Document {
    /// The same document in one style: lines of sections indented by four blanks, one blank between words, no blanks at
    /// the end of lines, one blank line between sections. Words, comments and their order stay as they are.
    ///
    /// ```
    /// use setpoint_haproxy::text::Document;
    ///
    /// let document = Document::parse(b"global\ndaemon \n\n\n\n  # why\n\tmaxconn   10 # many\nbackend b\n mode http\r\n");
    /// let expected = "global\n    daemon\n\n    # why\n    maxconn 10 # many\n\nbackend b\n    mode http\n";
    /// assert_eq!(document.formatted().print(), expected.as_bytes());
    /// ```
    #[must_use]
    pub fn formatted(&self) -> Self {
        let mut out = Vec::with_capacity(self.len());
        for section in self.sections() {
            let text = section_text(section);
            if !text.is_empty() && !out.is_empty() {
                out.push(b'\n');
            }
            out.extend_from_slice(&text);
        }
        Self::parse(&out)
    }
}

/// A section in one style, without blank lines at its beginning and end.
fn section_text(section: &Section) -> Vec<u8> {
    let header = section.header().map(|line| line.number());
    let mut out = Vec::new();
    let mut blank = false;
    for line in section.all_lines() {
        let text = line_text(section, &line, header);
        if text.is_empty() {
            blank = !out.is_empty();
            continue;
        }
        if blank && Some(line.number()) != header.map(|header| header + 1) {
            out.push(b'\n');
        }
        blank = false;
        out.extend_from_slice(&text);
        out.push(b'\n');
    }
    out
}

fn line_text(section: &Section, line: &Line<'_>, header: Option<u32>) -> Vec<u8> {
    // Carriage returns at the end of a line are its end, however many there are.
    let raw = line.raw();
    let end = raw.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
    let raw = raw.get(..end).unwrap_or_default();
    let trimmed = raw.get(line.indentation().len()..).unwrap_or_default();
    let comment = line.comment().map(<[u8]>::trim_ascii_end).unwrap_or_default();
    // What HAProxy does not read to its end is left as it is, but for its indentation.
    let readable = !raw.contains(&b'\r') && line.error().is_none();
    let text = match joined(raw).filter(|_| readable) {
        None => trimmed.to_vec(),
        Some(words) if words.is_empty() => comment.to_vec(),
        Some(words) if comment.is_empty() => words,
        Some(words) => [&words, comment].join(&b' '),
    };
    let in_body = header.is_some_and(|header| line.number() > header);
    let keeps =
        line.directive().is_some() || text.starts_with(b"[") || section.kind() == SectionKind::Preamble;
    let unindented_comment = text.starts_with(b"#") && line.indentation().is_empty();
    let indentation = match (in_body, keeps || unindented_comment) {
        _ if text.is_empty() => b"",
        (_, true) => line.indentation(),
        (true, false) => INDENTATION,
        (false, false) => b"",
    };
    [indentation, &text].concat()
}

/// The words of a line as they are written, with one blank between them. None if one ends with a backslash that stands
/// for itself: it would take the blank for its own.
fn joined(raw: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while let Some(span) = lex::scan(raw, at) {
        if !out.is_empty() {
            out.push(b' ');
        }
        let word = raw.get(span.start..span.end).unwrap_or_default();
        if word.ends_with(b"\\") {
            return None;
        }
        out.extend_from_slice(word);
        at = span.end;
    }
    Some(out)
}
