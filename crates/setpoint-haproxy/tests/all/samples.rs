//! What sample expressions may name, beside what each HAProxy has registered.
//!
//! ```text
//!  `haproxy -dKall`, `haproxy -vv` ──▶ fetches, converters, ACL keywords, services, multiplexers ──▶ samples.txt
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;

use setpoint_haproxy::keywords::{Knowledge, Place, in_place, knowledge_of};
use setpoint_haproxy::model;
use setpoint_testutils::haproxy::Version;
use setpoint_testutils::{Missing, need};

use crate::check::same;
use crate::keywords::range;

/// Where the list is.
const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/keywords/samples.txt");

/// The bits of all rules in which a sample can be fetched.
const ALL_STAGES: u32 = (1 << 22) - 1;

/// The blocks of the list, with the title under which HAProxy lists the same; multiplexers it lists elsewhere.
const BLOCKS: [(&str, Place, &str); 5] = [
    ("fetch", Place::Fetch, "sample fetch functions"),
    ("converter", Place::Converter, "sample converter functions"),
    ("criterion", Place::Criterion, "ACL keywords"),
    ("service", Place::Service, "service names"),
    ("mux", Place::Mux, ""),
];

/// What only builds with some library have, or all but the package of 2.6, which is without QUIC.
const BY_BUILD: [(Place, &str); 7] = [
    (Place::Fetch, "51d.all"),
    (Place::Converter, "51d.single"),
    (Place::Fetch, "da-csv-fetch"),
    (Place::Converter, "da-csv-conv"),
    (Place::Fetch, "wurfl-get"),
    (Place::Fetch, "wurfl-get-all"),
    (Place::Mux, "quic"),
];

/// Asks HAProxy what it has registered in a place: words, each with the rules in which it can be fetched.
fn registered(version: Version, place: Place) -> Result<BTreeMap<String, u32>, Missing> {
    let program = version.program()?;
    let run = |args: &[&str]| {
        let output = Command::new(&program).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let (_, _, title) = BLOCKS.into_iter().find(|block| block.1 == place).unwrap();
    if place == Place::Mux {
        let text = run(&["-vv"]);
        let muxes = text.lines().filter_map(|line| line.split_once(" : mode=")).map(|(name, _)| name.trim());
        return Ok(muxes
            .filter(|name| *name != "<default>")
            .map(|name| (name.to_owned(), ALL_STAGES))
            .collect());
    }
    let text = run(&["-dKall", "-c", "-f", "/dev/null"]);
    let title = format!("# List of registered {title}:");
    let lines = text.lines().skip_while(|line| *line != title).skip(1);
    let lines = lines
        .take_while(|line| !line.starts_with("# List of"))
        .filter(|line| !line.starts_with(['#', 'C']) && !line.is_empty());
    Ok(lines.map(word_of).collect())
}

/// Reads a line such as `[ Y . ] src: addr`, `lower: str => str`, `path_beg = path -m beg`.
fn word_of(line: &str) -> (String, u32) {
    let (stages, rest) = match line.strip_prefix("[ ").and_then(|line| line.split_once(" ] ")) {
        Some((letters, rest)) => {
            let bits = letters.split(' ').enumerate().filter(|(_, letter)| *letter == "Y");
            (bits.map(|(bit, _)| 1 << bit).sum(), rest)
        }
        None => (ALL_STAGES, line),
    };
    let end = [rest.find('('), rest.find(": "), rest.find(" = ")].into_iter().flatten().min();
    (rest[..end.unwrap_or(rest.len())].trim().to_owned(), stages)
}

/// What HAProxy calls the types of arguments, and what the list does.
const TYPES: [(&str, &str); 6] = [
    ("user list", "userlist"),
    ("IPv4 address", "ipv4"),
    ("IPv4 mask", "mask4"),
    ("IPv6 address", "ipv6"),
    ("IPv6 mask", "mask6"),
    ("Protocol buffers field number", "fields"),
];

/// The arguments and types of a fetch or a converter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Signature {
    least: usize,
    arguments: Vec<String>,
    /// What it gives, and what a converter takes.
    types: Vec<String>,
}

impl Signature {
    /// Reads what follows a word, such as `(string[,integer]): str => bin`.
    fn of(text: &str) -> Self {
        let mut text = text.to_owned();
        for (theirs, ours) in TYPES {
            text = text.replace(theirs, ours);
        }
        let (arguments, types) = text.rsplit_once(": ").unwrap_or(("", &text));
        let inner = arguments.trim_start_matches('(').trim_end_matches(')');
        let (needed, optional) = inner.split_once('[').unwrap_or((inner, ""));
        let split = |text: &str| -> Vec<String> {
            let text = text.trim_end_matches(']');
            text.split(',').filter(|ty| !ty.is_empty()).map(ToOwned::to_owned).collect()
        };
        let mut arguments = split(needed);
        let least = arguments.len();
        arguments.extend(split(optional));
        let types = types.split(" => ").map(|ty| ty.trim().to_owned()).collect();
        Self { least, arguments, types }
    }

    /// What two versions both accept.
    fn or(mut self, other: &Self) -> Self {
        self.least = self.least.min(other.least);
        for (position, theirs) in other.arguments.iter().enumerate() {
            match self.arguments.get_mut(position) {
                Some(ours) if ours != theirs => "string".clone_into(ours),
                Some(_) => {}
                None => self.arguments.push(theirs.clone()),
            }
        }
        for (ours, theirs) in self.types.iter_mut().zip(&other.types) {
            if ours != theirs {
                "any".clone_into(ours);
            }
        }
        self
    }

    /// As it is listed: ` (string[,integer]) :str<bin`.
    fn listed(&self) -> String {
        let (needed, optional) = self.arguments.split_at(self.least);
        let mut text = needed.join(",");
        if !optional.is_empty() {
            let comma = if needed.is_empty() { "" } else { "," };
            write!(text, "[{comma}{}]", optional.join(",")).unwrap();
        }
        let arguments = if text.is_empty() { String::new() } else { format!(" ({text})") };
        format!("{arguments} :{}", self.types.join("<"))
    }
}

/// The signatures of fetches or converters that each HAProxy lists, as all versions accept them.
fn signatures(place: Place) -> Result<BTreeMap<String, Signature>, Missing> {
    let mut found: BTreeMap<String, Signature> = BTreeMap::new();
    let kind = if place == Place::Fetch { "-dKsmp" } else { "-dKcnv" };
    for version in Version::ALL {
        let output = Command::new(version.program()?).args([kind, "-c", "-f", "/dev/null"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        for line in text.lines().filter(|line| !line.starts_with(['#', 'C']) && !line.is_empty()) {
            let rest = line.split_once(" ] ").map_or(line, |(_, rest)| rest);
            let end = rest.find(['(', ':']).unwrap_or(rest.len());
            let (word, rest) = rest.split_at(end);
            let own = Signature::of(rest.strip_prefix(": ").unwrap_or(rest));
            let merged = match found.remove(word.trim()) {
                Some(before) => before.or(&own),
                None => own,
            };
            found.insert(word.trim().to_owned(), merged);
        }
    }
    Ok(found)
}

#[test]
fn the_listed_arguments_and_types_are_those_that_each_haproxy_lists() {
    let text = include_str!("../../src/keywords/samples.txt");
    for (name, place, _) in BLOCKS.into_iter().take(2) {
        let block = text.split(&format!("[{name}]\n")).nth(1).unwrap().split("\n[").next().unwrap();
        for (word, signature) in need!(signatures(place)) {
            let line = block.lines().find(|line| line.split(' ').next() == Some(&word)).unwrap_or_default();
            let listed = format!("{word}{}", signature.listed());
            let fits =
                line.strip_prefix(&listed).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
            assert!(fits, "{line}: HAProxy lists {listed}; `cargo xtask keywords` writes the list anew");
        }
    }
}

/// The rules in which a fetch can be fetched, as listed.
fn listed_stages(fetch: &str) -> u32 {
    let text = include_str!("../../src/keywords/samples.txt");
    let line = text.lines().find(|line| line.split(' ').next() == Some(fetch)).unwrap_or_default();
    let bits = line.split(' ').find_map(|word| word.strip_prefix('@'));
    bits.map_or(ALL_STAGES, |bits| u32::from_str_radix(bits, 16).unwrap())
}

#[test]
fn the_listed_samples_are_those_that_each_haproxy_has_registered() {
    for version in Version::ALL {
        for (_, place, _) in BLOCKS {
            let registered = need!(registered(version, place));
            assert!(!registered.is_empty(), "{version:?}: {place:?}");
            for (word, stages) in &registered {
                assert_eq!(
                    knowledge_of(place, word, same(version)),
                    Knowledge::Known,
                    "{version:?}: {word} in {place:?}; `cargo xtask keywords` writes the list anew"
                );
                if place == Place::Fetch {
                    assert_eq!(listed_stages(word) & stages, *stages, "{version:?}: {word}");
                }
            }
            for word in in_place(place, same(version)).filter(|word| !BY_BUILD.contains(&(place, word))) {
                assert!(registered.contains_key(word), "{version:?}: {word} in {place:?}");
            }
        }
    }
}

/// Asks for everything and writes the list anew.
pub(crate) fn write_list() -> Result<(), Missing> {
    let mut text = String::from(
        "# What sample expressions, ACLs, `use-service` and `proto` may name, as HAProxy 2.6, 3.0, 3.2 and 3.4 have registered it.
# After a word: the types of its arguments, those in brackets optional; the type that a fetch gives, or that a converter
# gives and takes; the rules in which a fetch has something to fetch, as bits in the order in which HAProxy lists them, where
# not in all; the first and the last version that know it, where not all do. Where versions differ, what all accept.
# Written by `cargo xtask keywords`.
",
    );
    let all = (model::Version::V2_6, model::Version::LATEST);
    for (name, place, _) in BLOCKS {
        let mut known: BTreeMap<String, (u32, BTreeSet<model::Version>)> = BTreeMap::new();
        for version in Version::ALL {
            for (word, stages) in registered(version, place)? {
                let entry = known.entry(word).or_default();
                entry.0 |= stages;
                entry.1.insert(same(version));
            }
        }
        for (_, word) in BY_BUILD.into_iter().filter(|(by, _)| *by == place) {
            known.insert(word.to_owned(), (ALL_STAGES, [all.0, all.1].into()));
        }
        writeln!(text, "\n[{name}]").unwrap();
        let signatures = match place {
            Place::Fetch | Place::Converter => signatures(place)?,
            _ => BTreeMap::new(),
        };
        for (word, (stages, versions)) in known {
            let signature = signatures.get(&word).map(Signature::listed).unwrap_or_default();
            let stages = if stages == ALL_STAGES { String::new() } else { format!(" @{stages:x}") };
            let versions: Vec<_> = versions.into_iter().collect();
            writeln!(text, "{word}{signature}{stages}{}", range(&versions, all)).unwrap();
        }
    }
    std::fs::write(LIST, text).unwrap();
    Ok(())
}
