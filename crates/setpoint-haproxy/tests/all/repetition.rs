//! What a second line of a directive does: what the table says, beside HAProxy's source and what the real ones answer.
//!
//! ```text
//!  recordings, repetition.txt ──▶ two lines of each directive ──▶ compare: each line that counts is seen when it changes
//!  repetition.txt ──▶ what a second line does ──▶ the table says the same
//!                                             └─▶ each HAProxy refuses, ignores or takes the second line accordingly
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use setpoint_haproxy::model::{Context, ObjectKind, Version, section_model};
use setpoint_haproxy::table::{Repetition, directives};
use setpoint_haproxy::text::Document;
use setpoint_testutils::haproxy;
use setpoint_testutils::{Haproxy, Missing, need};

use crate::conformance::recording;

/// The versions whose schemas are recorded.
const VERSIONS: [Version; 3] = [Version::V3_0, Version::V3_2, Version::V3_4];

/// The kinds of sections that share lines.
const PROXIES: [ObjectKind; 4] =
    [ObjectKind::Defaults, ObjectKind::Frontend, ObjectKind::Backend, ObjectKind::Listen];

/// A directive of a section: the kind, and the fixed words that its lines begin with.
type Directive = (ObjectKind, String);

/// What `repetition.txt` says.
#[derive(Default)]
struct Listed {
    /// What a second line does, where it does not take the place of the first.
    repetition: BTreeMap<Directive, Repetition>,
    /// The directives that are not tried.
    untried: BTreeSet<Directive>,
    /// Lines beside those of the recordings.
    lines: BTreeMap<ObjectKind, Vec<String>>,
}

fn listed() -> Listed {
    let mut listed = Listed::default();
    let text = include_str!("repetition.txt").lines().map(str::trim);
    for line in text.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (words, reason) = line.split_once(" -- ").unwrap_or((line, ""));
        let [what, sections, directive] = words.trim().splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line}: what, sections, and a directive are expected");
        };
        assert!(what == "line" || !reason.is_empty(), "{line}: has no reason");
        for section in sections.split(',') {
            let kind = kind(section).unwrap_or_else(|| panic!("{line}: there is no section {section}"));
            let directive = (kind, directive.to_owned());
            let is_new = match what {
                "counts" => listed.repetition.insert(directive, Repetition::Counts).is_none(),
                "ignored" => listed.repetition.insert(directive, Repetition::Ignored).is_none(),
                "refused" => listed.repetition.insert(directive, Repetition::Refused).is_none(),
                "untried" => listed.untried.insert(directive),
                "line" => {
                    listed.lines.entry(kind).or_default().push(directive.1);
                    true
                }
                what => panic!("{line}: {what} is not known"),
            };
            assert!(is_new, "{line}: is there twice");
        }
    }
    listed
}

/// The word that opens a section of a kind.
fn keyword(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Peers => "peers",
        ObjectKind::Mailers => "mailers",
        ObjectKind::Resolvers => "resolvers",
        ObjectKind::LogForward => "log-forward",
        ObjectKind::LogProfile => "log-profile",
        ObjectKind::HttpErrors => "http-errors",
        ObjectKind::Acme => "acme",
        ObjectKind::CrtStore => "crt-store",
        ObjectKind::FcgiApp => "fcgi-app",
        kind => kind.model(),
    }
}

fn kind(word: &str) -> Option<ObjectKind> {
    ObjectKind::ALL.iter().copied().find(|kind| kind.is_section() && keyword(*kind) == word)
}

fn header(kind: ObjectKind) -> String {
    match kind {
        ObjectKind::Global | ObjectKind::Traces => keyword(kind).to_owned(),
        kind => format!("{} x", keyword(kind)),
    }
}

/// Lines that may say something else than a line: its negation, another number, another word at its end.
fn others(line: &str) -> Vec<String> {
    let mut others = Vec::new();
    if line.starts_with("option ") || ["busy-polling", "set-dumpable", "strict-limits"].contains(&line) {
        others.push(format!("no {line}"));
    }
    let words = line.rfind([' ', '\t']).map(|at| line.split_at(at + 1));
    if let Some((before, last)) = words.filter(|(_, last)| !last.contains(['"', '\'', '#'])) {
        others.push(format!("{before}{last}x"));
        let end = last.find(|c: char| !c.is_ascii_digit()).unwrap_or(last.len());
        if let Ok(number) = last[..end].parse::<u64>() {
            others.push(format!("{before}{}{}", number.saturating_add(1), &last[end..]));
        }
    }
    others
}

/// The lines of every directive, taken from the recordings and from the list.
fn lines_of(version: Version, listed: &Listed) -> BTreeMap<(ObjectKind, usize), BTreeSet<String>> {
    let cx = Context::new(version);
    let mut found: BTreeMap<(ObjectKind, usize), BTreeSet<String>> = BTreeMap::new();
    let mut add = |kind: ObjectKind, text: String| {
        let number = directives().directive(kind, &text, version);
        for line in others(&text).into_iter().chain([text]) {
            if let Some(number) = number.filter(|_| directives().directive(kind, &line, version) == number) {
                found.entry((kind, number)).or_default().insert(line);
            }
        }
    };
    for line in recording(version, "text").lines() {
        let case: setpoint_conformance::TextCase = serde_json::from_str(line).unwrap();
        for section in Document::parse(case.config.as_bytes()).sections() {
            let model = section_model(section, &cx);
            let Some(object) = &model.object else { continue };
            // What one kind of proxy has, another may have as well.
            let kinds = if PROXIES.contains(&object.kind) { &PROXIES[..] } else { &[object.kind] };
            for line in section.lines() {
                let text = String::from_utf8_lossy(line.raw().trim_ascii());
                for kind in kinds {
                    add(*kind, text.clone().into_owned());
                }
            }
        }
    }
    for (kind, lines) in &listed.lines {
        for line in lines {
            add(*kind, line.clone());
        }
    }
    found
}

/// Two lines that differ, and all lines.
struct Tried {
    version: Version,
    kind: ObjectKind,
    directive: Directive,
    differing: [String; 2],
    lines: Vec<String>,
}

impl Tried {
    fn text(&self, lines: &[&str]) -> String {
        let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        format!("{}\n{lines}", header(self.kind))
    }
}

/// Returns whether two texts differ.
fn differ(a: &str, b: &str, version: Version) -> bool {
    let (a, b) = (Document::parse(a.as_bytes()), Document::parse(b.as_bytes()));
    !setpoint_haproxy::compare::compare(&a, &b, &Context::new(version)).unwrap().is_empty()
}

/// Finds two lines of each directive that differ, and the directives of which there are none.
fn tried(listed: &Listed) -> (Vec<Tried>, BTreeSet<Directive>) {
    let (mut tried, mut untried) = (Vec::new(), BTreeSet::new());
    for version in VERSIONS {
        let lines = lines_of(version, listed);
        for kind in ObjectKind::ALL.iter().copied().filter(|kind| kind.is_section()) {
            for (number, start) in directives().own_directives(kind, version) {
                let directive = (kind, start);
                let lines: Vec<&String> = lines.get(&(kind, number)).into_iter().flatten().collect();
                // Values that are the same to HAProxy show nothing.
                let differ_alone = |a: &str, b: &str| {
                    let text = |line: &str| format!("{}\n  {line}\n", header(kind));
                    differ(&text(a), &text(b), version)
                };
                let pair = lines.iter().enumerate().find_map(|(at, a)| {
                    let c = lines[at + 1..].iter().find(|c| differ_alone(a, c))?;
                    Some(((*a).clone(), (*c).clone()))
                });
                let Some((a, c)) = pair else {
                    untried.insert(directive);
                    continue;
                };
                let lines = lines.into_iter().cloned().collect();
                tried.push(Tried { version, kind, directive, differing: [a, c], lines });
            }
        }
    }
    for Tried { directive, .. } in &tried {
        untried.remove(directive);
    }
    (tried, untried)
}

fn shown(directives: impl IntoIterator<Item = Directive>) -> String {
    directives.into_iter().map(|(kind, words)| format!("{} {words}\n", keyword(kind))).collect()
}

#[test]
fn every_directive_is_tried_or_listed() {
    let listed = listed();
    let (tried, untried) = tried(&listed);
    let missing = untried.difference(&listed.untried).cloned();
    let stale = listed.untried.difference(&untried).cloned();
    let (missing, stale) = (shown(missing), shown(stale));
    assert!(missing.is_empty(), "neither tried nor listed:\n{missing}");
    assert!(stale.is_empty(), "listed, but tried or unknown:\n{stale}");
    let known: BTreeSet<&Directive> = tried.iter().map(|tried| &tried.directive).chain(&untried).collect();
    let unknown = listed.repetition.keys().filter(|directive| !known.contains(directive)).cloned();
    assert_eq!(shown(unknown), "", "no directive of the table");
}

#[test]
fn the_table_says_of_a_second_line_what_haproxys_source_says() {
    let listed = listed();
    let mut failures = String::new();
    for version in VERSIONS {
        for kind in ObjectKind::ALL.iter().copied().filter(|kind| kind.is_section()) {
            for (number, start) in directives().own_directives(kind, version) {
                let found = directives().repetition(number);
                let expected = listed.repetition.get(&(kind, start.clone()));
                if found != *expected.unwrap_or(&Repetition::Replaces) {
                    writeln!(failures, "{version} {} {start}: {found:?}", keyword(kind)).unwrap();
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn of_every_directive_each_line_that_counts_is_seen_when_it_changes() {
    let listed = listed();
    let mut failures = Vec::new();
    for tried in tried(&listed).0 {
        let [a, c] = tried.differing.each_ref().map(String::as_str);
        let text = |lines: &[&str]| tried.text(lines);
        let repetition = listed.repetition.get(&tried.directive).copied().unwrap_or(Repetition::Replaces);
        let expected = match repetition {
            Repetition::Replaces => (false, true),
            Repetition::Ignored => (true, false),
            Repetition::Counts => (true, true),
            // What HAProxy refuses has no meaning.
            Repetition::Refused => continue,
        };
        // Of options that are set one by one, the other line may set the same.
        let is_seen = tried.lines.iter().take(20).any(|b| {
            let first = differ(&text(&[a, b]), &text(&[c, b]), tried.version);
            let second = differ(&text(&[b, a]), &text(&[b, c]), tried.version);
            // A line that counts although it is replaced is no change that is lost.
            (first || !expected.0) && (second || !expected.1)
        });
        if !is_seen {
            let Tried { version, kind, .. } = tried;
            failures.push(format!("{version} {kind} {repetition:?}: {a:?} {c:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What a section needs whatever else stands in it.
fn needed(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Frontend | ObjectKind::Listen | ObjectKind::LogForward => "  bind 127.0.0.1:8080\n",
        ObjectKind::FcgiApp => "  docroot /x\n",
        ObjectKind::Cache => "  total-max-size 4\n",
        ObjectKind::Program => "  command /bin/true\n",
        _ => "",
    }
}

/// What stands before the sections that are asked about, and what HAProxy refuses at the end: it has read all that is before.
const BEFORE: &str = "global\n  expose-experimental-directives\ndefaults\n  mode http\n  timeout client 1s\n  timeout connect 1s\n  timeout server 1s\n";
const AFTER: &str = "backend after\n  bogus\n";

/// What HAProxy says of the last line of each of some sections, or of none if it gave up before the end.
fn said(version: haproxy::Version, sections: &[String]) -> Result<Option<Vec<String>>, Missing> {
    let mut text = BEFORE.to_owned();
    let mut places = Vec::new();
    for section in sections {
        text += section;
        places.push(format!(".cfg:{}]", text.lines().count()));
    }
    text += AFTER;
    let output = Haproxy::check(version, &text)?.output;
    let of =
        |place: &String| output.lines().filter(|line| line.contains(place)).collect::<Vec<_>>().join("\n");
    let is_whole = output.contains(&format!(".cfg:{}]", text.lines().count()));
    Ok(is_whole.then(|| places.iter().map(of).collect()))
}

/// What HAProxy says that a line does which is a second one; none where it may have refused the line for itself.
fn told(said: &str) -> Option<Repetition> {
    let is_second = said.contains("already") && !said.contains("overwr");
    match (is_second, said.contains("[ALERT")) {
        (true, _) if said.contains("Continuing") || said.contains("gnoring") => Some(Repetition::Ignored),
        (true, _) => Some(Repetition::Refused),
        (false, true) => None,
        (false, false) => Some(Repetition::Replaces),
    }
}

/// What HAProxy makes of the second of two lines that it accepts alone.
fn asked(version: haproxy::Version, tried: &Tried) -> Result<Option<Repetition>, Missing> {
    let section = |lines: &[&String]| {
        let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        format!("{}\n{}{lines}", header(tried.kind), needed(tried.kind))
    };
    let of = |lines: &[&String]| Ok(said(version, &[section(lines)])?.and_then(|mut said| said.pop()));
    let mut accepted = Vec::new();
    // Lines that say nothing, such as a zero, may count as none.
    for line in tried.lines.iter().rev().take(4) {
        let said: Option<String> = of(&[line])?;
        if said.is_some_and(|said| told(&said) == Some(Repetition::Replaces)) {
            accepted.push(line);
        }
        if let [first, second] = accepted[..] {
            let said = of(&[first, second])?;
            // All that is said of a line that is accepted alone, it is for the other one.
            return Ok(said.map(|said| told(&said).unwrap_or(Repetition::Refused)));
        }
    }
    Ok(None)
}

#[test]
fn haproxy_makes_of_a_second_line_what_is_listed() {
    let listed = listed();
    let mut newest: BTreeMap<Directive, Tried> = BTreeMap::new();
    for tried in tried(&listed).0.into_iter().filter(|tried| tried.kind != ObjectKind::Listen) {
        newest.insert(tried.directive.clone(), tried);
    }
    let (mut known, mut failures) = (0, String::new());
    for version in haproxy::Version::ALL {
        let newest = newest.values().filter(|tried| version.part().ends_with(tried.version.as_str()));
        // HAProxy gives up after fifty errors.
        for some in newest.collect::<Vec<_>>().chunks(12) {
            let sections = some.iter().enumerate().map(|(at, tried)| {
                let header = header(tried.kind).replace(" x", &format!(" x{at}"));
                let [a, c] = &tried.differing;
                format!("{header}\n{}  {a}\n  {c}\n", needed(tried.kind))
            });
            let said = need!(said(version, &sections.collect::<Vec<_>>())).unwrap_or_default();
            for (at, tried) in some.iter().enumerate() {
                // HAProxy tells a line that counts from one that replaces another by nothing.
                let expected = match listed.repetition.get(&tried.directive) {
                    None | Some(Repetition::Counts) => Repetition::Replaces,
                    Some(repetition) => *repetition,
                };
                let mut found = said.get(at).and_then(|said| told(said));
                if found != Some(expected) {
                    found = need!(asked(version, tried));
                }
                known += usize::from(found.is_some());
                if found.is_some_and(|found| found != expected) {
                    let (kind, words) = &tried.directive;
                    writeln!(failures, "{} {words}: {found:?}, {expected:?} expected", keyword(*kind))
                        .unwrap();
                }
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(known > 400, "only {known}");
}
