//! What the canonical printer writes, before HAProxy itself.
//!
//! Where the model writes the same as the original, HAProxy's verdict was recorded. Where it writes something else for
//! what HAProxy accepts, it is asked here, many cases at once: what it refuses of ours it must refuse of the original's,
//! too, in the same surroundings.

use std::borrow::Borrow;
use std::fmt::Write as _;
use std::path::Path;

use setpoint_conformance::ModelCase;
use setpoint_haproxy::model::Version;
use setpoint_testutils::{Haproxy, need};

use crate::conformance::recording;

/// How many cases are checked at once.
const BATCH: usize = 25;

/// What no HAProxy accepts, or not in these surroundings: the original loses it, and so HAProxy never saw it.
const IMPOSSIBLE: [&str; 6] = [
    // A status without an answer of its own.
    "deny_status=599",
    // What is fetched is not there in a check.
    "http_check[set-var-fmt].var_format=a-%[path]",
    // Certificates that don't exist.
    "crt_store+full.crt_loads",
    // Addresses of which only one part is a variable.
    "${",
    // Texts where a number or an expression is needed.
    "sc-set-gpt",
    "forwarded.proto=h",
];

/// Texts that were sent to see what becomes of them; that HAProxy has no use for most of them is no wonder.
const ODD: [&str; 6] = ["two words", "say \"hi\"", "it's", "a#b", "back\\slash", "pre quoted"];

/// One case: the lines of the model, and those of the original.
pub(crate) struct Candidate {
    pub(crate) case: ModelCase,
    pub(crate) ours: Vec<String>,
}

#[test]
fn haproxy_accepts_what_is_written_otherwise_than_by_the_original_3_0() {
    accepts(setpoint_testutils::Version::V3_0, Version::V3_0);
}

#[test]
fn haproxy_accepts_what_is_written_otherwise_than_by_the_original_3_2() {
    accepts(setpoint_testutils::Version::V3_2, Version::V3_2);
}

#[test]
fn haproxy_accepts_what_is_written_otherwise_than_by_the_original_3_4() {
    accepts(setpoint_testutils::Version::V3_4, Version::V3_4);
}

fn accepts(haproxy: setpoint_testutils::Version, version: Version) {
    let folder = surroundings();
    let check = |text: &str| Haproxy::check(haproxy, text);
    need!(check("global\n"));
    let accepted = |text: &str| check(text).is_ok_and(|check| check.accepted);
    let candidates = candidates(version, folder.path());
    assert!(candidates.len() > 50, "only {} cases", candidates.len());
    let (mut failures, mut judged) = (String::new(), 0);
    for batch in
        candidates.chunk_by(|a, b| a.case.section == b.case.section).flat_map(|same| same.chunks(BATCH))
    {
        let at_once = batch.len() > 1 && !matches!(batch[0].case.section.as_str(), "global" | "traces");
        if at_once && accepted(&configuration(version, folder.path(), batch, |candidate| &candidate.ours)) {
            judged += batch.len();
            continue;
        }
        for one in batch.chunks(1) {
            let ours = configuration(version, folder.path(), one, |candidate| &candidate.ours);
            if accepted(&ours) {
                judged += 1;
                continue;
            }
            let theirs =
                configuration(version, folder.path(), one, |candidate| candidate.case.text.as_ref().unwrap());
            if accepted(&theirs) {
                let output = check(&ours).map(|check| check.output).unwrap_or_default();
                let alert = output.lines().find(|line| line.contains("ALERT")).unwrap_or_default();
                writeln!(failures, "{}\n  {:?}\n  {alert}", one[0].case.case, one[0].ours).unwrap();
            }
        }
    }
    assert!(judged * 2 > candidates.len(), "HAProxy judged only {judged} of {} cases", candidates.len());
    assert!(failures.is_empty(), "HAProxy {version} refuses what the model writes:\n{failures}");
}

/// The cases that HAProxy accepts as recorded and that the model writes otherwise.
fn candidates(version: Version, folder: &Path) -> Vec<Candidate> {
    let folder = folder.display().to_string();
    let text = recording(version, "model").replace("$D", &folder);
    let cases = text.lines().map(|line| serde_json::from_str::<ModelCase>(line).unwrap());
    let mut candidates: Vec<Candidate> = cases
        .filter(ModelCase::is_accepted)
        .filter(|case| !IMPOSSIBLE.iter().chain(&ODD).any(|part| case.case.contains(part)))
        .filter_map(|case| {
            let ours = case.write(version)?.ok()?;
            let recorded = case.text.as_ref()?;
            let words = |lines: &[String]| {
                lines.iter().flat_map(|line| line.split_whitespace()).map(str::to_owned).collect::<Vec<_>>()
            };
            let is_new = recorded.first().is_some_and(|line| !line.starts_with(' '));
            let ours = if case.child.is_none() && !is_new {
                ours.get(1..).unwrap_or_default().to_vec()
            } else {
                ours
            };
            (words(&ours) != words(recorded)).then_some(Candidate { case, ours })
        })
        .collect();
    candidates.sort_by(|a, b| {
        (a.case.section == "defaults", &a.case.section).cmp(&(b.case.section == "defaults", &b.case.section))
    });
    candidates
}

/// A configuration in which each case has a section of its own, after a comment with its number.
pub(crate) fn configuration<'c, C: Borrow<Candidate>>(
    version: Version,
    folder: &Path,
    batch: &'c [C],
    lines: impl Fn(&'c Candidate) -> &'c Vec<String>,
) -> String {
    let mut text = base(version, folder);
    for (number, candidate) in batch.iter().map(Borrow::borrow).enumerate() {
        writeln!(text, "# case {number}").unwrap();
        let keyword = candidate.case.section_keyword().unwrap();
        let lines = lines(candidate);
        let mut own = lines.iter();
        match keyword {
            "global" | "traces" => writeln!(text, "{keyword}").unwrap(),
            keyword => {
                let header = own.as_slice().first().filter(|line| !line.starts_with(' '));
                let from = header
                    .and_then(|header| header.split_once(" from "))
                    .map(|(_, from)| format!(" from {from}"));
                writeln!(text, "{keyword} case-{number}{}", from.unwrap_or_default()).unwrap();
                if header.is_some() {
                    own.next();
                }
            }
        }
        own.for_each(|line| writeln!(text, "{line}").unwrap());
        text.push('\n');
    }
    text
}

/// What the cases name: sections and files.
fn base(version: Version, folder: &Path) -> String {
    let folder = folder.display();
    let deprecated = if version >= Version::V3_0 { "  expose-deprecated-directives\n" } else { "" };
    let profile = if version >= Version::V3_1 { "log-profile lp\n  log-tag lp\n\n" } else { "" };
    format!(
        "global
  expose-experimental-directives
{deprecated}  insecure-fork-wanted
  external-check
  lua-load {folder}/files/x.lua

{profile}http-errors he
  errorfile 400 {folder}/files/400.http

mailers m
  mailer a 127.0.0.1:25

resolvers r
  nameserver n 127.0.0.1:53

cache c
  total-max-size 4

userlist u
  user u1 insecure-password pw

fcgi-app fa
  docroot /srv

peers p
  peer {host} 127.0.0.1:10000

defaults d
  mode http
  timeout connect 5s
  timeout client 5s
  timeout server 5s

backend be
  server s1 127.0.0.1:80

backend tbl
  stick-table type ip size 1k store gpc0,gpc1,gpt0,http_req_rate(10s)

",
        host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim(),
    )
}

/// A folder with the files that the cases name.
pub(crate) fn surroundings() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    let own = rcgen::generate_simple_self_signed(["example.test".to_owned()]).unwrap();
    let (certificate, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    write("ssl/a.crt", &certificate);
    for name in ["ssl/a.pem", "ssl/b.pem"] {
        write(name, &format!("{certificate}{key}"));
    }
    write("ssl/a.key", &key);
    write("files/400.http", "HTTP/1.0 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    write("files/500.http", "HTTP/1.0 500 Error\r\nContent-Length: 0\r\n\r\n");
    write("files/body.txt", "hello");
    write("files/s.map", "");
    write("files/s.acl", "");
    let lua = "core.register_action(\"act\", {\"tcp-req\", \"tcp-res\", \"http-req\", \"http-res\", \"http-after-res\"}, function(txn) end)\n\
               core.register_action(\"act1\", {\"tcp-req\", \"tcp-res\", \"http-req\", \"http-res\", \"http-after-res\"}, function(txn, a) end, 1)\n\
               core.register_service(\"svc\", \"http\", function(applet) end)\n";
    write("files/x.lua", lua);
    folder
}
