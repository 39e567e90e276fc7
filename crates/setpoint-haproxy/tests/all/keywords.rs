//! The list of keywords, beside what each HAProxy really knows.
//!
//! ```text
//!  candidates: the list, `haproxy -dKall` ──▶ a section with one on each line ──▶ `haproxy -c` ──▶ unknown, ignored, known
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;

use setpoint_haproxy::keywords::{Knowledge, Place, in_place, knowledge, option, versions_of};
use setpoint_haproxy::model;
use setpoint_haproxy::text::SectionKind;
use setpoint_testutils::haproxy::{Haproxy, Version};
use setpoint_testutils::{Missing, need};

use crate::check::same;

/// HAProxy says no more of a file that has more errors than this.
const ERRORS: usize = 44;
/// An unknown word: if HAProxy does not complain of it, it never got there.
const SENTINEL: &str = "setpoint-knows-no-such-word";
/// Where the list is.
const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/keywords/keywords.txt");

/// What HAProxy says of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Unknown,
    Ignored,
    Known,
}

/// Words that can't be asked for: one stops all output, one pauses, and two are prefixes.
const UNASKABLE: [&str; 4] = ["quiet", "force-cfg-parser-pause", "no", "default"];

/// Whether a word is known only to builds with a library that the packages are without.
fn is_of_a_library(word: &str) -> bool {
    ["51degrees", "deviceatlas", "wurfl", "ssl-engine", "tune.zlib."]
        .iter()
        .any(|library| word.starts_with(library))
}

/// Whether a word is known only to builds with QUIC, which the package of 2.6 is without.
fn is_of_quic(word: &str) -> bool {
    word.starts_with("tune.quic.") || word.starts_with("quic-")
}

/// Whether the package of a version can't tell.
fn depends_on_build(word: &str, version: Version) -> bool {
    is_of_a_library(word) || is_of_quic(word) && version == Version::V2_6
}

/// The version before 3.0 knew of QUIC what 3.0 does.
fn with_quic(word: &str, mut versions: Vec<model::Version>) -> Vec<model::Version> {
    if is_of_quic(word) && versions.first() == Some(&model::Version::V3_0) {
        versions.insert(0, model::Version::V2_6);
    }
    versions
}

fn sections(version: Version) -> impl Iterator<Item = SectionKind> {
    SectionKind::all().filter(|kind| !kind.is_enterprise()).filter(move |kind| {
        let (first, last) = versions_of(*kind);
        (first..=last).contains(&same(version))
    })
}

/// All words that begin lines somewhere.
fn listed() -> BTreeSet<&'static str> {
    SectionKind::all().flat_map(listed_in).collect()
}

/// All words that begin lines of a section in some version.
fn listed_in(section: SectionKind) -> BTreeSet<&'static str> {
    let text = include_str!("../../src/keywords/keywords.txt");
    let header = format!("[{section}]");
    let block =
        text.lines().skip_while(|line| *line != header).skip(1).take_while(|line| !line.starts_with('['));
    block.filter_map(|line| line.split_whitespace().next()).collect()
}

/// Asks HAProxy of words as the beginning of lines in a section.
fn ask<'w>(
    version: Version,
    section: SectionKind,
    words: &[&'w str],
) -> Result<BTreeMap<&'w str, Said>, Missing> {
    let name = if section.takes_name() { " x" } else { "" };
    let listens = matches!(section, SectionKind::Frontend | SectionKind::Listen);
    let mut text = String::from("global\n  expose-experimental-directives\n  expose-deprecated-directives\n");
    if section != SectionKind::Global {
        writeln!(text, "{section}{name}").unwrap();
    }
    if listens {
        text.push_str("  bind 127.0.0.1:8080\n");
    }
    let before = text.lines().count();
    for word in words.iter().copied().chain([SENTINEL]) {
        writeln!(text, "  {word}").unwrap();
    }
    let output = Haproxy::check(version, &text)?.output;
    let mut said: BTreeMap<usize, Said> = BTreeMap::new();
    // One message may end in the middle of a line, where it shows a byte that is no text.
    for message in output.split("haproxy.cfg:").skip(1) {
        let Some((number, message)) = message.split_once(']') else { continue };
        let Some(index) = number.parse::<usize>().ok().and_then(|number| number.checked_sub(before + 1))
        else {
            continue;
        };
        let word = words.get(index).copied().unwrap_or(SENTINEL);
        let unknown = ["keyword", "statement", "parameter", "directive", "word"];
        let unknown = unknown.iter().any(|what| message.contains(&format!("unknown {what} '{word}'")))
            || ["any more", "anymore", "not allowed in '", "only allowed after"]
                .iter()
                .any(|gone| message.contains(gone));
        let heard = match () {
            () if unknown => Said::Unknown,
            () if message.contains("ignored because") => Said::Ignored,
            () => continue,
        };
        said.insert(index, heard);
    }
    if said.get(&words.len()) != Some(&Said::Unknown) && words.len() > 1 {
        // It gave up on the way: the two halves are asked for themselves.
        let (first, second) = words.split_at(words.len() / 2);
        let mut both = ask(version, section, first)?;
        both.extend(ask(version, section, second)?);
        return Ok(both);
    }
    let heard = |index| said.get(&index).copied().unwrap_or(Said::Known);
    Ok(words.iter().enumerate().map(|(index, word)| (*word, heard(index))).collect())
}

/// Whether HAProxy gives up on a section at the first unknown word, so that each has to be asked for itself.
fn gives_up(version: Version, section: SectionKind) -> Result<bool, Missing> {
    let two = ["setpoint-a", "setpoint-b"];
    let output = Haproxy::check(version, &format!("{section} x\n  {}\n  {}\n", two[0], two[1]))?.output;
    Ok(!output.contains(two[1]))
}

/// The options that HAProxy has registered, with the number of their arguments; `any` for as many as they like.
fn registered(version: Version, place: Place) -> Result<BTreeMap<String, String>, Missing> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.cfg");
    std::fs::write(&file, "global\n").unwrap();
    let output = Command::new(version.program()?).args(["-dKall", "-c", "-f"]).arg(&file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let start = if place == Place::BindOption { "bind <addr> " } else { "server <name> <addr> " };
    let mut options = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.trim_start().strip_prefix(start)) {
        let line = line.strip_prefix("ssl ").unwrap_or(line);
        let (word, count) = line.split_once(" +").unwrap_or((line, "0"));
        let count = if count.starts_with('-') { "any" } else { count };
        options.insert(word.to_owned(), count.to_owned());
    }
    if place == Place::BindOption {
        options.insert("ssl".to_owned(), "0".to_owned());
    }
    Ok(options)
}

#[test]
fn the_listed_keywords_are_those_that_each_haproxy_knows() {
    if std::env::var_os("SETPOINT_WRITE_KEYWORDS").is_some() {
        need!(write_list());
        return;
    }
    let all = listed();
    for version in Version::ALL {
        for section in sections(version) {
            let own = listed_in(section);
            let aborts = need!(gives_up(version, section));
            // Of the words of other sections, enough to notice that the list has aged.
            let others =
                all.iter().copied().enumerate().filter(|(place, _)| place % if aborts { 97 } else { 6 } == 0);
            let mut words: BTreeSet<&str> = others.map(|(_, word)| word).collect();
            words.extend(own.iter().copied());
            words.retain(|word| !UNASKABLE.contains(word) && !depends_on_build(word, version));
            let words: Vec<&str> = words.into_iter().collect();
            for words in words.chunks(ERRORS) {
                for (word, said) in need!(ask(version, section, words)) {
                    let ours = match knowledge(section, word, same(version)) {
                        Knowledge::Known => Said::Known,
                        Knowledge::Ignored => Said::Ignored,
                        _ => Said::Unknown,
                    };
                    assert_eq!(
                        ours, said,
                        "{version:?}: `{word}` in {section}; `cargo xtask keywords` writes the list anew"
                    );
                }
            }
        }
    }
}

#[test]
fn the_listed_options_are_those_that_each_haproxy_has_registered() {
    if std::env::var_os("SETPOINT_WRITE_KEYWORDS").is_some() {
        return;
    }
    for version in Version::ALL {
        for place in [Place::ServerOption, Place::BindOption] {
            let registered = need!(registered(version, place));
            for word in registered.keys() {
                let (known, _) = option(place, word, same(version));
                assert_eq!(known, Knowledge::Known, "{version:?}: {word} in {place:?}");
            }
            for word in in_place(place, same(version)).filter(|word| !depends_on_build(word, version)) {
                assert!(registered.contains_key(word), "{version:?}: {word} in {place:?}");
            }
        }
    }
}

/// Asks for everything and writes the list anew.
fn write_list() -> Result<(), Missing> {
    let mut text = String::from(
        "# The words that may begin a line of each section, as HAProxy 2.6, 3.0, 3.2 and 3.4 say, and the options of lines.
# After a word: how many belong to it, the first and the last version that know it, where not all that know the section do.
# `ignored`: it is read, warned of, and has no effect there.
# Written by `cargo xtask keywords`.
",
    );
    let mut candidates = listed().into_iter().map(ToOwned::to_owned).collect::<BTreeSet<String>>();
    for version in Version::ALL {
        let output =
            Command::new(version.program()?).args(["-dKall", "-c", "-f", "/dev/null"]).output().unwrap();
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        let words = words
            .split_whitespace()
            .filter(|word| word.starts_with(|first: char| first.is_ascii_alphanumeric()));
        candidates
            .extend(words.filter(|word| !word.contains(['(', ')', '*', '=', ','])).map(ToOwned::to_owned));
    }
    candidates.retain(|word| SectionKind::from_keyword(word.as_bytes()).is_none());
    for section in SectionKind::all().filter(|kind| !kind.is_enterprise()) {
        let mut known: BTreeMap<&str, (Vec<model::Version>, bool)> = BTreeMap::new();
        let asked: Vec<Version> = Version::ALL
            .into_iter()
            .filter(|version| sections(*version).any(|other| other == section))
            .collect();
        for version in &asked {
            let own = listed_in(section);
            // One by one is slow: only what someone has heard of is asked.
            let every = if gives_up(*version, section)? {
                listed()
            } else {
                candidates.iter().map(String::as_str).collect()
            };
            let words: Vec<&str> = every.into_iter().filter(|word| !UNASKABLE.contains(word)).collect();
            let mut note = |word, effective| {
                let entry = known.entry(word).or_insert((Vec::new(), true));
                entry.0.push(same(*version));
                entry.1 &= effective;
            };
            for chunk in words.chunks(ERRORS) {
                for (word, said) in ask(*version, section, chunk)? {
                    let by_build = is_of_a_library(word) && own.contains(word);
                    if said != Said::Unknown || by_build {
                        note(word, said != Said::Ignored);
                    }
                }
            }
            for word in UNASKABLE
                .into_iter()
                .filter(|word| knowledge(section, word, same(*version)) == Knowledge::Known)
            {
                note(word, true);
            }
        }
        let whole = asked.iter().map(|version| same(*version));
        let (first, last) = (whole.clone().min().unwrap(), whole.max().unwrap());
        writeln!(text, "\n[{section}]").unwrap();
        for (word, (versions, effective)) in known {
            let range = range(&with_quic(word, versions), (first, last));
            writeln!(text, "{word}{range}{}", if effective { "" } else { " ignored" }).unwrap();
        }
    }
    for (place, name) in [(Place::ServerOption, "server option"), (Place::BindOption, "bind option")] {
        let mut known: BTreeMap<String, (String, Vec<model::Version>)> = BTreeMap::new();
        for version in Version::ALL {
            for (word, count) in registered(version, place)? {
                known.entry(word).or_insert((count, Vec::new())).1.push(same(version));
            }
        }
        writeln!(text, "\n[{name}]").unwrap();
        for (word, (count, mut versions)) in known {
            versions = with_quic(&word, versions);
            let count = if count == "0" { String::new() } else { format!(" +{count}") };
            writeln!(
                text,
                "{word}{count}{}",
                range(&versions, (model::Version::V2_6, model::Version::LATEST))
            )
            .unwrap();
        }
    }
    std::fs::write(LIST, text).unwrap();
    crate::actions::write_list()?;
    crate::samples::write_list()
}

/// The versions that know a word, as the list tells them.
pub(crate) fn range(versions: &[model::Version], (first, last): (model::Version, model::Version)) -> String {
    let (since, until) = (versions.iter().min().unwrap(), versions.iter().max().unwrap());
    match () {
        () if *until < last => format!(" {since} {until}"),
        () if *since > first => format!(" {since}"),
        () => String::new(),
    }
}
