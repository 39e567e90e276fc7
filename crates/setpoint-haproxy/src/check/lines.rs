//! Every line, held to what HAProxy accepts of it: its words, its values, the rule it is, the condition it ends with, and
//! the names that it uses. The table of directives knows.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use super::acls::{Acls, Element, elements};
use super::configuration::{CheckedLine, Configuration, Part};
use super::hints::Hints;
use super::names::Names;
use super::references::References;
use crate::keywords::ASKED;
use crate::model::{Edition, ObjectKind, Version};
use crate::table::accept::{Match, Misfit, Standing, accept, broken_rule};
use crate::table::facts::{Given, facts};
use crate::table::grammar::{Versions, first_word};
use crate::table::limits::Complaint;
use crate::table::samples::{Scene, criterion, stages};
use crate::table::{Name, Row, accepted};
use crate::text::{Diagnostic, Problem, SectionKind, Severity, Word};

/// Holds every line to what HAProxy accepts. Lines in which an error was found already are left out.
pub(super) fn check(
    configuration: &Configuration<'_>,
    version: Option<Version>,
    hints: &mut Hints,
    found: &mut [Vec<Diagnostic>],
) {
    let names = Names::of(configuration);
    let versions: Vec<Version> = match version {
        Some(version) => vec![version],
        // The newest refuses the least, so that it is asked first.
        None => ASKED.into_iter().rev().collect(),
    };
    let unused = super::references::unused(configuration);
    let is_experimental = configuration.parts.iter().any(exposes_experimental);
    let wrong = lines_with_errors(found);
    for (index, part) in configuration.parts.iter().enumerate() {
        let (kinds, section) = kinds(part.kind);
        let section_facts = facts().section(part.kind);
        let (Some(found), Some(wrong)) = (found.get_mut(part.file), wrong.get(part.file)) else { continue };
        let references = References::new(&names, part, unused.contains(&index), version);
        let mut checker = Checker {
            kinds,
            section,
            versions: &versions,
            is_experimental,
            acls: Acls::default(),
            references,
            hints,
            found,
        };
        if let Some(header) = &part.header {
            if let Some(word) = header.words.first() {
                checker.experimental(section_facts.experimental, header, word);
            }
            checker.references.header(header, part, checker.hints, checker.found);
        }
        for line in &part.lines {
            let is_known_as_wrong = wrong.contains(&line.number);
            checker.line(part, line, is_known_as_wrong);
        }
    }
}

/// The lines of each file in which an error was found.
pub(super) fn lines_with_errors(found: &[Vec<Diagnostic>]) -> Vec<FxHashSet<u32>> {
    let is_error = |diagnostic: &&Diagnostic| diagnostic.severity == Severity::Error;
    let lines = |found: &Vec<Diagnostic>| found.iter().filter(is_error).map(|found| found.line).collect();
    found.iter().map(lines).collect()
}

/// The kinds of objects that describe the lines of a section, and the one that it is.
pub(super) fn kinds(section: SectionKind) -> (&'static [ObjectKind], Option<ObjectKind>) {
    let kinds = facts().section(section).kinds.as_slice();
    (kinds, kinds.first().copied().filter(|_| kinds.len() == 1))
}

struct Checker<'c> {
    kinds: &'static [ObjectKind],
    section: Option<ObjectKind>,
    versions: &'c [Version],
    /// Whether HAProxy accepts what is experimental.
    is_experimental: bool,
    acls: Acls,
    references: References<'c>,
    hints: &'c mut Hints,
    found: &'c mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn line(&mut self, part: &Part<'_>, line: &CheckedLine<'_>, is_known_as_wrong: bool) {
        let Some(first) = line.words.first() else { return };
        let named = facts().section(part.kind).named(&first.to_str_lossy());
        for named in named.iter().filter(|named| named.name == Name::Acl) {
            if let Some(Given::Word(name)) = named.given(&line.words) {
                self.acls.define(&name.to_str_lossy(), name.variable);
            }
        }
        if line.is_open() || is_known_as_wrong {
            return;
        }
        let texts = line.texts();
        let negated = first.is("no") && texts.len() > 1;
        let words = texts.get(usize::from(negated)..).unwrap_or_default();
        let outcome = match self.judge(&texts, false) {
            Some(Err(misfit)) if negated => {
                self.judge(words, true).unwrap_or(Err(misfit)).map_err(|misfit| (misfit, 1))
            }
            None if negated => match self.judge(words, true) {
                None => return,
                Some(outcome) => outcome.map_err(|misfit| (misfit, 1)),
            },
            None => return,
            Some(outcome) => outcome.map_err(|misfit| (misfit, 0)),
        };
        match outcome {
            Err((misfit, offset)) => {
                let misfit = Misfit { at: misfit.at + offset, ..misfit };
                self.found.push(diagnostic(line, misfit));
            }
            Ok((row, matched)) => {
                let broken = row.attributes.rule.and_then(|_| {
                    let standing = self.standing(row, negated);
                    self.kinds.iter().find_map(|kind| broken_rule(words, *kind, standing))
                });
                if let Some(complaint) = broken {
                    self.found.push(diagnostic(line, Misfit { at: 0, complaint: Some(complaint) }));
                }
                if let Some(from) = matched.condition {
                    self.condition(row, line, &texts, from + usize::from(negated));
                }
                self.attributes(row, &matched, line, usize::from(negated));
                self.references.line(row, &matched, line, part, self.hints, self.found);
            }
        }
    }

    /// Looks at what a row and the options of a line say of them: what is deprecated, experimental, or missing.
    fn attributes(&mut self, row: &Row, matched: &Match<'_>, line: &CheckedLine<'_>, offset: usize) {
        let own = line.words.get(offset).map(|word| (&row.attributes, row.start(), word));
        let options = matched.options.iter().filter_map(|(option, at)| {
            let word = line.words.get(*at + offset)?;
            Some((&option.attributes, word.to_str_lossy().into_owned(), word))
        });
        let version = self.versions.first().copied().filter(|_| self.versions.len() == 1);
        for (attributes, name, word) in own.into_iter().chain(options) {
            if let Some((version, (versions, advice))) = version.zip(attributes.deprecated)
                && versions.contains(version)
            {
                let message = format!("`{name}` is deprecated in HAProxy {version}");
                let said = line.diagnostic(Problem::Deprecated, (word.column, word.raw), message);
                self.found.push(said.warning().with_hint(advice));
            }
            let action = line.words.iter().find(|word| name.ends_with(&*word.to_str_lossy())).unwrap_or(word);
            self.experimental(attributes.experimental, line, action);
            let needed = attributes.needs.filter(|needed| {
                !matched.options.iter().any(|(option, _)| {
                    option.items.first().and_then(first_word).is_some_and(|first| first == *needed)
                })
            });
            if let Some(needed) = needed {
                let message = format!("`{}` can't be without `{needed}`", word.to_str_lossy());
                self.found.push(line.diagnostic(Problem::Needs, (word.column, word.raw), message));
            }
        }
    }

    /// Says that a word is experimental, in versions in which it is.
    fn experimental(&mut self, versions: Option<Versions>, line: &CheckedLine<'_>, word: &Word<'_>) {
        let is_so = |version: &Version| versions.is_some_and(|versions| versions.contains(*version));
        if self.is_experimental || self.versions.len() > 1 || !self.versions.iter().any(is_so) {
            return;
        }
        let message = format!("`{}` is experimental", word.to_str_lossy());
        let said = line.diagnostic(Problem::Needs, (word.column, word.raw), message);
        self.found.push(said.with_hint("a line `expose-experimental-directives` in `global` allows it"));
    }

    fn standing(&self, row: &Row, negated: bool) -> Standing {
        let version = self.versions.first().copied().unwrap_or(Version::LATEST);
        let scene = Scene { version, edition: Edition::Community, stages: stages(row, self.section) };
        Standing { scene, section: self.section, negated }
    }

    /// The row by which HAProxy accepts some words, or why it does not; nothing where no row describes such lines.
    fn judge<'w>(
        &self,
        words: &'w [Cow<'w, str>],
        negated: bool,
    ) -> Option<Result<(&'static Row, Match<'w>), Misfit>> {
        let (first, second) = (words.first()?, words.get(1).map(|word| &**word));
        if !self.kinds.iter().any(|kind| accepted().has_forms(*kind, first)) {
            return None;
        }
        let mut misfit: Option<Misfit> = None;
        for version in self.versions {
            for row in self.kinds.iter().flat_map(|kind| accepted().forms(*kind, first, second, *version)) {
                let scene = Scene {
                    version: *version,
                    edition: Edition::Community,
                    stages: stages(row, self.section),
                };
                match accept(row, words, Standing { scene, section: self.section, negated }) {
                    Ok(matched) => return Some(Ok((row, matched))),
                    Err(other) => {
                        misfit = Some(match misfit.take() {
                            Some(before) => before.or(other),
                            None => other,
                        });
                    }
                }
            }
        }
        Some(Err(misfit.unwrap_or(Misfit { at: 1, complaint: None })))
    }

    /// Looks at the ACLs of a condition.
    fn condition(&mut self, row: &Row, line: &CheckedLine<'_>, texts: &[Cow<'_, str>], from: usize) {
        for element in elements(texts, from) {
            match element {
                Element::Named(at) => {
                    let (Some(word), Some(text)) = (line.words.get(at), texts.get(at)) else { continue };
                    let name = text.trim_start_matches('!');
                    if self.acls.has(name) {
                        continue;
                    }
                    let message = format!("no ACL is called `{name}` above this line");
                    let skipped = u32::try_from(text.len() - name.len()).unwrap_or_default();
                    let column = if word.quoted { word.column } else { word.column.saturating_add(skipped) };
                    let said = line.diagnostic(Problem::UnknownReference, (column, name.as_bytes()), message);
                    let hint = self.hints.nearest(name, self.acls.all());
                    self.found.push(Diagnostic { hint: hint.map(Into::into), ..said });
                }
                Element::Inline(first, end) => {
                    let words: Vec<String> = texts
                        .get(first..end)
                        .unwrap_or_default()
                        .iter()
                        .map(|word| word.clone().into_owned())
                        .collect();
                    let wrong = |version: Version| {
                        let stages = stages(row, self.section);
                        criterion(&words, Scene { version, edition: Edition::Community, stages })
                    };
                    let mut complaints = self.versions.iter().map(|version| wrong(*version));
                    let complaint = if words.is_empty() {
                        Some(Complaint::new("nothing stands between the braces"))
                    } else {
                        complaints.next().flatten().filter(|_| complaints.all(|other| other.is_some()))
                    };
                    if let Some(complaint) = complaint {
                        let misfit = Misfit { at: first, complaint: Some(complaint) };
                        self.found.push(diagnostic(line, misfit));
                    }
                }
                Element::Unclosed(at) => {
                    let Some(word) = line.words.get(at) else { continue };
                    let at = (word.column, word.raw);
                    let said = line.diagnostic(Problem::Refused, at, "a brace that is not closed");
                    self.found.push(said.with_hint("a `}` with blanks around it closes it"));
                }
            }
        }
    }
}

/// Whether a section may let HAProxy accept what is experimental.
fn exposes_experimental(part: &Part<'_>) -> bool {
    let exposes = |word: &Word<'_>| word.variable || word.is("expose-experimental-directives");
    part.kind == SectionKind::Global && part.lines.iter().any(|line| line.words.first().is_some_and(exposes))
}

/// Says what HAProxy does not accept of a line.
fn diagnostic(line: &CheckedLine<'_>, misfit: Misfit) -> Diagnostic {
    let word = line.words.get(misfit.at);
    let last = line.words.last();
    let whole = |word: &Word<'_>| (word.column, word.raw.to_vec());
    let end = || {
        let length =
            |word: &Word<'_>| word.column.saturating_add(u32::try_from(word.raw.len()).unwrap_or_default());
        (last.map_or(1, length), Vec::new())
    };
    let (at, complaint) = match (misfit.complaint, word) {
        (Some(complaint), word) => {
            let wrong = complaint.word.as_deref();
            let own = word.and_then(|word| wrong.and_then(|wrong| part(word, wrong)));
            let any = || wrong.and_then(|wrong| line.words.iter().skip(1).find_map(|word| part(word, wrong)));
            let at = own.or_else(any).or_else(|| word.or(line.words.first()).map(whole));
            (at.unwrap_or_else(end), complaint)
        }
        (None, Some(word)) => {
            let text = word.to_str_lossy();
            let why = match line.words.get(misfit.at.saturating_sub(1)).filter(|_| misfit.at > 0) {
                Some(before) => format!("HAProxy does not accept `{text}` after `{}`", before.to_str_lossy()),
                None => format!("HAProxy does not accept `{text}` here"),
            };
            (whole(word), Complaint::new(why))
        }
        (None, None) => {
            let after = last.map(Word::to_str_lossy).unwrap_or_default();
            (end(), Complaint::new(format!("something is missing after `{after}`")))
        }
    };
    let said = line.diagnostic(Problem::Refused, (at.0, &at.1), shortened(complaint.why));
    Diagnostic { hint: complaint.hint.map(Into::into), ..said }
}

/// A message is not longer than someone reads, whatever word it is about.
fn shortened(message: String) -> String {
    const MOST: usize = 300;
    if message.len() <= MOST { message } else { message.chars().take(MOST).chain(['…']).collect() }
}

/// Finds the part of a word that is wrong: all of it where it is spelled otherwise.
fn part(word: &Word<'_>, wrong: &str) -> Option<(u32, Vec<u8>)> {
    let Some(offset) = memchr::memmem::find(word.raw, wrong.as_bytes()) else {
        return word.to_str_lossy().contains(wrong).then(|| (word.column, word.raw.to_vec()));
    };
    let column = word.column.saturating_add(u32::try_from(offset).ok()?);
    Some((column, word.raw.get(offset..offset + wrong.len())?.to_vec()))
}
