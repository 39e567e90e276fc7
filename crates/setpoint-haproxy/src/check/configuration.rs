//! The lines that HAProxy reads, in the sections that it takes them for.
//!
//! ```text
//!  documents ──▶ .if … .endif evaluated ──▶ variables expanded ──▶ sections of lines with their words
//! ```
//!
//! What stands in a false `.if` is not read: a line after it belongs to the section before it. Where a condition can't be
//! evaluated (a variable that is not known, a feature of the build), lines are read and what is found in them is a warning.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::Checks;
use super::condition::{self, Truth};
use crate::table::facts::facts;
use crate::table::resources::EnvironmentChange;
use crate::text::{Diagnostic, Directive, Document, Line, Problem, SectionKind, Word};

/// A line that HAProxy reads.
#[derive(Debug)]
pub(super) struct CheckedLine<'d> {
    /// The line of the file, counted from 1.
    pub(super) number: u32,
    /// Its words, with all variables that are known.
    pub(super) words: Vec<Word<'d>>,
    /// Whether HAProxy surely reads it.
    pub(super) certain: bool,
    /// Whether an empty word ends it: HAProxy does not look at what follows.
    pub(super) is_cut: bool,
}

impl CheckedLine<'_> {
    /// Returns whether a variable that is not known decides what it says.
    pub(super) fn is_open(&self) -> bool {
        self.words.iter().any(|word| word.variable)
    }

    /// Returns what is wrong with a word; it is a warning where HAProxy may not read the line.
    pub(super) fn diagnostic(
        &self,
        problem: Problem,
        at: (u32, &[u8]),
        message: impl Into<String>,
    ) -> Diagnostic {
        let found = Diagnostic::at(problem, self.number, at, message);
        if self.certain { found } else { found.warning() }
    }

    /// The words as text.
    pub(super) fn texts(&self) -> Vec<Cow<'_, str>> {
        self.words.iter().map(Word::to_str_lossy).collect()
    }
}

/// A section as HAProxy reads it.
#[derive(Debug)]
pub(super) struct Part<'d> {
    /// The document it stands in.
    pub(super) file: usize,
    pub(super) kind: SectionKind,
    pub(super) header: Option<CheckedLine<'d>>,
    pub(super) lines: Vec<CheckedLine<'d>>,
}

impl Part<'_> {
    /// Its name, if it has one and no unknown variable decides over it.
    pub(super) fn name(&self) -> Option<Cow<'_, str>> {
        let words = &self.header.as_ref()?.words;
        let name = words.get(1).filter(|word| self.kind.takes_name() && !word.variable)?;
        let is_from = self.kind == SectionKind::Defaults && name.is("from") && words.len() > 2;
        (!is_from).then(|| name.to_str_lossy())
    }

    /// Returns whether it has a name, known or not.
    pub(super) fn has_name(&self) -> bool {
        self.name().is_some() || self.has_unknown_name()
    }

    /// Returns whether its name is made of an unknown variable.
    pub(super) fn has_unknown_name(&self) -> bool {
        let words = self.header.as_ref().map(|header| header.words.as_slice()).unwrap_or_default();
        self.kind.takes_name() && words.get(1).is_some_and(|word| word.variable)
    }

    /// The `defaults` section that it names, as a word of its header.
    pub(super) fn from(&self) -> Option<&Word<'_>> {
        let words = &self.header.as_ref()?.words;
        let at = words.iter().skip(1).position(|word| word.is("from"))?;
        words.get(at + 2).filter(|_| self.kind.is_proxy() || self.kind == SectionKind::Defaults)
    }

    /// Returns whether HAProxy surely reads its header.
    pub(super) fn is_certain(&self) -> bool {
        self.header.as_ref().is_none_or(|header| header.certain)
    }
}

/// All sections of files that are one configuration.
#[derive(Debug, Default)]
pub(super) struct Configuration<'d> {
    pub(super) parts: Vec<Part<'d>>,
    /// For each file, the lines that HAProxy does not read: from the first to the one after the last.
    pub(super) unread: Vec<Vec<(u32, u32)>>,
}

impl<'d> Configuration<'d> {
    /// Reads files in the order in which HAProxy gets them; `found` takes what is wrong with their conditions.
    pub(super) fn read(documents: &[&'d Document], checks: &Checks, found: &mut [Vec<Diagnostic>]) -> Self {
        let mut reader = Reader { env: checks.env.clone(), checks, configuration: Self::default() };
        for (file, document) in documents.iter().enumerate() {
            let mut nothing = Vec::new();
            reader.document(file, document, found.get_mut(file).unwrap_or(&mut nothing));
        }
        reader.configuration
    }

    /// The lines of a file that HAProxy surely reads and that an empty word ends.
    pub(super) fn cut_lines(&self, file: usize) -> FxHashSet<u32> {
        let parts = self.parts.iter().filter(|part| part.file == file);
        let lines = parts.flat_map(|part| part.header.iter().chain(&part.lines));
        lines.filter(|line| line.is_cut && line.certain).map(|line| line.number).collect()
    }

    /// Returns whether HAProxy does not read a line of a file.
    pub(super) fn is_unread(&self, file: usize, line: u32) -> bool {
        let ranges = self.unread.get(file).map(Vec::as_slice).unwrap_or_default();
        let after = ranges.partition_point(|(first, _)| *first <= line);
        after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, end)| line < *end)
    }
}

/// Returns what is wrong with a scope such as `[name]`, which stands alone in its line.
fn wrong_scope(line: &CheckedLine<'_>) -> Option<Diagnostic> {
    let first = line.words.first()?;
    let bracket = first.raw.iter().position(|byte| *byte == b']');
    let wrong = |(column, text): (u32, &[u8]), why: &str| {
        Some(line.diagnostic(Problem::Refused, (column, text), why))
    };
    match (bracket, line.words.get(1)) {
        (None | Some(1), _) => wrong((first.column, first.raw), "a scope is a name between `[` and `]`"),
        (Some(end), _) if end + 1 < first.raw.len() => {
            wrong((first.column, first.raw), "nothing may follow a scope in its line")
        }
        (Some(_), Some(next)) => wrong((next.column, next.raw), "nothing may follow a scope in its line"),
        (Some(_), None) => None,
    }
}

struct Reader<'c, 'd> {
    /// The variables that are known at this place: `setenv` adds some.
    env: BTreeMap<String, String>,
    checks: &'c Checks,
    configuration: Configuration<'d>,
}

/// How many `.if` may stand in each other.
const DEPTH: usize = 99;

/// An `.if` and its branches so far.
#[derive(Clone, Copy)]
struct Level {
    /// Whether what is around it is read.
    around: Truth,
    /// Whether a branch so far was true.
    taken: Truth,
    /// Whether the branch at hand is read.
    now: Truth,
}

impl<'d> Reader<'_, 'd> {
    fn document(&mut self, file: usize, document: &'d Document, found: &mut Vec<Diagnostic>) {
        self.configuration.parts.push(Part {
            file,
            kind: SectionKind::Preamble,
            header: None,
            lines: Vec::new(),
        });
        let (mut levels, mut unread): (Vec<Level>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
        let mut first_line = 1_u32;
        for section in document.sections() {
            let header = section.header().map(|line| line.number());
            for line in section.all_lines() {
                let number = first_line.saturating_add(line.number());
                let now = levels.last().map_or(Truth::True, |level| level.now);
                let (words, is_cut) = self.words(&line);
                let Some(first) = words.first() else { continue };
                if first.raw.first() == Some(&b'[') {
                    // A scope is read before conditions are looked at.
                    if line.error().is_none() {
                        let line = CheckedLine { number, words, certain: true, is_cut };
                        found.extend(wrong_scope(&line));
                    }
                    continue;
                }
                let directive = if first.variable { None } else { Directive::from_word(&first.text) };
                if let Some(directive) = directive.filter(|directive| directive.is_conditional()) {
                    // What is around a condition decides whether it counts.
                    let line = CheckedLine { number, words, certain: true, is_cut };
                    self.branch(directive, &line, &mut levels, found);
                    continue;
                }
                if now == Truth::False {
                    match unread.last_mut() {
                        Some((_, end)) if *end == number => *end += 1,
                        _ => unread.push((number, number.saturating_add(1))),
                    }
                    continue;
                }
                if first.is(".alert") && !first.variable {
                    let line = CheckedLine { number, words, certain: now == Truth::True, is_cut };
                    let Some(word) = line.words.first() else { continue };
                    let message = "HAProxy refuses what `.alert` says";
                    found.push(line.diagnostic(Problem::Refused, (word.column, word.raw), message));
                    continue;
                }
                if directive.is_some() || line.error().is_some() {
                    continue;
                }
                let checked = CheckedLine { number, words, certain: now == Truth::True, is_cut };
                if Some(line.number()) == header {
                    let part = Part { file, kind: section.kind(), header: Some(checked), lines: Vec::new() };
                    self.configuration.parts.push(part);
                    continue;
                }
                self.set_variable(&checked);
                if let Some(part) = self.configuration.parts.last_mut() {
                    let certain = checked.certain && part.is_certain();
                    part.lines.push(CheckedLine { certain, ..checked });
                }
            }
            first_line = first_line.saturating_add(section.line_count());
        }
        self.configuration.unread.push(unread);
    }

    /// The words of a line, and whether an empty one ends them.
    fn words(&self, line: &Line<'d>) -> (Vec<Word<'d>>, bool) {
        let mut words = self.all_words(line);
        let end = words.iter().position(|word| word.text.is_empty() && !word.variable).filter(|end| *end > 0);
        words.truncate(end.unwrap_or(words.len()));
        (words, end.is_some() || line.empty_word().is_some())
    }

    /// All words of a line; those with variables are expanded where all of these are known.
    fn all_words(&self, line: &Line<'d>) -> Vec<Word<'d>> {
        let words: Vec<Word<'d>> = line.words().collect();
        if !words.iter().any(|word| word.variable) {
            return words;
        }
        let unknown = Cell::new(false);
        let expanded = line.expanded(&|name| {
            let value = std::str::from_utf8(name).ok().and_then(|name| self.env.get(name));
            unknown.set(unknown.get() || value.is_none());
            value.map(|value| value.clone().into_bytes())
        });
        if unknown.get() { words } else { expanded }
    }

    /// Notes what `setenv` and its like do to the variables.
    fn set_variable(&mut self, line: &CheckedLine<'_>) {
        let is_global = self.configuration.parts.last().is_some_and(|part| part.kind == SectionKind::Global);
        let Some((keyword, words)) = line.words.split_first().filter(|_| is_global) else { return };
        let names: Vec<String> = words.iter().map(|word| word.to_str_lossy().into_owned()).collect();
        match facts().environment(&keyword.to_str_lossy()) {
            Some(EnvironmentChange::Sets) => match (names.as_slice(), words) {
                ([name, value], [_, word]) if line.certain && !word.variable => {
                    self.env.insert(name.clone(), value.clone());
                }
                _ => self.env.retain(|name, _| names.first() != Some(name)),
            },
            // What has a value keeps it; what has none here may have one where HAProxy runs.
            Some(EnvironmentChange::Presets) | None => {}
            // A name that is not known may be any.
            Some(EnvironmentChange::Unsets) if line.is_open() => self.env.clear(),
            Some(EnvironmentChange::Unsets) => self.env.retain(|name, _| !names.contains(name)),
            Some(EnvironmentChange::Resets) => self.env.retain(|name, _| names.contains(name)),
        }
    }

    fn branch(
        &self,
        directive: Directive,
        line: &CheckedLine<'_>,
        levels: &mut Vec<Level>,
        found: &mut Vec<Diagnostic>,
    ) {
        let mut evaluate = |around: Truth| {
            if around == Truth::False {
                return Truth::False;
            }
            match condition::evaluate(line.words.get(1..).unwrap_or_default(), self.checks.version, &self.env)
            {
                Ok(truth) => truth,
                Err(wrong) => {
                    let word = line.words.get(1).or(line.words.first());
                    let at = word.map_or((1, &b""[..]), |word| (word.column, word.raw));
                    let diagnostic = line.diagnostic(Problem::BadCondition, at, wrong);
                    found.push(if around == Truth::True { diagnostic } else { diagnostic.warning() });
                    Truth::Unknown
                }
            }
        };
        let around = levels.last().map_or(Truth::True, |level| level.now);
        match directive {
            Directive::If => {
                let truth = evaluate(around);
                if levels.len() == DEPTH {
                    let word = line.words.first();
                    let at = word.map_or((1, &b""[..]), |word| (word.column, word.raw));
                    let message = format!("more than {DEPTH} `.if` in each other");
                    found.push(line.diagnostic(Problem::BadCondition, at, message));
                }
                levels.push(Level { around, taken: truth, now: around.and(truth) });
            }
            Directive::Elif => {
                if let Some(level) = levels.last_mut() {
                    let open = level.around.and(level.taken.not());
                    let truth = evaluate(open);
                    level.now = open.and(truth);
                    level.taken = level.taken.or(truth);
                }
            }
            Directive::Else => {
                if let Some(level) = levels.last_mut() {
                    level.now = level.around.and(level.taken.not());
                    level.taken = Truth::True;
                }
            }
            _ => drop(levels.pop()),
        }
    }
}
