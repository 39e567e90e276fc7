//! Whole sections.

use std::borrow::Cow;
use std::sync::Arc;

use super::Editor;
use super::error::EditError;
use super::key::SectionKey;
use crate::model::{SectionModel, TextOnly, section_model};
use crate::table::facts::facts;
use crate::text::{Section, SectionKind, Style};

impl Editor<'_> {
    /// Lists the sections of a kind, in the order of the text.
    pub fn sections(&self, kind: SectionKind) -> Vec<SectionKey> {
        let mut counts = rustc_hash::FxHashMap::default();
        let sections = self.document.sections().iter().filter(|section| section.kind() == kind);
        let keys = sections.map(|section| {
            let name = section.key_name().cloned();
            let count: &mut u32 = counts.entry(name.clone()).or_default();
            *count += 1;
            SectionKey { kind, name, nth: *count - 1 }
        });
        keys.collect()
    }

    /// Returns what a section says, with all that stands in it.
    pub fn section(&mut self, key: &SectionKey) -> Result<Arc<SectionModel>, EditError> {
        let index = self.at(key)?;
        let section = self.document.sections().get(index).ok_or_else(|| EditError::no_section(key))?;
        let model = section_model(section, self.cx);
        match model.text_only {
            Some(why) => Err(EditError::TextOnly { section: key.clone(), why }),
            None => Ok(model),
        }
    }

    /// Creates a section with all that stands in it: behind the last of its kind, or where the same `defaults` govern it.
    pub fn create_section(&mut self, section: &SectionModel) -> Result<SectionKey, EditError> {
        let key = SectionKey { kind: section.kind, name: section.name.clone(), nth: 0 };
        if !(key.kind == SectionKind::Defaults && key.name.is_none()) {
            self.is_free(&key)?;
        }
        self.valid_section(section)?;
        let bytes = self.written(section, &key)?;
        let from = section.object.as_ref().and_then(|object| object.get("from"));
        let from = from.and_then(|from| from.as_str()).map(|from| from.as_bytes().to_vec());
        let governor = self.last_defaults();
        let place = self.place_for(&key, from.as_deref(), governor.as_ref());
        self.insert_apart(place, &bytes);
        Ok(key)
    }

    /// Replaces a section with all that stands in it, where it stands.
    pub fn replace_section(&mut self, key: &SectionKey, section: &SectionModel) -> Result<(), EditError> {
        let index = self.at(key)?;
        let renamed = SectionKey { kind: section.kind, name: section.name.clone(), nth: 0 };
        if renamed.kind != key.kind {
            let (Some(kind), Some(other)) =
                (section.object.as_ref(), crate::table::directives().section_object(key.kind))
            else {
                return Err(EditError::TextOnly { section: key.clone(), why: TextOnly::NoModel });
            };
            return Err(EditError::WrongPlace { kind: kind.kind, section: other });
        }
        self.is_whole(index, key)?;
        if renamed.name != key.name {
            self.is_free(&renamed)?;
        }
        self.valid_section(section)?;
        let mut bytes = self.written(section, key)?;
        if let Some(held) = self.document.sections().get(index) {
            // What separates it from the next section stays.
            let text = held.bytes();
            let lines = text.split_inclusive(|&byte| byte == b'\n').rev();
            let blank = lines.take_while(|line| line.trim_ascii().is_empty()).map(<[u8]>::len).sum::<usize>();
            bytes.extend_from_slice(text.get(text.len() - blank..).unwrap_or_default());
        }
        let count = self.document.sections().len();
        if !self.document.splice(index, 1, &bytes) || self.document.sections().len() != count {
            self.index.forget();
        } else if renamed.name != key.name {
            self.index.renamed(&self.document, key, index);
        }
        Ok(())
    }

    /// Refuses a section that is there, or whose name another has from which it must differ.
    pub(super) fn is_free(&mut self, key: &SectionKey) -> Result<(), EditError> {
        let mut kinds = vec![key.kind];
        if self.judges && key.name.is_some() {
            let groups = |kind| facts().name_groups(kind, Some(self.cx.haproxy));
            let shares =
                |kind: &SectionKind| groups(*kind).any(|group| groups(key.kind).any(|own| own == group));
            kinds.extend(SectionKind::all().filter(shares));
        }
        for kind in kinds {
            let other = SectionKey { kind, ..key.clone() };
            if self.index.find(&self.document, &other).is_some() {
                return Err(EditError::Exists { what: other.to_string() });
            }
        }
        Ok(())
    }

    /// Refuses a section with a line that decides over others, such as `.else`: what follows would be read otherwise without it.
    fn is_whole(&self, index: usize, key: &SectionKey) -> Result<(), EditError> {
        let section = self.document.sections().get(index).filter(|_| self.judges);
        if section.is_some_and(|section| section.is_conditional()) {
            return Err(EditError::TextOnly { section: key.clone(), why: TextOnly::Conditional });
        }
        Ok(())
    }

    /// Deletes a section with all that stands in it.
    pub fn delete_section(&mut self, key: &SectionKey) -> Result<(), EditError> {
        let index = self.at(key)?;
        self.is_whole(index, key)?;
        if self.document.splice(index, 1, b"") {
            self.index.removed(key, index);
        } else {
            self.index.forget();
        }
        Ok(())
    }

    /// Creates a section as it is written in another text. `governor` is the `defaults` that governs it there by its place.
    pub(crate) fn create_text(
        &mut self,
        key: &SectionKey,
        section: &Section,
        governor: Option<&SectionKey>,
    ) -> Result<(), EditError> {
        if self.index.find(&self.document, key).is_some() {
            return Err(EditError::Exists { what: key.to_string() });
        }
        let from = section.from().map(Cow::into_owned);
        let mut place = self.place_for(key, from.as_deref(), governor);
        if let Some(before) = key.nth.checked_sub(1) {
            // The next of several stands after those before it.
            let before = SectionKey { nth: before, ..key.clone() };
            place = place.max(self.at(&before)? + 1);
        }
        self.insert_apart(place, &ended(&section.bytes()));
        Ok(())
    }

    /// Creates a section of which only its own settings are given, where a `defaults` governs it by its place.
    pub(crate) fn create_governed(
        &mut self,
        key: &SectionKey,
        section: &SectionModel,
        governor: Option<&SectionKey>,
    ) -> Result<(), EditError> {
        if self.index.find(&self.document, key).is_some() {
            return Err(EditError::Exists { what: key.to_string() });
        }
        let bytes = self.written(section, key)?;
        let from = section.object.as_ref().and_then(|object| object.get("from"));
        let from = from.and_then(|from| from.as_str()).map(|from| from.as_bytes().to_vec());
        let place = self.place_for(key, from.as_deref(), governor);
        self.insert_apart(place, &bytes);
        Ok(())
    }

    /// Replaces a section by how it is written in another text; it moves where another `defaults` governs it there.
    pub(crate) fn replace_text(
        &mut self,
        key: &SectionKey,
        section: &Section,
        governor: Option<&SectionKey>,
    ) -> Result<(), EditError> {
        let index = self.at(key)?;
        let by_place = section.kind().is_proxy() && section.from().is_none();
        let bytes = section.bytes();
        if by_place && self.governor_at(index).as_ref() != governor {
            self.splice(index, 1, b"");
            self.index.forget();
            let place = self.zone_end(governor);
            self.insert_apart(place, &ended(&bytes));
            return Ok(());
        }
        let is_last = index + 1 == self.document.sections().len();
        let bytes = if is_last { bytes } else { Cow::Owned(ended(&bytes).into_owned()) };
        self.splice(index, 1, &bytes);
        self.index.forget();
        Ok(())
    }

    /// A section as text, in the style of the document: its header, its own settings, and its children.
    fn written(&self, section: &SectionModel, key: &SectionKey) -> Result<Vec<u8>, EditError> {
        let Some(object) = &section.object else {
            return Err(EditError::TextOnly { section: key.clone(), why: TextOnly::NoModel });
        };
        let mut text = Vec::new();
        if self.judges || !section.children.is_empty() {
            section.write(self.cx, &mut text)?;
        } else {
            text.extend_from_slice(object.header(self.cx)?.as_bytes());
            for line in self.own_lines(object)? {
                text.extend_from_slice(b"\n  ");
                text.extend_from_slice(&line);
            }
        }
        let style = Style::around(&self.document, self.document.sections().len().saturating_sub(1));
        let mut bytes = Vec::with_capacity(text.len() + 64);
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let own = line.trim_ascii_start();
            if own.len() < line.len() {
                bytes.extend_from_slice(&style.indentation);
            }
            bytes.extend_from_slice(own);
            bytes.extend_from_slice(style.end());
        }
        Ok(bytes)
    }

    /// Where a new section is put.
    fn place_for(&self, key: &SectionKey, from: Option<&[u8]>, governor: Option<&SectionKey>) -> usize {
        let sections = self.document.sections();
        let is_defaults = |section: &Section| section.kind() == SectionKind::Defaults;
        match key.kind {
            SectionKind::Preamble => 0,
            // Behind what it starts from, and where it governs nothing by its place alone.
            SectionKind::Defaults if key.name.is_some() => {
                let base = from
                    .and_then(|name| self.document.find(SectionKind::Defaults, Some(name)))
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
                let is_placed = facts().section(kind).is_placed;
                let follows = |section: &Section| match section.kind() {
                    SectionKind::Preamble => false,
                    kind => is_placed || kind == SectionKind::Defaults || kind.is_proxy(),
                };
                let next = || sections.iter().position(|section| follows(section));
                last.or_else(next).unwrap_or(sections.len())
            }
        }
    }

    /// The place after the last section that a `defaults` governs by its place.
    fn zone_end(&self, governor: Option<&SectionKey>) -> usize {
        let sections = self.document.sections();
        let start = governor.and_then(|key| super::find(&self.document, key)).map_or(0, |index| index + 1);
        let next = sections.iter().skip(start).position(|section| section.kind() == SectionKind::Defaults);
        next.map_or(sections.len(), |next| start + next)
    }

    /// The last `defaults` before a section.
    fn governor_at(&self, index: usize) -> Option<SectionKey> {
        let sections = self.document.sections().get(..index)?;
        let before = sections.iter().rposition(|section| section.kind() == SectionKind::Defaults)?;
        let name = sections.get(before)?.key_name().cloned();
        let same = |section: &&Arc<Section>| {
            section.kind() == SectionKind::Defaults && section.key_name() == name.as_ref()
        };
        let nth = u32::try_from(sections.get(..before)?.iter().filter(same).count()).ok()?;
        Some(SectionKey { kind: SectionKind::Defaults, name, nth })
    }

    /// The last `defaults` of all.
    fn last_defaults(&self) -> Option<SectionKey> {
        self.governor_at(self.document.sections().len())
    }

    /// Moves a section that names `defaults` further down behind them.
    pub(super) fn move_behind_its_defaults(&mut self, index: usize) {
        let sections = self.document.sections();
        let Some(section) = sections.get(index).filter(|section| section.kind().is_proxy()) else { return };
        let base = section.from().and_then(|name| self.document.find(SectionKind::Defaults, Some(&name)));
        if base.is_none_or(|base| base < index) {
            return;
        }
        let bytes = ended(&section.bytes()).into_owned();
        self.splice(index, 1, b"");
        self.index.forget();
        self.insert_apart(self.document.sections().len(), &bytes);
    }

    fn splice(&mut self, index: usize, removed: usize, bytes: &[u8]) {
        if !self.document.splice(index, removed, bytes) {
            self.index.forget();
        }
    }

    /// Puts a section in, with a blank line on either side where there is none.
    fn insert_apart(&mut self, mut place: usize, bytes: &[u8]) {
        let style = Style::around(&self.document, place.saturating_sub(1));
        if let Some(index) = place.checked_sub(1)
            && let Some(before) = self.document.sections().get(index)
        {
            let is_blank =
                |line: &crate::text::Line<'_>| line.is_ended() && line.raw().trim_ascii().is_empty();
            if !before.last_line().as_ref().is_some_and(is_blank) {
                let mut text = ended(&before.bytes()).into_owned();
                text.extend_from_slice(style.end());
                let count = self.document.sections().len();
                self.splice(index, 1, &text);
                // Comments at the end of a file are no lead of what follows now.
                place = place + self.document.sections().len() - count;
            }
        }
        let is_last = place >= self.document.sections().len();
        let ends_blank = bytes.ends_with(b"\n\n") || bytes.ends_with(b"\n\r\n");
        let bytes = if is_last || ends_blank {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned([bytes, style.end()].concat())
        };
        if self.document.splice(place, 0, &bytes) {
            self.index.inserted(&self.document, place);
        } else {
            self.index.forget();
        }
    }
}

/// Bytes that end with a line feed.
fn ended(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.is_empty() || bytes.ends_with(b"\n") {
        Cow::Borrowed(bytes)
    } else {
        Cow::Owned([bytes, b"\n"].concat())
    }
}
