//! What HAProxy refuses, and `check` finds before it.

use std::fmt::Write as _;

use setpoint_haproxy::check::{Checks, FileKind, check, files};
use setpoint_haproxy::keywords::{self, Place};
use setpoint_haproxy::model;
use setpoint_haproxy::text::{Diagnostic, Document, Problem, Severity};
use setpoint_testutils::{Haproxy, Version, need};

use crate::check::same;

pub(crate) const START: &str =
    "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n";

pub(crate) fn errors(text: &str, version: Option<model::Version>) -> Vec<Diagnostic> {
    let mut found = check(&Document::parse(text.as_bytes()), &Checks { version, ..Checks::default() });
    found.retain(|found| found.severity == Severity::Error);
    found
}

/// Holds lines that every HAProxy refuses to `check`, and what it points at.
pub(crate) fn finds(section: &str, cases: &[(&str, &str)]) {
    for (line, wrong) in cases {
        let text = format!("{START}{section}\n  {line}\n");
        for version in Version::ALL {
            let found = errors(&text, Some(same(version)));
            assert_eq!(
                found.iter().map(|found| found.text.as_str()).collect::<Vec<_>>(),
                [*wrong],
                "{version:?}: {line}: {found:#?}"
            );
            let check = need!(Haproxy::check(version, &text));
            assert!(!check.accepted, "{version:?} accepts {line:?}");
        }
        assert_ne!(errors(&text, None), [], "{line}");
    }
}

#[test]
fn a_second_line_where_haproxy_accepts_one_is_found() {
    finds("backend b\n  stick-table type ip size 1k", &[("stick-table type ip size 2k", "stick-table")]);
    finds("backend b\n  id 5", &[("id 6", "id")]);
    finds("global\n  ca-base /a", &[("ca-base /b", "ca-base")]);
}

#[test]
fn a_server_of_a_frontend_is_found() {
    let frontend = "frontend f\n  bind 127.0.0.1:8080";
    finds(
        frontend,
        &[("server s 127.0.0.1:1", "server"), ("server-template s 3 127.0.0.1:1", "server-template")],
    );
    let listen = format!("{START}listen l\n  bind 127.0.0.1:8080\n  server s 127.0.0.1:1\n");
    assert_eq!(errors(&listen, None), []);
}

#[test]
fn defaults_that_stand_below_what_names_them_are_found() {
    finds("frontend f\n  bind 127.0.0.1:8080\ndefaults a from a", &[("mode http", "a")]);
    finds("frontend f\n  bind 127.0.0.1:8080\nbackend b from z\ndefaults z", &[("mode http", "z")]);
    let above = format!("{START}defaults z\n  mode http\ndefaults y from z\nbackend b from y\n");
    assert_eq!(errors(&above, None), []);
}

#[test]
fn what_is_missing_at_the_end_of_a_line_is_found() {
    finds(
        "backend b",
        &[
            ("balance uri depth", ""),
            ("balance hash", ""),
            ("timeout connect", ""),
            ("errorloc 503", ""),
            ("server s", ""),
            ("http-request set-header X-A", ""),
            ("http-request redirect location", ""),
            ("hash-type", ""),
            ("cookie", ""),
        ],
    );
    finds(
        "frontend f\n  bind 127.0.0.1:8080",
        &[("default_backend", ""), ("monitor fail", ""), ("capture request header x", "")],
    );
}

#[test]
fn words_that_have_no_place_in_a_line_are_found() {
    finds(
        "backend b",
        &[
            ("mode http junk", "junk"),
            ("timeout server 1s junk", "junk"),
            ("balance roundrobin2", "roundrobin2"),
            ("balance uri depth x", "x"),
            ("errorloc 201 /x", "201"),
            ("errorfile 999 /dev/null", "999"),
            ("hash-type consistent bogus", "bogus"),
            ("email-alert level loud", "loud"),
            ("compression algo zip", "zip"),
            ("http-error status 402", "402"),
            ("option forwardfor except nowhere!", "nowhere!"),
            ("server s 127.0.0.1:80 check inter soon", "soon"),
            ("server s 127.0.0.1:http", "http"),
            ("retry-on 503 sometimes", "sometimes"),
            ("retry-on 500 none", "none"),
            ("balance random(0)", "0"),
            ("cookie A insert attr a;b", "a;b"),
            ("cookie A insert domain a;b", "a;b"),
            ("server b/c 127.0.0.1:80", "b/c"),
            ("server s 127.0.0.1:80-90", "80-90"),
            ("server s 300.1.1.1:80", "300.1.1.1"),
            ("server s 127.0.0.1:80 error-limit 0", "0"),
            ("server s 127.0.0.1:80 resolve-net 10.0.0.0/33", "10.0.0.0/33"),
            ("http-check expect rstring (", "("),
            ("tcp-check expect rstring (", "("),
            ("server s 127.0.0.1:80 check check-proto h2", "check"),
            ("server s 127.0.0.1:80 check check-proto fcgi", "check"),
        ],
    );
    finds(
        "frontend f\n  bind 127.0.0.1:8080",
        &[
            ("bind 127.0.0.1:0", "0"),
            ("bind 127.0.0.1:+80", "+80"),
            ("acl a src -x 10.0.0.1", "-x"),
            ("acl a path -m boo /x", "boo"),
            ("http-request deny if { path -m boo /x }", "boo"),
            ("timeout client 50000m", "50000m"),
            ("log-format %F", "%F"),
            ("monitor bogus", "bogus"),
            ("tcp-response content accept", "tcp-response"),
            ("http-request deny if { src 10.0.0.1", "{"),
            ("log-format %ci%zz", "%zz"),
            ("log-format 100%", "%"),
            ("use_backend", ""),
            ("bind 300.1.1.1:80", "300.1.1.1"),
            ("bind 127.0.0.1:8081 id 0", "0"),
            ("acl or path /", "or"),
            ("log 127.0.0.1:1 len 10 local0", "10"),
            ("http-request set-header A %{+Q]", "%{+Q]"),
            ("http-request set-var(txn.a,ifnotsets) str(a)", "a,ifnotsets"),
            ("http-request unset-var(txn.a,ifset)", "a,ifset"),
            ("http-request replace-path ( a", "("),
            ("http-request replace-header A *a b", "*a"),
            ("bind 127.0.0.1:8081 proto fcgi", "fcgi"),
            ("bind 127.0.0.1:8081 proto spop", "spop"),
            ("http-request deny deny_status 418", "http-request"),
            ("http-request tarpit deny_status 418 if TRUE", "http-request"),
            ("http-response deny deny_status 418", "http-response"),
            ("http-request return status 418 default-errorfiles", "http-request"),
            ("http-request deny status 418 default-errorfiles", "http-request"),
        ],
    );
    finds("defaults d", &[("declare capture request len 5", "declare")]);
}

#[test]
fn patterns_of_acls_are_looked_at() {
    finds(
        "frontend f\n  bind 127.0.0.1:8080",
        &[
            ("acl a src 1.2.3.400", "1.2.3.400"),
            ("acl a src 10.0.0.1 1.2.3.4/33", "1.2.3.4/33"),
            ("acl a hdr_ip(x) 1.2.3.400", "1.2.3.400"),
            ("acl a dst_port 80:70", "80:70"),
            ("acl a dst_port gt x", "x"),
            ("acl a url_len x", "x"),
            ("acl a path,length 5:2", "5:2"),
            ("acl a path -m int x", "x"),
            ("acl a path -m len 5:3", "5:3"),
            ("acl a path -m bin 0g", "0g"),
            ("acl a path_reg (", "("),
            ("acl a path -m reg -i [", "["),
            ("acl a path_beg -i -f", "-f"),
            ("http-request deny if { src 1.2.3.400 }", "1.2.3.400"),
            ("http-request deny if { path_reg ( }", "("),
        ],
    );
    let fine = [
        "acl a src localhost 10.0.0.0/8 ::1 fe80::/10 10.0.0.0/255.0.0.0 10.1",
        "acl a dst_port gt 5 lt 9",
        "acl a dst_port 80 443 5: :9",
        "acl a src_port -- -5",
        "acl a req.ssl_ver 3.1",
        "acl a method GET",
        "acl a path,lower -m beg x",
        "acl a path_reg ^/a(/.*)?$ [[:alpha:]]x (?i)x",
        "acl a always_true 2",
        "acl a hdr_cnt(x) ge 1",
        "acl a path -m ip 1.2.3.4",
    ];
    for line in fine {
        let text = format!("{START}frontend f\n  bind 127.0.0.1:8080\n  {line}\n");
        for version in Version::ALL {
            assert_eq!(errors(&text, Some(same(version))), [], "{line}");
            let check = need!(Haproxy::check(version, &text));
            assert!(check.accepted, "{version:?}: {line}: {}", check.output);
        }
    }
}

#[test]
fn ranges_of_numbers_are_those_of_haproxy() {
    for (section, line, wrong, fine) in [
        ("global", "spread-checks", "51", "50"),
        ("global", "nbthread", "0", "1"),
        ("global", "thread-groups", "33", "1"),
        ("global", "maxcompcpuusage", "101", "100"),
        ("global", "tune.comp.maxlevel", "10", "9"),
        ("global", "tune.ssl.default-dh-param", "1023", "1024"),
        ("global", "tune.http.maxhdr", "32768", "32767"),
        ("global", "tune.h2.max-frame-size", "16383", "16384"),
        ("global", "tune.h2.header-table-size", "65537", "65536"),
        ("global", "tune.pool-high-fd-ratio", "101", "100"),
        ("global", "tune.peers.max-updates-at-once", "0", "1"),
        ("global", "tune.bufsize", "0", "16384"),
        ("resolvers r", "accepted_payload_size", "65536", "65535"),
        ("resolvers r", "accepted_payload_size", "11", "12"),
        ("backend b", "server s 127.0.0.1:1 error-limit", "0", "1"),
        ("backend b", "balance random", "(0)", "(1)"),
    ] {
        let join = if line.ends_with("random") { "" } else { " " };
        for (value, is_fine) in [(wrong, false), (fine, true)] {
            let lines = format!("{section}\n  {line}{join}{value}\n");
            // Some settings of `global` have to stand before all else.
            let text = if section == "global" { lines + START } else { format!("{START}{lines}") };
            for version in Version::ALL {
                let found = errors(&text, Some(same(version)));
                assert_eq!(found.is_empty(), is_fine, "{version:?}: {line} {value}: {found:#?}");
                let check = need!(Haproxy::check(version, &text));
                assert_eq!(check.accepted, is_fine, "{version:?}: {line} {value}: {}", check.output);
            }
        }
    }
    for (sample, is_fine) in
        [("3-1:5", false), ("7:5", false), ("0:5", false), ("1,1:5", false), ("1-2,4:5", true)]
    {
        let text =
            format!("{START}frontend f\n  bind 127.0.0.1:8080\n  log 127.0.0.1:1 sample {sample} local0\n");
        for version in Version::ALL {
            assert_eq!(errors(&text, Some(same(version))).is_empty(), is_fine, "{version:?}: {sample}");
            assert_eq!(need!(Haproxy::check(version, &text)).accepted, is_fine, "{version:?}: {sample}");
        }
    }
}

#[test]
fn conditions_and_messages_of_a_file_are_as_haproxy_takes_them() {
    let deep = |count: usize| format!("{}{}", ".if 1\n".repeat(count), ".endif\n".repeat(count));
    for (text, is_fine) in [
        (".if 1\n.alert x\n.endif\n".to_owned(), false),
        (".if 0\n.alert x\n.endif\n".to_owned(), true),
        (".if 0\n.elif foo\n.endif\n".to_owned(), false),
        (".if 0\n.elif 1\n.elif foo\n.endif\n".to_owned(), true),
        (deep(99), true),
        (deep(100), false),
    ] {
        let text = format!("{START}{text}backend b\n");
        for version in Version::ALL {
            let found = errors(&text, Some(same(version)));
            assert_eq!(found.is_empty(), is_fine, "{version:?}: {text}: {found:#?}");
            assert_eq!(need!(Haproxy::check(version, &text)).accepted, is_fine, "{version:?}: {text}");
        }
    }
}

#[test]
fn listeners_take_no_datagrams() {
    let text = format!("{START}frontend f\n  bind udp@127.0.0.1:8080\n");
    for version in [Version::V3_0, Version::V3_2, Version::V3_4] {
        assert_eq!(errors(&text, Some(same(version))).len(), 1, "{version:?}");
        assert!(!need!(Haproxy::check(version, &text)).accepted, "{version:?}");
    }
}

#[test]
fn a_guid_is_given_once() {
    for lines in [
        "frontend f\n  bind 127.0.0.1:8080\n  guid x\nbackend b\n  guid x\n",
        "backend b\n  guid x\n  server s 127.0.0.1:1 guid x\n",
        "backend a\n  server s 127.0.0.1:1 guid x\nbackend b\n  server s 127.0.0.1:1 guid x\n",
    ] {
        let text = format!("{START}{lines}");
        for version in [Version::V3_0, Version::V3_2, Version::V3_4] {
            let found = errors(&text, Some(same(version)));
            assert_eq!(found.iter().map(|found| found.problem).collect::<Vec<_>>(), [Problem::DuplicateName]);
            assert!(!need!(Haproxy::check(version, &text)).accepted, "{version:?} accepts {lines}");
        }
    }
}

#[test]
fn the_header_of_a_section_is_looked_at() {
    let newer = [Version::V3_2, Version::V3_4];
    for (text, wrong, versions) in [
        ("listen l :80\n", ":80", &newer[..]),
        ("frontend f junk\n", "junk", &newer),
        ("backend b junk\n", "junk", &newer),
        ("global junk\n", "junk", &Version::ALL),
        ("backend b;\n", "b;", &[Version::V2_6, Version::V3_0, Version::V3_2]),
        ("frontend main *:5000\n  mode http\n", "*:5000", &Version::ALL),
        ("backend b from\n  mode http\n", "from", &Version::ALL),
        ("defaults d from\n", "from", &Version::ALL),
        ("peers p x\n", "x", &Version::ALL),
        ("userlist u x\n", "x", &Version::ALL),
        ("cache c x\n  total-max-size 4\n", "x", &Version::ALL),
        ("traces x\n", "x", &newer),
        ("log-profile p x\n", "x", &newer),
    ] {
        for version in versions.iter().copied() {
            let found = errors(text, Some(same(version)));
            assert_eq!(
                found.iter().map(|found| found.text.as_str()).collect::<Vec<_>>(),
                [wrong],
                "{text:?}: {found:#?}"
            );
            assert!(!need!(Haproxy::check(version, text)).accepted, "{version:?} accepts {text:?}");
        }
    }
}

#[test]
fn actions_options_and_modes_are_known_by_version() {
    let newer = [Version::V3_0, Version::V3_2, Version::V3_4];
    for (line, knows) in [
        ("http-request do-log", &[Version::V3_2, Version::V3_4][..]),
        ("http-request set-bc-mark 1", &newer),
        ("tcp-request content set-fc-tos 1", &newer),
        ("http-request bogus", &[]),
        ("tcp-request content bogus", &[]),
        ("option forwarded", &newer),
        ("option use-small-buffers", &[Version::V3_4]),
        ("option accept-invalid-http-response", &Version::ALL),
        ("no option accept-invalid-http-response", &[Version::V2_6, Version::V3_0]),
        ("option bogus", &[]),
        ("mode log", &newer),
        ("mode spop", &[Version::V3_2, Version::V3_4]),
        ("mode health", &[]),
        ("hash-type consistent none", &newer),
        ("compression direction both", &newer),
        ("errorloc 431 /x", &[Version::V3_2, Version::V3_4]),
        ("http-request deny deny_status 431", &[Version::V3_2, Version::V3_4]),
        ("http-request silent-drop rst-ttl 5", &newer),
        ("http-request silent-drop rst-ttl 300", &[]),
    ] {
        let text = format!(
            "defaults\n  timeout connect 1s\n  timeout server 1s\nbackend b\n  mode http\n  {line}\n"
        );
        for version in Version::ALL {
            let found = errors(&text, Some(same(version)));
            assert_eq!(found.is_empty(), knows.contains(&version), "{version:?}: {line}: {found:#?}");
            let check = need!(Haproxy::check(version, &text));
            assert_eq!(check.accepted, knows.contains(&version), "{version:?}: {line}: {}", check.output);
        }
    }
}

#[test]
fn what_a_line_needs_of_others_is_found() {
    for (lines, wrong) in [
        ("frontend f\n  bind 127.0.0.1:8080\n  http-request track-sc0 src\n", "track-sc0"),
        (
            "frontend f\n  bind 127.0.0.1:8080\n  stick-table type ip size 1k\n  http-request track-sc3 src\n",
            "track-sc3",
        ),
        ("frontend f\n  bind 127.0.0.1:8080\n  http-request lua.f\n", "lua.f"),
        ("frontend f\n  bind 127.0.0.1:8080\n  http-request use-service lua.f\n", "lua.f"),
        (
            "frontend f\n  bind 127.0.0.1:8080\n  http-request normalize-uri path-merge-slashes\n",
            "normalize-uri",
        ),
        ("frontend f\n  bind 127.0.0.1:8080\n  http-request send-spoe-group e g\n", "e"),
        ("frontend f\n  bind 127.0.0.1:8080 ssl\n", "ssl"),
        ("frontend f\n  disabled\n  bind 127.0.0.1:8080 ssl\n", "ssl"),
        ("backend b\n  server s 127.0.0.1:1 ssl\n", "ssl"),
        ("backend b\n  server s 127.0.0.1:1 check-ssl check\n", "check-ssl"),
        ("backend b\n  stick-table type ip\n", "stick-table"),
        ("backend b\n  option tcp-check\n  tcp-check send x\n  tcp-check connect\n", "connect"),
        ("userlist u\n  user a insecure-password x groups g\n", "g"),
        (
            "frontend f\n  bind 127.0.0.1:8080\n  http-request return status 400 errorfiles nowhere\n",
            "nowhere",
        ),
        ("frontend f\n  bind 127.0.0.1:8080\n  acl a nbsrv(nowhere) gt 0\n", "nowhere"),
        ("frontend f\n  bind 127.0.0.1:8080\n  http-request sc-inc-gpc0(3)\n", "sc-inc-gpc0(3)"),
        ("frontend f\n  bind 127.0.0.1:8080\n  tcp-request content sc-inc-gpc(0,3)\n", "sc-inc-gpc(0,3)"),
        ("log-forward l\n  bind 127.0.0.1:8080 ssl\n  log 127.0.0.1:1 local0\n", "ssl"),
        ("ring r\n  timeout connect 1s\n  timeout server 1s\n  server s 127.0.0.1:1 ssl\n", "ssl"),
        ("backend b\n  server s 127.0.0.1:1 no-ssl ssl\n", "ssl"),
        ("backend b\n  server s 127.0.0.1:1\n  server t 127.0.0.1:2 track s\n", "s"),
        ("backend a\n  server s 127.0.0.1:1\nbackend b\n  server t 127.0.0.1:2 track a/s\n", "a/s"),
        (
            "backend a\n  server s 127.0.0.1:1\nbackend b\n  default-server track a/s\n  server t 127.0.0.1:2\n",
            "a/s",
        ),
        ("backend b\n  server s 127.0.0.1 check\n", "check"),
        ("backend b\n  server s 127.0.0.1:0 check\n", "check"),
        ("backend b\n  server s 127.0.0.1:1 agent-check\n", "agent-check"),
        ("backend b\n  server s 127.0.0.1:1 ssl verify required\n", "ssl"),
        ("backend b\n  mode tcp\n  server s 127.0.0.1:1 proto h1\n", "proto"),
        ("backend b\n  server s 127.0.0.1:1 check\n  server t 127.0.0.1:2 check track s\n", "track"),
        ("backend b\n  server s 127.0.0.1:1 id 7\n  server t 127.0.0.1:2 id 7\n", "7"),
        ("frontend f\n  bind 127.0.0.1:8080 id 1\n  bind 127.0.0.1:8081 id 1\n", "1"),
        ("backend a\n  id 5\nbackend b\n  id 5\n", "5"),
        ("frontend f\n  bind quic4@127.0.0.1:8080\n", "quic4@127.0.0.1:8080"),
        ("backend b\n  option external-check\n  external-check command /bin/true\n", "external-check"),
        ("cache c\n  max-age 5\n", "cache"),
        ("fcgi-app a\n  index x\n", "fcgi-app"),
        ("listen l\n  bind 127.0.0.1:8080\n  default_backend l\n", "l"),
        ("listen l\n  bind 127.0.0.1:8080\n  use_backend l if TRUE\n", "l"),
        ("backend b\n  cookie A insert rewrite\n", "insert"),
        ("backend b\n  cookie A rewrite preserve\n", "preserve"),
        ("backend b\n  http-error status 403 string x\n", "string"),
        ("frontend f\n  bind 127.0.0.1:8080\n  http-request return lf-string b\n", "lf-string"),
        ("frontend f\n  bind 127.0.0.1:8080\n  log-format %[req.hdr(a)]\n", "req.hdr"),
        ("frontend f\n  bind 127.0.0.1:8080\n  unique-id-format %[res.hdr(a)]\n", "res.hdr"),
    ] {
        let text = format!("{START}{lines}");
        for version in Version::ALL {
            let found = errors(&text, Some(same(version)));
            assert_eq!(
                found.iter().map(|found| found.text.as_str()).collect::<Vec<_>>(),
                [wrong],
                "{version:?}: {lines:?}: {found:#?}"
            );
            assert!(!need!(Haproxy::check(version, &text)).accepted, "{version:?} accepts {lines:?}");
        }
    }
}

#[test]
fn what_a_line_needs_is_seen_where_it_is_given() {
    for lines in [
        "frontend f\n  bind 127.0.0.1:8080\n  stick-table type ip size 1k\n  http-request track-sc0 src\n",
        "frontend f\n  bind 127.0.0.1:8080\n  http-request track-sc0 src table t\nbackend t\n  stick-table type ip size 1k\n",
        "global\n  expose-experimental-directives\nfrontend f\n  bind 127.0.0.1:8080\n  http-request normalize-uri path-merge-slashes\n",
        "backend b\n  server s 127.0.0.1:1 ssl verify none\n",
        "backend b\n  default-server verify none\n  server s 127.0.0.1:1 ssl\n",
        "global\n  ssl-server-verify none\nbackend b\n  server s 127.0.0.1:1 ssl\n",
        "backend b\n  server s 127.0.0.1:1 send-proxy-v2 proxy-v2-options ssl\n",
        "backend b\n  option tcp-check\n  tcp-check comment x\n  tcp-check connect\n  tcp-check send x\n",
        "userlist u\n  group g\n  user a insecure-password x groups g\n",
        "backend b\n  server s 127.0.0.1:1 ssl no-ssl\n",
        "backend b\n  disabled\n  server s 127.0.0.1:1 ssl\n  server t 127.0.0.1:2 track s\n",
        "global\n  stats socket 127.0.0.1:8081 ssl\nfrontend f\n  bind 127.0.0.1:8080\n",
        "backend b\n  server s 127.0.0.1:1 agent-check agent-port 1\n  server t 127.0.0.1:2 track s\n",
        "backend b\n  default-server check\n  server s 127.0.0.1:1\n  server t 127.0.0.1:2 no-check track s\n",
        "backend b\n  server s 127.0.0.1:1 check\n  server t 127.0.0.1:2 track s\n  server u 127.0.0.1:3 track t\n",
        "defaults\n  mode http\n  timeout connect 1s\n  timeout server 1s\n  email-alert mailers m\n  email-alert from a@b\n  email-alert to a@b\ndefaults\n  timeout connect 1s\n  timeout server 1s\nbackend b\n",
        "backend b\n  mode tcp\n  server s 127.0.0.1 check port 80\n  server t 127.0.0.1:1 proto none\n",
        "backend b\n  default-server port 80 agent-port 81\n  server s 127.0.0.1 check\n  server t 127.0.0.1:1 agent-check\n",
        "backend b\n  option tcp-check\n  tcp-check connect port 80\n  server s 127.0.0.1 check\n",
        "backend b\n  server s /tmp/x check\n  server t 127.0.0.1:1 agent-check agent-port 5 track s\n  server u * check\n",
        "backend b\n  server s 127.0.0.1:1\n  server t 127.0.0.1:2 id 1\n",
        "listen l\n  bind 127.0.0.1:8080 id 1\n  server s 127.0.0.1:1 id 1 guid a\nbackend b\n  server s 127.0.0.1:1 id 1 guid b\n",
        "defaults x\n  option external-check\nbackend b\n  disabled\n  option external-check\n",
        "global\n  insecure-fork-wanted\n  external-check\nbackend b\n  option external-check\n  external-check command /bin/true\n",
        "defaults x\n  log-format %[req.hdr(a)]\ndefaults\n  timeout connect 1s\n  timeout server 1s\nbackend b\n",
        "frontend f\n  bind 127.0.0.1:8080\n  log-format \"%[src] %[var(txn.a)] %[capture.req.hdr(0)] %[ssl_fc] %ci\"\n  unique-id-format %[req.hdr(a)]\n",
        "backend b\n  cookie A insert preserve indirect attr a=b domain .a.b\n",
        "global\n  tune.stick-counters 5\nfrontend f\n  bind 127.0.0.1:8080\n  stick-table type ip size 1k\n  http-request track-sc3 src\n",
        "backend b\n  option httpchk\n  server s 127.0.0.1:1 check check-proto h2\n",
        "backend b\n  server s 127.0.0.1:1 check-proto h2\n  server t 127.0.0.1:1 check check-proto none\n",
        "backend b\n  server s 127.0.0.1:1 check port 81 agent-check\n",
        "backend a\n  server s 127.0.0.1:1 check\nbackend b\n  default-server track a/s\n  server t 127.0.0.1:2\n",
        "backend a\n  server s 127.0.0.1:1\nbackend b\n  default-server track a/s\n",
        "frontend f\n  bind 127.0.0.1:8080 proto h1\n  bind 127.0.0.1:8081 proto h2\n",
        "frontend f\n  bind 127.0.0.1:8080\n  http-request deny status 418 if FALSE\n  http-request deny deny_status 418 hdr a b if FALSE\n  http-request deny deny_status 418 content-type text/plain string no\n",
        "frontend f\n  bind 127.0.0.1:8080\n  http-request deny deny_status 431 if FALSE\n  http-request return status 418\n",
    ] {
        let text = format!("{START}{lines}");
        assert_eq!(errors(&text, Some(model::Version::V3_4)), [], "{lines:?}");
        let check = need!(Haproxy::check(Version::V3_4, &text));
        assert!(check.accepted, "{lines:?}: {}", check.output);
    }
}

#[test]
fn rules_and_acls_want_defaults_with_a_name() {
    for line in [
        "acl a src 10.0.0.1",
        "http-request deny",
        "tcp-response inspect-delay 1s",
        "http-after-response allow",
    ] {
        for version in Version::ALL {
            let anonymous = format!("defaults\n  mode http\n  {line}\n");
            let found = errors(&anonymous, Some(same(version)));
            assert_eq!(found.len(), 1, "{version:?}: {line}: {found:#?}");
            assert!(!need!(Haproxy::check(version, &anonymous)).accepted, "{version:?} accepts {line}");
            let named = format!("defaults d\n  mode http\n  {line}\n");
            assert_eq!(errors(&named, Some(same(version))), [], "{version:?}: {line}");
            let check = need!(Haproxy::check(version, &named));
            assert!(check.accepted, "{version:?}: {line}: {}", check.output);
        }
    }
}

#[test]
fn one_wrong_line_is_one_error() {
    let text = format!(
        "{START}backend b\n  http-request bogus if nothing\n  server s 127.0.0.1:80 bogus check bogus2\n"
    );
    let found = errors(&text, Some(model::Version::V3_4));
    assert_eq!(
        found.iter().map(|found| found.problem).collect::<Vec<_>>(),
        [Problem::UnknownKeyword; 2],
        "{found:#?}"
    );
}

/// What is found of a line does not grow with how much is wrong in it.
#[test]
fn a_line_of_many_wrong_words_is_told_in_few() {
    let words: String = (0..20_000).map(|number| format!(" bogus-{number}")).collect();
    let found = errors(&format!("{START}backend b\n  server s 127.0.0.1:80{words}\n"), None);
    let size: usize = found.iter().map(|found| found.text.len() + found.message.len()).sum();
    assert!(found.len() <= 3 && size < 2000, "{} errors of {size} bytes", found.len());
}

/// A name or a line that an unknown variable decides hides nothing else.
#[test]
fn a_word_of_a_megabyte_is_reported_in_a_short_message() {
    for text in ["x".repeat(1 << 20), format!("frontend f\n  bind :80 {}\n", "x".repeat(1 << 20))] {
        let found = errors(&text, None);
        assert!(!found.is_empty());
        for found in found {
            assert!(found.to_string().len() < 2000, "{}", found.to_string().len());
        }
    }
}

#[test]
fn an_unknown_variable_hides_only_what_it_decides() {
    for (lines, wrong) in [
        ("frontend \"${N}\"\n  bind :80\n  default_backend nowhere\n", &["nowhere"][..]),
        ("backend \"${N}\"\nfrontend f\n  bind :80\n  default_backend anywhere\n", &[]),
        ("backend \"${N}\"\n  server s :80\nbackend b\n  server s :80 track nowhere/s\n", &[]),
        ("backend \"${N}\"\nbackend b\n  acl a http_auth(nowhere)\n", &["nowhere"]),
        ("frontend f\n  bind \"${A}\"\n  http-request track-sc0 src\n", &["track-sc0"]),
        ("frontend f\n  bind :80\n  stick-table type \"${T}\" size 1k\n  http-request track-sc0 src\n", &[]),
        ("frontend f\n  bind :80\n  \"${L}\" x\n  http-request track-sc0 src\n", &[]),
        ("frontend f\n  bind \"${A}\"\n  bind :443 ssl\n", &["ssl"]),
    ] {
        let found = errors(&format!("{START}{lines}"), None);
        let texts: Vec<&str> = found.iter().map(|found| found.text.as_str()).collect();
        assert_eq!(texts, wrong, "{lines:?}: {found:#?}");
    }
}

#[test]
fn variables_that_were_removed_are_not_known() {
    let text = |lines: &str| {
        format!(
            "global\n  setenv A nowhere\n  setenv B nowhere\n{lines}{START}frontend f\n  bind 127.0.0.1:80\n  default_backend \"${{A}}\"\n"
        )
    };
    assert_eq!(errors(&text(""), None).len(), 1);
    for lines in ["  unsetenv A\n", "  unsetenv B A\n", "  resetenv PATH B\n", "  unsetenv \"${X}\"\n"] {
        assert_eq!(errors(&text(lines), None), [], "{lines}");
    }
    assert_eq!(errors(&text("  resetenv A\n"), None).len(), 1);
}

#[test]
fn what_is_experimental_is_allowed_from_the_line_on_that_says_so() {
    let expose = "global\n  expose-experimental-directives\n";
    let uses =
        format!("{START}frontend f\n  bind 127.0.0.1:80\n  http-request normalize-uri path-merge-slashes\n");
    for (text, accepted) in [
        (uses.clone(), false),
        (format!("{expose}{uses}"), true),
        (format!("{uses}{expose}"), false),
        (format!("global\n  tune.fd.edge-triggered on\n  expose-experimental-directives\n{START}"), false),
    ] {
        for version in Version::ALL {
            let found = errors(&text, Some(same(version)));
            assert_eq!(found.is_empty(), accepted, "{version:?}: {text}: {found:#?}");
            assert_eq!(need!(Haproxy::check(version, &text)).accepted, accepted, "{version:?}: {text}");
        }
        assert_eq!(errors(&text, None).is_empty(), accepted, "{text}");
    }
}

/// All options, with `no` and `default` before them. HAProxy gives up after some errors: it is asked of a few at once.
#[test]
fn an_option_is_negated_where_haproxy_can() {
    let mut differences = String::new();
    for version in Version::ALL {
        let names: Vec<&str> = keywords::in_place(Place::ProxyOption, same(version)).collect();
        for names in names.chunks(4) {
            let of_name = |name| ["no", "default"].map(|prefix| format!("  {prefix} option {name}"));
            let lines: Vec<String> = names.iter().flat_map(of_name).collect();
            let text = format!("{START}listen l\n  bind 127.0.0.1:80\n{}\n", lines.join("\n"));
            let output = need!(Haproxy::check(version, &text)).output;
            let first = text.lines().count() - lines.len() + 1;
            let found = errors(&text, Some(same(version)));
            for (index, line) in lines.iter().enumerate() {
                let number = first + index;
                let alerts = output.lines().filter(|alert| alert.contains("[ALERT]"));
                let is_refused = alerts.filter(|alert| alert.contains(&format!(":{number}]"))).count() > 0;
                let is_found = found.iter().any(|found| found.line as usize == number);
                if is_refused != is_found {
                    writeln!(differences, "{version:?}: {line}: HAProxy refuses: {is_refused}").unwrap();
                }
            }
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn files_are_named_by_expressions_that_haproxy_reads() {
    let text = b"frontend f\n.if 0\n  use_backend %[src,map(/unread.map)]\n.endif\n  http-request set-header X \"map(/text.map)\"\n  use_backend %[src,map_ip(/a.map,b)] if { src -f /b.lst } or { hdr(x),map(/c.map) -m found }\n  acl a path,map(virt@x) -m beg -f opt@/none -f file@/d.lst\n  no log\n";
    let found = files(&Document::parse(text), &Checks::default());
    let named: Vec<(FileKind, &str, u32)> =
        found.iter().map(|file| (file.kind, file.path.as_str(), file.line)).collect();
    assert_eq!(
        named,
        [
            (FileKind::Map, "/a.map", 6),
            (FileKind::Patterns, "/b.lst", 6),
            (FileKind::Map, "/c.map", 6),
            (FileKind::Patterns, "/d.lst", 7),
        ]
    );
}

#[test]
fn an_empty_word_ends_a_line_or_is_refused() {
    for (line, is_fine) in [
        ("http-request set-header X-A \"\"", false),
        ("http-request set-header '' x", false),
        ("mode http \"\"", true),
        ("mode http '' junk", true),
        ("http-request deny '' if TRUE", true),
        ("server s \"\" check", false),
    ] {
        let text = format!("{START}backend b\n  {line}\n");
        for version in Version::ALL {
            let is_fine = is_fine && version < Version::V3_4;
            let found = errors(&text, Some(same(version)));
            assert_eq!(found.is_empty(), is_fine, "{version:?}: {line}: {found:#?}");
            assert!(found.len() < 2, "{version:?}: {line}: {found:#?}");
            let check = need!(Haproxy::check(version, &text));
            assert_eq!(check.accepted, is_fine, "{version:?}: {line}: {}", check.output);
        }
        let is_read = errors(&text, None).is_empty();
        assert_eq!(is_read, is_fine, "{line}");
    }
    // What may not be read is no error.
    let text = format!("{START}.if feature(X)\nbackend b\n  mode http ''\n.endif\n");
    assert_eq!(errors(&text, Some(model::Version::V3_4)), []);
}
