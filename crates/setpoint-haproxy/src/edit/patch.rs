//! A line changed word by word, so that what people wrote around the change stays.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::compare::lcs::{Stretch, align};
use crate::model::{Context, Object, section_model};
use crate::text::{Document, Line, Section, Word};

/// A line that says `new` and differs from the one that says `old` only in the words that must; none where that can't be
/// decided, and the line is to be written anew.
///
/// `canonical` holds both objects as they are printed. What differs between these is sought in the line, each word by the
/// one before it; what comes in addition is put at the end. Whether the result says `new` is for the model to confirm.
pub(super) fn patched(
    section: &Section,
    line: &Line<'_>,
    canonical: (&[u8], &[u8]),
    new: &Object,
    cx: &Context,
) -> Option<Vec<u8>> {
    let old_line: Vec<Word<'_>> = Line::of(canonical.0).words().collect();
    let new_line: Vec<Word<'_>> = Line::of(canonical.1).words().collect();
    let written: Vec<Word<'_>> = line.words().collect();
    let mut changes: Vec<Change<'_>> = written.iter().map(|_| Change::Keep).collect();
    let mut more: Vec<&[u8]> = Vec::new();
    for stretch in align(&identities(&old_line), &identities(&new_line)) {
        let Stretch::Gap(from, to) = stretch else { continue };
        let mut instead = new_line.get(to)?.iter();
        for index in from {
            let place = find(&written, &old_line, index)?;
            *changes.get_mut(place)? = instead.next().map_or(Change::Drop, |word| Change::Write(word.raw));
        }
        more.extend(instead.map(|word| word.raw));
    }
    let text = assembled(line, &written, &changes, &more)?;
    let header = section.header()?.raw();
    let alone = Document::parse(&[header, b"\n", &text, b"\n"].concat());
    let read = section_model(alone.sections().first()?, cx);
    let confirmed =
        read.unmodelled.is_empty() && read.children.len() == 1 && read.children.first() == Some(new);
    confirmed.then_some(text)
}

/// What becomes of a word.
enum Change<'a> {
    Keep,
    Drop,
    Write(&'a [u8]),
}

fn identities(words: &[Word<'_>]) -> Vec<u64> {
    let identity = |word: &Word<'_>| {
        let mut hasher = FxHasher::default();
        word.text.hash(&mut hasher);
        hasher.finish()
    };
    words.iter().map(identity).collect()
}

/// Where a word of the canonical line stands in the line as it is written: where it stands once, or once after the same
/// word.
fn find(written: &[Word<'_>], canonical: &[Word<'_>], index: usize) -> Option<usize> {
    let word = canonical.get(index)?;
    let before = canonical.get(index.checked_sub(1)?)?;
    let places = |fits: &dyn Fn(&Word<'_>, &Word<'_>) -> bool| {
        let pairs = written.iter().zip(written.iter().skip(1)).enumerate();
        let mut places = pairs.filter(|(_, (a, b))| fits(a, b)).map(|(place, _)| place + 1);
        places.next().filter(|_| places.next().is_none())
    };
    places(&|a, b| a.text == before.text && b.text == word.text)
        .or_else(|| places(&|_, b| b.text == word.text))
}

/// The words with the blanks that stood between them.
fn assembled(
    line: &Line<'_>,
    written: &[Word<'_>],
    changes: &[Change<'_>],
    more: &[&[u8]],
) -> Option<Vec<u8>> {
    let raw = line.raw();
    let mut out = Vec::with_capacity(raw.len() + 32);
    let mut end = None;
    for (word, change) in written.iter().zip(changes) {
        let start = usize::try_from(word.column).ok()?.checked_sub(1)?;
        let gap = end.map_or(Some(&b""[..]), |end| raw.get(end..start))?;
        end = Some(start + word.raw.len());
        let text = match change {
            Change::Drop => continue,
            Change::Keep => word.raw,
            Change::Write(text) => text,
        };
        out.extend_from_slice(gap);
        out.extend_from_slice(text);
    }
    for word in more {
        out.push(b' ');
        out.extend_from_slice(word);
    }
    Some(out)
}
