//! What a section says of itself: only the lines that say something else now are changed.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Editor;
use super::children::bare;
use super::error::EditError;
use super::key::SectionKey;
use super::place::{acls_raised_above, behind_its_acls};
use super::view::View;
use crate::model::{Fold, Object, OwnLine};
use crate::table::directives;
use crate::table::facts::{Base, facts};
use crate::text::LineEdit;

/// A line of a section's own, by its number, and the canonical lines of what it says when it stands alone.
type Stated = (u32, Vec<Vec<u8>>);

impl Editor<'_> {
    /// Replaces what a section says of itself, its children left as they are. Another name in the object renames it.
    pub fn replace_settings(&mut self, key: &SectionKey, new: &Object) -> Result<(), EditError> {
        let index = self.at(key)?;
        let view = self.view(index, key)?;
        if new.kind != view.kind {
            return Err(EditError::WrongPlace { kind: new.kind, section: view.kind });
        }
        self.valid(new)?;
        if self.judges {
            new.write(self.cx, &mut Vec::new())?;
        }
        let renamed = SectionKey { name: new.name().map(Into::into), nth: 0, ..key.clone() };
        if renamed.name != key.name {
            self.is_free(&renamed)?;
        }
        let view = self.view(index, key)?;
        let edits = self.settings(&view, new)?;
        let before = self.document.clone();
        self.edit_lines(index, &edits);
        if self.view(index, key).map(|view| view.settings().0).as_ref() != Ok(new) {
            // A setting that is spread over several lines: all of them are written anew.
            self.replace_document(before);
            let all = self.all_settings(&self.view(index, key)?, new)?;
            self.edit_lines(index, &all);
        }
        if renamed.name != key.name {
            self.index.renamed(&self.document, key, index);
        }
        self.move_behind_its_defaults(index);
        Ok(())
    }

    /// The lines of a section that say something of the section itself, with what each says when it stands alone.
    fn stated(&self, view: &View<'_>) -> Result<Vec<Stated>, EditError> {
        let (_, beside) = view.settings();
        let beside: FxHashSet<u32> = beside.into_iter().collect();
        let mut found = Vec::new();
        for (line, own) in view.own().filter(|(line, own)| !own.row.is_header && !beside.contains(line)) {
            let mut alone = Fold::new(view.kind);
            alone.own(OwnLine { line, ..own.clone() });
            found.push((line, self.own_lines(&alone.object)?));
        }
        Ok(found)
    }

    /// The canonical lines of what a section says of itself.
    pub(super) fn own_lines(&self, object: &Object) -> Result<Vec<Vec<u8>>, EditError> {
        let mut text = Vec::new();
        object.write_unjudged(self.cx, &mut text)?;
        Ok(text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// The edits that change only the lines that say something else now.
    fn settings(&self, view: &View<'_>, new: &Object) -> Result<Vec<LineEdit>, EditError> {
        let wanted = self.own_lines(new)?;
        let mut missing: FxHashSet<&[u8]> = wanted.iter().map(Vec::as_slice).collect();
        let mut edits = self.header_edit(view, new)?;
        let mut stale = Vec::new();
        let mut last_own = view.section.first_own_line().saturating_sub(1);
        for (line, says) in self.stated(view)? {
            last_own = last_own.max(line);
            if says.iter().all(|text| missing.contains(text.as_slice())) {
                for text in &says {
                    missing.remove(text.as_slice());
                }
            } else {
                stale.push((line, says));
            }
        }
        let mut by_subject: FxHashMap<Vec<&[u8]>, VecDeque<&[u8]>> = FxHashMap::default();
        for text in wanted.iter().map(Vec::as_slice).filter(|text| missing.contains(text)) {
            by_subject.entry(subject_words(text)).or_default().push_back(text);
        }
        for (line, says) in &stale {
            let subject = says.first().map(|text| subject_words(text)).filter(|_| says.len() == 1);
            let successors = subject.and_then(|subject| by_subject.get_mut(&subject));
            edits.push(match successors.and_then(VecDeque::pop_front) {
                Some(text) => {
                    missing.remove(text);
                    LineEdit::Replace { line: *line, text: text.to_vec() }
                }
                None => LineEdit::Delete { line: *line },
            });
        }
        let replaced: Vec<(u32, &[u8])> = edits
            .iter()
            .filter_map(|edit| match edit {
                LineEdit::Replace { line, text } => Some((*line, text.as_slice())),
                _ => None,
            })
            .collect();
        let raised = acls_raised_above(view, &replaced);
        edits.extend(raised);
        let new_lines = wanted.iter().filter(|text| missing.contains(text.as_slice())).cloned().collect();
        edits.extend(insertions(new_lines, view, last_own + 1));
        Ok(edits)
    }

    /// The edits that write all settings of a section anew.
    fn all_settings(&self, view: &View<'_>, new: &Object) -> Result<Vec<LineEdit>, EditError> {
        let mut edits = self.header_edit(view, new)?;
        let own = view.own().filter(|(_, own)| !own.row.is_header);
        edits.extend(own.map(|(line, _)| LineEdit::Delete { line }));
        edits.extend(insertions(self.own_lines(new)?, view, view.section.first_own_line()));
        Ok(edits)
    }

    /// The edit of the header, if it says something else.
    fn header_edit(&self, view: &View<'_>, new: &Object) -> Result<Vec<LineEdit>, EditError> {
        let Some(line) = view.section.header() else { return Ok(Vec::new()) };
        let (old, _) = view.settings();
        if old.header(self.cx)? == new.header(self.cx)? {
            return Ok(Vec::new());
        }
        let metadata = |object: &Object| {
            let field = directives().metadata_field().filter(|_| self.cx.api.keeps_metadata(object.kind))?;
            object.fields.get(field).cloned()
        };
        let line = line.number();
        if metadata(&old) != metadata(new) {
            return Ok(vec![LineEdit::ReplaceAll { line, text: new.header(self.cx)?.into_bytes() }]);
        }
        Ok(vec![LineEdit::Replace { line, text: bare(new).header(self.cx)?.into_bytes() }])
    }
}

/// What makes two lines be about the same setting.
fn subject_words(line: &[u8]) -> Vec<&[u8]> {
    let mut words =
        line.split(|&byte| byte == b' ').filter(|word| !word.is_empty() && *word != b"no").peekable();
    let several = words
        .peek()
        .and_then(|first| std::str::from_utf8(first).ok())
        .is_some_and(|first| facts().is_grouped(first));
    words.take(if several { 2 } else { 1 }).collect()
}

/// New lines; what others start from comes before these, and a condition behind the ACLs that it names.
fn insertions(lines: Vec<Vec<u8>>, view: &View<'_>, before: u32) -> Vec<LineEdit> {
    let section = facts().section(view.section.kind());
    // Lines with conditions stay in their order.
    let mut conditions = before;
    let mut place = |text: &[u8]| {
        let keyword = text.split(|&byte| byte == b' ').next().unwrap_or_default();
        match section.base(&String::from_utf8_lossy(keyword)) {
            Some(Base::Is { name: base, .. }) => {
                let first = view.first_of(|kind| facts().is_based_on(kind, base));
                first.map_or(before, |first| first.min(before))
            }
            Some(Base::On(_)) | None if has_condition(text) => {
                conditions = behind_its_acls(view, text, conditions);
                conditions
            }
            Some(Base::On(_)) | None => before,
        }
    };
    lines.into_iter().map(|text| LineEdit::Insert { before: place(&text), text }).collect()
}

/// Returns whether a line may have a condition.
fn has_condition(line: &[u8]) -> bool {
    [&b" if "[..], b" unless "].iter().any(|word| memchr::memmem::find(line, word).is_some())
}
