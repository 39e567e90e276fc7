//! Names and other values that are given twice.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::configuration::{CheckedLine, Configuration, Part};
use crate::model::Version;
use crate::table::accept::Match;
use crate::table::facts::{Given, facts};
use crate::table::{Distinct, Multiplicity, Name, Repeat, Row, fields_of};
use crate::text::{Diagnostic, Problem, SectionKind};

/// Looks for names that are given twice. What is under a condition may be there once whatever the text shows.
pub(super) fn check(
    configuration: &Configuration<'_>,
    version: Option<Version>,
    found: &mut [Vec<Diagnostic>],
) {
    let mut sections = Sections { version, seen: FxHashMap::default() };
    let defaults = defaults(configuration);
    let mut above = FxHashSet::default();
    for part in &configuration.parts {
        let Some(found) = found.get_mut(part.file) else { continue };
        if let Some(header) = part.header.as_ref().filter(|header| header.certain) {
            sections.look_at(part, header, found);
            ambiguous_from(part, header, &defaults, found);
            late_defaults(part, header, (&defaults, &above), found);
        }
        if part.kind == SectionKind::Defaults {
            above.extend(part.name().map(Cow::into_owned));
        }
        lines(part, found);
    }
}

/// The names of sections so far: what gave them, in which file and line.
struct Sections {
    version: Option<Version>,
    seen: FxHashMap<(&'static str, String), (SectionKind, usize, u32)>,
}

impl Sections {
    fn look_at(&mut self, part: &Part<'_>, header: &CheckedLine<'_>, found: &mut Vec<Diagnostic>) {
        let Some(name) = part.name() else { return };
        let (kind, place) = (part.kind, (part.kind, part.file, header.number));
        let mut other = None;
        for group in facts().name_groups(kind, self.version) {
            other = self.seen.insert((group, name.to_string()), place).or(other);
        }
        let (Some((other, file, line)), Some(keyword)) = (other, header.words.first()) else { return };
        let message = format!("another {other} is called `{name}`");
        let diagnostic = header.diagnostic(Problem::DuplicateSection, (keyword.column, keyword.raw), message);
        let hint = elsewhere(part.file, file, line);
        let is_warned = facts().section(kind).unique.as_ref().is_some_and(|unique| unique.is_warned);
        let diagnostic = if is_warned { diagnostic.warning() } else { diagnostic };
        found.push(diagnostic.with_hint(hint));
    }
}

/// How many sections `defaults` have each name.
fn defaults(configuration: &Configuration<'_>) -> FxHashMap<String, usize> {
    let mut counts = FxHashMap::default();
    let defaults =
        configuration.parts.iter().filter(|part| part.kind == SectionKind::Defaults && part.is_certain());
    for name in defaults.filter_map(Part::name) {
        *counts.entry(name.into_owned()).or_default() += 1;
    }
    counts
}

/// Looks whether the `defaults` that a section refers to could be several.
fn ambiguous_from(
    part: &Part<'_>,
    header: &CheckedLine<'_>,
    defaults: &FxHashMap<String, usize>,
    found: &mut Vec<Diagnostic>,
) {
    let Some(word) = part.from() else { return };
    let count = defaults.get(&*word.to_str_lossy()).copied().unwrap_or_default();
    if count > 1 {
        let message = format!("{count} defaults sections are called `{}`", word.to_str_lossy());
        let diagnostic = header.diagnostic(Problem::DuplicateSection, (word.column, word.raw), message);
        found.push(diagnostic.with_hint("give each that is referred to a name of its own"));
    }
}

/// Looks whether the `defaults` that a section takes its values from stand below it, where HAProxy does not know them yet.
fn late_defaults(
    part: &Part<'_>,
    header: &CheckedLine<'_>,
    (defaults, above): (&FxHashMap<String, usize>, &FxHashSet<String>),
    found: &mut Vec<Diagnostic>,
) {
    let Some(word) = part.from().filter(|word| !word.variable) else { return };
    let name = word.to_str_lossy();
    if defaults.contains_key(&*name) && !above.contains(&*name) {
        let message = format!("no defaults section above is called `{name}`");
        let diagnostic = header.diagnostic(Problem::UnknownReference, (word.column, word.raw), message);
        found.push(
            diagnostic.with_hint("HAProxy reads sections from the top: write it before those that name it"),
        );
    }
}

/// Looks for lines of a section that give the same name.
fn lines(part: &Part<'_>, found: &mut Vec<Diagnostic>) {
    let section = facts().section(part.kind);
    let mut seen: FxHashMap<(Name, &[u8]), u32> = FxHashMap::default();
    for line in part.lines.iter().filter(|line| line.certain) {
        let Some(keyword) = line.words.first() else { continue };
        let named = section.named(&keyword.to_str_lossy());
        for named in named.iter().filter(|named| {
            matches!(named.several, Multiplicity::UniqueNames | Multiplicity::UniqueNamesWarned)
        }) {
            let Some(Given::Word(name)) = named.given(&line.words) else { continue };
            if name.variable {
                continue;
            }
            if let Some(other) = seen.insert((named.name, &name.text), line.number) {
                let message =
                    format!("another {} of this section is called `{}`", named.keyword, name.to_str_lossy());
                let diagnostic = line.diagnostic(Problem::DuplicateName, (name.column, name.raw), message);
                let diagnostic = diagnostic.with_hint(format!("the other one is in line {other}"));
                found.push(if named.several == Multiplicity::UniqueNamesWarned {
                    diagnostic.warning()
                } else {
                    diagnostic
                });
            }
        }
    }
}

/// The values so far that no two lines may have, as `distinct` of rows tells.
#[derive(Debug, Default)]
pub(super) struct DistinctValues {
    /// Those of the section at hand, by the words of the line and the option, and by value; each with its line.
    own: FxHashMap<(String, String), u32>,
    /// Those of the whole configuration, by the word before them and by value; each with its file and line.
    everywhere: FxHashMap<(String, String), (usize, u32)>,
    /// The lines of the section at hand of which HAProxy refuses a second one, by their first word.
    once: FxHashMap<String, u32>,
}

impl DistinctValues {
    /// Begins a section.
    pub(super) fn begin(&mut self) {
        self.own.clear();
        self.once.clear();
    }

    /// Notes a line of which HAProxy refuses a second one in its section, and reports it where it is that.
    pub(super) fn once(&mut self, row: &Row, line: &CheckedLine<'_>) -> Option<Diagnostic> {
        let keyword =
            line.words.first().filter(|_| row.attributes.repeat == Repeat::Refused && line.certain)?;
        let start = row.start();
        let first = start.split(' ').next().unwrap_or_default().to_owned();
        let other = self.once.insert(first, line.number)?;
        let message = format!("a section has one `{}`", keyword.to_str_lossy());
        let diagnostic = line.diagnostic(Problem::DuplicateName, (keyword.column, keyword.raw), message);
        Some(diagnostic.with_hint(format!("the other one is in line {other}")))
    }

    /// Notes the values of a line that no other may have, and reports those that another one has.
    pub(super) fn line(
        &mut self,
        row: &Row,
        matched: &Match<'_>,
        (part, line): (&Part<'_>, &CheckedLine<'_>),
        offset: usize,
    ) -> Vec<Diagnostic> {
        let own = row.attributes.distinct.map(|distinct| (distinct, row.start(), fields_of(&row.items)));
        // What others start from is none of them.
        let is_default = row.attributes.repeat == Repeat::Merge;
        let options = matched.options.iter().filter(|_| !is_default).filter_map(|(option, at)| {
            let word = line.words.get(*at + offset)?.to_str_lossy().into_owned();
            Some((option.attributes.distinct?, word, fields_of(&option.items)))
        });
        let mut found = Vec::new();
        for (distinct, keyword, fields) in own.into_iter().chain(options).filter(|_| line.certain) {
            let Some((_, at, value)) = matched.values.iter().find(|(field, ..)| fields.contains(field))
            else {
                continue;
            };
            let Some(word) = line.words.get(*at + offset) else { continue };
            let value = (*value).to_owned();
            let other = match distinct {
                Distinct::Section | Distinct::Numbered => {
                    let key = (format!("{} {keyword}", row.start()), value);
                    self.own.insert(key, line.number).map(|line| (part.file, line))
                }
                Distinct::Everywhere => {
                    self.everywhere.insert((keyword.clone(), value), (part.file, line.number))
                }
            };
            if let Some((file, number)) = other {
                let message = format!("another one has the `{keyword}` `{}`", word.to_str_lossy());
                let diagnostic = line.diagnostic(Problem::DuplicateName, (word.column, word.raw), message);
                found.push(diagnostic.with_hint(elsewhere(part.file, file, number)));
            }
        }
        found
    }
}

/// Says where another one is that is the same.
fn elsewhere(here: usize, file: usize, line: u32) -> String {
    if here == file {
        format!("the other one is in line {line}")
    } else {
        format!("the other one is in line {line} of file {} of those that are given", file + 1)
    }
}
