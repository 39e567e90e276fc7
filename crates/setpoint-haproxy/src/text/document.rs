//! A configuration as a vector of sections.

use std::sync::Arc;

use memchr::memchr;

use super::diagnostic::{self, Diagnostic};
use super::directive::Directive;
use super::kind::SectionKind;
use super::lex::{self, Words};
use super::section::{Section, Shape, State};
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
        Self { sections: Parser::new(State::default(), false).run(bytes).sections }
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
        self.sections.iter().map(|section| section.len()).sum()
    }

    /// Returns whether it prints nothing.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// The bytes it was parsed from, with all edits since.
    pub fn print(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        for section in &self.sections {
            section.write_to(&mut out);
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
        let mut edited = self.clone();
        edited.splice(index, removed, bytes);
        edited
    }

    /// Puts bytes in the place of sections. What comes out is what parsing the whole text would give: only the bytes are
    /// parsed where the parser knows the same before and after them as it did, and all of the text elsewhere.
    /// Returns whether all other sections stayed as they were.
    pub(crate) fn splice(&mut self, index: usize, removed: usize, bytes: &[u8]) -> bool {
        let start = index.min(self.sections.len());
        let end = (start + removed).min(self.sections.len());
        let before = start.checked_sub(1).and_then(|index| self.sections.get(index));
        // What a file begins with stays where it is before a header.
        let stays = |section: &Section| {
            section.kind() == SectionKind::Preamble && !section.is_conditional() && begins_with_header(bytes)
        };
        let goes_on =
            |section: &&Arc<Section>| !section.is_ended() || section.exit().leads && !stays(section);
        if let Some(section) = before.filter(goes_on) {
            // Comments at its end belong to the header that follows now, and an open line goes on.
            let bytes = [&section.bytes(), bytes].concat();
            self.splice(start - 1, end - start + 1, &bytes);
            return false;
        }
        let entry = before.map_or(State::default(), |section| section.exit());
        let parsed = Parser::new(entry, start > 0).run(bytes);
        let is_ended = bytes.last().is_none_or(|&byte| byte == b'\n');
        let fits = match self.sections.get(end) {
            None => true,
            Some(next) => is_ended && parsed.exit == next.entry() && next.header().is_some(),
        };
        if fits && !parsed.continues {
            let local = parsed.sections.len() == removed.max(1) || removed == parsed.sections.len() + 1;
            self.sections.splice(start..end, parsed.sections);
            return local;
        }
        let mut text = Vec::with_capacity(self.len() + bytes.len());
        for section in self.sections.get(..start).unwrap_or_default() {
            section.write_to(&mut text);
        }
        text.extend_from_slice(bytes);
        for section in self.sections.get(end..).unwrap_or_default() {
            section.write_to(&mut text);
        }
        *self = Self::parse(&text);
        false
    }

    /// Puts a section in the place of one that has the same header and leaves the parser in the same state.
    pub(crate) fn set_section(&mut self, index: usize, section: Section) {
        if let Some(held) = self.sections.get_mut(index) {
            *held = Arc::new(section);
        }
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

/// Divides bytes into sections, looking at the first word of each line and nothing more.
struct Parser {
    sections: Vec<Arc<Section>>,
    /// How many `.if` are open.
    depth: u32,
    /// Whether all lines of this section so far, or of the last one that had any, are indented.
    indented: bool,
    open: Open,
    /// Whether the bytes go on after a section, which lines before the first header would belong to.
    follows: bool,
    /// Whether a line that is not blank has been read.
    begun: bool,
    /// Where the comments begin that belong to the next header, if one comes.
    lead: Option<Lead>,
}

/// What came of some bytes.
struct Parsed {
    sections: Vec<Arc<Section>>,
    /// What the parser knows after them.
    exit: State,
    /// Whether they begin with lines that belong to what stands before them.
    continues: bool,
}

/// The section under way.
#[derive(Clone, Copy)]
struct Open {
    start: usize,
    first_line: u32,
    entry: State,
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
    /// Whether something but blank lines stands before it in the file.
    begun: bool,
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
    /// Makes a parser that knows something; `follows` says that a section stands before the bytes.
    fn new(entry: State, follows: bool) -> Self {
        let kind = if entry.in_section { SectionKind::Unknown } else { SectionKind::Preamble };
        let open = Open {
            start: 0,
            first_line: 0,
            entry,
            kind,
            header: 0,
            header_line: 0,
            body: 0,
            conditional: entry.depth > 0,
            has_lines: false,
        };
        let State { depth, indented, begun, .. } = entry;
        Self { sections: Vec::new(), depth, indented, open, follows, begun, lead: None }
    }

    fn run(mut self, bytes: &[u8]) -> Parsed {
        let (mut at, mut number) = (0, 0_u32);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let feed = memchr(b'\n', rest);
            let raw = rest.get(..feed.unwrap_or(rest.len())).unwrap_or_default();
            let next = at + raw.len() + usize::from(feed.is_some());
            self.line(bytes, raw, at, next, number);
            at = next;
            number = number.saturating_add(1);
        }
        let exit = State { leads: self.lead.is_some(), ..self.state(self.depth, self.begun) };
        self.close(bytes, at, number, exit);
        // What stood before the first header was closed first, and began at the first byte without one.
        let continues =
            self.follows && self.sections.first().is_some_and(|section| section.header().is_none());
        Parsed { sections: self.sections, exit, continues }
    }

    /// What is known between two lines.
    fn state(&self, depth: u32, begun: bool) -> State {
        let in_section = self.open.kind != SectionKind::Preamble;
        State { depth, indented: self.indented, in_section, begun, leads: false }
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
                    begun: self.begun,
                };
                // What a file begins with speaks of the file, not of its first section.
                let held = self.lead.take();
                let lead = held.filter(|lead| lead.conditional || lead.begun).unwrap_or(own);
                self.open.conditional = lead.before;
                let entry = self.state(lead.depth, lead.begun);
                // Comments that stay with the file would go on if others came after them.
                let exit = State { leads: held.is_some() && lead.start == at, ..entry };
                self.close(bytes, lead.start, lead.line, exit);
                self.open = Open {
                    start: lead.start,
                    first_line: lead.line,
                    entry,
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
        let begun = self.begun;
        self.lead.get_or_insert(Lead { start, line, depth, conditional: false, before, begun })
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
        let stands_out = !indented && self.indented && self.open.kind != SectionKind::Preamble;
        if stands_out && !word.quoted && is_name(&word.text) && !is_keyword(&word.text) {
            return Class::Header(SectionKind::Unknown);
        }
        Class::Content { indented }
    }

    /// Ends the section under way before the byte at `end`, which is in line `number`.
    fn close(&mut self, bytes: &[u8], end: usize, number: u32, exit: State) {
        let open = self.open;
        let Some(own) = bytes.get(open.start..end).filter(|own| !own.is_empty()) else { return };
        let shape = Shape {
            kind: open.kind,
            header: open.header - open.start,
            body: open.body - open.start,
            lead_lines: open.header_line - open.first_line,
            line_count: number - open.first_line,
            entry: open.entry,
            exit,
            conditional: open.conditional,
        };
        self.sections.push(Arc::new(Section::new(own, shape)));
    }
}

/// Returns whether the first line opens a section.
fn begins_with_header(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let word = Words::new(line).next().filter(|word| !word.variable);
    word.is_some_and(|word| SectionKind::from_keyword(&word.text).is_some())
}

/// Returns whether a word can be the keyword of a section: letters, digits and dashes.
fn is_name(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
