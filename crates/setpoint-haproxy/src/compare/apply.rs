//! Operations applied to a document, in the style it is written in.
//!
//! One section is written anew and parsed; every other stays shared. Within the section, all lines that the operation
//! does not speak of stay byte for byte.

use std::borrow::Cow;

use setpoint_plan::Action;

use super::operation::{ChildKey, Operation, SectionKey, Subject};
use super::patch::patched;
use super::sections::find;
use crate::model::{Context, ModelError, Object, ObjectKind, SectionModel, section_model};
use crate::table::directives;
use crate::text::{Document, LineEdit, Section, SectionKind};

/// Why an operation does not fit a document.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The section is not there.
    #[error("there is no {0}")]
    NoSection(SectionKey),
    /// The section is there already.
    #[error("{0} is there already")]
    Exists(SectionKey),
    /// The child is not there.
    #[error("there is no {kind} {key} in {section}")]
    NoChild {
        /// The section.
        section: SectionKey,
        /// The kind of child.
        kind: ObjectKind,
        /// Which one.
        key: ChildKey,
    },
    /// The operation does not say what is to be there.
    #[error("the operation on {0} does not say what is to be there")]
    Nothing(SectionKey),
    /// What is to be there can't be written.
    #[error(transparent)]
    Unwritable(#[from] ModelError),
}

impl Document {
    /// The document after an operation, in the style it is written in.
    ///
    /// ```
    /// use setpoint_haproxy::compare::compare;
    /// use setpoint_haproxy::model::Context;
    /// use setpoint_haproxy::text::Document;
    ///
    /// let cx = Context::default();
    /// let current = Document::parse(b"backend b\n\tmode   http\n\tserver s1 10.0.0.1:80 # old\n");
    /// let desired = Document::parse(b"backend b\n  mode http\n  server s2 10.0.0.2:80\n");
    /// let mut document = current.clone();
    /// for operation in compare(&current, &desired, &cx)?.operations() {
    ///     document = document.apply(operation, &cx)?;
    /// }
    /// assert_eq!(document.print(), b"backend b\n\tmode   http\n\tserver s2 10.0.0.2:80\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What the operation speaks of must be there, and what it creates must not.
    pub fn apply(&self, operation: &Operation, cx: &Context) -> Result<Self, ApplyError> {
        let key = &operation.section;
        let place = find(self, key);
        if operation.action == Action::Create && !matches!(operation.subject, Subject::Child { .. }) {
            if place.is_some() {
                return Err(ApplyError::Exists(key.clone()));
            }
            return self.with_new_section(operation, cx);
        }
        let index = place.ok_or_else(|| ApplyError::NoSection(key.clone()))?;
        match &operation.subject {
            Subject::Section { new: None, .. } | Subject::Text { new: None, .. } => {
                Ok(self.without_section(index))
            }
            Subject::Section { new: Some(new), .. } => self.with_settings(index, new, cx),
            Subject::Text { new: Some(new), .. } => {
                let moved = new.kind().is_proxy() && new.from().is_none();
                let bytes = ended(new.bytes());
                if moved && self.governor_at(index) != operation.governor {
                    let without = self.without_section(index);
                    let place = without.zone_end(operation.governor.as_ref());
                    return Ok(without.with_inserted_apart(place, &bytes));
                }
                Ok(self.with_section(
                    index,
                    if index + 1 == self.sections().len() { new.bytes() } else { &bytes },
                ))
            }
            Subject::Child { kind, key: child, new, .. } => {
                self.with_child(index, operation, *kind, child, new.as_ref(), cx)
            }
        }
    }

    fn with_new_section(&self, operation: &Operation, cx: &Context) -> Result<Self, ApplyError> {
        let key = &operation.section;
        let (bytes, from) = match &operation.subject {
            Subject::Text { new: Some(new), .. } => {
                (ended(new.bytes()).into_owned(), new.from().map(Cow::into_owned))
            }
            Subject::Section { new: Some(new), .. } => {
                let from =
                    new.get("from").and_then(|value| value.as_str()).map(|from| from.as_bytes().to_vec());
                (self.written(new, cx)?, from)
            }
            _ => return Err(ApplyError::Nothing(key.clone())),
        };
        let place = self.place_for(key, from.as_deref(), operation.governor.as_ref());
        Ok(self.with_inserted_apart(place, &bytes))
    }

    /// A new section as text: its header and its own settings.
    fn written(&self, object: &Object, cx: &Context) -> Result<Vec<u8>, ApplyError> {
        let mut bytes = object.header(cx)?.into_bytes();
        let (indentation, end) = self.style(self.sections().len().saturating_sub(1));
        bytes.extend_from_slice(end);
        for line in own_lines(object, cx)? {
            bytes.extend_from_slice(&indentation);
            bytes.extend_from_slice(&line);
            bytes.extend_from_slice(end);
        }
        Ok(bytes)
    }

    /// Where a new section is put.
    fn place_for(&self, key: &SectionKey, from: Option<&[u8]>, governor: Option<&SectionKey>) -> usize {
        let sections = self.sections();
        let is_defaults = |section: &Section| section.kind() == SectionKind::Defaults;
        match key.kind {
            SectionKind::Preamble => 0,
            // Behind what it starts from, and where it governs nothing by its place alone.
            SectionKind::Defaults if key.name.is_some() => {
                let base = from
                    .and_then(|name| self.find(SectionKind::Defaults, Some(name)))
                    .map_or(0, |base| base + 1);
                let next = sections.iter().skip(base).position(|section| is_defaults(section));
                next.map_or(sections.len(), |next| base + next)
            }
            SectionKind::Defaults => sections.len(),
            kind if kind.is_proxy() => {
                if from.is_some() {
                    sections.len()
                } else {
                    self.zone_end(governor)
                }
            }
            kind => {
                let last = sections.iter().rposition(|section| section.kind() == kind).map(|last| last + 1);
                let proxies =
                    || sections.iter().position(|section| is_defaults(section) || section.kind().is_proxy());
                last.or_else(proxies).unwrap_or(sections.len())
            }
        }
    }

    /// The place after the last section that a `defaults` governs by its place.
    fn zone_end(&self, governor: Option<&SectionKey>) -> usize {
        let start = governor.and_then(|key| find(self, key)).map_or(0, |index| index + 1);
        let next =
            self.sections().iter().skip(start).position(|section| section.kind() == SectionKind::Defaults);
        next.map_or(self.sections().len(), |next| start + next)
    }

    /// The last `defaults` before a section.
    fn governor_at(&self, index: usize) -> Option<SectionKey> {
        super::sections::Side::new(self, index, index + 1).governor_before(index)
    }

    /// The document with a section put in, with a blank line on either side where there is none.
    fn with_inserted_apart(&self, place: usize, bytes: &[u8]) -> Self {
        let mut document = self.clone();
        let (_, end) = self.style(place.saturating_sub(1));
        if let Some(index) = place.checked_sub(1)
            && let Some(before) = self.sections().get(index)
        {
            let mut text = ended(before.bytes()).into_owned();
            let blank = before
                .all_lines()
                .last()
                .is_some_and(|line| line.is_ended() && line.raw().trim_ascii().is_empty());
            if !blank {
                text.extend_from_slice(end);
                document = document.with_section(index, &text);
            }
        }
        let last = place >= document.sections().len();
        let blank_end = bytes.ends_with(b"\n\n") || bytes.ends_with(b"\n\r\n");
        if last || blank_end {
            return document.with_inserted(place, bytes);
        }
        document.with_inserted(place, &[bytes, end].concat())
    }

    /// How the lines of a section are indented and ended.
    fn style(&self, index: usize) -> (Vec<u8>, &'static [u8]) {
        let style = crate::text::Style::around(self, index);
        let end = style.end();
        (style.indentation, end)
    }

    /// The document with other settings of a section itself.
    fn with_settings(&self, index: usize, new: &Object, cx: &Context) -> Result<Self, ApplyError> {
        let Some(section) = self.sections().get(index) else { return Ok(self.clone()) };
        let model = section_model(section, cx);
        let mut document = self.with_lines(index, &settings(section, &model, new, cx)?);
        let reads = |document: &Self| {
            document.sections().get(index).and_then(|section| section_model(section, cx).object)
        };
        if reads(&document).as_ref() != Some(new) {
            // A setting that is spread over several lines: all of them are written anew.
            document = self.with_lines(index, &all_settings(section, &model, new, cx)?);
        }
        Ok(document.behind_its_defaults(index))
    }

    /// A section that names `defaults` further down moves behind them.
    fn behind_its_defaults(&self, index: usize) -> Self {
        let Some(section) = self.sections().get(index).filter(|section| section.kind().is_proxy()) else {
            return self.clone();
        };
        let base = section.from().and_then(|name| self.find(SectionKind::Defaults, Some(&name)));
        if base.is_none_or(|base| base < index) {
            return self.clone();
        }
        let bytes = ended(section.bytes()).into_owned();
        let without = self.without_section(index);
        without.with_inserted_apart(without.sections().len(), &bytes)
    }

    fn with_child(
        &self,
        index: usize,
        operation: &Operation,
        kind: ObjectKind,
        key: &ChildKey,
        new: Option<&Object>,
        cx: &Context,
    ) -> Result<Self, ApplyError> {
        let missing = || ApplyError::NoChild { section: operation.section.clone(), kind, key: key.clone() };
        let section = self.sections().get(index).ok_or_else(missing)?;
        let model = section_model(section, cx);
        let held = child(&model, kind, key);
        let edit = match (operation.action, new) {
            (Action::Create, Some(new)) => {
                let before = match key {
                    ChildKey::Index(_) => held.map(|child| child.line),
                    ChildKey::Name(_) => None,
                };
                let before = before.unwrap_or_else(|| place_for_child(section, &model, kind));
                LineEdit::Insert { before, text: written(new, cx)? }
            }
            (Action::Delete, _) => LineEdit::Delete { line: held.ok_or_else(missing)?.line },
            (_, Some(new)) => {
                let held = held.ok_or_else(missing)?;
                let edit = anew(held.line, held, new, |object| written(object, cx))?;
                word_by_word(section, edit, held, new, cx)?
            }
            (_, None) => return Err(ApplyError::Nothing(operation.section.clone())),
        };
        Ok(self.with_lines(index, &[edit]))
    }
}

/// A child that is there.
fn child<'m>(model: &'m SectionModel, kind: ObjectKind, key: &ChildKey) -> Option<&'m Object> {
    let mut children = model.children.iter().filter(|child| child.kind == kind);
    match key {
        ChildKey::Name(name) => children.find(|child| child.name() == Some(name)),
        ChildKey::Index(index) => children.nth(usize::try_from(*index).ok()?),
    }
}

/// Writes a line anew. A comment that the model keeps is part of what is written, unless it is the same as before:
/// then it stays as it is.
fn anew(
    line: u32,
    old: &Object,
    new: &Object,
    write: impl Fn(&Object) -> Result<Vec<u8>, ApplyError>,
) -> Result<LineEdit, ApplyError> {
    let metadata =
        |object: &Object| directives().metadata_field().and_then(|field| object.fields.get(field).cloned());
    if metadata(old) != metadata(new) {
        return Ok(LineEdit::ReplaceAll { line, text: write(new)? });
    }
    Ok(LineEdit::Replace { line, text: write(&bare(new))? })
}

/// An object without the comment that the model keeps.
fn bare(object: &Object) -> Object {
    let mut bare = object.clone();
    if let Some(field) = directives().metadata_field() {
        bare.fields.remove(field);
    }
    bare
}

/// Narrows the edit of a line to the words that must change, where that says the same.
fn word_by_word(
    section: &Section,
    edit: LineEdit,
    old: &Object,
    new: &Object,
    cx: &Context,
) -> Result<LineEdit, ApplyError> {
    let LineEdit::Replace { line: number, text } = edit else { return Ok(edit) };
    let line = section.lines().find(|line| line.number() == number);
    let before = written(&bare(old), cx)?;
    let patched = line.and_then(|line| patched(section, &line, (&before, &text), &bare(new), cx));
    Ok(LineEdit::Replace { line: number, text: patched.unwrap_or(text) })
}

/// The line before which a child is put that has none of its kind after it.
fn place_for_child(section: &Section, model: &SectionModel, kind: ObjectKind) -> u32 {
    let of_kind = model.children.iter().filter(|child| child.kind == kind).map(|child| child.line).max();
    if let Some(last) = of_kind {
        return last + 1;
    }
    // An ACL must stand before the rules that name it; the rest reads best in the order of ranks.
    let later = |child: &&Object| rank(child.kind) > rank(kind);
    let next = model.children.iter().filter(later).map(|child| child.line).min();
    let first = section.lines().next().map_or(u32::MAX, |line| line.number());
    next.unwrap_or(if rank(kind) == 0 { first } else { u32::MAX })
}

/// The order in which the children of a section are written.
fn rank(kind: ObjectKind) -> u8 {
    match kind {
        ObjectKind::Bind | ObjectKind::DgramBind => 0,
        ObjectKind::Acl => 1,
        ObjectKind::Server | ObjectKind::ServerTemplate => 3,
        _ => 2,
    }
}

/// An object as text, without the line feed at its end. It comes from a text, which HAProxy is the one to judge.
fn written(object: &Object, cx: &Context) -> Result<Vec<u8>, ApplyError> {
    let mut text = Vec::new();
    object.write_unjudged(cx, &mut text)?;
    Ok(text.trim_ascii_end().to_vec())
}

/// The lines that say what a section itself says.
fn own_lines(object: &Object, cx: &Context) -> Result<Vec<Vec<u8>>, ApplyError> {
    let text = written(object, cx)?;
    Ok(text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
}

/// A line by its number, and the canonical lines of what it says.
type Spoken = (u32, Vec<Vec<u8>>);

/// The lines of a section that say something of the section itself, with what each says when it stands alone.
fn spoken(section: &Section, model: &SectionModel, cx: &Context) -> Result<Vec<Spoken>, ApplyError> {
    let header = section.header().map(|line| line.raw()).unwrap_or_default();
    let mut found = Vec::new();
    for line in section.lines().filter(|line| !line.is_blank()) {
        let number = line.number();
        if model.unmodelled.contains(&number) || model.children.iter().any(|child| child.line == number) {
            continue;
        }
        let alone = Document::parse(&[header, b"\n", line.raw(), b"\n"].concat());
        let said = alone.sections().first().and_then(|section| section_model(section, cx).object);
        found.push((number, said.map_or(Ok(Vec::new()), |object| own_lines(&object, cx))?));
    }
    Ok(found)
}

/// What makes two lines be about the same setting.
fn subject_words(line: &[u8]) -> Vec<&[u8]> {
    let mut words =
        line.split(|&byte| byte == b' ').filter(|word| !word.is_empty() && *word != b"no").peekable();
    let several = words.peek().is_some_and(|first| {
        matches!(
            *first,
            b"option" | b"timeout" | b"stats" | b"compression" | b"email-alert" | b"hold" | b"monitor"
        )
    });
    words.take(if several { 2 } else { 1 }).collect()
}

/// The edits that change only the lines that say something else now.
fn settings(
    section: &Section,
    model: &SectionModel,
    new: &Object,
    cx: &Context,
) -> Result<Vec<LineEdit>, ApplyError> {
    let mut wanted = own_lines(new, cx)?;
    let mut edits = header_edit(section, model, new, cx)?;
    let mut stale = Vec::new();
    let mut last_own = section.header().map_or(0, |line| line.number());
    for (line, said) in spoken(section, model, cx)? {
        last_own = last_own.max(line);
        let still = said.iter().all(|text| wanted.contains(text));
        if still {
            wanted.retain(|text| !said.contains(text));
        } else {
            stale.push((line, said));
        }
    }
    for (line, said) in stale {
        let subject = said.first().map(|text| subject_words(text)).unwrap_or_default();
        let successor = wanted.iter().position(|text| said.len() == 1 && subject_words(text) == subject);
        edits.push(match successor {
            Some(position) => LineEdit::Replace { line, text: wanted.remove(position) },
            None => LineEdit::Delete { line },
        });
    }
    edits.extend(insertions(wanted, model, last_own + 1));
    Ok(edits)
}

/// The edits that write all settings of a section anew.
fn all_settings(
    section: &Section,
    model: &SectionModel,
    new: &Object,
    cx: &Context,
) -> Result<Vec<LineEdit>, ApplyError> {
    let mut edits = header_edit(section, model, new, cx)?;
    let first = section.header().map_or(0, |line| line.number()) + 1;
    edits.extend(spoken(section, model, cx)?.into_iter().map(|(line, _)| LineEdit::Delete { line }));
    edits.extend(insertions(own_lines(new, cx)?, model, first));
    Ok(edits)
}

/// New lines; what servers start from comes before them.
fn insertions(lines: Vec<Vec<u8>>, model: &SectionModel, before: u32) -> Vec<LineEdit> {
    let servers = model.children.iter().filter(|child| rank(child.kind) == 3).map(|child| child.line).min();
    let place = |text: &[u8]| match servers {
        Some(server) if text.starts_with(b"default-server") => server.min(before),
        _ => before,
    };
    lines.into_iter().map(|text| LineEdit::Insert { before: place(&text), text }).collect()
}

/// The edit of the header, if it says something else.
fn header_edit(
    section: &Section,
    model: &SectionModel,
    new: &Object,
    cx: &Context,
) -> Result<Vec<LineEdit>, ApplyError> {
    let (Some(line), Some(old)) = (section.header(), &model.object) else { return Ok(Vec::new()) };
    if old.header(cx)? == new.header(cx)? {
        return Ok(Vec::new());
    }
    Ok(vec![anew(line.number(), old, new, |object| Ok(object.header(cx)?.into_bytes()))?])
}

/// Bytes that end with a line feed.
fn ended(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.is_empty() || bytes.ends_with(b"\n") {
        Cow::Borrowed(bytes)
    } else {
        Cow::Owned([bytes, b"\n"].concat())
    }
}
