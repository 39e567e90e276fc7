//! Names that are given twice.

use std::collections::HashMap;

use crate::model::Version;
use crate::text::{Diagnostic, Document, Problem, Section, SectionKind, Severity};

/// All proxies have names of their own from this version on; before it, those that serve and those that are served.
const SINCE_ONE_SPACE: Version = Version::V3_3;

/// Within which names must differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Space {
    /// What clients come to.
    Front,
    /// What servers stand behind.
    Back,
    /// Sections of one kind.
    Kind(SectionKind),
}

/// Sections of which no two of a kind may share a name.
///
/// Not here: `defaults`, which may share one as long as none refers to it, and `crt-store`, which HAProxy joins.
const UNIQUE: &[SectionKind] = &[
    SectionKind::Resolvers,
    SectionKind::Peers,
    SectionKind::Mailers,
    SectionKind::HttpErrors,
    SectionKind::Ring,
    SectionKind::Cache,
    SectionKind::FcgiApp,
    SectionKind::LogProfile,
    SectionKind::Program,
    SectionKind::Healthcheck,
    SectionKind::Acme,
    SectionKind::Userlist,
];

/// The spaces that a section's name is in.
fn spaces(kind: SectionKind) -> Vec<Space> {
    match kind {
        SectionKind::Frontend => vec![Space::Front],
        SectionKind::Backend => vec![Space::Back],
        SectionKind::Listen | SectionKind::LogForward => vec![Space::Front, Space::Back],
        kind if UNIQUE.contains(&kind) => vec![Space::Kind(kind)],
        _ => Vec::new(),
    }
}

/// Keywords of lines whose second word is a name within the section, and how bad it is to give it twice.
fn named_lines(kind: SectionKind) -> &'static [(&'static str, Severity)] {
    match kind {
        SectionKind::Backend | SectionKind::Listen | SectionKind::Ring => &[("server", Severity::Error)],
        SectionKind::Resolvers => &[("nameserver", Severity::Error)],
        SectionKind::Userlist => &[("user", Severity::Warning), ("group", Severity::Warning)],
        _ => &[],
    }
}

/// Looks for names that are given twice. What is under a condition may be there once whatever the text shows.
pub(super) fn check(document: &Document, version: Option<Version>, found: &mut Vec<Diagnostic>) {
    let mut sections = Sections { version, seen: HashMap::new() };
    let defaults = defaults(document);
    let mut first_line = 1_u32;
    for section in document.sections() {
        if !section.is_conditional() {
            sections.look_at(section, first_line, found);
            ambiguous_from(section, first_line, &defaults, found);
            for (keyword, severity) in named_lines(section.kind()) {
                lines(section, first_line, keyword, *severity, found);
            }
        }
        first_line = first_line.saturating_add(section.line_count());
    }
}

/// The names of sections so far: what gave them, and in which line.
struct Sections {
    version: Option<Version>,
    seen: HashMap<(Space, Vec<u8>), (SectionKind, u32)>,
}

impl Sections {
    fn look_at(&mut self, section: &Section, first_line: u32, found: &mut Vec<Diagnostic>) {
        let (Some(name), Some(header)) = (section.name(), section.header()) else { return };
        if header.words().any(|word| word.variable) {
            return;
        }
        let (kind, number) = (section.kind(), first_line.saturating_add(header.number()));
        let spaces = spaces(kind);
        let one_space = self.version.is_some_and(|version| version >= SINCE_ONE_SPACE);
        let looked_at = match kind {
            SectionKind::Frontend | SectionKind::Backend if one_space => &[Space::Front, Space::Back],
            _ => &*spaces,
        };
        let other = looked_at.iter().find_map(|space| self.seen.get(&(*space, name.to_vec())).copied());
        for space in &spaces {
            self.seen.insert((*space, name.to_vec()), (kind, number));
        }
        let (Some((other, line)), Some(keyword)) = (other, header.words().next()) else { return };
        let name = String::from_utf8_lossy(&name);
        let message = format!("another {other} is called `{name}`");
        let place = (keyword.column, keyword.raw);
        let said = Diagnostic::new(Problem::DuplicateSection, first_line, &header, place, message);
        let hint = format!("the other one is in line {line}");
        // HAProxy passes over the second userlist.
        let severity = if kind == SectionKind::Userlist { Severity::Warning } else { Severity::Error };
        found.push(Diagnostic { severity, ..said.with_hint(hint) });
    }
}

/// How many sections `defaults` bear each name.
fn defaults(document: &Document) -> HashMap<Vec<u8>, usize> {
    let mut counts = HashMap::new();
    for section in document.sections() {
        if section.kind() == SectionKind::Defaults
            && !section.is_conditional()
            && let Some(name) = section.name()
        {
            *counts.entry(name.into_owned()).or_default() += 1;
        }
    }
    counts
}

/// Looks whether the `defaults` that a section refers to could be several.
fn ambiguous_from(
    section: &Section,
    first_line: u32,
    defaults: &HashMap<Vec<u8>, usize>,
    found: &mut Vec<Diagnostic>,
) {
    let (Some(from), Some(header)) = (section.from(), section.header()) else { return };
    let count = defaults.get(&*from).copied().unwrap_or_default();
    if let (true, Some(word)) = (count > 1, header.words().find(|word| word.text == from)) {
        let message = format!("{count} defaults sections are called `{}`", word.to_str_lossy());
        let place = (word.column, word.raw);
        let said = Diagnostic::new(Problem::DuplicateSection, first_line, &header, place, message);
        found.push(said.with_hint("give each that is referred to a name of its own"));
    }
}

/// Looks for lines of a section that give the same name.
fn lines(section: &Section, first_line: u32, keyword: &str, severity: Severity, found: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<Vec<u8>, u32> = HashMap::new();
    for line in section.lines().filter(|line| line.error().is_none()) {
        let mut words = line.words();
        let (Some(first), Some(name)) = (words.next(), words.next()) else { continue };
        if !first.is(keyword) || name.variable {
            continue;
        }
        let number = first_line.saturating_add(line.number());
        if let Some(other) = seen.insert(name.text.to_vec(), number) {
            let message = format!("another {keyword} of this section is called `{}`", name.to_str_lossy());
            let place = (name.column, name.raw);
            let said = Diagnostic::new(Problem::DuplicateName, first_line, &line, place, message);
            found
                .push(Diagnostic { severity, ..said.with_hint(format!("the other one is in line {other}")) });
        }
    }
}
