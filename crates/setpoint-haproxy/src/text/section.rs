//! A section: its bytes and what is known of them without splitting them into words.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use smol_str::SmolStr;

use super::chunk::{Chunk, divide};
use super::kind::SectionKind;
use super::line::{Line, Lines};
use crate::model::SectionModel;

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
    /// The lead, the header and the first lines.
    head: Chunk,
    /// The lines after them, of a long section.
    tail: Vec<Arc<Chunk>>,
    /// Where the header begins.
    header: usize,
    /// Where the lines after the header begin.
    body: usize,
    /// How many lines stand before the header.
    lead_lines: u32,
    /// How many lines there are.
    line_count: u32,
    /// What the parser knew before its first line, and after its last.
    entry: State,
    exit: State,
    kind: SectionKind,
    conditional: bool,
    /// Its name, since someone asked.
    key: OnceLock<Option<SmolStr>>,
    /// What it says, for the context that was asked for first.
    model: OnceLock<Arc<SectionModel>>,
}

/// What the parser knows between two lines and that decides over the next.
#[expect(clippy::struct_excessive_bools, reason = "each is an answer to a question of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// How many `.if` are open.
    pub(crate) depth: u32,
    /// Whether all lines of the section so far, or of the last one that had any, are indented.
    pub(crate) indented: bool,
    /// Whether a section has begun.
    pub(crate) in_section: bool,
    /// Whether a line that is not blank has been read.
    pub(crate) begun: bool,
    /// Whether the last lines belong to the next header, if one comes.
    pub(crate) leads: bool,
}

/// What the parser knows of a section when it has found its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) kind: SectionKind,
    pub(crate) header: usize,
    pub(crate) body: usize,
    pub(crate) lead_lines: u32,
    pub(crate) line_count: u32,
    pub(crate) entry: State,
    pub(crate) exit: State,
    pub(crate) conditional: bool,
}

impl Section {
    pub(crate) fn new(bytes: &[u8], shape: Shape) -> Self {
        let Shape { kind, header, body, lead_lines, line_count, entry, exit, conditional } = shape;
        let (head, tail) = divide(bytes, body, line_count);
        let (key, model) = (OnceLock::new(), OnceLock::new());
        Self { head, tail, header, body, lead_lines, line_count, entry, exit, kind, conditional, key, model }
    }

    /// The same section with other lines in its chunks: its header, kind and state stay.
    pub(crate) fn with_chunks(&self, head: Chunk, tail: Vec<Arc<Chunk>>) -> Self {
        let line_count =
            tail.iter().map(|chunk| chunk.line_count()).fold(head.line_count(), u32::saturating_add);
        let (key, model) = (self.key.clone(), OnceLock::new());
        Self { head, tail, line_count, key, model, ..*self }
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
        let bytes = self.head.bytes().get(self.header..self.body).unwrap_or_default();
        Lines::new(bytes, &[], self.lead_lines).next()
    }

    /// The comments right above the header.
    pub fn lead(&self) -> Lines<'_> {
        Lines::new(self.head.bytes().get(..self.header).unwrap_or_default(), &[], 0)
    }

    /// The lines after the header, blank ones and comments included.
    pub fn lines(&self) -> Lines<'_> {
        let before = self.lead_lines + u32::from(self.body > self.header);
        Lines::new(self.head.bytes().get(self.body..).unwrap_or_default(), &self.tail, before)
    }

    /// All lines: what is above the header, the header, and what is below.
    pub fn all_lines(&self) -> Lines<'_> {
        Lines::new(self.head.bytes(), &self.tail, 0)
    }

    /// How many lines it has, with those above the header.
    pub fn line_count(&self) -> u32 {
        self.line_count
    }

    /// All of it, as it is written; of a long section, a copy.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        if self.tail.is_empty() {
            return Cow::Borrowed(self.head.bytes());
        }
        let mut bytes = Vec::with_capacity(self.len());
        self.write_to(&mut bytes);
        Cow::Owned(bytes)
    }

    /// How many bytes it takes.
    pub fn len(&self) -> usize {
        self.chunks().map(|chunk| chunk.bytes().len()).sum()
    }

    /// Returns whether it takes no bytes, which no section of a document does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes all of it.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        for chunk in self.chunks() {
            out.extend_from_slice(chunk.bytes());
        }
    }

    /// The stretches of lines that it is made of.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        std::iter::once(&self.head).chain(self.tail.iter().map(|chunk| &**chunk))
    }

    pub(crate) fn head(&self) -> &Chunk {
        &self.head
    }

    pub(crate) fn tail(&self) -> &[Arc<Chunk>] {
        &self.tail
    }

    /// The number of the first line after the header.
    pub(crate) fn first_own_line(&self) -> u32 {
        self.lead_lines + u32::from(self.body > self.header)
    }

    /// Returns whether it is written in the same bytes as another.
    pub fn same_bytes(&self, other: &Self) -> bool {
        let same = |(a, b): (&Arc<Chunk>, &Arc<Chunk>)| Arc::ptr_eq(a, b) || a.same_bytes(b);
        if self.tail.len() == other.tail.len()
            && self.head.same_bytes(&other.head)
            && self.tail.iter().zip(&other.tail).all(same)
        {
            return true;
        }
        // The same bytes may be divided otherwise.
        !(self.tail.is_empty() && other.tail.is_empty())
            && self.len() == other.len()
            && self.chunks().flat_map(Chunk::bytes).eq(other.chunks().flat_map(Chunk::bytes))
    }

    /// Its name as text, kept once it was asked for. Of a section that nobody knows, the words of its header.
    pub(crate) fn key_name(&self) -> Option<&SmolStr> {
        let read = || {
            if self.kind == SectionKind::Unknown {
                let words = self.header()?.words().map(|word| word.to_str_lossy().into_owned());
                return Some(words.collect::<Vec<_>>().join(" ").into());
            }
            self.name().map(|name| SmolStr::new(String::from_utf8_lossy(&name)))
        };
        self.key.get_or_init(read).as_ref()
    }

    pub(crate) fn model(&self) -> &OnceLock<Arc<SectionModel>> {
        &self.model
    }

    /// Returns whether `.if` and its like decide over some of it.
    pub fn is_conditional(&self) -> bool {
        self.conditional
    }

    /// A line by its number.
    pub(crate) fn line(&self, number: u32) -> Option<Line<'_>> {
        let mut base = 0;
        for chunk in self.chunks() {
            let next = base + chunk.line_count();
            if number < next {
                return chunk.lines(base).nth(usize::try_from(number - base).ok()?);
            }
            base = next;
        }
        None
    }

    /// Its last line.
    pub(crate) fn last_line(&self) -> Option<Line<'_>> {
        self.tail.last().map_or(&self.head, |chunk| chunk).lines(0).last()
    }

    /// Returns whether a line feed ends its last line.
    pub(crate) fn is_ended(&self) -> bool {
        self.tail.last().map_or(&self.head, |chunk| chunk).bytes().last() == Some(&b'\n')
    }

    /// What the parser knew before its first line.
    pub(crate) fn entry(&self) -> State {
        self.entry
    }

    /// What the parser knew after its last line.
    pub(crate) fn exit(&self) -> State {
        self.exit
    }
}

/// Sections are equal if they are written in the same bytes.
impl PartialEq for Section {
    fn eq(&self, other: &Self) -> bool {
        self.same_bytes(other)
    }
}

impl Eq for Section {}
