//! What `check` says of lines for no other reason than an attribute of their row.

use setpoint_haproxy::check::{Checks, check};
use setpoint_haproxy::model::Version;
use setpoint_haproxy::text::{Document, Severity};

/// The errors and warnings of a text for a version, by their messages.
fn found(text: &str, version: Version) -> Vec<(Severity, String)> {
    let checks = Checks { version: Some(version), ..Checks::default() };
    let found = check(&Document::parse(text.as_bytes()), &checks);
    found.into_iter().map(|diagnostic| (diagnostic.severity, diagnostic.message)).collect()
}

#[track_caller]
fn assert_error(text: &str, message: &str) {
    let found = found(text, Version::V3_4);
    let has = found.iter().any(|(severity, held)| *severity == Severity::Error && held.contains(message));
    assert!(has, "{text}\n{found:?}");
}

#[track_caller]
fn assert_warning(text: &str, version: Version, message: &str) {
    let found = found(text, version);
    assert!(
        found.iter().any(|(severity, held)| *severity == Severity::Warning && held.contains(message)),
        "{text}\n{found:?}"
    );
}

#[track_caller]
fn assert_fine(text: &str, version: Version) {
    let mut found = found(text, version);
    found.retain(|(severity, _)| *severity == Severity::Error);
    assert_eq!(found, [], "{text}");
}

#[test]
fn what_a_value_refers_to_has_to_be_there() {
    for (section, line, message) in [
        ("frontend x", "use_backend nowhere", "no backend is called `nowhere`"),
        ("frontend x", "default_backend nowhere", "no backend is called `nowhere`"),
        ("backend x", "server s 10.0.0.1:80 resolvers nowhere", "no resolvers section is called `nowhere`"),
        ("backend x", "server s 10.0.0.1:80 track nowhere/s", "no server is called `nowhere/s`"),
        (
            "backend x",
            "server-template s 3 h:80 resolvers nowhere",
            "no resolvers section is called `nowhere`",
        ),
        ("backend x", "use-server nowhere if TRUE", "no server is called `nowhere`"),
        ("backend x", "stick-table type ip size 1k peers nowhere", "no peers section is called `nowhere`"),
        ("backend x", "stick on src table nowhere", "no stick table is called `nowhere`"),
        ("frontend x", "http-request track-sc0 src table nowhere", "no stick table is called `nowhere`"),
        (
            "frontend x",
            "tcp-request connection track-sc0 src table nowhere",
            "no stick table is called `nowhere`",
        ),
        (
            "frontend x",
            "tcp-request session track-sc0 src table nowhere",
            "no stick table is called `nowhere`",
        ),
        (
            "frontend x",
            "tcp-request content track-sc0 src table nowhere",
            "no stick table is called `nowhere`",
        ),
        ("backend x", "errorfiles nowhere", "no http-errors section is called `nowhere`"),
        (
            "frontend x",
            "http-request return status 503 errorfiles nowhere",
            "no http-errors section is called `nowhere`",
        ),
        ("backend x", "http-request deny errorfiles nowhere", "no http-errors section is called `nowhere`"),
        ("backend x", "filter cache nowhere", "no cache is called `nowhere`"),
        ("backend x", "http-request cache-use nowhere", "no cache is called `nowhere`"),
        ("backend x", "http-response cache-store nowhere", "no cache is called `nowhere`"),
        ("backend x", "use-fcgi-app nowhere", "no fcgi-app is called `nowhere`"),
        ("backend x", "filter fcgi-app nowhere", "no fcgi-app is called `nowhere`"),
        (
            "frontend x",
            "http-request do-resolve(txn.a,nowhere) hdr(host)",
            "no resolvers section is called `nowhere`",
        ),
        (
            "frontend x",
            "tcp-request content do-resolve(txn.a,nowhere) src",
            "no resolvers section is called `nowhere`",
        ),
        ("frontend x", "http-request do-log profile nowhere", "no log-profile is called `nowhere`"),
        (
            "frontend x",
            "http-request set-bandwidth-limit nowhere",
            "no bandwidth limit of this section is called",
        ),
        ("frontend x", "http-request send-spoe-group nowhere g", "no SPOE engine of this section is called"),
        ("frontend x", "http-request deny if { nbsrv(nowhere) lt 1 }", "no backend is called `nowhere`"),
        ("frontend x", "acl a http_auth(nowhere)", "no userlist is called `nowhere`"),
        (
            "frontend x",
            "http-request set-header a %[src,table_conn_cnt(nowhere)]",
            "no stick table is called `nowhere`",
        ),
        ("frontend x", "http-request set-var(txn.a) srv_is_up(nowhere/s)", "no server is called `nowhere/s`"),
        ("userlist x", "user u password p groups nowhere", "no group of this userlist is called `nowhere`"),
    ] {
        assert_error(&format!("{section}\n  {line}\n"), message);
    }
}

#[test]
fn what_a_line_names_is_there_for_others() {
    assert_fine(
        "backend b\n  stick-table type ip size 1k\n  server s 10.0.0.1:80 check\n  server t 10.0.0.2:80 track s\n  use-server s if TRUE\n  stick on src\n\
         peers p\n  table t type ip size 1k\n  peer x 10.0.0.1:1024\n\
         frontend f\n  bind :80\n  filter bwlim-in limit default-limit 1m default-period 1s\n  \
         http-request set-bandwidth-limit limit\n  http-request track-sc0 src table p/t\n  \
         http-request track-sc1 src table b\n  acl a nbsrv(b) gt 0\n  use_backend b if a\n\
         userlist u\n  group g\n  user v insecure-password w groups g\n",
        Version::V3_0,
    );
}

#[test]
fn what_works_on_a_stick_table_needs_one() {
    for line in
        ["http-request track-sc0 src", "tcp-request connection track-sc0 src", "acl a src_conn_rate gt 1"]
    {
        assert_error(&format!("frontend f\n  {line}\n"), "needs a stick table");
        assert_fine(
            &format!("frontend f\n  stick-table type ip size 1k store conn_rate(1s)\n  {line}\n"),
            Version::V3_4,
        );
    }
    assert_error("backend b\n  stick on src\n", "needs a stick table");
}

#[test]
fn a_name_is_given_once_where_rows_say_so() {
    for (text, message) in [
        ("resolvers a\nresolvers a\n", "another resolvers is called `a`"),
        ("peers a\npeers a\n", "another peers is called `a`"),
        ("cache a\n  total-max-size 4\ncache a\n  total-max-size 4\n", "another cache is called `a`"),
        ("listen a\nbackend a\n", "another listen is called `a`"),
        ("frontend a\nfrontend a\n", "another frontend is called `a`"),
        ("log-forward a\nfrontend a\n", "another log-forward is called `a`"),
        (
            "backend a\n  server s 10.0.0.1\n  server s 10.0.0.2\n",
            "another server of this section is called `s`",
        ),
        (
            "ring r\n  server s 10.0.0.1:1\n  server s 10.0.0.2:1\n",
            "another server of this section is called `s`",
        ),
        (
            "resolvers r\n  nameserver n 10.0.0.1:53\n  nameserver n 10.0.0.2:53\n",
            "another nameserver of this section",
        ),
    ] {
        assert_error(text, message);
    }
    assert_warning("userlist a\nuserlist a\n", Version::V3_4, "another userlist is called `a`");
    let twice = "userlist u\n  user a insecure-password b\n  user a password c\n";
    assert_warning(twice, Version::V3_4, "another user of this section is called `a`");
}

#[test]
fn what_is_deprecated_is_warned_of_from_its_version_on() {
    for (text, before, since) in [
        ("backend b\n  dispatch 10.0.0.1:80\n", Version::V3_2, Version::V3_4),
        ("backend b\n  transparent\n", Version::V3_2, Version::V3_4),
        ("backend b\n  option transparent\n", Version::V3_2, Version::V3_4),
        ("frontend f\n  option accept-invalid-http-request\n", Version::V2_6, Version::V3_0),
        ("backend b\n  option accept-invalid-http-response\n", Version::V2_6, Version::V3_0),
        ("global\n  master-worker\n", Version::V3_2, Version::V3_4),
        ("global\n  tune.quic.max-frame-loss 10\n", Version::V3_2, Version::V3_4),
        ("global\n  tune.quic.socket-owner listener\n", Version::V3_2, Version::V3_4),
        ("program p\n  command x\n", Version::V3_0, Version::V3_2),
    ] {
        assert_warning(text, since, "deprecated");
        let warned = found(text, before);
        assert!(!warned.iter().any(|(_, message)| message.contains("deprecated")), "{text}{warned:?}");
    }
}

#[test]
fn what_is_experimental_has_to_be_allowed() {
    for text in [
        "frontend f\n  http-request normalize-uri fragment-strip\n",
        "backend b\n  server s 10.0.0.1:80 ssl verify none ktls on\n",
        "frontend f\n  bind rhttp@b/s nbconn 1\nbackend b\n  server s rhttp@\n",
        "acme a\n  directory https://example.com\n",
        "global\n  tune.fd.edge-triggered on\n",
    ] {
        assert_error(text, "is experimental");
        assert_fine(&format!("global\n  expose-experimental-directives\n{text}"), Version::V3_4);
    }
}

#[test]
fn an_option_that_is_needed_is_missed() {
    for (text, message) in [
        ("backend b\n  stick-table type ip\n", "can't be without `size`"),
        ("peers p\n  table t type ip\n", "can't be without `size`"),
        ("crt-store s\n  load key x\n", "can't be without `crt`"),
        ("frontend f\n  filter spoe engine e\n", "can't be without `config`"),
    ] {
        assert_error(text, message);
    }
}

#[test]
fn a_fetch_is_refused_in_a_rule_in_which_it_has_nothing_to_fetch() {
    for line in [
        "tcp-request connection set-var(sess.a) path",
        "tcp-request session set-var(sess.a) res.hdr(a)",
        "http-request set-var(txn.a) res.hdr(a)",
        "http-response set-var(txn.a) path",
        "http-after-response set-var(txn.a) path",
    ] {
        assert_error(&format!("frontend f\n  {line}\n"), "has nothing to fetch");
    }
    assert_error("backend b\n  http-check set-var(check.a) path\n", "has nothing to fetch");
    assert_error("global\n  set-var proc.a src\n", "has nothing to fetch");
}

#[test]
fn some_things_are_known_from_a_version_on() {
    for (text, before) in [
        (
            "global\n  expose-experimental-directives\nbackend b\n  server s quic4@10.0.0.1:443 ssl verify none\n",
            Version::V3_2,
        ),
        ("backend b\n  stats show-version\n", Version::V3_2),
        ("frontend f\n  filter comp-req\n", Version::V3_2),
        ("backend b\n  stick-table type ip size 1k recv-only\n", Version::V3_0),
        ("frontend f\n  bind abnsz@name\n", Version::V3_0),
    ] {
        assert_fine(text, Version::V3_4);
        let refused = found(text, before);
        assert!(refused.iter().any(|(severity, _)| *severity == Severity::Error), "{text}{refused:?}");
    }
    assert_fine("defaults d\n  tcp-request content track-sc0 src table\n", Version::V3_2);
    assert_error("defaults d\n  tcp-request content track-sc0 src table\n", "something is missing");
}

#[test]
fn no_stands_before_what_rows_allow_it_for() {
    for line in ["option dontlognull", "log"] {
        assert_fine(&format!("frontend f\n  no {line}\n"), Version::V3_4);
    }
    for word in ["busy-polling", "set-dumpable", "strict-limits", "insecure-fork-wanted", "numa-cpu-mapping"]
    {
        assert_fine(&format!("global\n  no {word}\n"), Version::V3_4);
    }
    assert_error("global\n  no daemon\n", "can't stand before `daemon`");
    assert_error("backend b\n  no balance roundrobin\n", "can't stand before `balance`");
}
