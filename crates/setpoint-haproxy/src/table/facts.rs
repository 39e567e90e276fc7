//! What rows say of sections, and of the words that begin lines: collected once from all rows.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use super::attributes::{Multiplicity, Unique};
use super::grammar::{Item, Piece, Type, Versions};
use super::lookup::Directives;
use super::names::{Name, Naming};
use super::{Row, accepted};
use crate::keywords::Place;
use crate::model::{Field, ObjectKind, Version};
use crate::text::{SectionKind, Word};

/// The order of sections of which no row says one.
const RANK: i32 = 10;

/// What rows say of the sections of a kind.
#[derive(Debug, Default)]
pub(crate) struct SectionFacts {
    /// The kind of object that it is, if it has a model.
    pub(crate) kinds: Vec<ObjectKind>,
    /// The versions of HAProxy that have such sections.
    pub(crate) versions: Versions,
    /// What its name is the name of.
    pub(crate) names: Vec<Name>,
    /// Within which sections its name has to be given once.
    pub(crate) unique: Option<Unique>,
    /// When it is created among others.
    pub(crate) rank: i32,
    /// The versions that warn of it, and what to do instead.
    pub(crate) deprecated: Option<(Versions, &'static str)>,
    /// The versions that accept it only after `expose-experimental-directives`.
    pub(crate) experimental: Option<Versions>,
    named: FxHashMap<&'static str, Vec<NamedLine>>,
    with_options: FxHashMap<&'static str, (usize, Place)>,
}

/// Lines that give a name to something.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedLine {
    pub(crate) keyword: &'static str,
    pub(crate) name: Name,
    /// Whether a section can have several of a name.
    pub(crate) several: Multiplicity,
    /// The words that begin such a line, after its keyword.
    start: Vec<&'static str>,
    place: NamePlace,
}

/// Where a name stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamePlace {
    /// It is the word at this place.
    Word(usize),
    /// It follows this word, wherever that stands.
    After(&'static str),
    /// It is that of the section.
    Section,
}

/// A name that a line gives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given<'w, 'd> {
    /// A word of the line.
    Word(&'w Word<'d>),
    /// That of the section.
    Section,
}

impl NamedLine {
    /// Finds the name that a line gives, if it is one of these.
    pub(crate) fn given<'w, 'd>(&self, words: &'w [Word<'d>]) -> Option<Given<'w, 'd>> {
        let mut rest = words.get(1..)?.iter();
        if !self.start.iter().all(|start| rest.next().is_some_and(|word| word.is(start))) {
            return None;
        }
        match self.place {
            NamePlace::Word(at) => words.get(at).map(Given::Word),
            NamePlace::After(option) => {
                let at = words.iter().position(|word| word.is(option))?;
                words.get(at + 1).map(Given::Word)
            }
            NamePlace::Section => Some(Given::Section),
        }
    }
}

/// What rows say of words that begin lines, and of sections.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    sections: Vec<SectionFacts>,
    ranks: FxHashMap<ObjectKind, i32>,
    places: FxHashMap<ObjectKind, u8>,
    negatable: FxHashSet<&'static str>,
    addressed: FxHashMap<&'static str, usize>,
    grouped: FxHashSet<&'static str>,
}

/// Returns what all rows say together; it is collected once.
pub(crate) fn facts() -> &'static Facts {
    static FACTS: LazyLock<Facts> = LazyLock::new(|| Facts::of(accepted()));
    &FACTS
}

impl Facts {
    fn of(table: &Directives) -> Self {
        let mut facts = Self::default();
        for row in table.all_rows() {
            facts.words(row);
            for owner in row.owners.iter().filter(|_| !row.is_header) {
                if let Some(rank) = row.attributes.rank {
                    facts.ranks.insert(*owner, rank);
                }
                if let Some(place) = row.attributes.place {
                    facts.places.insert(*owner, place);
                }
            }
        }
        let last = SectionKind::Unknown as usize;
        facts.sections = (0..=last).map(|_| SectionFacts::default()).collect();
        for section in SectionKind::all() {
            let kinds = table.section_object(section).into_iter().collect();
            if let Some(slot) = facts.sections.get_mut(section as usize) {
                *slot = SectionFacts::of(table, kinds);
            }
        }
        facts
    }

    /// Collects what a row says of the words that it begins with.
    fn words(&mut self, row: &Row) {
        let literals: Vec<&'static str> = row.items.iter().map_while(literal).collect();
        let Some(first) = literals.first().copied() else { return };
        let toggles = row.items.iter().any(|item| matches!(item, Item::Value { ty: Type::Toggle, .. }));
        if row.attributes.negatable || toggles {
            self.negatable.insert(first);
        }
        if first == "no" {
            self.negatable.extend(literals.get(1));
        }
        let address = row.items.iter().position(|item| matches!(item, Item::Address { .. }));
        if let Some(at) = address.filter(|at| row.items.iter().take(*at).all(is_word)) {
            let last = self.addressed.entry(first).or_default();
            *last = at.max(*last);
        }
        let is_of_schema = row.attributes.text.is_none();
        if is_of_schema && matches!(row.items.get(1), Some(Item::Literal(_))) {
            self.grouped.insert(first);
        }
    }

    /// Returns what rows say of the sections of a kind.
    pub(crate) fn section(&self, kind: SectionKind) -> &SectionFacts {
        static NONE: LazyLock<SectionFacts> = LazyLock::new(SectionFacts::default);
        self.sections.get(kind as usize).unwrap_or(&NONE)
    }

    /// Returns the groups of sections in which a version wants the name of such a section to be given once. Without a version,
    /// those that all versions look at.
    pub(crate) fn name_groups(
        &self,
        kind: SectionKind,
        version: Option<Version>,
    ) -> impl Iterator<Item = &'static str> {
        let unique = self.section(kind).unique.as_ref();
        let own = unique.filter(|unique| unique.groups.is_empty()).map(|_| kind.keyword());
        let counts = move |versions: Versions| match version {
            Some(version) => versions.contains(version),
            None => versions == Versions::ALL,
        };
        let groups = unique.into_iter().flat_map(|unique| &unique.groups);
        own.into_iter().chain(groups.filter(move |(_, versions)| counts(*versions)).map(|(group, _)| *group))
    }

    /// Returns when an object is created among those of its section; what rows say nothing of comes by its order.
    pub(crate) fn rank(&self, kind: ObjectKind) -> i32 {
        /// What refers to others, and what others refer to.
        const LISTED: i32 = 60;
        const NAMED: i32 = 41;
        let other = if kind.is_ordered() { LISTED } else { NAMED };
        self.ranks.get(&kind).copied().unwrap_or(other)
    }

    /// Returns where lines of a kind stand among the others of their section: lower ones come first.
    pub(crate) fn place(&self, kind: ObjectKind) -> u8 {
        /// Between ACLs and what HAProxy looks at later: rules of HTTP, then the choice of a backend, then servers.
        const OTHERS: u8 = 2;
        self.places.get(&kind).copied().unwrap_or(OTHERS)
    }

    /// Returns whether `no` and `default` may stand before lines that begin with a word.
    pub(crate) fn is_negatable(&self, word: &str) -> bool {
        self.negatable.contains(word)
    }

    /// Returns the last word that is an address in lines that begin with a word.
    pub(crate) fn address_at(&self, word: &str) -> Option<usize> {
        self.addressed.get(word).copied()
    }

    /// Returns whether the second word of lines that begin with a word belongs to their keyword.
    pub(crate) fn is_grouped(&self, word: &str) -> bool {
        self.grouped.contains(word)
    }
}

impl SectionFacts {
    fn of(table: &Directives, kinds: Vec<ObjectKind>) -> Self {
        let mut facts = Self { rank: RANK, ..Self::default() };
        let (mut groups, mut is_warned, mut is_unique) = (Vec::new(), false, false);
        for kind in &kinds {
            for row in table.all_rows().iter().filter(|row| row.owners.contains(kind)) {
                let attributes = &row.attributes;
                if let Some(child) = row.child {
                    let of_child = table.all_rows().iter().filter(|row| row.owners.contains(&child));
                    for row in of_child {
                        facts.line(row, attributes.several);
                    }
                } else if row.is_header {
                    facts.versions = attributes.haproxy.unwrap_or(row.versions);
                    facts.names.extend(attributes.names.iter().map(|naming| naming.name));
                    facts.rank = attributes.rank.map_or(facts.rank, |rank| rank.max(facts.rank));
                    facts.deprecated = facts.deprecated.or(attributes.deprecated);
                    facts.experimental = facts.experimental.or(attributes.experimental);
                    if let Some(unique) = &attributes.unique {
                        is_unique = true;
                        is_warned |= unique.is_warned;
                        groups.extend(unique.groups.iter().copied());
                    }
                } else {
                    facts.line(row, Multiplicity::Many);
                }
            }
        }
        facts.unique = is_unique.then_some(Unique { groups, is_warned });
        facts.kinds = kinds;
        facts
    }

    /// Notes what a row says of the lines that begin with its keyword.
    fn line(&mut self, row: &Row, several: Multiplicity) {
        let Some(keyword) = row.items.first().and_then(literal) else { return };
        for Naming { field, name } in &row.attributes.names {
            let place = match field {
                None => Some(NamePlace::Section),
                Some(field) => place_of(row, *field),
            };
            let start = row.items.iter().skip(1).map_while(literal).collect();
            let Some(place) = place else { continue };
            let line = NamedLine { keyword, name: *name, several, start, place };
            let lines = self.named.entry(keyword).or_default();
            // Multiplicity rows may describe the same lines.
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let options = row.items.iter().position(|item| matches!(item, Item::Options(_)));
        if let Some(at) = options.filter(|at| row.items.iter().take(*at).all(is_word))
            && let Some(Item::Options(options)) = row.items.get(at)
            && !matches!(row.items.get(1), Some(Item::Literal(_)))
        {
            let place = match options.block {
                Some("server") => Place::ServerOption,
                Some("bind") => Place::BindOption,
                _ => return,
            };
            self.with_options.insert(keyword, (at, place));
        }
    }

    /// Returns the first and the last version of HAProxy that has such sections.
    pub(crate) fn range(&self) -> (Version, Version) {
        (self.versions.since, self.versions.until)
    }

    /// Returns the lines that begin with a word and give names.
    pub(crate) fn named(&self, keyword: &str) -> &[NamedLine] {
        self.named.get(keyword).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns where the options begin in lines that begin with a word, and which they are.
    pub(crate) fn options(&self, keyword: &str) -> Option<(usize, Place)> {
        self.with_options.get(keyword).copied()
    }
}

/// Returns the word that an item is, if it is a fixed one.
fn literal(item: &Item) -> Option<&'static str> {
    match item {
        Item::Literal(word) | Item::Constant { word, .. } => Some(word),
        _ => None,
    }
}

/// Returns whether an item is always one word.
fn is_word(item: &Item) -> bool {
    match item {
        Item::Literal(_) | Item::Constant { .. } | Item::Pattern { .. } | Item::Address { .. } => true,
        Item::Value { ty, .. } => {
            !ty.is_silent() && !matches!(ty, Type::Rest | Type::Words | Type::Ints | Type::Expr)
        }
        _ => false,
    }
}

/// Finds where the value of a field stands in the lines of a row.
fn place_of(row: &Row, field: Field) -> Option<NamePlace> {
    let mut at = 0;
    for item in &row.items {
        match item {
            Item::Value { field: held, .. } if *held == field => return Some(NamePlace::Word(at)),
            Item::Pattern { pieces, .. }
                if pieces
                    .iter()
                    .any(|piece| matches!(piece, Piece::Value { field: held, .. } if *held == field)) =>
            {
                return Some(NamePlace::Word(at));
            }
            Item::Options(options) => {
                let entry =
                    options.entries.iter().find(|entry| super::shape::mentions(&entry.items, field))?;
                return entry.items.first().and_then(literal).map(NamePlace::After);
            }
            item if is_word(item) => at += 1,
            Item::Value { ty, .. } if ty.is_silent() => {}
            _ => return None,
        }
    }
    None
}
