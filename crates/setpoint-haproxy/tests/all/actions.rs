//! The lists of actions and options, beside what each HAProxy has registered and says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;

use setpoint_haproxy::keywords::{Knowledge, Place, Rules, in_place, knowledge_of};
use setpoint_haproxy::model;
use setpoint_testutils::haproxy::{Haproxy, Version};
use setpoint_testutils::{Missing, need};

use crate::check::same;
use crate::keywords::range;

/// Where the list is.
const LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/keywords/actions.txt");

/// The rules by the words that their lines begin with, and the actions that HAProxy knows without having registered them.
const RULES: [(&str, Rules, &[&str]); 8] = [
    ("http-request", Rules::HttpRequest, &[]),
    ("http-response", Rules::HttpResponse, &[]),
    ("http-after-response", Rules::HttpAfterResponse, &[]),
    (
        "tcp-request connection",
        Rules::TcpRequestConnection,
        &["accept", "reject", "expect-proxy", "expect-netscaler-cip", "track-sc"],
    ),
    ("tcp-request session", Rules::TcpRequestSession, &["accept", "reject", "track-sc"]),
    ("tcp-request content", Rules::TcpRequestContent, &["accept", "reject", "capture", "track-sc"]),
    ("tcp-response content", Rules::TcpResponseContent, &["accept", "close", "reject"]),
    ("quic-initial", Rules::QuicInitial, &[]),
];

/// The options that HAProxy may know without having registered them.
const OPTIONS: [&str; 32] = [
    "accept-invalid-http-request",
    "accept-invalid-http-response",
    "error-log-format",
    "external-check",
    "forceclose",
    "forwarded",
    "forwardfor",
    "http-keep-alive",
    "http-proxy",
    "http-restrict-req-hdr-names",
    "http-server-close",
    "http-tunnel",
    "http-use-htx",
    "httpchk",
    "httpclose",
    "httplog",
    "httpslog",
    "ldap-check",
    "mysql-check",
    "originalto",
    "pgsql-check",
    "redis-check",
    "redispatch",
    "smtpchk",
    "spop-check",
    "ssl-hello-chk",
    "tcp-check",
    "tcpka",
    "tcplog",
    "transparent",
    "use-small-buffers",
    "clitcpka",
];

/// The actions of rules that HAProxy has registered, without what follows their names.
fn registered(version: Version, start: &str) -> Result<BTreeSet<String>, Missing> {
    let output = Command::new(version.program()?).args(["-dKall", "-c", "-f", "/dev/null"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.trim().strip_prefix(start)?.strip_prefix(' '));
    let word = |rest: &str| rest.split([' ', '*']).next().unwrap_or_default().to_owned();
    Ok(names.map(word).filter(|word| !word.is_empty()).collect())
}

/// The options that HAProxy knows in some section.
fn options(version: Version) -> Result<BTreeSet<String>, Missing> {
    let mut known = registered(version, "option")?;
    for word in OPTIONS {
        let text = format!("listen x\n  bind 127.0.0.1:8080\n  option {word}\n");
        if !Haproxy::check(version, &text)?.output.contains("unknown option") {
            known.insert(word.to_owned());
        }
    }
    Ok(known)
}

fn known(version: Version, place: Place) -> Result<BTreeSet<String>, Missing> {
    let Place::Action(rules) = place else { return options(version) };
    let (start, _, more) = RULES.iter().find(|row| row.1 == rules).unwrap();
    let mut known = registered(version, start)?;
    let first = start.split(' ').next().unwrap();
    if rules == Rules::QuicInitial {
        // They are named only in what HAProxy says of another.
        let text = format!(
            "frontend x\n  mode http\n  bind 127.0.0.1:8080\n  {first} setpoint-knows-no-such-word\n"
        );
        let output = Haproxy::check(version, &text)?.output;
        if let Some((_, expected)) = output.split_once("'quic-initial' expects ") {
            let words = expected.split(" but got").next().unwrap().split('\'').skip(1).step_by(2);
            known.extend(words.map(ToOwned::to_owned));
        }
        return Ok(known);
    }
    known.extend(more.iter().map(|word| (*word).to_owned()));
    Ok(known)
}

fn places() -> Vec<(String, Place)> {
    let actions = RULES.iter().map(|(start, rules, _)| (format!("action {start}"), Place::Action(*rules)));
    actions.chain([("option".to_owned(), Place::ProxyOption)]).collect()
}

#[test]
fn the_listed_actions_and_options_are_those_that_each_haproxy_knows() {
    if std::env::var_os("SETPOINT_WRITE_KEYWORDS").is_some() {
        return;
    }
    for version in Version::ALL {
        for (name, place) in places() {
            let known = need!(known(version, place));
            for word in &known {
                let ours = knowledge_of(place, word, same(version));
                assert_eq!(
                    ours,
                    Knowledge::Known,
                    "{version:?}: {word} in {name}; `cargo xtask keywords` writes the list anew"
                );
            }
            for word in in_place(place, same(version)) {
                assert!(
                    known.contains(word),
                    "{version:?}: {word} in {name}; `cargo xtask keywords` writes the list anew"
                );
            }
        }
    }
}

/// Asks for everything and writes the list anew.
pub(crate) fn write_list() -> Result<(), Missing> {
    let mut text = String::from(
        "# What rules may do and what may follow `option`, as HAProxy 2.6, 3.0, 3.2 and 3.4 have registered it.
# After a word: the first and the last version that know it, where not all do.
# Written by `cargo xtask keywords`.
",
    );
    let all = (model::Version::V2_6, model::Version::LATEST);
    for (name, place) in places() {
        let mut words: BTreeMap<String, Vec<model::Version>> = BTreeMap::new();
        for version in Version::ALL {
            for word in known(version, place)? {
                words.entry(word).or_default().push(same(version));
            }
        }
        writeln!(text, "\n[{name}]").unwrap();
        for (word, versions) in words {
            writeln!(text, "{word}{}", range(&versions, all)).unwrap();
        }
    }
    std::fs::write(LIST, text).unwrap();
    Ok(())
}
