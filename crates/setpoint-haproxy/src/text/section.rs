//! A section: its bytes and what is known of them without splitting them into words.

use std::borrow::Cow;
use std::hash::Hasher;

use rustc_hash::FxHasher;

use super::kind::SectionKind;
use super::line::{Line, Lines};

/// One section of a configuration, with the bytes it is written in.
///
/// ```text
/// # the shop's own          lead: comments right above the header, which go where the section goes
/// backend shop from base    header
///     balance leastconn     lines
///     server s1 10.0.0.1
/// ```
///
/// Sections are shared between documents, so positions are counted from the beginning of the section.
#[derive(Clone, Debug)]
pub struct Section {
    bytes: Box<[u8]>,
    hash: u64,
    /// Where the header begins.
    header: usize,
    /// Where the lines after the header begin.
    body: usize,
    /// How many lines stand before the header.
    lead_lines: u32,
    /// How many lines there are.
    line_count: u32,
    /// How many `.if` are open where the section begins.
    depth: u32,
    kind: SectionKind,
    conditional: bool,
}

/// What the parser knows of a section when it has found its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) kind: SectionKind,
    pub(crate) header: usize,
    pub(crate) body: usize,
    pub(crate) lead_lines: u32,
    pub(crate) line_count: u32,
    pub(crate) depth: u32,
    pub(crate) conditional: bool,
}

impl Section {
    pub(crate) fn new(bytes: &[u8], shape: Shape) -> Self {
        let Shape { kind, header, body, lead_lines, line_count, depth, conditional } = shape;
        let mut hasher = FxHasher::default();
        hasher.write(bytes);
        let hash = hasher.finish();
        Self { bytes: bytes.into(), hash, header, body, lead_lines, line_count, depth, kind, conditional }
    }

    /// What it is.
    pub fn kind(&self) -> SectionKind {
        self.kind
    }

    /// Its name: the word after the keyword, if there is one and the kind takes one.
    ///
    /// ```
    /// # use setpoint_haproxy::text::Document;
    /// let document = Document::parse(b"defaults from base\ndefaults mine from base\n");
    /// let names: Vec<_> = document.sections().iter().map(|section| section.name()).collect();
    /// assert_eq!(names, [None, Some(b"mine"[..].into())]);
    /// ```
    pub fn name(&self) -> Option<Cow<'_, [u8]>> {
        if !self.kind.takes_name() {
            return None;
        }
        let mut words = self.header()?.words().skip(1);
        let word = words.next()?;
        if self.kind == SectionKind::Defaults && word.is("from") && words.next().is_some() {
            return None;
        }
        Some(word.text)
    }

    /// The `defaults` section that its header names after `from`.
    pub fn from(&self) -> Option<Cow<'_, [u8]>> {
        if self.kind.governed() == super::Governed::No {
            return None;
        }
        let mut words = self.header()?.words().skip(1);
        words.find(|word| word.is("from"))?;
        words.next().map(|word| word.text)
    }

    /// The line that opens it; a preamble has none.
    pub fn header(&self) -> Option<Line<'_>> {
        Lines::new(&self.bytes, self.header, self.body, self.lead_lines).next()
    }

    /// The comments right above the header.
    pub fn lead(&self) -> Lines<'_> {
        Lines::new(&self.bytes, 0, self.header, 0)
    }

    /// The lines after the header, blank ones and comments included.
    pub fn lines(&self) -> Lines<'_> {
        let before = self.lead_lines + u32::from(self.body > self.header);
        Lines::new(&self.bytes, self.body, self.bytes.len(), before)
    }

    /// All lines: what is above the header, the header, and what is below.
    pub fn all_lines(&self) -> Lines<'_> {
        Lines::new(&self.bytes, 0, self.bytes.len(), 0)
    }

    /// How many lines it has, with those above the header.
    pub fn line_count(&self) -> u32 {
        self.line_count
    }

    /// All of it, as it is written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The header and the lines below it, as they are written.
    pub fn own_bytes(&self) -> &[u8] {
        self.bytes.get(self.header..).unwrap_or_default()
    }

    /// A hash of all its bytes: sections with different hashes are different.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether it is written in the same bytes as another.
    pub fn same_bytes(&self, other: &Self) -> bool {
        self.hash == other.hash && self.bytes == other.bytes
    }

    /// Whether `.if` and its like decide over some of it.
    pub fn is_conditional(&self) -> bool {
        self.conditional
    }

    /// How many `.if` are open where it begins.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }
}

/// Sections are equal if they are written in the same bytes.
impl PartialEq for Section {
    fn eq(&self, other: &Self) -> bool {
        self.same_bytes(other)
    }
}

impl Eq for Section {}
