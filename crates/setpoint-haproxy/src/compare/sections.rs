//! Which section is which, and which `defaults` governs it.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;

use crate::edit::SectionKey;
use crate::table::facts::facts;
use crate::text::{Document, Governed, Section, SectionKind};

/// A section of one side.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) key: SectionKey,
    pub(super) section: &'a Arc<Section>,
    /// The place in its document.
    pub(super) index: usize,
    /// The last `defaults` before it: what governs it unless it names another.
    pub(super) before: Option<usize>,
}

/// The sections of one document that have to be compared.
#[derive(Debug)]
pub(super) struct Side<'a> {
    pub(super) document: &'a Document,
    pub(super) entries: Vec<Entry<'a>>,
    by_key: FxHashMap<SectionKey, usize>,
    /// All `defaults` of the document by place, also those that need not be compared.
    defaults: Vec<(usize, SectionKey)>,
    /// The kinds and names, of those that are compared, that several sections of the document share.
    repeated: FxHashSet<(SectionKind, Option<SmolStr>)>,
    /// Whether a section after those that are compared shares the kind and name of one of them.
    pub(super) reaches_beyond: bool,
}

/// What governs a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InheritedDefaults {
    /// The `defaults` section; none if there is none.
    pub(super) key: Option<SectionKey>,
    /// Whether the section names it.
    pub(super) named: bool,
}

impl<'a> Side<'a> {
    /// Looks at the sections of a document without so many at its beginning and its end.
    pub(super) fn between(document: &'a Document, prefix: usize, suffix: usize) -> Self {
        Self::new(document, prefix, document.sections().len().saturating_sub(suffix))
    }

    /// Looks at the sections of a document from `from` to `to`. Their keys hold over the whole document.
    fn new(document: &'a Document, from: usize, to: usize) -> Self {
        let sections = document.sections();
        let compared = sections.get(from..to).unwrap_or_default();
        // Only sections of the kind and name of one that is compared are counted.
        let counted: FxHashSet<(SectionKind, Option<&SmolStr>)> =
            compared.iter().map(|section| (section.kind(), section.key_name())).collect();
        let mut counts: FxHashMap<(SectionKind, Option<SmolStr>), u32> = FxHashMap::default();
        let mut side = Self {
            document,
            entries: Vec::with_capacity(compared.len()),
            by_key: FxHashMap::default(),
            defaults: Vec::new(),
            repeated: FxHashSet::default(),
            reaches_beyond: false,
        };
        for (index, section) in sections.iter().enumerate() {
            let kind = section.kind();
            if kind != SectionKind::Defaults && !counted.contains(&(kind, section.key_name())) {
                continue;
            }
            let key = key_of(section, &mut counts);
            if key.nth > 0 {
                side.repeated.insert((kind, key.name.clone()));
            }
            let before = side.defaults.len().checked_sub(1);
            if kind == SectionKind::Defaults {
                side.defaults.push((index, key.clone()));
            }
            if (from..to).contains(&index) {
                side.by_key.insert(key.clone(), side.entries.len());
                side.entries.push(Entry { key, section, index, before });
            } else if index >= to && key.nth > 0 {
                let first = SectionKey { nth: key.nth - 1, ..key };
                side.reaches_beyond |= side.by_key.contains_key(&first);
            }
        }
        side
    }

    /// Returns whether several sections of the document share the kind and name of a key.
    pub(super) fn is_repeated(&self, key: &SectionKey) -> bool {
        self.repeated.contains(&(key.kind, key.name.clone()))
    }

    pub(super) fn get(&self, key: &SectionKey) -> Option<&Entry<'a>> {
        self.entries.get(*self.by_key.get(key)?)
    }

    /// What governs a section.
    pub(super) fn inherited(&self, entry: &Entry<'_>) -> InheritedDefaults {
        if entry.section.kind().governed() == Governed::No {
            return InheritedDefaults { key: None, named: false };
        }
        if let Some(name) = entry.section.from() {
            let name = SmolStr::new(String::from_utf8_lossy(&name));
            let key = SectionKey { kind: SectionKind::Defaults, name: Some(name), nth: 0 };
            return InheritedDefaults { key: Some(key), named: true };
        }
        // A `defaults` without `from` starts from nothing.
        let before = (entry.section.kind() != SectionKind::Defaults).then_some(entry.before).flatten();
        let key = before.and_then(|before| self.defaults.get(before)).map(|(_, key)| key.clone());
        InheritedDefaults { key, named: false }
    }

    /// A `defaults` section of the document.
    pub(super) fn defaults(&self, key: &SectionKey) -> Option<&'a Arc<Section>> {
        let (index, _) = self.defaults.iter().find(|(_, held)| held == key)?;
        self.document.sections().get(*index)
    }
}

/// The key of a section that comes after those that were counted.
fn key_of(section: &Section, counts: &mut FxHashMap<(SectionKind, Option<SmolStr>), u32>) -> SectionKey {
    let name = section.key_name().cloned();
    let count = counts.entry((section.kind(), name.clone())).or_default();
    let nth = *count;
    *count += 1;
    SectionKey { kind: section.kind(), name, nth }
}

/// Returns whether the place of sections of a kind among all others counts.
pub(super) fn is_placed(kind: SectionKind) -> bool {
    facts().section(kind).is_placed
}

/// Returns whether all sections whose place counts stand before all others.
pub(super) fn are_placed_first(document: &Document) -> bool {
    let sections = document.sections().iter().filter(|section| section.kind() != SectionKind::Preamble);
    !sections.skip_while(|section| is_placed(section.kind())).any(|section| is_placed(section.kind()))
}

/// Returns whether a section whose place counts stands before another one in one document, and behind it in the other.
pub(super) fn placed_ones_move(old: &Document, new: &Document) -> bool {
    if are_placed_first(old) && are_placed_first(new) {
        return false;
    }
    let (held, wanted) = (Side::between(old, 0, 0), Side::between(new, 0, 0));
    let (mut last, mut last_placed) = (None, None);
    for entry in &wanted.entries {
        let Some(index) = held.get(&entry.key).map(|entry| entry.index) else { continue };
        let counts = is_placed(entry.key.kind);
        if Some(index) < last_placed || counts && Some(index) < last {
            return true;
        }
        last = last.max(Some(index));
        if counts {
            last_placed = last_placed.max(Some(index));
        }
    }
    false
}

/// How many sections at the beginning and at the end are written alike on both sides.
pub(super) fn alike(a: &Document, b: &Document) -> (usize, usize) {
    let same = |(a, b): &(&Arc<Section>, &Arc<Section>)| Arc::ptr_eq(a, b) || a.same_bytes(b);
    let (a, b) = (a.sections(), b.sections());
    let prefix = a.iter().zip(b).take_while(same).count();
    let rest = a.len().min(b.len()) - prefix;
    let suffix = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(same).count();
    // A `defaults` that comes, goes or moves may govern all that follows it.
    let middle = |list: &[Arc<Section>]| {
        let inner = list.get(prefix..list.len() - suffix).unwrap_or_default();
        inner.iter().any(|section| section.kind() == SectionKind::Defaults)
    };
    if middle(a) || middle(b) { (prefix, 0) } else { (prefix, suffix) }
}
