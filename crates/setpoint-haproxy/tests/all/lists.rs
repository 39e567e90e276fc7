//! The lists of words of the table, beside what each HAProxy knows.

use setpoint_haproxy::model;
use setpoint_haproxy::table::directives;
use setpoint_testutils::{Haproxy, Missing, Version, need};

use crate::check::same;

/// What each section of a text begins with that asks about words.
const START: &str = "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n";

/// For each list, a section in which each `@` is one of its words, and the section that a word needs.
const SECTIONS: [(&str, &str); 17] = [
    ("facility", "backend b#\n  log 127.0.0.1:1 @\n"),
    ("severity", "backend b#\n  log 127.0.0.1:1 local0 @\n"),
    ("log-level", "backend b#\n  http-request set-log-level @\n"),
    ("log-format", "backend b#\n  log 127.0.0.1:1 format @ local0\n"),
    ("cpu-policy", "global\n  cpu-policy @\n"),
    ("capability", "global\n  setcap @\n"),
    ("tls-version", "backend b#\n  server s 127.0.0.1:1 ssl verify none ssl-min-ver @\n"),
    ("error-code", "backend b#\n  errorloc @ /x\n"),
    ("retry-condition", "backend b#\n  retry-on @\n"),
    ("variable-condition", "backend b#\n  http-request set-var(txn.a,@) str(a)\n"),
    ("predefined-acl", "backend b#\n  http-request deny if @\n"),
    ("match-method", "backend b#\n  acl a req.hdr(x) -m @ -f /dev/null\n"),
    ("stored", "backend b#\n  stick-table type ip size 1k store @\n"),
    ("stored-rate", "backend b#\n  stick-table type ip size 1k store @(10s)\n"),
    ("stored-array", "backend b#\n  stick-table type ip size 1k store @(2)\n"),
    ("stored-array-rate", "backend b#\n  stick-table type ip size 1k store @(2,10s)\n"),
    ("format-alias", "frontend f#\n  bind 127.0.0.1:1\n  log-format %@\n"),
];

/// A directive that a version knows where it knows a list at all.
fn keyword_is_known(list: &str, version: Version) -> bool {
    match list {
        "cpu-policy" => version >= Version::V3_2,
        "capability" => version >= Version::V3_0,
        _ => true,
    }
}

/// The words that HAProxy refuses, each in a section of its own.
fn refused<'w>(version: Version, section: &str, words: &[&'w str]) -> Result<Vec<&'w str>, Missing> {
    let mut text = START.to_owned();
    let mut last_lines = Vec::new();
    for (number, word) in words.iter().enumerate() {
        text.push_str(&section.replace('#', &number.to_string()).replace('@', word));
        last_lines.push(text.lines().count());
    }
    let output = Haproxy::check(version, &text)?.output;
    let is_refused = |line: usize| {
        output.lines().any(|said| said.contains("[ALERT]") && said.contains(&format!(":{line}]")))
    };
    let refused = words.iter().zip(last_lines).filter(|(_, line)| is_refused(*line));
    Ok(refused.map(|(word, _)| *word).collect())
}

#[test]
fn words_of_lists_are_those_that_each_haproxy_knows() {
    let mut lists = directives().lists();
    let mut asked: Vec<&str> = SECTIONS.iter().map(|(list, _)| *list).collect();
    lists.sort_unstable();
    asked.sort_unstable();
    assert_eq!(lists, asked, "a list that nobody asks HAProxy about");
    for version in Version::ALL {
        for (list, section) in SECTIONS.into_iter().filter(|(list, _)| keyword_is_known(list, version)) {
            let mut words: Vec<&str> = model::Version::ALL
                .into_iter()
                .flat_map(|version| directives().list(list, version))
                .collect();
            words.push("nonsense");
            words.sort_unstable();
            words.dedup();
            // HAProxy may stop at the first word that it does not know: it is asked about the others once more.
            let mut known = words.clone();
            loop {
                let refused = need!(refused(version, section, &known));
                if refused.is_empty() {
                    break;
                }
                known.retain(|word| !refused.contains(word));
            }
            let mut listed = directives().list(list, same(version));
            listed.sort_unstable();
            assert_eq!(known, listed, "{list} of {version:?}");
        }
    }
}
