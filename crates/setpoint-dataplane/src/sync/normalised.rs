//! How the original API writes a text that it is given, where that means the same and looks different: none of it is a difference.
//!
//! Most of what it rewrites the comparison does not see: order, blanks, units. What is lost on the way is a difference, and stays one.

use setpoint_haproxy::text::{Document, Section, SectionKind};

/// One thing that it rewrites.
struct Rewriting {
    /// What it does.
    #[cfg_attr(not(test), expect(dead_code, reason = "it is said for whoever reads the table"))]
    what: &'static str,
    /// What is desired as it writes it; none where it leaves it as it is. It goes by what is there.
    apply: fn(&Document, &Document) -> Option<Document>,
}

/// All of them.
const TABLE: [Rewriting; 4] = [
    Rewriting { what: "unnamed `defaults` get a name", apply: named_defaults },
    Rewriting { what: "a `global` section that says nothing is left out", apply: without_empty_global },
    Rewriting { what: "several `traces` sections become one", apply: one_traces },
    Rewriting { what: "sections are put in another order", apply: named_where_they_move },
];

/// What is desired, as the original writes it where this is there.
pub(super) fn as_written(current: &Document, desired: &Document) -> Document {
    TABLE.iter().fold(desired.clone(), |desired, row| (row.apply)(current, &desired).unwrap_or(desired))
}

/// What is pushed to the original: it puts `defaults` before all else and in another order, so that each proxy names those that govern
/// it by its place.
pub(super) fn to_push(desired: &Document) -> Document {
    named(desired, |_, _| true)
}

/// The proxies that name their `defaults` by now, or are new, name them.
fn named_where_they_move(current: &Document, desired: &Document) -> Option<Document> {
    let there = governed(current);
    let is_there = |section: &Section, defaults: &str| {
        let at = current.find(section.kind(), section.name().as_deref());
        at.is_some_and(|at| there.iter().any(|(place, held)| *place == at && held == defaults))
    };
    let moved = |section: &Section, defaults: &str| !is_there(section, defaults);
    (!governed(desired).is_empty()).then(|| named(desired, moved))
}

/// The same, where some proxies name the `defaults` that govern them by their place.
fn named(desired: &Document, which: impl Fn(&Section, &str) -> bool) -> Document {
    let mut document = desired.clone();
    let is_defaults = |section: &&std::sync::Arc<Section>| section.kind() == SectionKind::Defaults;
    if desired.sections().iter().filter(is_defaults).count() < 2 {
        return document;
    }
    for (index, defaults) in governed(desired) {
        let Some(section) = desired.sections().get(index) else { continue };
        let name = section.name().map(|name| String::from_utf8_lossy(&name).into_owned());
        if let Some(name) = name.filter(|_| which(section, &defaults)) {
            let header = format!("{} {name} from {defaults}", section.kind().keyword());
            document = document.with_section(index, &with_header(section, &header));
        }
    }
    document
}

/// The proxies that `defaults` with a name govern by their place alone, and which.
fn governed(document: &Document) -> Vec<(usize, String)> {
    let (mut governed, mut defaults) = (Vec::new(), None);
    for (index, section) in document.sections().iter().enumerate() {
        if section.kind() == SectionKind::Defaults {
            defaults = section.name().map(|name| String::from_utf8_lossy(&name).into_owned());
        } else if section.kind().is_proxy() && section.from().is_none() {
            governed.extend(defaults.clone().map(|defaults| (index, defaults)));
        }
    }
    governed
}

fn named_defaults(current: &Document, desired: &Document) -> Option<Document> {
    let mut written = None;
    let mut number = 0;
    for (index, section) in desired.sections().iter().enumerate() {
        if section.kind() != SectionKind::Defaults || section.name().is_some() {
            continue;
        }
        number += 1;
        let name = format!("unnamed_defaults_{number}");
        if current.find(SectionKind::Defaults, Some(name.as_bytes())).is_none() {
            continue;
        }
        let document = written.as_ref().unwrap_or(desired);
        written = Some(document.with_section(index, &with_header(section, &format!("defaults {name}"))));
    }
    written
}

/// The bytes of a section with another first line.
fn with_header(section: &Section, header: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in section.lead() {
        bytes.extend_from_slice(line.raw());
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(header.as_bytes());
    bytes.push(b'\n');
    bytes.extend(below(section));
    bytes
}

/// The lines of a section below its first.
fn below(section: &Section) -> Vec<u8> {
    section.lines().flat_map(|line| line.raw().iter().copied().chain([b'\n'])).collect()
}

fn without_empty_global(current: &Document, desired: &Document) -> Option<Document> {
    let index = desired.find(SectionKind::Global, None)?;
    let says_nothing = desired.sections().get(index)?.lines().all(|line| line.keyword().is_none());
    let is_absent = current.find(SectionKind::Global, None).is_none();
    (says_nothing && is_absent).then(|| desired.without_section(index))
}

fn one_traces(_: &Document, desired: &Document) -> Option<Document> {
    let is_traces = |(_, section): &(usize, &std::sync::Arc<Section>)| section.kind() == SectionKind::Traces;
    let all: Vec<_> = desired.sections().iter().enumerate().filter(is_traces).collect();
    let ((first, section), others) = all.split_first()?;
    if others.is_empty() {
        return None;
    }
    let mut bytes = section.bytes().into_owned();
    for (_, other) in others {
        if !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.extend(below(other));
    }
    // From the last one on: those before keep their places.
    let fewer =
        others.iter().rev().fold(desired.clone(), |document, (index, _)| document.without_section(*index));
    Some(fewer.with_section(*first, &bytes))
}

#[cfg(test)]
mod tests {
    use setpoint_conformance::recordings;
    use setpoint_haproxy::compare::compare;
    use setpoint_haproxy::model::{Context, Version};

    use super::*;

    /// What the original made of texts that HAProxy accepts, and wrote in another way than it was given.
    #[test]
    fn what_the_original_rewrites_is_no_difference_and_what_it_loses_is_one() {
        let text = recordings::read(&recordings::committed(), "rewritten").unwrap().unwrap();
        let (mut hidden, mut left) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let case: serde_json::Value = serde_json::from_str(line).unwrap();
            let version: Version = case["version"].as_str().unwrap().parse().unwrap();
            let of = |name: &str| Document::parse(case[name].as_str().unwrap().as_bytes());
            let (written, given) = (of("raw"), of("config"));
            let differs =
                |desired: &Document| !compare(&written, desired, &Context::new(version)).unwrap().is_empty();
            let name = case["case"].as_str().unwrap().to_owned();
            match (differs(&given), differs(&as_written(&written, &given))) {
                (true, false) => hidden.push(name),
                (true, true) if name.starts_with("file.") => left.push(name),
                (false, true) => panic!("{name}: a difference that was none"),
                _ => {}
            }
        }
        let rows = TABLE.map(|row| row.what);
        assert_eq!(hidden, ["file.unnamed-defaults", "file.empty-global", "file.two-traces"], "{rows:?}");
        // Another `defaults` holds for a frontend, of two lines that exclude each other another one wins, and a type is lost.
        assert_eq!(
            left,
            [
                "file.two-unnamed-defaults",
                "file.http-and-tcp-log",
                "file.several-checks",
                "file.compression-many"
            ]
        );
    }

    #[test]
    fn proxies_keep_the_defaults_that_govern_them_though_they_move() {
        let parse = |text: &str| Document::parse(text.as_bytes());
        let given = parse(
            "defaults b\n  mode http\n\nbackend x\n\ndefaults a\n  mode tcp\n\nbackend y # mine\n\nbackend z from b\n",
        );
        let pushed = to_push(&given);
        let text = String::from_utf8(pushed.print()).unwrap();
        assert!(text.contains("backend x from b\n") && text.contains("backend y from a\n"), "{text}");
        let written = parse(
            "defaults a\n  mode tcp\n\ndefaults b\n  mode http\n\nbackend x from b\n\nbackend y from a\n\nbackend z from b\n",
        );
        let differs = |written: &Document| {
            !compare(written, &as_written(written, &given), &Context::default()).unwrap().is_empty()
        };
        assert!(!differs(&written));
        // One that is governed by the same as before need not say so.
        assert!(!differs(&given));
        assert!(differs(&parse(
            "defaults a\n  mode tcp\n\ndefaults b\n  mode http\n\nbackend x\n\nbackend y\n\nbackend z from b\n"
        )));
        let alone = parse("defaults a\n\nbackend x\n");
        assert_eq!(to_push(&alone).print(), alone.print());
    }

    #[test]
    fn keywords_that_the_original_does_not_know_are_written_last_and_are_the_same() {
        let given = Document::parse(b"backend b\n  frobnicate 1\n  balance roundrobin\n");
        let written = Document::parse(b"backend b\n  balance roundrobin\n  frobnicate 1\n");
        let diff = compare(&written, &as_written(&written, &given), &Context::default()).unwrap();
        assert!(diff.is_empty(), "{:?}", diff.operations());
    }
}
