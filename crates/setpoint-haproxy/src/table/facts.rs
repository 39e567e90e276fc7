//! What rows say of sections, and of the words that begin lines: collected once from all rows.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use super::attributes::{Distinct, Multiplicity, Sequence, Unique};
use super::grammar::{Item, Piece, Type, Versions};
use super::lookup::Directives;
use super::names::{Name, Naming};
use super::resources::{EnvironmentChange, Resource};
use super::shape::mentions;
use super::{Repeat, Row, accepted};
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
    /// The name of one that HAProxy makes by itself.
    pub(crate) predefined: Option<&'static str>,
    /// Whether its place among all other sections counts: those below are read with what it says.
    pub(crate) is_placed: bool,
    /// The word that begins a line without which HAProxy refuses it.
    pub(crate) wants: Option<&'static str>,
    /// Whether HAProxy does not look at what follows the name.
    pub(crate) ignores_rest: bool,
    /// Settings without which HAProxy does not look up some names: the path of each, and the words that its lines begin with.
    pub(crate) conditions: Vec<(&'static str, Vec<String>)>,
    named: FxHashMap<&'static str, Vec<NamedLine>>,
    with_options: FxHashMap<&'static str, (usize, Place)>,
    provides: FxHashMap<&'static str, FxHashSet<Resource>>,
    states: FxHashMap<&'static str, bool>,
    /// The fixed words that lines begin with, and the lines among which their places matter.
    starts: FxHashMap<String, Option<Sequence>>,
    bases: FxHashMap<&'static str, Base>,
}

/// What a line is to others that start from its values, or that it starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// Those of this name below it start from its values; `adds` says that it adds to what the lines before it give.
    Is { name: &'static str, adds: bool },
    /// It starts from the values of those of this name above it.
    On(&'static str),
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
    environment: FxHashMap<&'static str, EnvironmentChange>,
    /// The words that lines begin with which choose an algorithm.
    algorithms: FxHashSet<&'static str>,
    /// The words before files that HAProxy loads when it starts.
    before_files: FxHashSet<&'static str>,
    /// The words before names of servers.
    before_servers: FxHashSet<&'static str>,
    /// The words before values that no other may have in the whole configuration.
    before_distinct: FxHashSet<&'static str>,
    /// The fixed words that lines begin with beside which no server can be added to a running HAProxy where no algorithm is
    /// stated.
    static_servers: Vec<(String, Versions)>,
    /// The words that begin what is experimental in some version.
    experimental: FxHashSet<&'static str>,
    /// What options provide to their lines, by the words that they begin with.
    provided: FxHashSet<(&'static str, Resource)>,
    /// The words of health checks, which begin their steps.
    steps: FxHashSet<&'static str>,
    /// The paths of numbers of `global` that others have to be less than.
    limits: FxHashSet<&'static str>,
    /// The words that lines begin with which set these.
    before_limits: FxHashMap<&'static str, &'static str>,
    /// The kinds of objects that start from the lines of a name.
    based: FxHashMap<&'static str, FxHashSet<ObjectKind>>,
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
                if let Some(base) = row.attributes.based_on {
                    facts.based.entry(base).or_default().insert(*owner);
                }
            }
        }
        for row in table.all_rows() {
            let paths = super::fields_of(&row.items).into_iter().map(|field| table.field_path(field));
            let limit = paths.into_iter().find(|path| facts.limits.contains(path));
            facts.before_limits.extend(row.items.first().and_then(literal).zip(limit));
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
        let attributes = &row.attributes;
        self.environment.extend(attributes.environment.map(|change| (first, change)));
        self.algorithms.extend(attributes.servers.map(|_| first));
        self.steps.extend(attributes.step.map(|_| first));
        self.limits.extend(attributes.less_than.iter().map(|(_, limit)| *limit));
        let refers = |field: &Field| {
            let mut references = attributes.references.iter();
            references.any(|reference| reference.name == Name::Server && reference.field == *field)
        };
        if let [Item::Literal(word), Item::Value { field, .. }, ..] = row.items.as_slice()
            && refers(field)
        {
            self.before_servers.insert(word);
        }
        self.experimental.extend(attributes.experimental.map(|_| first));
        if let Some(rule) = attributes.static_servers.as_ref().filter(|rule| rule.values.is_empty()) {
            self.static_servers.push((row.start(), rule.versions));
        }
        for option in row.options() {
            let Some(word) = option.items.first().and_then(literal) else { continue };
            self.experimental.extend(option.attributes.experimental.map(|_| word));
            if option.attributes.distinct == Some(Distinct::Everywhere) {
                self.before_distinct.insert(word);
            }
            let provides = option.attributes.provides.iter();
            self.provided.extend(provides.map(|provision| (word, provision.resource)));
            if option.attributes.loads {
                self.before_files.insert(word);
            }
            if option.attributes.references.iter().any(|reference| reference.name == Name::Server) {
                self.before_servers.insert(word);
            }
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

    /// Returns what lines of `global` that begin with a word do to the environment.
    pub(crate) fn environment(&self, word: &str) -> Option<EnvironmentChange> {
        self.environment.get(word).copied()
    }

    /// Returns the word itself, if steps of health checks begin with it.
    pub(crate) fn steps(&self, word: &str) -> Option<&'static str> {
        self.steps.get(word).copied()
    }

    /// Returns whether a number of `global` is one that others have to be less than.
    pub(crate) fn is_limit(&self, path: &str) -> bool {
        self.limits.contains(path)
    }

    /// Returns the number that others have to be less than and that lines set which begin with a word.
    pub(crate) fn sets_limit(&self, word: &str) -> Option<&'static str> {
        self.before_limits.get(word).copied()
    }

    /// Returns whether lines that begin with a word choose an algorithm.
    pub(crate) fn chooses_algorithm(&self, word: &str) -> bool {
        self.algorithms.contains(word)
    }

    /// Returns the words before files that HAProxy loads when it starts.
    pub(crate) fn before_files(&self) -> &FxHashSet<&'static str> {
        &self.before_files
    }

    /// Returns whether an option that begins with a word provides something to its line.
    pub(crate) fn is_provided_by_option(&self, word: &str, resource: Resource) -> bool {
        self.provided.iter().any(|(option, provided)| *option == word && *provided == resource)
    }

    /// Returns the words before values that no other may have in the whole configuration.
    pub(crate) fn before_distinct(&self) -> &FxHashSet<&'static str> {
        &self.before_distinct
    }

    /// Finds what lines begin with beside which a running HAProxy accepts no new server, if a line is one.
    pub(crate) fn static_servers(&self, words: &[Word<'_>], version: Version) -> Option<&str> {
        let is_it = |start: &str| {
            let mut words = words.iter();
            start.split(' ').all(|start| words.next().is_some_and(|word| word.is(start)))
        };
        let mut starts = self.static_servers.iter().filter(|(_, versions)| versions.contains(version));
        starts.find(|(start, _)| is_it(start)).map(|(start, _)| start.as_str())
    }

    /// Returns the words before names of servers.
    pub(crate) fn before_servers(&self) -> &FxHashSet<&'static str> {
        &self.before_servers
    }

    /// Returns whether a word begins a line or an option that is experimental in some version.
    pub(crate) fn is_experimental(&self, word: &str) -> bool {
        self.experimental.contains(word)
    }

    /// Returns whether objects of a kind start from the lines of a name.
    pub(crate) fn is_based_on(&self, kind: ObjectKind, base: &str) -> bool {
        self.based.get(base).is_some_and(|kinds| kinds.contains(&kind))
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
                    facts.predefined = facts.predefined.or(attributes.predefined);
                    facts.is_placed |= !attributes.sequences.is_empty();
                    facts.wants = facts.wants.or(attributes.wants);
                    facts.ignores_rest |= attributes.ignores_rest;
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
        let own = table.all_rows().iter().filter(|row| row.owners.iter().any(|owner| kinds.contains(owner)));
        let own: Vec<&Row> = own.collect();
        let paths: FxHashSet<&'static str> =
            own.iter().flat_map(|row| &row.attributes.references_if).copied().collect();
        for path in paths {
            let sets = |row: &&&Row| {
                super::fields_of(&row.items).iter().any(|field| table.field_path(*field) == path)
            };
            facts.conditions.push((path, own.iter().filter(sets).map(|row| row.start()).collect()));
        }
        facts.kinds = kinds;
        facts
    }

    /// Notes what a row says of the lines that begin with its keyword.
    fn line(&mut self, row: &Row, several: Multiplicity) {
        let Some(keyword) = row.items.first().and_then(literal) else { return };
        let attributes = &row.attributes;
        let is_default = attributes.repeat == Repeat::Merge;
        let options = row.options().filter(|_| is_default).flat_map(|option| &option.attributes.provides);
        for provision in attributes.provides.iter().chain(options) {
            self.provides.entry(keyword).or_default().insert(provision.resource);
        }
        self.states.extend(attributes.state.map(|state| (keyword, state)));
        let sequence = self.starts.entry(row.start()).or_default();
        *sequence = sequence.or(attributes.sequences.first().copied());
        self.bases.extend(attributes.base.map(|name| (keyword, Base::Is { name, adds: is_default })));
        self.bases.extend(attributes.based_on.map(|name| (keyword, Base::On(name))));
        for Naming { field, name } in &row.attributes.names {
            let place = match field {
                None => Some(NamePlace::Section),
                Some(field) => place_of(row, *field),
            };
            let start = row.items.iter().skip(1).map_while(literal).collect();
            let Some(place) = place else { continue };
            let line = NamedLine { keyword, name: *name, several, start, place };
            let lines = self.named.entry(keyword).or_default();
            // Several rows may describe the same lines.
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

    /// Returns what lines that begin with a word may provide to others.
    pub(crate) fn provided_by(&self, keyword: &str) -> impl Iterator<Item = Resource> {
        self.provides.get(keyword).into_iter().flatten().copied()
    }

    /// Returns whether lines that begin with a word may provide something to others.
    pub(crate) fn may_provide(&self, keyword: &str, resource: Resource) -> bool {
        self.provides.get(keyword).is_some_and(|resources| resources.contains(&resource))
    }

    /// Returns whether the section is in use after a line that begins with a word, if such a line decides that.
    pub(crate) fn state(&self, keyword: &str) -> Option<bool> {
        self.states.get(keyword).copied()
    }

    /// Names the lines of which the last holds, or whose order counts, and that a line is one of: those of its sequence, or
    /// those that begin with the same fixed words.
    pub(crate) fn order_group(&self, words: &[String]) -> Option<String> {
        let is_prefix = |word: &&String| matches!(word.as_str(), "no" | "default");
        let words = words.get(words.iter().take_while(is_prefix).count()..)?;
        (1..=words.len().min(3)).rev().find_map(|count| {
            let start = words.get(..count)?.join(" ");
            Some(match self.starts.get(&start)? {
                Some(Sequence { name, key: None }) => (*name).to_owned(),
                Some(Sequence { name, key: Some(at) }) => {
                    format!("{name} {}", words.get(*at).map(String::as_str).unwrap_or_default())
                }
                None => start,
            })
        })
    }

    /// Returns what lines that begin with a word are to others that start from their values, or that they start from.
    pub(crate) fn base(&self, keyword: &str) -> Option<Base> {
        self.bases.get(keyword).copied()
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
                let entry = options.entries.iter().find(|entry| mentions(&entry.items, field))?;
                return entry.items.first().and_then(literal).map(NamePlace::After);
            }
            item if is_word(item) => at += 1,
            Item::Value { ty, .. } if ty.is_silent() => {}
            _ => return None,
        }
    }
    None
}
