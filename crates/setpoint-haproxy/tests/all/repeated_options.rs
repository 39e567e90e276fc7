//! What the same option once more in a line does: what the table says, beside HAProxy's source.
//!
//! ```text
//!  every option of the table ──▶ a line that has it twice ──▶ compare: where both count, a change of the first is seen
//!  repeated_options.txt ──▶ where both count ──▶ the table says the same
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use setpoint_haproxy::compare::compare;
use setpoint_haproxy::model::{Context, Version, section_model};
use setpoint_haproxy::table::{Repetition, directives};
use setpoint_haproxy::text::Document;

/// The versions whose schemas are recorded.
const VERSIONS: [Version; 3] = [Version::V3_0, Version::V3_2, Version::V3_4];

/// For each block of options, a section and the beginning of a line that has them.
const LINES: [(&str, &str, &str); 19] = [
    ("bind", "frontend f", "bind :8080"),
    ("dgram_bind", "log-forward l", "dgram-bind :514"),
    ("server", "backend b", "server s 10.0.0.1:80"),
    ("server_id", "backend b", "server s 10.0.0.1:80"),
    ("stick_table", "backend b", "stick-table type ip"),
    ("peer_table", "peers p", "table t type ip"),
    ("cookie", "backend b", "cookie c"),
    ("crt_load", "crt-store s", "load crt a"),
    ("ssl_front_use", "frontend f", "ssl-f-use crt a"),
    ("silent_drop", "frontend f", "http-request silent-drop"),
    ("answer", "frontend f", "http-request return"),
    ("deny", "frontend f", "http-request deny"),
    ("tarpit", "frontend f", "http-request tarpit"),
    ("response_deny", "frontend f", "http-response deny"),
    ("redirect", "frontend f", "http-request redirect location /"),
    ("check_connect", "backend b", "http-check connect"),
    ("tcp_port", "backend b", "tcp-check connect"),
    ("check_expect", "backend b", "http-check expect"),
    ("check_send", "backend b", "http-check send"),
];

/// What follows an option's word in a try: nothing, a value, or two of them.
const VALUES: [&str; 30] = [
    "",
    " 1",
    " 2",
    " 10",
    " 200",
    " 503",
    " 301",
    " 302",
    " 10s",
    " 20s",
    " 1k",
    " 2k",
    " a",
    " b",
    " a b",
    " c d",
    " on",
    " off",
    " ipv4",
    " ipv6",
    " 10.0.0.0/8",
    " 11.0.0.0/8",
    " L7OK",
    " L7OKC",
    " L7RSP",
    " L4TOUT",
    " L7TOUT",
    " gpc0",
    " conn_cur",
    " none",
];

/// An option: its block and its word.
type Choice = (String, String);

/// What `repeated_options.txt` says.
#[derive(Default)]
struct Listed {
    counts: BTreeSet<Choice>,
    untried: BTreeSet<Choice>,
    values: BTreeMap<Choice, Vec<String>>,
}

fn listed() -> Listed {
    let mut listed = Listed::default();
    let lines = include_str!("repeated_options.txt").lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (words, reason) = line.split_once(" -- ").unwrap_or((line, ""));
        let [what, block, option, value @ ..] = &words.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line}: what, a block and an option are expected");
        };
        let choice = ((*block).to_owned(), (*option).to_owned());
        match (*what, value) {
            ("counts", []) if !reason.is_empty() => {
                assert!(listed.counts.insert(choice), "{line}: is there twice");
            }
            ("untried", []) if !reason.is_empty() => {
                assert!(listed.untried.insert(choice), "{line}: is there twice");
            }
            ("value", [value]) => {
                let value = if value.starts_with('(') { (*value).to_owned() } else { format!(" {value}") };
                listed.values.entry(choice).or_default().push(value);
            }
            _ => panic!("{line}: is not understood"),
        }
    }
    listed
}

/// A line with options, in its section.
fn text(block: &str, options: &[&str]) -> String {
    let (_, section, start) = LINES.iter().find(|(name, ..)| *name == block).unwrap();
    // Some lines can't be without an option, or end with a pattern.
    let end = match block {
        "check_expect" => " status 200",
        _ => "",
    };
    let options: String = options.iter().map(|option| format!(" {option}")).collect();
    format!("{section}\n  {start}{options}{end}\n")
}

fn is_modelled(text: &str, version: Version) -> bool {
    let document = Document::parse(text.as_bytes());
    let model = section_model(&document.sections()[0], &Context::new(version));
    model.unmodelled.is_empty() && model.text_only.is_none()
}

fn differ(a: &str, b: &str, version: Version) -> bool {
    let (a, b) = (Document::parse(a.as_bytes()), Document::parse(b.as_bytes()));
    !compare(&a, &b, &Context::new(version)).unwrap().is_empty()
}

/// The values of an option that a line can have, of which no two say the same.
fn values(version: Version, block: &str, option: &str, listed: &Listed) -> Vec<String> {
    let given = listed.values.get(&(block.to_owned(), option.to_owned())).into_iter().flatten();
    let all = VALUES.into_iter().map(ToOwned::to_owned).chain(given.cloned());
    let mut found: Vec<String> = Vec::new();
    for option in all.map(|value| format!("{option}{value}")) {
        let line = text(block, &[&option]);
        let is_new = found.iter().all(|other| differ(&line, &text(block, &[other]), version));
        if is_modelled(&line, version) && is_new {
            found.push(option);
        }
        if found.len() == 3 {
            break;
        }
    }
    found
}

#[test]
fn the_table_says_of_an_option_that_is_given_twice_what_haproxys_source_says() {
    let listed = listed();
    let mut failures = String::new();
    let mut known = BTreeSet::new();
    for version in VERSIONS {
        for ((block, option), found) in directives().repeated_options(version) {
            let choice = (block.to_owned(), option.to_owned());
            let expected =
                if listed.counts.contains(&choice) { Repetition::Counts } else { Repetition::Replaces };
            if found != expected {
                writeln!(failures, "{version} {block} {option}: {found:?}").unwrap();
            }
            assert!(LINES.iter().any(|(name, ..)| *name == block), "no line has the options of {block}");
            known.insert(choice);
        }
    }
    for (block, option) in listed.counts.difference(&known) {
        writeln!(failures, "{block} {option}: there is no such option").unwrap();
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn of_every_option_that_is_given_twice_each_one_that_counts_is_seen_when_it_changes() {
    let listed = listed();
    let (mut tried, mut untried) = (BTreeSet::new(), BTreeSet::new());
    let mut failures = String::new();
    for version in VERSIONS {
        for ((block, option), repetition) in directives().repeated_options(version) {
            let choice = (block.to_owned(), option.to_owned());
            let values = values(version, block, option, &listed);
            let [a, b, ..] = &values[..] else {
                // An option without a value says the same however often.
                let is_flag = values == [option];
                if is_flag {
                    tried.insert(choice)
                } else {
                    untried.insert(choice)
                };
                continue;
            };
            let c = values.get(2).unwrap_or(b);
            let first = differ(&text(block, &[a, c]), &text(block, &[b, c]), version);
            let second = differ(&text(block, &[c, a]), &text(block, &[c, b]), version);
            if !second || first != (repetition == Repetition::Counts) {
                writeln!(failures, "{version} {block} {repetition:?}: {a:?} {b:?} {c:?}: {first} {second}")
                    .unwrap();
            }
            // What is applied is what was desired, to the word where the model can't hold it.
            let (from, to) = (text(block, &[a]), text(block, &[a, c]));
            let (from, desired) = (Document::parse(from.as_bytes()), Document::parse(to.as_bytes()));
            let cx = Context::new(version);
            let result = from.apply_all(&compare(&from, &desired, &cx).unwrap(), &cx).unwrap().print();
            let result = String::from_utf8(result).unwrap();
            if differ(&result, &to, version) {
                writeln!(failures, "{version} {block} {a:?} {c:?}: {result}").unwrap();
            }
            tried.insert(choice);
        }
    }
    assert!(failures.is_empty(), "{failures}");
    let untried: BTreeSet<Choice> = untried.difference(&tried).cloned().collect();
    let missing: Vec<&Choice> = untried.difference(&listed.untried).collect();
    let stale: Vec<&Choice> = listed.untried.difference(&untried).collect();
    assert!(missing.is_empty(), "neither tried nor listed: {missing:?}");
    assert!(stale.is_empty(), "listed, but tried or unknown: {stale:?}");
}

#[test]
fn an_option_that_adds_up_survives_the_change_of_another() {
    let version = Version::V3_4;
    let cx = Context::new(version);
    for (from, to, expected) in [
        (
            "backend b\n  stick-table type ip size 1k store gpc0 store http_req_rate(10s)\n",
            "backend b\n  stick-table type ip size 1k expire 5s store gpc0 store http_req_rate(10s)\n",
            &["gpc0", "http_req_rate(10s)"][..],
        ),
        (
            "frontend f\n  bind :443 ssl crt-list a crt-list b\n",
            "frontend f\n  bind :443 ssl crt-list a crt-list b nice 5\n",
            &["crt-list a", "crt-list b"],
        ),
        (
            "backend c\n",
            "backend b\n  server s 10.0.0.1:80 set-proxy-v2-tlv-fmt(0x20) a set-proxy-v2-tlv-fmt(0x21) b\n",
            &["(0x20) a", "(0x21) b"],
        ),
    ] {
        let (from, desired) = (Document::parse(from.as_bytes()), Document::parse(to.as_bytes()));
        let diff = compare(&from, &desired, &cx).unwrap();
        assert!(!diff.is_empty(), "{to}");
        let result = from.apply_all(&diff, &cx).unwrap().print();
        let result = String::from_utf8(result).unwrap();
        for part in expected {
            assert!(result.contains(part), "{result}");
        }
    }
}
