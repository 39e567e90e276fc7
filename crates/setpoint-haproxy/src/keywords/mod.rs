//! The words that may begin a line, by section and version, and the options of `server` and `bind` lines.
//!
//! What rules do and what may follow `option` is in `actions.txt`.
//!
//! The list is made by asking HAProxy 2.6, 3.0, 3.2 and 3.4 of each word whether a section knows it (`haproxy -c` says
//! «unknown keyword» if not), and which options it has registered (`haproxy -dKall`). `keywords.txt` holds a block for each
//! section and each kind of line, and after a word the versions that know it, if not all of these do. `cargo xtask
//! keywords` asks anew and writes it.
//!
//! ```
//! use setpoint_haproxy::keywords::{Knowledge, knowledge};
//! use setpoint_haproxy::model::Version;
//! use setpoint_haproxy::text::SectionKind;
//!
//! assert_eq!(knowledge(SectionKind::Backend, "balance", Version::V2_6), Knowledge::Known);
//! assert_eq!(knowledge(SectionKind::Backend, "balacne", Version::V2_6), Knowledge::Unknown);
//! assert_eq!(knowledge(SectionKind::Global, "cpu-policy", Version::V2_6), Knowledge::NotYet(Version::V3_2));
//! ```

mod coverage;
mod signature;

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::model::Version;
use crate::table::facts::facts;
use crate::text::SectionKind;

pub use coverage::{Coverage, coverage};
pub(crate) use signature::{Argument, SampleType, Signature};

/// What a version knows of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// It may begin a line.
    Known,
    /// It may begin a line, is warned of, and has no effect in this section.
    Ignored,
    /// Only later versions know it; the oldest of those that were asked.
    NotYet(Version),
    /// Only earlier versions know it; the newest of those that were asked.
    NoLonger(Version),
    /// No version knows it.
    Unknown,
}

/// The versions that were asked.
pub const ASKED: [Version; 4] = [Version::V2_6, Version::V3_0, Version::V3_2, Version::V3_4];

/// From which version to which a word is known, of those that were asked.
type Range = (Version, Version);

/// Where a word may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// At the beginning of a line of a section.
    Line(SectionKind),
    /// After the address of a `server`, or in a `default-server`.
    ServerOption,
    /// After the address of a `bind`.
    BindOption,
    /// At the beginning of a sample expression.
    Fetch,
    /// After a comma of a sample expression.
    Converter,
    /// At the beginning of what an ACL compares, besides what a sample expression begins with.
    Criterion,
    /// After `use-service`.
    Service,
    /// After `proto`: a multiplexer.
    Mux,
    /// What rules of a kind do.
    Action(Rules),
    /// After `option` in a proxy.
    ProxyOption,
}

/// The rules that HAProxy evaluates, by the words that their lines begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is named as the words it begins with")]
pub enum Rules {
    HttpRequest,
    HttpResponse,
    HttpAfterResponse,
    TcpRequestConnection,
    TcpRequestSession,
    TcpRequestContent,
    TcpResponseContent,
    QuicInitial,
}

impl Rules {
    /// Finds the rules that a line is one of by its first two words, and how many of these there are before the action.
    pub fn of(first: &str, second: &str) -> Option<(Self, usize)> {
        Some(match (first, second) {
            ("http-request", _) => (Self::HttpRequest, 1),
            ("http-response", _) => (Self::HttpResponse, 1),
            ("http-after-response", _) => (Self::HttpAfterResponse, 1),
            ("quic-initial", _) => (Self::QuicInitial, 1),
            ("tcp-request", "connection") => (Self::TcpRequestConnection, 2),
            ("tcp-request", "session") => (Self::TcpRequestSession, 2),
            ("tcp-request", "content") => (Self::TcpRequestContent, 2),
            ("tcp-response", "content") => (Self::TcpResponseContent, 2),
            _ => return None,
        })
    }
}

impl Place {
    fn from_header(name: &str) -> Option<Self> {
        match name {
            "server option" => Some(Self::ServerOption),
            "bind option" => Some(Self::BindOption),
            "fetch" => Some(Self::Fetch),
            "converter" => Some(Self::Converter),
            "criterion" => Some(Self::Criterion),
            "service" => Some(Self::Service),
            "mux" => Some(Self::Mux),
            "option" => Some(Self::ProxyOption),
            action if action.starts_with("action ") => {
                let mut words = action.split(' ').skip(1);
                let (first, second) = (words.next()?, words.next().unwrap_or_default());
                Rules::of(first, second).map(|(rules, _)| Self::Action(rules))
            }
            section => SectionKind::from_keyword(section.as_bytes()).map(Self::Line),
        }
    }
}

/// How many words belong to an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// So many.
    Count(usize),
    /// As many as it likes.
    Any,
}

/// A word and what is known of it.
#[derive(Clone, Debug)]
struct Entry {
    word: &'static str,
    versions: Range,
    effective: bool,
    arguments: Arguments,
    stages: u32,
    /// Of a fetch or a converter.
    signature: Option<Signature>,
}

/// All rules in which a sample can be fetched.
pub(crate) const ALL_STAGES: u32 = (1 << 22) - 1;

/// The first and the last version that knows a section.
pub fn versions_of(section: SectionKind) -> (Version, Version) {
    facts().section(section).range()
}

struct Keywords {
    by_place: FxHashMap<Place, Vec<Entry>>,
    all: FxHashSet<&'static str>,
    /// What has arguments that are never shown, and which these are.
    keyed: Vec<(&'static str, Vec<usize>)>,
}

static KEYWORDS: LazyLock<Keywords> = LazyLock::new(|| {
    let mut by_place: FxHashMap<Place, Vec<Entry>> = FxHashMap::default();
    let mut all = FxHashSet::default();
    let mut place = None;
    let texts = [include_str!("keywords.txt"), include_str!("samples.txt"), include_str!("actions.txt")];
    for line in texts.into_iter().flat_map(str::lines) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            place = Place::from_header(name);
            continue;
        }
        let (line, effective) = line.strip_suffix(" ignored").map_or((line, true), |line| (line, false));
        let mut words = line.split(' ').filter(|word| !word.is_empty() && !line.starts_with('#'));
        let (Some(place), Some(word)) = (place, words.next()) else { continue };
        let arguments = match words.clone().next().and_then(|word| word.strip_prefix('+')) {
            None => Arguments::Count(0),
            Some(count) => {
                words.next();
                count.parse().map_or(Arguments::Any, Arguments::Count)
            }
        };
        let mut signature = None;
        if let Some(text) = words.clone().next().filter(|word| word.starts_with('(')) {
            words.next();
            signature.get_or_insert_with(Signature::default).arguments(text);
        }
        if let Some(types) = words.clone().next().and_then(|word| word.strip_prefix(':')) {
            words.next();
            signature.get_or_insert_with(Signature::default).types(types);
        }
        let stages = match words.clone().next().and_then(|word| word.strip_prefix('@')) {
            None => ALL_STAGES,
            Some(bits) => {
                words.next();
                u32::from_str_radix(bits, 16).unwrap_or(ALL_STAGES)
            }
        };
        let version = |text: Option<&str>| text.and_then(|text| text.parse().ok());
        let first = version(words.next()).unwrap_or(Version::V2_6);
        let last = version(words.next()).unwrap_or(Version::LATEST);
        by_place.entry(place).or_default().push(Entry {
            word,
            versions: (first, last),
            effective,
            arguments,
            stages,
            signature,
        });
        if matches!(place, Place::Line(_)) {
            all.insert(word);
        }
    }
    for words in by_place.values_mut() {
        words.sort_unstable_by_key(|entry| entry.word);
    }
    refine(&mut by_place);
    let signatures =
        by_place.values().flatten().filter_map(|entry| Some((entry.word, entry.signature.as_ref()?)));
    let keyed = signatures.filter(|(_, signature)| !signature.secrets.is_empty());
    let keyed = keyed.map(|(word, signature)| (word, signature.secrets.clone())).collect();
    Keywords { by_place, all, keyed }
});

/// Adds what `arguments.txt` states of the arguments of fetches and converters beside what HAProxy lists.
fn refine(by_place: &mut FxHashMap<Place, Vec<Entry>>) {
    let mut place = None;
    for line in include_str!("arguments.txt").lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            place = Place::from_header(name);
            continue;
        }
        let mut words = line.split(' ');
        let (Some(place), Some(word)) = (place, words.next()) else { continue };
        let entries = by_place.get_mut(&place).map(Vec::as_mut_slice).unwrap_or_default();
        let entry = entries.iter_mut().find(|entry| entry.word == word);
        if let Some(signature) = entry.and_then(|entry| entry.signature.as_mut()) {
            signature.refine(words);
        }
    }
}

/// What a version knows of a word as the beginning of a line in a section.
///
/// Of a version that was not asked, what both its neighbours don't know is not known.
pub fn knowledge(section: SectionKind, word: &str, version: Version) -> Knowledge {
    match KEYWORDS.by_place.get(&Place::Line(section)) {
        None => Knowledge::Known,
        Some(words) => find(words, word).map_or(Knowledge::Unknown, |entry| known_to(entry, version)),
    }
}

/// What a version knows of a word in a place.
///
/// ```
/// use setpoint_haproxy::keywords::{Knowledge, Place, knowledge_of};
/// use setpoint_haproxy::model::Version;
///
/// assert_eq!(knowledge_of(Place::Converter, "lower", Version::V2_6), Knowledge::Known);
/// assert_eq!(knowledge_of(Place::Fetch, "srcc", Version::V2_6), Knowledge::Unknown);
/// ```
pub fn knowledge_of(place: Place, word: &str, version: Version) -> Knowledge {
    let words = KEYWORDS.by_place.get(&place).map(Vec::as_slice).unwrap_or_default();
    find(words, word).map_or(Knowledge::Unknown, |entry| known_to(entry, version))
}

/// The rules in which a fetch has something to fetch, as bits in the order in which HAProxy lists them.
pub(crate) fn stages_of(fetch: &str) -> u32 {
    let words = KEYWORDS.by_place.get(&Place::Fetch).map(Vec::as_slice).unwrap_or_default();
    find(words, fetch).map_or(ALL_STAGES, |entry| entry.stages)
}

/// What a fetch or a converter takes and gives, if it is listed.
pub(crate) fn signature(place: Place, word: &str) -> Option<&'static Signature> {
    let words = KEYWORDS.by_place.get(&place).map(Vec::as_slice).unwrap_or_default();
    find(words, word).and_then(|entry| entry.signature.as_ref())
}

/// The fetches and converters that have arguments which are never shown, and which of their arguments these are.
pub(crate) fn secret_arguments() -> impl Iterator<Item = (&'static str, &'static [usize])> {
    KEYWORDS.keyed.iter().map(|(word, arguments)| (*word, arguments.as_slice()))
}

/// What a version knows of a word as an option, and how many words belong to it.
///
/// ```
/// use setpoint_haproxy::keywords::{Arguments, Knowledge, Place, option};
/// use setpoint_haproxy::model::Version;
///
/// assert_eq!(option(Place::ServerOption, "weight", Version::V2_6), (Knowledge::Known, Arguments::Count(1)));
/// assert_eq!(option(Place::ServerOption, "chekc", Version::V2_6).0, Knowledge::Unknown);
/// ```
pub fn option(place: Place, word: &str, version: Version) -> (Knowledge, Arguments) {
    // What is in parentheses is the option's own.
    let (name, more) = word.split_once('(').map_or((word, 0), |(name, _)| (name, 1));
    let words = KEYWORDS.by_place.get(&place).map(Vec::as_slice).unwrap_or_default();
    match find(words, name) {
        None => (Knowledge::Unknown, Arguments::Any),
        Some(entry) => {
            let arguments = match entry.arguments {
                Arguments::Count(count) => Arguments::Count(count + more),
                Arguments::Any => Arguments::Any,
            };
            (known_to(entry, version), arguments)
        }
    }
}

fn find<'a>(words: &'a [Entry], word: &str) -> Option<&'a Entry> {
    words.binary_search_by_key(&word, |entry| entry.word).ok().and_then(|place| words.get(place))
}

fn known_to(entry: &Entry, version: Version) -> Knowledge {
    let Entry { versions: (first, last), effective, .. } = entry;
    let after = ASKED.into_iter().find(|asked| *asked >= version).unwrap_or(Version::LATEST);
    let before = ASKED.into_iter().rev().find(|asked| *asked <= version).unwrap_or(Version::V2_6);
    if after < *first {
        Knowledge::NotYet(*first)
    } else if before > *last {
        Knowledge::NoLonger(*last)
    } else if *effective {
        Knowledge::Known
    } else {
        Knowledge::Ignored
    }
}

/// The words that a version knows as the beginning of a line in a section, and that have an effect there; sorted.
pub fn of(section: SectionKind, version: Version) -> impl Iterator<Item = &'static str> {
    in_place(Place::Line(section), version)
}

/// The words that a version knows in a place, and that have an effect there; sorted.
pub fn in_place(place: Place, version: Version) -> impl Iterator<Item = &'static str> {
    let words = KEYWORDS.by_place.get(&place).map(Vec::as_slice).unwrap_or_default();
    let known = move |range: &Range| (range.0..=range.1).contains(&version);
    let exists = !matches!(place, Place::Line(section) if !known(&versions_of(section)));
    let words = if exists { words } else { &[] };
    words.iter().filter(move |entry| entry.effective && known(&entry.versions)).map(|entry| entry.word)
}

/// Returns whether some section of some version has lines that begin with this word.
pub fn is_keyword(word: &[u8]) -> bool {
    let prefix = matches!(word, b"no" | b"default");
    prefix || std::str::from_utf8(word).is_ok_and(|word| KEYWORDS.all.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_with_a_schema_has_its_words_and_none_opens_a_section() {
        for kind in SectionKind::all().filter(|kind| !kind.is_enterprise()) {
            let words: Vec<_> = Version::ALL.into_iter().flat_map(|version| of(kind, version)).collect();
            assert!(!words.is_empty(), "{kind}");
            let opening = words.iter().find(|word| SectionKind::from_keyword(word.as_bytes()).is_some());
            assert_eq!(opening, None, "{kind}");
        }
    }

    #[test]
    fn between_versions_that_were_asked_both_neighbours_count() {
        let since = Knowledge::NotYet(Version::V3_2);
        assert_eq!(knowledge(SectionKind::Global, "cpu-policy", Version::V3_0), since);
        assert_eq!(knowledge(SectionKind::Global, "cpu-policy", Version::V3_1), Knowledge::Known);
    }
}
