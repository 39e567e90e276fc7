//! Names that are used, and files.

use super::names::{Name, Names};
use crate::text::{Diagnostic, Document, Line, Problem, Section, SectionKind, Severity, Word, nearest};

/// Where a line names something: after its keyword, or after a word further on.
enum Place {
    /// The n-th word.
    Nth(usize),
    /// The word after this one, which is sought from the n-th word on.
    After(&'static str, usize),
    /// The word after `table` of a rule that tracks something: elsewhere that is a word as any other.
    Tracked,
}

/// Keyword (with its second word, if that matters), where the name stands, and what it is the name of.
const PLACES: &[(&str, &str, Place, Name)] = &[
    ("use_backend", "", Place::Nth(1), Name::Backend),
    ("default_backend", "", Place::Nth(1), Name::Backend),
    ("server", "", Place::After("resolvers", 3), Name::Resolvers),
    ("server-template", "", Place::After("resolvers", 4), Name::Resolvers),
    ("default-server", "", Place::After("resolvers", 1), Name::Resolvers),
    ("httpclient.resolvers.id", "", Place::Nth(1), Name::Resolvers),
    ("stick-table", "", Place::After("peers", 1), Name::Peers),
    ("stick", "", Place::After("table", 3), Name::Table),
    ("tcp-request", "", Place::Tracked, Name::Table),
    ("http-request", "", Place::Tracked, Name::Table),
    ("http-response", "", Place::Tracked, Name::Table),
    ("email-alert", "mailers", Place::Nth(2), Name::Mailers),
    ("errorfiles", "", Place::Nth(1), Name::HttpErrors),
    ("filter", "cache", Place::Nth(2), Name::Cache),
    ("filter", "fcgi-app", Place::Nth(2), Name::FcgiApp),
    ("http-request", "cache-use", Place::Nth(2), Name::Cache),
    ("http-response", "cache-store", Place::Nth(2), Name::Cache),
    ("use-fcgi-app", "", Place::Nth(1), Name::FcgiApp),
    ("log", "", Place::After("profile", 2), Name::LogProfile),
];

/// How many errors of a file come with what could be meant.
const HINTED: usize = 100;

/// The keywords of lines that may end with a condition.
const CONDITIONED: &[&str] = &[
    "http-request",
    "http-response",
    "http-after-response",
    "tcp-request",
    "tcp-response",
    "quic-initial",
    "use_backend",
    "use-server",
    "redirect",
    "stick",
    "force-persist",
    "ignore-persist",
    "monitor",
    "stats",
    "force-be-switch",
];

/// The ACLs that HAProxy defines by itself.
const PREDEFINED: &[&str] = &[
    "FALSE",
    "HTTP",
    "HTTP_1.0",
    "HTTP_1.1",
    "HTTP_2.0",
    "HTTP_3.0",
    "HTTP_CONTENT",
    "HTTP_START",
    "HTTP_URL_ABS",
    "HTTP_URL_SLASH",
    "HTTP_URL_STAR",
    "LOCALHOST",
    "METH_CONNECT",
    "METH_DELETE",
    "METH_GET",
    "METH_HEAD",
    "METH_OPTIONS",
    "METH_POST",
    "METH_PUT",
    "METH_TRACE",
    "RDP_COOKIE",
    "REQ_CONTENT",
    "TRUE",
    "WAIT_END",
];

/// Looks up every name that is used.
pub(super) fn check(document: &Document, found: &mut Vec<Diagnostic>) {
    let names = Names::of(document);
    let mut first_line = 1_u32;
    for section in document.sections() {
        let mut checker =
            Checker { names: &names, section, first_line, acls: rustc_hash::FxHashSet::default(), found };
        checker.run();
        first_line = first_line.saturating_add(section.line_count());
    }
}

struct Checker<'a> {
    names: &'a Names,
    section: &'a Section,
    first_line: u32,
    /// The ACLs so far.
    acls: rustc_hash::FxHashSet<String>,
    found: &'a mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn run(&mut self) {
        if let Some(header) = self.section.header() {
            self.header(&header);
        }
        for line in self.section.lines() {
            if line.error().is_some() {
                continue;
            }
            let words: Vec<Word<'_>> = line.words().collect();
            let Some(first) = words.first() else { continue };
            if first.is("acl")
                && let Some(name) = words.get(1)
            {
                self.acls.insert(name.to_str_lossy().into_owned());
            }
            self.places(&line, &words);
            self.servers(&line, &words);
            if CONDITIONED.iter().any(|keyword| first.is(keyword)) {
                self.condition(&line, &words);
            }
            for word in &words {
                self.calls(&line, word);
            }
        }
    }

    fn header(&mut self, line: &Line<'_>) {
        let Some(name) = self.section.from() else { return };
        let word = line.words().find(|word| word.text == name).filter(|word| !word.variable);
        if let Some(word) = word {
            self.name(line, Name::Defaults, &word.to_str_lossy(), word.column);
        }
    }

    fn places(&mut self, line: &Line<'_>, words: &[Word<'_>]) {
        for (keyword, second, place, kind) in PLACES {
            let fits = words.first().is_some_and(|word| word.is(keyword))
                && (second.is_empty() || words.get(1).is_some_and(|word| word.is(second)));
            if !fits {
                continue;
            }
            let word = match place {
                Place::Nth(place) => words.get(*place),
                Place::After(before, from) => after(words, before, *from),
                Place::Tracked => {
                    let tracks = |word: &Word<'_>| word.text.starts_with(b"track-sc");
                    let rule = words.iter().take(3).position(tracks);
                    // The key is one word, or more until `table`; what a condition says is no table.
                    let end = words.iter().position(|word| word.is("if") || word.is("unless"));
                    let words = words.get(..end.unwrap_or(words.len())).unwrap_or_default();
                    rule.and_then(|rule| after(words, "table", rule + 2))
                }
            };
            if let Some(word) = word.filter(|word| is_plain(word)) {
                self.name(line, *kind, &word.to_str_lossy(), word.column);
            }
        }
        if let Some(word) = words.get(1).filter(|_| words.first().is_some_and(|word| word.is("log")))
            && let Some(ring) = word.to_str_lossy().strip_prefix("ring@")
        {
            self.name(line, Name::Ring, ring, word.column);
        }
    }

    /// Names of servers: `use-server` in its own section, `track` anywhere.
    fn servers(&mut self, line: &Line<'_>, words: &[Word<'_>]) {
        let own =
            self.section.name().map(|name| String::from_utf8_lossy(&name).into_owned()).unwrap_or_default();
        let named = match words {
            [first, name, ..] if first.is("use-server") => Some(name),
            [first, rest @ ..] if first.is("server") || first.is("default-server") => {
                let options = if first.is("server") { 2 } else { 0 };
                after(rest, "track", options)
            }
            _ => None,
        };
        let Some(word) = named.filter(|word| is_plain(word)) else { return };
        let name = word.to_str_lossy();
        let path = if name.contains('/') { name.to_string() } else { format!("{own}/{name}") };
        // A template makes servers whose names are not written anywhere.
        let templated =
            self.section.lines().any(|line| line.keyword().as_deref() == Some(b"server-template"));
        if self.section.kind() != SectionKind::Defaults && !templated && !self.names.has_server(&path) {
            let message = format!("no server is called `{name}`");
            self.say(line, word.column, &name, message, None);
        }
    }

    fn condition(&mut self, line: &Line<'_>, words: &[Word<'_>]) {
        let start = words.iter().rposition(|word| !word.quoted && (word.is("if") || word.is("unless")));
        let Some(start) = start else { return };
        let mut nested = false;
        for word in words.iter().skip(start + 1) {
            let text = word.to_str_lossy();
            match text.trim_start_matches('!') {
                "{" => nested = true,
                "}" => nested = false,
                "" | "||" => {}
                word if word.eq_ignore_ascii_case("or") => {}
                _ if nested || word.variable => {}
                name => {
                    if !PREDEFINED.contains(&name) && !self.acls.contains(name) {
                        let message = format!("no ACL is called `{name}` above this line");
                        let hint = self.hint(name, self.acls.iter().map(String::as_str));
                        self.say(line, word.column, name, message, hint);
                    }
                }
            }
        }
    }

    /// Userlists and resolvers that a function names: `http_auth(list)`, `do-resolve(var,resolvers)`.
    fn calls(&mut self, line: &Line<'_>, word: &Word<'_>) {
        let text = word.to_str_lossy();
        for (function, argument, kind) in [
            ("http_auth(", 0, Name::Userlist),
            ("http_auth_group(", 0, Name::Userlist),
            ("do-resolve(", 1, Name::Resolvers),
        ] {
            let Some((_, rest)) = text.split_once(function) else { continue };
            let Some((arguments, _)) = rest.split_once(')') else { continue };
            if let Some(name) =
                arguments.split(',').nth(argument).map(str::trim).filter(|name| !name.is_empty())
            {
                self.name(line, kind, name, word.column);
            }
        }
    }

    fn name(&mut self, line: &Line<'_>, kind: Name, name: &str, column: u32) {
        if self.names.has(kind, name) {
            return;
        }
        let hint = self.hint(name, self.names.all(kind));
        let message = format!("no {} is called `{name}`", kind.noun());
        let before = self.found.len();
        self.say(line, column, name, message, hint);
        if kind.is_tolerated() {
            for diagnostic in self.found.iter_mut().skip(before) {
                diagnostic.severity = Severity::Warning;
            }
        }
    }

    /// What could be meant. Comparing with all names takes long, so that only the first errors get it.
    fn hint<'n>(&self, name: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
        let few = self.found.len() < HINTED;
        few.then(|| nearest(name, names)).flatten().map(|best| format!("did you mean `{best}`?"))
    }

    fn say(&mut self, line: &Line<'_>, column: u32, text: &str, message: String, hint: Option<String>) {
        let place = (column, text.as_bytes());
        let diagnostic = Diagnostic::new(Problem::UnknownReference, self.first_line, line, place, message);
        self.found.push(Diagnostic { hint: hint.map(Into::into), ..diagnostic });
    }
}

/// The word after another, which is sought from the n-th word on.
fn after<'w, 'l>(words: &'w [Word<'l>], before: &str, from: usize) -> Option<&'w Word<'l>> {
    let at = words.iter().skip(from).position(|word| word.is(before))?;
    words.get(from + at + 1)
}

/// Whether a word is a name as it stands, and not made at run time.
fn is_plain(word: &Word<'_>) -> bool {
    !word.variable && !word.text.contains(&b'%') && !word.text.is_empty()
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
