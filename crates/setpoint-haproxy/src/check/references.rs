//! Names that are used, and files.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Checks;
use super::acls::{Element, elements};
use super::configuration::{CheckedLine, Configuration, Part};
use super::governing::Mode;
use super::hints::Hints;
use super::lines::{Judge, versions};
use super::names::{LocalNames, Names};
use crate::keywords::{Argument, Signature};
use crate::model::Version;
use crate::table::accept::Match;
use crate::table::calls::{Call, calls, in_format};
use crate::table::facts::facts;
use crate::table::forms::Holds;
use crate::table::{Name, Reference, Repeat, Row};
use crate::text::{Diagnostic, Document, Problem, SectionKind, Word};

/// Looks up the names that the lines of one section use.
pub(super) struct References<'n> {
    names: &'n Names,
    local: LocalNames,
    own: String,
    /// Whether HAProxy does not look up what it names: no proxy uses it, or it is disabled.
    is_unused: bool,
    /// Whether HAProxy looks up all the same what rules name.
    looks_at_rules: bool,
    has_servers: bool,
    /// In which mode the section is, and the backends are.
    modes: Option<(Mode, &'n FxHashMap<String, Mode>)>,
    /// The settings of the section without which HAProxy does not look up some names.
    stated: Vec<&'static str>,
}

impl<'n> References<'n> {
    pub(super) fn new(names: &'n Names, part: &Part<'_>, is_unused: bool, version: Option<Version>) -> Self {
        let own = part.name().map(Cow::into_owned).unwrap_or_default();
        let is_default = part.kind == SectionKind::Defaults;
        let looks_at_rules = is_default && version.is_some_and(Version::looks_at_unused_defaults);
        let section = facts().section(part.kind);
        let is_server = |line: &CheckedLine<'_>| {
            let keyword = line.words.first().map(Word::to_str_lossy).unwrap_or_default();
            let named = section.named(&keyword);
            named.iter().any(|named| matches!(named.name, Name::Server | Name::ServerTemplate))
        };
        let has_servers = part.lines.iter().any(is_server);
        let is_stated = |starts: &[String]| {
            let begins = |line: &CheckedLine<'_>, start: &String| {
                let mut words = line.words.iter();
                start.split(' ').all(|start| words.next().is_some_and(|word| word.is(start)))
            };
            part.lines.iter().any(|line| starts.iter().any(|start| begins(line, start)))
        };
        let conditions = section.conditions.iter().filter(|(_, starts)| is_stated(starts));
        let stated = conditions.map(|(path, _)| *path).collect();
        let local = LocalNames::of(part);
        Self { names, local, own, is_unused, looks_at_rules, has_servers, modes: None, stated }
    }

    /// Holds the backends that the section names to its mode.
    pub(super) fn in_mode(self, mode: Mode, backends: &'n FxHashMap<String, Mode>) -> Self {
        Self { modes: Some((mode, backends)), ..self }
    }

    /// Returns whether HAProxy does not look at what the section says.
    pub(super) fn is_unused(&self) -> bool {
        self.is_unused
    }

    /// Looks up the `defaults` that a section takes its values from.
    pub(super) fn header(
        &self,
        header: &CheckedLine<'_>,
        part: &Part<'_>,
        hints: &mut Hints,
        found: &mut Vec<Diagnostic>,
    ) {
        if let Some(word) = part.from().filter(|word| !word.variable) {
            let site = Site { line: header, is_idle: false, is_rule: false };
            found.extend(self.name(site, word, (Name::Defaults, false), &word.to_str_lossy(), hints));
        }
    }

    /// Looks up the names that a line uses, as its row and its options tell.
    pub(super) fn line(
        &self,
        row: &Row,
        matched: &Match<'_>,
        (part, line): (&Part<'_>, &CheckedLine<'_>),
        used: &[Used<'_>],
        hints: &mut Hints,
        found: &mut Vec<Diagnostic>,
    ) {
        let site = Site {
            line,
            // What others start from counts only where there are others.
            is_idle: row.attributes.repeat == Repeat::Merge && !self.has_servers,
            is_rule: row.attributes.stage.is_some_and(|stage| !stage.is_late),
        };
        let is_looked_at = row.attributes.references_if.iter().all(|path| self.stated.contains(path));
        let options = matched.options.iter().flat_map(|(option, _)| &option.attributes.references);
        for reference in row.attributes.references.iter().chain(options) {
            for (_, at, text) in matched.values.iter().filter(|(given, ..)| *given == reference.field) {
                if let Some(word) = line.words.get(*at).filter(|_| is_plain(text)) {
                    let may_dangle = reference.may_dangle || !is_looked_at;
                    self.reference(
                        site,
                        Reference { may_dangle, ..*reference },
                        (word, text),
                        part,
                        hints,
                        found,
                    );
                }
            }
        }
        let is_own = row.attributes.stick_table.is_some_and(|field| !matched.has(field));
        if let Some(word) = line.words.get(row.keyword_count() - 1).filter(|_| is_own) {
            found.extend(self.own_table(line, word, &word.to_str_lossy(), part));
        }
        self.expressions(site, used, part, hints, found);
    }

    fn reference(
        &self,
        site: Site<'_, '_>,
        reference: Reference,
        (word, text): (&Word<'_>, &str),
        part: &Part<'_>,
        hints: &mut Hints,
        found: &mut Vec<Diagnostic>,
    ) {
        let kind = reference.name;
        match kind {
            Name::Server => found.extend(self.server(site, word, text, part)),
            Name::Ring => {
                if let Some(ring) = text.strip_prefix("ring@") {
                    found.extend(self.name(site, word, (kind, reference.may_dangle), ring, hints));
                }
            }
            kind if kind.is_local() => found.extend(self.local(site.line, (word, text), kind)),
            kind => found.extend(
                match kind {
                    Name::Backend => self.backend(site.line, (word, text), part),
                    _ => None,
                }
                .or_else(|| self.name(site, word, (kind, reference.may_dangle), text, hints)),
            ),
        }
    }

    /// Looks whether a section can pass its requests to a backend.
    fn backend(
        &self,
        line: &CheckedLine<'_>,
        (word, text): (&Word<'_>, &str),
        part: &Part<'_>,
    ) -> Option<Diagnostic> {
        if self.is_unused || part.kind == SectionKind::Defaults {
            return None;
        }
        let at = (word.column, text.as_bytes());
        // A frontend may share its name with a backend.
        if text == self.own && part.kind == SectionKind::Listen && self.names.has(Name::Backend, text) {
            let message = format!("`{text}` would pass its requests to itself");
            return Some(line.diagnostic(Problem::UnknownReference, at, message));
        }
        let (mode, backends) = self.modes?;
        let other = backends.get(text).copied().filter(|other| !mode.passes_to(*other))?;
        let (mode, other) = (mode.name(), other.name());
        let message = format!("`{text}` is in `mode {other}`, and this section in `mode {mode}`");
        Some(line.diagnostic(Problem::Refused, at, message))
    }

    /// Looks up a name of the section's own; several may stand in a word.
    fn local(
        &self,
        line: &CheckedLine<'_>,
        (word, text): (&Word<'_>, &str),
        kind: Name,
    ) -> Option<Diagnostic> {
        if self.is_unused && !self.looks_at_rules {
            return None;
        }
        let mut names = text.split(',').filter(|name| !name.is_empty());
        let name = names.find(|name| !self.local.may_have(kind, name))?;
        let message = format!("no {} is called `{name}`", kind.noun());
        Some(line.diagnostic(Problem::UnknownReference, (word.column, name.as_bytes()), message))
    }

    /// Looks for the stick table of a section that a line works on where it names no other.
    fn own_table(
        &self,
        line: &CheckedLine<'_>,
        word: &Word<'_>,
        what: &str,
        part: &Part<'_>,
    ) -> Option<Diagnostic> {
        let is_looked_at = part.kind != SectionKind::Defaults || self.looks_at_rules;
        let is_ignored = self.is_unused && !self.looks_at_rules;
        if self.local.may_have_table() || !is_looked_at || is_ignored {
            return None;
        }
        let message = format!("`{what}` needs a stick table, and this section has none");
        let diagnostic = line.diagnostic(Problem::Needs, (word.column, word.raw), message);
        Some(diagnostic.with_hint("a line `stick-table …` makes one, `table NAME` names another's"))
    }

    fn server(&self, site: Site<'_, '_>, word: &Word<'_>, name: &str, part: &Part<'_>) -> Option<Diagnostic> {
        let path = if name.contains('/') { name.to_owned() } else { format!("{}/{name}", self.own) };
        if part.kind == SectionKind::Defaults || site.is_idle || self.names.has_server(&path) {
            return None;
        }
        let message = format!("no server is called `{name}`");
        let diagnostic =
            site.line.diagnostic(Problem::UnknownReference, (word.column, name.as_bytes()), message);
        Some(if self.is_unused { diagnostic.warning() } else { diagnostic })
    }

    /// Looks up what the fetches and converters of a line name: `http_auth(list)`, `nbsrv(backend)`, `in_table(table)`.
    fn expressions(
        &self,
        site: Site<'_, '_>,
        used: &[Used<'_>],
        part: &Part<'_>,
        hints: &mut Hints,
        found: &mut Vec<Diagnostic>,
    ) {
        let line = site.line;
        for Used { at, call, signature, .. } in used {
            let (Some(word), Some(signature)) = (line.words.get(*at), signature) else { continue };
            let given = call.arguments();
            for (position, argument) in signature.arguments.iter().enumerate() {
                let Argument::Named(kind) = argument else { continue };
                match given.get(position).filter(|name| !name.is_empty()) {
                    Some(name) if !is_plain(name) => {}
                    // An ACL has to stand above the line: the line's own checks know which do.
                    Some(_) if *kind == Name::Acl => {}
                    Some(name) if *kind == Name::Server => {
                        found.extend(self.server(site, word, name, part));
                    }
                    Some(name) => found.extend(self.name(site, word, (*kind, false), name, hints)),
                    None if *kind == Name::Table && position < signature.least => {
                        found.extend(self.own_table(line, word, call.name, part));
                    }
                    None => {}
                }
            }
        }
    }

    fn name(
        &self,
        site: Site<'_, '_>,
        word: &Word<'_>,
        (kind, may_dangle): (Name, bool),
        name: &str,
        hints: &mut Hints,
    ) -> Option<Diagnostic> {
        if self.names.has(kind, name) {
            return None;
        }
        let message = format!("no {} is called `{name}`", kind.noun());
        let hint = hints.nearest(name, self.names.all(kind)).map(Into::into);
        let at = (word.column, name.as_bytes());
        let diagnostic = site.line.diagnostic(Problem::UnknownReference, at, message);
        let is_looked_at =
            self.looks_at_rules && kind != Name::Cache && (site.is_rule || kind == Name::HttpErrors);
        let is_tolerated = self.is_unused && !is_looked_at;
        let diagnostic =
            if is_tolerated || site.is_idle || may_dangle { diagnostic.warning() } else { diagnostic };
        Some(Diagnostic { hint, ..diagnostic })
    }
}

/// A fetch or a converter that a line uses.
pub(super) struct Used<'t> {
    /// The word it stands in.
    pub(super) at: usize,
    /// What of the word is an expression.
    pub(super) holds: Holds,
    pub(super) call: Call<'t>,
    pub(super) signature: Option<&'static Signature>,
}

/// The fetches and converters of a line.
pub(super) fn calls_of<'t>(matched: &Match<'_>, texts: &'t [Cow<'t, str>]) -> Vec<Used<'t>> {
    let words = expressions(matched, texts, 0).into_iter().flat_map(|(range, holds)| {
        let first_only = holds == Holds::Criterion;
        range.take(if first_only { 1 } else { usize::MAX }).map(move |at| (at, holds))
    });
    let mut used = Vec::new();
    for (at, holds) in words {
        let Some(text) = texts.get(at) else { continue };
        let expressions = if holds == Holds::Format { in_format(text) } else { vec![&**text] };
        let calls = expressions.into_iter().flat_map(calls);
        used.extend(calls.map(|(call, signature)| Used { at, holds, call, signature }));
    }
    used
}

/// The line that uses a name.
#[derive(Clone, Copy)]
struct Site<'l, 'd> {
    line: &'l CheckedLine<'d>,
    /// Whether nothing takes its values.
    is_idle: bool,
    /// Whether it is a rule, whose expressions HAProxy evaluates.
    is_rule: bool,
}

/// The sections whose names HAProxy does not look up: `defaults` that no proxy uses, and proxies that are disabled.
pub(super) fn unused(configuration: &Configuration<'_>, governing: &[Option<usize>]) -> FxHashSet<usize> {
    let mut unused = FxHashSet::default();
    let mut used: FxHashSet<usize> = FxHashSet::default();
    for (index, part) in configuration.parts.iter().enumerate() {
        match part.kind {
            SectionKind::Defaults => {
                unused.insert(index);
            }
            kind if kind.is_proxy() => {
                let section = facts().section(part.kind);
                let mut certain = part.lines.iter().rev().filter(|line| line.certain);
                let state = certain.find_map(|line| section.state(&line.words.first()?.to_str_lossy()));
                if state == Some(false) {
                    unused.insert(index);
                } else {
                    used.extend(governing.get(index).copied().flatten());
                }
            }
            _ => {}
        }
    }
    unused.retain(|index| !used.contains(index));
    unused
}

/// Returns whether a text is a name as it stands, and not made at run time.
fn is_plain(text: &str) -> bool {
    !text.contains(['%', '$']) && !text.is_empty()
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A map: `map(FILE)`.
    Map,
    /// Patterns of an ACL: `-f FILE`.
    Patterns,
}

/// A file that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReference {
    /// What it is for.
    pub kind: FileKind,
    /// How it is written.
    pub path: String,
    /// The line of the file, counted from 1.
    pub line: u32,
    /// The place in the line, in bytes, counted from 1.
    pub column: u32,
}

/// The maps and pattern files that a configuration names where HAProxy reads them; whether they exist is for the caller to
/// see.
///
/// ```
/// use setpoint_haproxy::check::{Checks, files};
/// use setpoint_haproxy::text::Document;
///
/// let document = Document::parse(b"frontend f\n  use_backend %[req.hdr(host),lower,map(/etc/hosts.map,fallback)]\n");
/// assert_eq!(files(&document, &Checks::default())[0].path, "/etc/hosts.map");
/// ```
pub fn files(document: &Document, checks: &Checks) -> Vec<FileReference> {
    let configuration = Configuration::read(&[document], checks, &mut []);
    let versions = versions(checks.version);
    let mut found = Vec::new();
    for part in &configuration.parts {
        let judge = Judge::new(part.kind, &versions);
        for line in part.lines.iter().filter(|line| !line.is_open() && may_name_files(line)) {
            let texts = line.texts();
            let Some(Ok((_, matched, offset))) = judge.line(&texts) else { continue };
            for (range, holds) in expressions(&matched, &texts, offset) {
                files_of(line, (&texts, range), holds, &mut found);
            }
        }
    }
    found
}

/// Returns whether a line has a word that may name a file: most have none.
fn may_name_files(line: &CheckedLine<'_>) -> bool {
    line.words.iter().any(|word| word.is("-f") || memchr::memmem::find(&word.text, b"map").is_some())
}

/// The files that an expression names: those of its maps, and of `-f` behind a criterion.
fn files_of(
    line: &CheckedLine<'_>,
    (texts, range): (&[Cow<'_, str>], Range<usize>),
    holds: Holds,
    found: &mut Vec<FileReference>,
) {
    let mut add = |kind, path: &str, at: usize| {
        // `virt@` and `opt@` name what need not be there.
        let is_needed = !path.is_empty() && !path.starts_with("virt@") && !path.starts_with("opt@");
        if let Some(word) = line.words.get(at).filter(|_| is_needed) {
            let path = path.trim_start_matches("file@").to_owned();
            found.push(FileReference { kind, path, line: line.number, column: word.column });
        }
    };
    let is_criterion = holds == Holds::Criterion;
    for at in range.clone().take(if is_criterion { 1 } else { usize::MAX }) {
        let Some(text) = texts.get(at) else { continue };
        let samples = if holds == Holds::Format { in_format(text) } else { vec![&**text] };
        for (call, signature) in samples.into_iter().flat_map(calls) {
            let is_map = signature.is_some_and(|signature| signature.is_map);
            if let Some(file) = call.arguments().first().filter(|_| is_map) {
                add(FileKind::Map, file, at);
            }
        }
    }
    for at in range.filter(|at| is_criterion && texts.get(*at).is_some_and(|text| text == "-f")) {
        if let Some(path) = texts.get(at + 1) {
            add(FileKind::Patterns, path, at + 1);
        }
    }
}

/// The words of a line that hold samples, the criteria of its condition among them.
fn expressions(matched: &Match<'_>, texts: &[Cow<'_, str>], offset: usize) -> Vec<(Range<usize>, Holds)> {
    let own = matched.expressions.iter().map(|(range, holds)| {
        // The flags and patterns of a criterion follow it.
        let end = if *holds == Holds::Criterion { texts.len() } else { range.end + offset };
        (range.start + offset..end, *holds)
    });
    let conditions = matched.condition.into_iter().flat_map(|from| elements(texts, from + offset));
    let inline = conditions.filter_map(|element| match element {
        Element::Inline(first, end) => Some((first..end, Holds::Criterion)),
        Element::Named(_) | Element::Unclosed(_) => None,
    });
    own.chain(inline).collect()
}
