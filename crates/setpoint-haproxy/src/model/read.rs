//! From text to model: each line of a section is looked up in the table and read by the row that fits.

use std::borrow::Cow;
use std::sync::Arc;

use smol_str::SmolStr;

use super::{Context, Fields, Model, Object, ObjectKind, Placed, SectionModel, TextOnly, Value};
use crate::table::read::{Token, element_value, read_row};
use crate::table::{Repeat, Row, Sequence, directives};
use crate::text::{Document, Line, MAX_WORDS, Section, Word};

/// Reads what a document says.
///
/// ```
/// use setpoint_haproxy::model::{model, Context};
/// use setpoint_haproxy::text::Document;
///
/// let document = Document::parse(b"backend web\n  balance leastconn\n  server s1 192.0.2.1:80 check inter 2s\n");
/// let model = model(&document, &Context::default());
/// let section = &model.sections[0];
/// assert_eq!(section.children[0].get("inter").unwrap().as_int(), Some(2000));
/// assert!(section.unmodelled.is_empty());
/// ```
pub fn model(document: &Document, cx: &Context) -> Model {
    Model { sections: document.sections().iter().map(|section| section_model(section, cx)).collect() }
}

/// Reads what one section says. It is read once: the section keeps it for the context that was asked for first.
pub fn section_model(section: &Section, cx: &Context) -> Arc<SectionModel> {
    let fingerprint = cx.fingerprint();
    let kept = section.model().get_or_init(|| Arc::new(read_section(section, cx, fingerprint)));
    if kept.fingerprint == fingerprint {
        return Arc::clone(kept);
    }
    Arc::new(read_section(section, cx, fingerprint))
}

fn read_section(section: &Section, cx: &Context, fingerprint: u64) -> SectionModel {
    let mut read = SectionModel {
        kind: section.kind(),
        name: section.name().map(|name| SmolStr::new(String::from_utf8_lossy(&name))),
        object: None,
        children: Vec::new(),
        unmodelled: Vec::new(),
        sequences: Vec::new(),
        text_only: None,
        fingerprint,
    };
    let kind = match modelled_kind(section) {
        Ok(kind) => kind,
        Err(reason) => {
            read.text_only = Some(reason);
            return read;
        }
    };
    let reader = LineReader::new(kind, cx);
    let mut fold = Fold::new(kind);
    fold.children.reserve(usize::try_from(section.line_count()).unwrap_or_default().min(64));
    let mut tokens = Vec::with_capacity(16);
    let mut is_header = section.header().is_some();
    for line in section.header().into_iter().chain(section.lines()) {
        tokens.clear();
        match reader.line(&line, is_header, &mut tokens) {
            Ok(LineContent::Blank) => {}
            Ok(LineContent::Child(child, placed)) => {
                fold.children.push(child);
                fold.sequences.extend(placed);
            }
            Ok(LineContent::Setting(own)) => {
                if !fold.own(own) {
                    read.unmodelled.push(line.number());
                }
            }
            // A section of an unknown name can't be distinguished from others.
            Ok(LineContent::Unmodelled) if is_header => {
                read.text_only = Some(TextOnly::Broken);
                return read;
            }
            Ok(LineContent::Unmodelled) => read.unmodelled.push(line.number()),
            Err(reason) => {
                read.text_only = Some(reason);
                return SectionModel { children: Vec::new(), unmodelled: Vec::new(), ..read };
            }
        }
        is_header = false;
    }
    read.object = Some(fold.object);
    read.children = fold.children;
    read.sequences = fold.sequences;
    read
}

/// Returns the kind of object that a section is, or why it is text only.
pub(crate) fn modelled_kind(section: &Section) -> Result<ObjectKind, TextOnly> {
    let kind = directives().section_object(section.kind()).ok_or(TextOnly::NoModel)?;
    if section.is_conditional() { Err(TextOnly::Conditional) } else { Ok(kind) }
}

/// What a line says.
#[derive(Clone, Debug)]
pub(crate) enum LineContent {
    /// It is blank.
    Blank,
    /// Something of the section itself.
    Setting(OwnLine),
    /// A child, and its place where that counts.
    Child(Object, Vec<Placed>),
    /// What the model does not cover.
    Unmodelled,
}

/// What a line says of the section itself.
#[derive(Clone, Debug)]
pub(crate) struct OwnLine {
    pub(crate) line: u32,
    pub(crate) row: &'static Row,
    pub(crate) fields: Fields,
    /// The comment that the model keeps.
    pub(crate) metadata: Option<Value>,
    /// Its place, where that counts.
    pub(crate) placed: Vec<Placed>,
}

/// What the lines of a section say of it together.
pub(crate) struct Fold {
    pub(crate) object: Object,
    children: Vec<Object>,
    sequences: Vec<Placed>,
}

/// Reads lines one by one.
pub(crate) struct LineReader<'s> {
    kind: ObjectKind,
    cx: &'s Context,
}

impl<'s> LineReader<'s> {
    pub(crate) fn new(kind: ObjectKind, cx: &'s Context) -> Self {
        Self { kind, cx }
    }

    /// Reads a line. `tokens` is empty, and given so that its memory is used again.
    pub(crate) fn line<'l>(
        &self,
        line: &Line<'l>,
        is_header: bool,
        tokens: &mut Vec<Token<'l>>,
    ) -> Result<LineContent, TextOnly> {
        let is_text = match self.tokens_of(line, tokens) {
            // What else it says is not known, but that it is a line of its own.
            Err(TextOnly::Variable) if !is_header && !begins_with_a_variable(line) => {
                return Ok(LineContent::Unmodelled);
            }
            read => read?,
        };
        if tokens.is_empty() {
            return Ok(LineContent::Blank);
        }
        if !is_text {
            return Ok(LineContent::Unmodelled);
        }
        let content = if is_header { self.header(line, tokens) } else { self.directive(line, tokens) };
        Ok(content.unwrap_or(LineContent::Unmodelled))
    }

    /// Collects the words of a line; says whether all of them are text.
    fn tokens_of<'l>(&self, line: &Line<'l>, tokens: &mut Vec<Token<'l>>) -> Result<bool, TextOnly> {
        let push = |word| tokens.push(Token { raw: Cow::Borrowed(word), text: Cow::Borrowed(word) });
        if line.plain_words(push) && tokens.len() <= MAX_WORDS {
            return Ok(true);
        }
        tokens.clear();
        let mut is_text = true;
        let mut variable = false;
        for word in line.words() {
            variable |= word.variable;
            match token(word) {
                Some(token) => tokens.push(token),
                None => is_text = false,
            }
        }
        if line.error().is_some() {
            return Err(TextOnly::Broken);
        }
        if variable {
            tokens.clear();
            let words = self.expanded(line)?.into_iter().map(token);
            words.for_each(|token| match token {
                Some(token) => tokens.push(token),
                None => is_text = false,
            });
        }
        Ok(is_text)
    }

    /// Expands the variables of a line, all of which must be known.
    fn expanded<'l>(&self, line: &Line<'l>) -> Result<Vec<Word<'l>>, TextOnly> {
        let unknown = std::cell::Cell::new(false);
        let words = line.expanded(&|name| {
            let value = std::str::from_utf8(name).ok().and_then(|name| self.cx.env.get(name));
            unknown.set(unknown.get() || value.is_none());
            value.map(|value| value.clone().into_bytes())
        });
        if unknown.get() { Err(TextOnly::Variable) } else { Ok(words) }
    }

    fn header(&self, line: &Line<'_>, tokens: &[Token<'_>]) -> Option<LineContent> {
        let version = self.cx.api;
        let (row, fields) = directives()
            .headers(self.kind, version)
            .find_map(|row| read_row(row, tokens, false, version).map(|fields| (row, fields)))?;
        let metadata = self.metadata(row, line);
        Some(LineContent::Setting(OwnLine { line: line.number(), row, fields, metadata, placed: Vec::new() }))
    }

    fn directive(&self, line: &Line<'_>, tokens: &[Token<'_>]) -> Option<LineContent> {
        self.read(line, tokens, false).or_else(|| match tokens {
            [first, rest @ ..] if first.text == "no" && !rest.is_empty() => self.read(line, rest, true),
            _ => None,
        })
    }

    fn read(&self, line: &Line<'_>, tokens: &[Token<'_>], negated: bool) -> Option<LineContent> {
        let version = self.cx.api;
        let (first, second) = (tokens.first()?, tokens.get(1));
        let second_text = second.map(|word| word.text.as_ref());
        for row in directives().candidates(self.kind, &first.text, second_text, version) {
            let Some(fields) = read_row(row, tokens, negated, version) else { continue };
            let owner = row.owners.iter().copied().find(|owner| *owner == self.kind || !owner.is_section());
            if owner.is_some_and(|owner| !directives().is_form_of(row, owner, self.cx)) {
                continue;
            }
            if row.owners.contains(&self.kind) {
                let metadata = row.attributes.metadata.and_then(|_| comment_metadata(line));
                return Some(LineContent::Setting(OwnLine {
                    line: line.number(),
                    row,
                    fields,
                    metadata,
                    placed: placed(row, tokens),
                }));
            }
            let Some(kind) = row.owners.first().copied() else { continue };
            let mut child = Object { kind, fields, line: line.number() };
            if let Some((field, value)) = directives().metadata_field().zip(self.metadata(row, line)) {
                child.fields.set(field, value);
            }
            if let Some((field, address)) = directives().name_field(kind).zip(second)
                && matches!(kind, ObjectKind::Bind | ObjectKind::DgramBind)
                && child.fields.get(field).is_none()
            {
                // What is listened on without a name is called by its address.
                child.fields.set(field, Value::Text(SmolStr::new(&address.text)));
            }
            return Some(LineContent::Child(child, placed(row, tokens)));
        }
        None
    }

    /// Reads the comment at the end of a line, where this version keeps it with the object.
    fn metadata(&self, row: &Row, line: &Line<'_>) -> Option<Value> {
        let kind = if row.is_header { self.kind } else { *row.owners.first()? };
        self.cx.api.keeps_metadata(kind).then(|| comment_metadata(line)).flatten()
    }
}

impl Fold {
    pub(crate) fn new(kind: ObjectKind) -> Self {
        let mut object = Object::new(kind);
        object.fields = Fields::with_capacity(4);
        Self { object, children: Vec::new(), sequences: Vec::new() }
    }

    /// Takes a line of the section's own: it replaces an earlier one of the same family, or adds to it or to a list.
    /// Returns whether the model has a place for it.
    pub(crate) fn own(&mut self, own: OwnLine) -> bool {
        let OwnLine { line, row, mut fields, metadata, placed } = own;
        let object = &mut self.object;
        if row.is_header {
            object.fields = fields;
            object.line = line;
            if let Some((field, value)) = directives().metadata_field().zip(metadata) {
                object.fields.set(field, value);
            }
            return true;
        }
        self.sequences.extend(placed);
        if let Some(list) = row.attributes.list {
            if let Some((field, value)) = row.attributes.metadata.zip(metadata) {
                fields.set(field, value);
            }
            for (field, double) in &row.attributes.mirror {
                if object.fields.get(list).is_none()
                    && let Some(value) = fields.get(*field)
                {
                    object.fields.set(*double, value.clone());
                }
            }
            object.fields.push(list, element_value(fields));
            return true;
        }
        let family = directives().family(row.family);
        let is_there = family.iter().any(|field| object.fields.get(*field).is_some());
        match row.attributes.repeat {
            Repeat::First if is_there => return true,
            Repeat::Beside if is_there => return false,
            Repeat::Merge if row.adds_options(&object.fields, &fields) => return false,
            Repeat::Merge | Repeat::Add => {}
            Repeat::First | Repeat::Beside | Repeat::Last | Repeat::Refused => {
                for field in family {
                    object.fields.remove(*field);
                }
            }
        }
        if row.attributes.repeat == Repeat::Add {
            object.fields.add(fields, " ");
        } else {
            for (field, value) in fields {
                object.fields.set(field, value);
            }
        }
        if let Some((field, value)) = row.attributes.metadata.zip(metadata) {
            object.fields.set(field, value);
        }
        true
    }
}

/// Returns the places of a line among those of its sequences, where that counts.
fn placed(row: &Row, tokens: &[Token<'_>]) -> Vec<Placed> {
    let place = |Sequence { name, key }: &Sequence| {
        let key = key.and_then(|key| tokens.get(key)).map(|word| SmolStr::new(&word.text));
        Placed { sequence: name, key, family: row.family }
    };
    row.attributes.sequences.iter().map(place).collect()
}

/// Returns whether a variable may decide what a line is about: it may even open a section.
fn begins_with_a_variable(line: &Line<'_>) -> bool {
    line.words().next().is_some_and(|word| word.variable)
}

/// Reads a comment as metadata: JSON as it is, anything else as `comment`.
fn comment_metadata(line: &Line<'_>) -> Option<Value> {
    // Most lines have none, which is seen without splitting them.
    memchr::memchr(b'#', line.raw())?;
    let comment = std::str::from_utf8(line.comment()?).ok()?;
    let text = comment.trim_start_matches('#').trim();
    if text.is_empty() {
        return None;
    }
    let json = match serde_json::from_str(text) {
        Ok(json @ serde_json::Value::Object(_)) => json,
        _ => serde_json::json!({ "comment": text }),
    };
    Some(Value::Json(Box::new(json)))
}

/// Makes a token of a word; one that is not UTF-8 can't be in JSON.
fn token(word: Word<'_>) -> Option<Token<'_>> {
    let raw = std::str::from_utf8(word.raw).ok()?;
    let text = match word.text {
        Cow::Borrowed(text) if text.len() == raw.len() => Cow::Borrowed(raw),
        Cow::Borrowed(text) => Cow::Borrowed(std::str::from_utf8(text).ok()?),
        Cow::Owned(text) => Cow::Owned(String::from_utf8(text).ok()?),
    };
    // What a variable stood for is spelled as its value, not as its name.
    let raw = if word.variable || raw.contains("${") {
        Cow::Owned(text.clone().into_owned())
    } else {
        Cow::Borrowed(raw)
    };
    Some(Token { raw, text })
}
