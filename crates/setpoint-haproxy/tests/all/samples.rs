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

/// The rules in which a fetch can be fetched, as listed.
fn listed_stages(fetch: &str) -> u32 {
    let text = include_str!("../../src/keywords/samples.txt");
    let line = text.lines().find(|line| line.split(' ').next() == Some(fetch)).unwrap_or_default();
    let bits = line.split(' ').nth(1).and_then(|word| word.strip_prefix('@'));
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
# After a word: the rules in which a fetch has something to fetch, as bits in the order in which HAProxy lists them, where
# not in all; the first and the last version that know it, where not all do.
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
        for (word, (stages, versions)) in known {
            let stages = if stages == ALL_STAGES { String::new() } else { format!(" @{stages:x}") };
            let versions: Vec<_> = versions.into_iter().collect();
            writeln!(text, "{word}{stages}{}", range(&versions, all)).unwrap();
        }
    }
    std::fs::write(LIST, text).unwrap();
    Ok(())
}
