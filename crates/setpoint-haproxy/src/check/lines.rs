//! Every line, held to what HAProxy accepts of it: its words, its values, the rule it is, the condition it ends with, and
//! the names that it uses. The table of directives knows.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashSet;

use super::acls::{Acls, Element, elements};
use super::configuration::{CheckedLine, Configuration, Part};
use super::duplicates::DistinctValues;
use super::governing::{Mode, governing, modes, modes_of_backends};
use super::hints::Hints;
use super::names::Names;
use super::needs::{Needs, Place};
use super::references::{References, Used, calls_of};
use crate::keywords::{ALL_STAGES, ASKED, Argument};
use crate::model::{Edition, Field, ObjectKind, Version};
use crate::table::accept::{LineContext, Match, Misfit, accept, broken_rule};
use crate::table::address::{Reached, reached};
use crate::table::facts::{Given, facts};
use crate::table::forms::Holds;
use crate::table::grammar::{Entry, Item, Versions, first_word};
use crate::table::limits::{Complaint, Limit, did_you_mean};
use crate::table::patterns::wrong_pattern;
use crate::table::resources::Resource;
use crate::table::samples::{LUA, SampleContext, criterion, stages, unknown_flag};
use crate::table::{Company, Name, Repeat, Row, accepted};
use crate::text::{Diagnostic, Problem, SectionKind, Severity, Word};

/// Holds every line to what HAProxy accepts. Lines in which an error was found already are left out.
pub(super) fn check(
    configuration: &Configuration<'_>,
    version: Option<Version>,
    hints: &mut Hints,
    found: &mut [Vec<Diagnostic>],
) {
    let names = Names::of(configuration);
    let versions = versions(version);
    let governing = governing(configuration);
    let modes = modes(configuration, &governing);
    let backends = modes_of_backends(configuration, &modes);
    let unused = super::references::unused(configuration, &governing);
    let mut is_experimental = false;
    let mut needs = Needs::default();
    let mut distinct = DistinctValues::default();
    let wrong = lines_with_errors(found);
    for (index, part) in configuration.parts.iter().enumerate() {
        let judge = Judge::new(part.kind, &versions);
        let section_facts = facts().section(part.kind);
        let (Some(found), Some(wrong)) = (found.get_mut(part.file), wrong.get(part.file)) else { continue };
        let mode = modes.get(index).copied().unwrap_or(Mode::Other);
        let references =
            References::new(&names, part, unused.contains(&index), version).in_mode(mode, &backends);
        let acls = Acls::new(version);
        needs.begin();
        distinct.begin();
        let mut checker = Checker {
            judge,
            is_experimental,
            acls,
            references,
            needs: &mut needs,
            distinct: &mut distinct,
            hints,
            found,
        };
        if let Some(header) = &part.header {
            if let Some(word) = header.words.first() {
                checker.experimental(section_facts.experimental, header, word);
            }
            checker.references.header(header, part, checker.hints, checker.found);
        }
        if let Some(header) = &part.header {
            checker.wanted(part, header, section_facts.wants);
        }
        for line in &part.lines {
            let is_known_as_wrong = wrong.contains(&line.number);
            checker.is_experimental |= exposes_experimental(part, line);
            checker.line(part, line, is_known_as_wrong);
        }
        is_experimental = checker.is_experimental;
        needs.end(part, mode);
    }
    needs.finish(version, found);
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

/// The versions that are asked: the one that a configuration is for, or all.
pub(super) fn versions(version: Option<Version>) -> Vec<Version> {
    match version {
        Some(version) => vec![version],
        // The newest refuses the least, so that it is asked first.
        None => ASKED.into_iter().rev().collect(),
    }
}

/// Finds the rows by which HAProxy accepts the lines of a section.
#[derive(Clone, Copy)]
pub(super) struct Judge<'v> {
    kinds: &'static [ObjectKind],
    section: Option<ObjectKind>,
    versions: &'v [Version],
}

/// The row that describes a line, what of the line is what, and how many words stand before it: `no` or `default`.
type Judged<'w> = (&'static Row, Match<'w>, usize);

impl<'v> Judge<'v> {
    pub(super) fn new(section: SectionKind, versions: &'v [Version]) -> Self {
        let (kinds, section) = kinds(section);
        Self { kinds, section, versions }
    }

    /// The row by which HAProxy accepts a line, or why it does not; nothing where no row describes such lines.
    pub(super) fn line<'w>(&self, texts: &'w [Cow<'w, str>]) -> Option<Result<Judged<'w>, Misfit>> {
        let negated = match texts {
            [no, _, ..] if no == "no" => true,
            [default, option, ..] => default == "default" && option == "option",
            _ => false,
        };
        let bare = self.row(texts, false).map(|found| found.map(|(row, matched)| (row, matched, 0)));
        if !negated || matches!(bare, Some(Ok(_))) {
            return bare;
        }
        let words = texts.get(1..).unwrap_or_default();
        match self.row(words, true) {
            None => bare,
            Some(Ok((row, _))) if self.miscounts_default(texts, row) => {
                let why = "this HAProxy takes what follows `default option` for an argument too many";
                Some(Err(Misfit::new(2, Some(Complaint::new(why)))))
            }
            Some(Ok((row, matched))) => Some(Ok((row, matched, 1))),
            Some(Err(misfit)) => Some(Err(Misfit { at: misfit.at + 1, ..misfit })),
        }
    }

    /// Returns whether HAProxy looks at the value of a line only where a proxy takes it over: a format that no rule uses.
    fn is_read_late(&self, texts: &[Cow<'_, str>]) -> bool {
        let Some(first) = texts.first() else { return false };
        let second = texts.get(1).map(|word| &**word);
        let is_format = |item: &Item| matches!(item, Item::Value { limit: Some(Limit::Form(form)), .. } if form.holds() == Some(Holds::Format));
        let version = self.versions.first().copied().unwrap_or(Version::LATEST);
        let mut rows = self.kinds.iter().flat_map(|kind| accepted().forms(*kind, first, second, version));
        let is_late = |row: &Row| row.attributes.stage.is_none_or(|stage| stage.is_late);
        rows.any(|row| is_late(row) && row.items.iter().any(is_format))
    }

    /// Returns whether HAProxy refuses `default` before an option: it counts the arguments of those that take none.
    fn miscounts_default(&self, texts: &[Cow<'_, str>], row: &Row) -> bool {
        let takes_none = |item: &Item| matches!(item, Item::Literal(_) | Item::Value { .. });
        texts.first().is_some_and(|word| word == "default")
            && row.items.iter().all(takes_none)
            && self.versions.iter().all(|version| version.miscounts_default_option())
    }

    /// The row by which HAProxy accepts some words, or why it does not; nothing where no row describes such lines.
    fn row<'w>(
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
                let sample_cx = SampleContext {
                    version: *version,
                    edition: Edition::Community,
                    stages: stages(row, self.section),
                };
                match accept(row, words, LineContext { sample_cx, section: self.section, negated }) {
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
        let mut misfit = misfit.unwrap_or(Misfit::new(1, None));
        if misfit.at == 1 {
            let version = self.versions.first().copied().unwrap_or(Version::LATEST);
            let seconds = self.kinds.iter().flat_map(|kind| accepted().second_words(*kind, first, version));
            misfit.expected.extend(seconds);
        }
        Some(Err(misfit))
    }
}

struct Checker<'c> {
    judge: Judge<'c>,
    /// Whether HAProxy accepts what is experimental.
    is_experimental: bool,
    acls: Acls,
    references: References<'c>,
    needs: &'c mut Needs,
    distinct: &'c mut DistinctValues,
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
            self.needs.unread(part, line);
            return;
        }
        let texts = line.texts();
        match self.judge.line(&texts) {
            None => self.needs.unread(part, line),
            Some(Err(misfit)) => {
                let is_late = misfit.at < texts.len()
                    && part.kind == SectionKind::Defaults
                    && self.references.is_unused()
                    && self.judge.is_read_late(&texts);
                let diagnostic = diagnostic(line, misfit);
                self.found.push(if is_late { diagnostic.warning() } else { diagnostic });
                self.needs.unread(part, line);
            }
            Some(Ok((row, matched, offset))) => {
                let words = texts.get(offset..).unwrap_or_default();
                let broken = row.attributes.rule.and_then(|_| {
                    let line_cx = self.line_context(row, offset > 0);
                    let mut complaints = self.judge.versions.iter().map(|version| {
                        let sample_cx = SampleContext { version: *version, ..line_cx.sample_cx };
                        let line_cx = LineContext { sample_cx, ..line_cx };
                        self.judge.kinds.iter().find_map(|kind| broken_rule(words, *kind, line_cx))
                    });
                    complaints.next().flatten().filter(|_| complaints.all(|other| other.is_some()))
                });
                if let Some(complaint) = broken {
                    self.found.push(diagnostic(line, Misfit::new(0, Some(complaint))));
                }
                if let Some(from) = matched.condition {
                    self.condition(row, line, &texts, from + offset);
                }
                let used = calls_of(&matched, &texts);
                self.calls(row, (part, line), &used);
                for (range, _) in matched.expressions.iter().filter(|(_, holds)| *holds == Holds::Criterion) {
                    self.flags(line, &texts, range.start + offset + 1..texts.len());
                }
                for word in matched.ignored.iter().filter_map(|at| line.words.get(*at + offset)) {
                    let message =
                        format!("HAProxy ignores what follows the unit of `{}`", word.to_str_lossy());
                    let diagnostic = line.diagnostic(Problem::NoEffect, (word.column, word.raw), message);
                    self.found.push(diagnostic.warning());
                }
                let is_anonymous = part.kind == SectionKind::Defaults && !part.has_name();
                if let Some(word) =
                    line.words.get(offset).filter(|_| row.attributes.wants_named_defaults && is_anonymous)
                {
                    let message =
                        format!("HAProxy accepts no `{}` in `defaults` without a name", word.to_str_lossy());
                    let diagnostic = line.diagnostic(Problem::Refused, (word.column, word.raw), message);
                    self.found.push(diagnostic.with_hint("write a name after `defaults`"));
                }
                self.attributes(row, &matched, part.kind, line, offset);
                self.found.extend(self.distinct.line(row, &matched, (part, line), offset));
                self.found.extend(self.distinct.once(row, line));
                let at = Place { part, line, offset, is_unused: self.references.is_unused() };
                self.found.extend(self.needs.line(row, &matched, at));
                self.references.line(row, &matched, (part, line), &used, self.hints, self.found);
            }
        }
    }

    /// Looks whether a section has the line without which HAProxy refuses it.
    fn wanted(&mut self, part: &Part<'_>, header: &CheckedLine<'_>, wanted: Option<&'static str>) {
        let has = |wanted: &str| {
            part.lines
                .iter()
                .any(|line| line.words.first().is_some_and(|word| word.variable || word.is(wanted)))
        };
        if let (Some(wanted), Some(keyword)) = (wanted.filter(|wanted| !has(wanted)), header.words.first()) {
            let message = format!("HAProxy accepts no `{}` section without `{wanted}`", part.kind);
            self.found.push(header.diagnostic(Problem::Needs, (keyword.column, keyword.raw), message));
        }
    }

    /// Looks at what a row and the options of a line say of them: what is deprecated, experimental, or missing.
    fn attributes(
        &mut self,
        row: &Row,
        matched: &Match<'_>,
        kind: SectionKind,
        line: &CheckedLine<'_>,
        offset: usize,
    ) {
        let own = line.words.get(offset).map(|word| (&row.attributes, row.start(), word));
        let options = matched.options.iter().filter_map(|(option, at)| {
            let word = line.words.get(*at + offset)?;
            Some((&option.attributes, word.to_str_lossy().into_owned(), word))
        });
        let is_quic = |(_, _, text): &&(Field, usize, &str)| reached(text) == Reached::Quic;
        if row.attributes.experimental_quic.is_some()
            && let Some((_, at, _)) = matched.values.iter().find(is_quic)
            && let Some(word) = line.words.get(*at + offset)
        {
            self.experimental(row.attributes.experimental_quic, line, word);
        }
        let version = self.judge.versions.first().copied().filter(|_| self.judge.versions.len() == 1);
        for (attributes, name, word) in own.into_iter().chain(options) {
            if let Some((version, (versions, advice))) = version.zip(attributes.deprecated)
                && versions.contains(version)
            {
                let message = format!("`{name}` is deprecated in HAProxy {version}");
                let diagnostic = line.diagnostic(Problem::Deprecated, (word.column, word.raw), message);
                self.found.push(diagnostic.warning().with_hint(advice));
            }
            let action = line.words.iter().find(|word| name.ends_with(&*word.to_str_lossy())).unwrap_or(word);
            self.experimental(attributes.experimental, line, action);
            let is_given = |(option, _): &&(&'static Entry, usize), wanted: &str| {
                option.items.first().and_then(first_word) == Some(wanted)
            };
            let company = &attributes.company;
            if company.misses(|wanted| matched.options.iter().any(|option| is_given(&option, wanted))) {
                let message = company.missing(&name);
                self.found.push(line.diagnostic(Problem::Needs, (word.column, word.raw), message));
            }
            let is_excluded = |option: &&(&'static Entry, usize)| {
                company.excluded(|other| is_given(option, other)).is_some()
            };
            if let Some((_, at)) = matched.options.iter().find(is_excluded)
                && let Some(other) = line.words.get(*at + offset)
            {
                let message = Company::refused(&name, &other.to_str_lossy());
                self.found.push(line.diagnostic(Problem::Refused, (word.column, word.raw), message));
                break;
            }
            let is_default = row.attributes.repeat == Repeat::Merge;
            if attributes.ignored || attributes.no_default && is_default {
                let place =
                    if is_default { format!("`{}`", row.start()) } else { format!("a `{kind}` section") };
                let message = format!("`{name}` has no effect in {place}");
                let diagnostic = line.diagnostic(Problem::NoEffect, (word.column, word.raw), message);
                self.found.push(diagnostic.warning());
            }
        }
    }

    /// Reports that a word is experimental, in versions in which it is.
    fn experimental(&mut self, versions: Option<Versions>, line: &CheckedLine<'_>, word: &Word<'_>) {
        let Some(versions) = versions.filter(|_| !self.is_experimental) else { return };
        // Of versions that don't know it, the range says nothing.
        let mut knows = self.judge.versions.iter().filter(|version| **version >= versions.since).peekable();
        if knows.peek().is_none() || !knows.all(|version| versions.contains(*version)) {
            return;
        }
        let message = Resource::Experimental.message(&word.to_str_lossy());
        let diagnostic = line.diagnostic(Problem::Needs, (word.column, word.raw), message);
        self.found.push(diagnostic.with_hint(Resource::Experimental.hint()));
    }

    fn line_context(&self, row: &Row, negated: bool) -> LineContext {
        let version = self.judge.versions.first().copied().unwrap_or(Version::LATEST);
        let sample_cx =
            SampleContext { version, edition: Edition::Community, stages: stages(row, self.judge.section) };
        LineContext { sample_cx, section: self.judge.section, negated }
    }

    /// Looks up what fetches and converters need that only lines above give: ACLs, and Lua that registers them.
    fn calls(&mut self, row: &Row, (part, line): (&Part<'_>, &CheckedLine<'_>), used: &[Used<'_>]) {
        let is_late = row.attributes.stage.is_none_or(|stage| stage.is_late);
        for Used { at, holds, call, signature } in used {
            let Some(word) = line.words.get(*at) else { continue };
            // Formats that are read late may name what stands below.
            let is_above = *holds == Holds::Criterion || !is_late;
            if call.name.starts_with(LUA) && (is_above || !self.references.is_unused()) {
                self.needs.require(Resource::Lua, (part, line), (word, call.name));
            }
            let is_acl = |argument: &Argument| *argument == Argument::Named(Name::Acl);
            let takes_acls = signature.is_some_and(|signature| signature.arguments.iter().any(is_acl));
            if !takes_acls || !is_above || !part.kind.is_proxy() {
                continue;
            }
            for name in call.arguments() {
                let name = name.trim_start_matches('!');
                if !name.is_empty() && !self.acls.has(name) {
                    self.unknown_acl(line, name, word.column, word.raw);
                }
            }
        }
    }

    /// Reports that no ACL above a line has a name.
    fn unknown_acl(&mut self, line: &CheckedLine<'_>, name: &str, column: u32, text: &[u8]) {
        let message = format!("no ACL is called `{name}` above this line");
        let diagnostic = line.diagnostic(Problem::UnknownReference, (column, text), message);
        let hint = self.hints.nearest(name, self.acls.all());
        self.found.push(Diagnostic { hint: hint.map(Into::into), ..diagnostic });
    }

    /// Looks at the flags and the patterns after what an ACL compares.
    fn flags(&mut self, line: &CheckedLine<'_>, texts: &[Cow<'_, str>], range: Range<usize>) {
        let version = self.judge.versions.first().copied().unwrap_or(Version::LATEST);
        let start = range.start;
        let words = texts.get(range).unwrap_or_default();
        let criterion = start.checked_sub(1).and_then(|at| texts.get(at)).map(|word| &**word);
        let sample_cx = SampleContext { version, edition: Edition::Community, stages: ALL_STAGES };
        let wrong = unknown_flag(words, version)
            .or_else(|| criterion.and_then(|criterion| wrong_pattern(criterion, words, sample_cx)));
        if let Some((at, complaint)) = wrong {
            self.found.push(diagnostic(line, Misfit::new(start + at, Some(complaint))));
        }
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
                    let skipped = u32::try_from(text.len() - name.len()).unwrap_or_default();
                    let column = if word.quoted { word.column } else { word.column.saturating_add(skipped) };
                    self.unknown_acl(line, name, column, name.as_bytes());
                }
                Element::Inline(first, end) => {
                    self.flags(line, texts, first + 1..end);
                    let words: Vec<String> = texts
                        .get(first..end)
                        .unwrap_or_default()
                        .iter()
                        .map(|word| word.clone().into_owned())
                        .collect();
                    let wrong = |version: Version| {
                        let stages = stages(row, self.judge.section);
                        criterion(&words, SampleContext { version, edition: Edition::Community, stages })
                    };
                    let mut complaints = self.judge.versions.iter().map(|version| wrong(*version));
                    let complaint = if words.is_empty() {
                        Some(Complaint::new("nothing stands between the braces"))
                    } else {
                        complaints.next().flatten().filter(|_| complaints.all(|other| other.is_some()))
                    };
                    if let Some(complaint) = complaint {
                        self.found.push(diagnostic(line, Misfit::new(first, Some(complaint))));
                    }
                }
                Element::Unclosed(at) => {
                    let Some(word) = line.words.get(at) else { continue };
                    let at = (word.column, word.raw);
                    let diagnostic = line.diagnostic(Problem::Refused, at, "a brace that is not closed");
                    self.found.push(diagnostic.with_hint("a `}` with blanks around it closes it"));
                }
            }
        }
    }
}

/// Returns whether a line may let HAProxy accept what is experimental from there on.
fn exposes_experimental(part: &Part<'_>, line: &CheckedLine<'_>) -> bool {
    let section = facts().section(part.kind);
    let exposes =
        |word: &Word<'_>| word.variable || section.may_provide(&word.to_str_lossy(), Resource::Experimental);
    part.kind == SectionKind::Global && line.words.first().is_some_and(exposes)
}

/// Returns what HAProxy does not accept of a line.
fn diagnostic(line: &CheckedLine<'_>, misfit: Misfit) -> Diagnostic {
    let word = line.words.get(misfit.at);
    let last = line.words.last();
    let whole = |word: &Word<'_>| (word.column, word.raw.to_vec());
    let end = || {
        let length =
            |word: &Word<'_>| word.column.saturating_add(u32::try_from(word.raw.len()).unwrap_or_default());
        (last.map_or(1, length), Vec::new())
    };
    let before = misfit.at.checked_sub(1).and_then(|at| line.words.get(at)).map(Word::to_str_lossy);
    let (at, complaint) = match (misfit.complaint, word) {
        (Some(complaint), word) => {
            let subject = before.map_or_else(|| "the value".to_owned(), |before| format!("`{before}`"));
            let complaint = complaint.with_known(&misfit.expected, &subject);
            let wrong = complaint.word.as_deref();
            let own = word.and_then(|word| wrong.and_then(|wrong| part(word, wrong)));
            let any = || wrong.and_then(|wrong| line.words.iter().skip(1).find_map(|word| part(word, wrong)));
            let at = own.or_else(any).or_else(|| word.or(line.words.first()).map(whole));
            (at.unwrap_or_else(end), complaint)
        }
        (None, Some(word)) => {
            let text = word.to_str_lossy();
            let why = match before {
                Some(before) => format!("HAProxy does not accept `{text}` after `{before}`"),
                None => format!("HAProxy does not accept `{text}` here"),
            };
            let hint = did_you_mean(&text, misfit.expected.iter().copied());
            (whole(word), Complaint { hint, ..Complaint::new(why) })
        }
        (None, None) => {
            let after = last.map(Word::to_str_lossy).unwrap_or_default();
            (end(), Complaint::new(format!("something is missing after `{after}`")))
        }
    };
    let diagnostic = line.diagnostic(Problem::Refused, (at.0, &at.1), complaint.why);
    Diagnostic { hint: complaint.hint.map(Into::into), ..diagnostic }
}

/// Finds the part of a word that is wrong: all of it where it is spelled otherwise.
fn part(word: &Word<'_>, wrong: &str) -> Option<(u32, Vec<u8>)> {
    let Some(offset) = memchr::memmem::find(word.raw, wrong.as_bytes()) else {
        return word.to_str_lossy().contains(wrong).then(|| (word.column, word.raw.to_vec()));
    };
    let column = word.column.saturating_add(u32::try_from(offset).ok()?);
    Some((column, word.raw.get(offset..offset + wrong.len())?.to_vec()))
}
