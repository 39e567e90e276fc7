//! Names that are used, and files.

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use super::configuration::{CheckedLine, Configuration, Part};
use super::hints::Hints;
use super::names::{Name, Names};
use crate::model::{Field, Version};
use crate::table::accept::Match;
use crate::table::{Row, accepted};
use crate::text::{Diagnostic, Document, Problem, SectionKind, Severity, Word};

/// What a value names.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// A section, or something that one holds.
    Named(Name),
    /// One that HAProxy looks for even where it tolerates others of its kind.
    Strict(Name),
    /// A server: of the section at hand, or `backend/server`.
    Server,
    /// An address that may be `ring@NAME`.
    Address,
}

/// The first word of a line, the field of its row that holds a name, and what it is the name of.
const PLACES: &[(&str, &str, Target)] = {
    use Target::{Address, Named, Server, Strict};
    &[
        ("use_backend", "name", Named(Name::Backend)),
        ("default_backend", "default_backend", Named(Name::Backend)),
        ("server", "resolvers", Named(Name::Resolvers)),
        ("server-template", "resolvers", Named(Name::Resolvers)),
        ("default-server", "default_server.resolvers", Named(Name::Resolvers)),
        ("stick-table", "stick_table.peers", Named(Name::Peers)),
        ("stick", "table", Named(Name::Table)),
        ("filter", "table", Named(Name::Table)),
        ("http-request", "track_sc_table", Named(Name::Table)),
        ("http-response", "track_sc_table", Named(Name::Table)),
        ("tcp-request", "track_table", Named(Name::Table)),
        ("email-alert", "email_alert.mailers", Named(Name::Mailers)),
        ("errorfiles", "name", Named(Name::HttpErrors)),
        ("filter", "cache_name", Named(Name::Cache)),
        ("filter", "app_name", Named(Name::FcgiApp)),
        ("http-request", "cache_name", Named(Name::Cache)),
        ("http-response", "cache_name", Named(Name::Cache)),
        ("http-request", "resolvers", Named(Name::Resolvers)),
        ("tcp-request", "resolve_resolvers", Named(Name::Resolvers)),
        ("use-fcgi-app", "use_fcgi_app", Named(Name::FcgiApp)),
        ("log", "profile", Named(Name::LogProfile)),
        ("http-request", "log_profile", Strict(Name::LogProfile)),
        ("http-response", "log_profile", Strict(Name::LogProfile)),
        ("http-after-response", "log_profile", Strict(Name::LogProfile)),
        ("tcp-request", "log_profile", Strict(Name::LogProfile)),
        ("tcp-response", "log_profile", Strict(Name::LogProfile)),
        ("log", "address", Address),
        ("server", "track", Server),
        ("server-template", "track", Server),
        ("default-server", "default_server.track", Server),
        ("use-server", "target_server", Server),
    ]
};

/// What ACLs compare whose first argument is a name.
const ARGUMENTS: &[(&str, Name)] = &[
    ("http_auth", Name::Userlist),
    ("http_auth_group", Name::Userlist),
    ("nbsrv", Name::Backend),
    ("avg_queue", Name::Backend),
    ("queue", Name::Backend),
    ("be_conn", Name::Backend),
    ("be_conn_free", Name::Backend),
    ("be_sess_rate", Name::Backend),
    ("connslots", Name::Backend),
];

/// The fields of each row that hold names.
static TARGETS: LazyLock<FxHashMap<usize, Vec<(Field, Target)>>> = LazyLock::new(|| {
    let mut targets: FxHashMap<usize, Vec<(Field, Target)>> = FxHashMap::default();
    for row in accepted().all_rows() {
        let start = row.start();
        let first = start.split(' ').next().unwrap_or_default();
        for (_, path, target) in PLACES.iter().filter(|(keyword, ..)| *keyword == first) {
            for field in row.fields().into_iter().filter(|field| accepted().field_path(*field) == *path) {
                targets.entry(address_of(row)).or_default().push((field, *target));
            }
        }
    }
    targets
});

/// Rows live as long as the table, so that where one is tells which it is.
fn address_of(row: &Row) -> usize {
    std::ptr::from_ref(row).addr()
}

/// Looks up the names that the lines of one section use.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct References<'n> {
    names: &'n Names,
    own: String,
    /// Whether HAProxy does not look up what it names: no proxy uses it, or it is disabled.
    is_unused: bool,
    /// Whether HAProxy looks up all the same what rules name.
    looks_at_rules: bool,
    has_servers: bool,
    /// Whether all that mails need is said.
    sends_mail: bool,
}

/// From this version on, HAProxy looks up what the rules of `defaults` name whether or not a proxy uses them.
pub(super) const LOOKS_AT_DEFAULTS: Version = Version::V3_3;

impl<'n> References<'n> {
    pub(super) fn new(names: &'n Names, part: &Part<'_>, is_unused: bool, version: Option<Version>) -> Self {
        let own = part.name().map(std::borrow::Cow::into_owned).unwrap_or_default();
        let is_default = part.kind == SectionKind::Defaults;
        let looks_at_rules = is_default && version.is_some_and(|version| version >= LOOKS_AT_DEFAULTS);
        let begins =
            |line: &CheckedLine<'_>, word: &str| line.words.first().is_some_and(|first| first.is(word));
        let has_servers =
            part.lines.iter().any(|line| begins(line, "server") || begins(line, "server-template"));
        let says = |what: &str| {
            let is_second = |line: &CheckedLine<'_>| line.words.get(1).is_some_and(|word| word.is(what));
            part.lines.iter().any(|line| begins(line, "email-alert") && is_second(line))
        };
        let sends_mail = says("mailers") && says("from") && says("to");
        Self { names, own, is_unused, looks_at_rules, has_servers, sends_mail }
    }

    /// Whether `haproxy -c` accepts a configuration in which nothing has such a name.
    fn may_dangle(&self, kind: Name) -> bool {
        match kind {
            // Where it does not know from and to whom, HAProxy sends no mail and looks for no mailers.
            Name::Mailers => !self.sends_mail,
            Name::Ring | Name::LogProfile => true,
            _ => false,
        }
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
            found.extend(self.name(header, word, Name::Defaults, &word.to_str_lossy(), hints));
        }
    }

    /// Looks up the names that a line uses, as its row tells.
    pub(super) fn line(
        &self,
        row: &Row,
        matched: &Match<'_>,
        line: &CheckedLine<'_>,
        part: &Part<'_>,
        hints: &mut Hints,
        found: &mut Vec<Diagnostic>,
    ) {
        for (field, target) in TARGETS.get(&address_of(row)).into_iter().flatten() {
            for (_, at, text) in matched.values.iter().filter(|(given, ..)| given == field) {
                let Some(word) = line.words.get(*at).filter(|_| is_plain(text)) else { continue };
                match target {
                    Target::Named(kind) => found.extend(self.name(line, word, *kind, text, hints)),
                    Target::Strict(kind) => {
                        let said = self.name(line, word, *kind, text, hints);
                        found.extend(said.map(|said| Diagnostic { severity: self.severity(line), ..said }));
                    }
                    Target::Server => found.extend(self.server(line, word, text, part)),
                    Target::Address => {
                        if let Some(ring) = text.strip_prefix("ring@") {
                            found.extend(self.name(line, word, Name::Ring, ring, hints));
                        }
                    }
                }
            }
        }
        self.arguments(line, hints, found);
        self.replies(line, hints, found);
    }

    /// How bad it is if nothing has a name that a line uses.
    fn severity(&self, line: &CheckedLine<'_>) -> Severity {
        if self.is_unused || !line.certain { Severity::Warning } else { Severity::Error }
    }

    /// The sections that replies take their text from: `http-request return errorfiles NAME`.
    fn replies(&self, line: &CheckedLine<'_>, hints: &mut Hints, found: &mut Vec<Diagnostic>) {
        let is_rule = line.words.first().is_some_and(|word| word.text.starts_with(b"http-re"));
        let replies = |word: &Word<'_>| ["return", "deny", "tarpit"].iter().any(|action| word.is(action));
        if !is_rule || !line.words.get(1).is_some_and(replies) {
            return;
        }
        let at = line.words.iter().skip(2).position(|word| word.is("errorfiles"));
        if let Some(word) = at.and_then(|at| line.words.get(at + 3)) {
            found.extend(self.name(line, word, Name::HttpErrors, &word.to_str_lossy(), hints));
        }
    }

    fn server(
        &self,
        line: &CheckedLine<'_>,
        word: &Word<'_>,
        name: &str,
        part: &Part<'_>,
    ) -> Option<Diagnostic> {
        let path = if name.contains('/') { name.to_owned() } else { format!("{}/{name}", self.own) };
        let is_idle = !self.has_servers && line.words.first().is_some_and(|word| word.is("default-server"));
        if part.kind == SectionKind::Defaults || is_idle || self.names.has_server(&path) {
            return None;
        }
        let message = format!("no server is called `{name}`");
        let said = line.diagnostic(Problem::UnknownReference, (word.column, name.as_bytes()), message);
        Some(if self.is_unused { said.warning() } else { said })
    }

    /// Userlists and backends that an ACL names: `http_auth(list)`, `nbsrv(backend)`.
    fn arguments(&self, line: &CheckedLine<'_>, hints: &mut Hints, found: &mut Vec<Diagnostic>) {
        let is_acl = line.words.first().is_some_and(|word| word.is("acl"));
        for (index, word) in line.words.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|at| line.words.get(at));
            let begins =
                (is_acl && index == 2) || before.is_some_and(|before| before.is("{") || before.is("!{"));
            if !begins {
                continue;
            }
            let text = word.to_str_lossy();
            let Some((function, rest)) = text.split_once('(') else { continue };
            let Some((_, kind)) = ARGUMENTS.iter().find(|(known, _)| *known == function) else { continue };
            let name = rest.split([',', ')']).next().map(str::trim).unwrap_or_default();
            if is_plain(name) {
                found.extend(self.name(line, word, *kind, name, hints));
            }
        }
    }

    fn name(
        &self,
        line: &CheckedLine<'_>,
        word: &Word<'_>,
        kind: Name,
        name: &str,
        hints: &mut Hints,
    ) -> Option<Diagnostic> {
        if self.names.has(kind, name) {
            return None;
        }
        let message = format!("no {} is called `{name}`", kind.noun());
        let hint = hints.nearest(name, self.names.all(kind)).map(Into::into);
        let said = line.diagnostic(Problem::UnknownReference, (word.column, name.as_bytes()), message);
        // A `default-server` counts only where a server takes its values.
        let is_idle = !self.has_servers && line.words.first().is_some_and(|word| word.is("default-server"));
        let is_rule = line.words.first().is_some_and(|word| word.text.contains(&b'-'));
        let is_looked_at =
            self.looks_at_rules && kind != Name::Cache && (is_rule || kind == Name::HttpErrors);
        let tolerated = self.is_unused && !is_looked_at;
        let said = if tolerated || is_idle || self.may_dangle(kind) { said.warning() } else { said };
        Some(Diagnostic { hint, ..said })
    }
}

/// The sections whose names HAProxy does not look up: `defaults` that no proxy uses, and proxies that are disabled.
pub(super) fn unused(configuration: &Configuration<'_>) -> FxHashSet<usize> {
    let mut unused = FxHashSet::default();
    let mut used: FxHashSet<usize> = FxHashSet::default();
    let mut by_name: FxHashMap<String, usize> = FxHashMap::default();
    let mut last = None;
    for (index, part) in configuration.parts.iter().enumerate() {
        let from = part.from().map(|word| word.to_str_lossy().into_owned());
        let taken = from.map_or(last, |from| by_name.get(&from).copied());
        match part.kind {
            SectionKind::Defaults => {
                unused.insert(index);
                if let Some(name) = part.name() {
                    by_name.insert(name.into_owned(), index);
                }
                last = Some(index);
            }
            kind if kind.is_proxy() => {
                used.extend(taken);
                let state = part.lines.iter().rev().filter(|line| line.certain).find_map(|line| {
                    let word = line.words.first()?;
                    (word.is("disabled") || word.is("enabled")).then(|| word.is("disabled"))
                });
                if state == Some(true) {
                    unused.insert(index);
                }
            }
            _ => {}
        }
    }
    unused.retain(|index| !used.contains(index));
    unused
}

/// Whether a text is a name as it stands, and not made at run time.
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

/// The maps and pattern files that a configuration names; whether they exist is for the caller to see.
///
/// ```
/// use setpoint_haproxy::check::files;
/// use setpoint_haproxy::text::Document;
///
/// let document = Document::parse(b"frontend f\n  use_backend %[req.hdr(host),lower,map(/etc/hosts.map,fallback)]\n");
/// assert_eq!(files(&document)[0].path, "/etc/hosts.map");
/// ```
pub fn files(document: &Document) -> Vec<FileReference> {
    let mut found = Vec::new();
    let mut first_line = 1_u32;
    for section in document.sections() {
        for line in section.lines() {
            let number = first_line.saturating_add(line.number());
            let words: Vec<Word<'_>> = line.words().filter(|word| !word.variable).collect();
            for (word, next) in words.iter().zip(words.iter().skip(1).map(Some).chain([None])) {
                let text = word.to_str_lossy();
                let patterns = next.filter(|_| word.is("-f")).map(|next| next.to_str_lossy().into_owned());
                let files = map_files(&text).map(|path| (FileKind::Map, path));
                for (kind, path) in files.chain(patterns.map(|path| (FileKind::Patterns, path))) {
                    // `virt@` and `opt@` name what need not be there.
                    if !path.is_empty() && !path.starts_with("virt@") && !path.starts_with("opt@") {
                        let path = path.trim_start_matches("file@").to_owned();
                        found.push(FileReference { kind, path, line: number, column: word.column });
                    }
                }
            }
        }
        first_line = first_line.saturating_add(section.line_count());
    }
    found
}

/// The files of `map(…)`, `map_beg(…)`, `map_str_int(…)` and the like.
fn map_files(text: &str) -> impl Iterator<Item = String> + '_ {
    text.match_indices("map").filter_map(move |(at, _)| {
        let begins = !text.get(..at)?.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let rest = text.get(at + 3..)?;
        let (name, arguments) = rest.split_once('(')?;
        let converter = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let file = arguments.split([',', ')']).next()?;
        (begins && converter).then(|| file.to_owned())
    })
}
