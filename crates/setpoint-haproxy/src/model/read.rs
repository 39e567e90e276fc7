//! From text to model: each line of a section is looked up in the table and read by the row that fits.

use std::borrow::Cow;
use std::sync::Arc;

use smol_str::SmolStr;

use super::{Context, Fields, Model, Object, ObjectKind, SectionModel, TextOnly, Value};
use crate::table::read::{Token, element_value, read_row};
use crate::table::{Repeat, Row, directives};
use crate::text::{Document, Line, MAX_WORDS, Section, SectionKind, Word};

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
    Model {
        sections: document.sections().iter().map(|section| Arc::new(section_model(section, cx))).collect(),
    }
}

/// Reads what one section says.
pub fn section_model(section: &Section, cx: &Context) -> SectionModel {
    let name = section.name().map(|name| SmolStr::new(String::from_utf8_lossy(&name)));
    let mut read = SectionModel {
        kind: section.kind(),
        name,
        object: None,
        children: Vec::new(),
        unmodelled: Vec::new(),
        text_only: None,
    };
    let Some(kind) = section_object(section.kind()) else {
        read.text_only = Some(TextOnly::NoModel);
        return read;
    };
    if section.is_conditional() {
        read.text_only = Some(TextOnly::Conditional);
        return read;
    }
    let mut reader = SectionReader::new(kind, section, cx);
    reader.object.fields = Fields::with_capacity(4);
    reader.children.reserve(usize::try_from(section.line_count()).unwrap_or_default().min(64));
    let mut is_header = section.header().is_some();
    for line in section.header().into_iter().chain(section.lines()) {
        if let Err(reason) = reader.line(&line, is_header) {
            read.text_only = Some(reason);
            return read;
        }
        is_header = false;
    }
    read.object = Some(reader.object);
    read.children = reader.children;
    read.unmodelled = reader.unmodelled;
    read
}

/// The sections that have a model.
const SECTIONS: [(SectionKind, ObjectKind); 19] = [
    (SectionKind::Backend, ObjectKind::Backend),
    (SectionKind::Frontend, ObjectKind::Frontend),
    (SectionKind::Global, ObjectKind::Global),
    (SectionKind::Defaults, ObjectKind::Defaults),
    (SectionKind::Userlist, ObjectKind::Userlist),
    (SectionKind::Peers, ObjectKind::Peers),
    (SectionKind::Mailers, ObjectKind::Mailers),
    (SectionKind::Resolvers, ObjectKind::Resolvers),
    (SectionKind::Cache, ObjectKind::Cache),
    (SectionKind::Ring, ObjectKind::Ring),
    (SectionKind::Traces, ObjectKind::Traces),
    (SectionKind::LogForward, ObjectKind::LogForward),
    (SectionKind::LogProfile, ObjectKind::LogProfile),
    (SectionKind::HttpErrors, ObjectKind::HttpErrors),
    (SectionKind::Healthcheck, ObjectKind::Healthcheck),
    (SectionKind::Acme, ObjectKind::Acme),
    (SectionKind::CrtStore, ObjectKind::CrtStore),
    (SectionKind::FcgiApp, ObjectKind::FcgiApp),
    (SectionKind::Program, ObjectKind::Program),
];

/// Returns the kind of object that a section is.
pub(crate) fn section_object(kind: SectionKind) -> Option<ObjectKind> {
    SECTIONS.iter().find(|(section, _)| *section == kind).map(|(_, object)| *object)
}

/// Returns the kind of section that an object is.
pub(crate) fn section_kind(kind: ObjectKind) -> SectionKind {
    SECTIONS.iter().find(|(_, object)| *object == kind).map_or(SectionKind::Unknown, |(section, _)| *section)
}

struct SectionReader<'s> {
    kind: ObjectKind,
    cx: &'s Context,
    /// All of the section, if it is UTF-8.
    text: Option<&'s str>,
    object: Object,
    children: Vec<Object>,
    unmodelled: Vec<u32>,
    /// The words of the line at hand; kept so that its memory is used again.
    tokens: Vec<Token<'s>>,
}

impl<'s> SectionReader<'s> {
    fn new(kind: ObjectKind, section: &'s Section, cx: &'s Context) -> Self {
        Self {
            kind,
            cx,
            text: std::str::from_utf8(section.bytes()).ok(),
            object: Object::new(kind),
            children: Vec::new(),
            unmodelled: Vec::new(),
            tokens: Vec::with_capacity(16),
        }
    }

    fn line(&mut self, line: &Line<'s>, is_header: bool) -> Result<(), TextOnly> {
        let mut tokens = std::mem::take(&mut self.tokens);
        tokens.clear();
        let is_text = self.tokens_of(line, &mut tokens)?;
        let read = tokens.is_empty()
            || (is_text
                && if is_header { self.header(line, &tokens) } else { self.directive(line, &tokens) });
        self.tokens = tokens;
        if !read {
            self.unmodelled.push(line.number());
        }
        Ok(())
    }

    /// Collects the words of a line; says whether all of them are text.
    fn tokens_of(&self, line: &Line<'s>, tokens: &mut Vec<Token<'s>>) -> Result<bool, TextOnly> {
        let push = |word| tokens.push(Token { raw: Cow::Borrowed(word), text: Cow::Borrowed(word) });
        if self.text.is_some_and(|text| line.plain_words(text, push)) && tokens.len() <= MAX_WORDS {
            return Ok(true);
        }
        tokens.clear();
        let mut is_text = true;
        let mut variable = false;
        let mut quoted = false;
        for word in line.words() {
            variable |= word.variable;
            quoted |= word.quoted;
            match token(word) {
                Some(token) => tokens.push(token),
                None => is_text = false,
            }
        }
        if (quoted || tokens.len() > MAX_WORDS) && line.error().is_some() {
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

    fn header(&mut self, line: &Line<'_>, tokens: &[Token<'_>]) -> bool {
        let version = self.cx.version;
        let Some((row, fields)) = directives()
            .headers(self.kind, version)
            .find_map(|row| read_row(row, tokens, false, version).map(|fields| (row, fields)))
        else {
            return false;
        };
        for (field, value) in fields {
            self.object.fields.set(field, value);
        }
        self.object.line = line.number();
        let metadata = self.metadata(row, line);
        if let Some((field, value)) = directives().metadata_field().zip(metadata) {
            self.object.fields.set(field, value);
        }
        true
    }

    fn directive(&mut self, line: &Line<'_>, tokens: &[Token<'_>]) -> bool {
        let Some(first) = tokens.first() else { return true };
        if self.read(line, tokens, false) {
            return true;
        }
        match tokens.get(1..) {
            Some(rest) if first.text == "no" && !rest.is_empty() => self.read(line, rest, true),
            _ => false,
        }
    }

    fn read(&mut self, line: &Line<'_>, tokens: &[Token<'_>], negated: bool) -> bool {
        let version = self.cx.version;
        let (Some(first), second) = (tokens.first(), tokens.get(1)) else { return false };
        let second = second.map(|word| word.text.as_ref());
        for row in directives().candidates(self.kind, &first.text, second, version) {
            let Some(fields) = read_row(row, tokens, negated, version) else { continue };
            if row.owners.contains(&self.kind) {
                return self.own(row, line, fields);
            }
            let Some(kind) = row.owners.first().copied() else { continue };
            let mut child = Object { kind, fields, line: line.number() };
            if let Some((field, value)) = directives().metadata_field().zip(self.metadata(row, line)) {
                child.fields.set(field, value);
            }
            if let Some((field, address)) = directives().name_field(kind).zip(tokens.get(1))
                && matches!(kind, ObjectKind::Bind | ObjectKind::DgramBind)
                && child.fields.get(field).is_none()
            {
                // What is listened on without a name is called by its address.
                child.fields.set(field, Value::Text(SmolStr::new(&address.text)));
            }
            self.children.push(child);
            return true;
        }
        false
    }

    /// Takes a line of the section's own: it replaces an earlier one of the same family, or adds to it or to a list.
    /// Says whether the model has a place for it.
    fn own(&mut self, row: &Row, line: &Line<'_>, fields: super::Fields) -> bool {
        let table = directives();
        if let Some(list) = row.list {
            let mut fields = fields;
            if let Some((field, value)) = row.metadata.zip(comment_metadata(line)) {
                fields.set(field, value);
            }
            for (field, double) in &row.mirror {
                if self.object.fields.get(list).is_none()
                    && let Some(value) = fields.get(*field)
                {
                    self.object.fields.set(*double, value.clone());
                }
            }
            self.object.fields.push(list, element_value(fields));
            return true;
        }
        match row.repeat {
            Repeat::Merge => {}
            Repeat::Once if fields.iter().any(|(field, _)| self.object.fields.get(*field).is_some()) => {
                return false;
            }
            Repeat::Once | Repeat::Replace => {
                for field in table.family(row.family) {
                    self.object.fields.remove(*field);
                }
            }
        }
        for (field, value) in fields {
            self.object.fields.set(field, value);
        }
        if let Some((field, value)) = row.metadata.zip(comment_metadata(line)) {
            self.object.fields.set(field, value);
        }
        true
    }

    /// Reads the comment at the end of a line, where this version keeps it with the object.
    fn metadata(&self, row: &Row, line: &Line<'_>) -> Option<Value> {
        let kind = if row.is_header { self.kind } else { *row.owners.first()? };
        super::json::keeps_metadata(kind, self.cx.version).then(|| comment_metadata(line)).flatten()
    }
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
