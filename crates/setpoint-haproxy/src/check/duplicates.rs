//! Names that are given twice.

use rustc_hash::FxHashMap;

use super::configuration::{CheckedLine, Configuration, Part};
use crate::model::Version;
use crate::text::{Diagnostic, Problem, SectionKind, Severity};

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
pub(super) fn check(
    configuration: &Configuration<'_>,
    version: Option<Version>,
    found: &mut [Vec<Diagnostic>],
) {
    let mut sections = Sections { version, seen: FxHashMap::default() };
    let defaults = defaults(configuration);
    for part in &configuration.parts {
        let Some(found) = found.get_mut(part.file) else { continue };
        if let Some(header) = part.header.as_ref().filter(|header| header.certain) {
            sections.look_at(part, header, found);
            ambiguous_from(part, header, &defaults, found);
        }
        for (keyword, severity) in named_lines(part.kind) {
            lines(part, keyword, *severity, found);
        }
    }
}

/// The names of sections so far: what gave them, and in which line.
struct Sections {
    version: Option<Version>,
    seen: FxHashMap<(Space, String), (SectionKind, u32)>,
}

impl Sections {
    fn look_at(&mut self, part: &Part<'_>, header: &CheckedLine<'_>, found: &mut Vec<Diagnostic>) {
        let Some(name) = part.name() else { return };
        let (kind, number) = (part.kind, header.number);
        let spaces = spaces(kind);
        let one_space = self.version.is_some_and(|version| version >= SINCE_ONE_SPACE);
        let looked_at = match kind {
            SectionKind::Frontend | SectionKind::Backend if one_space => &[Space::Front, Space::Back],
            _ => &*spaces,
        };
        let other = looked_at.iter().find_map(|space| self.seen.get(&(*space, name.to_string())).copied());
        for space in &spaces {
            self.seen.insert((*space, name.to_string()), (kind, number));
        }
        let (Some((other, line)), Some(keyword)) = (other, header.words.first()) else { return };
        let message = format!("another {other} is called `{name}`");
        let said = header.diagnostic(Problem::DuplicateSection, (keyword.column, keyword.raw), message);
        let hint = format!("the other one is in line {line}");
        // HAProxy passes over the second userlist.
        let said = if kind == SectionKind::Userlist { said.warning() } else { said };
        found.push(said.with_hint(hint));
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
        let said = header.diagnostic(Problem::DuplicateSection, (word.column, word.raw), message);
        found.push(said.with_hint("give each that is referred to a name of its own"));
    }
}

/// Looks for lines of a section that give the same name.
fn lines(part: &Part<'_>, keyword: &str, severity: Severity, found: &mut Vec<Diagnostic>) {
    let mut seen: FxHashMap<&[u8], u32> = FxHashMap::default();
    for line in part.lines.iter().filter(|line| line.certain) {
        let (Some(first), Some(name)) = (line.words.first(), line.words.get(1)) else { continue };
        if !first.is(keyword) || name.variable {
            continue;
        }
        if let Some(other) = seen.insert(&name.text, line.number) {
            let message = format!("another {keyword} of this section is called `{}`", name.to_str_lossy());
            let said = line.diagnostic(Problem::DuplicateName, (name.column, name.raw), message);
            let said = said.with_hint(format!("the other one is in line {other}"));
            found.push(if severity == Severity::Warning { said.warning() } else { said });
        }
    }
}
