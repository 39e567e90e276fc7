//! A configuration as a vector of sections.

use std::sync::Arc;

use memchr::memchr;

use super::diagnostic::{self, Diagnostic};
use super::directive::Directive;
use super::kind::SectionKind;
use super::lex::{self, Words};
use super::line::Line;
use super::section::{Section, Shape};
use crate::keywords::is_keyword;

/// A configuration: its sections, in the order in which they are written.
///
/// Parsing never fails and loses nothing. What HAProxy would refuse is in [`Document::diagnostics`]. Sections are
/// shared, so a clone costs little and an edit costs one section.
///
/// ```
/// use setpoint_haproxy::text::Document;
///
/// let document = Document::parse(b"global\n  daemon\n\xff\0 not a configuration");
/// assert_eq!(document.print(), b"global\n  daemon\n\xff\0 not a configuration");
/// assert_eq!(document.diagnostics()[0].to_string(), "3:2: NUL byte");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Document {
    sections: Vec<Arc<Section>>,
}

impl Document {
    /// Divides bytes into sections.
    pub fn parse(bytes: &[u8]) -> Self {
        Self { sections: Parser::new(None).run(bytes) }
    }

    /// Makes a document of sections that are there already.
    pub fn from_sections(sections: Vec<Arc<Section>>) -> Self {
        Self { sections }
    }

    /// The sections. The first is a [`SectionKind::Preamble`] if anything stands before the first real one.
    pub fn sections(&self) -> &[Arc<Section>] {
        &self.sections
    }

    /// How many bytes it prints.
    pub fn len(&self) -> usize {
        self.sections.iter().map(|section| section.bytes().len()).sum()
    }

    /// Whether it prints nothing.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// The bytes it was parsed from, with all edits since.
    pub fn print(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        for section in &self.sections {
            out.extend_from_slice(section.bytes());
        }
        out
    }

    /// The line of the file, counted from 1, that the section at `index` begins with.
    pub fn first_line(&self, index: usize) -> u32 {
        let before = self.sections.iter().take(index).map(|section| section.line_count());
        before.fold(1, u32::saturating_add)
    }

    /// The first section of a kind and name.
    pub fn find(&self, kind: SectionKind, name: Option<&[u8]>) -> Option<usize> {
        self.sections.iter().position(|section| section.kind() == kind && section.name().as_deref() == name)
    }

    /// Everything that HAProxy refuses about the text itself: all errors, each with its place and a hint.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        diagnostic::of(self)
    }

    /// The same document with the section at `index` written as `bytes`, and only that parsed again.
    ///
    /// Bytes that open further sections put these in its place as well.
    #[must_use]
    pub fn with_section(&self, index: usize, bytes: &[u8]) -> Self {
        self.spliced(index, 1, bytes)
    }

    /// The same document with further sections before the one at `index`.
    #[must_use]
    pub fn with_inserted(&self, index: usize, bytes: &[u8]) -> Self {
        self.spliced(index, 0, bytes)
    }

    /// The same document without the section at `index`.
    #[must_use]
    pub fn without_section(&self, index: usize) -> Self {
        self.spliced(index, 1, b"")
    }

    fn spliced(&self, index: usize, removed: usize, bytes: &[u8]) -> Self {
        let start = index.min(self.sections.len());
        let end = (start + removed).min(self.sections.len());
        let old = self.sections.get(start..end).unwrap_or_default();
        let before = start.checked_sub(1).and_then(|index| self.sections.get(index));
        let surroundings = Surroundings {
            depth: self.sections.get(start).map_or(0, |section| section.depth()),
            indented: old.iter().any(|section| section.kind() == SectionKind::Unknown)
                || self
                    .sections
                    .iter()
                    .take(start)
                    .rev()
                    .find_map(|section| indented(section))
                    .unwrap_or_default(),
        };
        let new = Parser::new(before.map(|_| surroundings)).run(bytes);
        // An `.if` reaches beyond its section.
        let reaches = old.iter().chain(&new).any(|section| section.is_conditional());
        let mut sections = self.sections.clone();
        sections.splice(start..end, new);
        let edited = Self { sections };
        if reaches { Self::parse(&edited.print()) } else { edited }
    }
}

/// Two documents are equal if they print the same.
impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Arc<Section>, &Arc<Section>)| Arc::ptr_eq(a, b) || a.same_bytes(b);
        let sectionwise = self.sections.len() == other.sections.len();
        sectionwise && self.sections.iter().zip(&other.sections).all(same) || self.print() == other.print()
    }
}

impl Eq for Document {}

/// Whether all lines of a section that say something to HAProxy are indented; none if there is no such line.
fn indented(section: &Section) -> Option<bool> {
    let says = |line: &Line<'_>| {
        line.directive().is_none()
            && line.words().next().is_some_and(|word| word.variable || !word.text.is_empty())
    };
    let mut lines = section.lines().filter(says).peekable();
    lines.peek()?;
    Some(lines.all(|line| !line.indentation().is_empty()))
}

/// What is around bytes that are put into a document.
#[derive(Clone, Copy)]
struct Surroundings {
    depth: u32,
    indented: bool,
}

/// Divides bytes into sections, looking at the first word of each line and nothing more.
struct Parser {
    sections: Vec<Arc<Section>>,
    /// How many `.if` are open.
    depth: u32,
    /// Whether all lines of this section so far, or of the last one that had any, are indented.
    indented: bool,
    open: Open,
    /// Whether the bytes are a file from its beginning.
    from_start: bool,
    /// Whether a line that is not blank has been read.
    begun: bool,
    /// Where the comments begin that belong to the next header, if one comes.
    lead: Option<Lead>,
}

/// The section under way.
#[derive(Clone, Copy)]
struct Open {
    start: usize,
    first_line: u32,
    depth: u32,
    kind: SectionKind,
    header: usize,
    header_line: u32,
    body: usize,
    conditional: bool,
    has_lines: bool,
}

/// Comments and `.if` at the beginning of a line, with nothing after them so far.
#[derive(Clone, Copy)]
struct Lead {
    start: usize,
    line: u32,
    depth: u32,
    /// Whether a conditional is among them, and whether the section before was under one already.
    conditional: bool,
    before: bool,
    /// Whether nothing but blank lines stands before it in the file.
    opens_file: bool,
}

/// What a line is to the parser.
enum Class {
    Blank,
    /// A comment that is not indented.
    Comment,
    Directive(Directive),
    Header(SectionKind),
    /// A line of the section; whether it is indented.
    Content {
        indented: bool,
    },
}

impl Parser {
    fn new(surroundings: Option<Surroundings>) -> Self {
        let Surroundings { depth, indented } =
            surroundings.unwrap_or(Surroundings { depth: 0, indented: false });
        let open = Open {
            start: 0,
            first_line: 0,
            depth,
            kind: SectionKind::Preamble,
            header: 0,
            header_line: 0,
            body: 0,
            conditional: depth > 0,
            has_lines: false,
        };
        let from_start = surroundings.is_none();
        Self { sections: Vec::new(), depth, indented, open, from_start, begun: false, lead: None }
    }

    fn run(mut self, bytes: &[u8]) -> Vec<Arc<Section>> {
        let (mut at, mut number) = (0, 0_u32);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let feed = memchr(b'\n', rest);
            let raw = rest.get(..feed.unwrap_or(rest.len())).unwrap_or_default();
            let next = at + raw.len() + usize::from(feed.is_some());
            self.line(bytes, raw, at, next, number);
            at = next;
            number = number.saturating_add(1);
        }
        self.close(bytes, at, number);
        self.sections
    }

    fn line(&mut self, bytes: &[u8], raw: &[u8], at: usize, next: usize, number: u32) {
        let class = self.classify(raw);
        let blank = matches!(class, Class::Blank);
        match class {
            Class::Blank => self.lead = None,
            Class::Comment => {
                self.begin_lead(at, number);
            }
            Class::Directive(directive) => {
                let unindented = raw.first() == Some(&b'.');
                let opens = matches!(directive, Directive::If | Directive::Elif | Directive::Else);
                let lead = unindented && opens;
                if lead {
                    self.begin_lead(at, number).conditional = true;
                } else {
                    self.lead = None;
                }
                match directive {
                    Directive::If => self.depth = self.depth.saturating_add(1),
                    Directive::Endif => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                self.open.conditional |= directive.is_conditional();
            }
            Class::Header(kind) => {
                let own = Lead {
                    start: at,
                    line: number,
                    depth: self.depth,
                    conditional: false,
                    before: self.open.conditional,
                    opens_file: false,
                };
                // What a file begins with speaks of the file, not of its first section.
                let lead =
                    self.lead.take().filter(|lead| lead.conditional || !lead.opens_file).unwrap_or(own);
                self.open.conditional = lead.before;
                self.close(bytes, lead.start, lead.line);
                self.open = Open {
                    start: lead.start,
                    first_line: lead.line,
                    depth: lead.depth,
                    kind,
                    header: at,
                    header_line: number,
                    body: next,
                    conditional: self.depth > 0 || lead.conditional,
                    has_lines: false,
                };
            }
            Class::Content { indented } => {
                self.lead = None;
                self.indented = indented && (self.indented || !self.open.has_lines);
                self.open.has_lines = true;
            }
        }
        self.begun |= !blank;
    }

    fn begin_lead(&mut self, start: usize, line: u32) -> &mut Lead {
        let (depth, before) = (self.depth, self.open.conditional);
        let opens_file = self.from_start && !self.begun;
        self.lead.get_or_insert(Lead { start, line, depth, conditional: false, before, opens_file })
    }

    fn classify(&self, raw: &[u8]) -> Class {
        let start = lex::skip_spaces(raw, 0);
        let Some(&first) = raw.get(start) else { return Class::Blank };
        let indented = start > 0;
        match first {
            b'#' if indented => return Class::Blank,
            b'#' => return Class::Comment,
            // `[scope]`, which HAProxy skips.
            b'[' => return Class::Content { indented },
            _ => {}
        }
        let Some(word) = Words::new(raw).next().filter(|word| !word.variable) else {
            return Class::Content { indented };
        };
        if word.text.is_empty() {
            return Class::Blank;
        }
        if let Some(kind) = SectionKind::from_keyword(&word.text) {
            return Class::Header(kind);
        }
        if let Some(directive) = Directive::from_word(&word.text) {
            return Class::Directive(directive);
        }
        let stands_out =
            !indented && self.indented && (self.open.kind != SectionKind::Preamble || !self.from_start);
        if stands_out && !word.quoted && is_name(&word.text) && !is_keyword(&word.text) {
            return Class::Header(SectionKind::Unknown);
        }
        Class::Content { indented }
    }

    /// Ends the section under way before the byte at `end`, which is in line `number`.
    fn close(&mut self, bytes: &[u8], end: usize, number: u32) {
        let open = self.open;
        let Some(own) = bytes.get(open.start..end).filter(|own| !own.is_empty()) else { return };
        let shape = Shape {
            kind: open.kind,
            header: open.header - open.start,
            body: open.body - open.start,
            lead_lines: open.header_line - open.first_line,
            line_count: number - open.first_line,
            depth: open.depth,
            conditional: open.conditional,
        };
        self.sections.push(Arc::new(Section::new(own, shape)));
    }
}

/// Whether a word can be the keyword of a section: letters, digits and dashes.
fn is_name(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
