//! What HAProxy would refuse of a line that it knows: a fetch or a converter that is none, a value that does not fit, a
//! rule that has no place in its section. The table of directives knows, as it does when a line is written.

use crate::model::{Context, LineReader, ObjectKind, Version, section_object};
use crate::table::limits::Complaint;
use crate::text::{Diagnostic, Document, Line, Problem, Section, SectionKind, Word};

/// Holds every line that the table covers to what HAProxy accepts of it.
pub(super) fn check(document: &Document, version: Option<Version>, found: &mut Vec<Diagnostic>) {
    let contexts: Vec<Context> = match version {
        Some(version) => vec![Context::new(version)],
        // The newest refuses the least, so that it is asked first.
        None => Version::ALL.into_iter().rev().map(Context::new).collect(),
    };
    let mut first_line = 1_u32;
    for section in document.sections() {
        let (kinds, place) = kinds(section.kind());
        for line in section.lines().filter(|line| line.directive().is_none() && line.error().is_none()) {
            if let Some(complaint) = complaint(&line, kinds, place, &contexts) {
                found.push(diagnostic(section, first_line, &line, complaint));
            }
        }
        first_line = first_line.saturating_add(section.line_count());
    }
}

/// The kinds of objects that describe the lines of a section, and the one that it is; a `listen` is both of two.
fn kinds(section: SectionKind) -> (&'static [ObjectKind], Option<ObjectKind>) {
    match section {
        SectionKind::Listen => (&[ObjectKind::Frontend, ObjectKind::Backend], None),
        section => match section_object(section) {
            Some(kind) => (kind.alone(), Some(kind)),
            None => (&[], None),
        },
    }
}

/// What is wrong with a line in all versions, if something is.
fn complaint(
    line: &Line<'_>,
    kinds: &[ObjectKind],
    place: Option<ObjectKind>,
    contexts: &[Context],
) -> Option<Complaint> {
    let mut first = None;
    for cx in contexts {
        let reader = LineReader::new(ObjectKind::Global, cx);
        match kinds.iter().find_map(|kind| reader.complaint(line, *kind, place)) {
            Some(Err(complaint)) => first = first.or(Some(complaint)),
            Some(Ok(())) | None => return None,
        }
    }
    first
}

fn diagnostic(section: &Section, first_line: u32, line: &Line<'_>, complaint: Complaint) -> Diagnostic {
    let at = complaint
        .word
        .as_deref()
        .and_then(|wrong| line.words().skip(1).find_map(|word| part(&word, wrong)))
        .or_else(|| line.words().next().map(|word| (word.column, word.raw)));
    let at = at.unwrap_or((1, b""));
    let found = Diagnostic::new(Problem::Refused, first_line, line, at, complaint.why);
    let found = Diagnostic { hint: complaint.hint.map(Into::into), ..found };
    // Whether HAProxy reads it is for the condition to say.
    if section.is_conditional() { found.warning() } else { found }
}

/// Finds the part of a word that is wrong: all of it where it is spelled otherwise.
fn part<'l>(word: &Word<'l>, wrong: &str) -> Option<(u32, &'l [u8])> {
    let Some(offset) = memchr::memmem::find(word.raw, wrong.as_bytes()) else {
        return word.to_str_lossy().contains(wrong).then_some((word.column, word.raw));
    };
    let column = word.column.saturating_add(u32::try_from(offset).ok()?);
    Some((column, word.raw.get(offset..offset + wrong.len())?))
}
