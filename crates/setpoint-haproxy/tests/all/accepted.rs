//! What HAProxy accepts and `check` has called an error before, and what HAProxy tolerates.

use setpoint_haproxy::check::{Checks, check, check_together};
use setpoint_haproxy::model;
use setpoint_haproxy::text::{Diagnostic, Document, Problem, Severity};
use setpoint_testutils::{Haproxy, Version, need};

use crate::check::same;

const START: &str = "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n";

fn found(text: &str, version: Option<model::Version>) -> Vec<Diagnostic> {
    check(&Document::parse(text.as_bytes()), &Checks { version, ..Checks::default() })
}

fn errors(text: &str, version: Option<model::Version>) -> Vec<Diagnostic> {
    let mut found = found(text, version);
    found.retain(|found| found.severity == Severity::Error);
    found
}

/// Holds texts that HAProxy accepts to `check`.
fn accepts(lines: &str, versions: &[Version]) {
    let text = format!("{START}{lines}");
    for version in versions {
        assert_eq!(errors(&text, Some(same(*version))), [], "{version:?}: {lines:?}");
        let check = need!(Haproxy::check(*version, &text));
        assert!(check.accepted, "{version:?}: {lines:?}: {}", check.output);
    }
    assert_eq!(errors(&text, None), [], "{lines:?}");
}

#[test]
fn or_may_be_written_in_capital_letters() {
    accepts(
        "frontend f\n  bind 127.0.0.1:8080\n  acl a src 10.0.0.1\n  http-request deny if a OR !a Or a\n",
        &Version::ALL,
    );
}

#[test]
fn an_exclamation_mark_may_stand_right_before_what_a_check_expects() {
    accepts(
        "backend b\n  option tcp-check\n  tcp-check expect !rstring \"^error\" comment \"negative check\"\n",
        &Version::ALL,
    );
}

#[test]
fn a_range_of_threads_and_cpus_may_have_no_end() {
    accepts("global\n  cpu-map 1/1- 0-\n  cpu-map 1/all 0-\nbackend b\n", &Version::ALL);
}

#[test]
fn where_an_action_does_not_ask_when_its_expression_is_evaluated_it_does_not_matter() {
    accepts("frontend f\n  bind 127.0.0.1:8080\n  tcp-request connection set-src hdr(x)\n", &Version::ALL);
    accepts(
        "frontend f\n  bind 127.0.0.1:8080\n  http-request pause res.hdr(x),mul(1000)\n",
        &[Version::V3_2, Version::V3_4],
    );
}

#[test]
fn headers_after_the_version_of_a_check_are_fine_for_the_oldest_version_alone() {
    let line = "backend b\n  option httpchk OPTIONS * HTTP/1.1\\r\\nHost:\\ www\n";
    accepts_one(line, Version::V2_6);
    assert_ne!(errors(&format!("{START}{line}"), Some(model::Version::V3_0)), []);
}

fn accepts_one(lines: &str, version: Version) {
    let text = format!("{START}{lines}");
    assert_eq!(errors(&text, Some(same(version))), [], "{lines:?}");
    let check = need!(Haproxy::check(version, &text));
    assert!(check.accepted, "{lines:?}: {}", check.output);
}

#[test]
fn what_tunes_zlib_is_known() {
    accepts("global\n  tune.comp.maxlevel 1\n  maxcomprate 0\nbackend b\n", &Version::ALL);
    for word in ["tune.zlib.memlevel 8", "tune.zlib.windowsize 15"] {
        assert_eq!(errors(&format!("global\n  {word}\n"), None), [], "{word}");
        assert_eq!(errors(&format!("global\n  {word}\n"), Some(model::Version::V3_4)), [], "{word}");
    }
}

#[test]
fn servers_may_be_called_like_options() {
    accepts(
        "backend b\n  server track 127.0.0.1:1 check\n  server resolvers 127.0.0.1:2\n  server table 127.0.0.1:3\n",
        &Version::ALL,
    );
}

#[test]
fn the_word_table_in_a_value_names_no_table() {
    accepts(
        "frontend f\n  bind 127.0.0.1:8080\n  http-request set-header X table if TRUE\n  http-request set-header table nowhere\n",
        &Version::ALL,
    );
}

#[test]
fn text_that_looks_like_an_expression_is_text() {
    accepts(
        "frontend f\n  bind 127.0.0.1:8080\n  http-request set-header X \"http_auth(nobody) { srcc }\"\n  http-request set-header Y do-resolve(a,nowhere)\n  http-request return status 200 content-type text/plain string \"if nothing %[srcc]\"\n",
        &Version::ALL,
    );
}

#[test]
fn what_stands_in_a_false_condition_is_not_read() {
    accepts(
        "frontend f\n  bind 127.0.0.1:8080\n.if 0\n  bogus\n  default_backend nowhere\nbackend other\n.endif\n  maxconn 5\n.if !1 || 0\n  bogus\n.elif 1\n  maxconn 6\n.else\n  bogus\n.endif\n",
        &Version::ALL,
    );
    for version in Version::ALL {
        let text = format!(
            "{START}.if version_before({})\nbackend b\n  bogus\n.endif\n.if version_atleast(9.0)\n  bogus\n.endif\n",
            same(version)
        );
        assert_eq!(errors(&text, Some(same(version))), [], "{version:?}");
        let check = need!(Haproxy::check(version, &text));
        assert!(check.accepted, "{version:?}: {}", check.output);
    }
}

#[test]
fn what_stands_in_a_true_condition_is_checked_like_anything_else() {
    for text in [
        ".if 1\nbackend b\n  bogus\n.endif\n",
        ".if 0\n.else\nbackend b\n  bogus\n.endif\n",
        ".if 0\n.elif 1\nbackend b\n  bogus\n.endif\n",
        ".if streq(a,a) && !streq(a,b)\nbackend b\n  bogus\n.endif\n",
    ] {
        let text = format!("{START}{text}");
        let found = errors(&text, None);
        assert_eq!(
            found.iter().map(|found| found.problem).collect::<Vec<_>>(),
            [Problem::UnknownKeyword],
            "{text:?}"
        );
        for version in Version::ALL {
            assert!(!need!(Haproxy::check(version, &text)).accepted, "{version:?} accepts {text:?}");
        }
    }
}

#[test]
fn a_condition_that_can_not_be_told_makes_warnings() {
    let text = format!("{START}.if feature(OPENSSL)\nbackend b\n  bogus\n.endif\n");
    let found = found(&text, None);
    assert_eq!(
        found.iter().map(|found| (found.severity, found.problem)).collect::<Vec<_>>(),
        [(Severity::Warning, Problem::UnknownKeyword)]
    );
}

#[test]
fn a_condition_that_is_none_is_found_as_haproxy_finds_it() {
    for text in [".if bogus(x)\n.endif\n", ".if 1 2\n.endif\n", ".if (1\n.endif\n", ".if streq(a)\n.endif\n"]
    {
        let text = format!("{START}{text}backend b\n");
        let found = errors(&text, None);
        assert_eq!(
            found.iter().map(|found| found.problem).collect::<Vec<_>>(),
            [Problem::BadCondition],
            "{text:?}"
        );
        for version in Version::ALL {
            assert!(!need!(Haproxy::check(version, &text)).accepted, "{version:?} accepts {text:?}");
        }
    }
}

#[test]
fn known_variables_are_read_and_of_the_rest_only_the_line_is_text() {
    let text = format!(
        "{START}frontend f\n  bind 127.0.0.1:8080\n  default_backend \"${{BACKEND}}\"\n  http-request deny if \"${{ACL}}\"\n  bogus\nbackend shop\n"
    );
    let of = |env: &[(&str, &str)]| {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let found = check(&Document::parse(text.as_bytes()), &Checks { version: None, env });
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let bogus = "10:3: unknown keyword `bogus` in a `frontend` section";
    assert_eq!(of(&[]), [bogus]);
    assert_eq!(of(&[("BACKEND", "shop"), ("ACL", "TRUE")]), [bogus]);
    let wrong = of(&[("BACKEND", "nowhere"), ("ACL", "nothing")]);
    assert_eq!(
        wrong,
        ["8:19: no backend is called `nowhere`", "9:24: no ACL is called `nothing` above this line", bogus]
    );
}

#[test]
fn a_variable_that_the_configuration_sets_is_known() {
    let text = "global\n  setenv BACKEND nowhere\nfrontend f\n  bind 127.0.0.1:8080\n  default_backend \"${BACKEND}\"\n";
    let found = found(text, None);
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["5:19: no backend is called `nowhere`"]
    );
    for version in Version::ALL {
        assert!(!need!(Haproxy::check(version, text)).accepted, "{version:?}");
    }
}

#[test]
fn a_condition_by_a_known_variable_is_evaluated() {
    let text = "backend b\n.if defined(ON) && streq(\"$ON\",yes)\n  bogus\n.endif\n";
    let severities = |value: Option<&str>| {
        let env = value.map(|value| ("ON".to_owned(), value.to_owned())).into_iter().collect();
        let found = check(&Document::parse(text.as_bytes()), &Checks { version: None, env });
        found.iter().map(|found| found.severity).collect::<Vec<_>>()
    };
    assert_eq!(severities(Some("yes")), [Severity::Error]);
    assert_eq!(severities(Some("no")), []);
    assert_eq!(severities(None), [Severity::Warning]);
}

#[test]
fn what_haproxy_tolerates_is_a_warning() {
    for (lines, versions) in [
        ("backend b\n  log ring@nowhere local0\n", &Version::ALL[..]),
        ("backend b\n  email-alert mailers nowhere\n  server s 127.0.0.1:1\n", &Version::ALL),
        ("backend b\n  log 127.0.0.1:514 profile nowhere local0\n", &[Version::V3_2, Version::V3_4]),
        ("defaults unused\n  default_backend nowhere\ndefaults\n  mode http\nbackend b\n", &Version::ALL),
        (
            "frontend f\n  disabled\n  bind 127.0.0.1:8080\n  default_backend nowhere\nbackend b\n",
            &Version::ALL,
        ),
    ] {
        let text = format!("{START}{lines}");
        for version in versions {
            let found = found(&text, Some(same(*version)));
            assert_eq!(
                found.iter().map(|found| (found.severity, found.problem)).collect::<Vec<_>>(),
                [(Severity::Warning, Problem::UnknownReference)],
                "{version:?}: {lines:?}: {found:#?}"
            );
            let check = need!(Haproxy::check(*version, &text));
            assert!(check.accepted, "{version:?}: {lines:?}: {}", check.output);
        }
    }
}

#[test]
fn files_that_are_given_together_are_one_configuration() {
    let documents = [
        "defaults base\n  mode http\n",
        "frontend f from base\n  bind 127.0.0.1:8080\n  default_backend b\n",
        "backend b from base\n  server s 127.0.0.1:1 resolvers dns\n",
        "resolvers dns\n  nameserver n 127.0.0.1:53\nbackend b\n",
    ]
    .map(|text| Document::parse(text.as_bytes()));
    let found = check_together(&documents.each_ref(), &Checks::default());
    let said: Vec<Vec<String>> =
        found.iter().map(|found| found.iter().map(ToString::to_string).collect()).collect();
    assert_eq!(said, [vec![], vec![], vec![], vec!["3:1: another backend is called `b`".to_owned()]]);
    let alone = check(&documents[1], &Checks::default());
    assert_eq!(alone.len(), 2, "{alone:#?}");
}

#[test]
fn a_listen_section_is_a_frontend_and_a_backend_in_one() {
    accepts(
        "listen l\n  bind 127.0.0.1:8080\n  balance roundrobin\n  acl a src 10.0.0.1\n  http-request deny if a\n  tcp-response content accept\n  server s 127.0.0.1:1 check\n  use-server s if a\n  capture request header x len 10\n",
        &Version::ALL,
    );
    for (lines, text) in [
        ("  balance bogus\n", "bogus"),
        ("  server s 127.0.0.1:70000\n", "70000"),
        ("  bind 127.0.0.1:8081 bogus\n", "bogus"),
        ("  http-request deny if nothing\n", "nothing"),
        ("  use-server nobody if TRUE\n", "nobody"),
    ] {
        let text_of = format!("{START}listen l\n  bind 127.0.0.1:8080\n{lines}");
        let found = errors(&text_of, None);
        assert_eq!(
            found.iter().map(|found| found.text.as_str()).collect::<Vec<_>>(),
            [text],
            "{lines:?}: {found:#?}"
        );
        for version in Version::ALL {
            assert!(!need!(Haproxy::check(version, &text_of)).accepted, "{version:?} accepts {lines:?}");
        }
    }
}

#[test]
fn what_haproxy_reads_of_a_wrong_number_is_no_error() {
    let oldest = [Version::V2_6].as_slice();
    for (lines, versions) in [
        ("backend b\n  server s 127.0.0.1:80 weight 1x\n", Version::ALL.as_slice()),
        (
            "backend b\n  server s 127.0.0.1:80 check rise 1x fall 2x error-limit 3x\n",
            Version::ALL.as_slice(),
        ),
        ("backend b\n  server s 127.0.0.1:80 check rise x\n", &[]),
        ("backend b\n  balance first junk\n", Version::ALL.as_slice()),
        ("backend b\n  timeout server 5sx\n", Version::ALL.as_slice()),
        ("backend b\n  server s 127.0.0.1:80 inter 5sx\n", Version::ALL.as_slice()),
        ("resolvers r\n  accepted_payload_size 8192x\n  resolve_retries 3x\n", Version::ALL.as_slice()),
        ("defaults\n  log-format %nothing\n", Version::ALL.as_slice()),
        ("backend b\n  server s 127.0.0.1:80x\n", oldest),
        ("global\n  maxconn 4096x\n", oldest),
        ("global\n  tune.h2.header-table-size 4096x\n", Version::ALL.as_slice()),
        ("global\n  cpu-map 1 0x\n", Version::ALL.as_slice()),
        ("backend b\n  id 2x\n", Version::ALL.as_slice()),
        ("backend b\n  hash-balance-factor 150x\n", Version::ALL.as_slice()),
        ("frontend f\n  bind 127.0.0.1:8080\n  capture cookie a lenx 10\n", Version::ALL.as_slice()),
        ("frontend f\n  bind 127.0.0.1:8080\n  capture request header a len 5x\n", Version::ALL.as_slice()),
    ] {
        let text = format!("{START}{lines}");
        for version in Version::ALL {
            let found = errors(&text, Some(same(version)));
            assert_eq!(found.is_empty(), versions.contains(&version), "{version:?}: {lines}: {found:#?}");
            let check = need!(Haproxy::check(version, &text));
            assert_eq!(check.accepted, versions.contains(&version), "{version:?}: {lines}: {}", check.output);
        }
    }
}

#[test]
fn the_options_of_a_redirection_stand_in_any_order() {
    for rule in [
        "http-request redirect code 301 location /a",
        "http-request redirect drop-query prefix /a if TRUE",
        "redirect set-cookie a=b location /a",
        "redirect append-slash code 307 drop-query scheme https unless FALSE",
        "http-response redirect ignore-empty code 302 location /a",
    ] {
        accepts(&format!("frontend f\n  bind 127.0.0.1:8080\n  {rule}\n"), &Version::ALL);
    }
    for rule in ["http-request redirect code 301", "redirect drop-query", "http-response redirect prefix /a"]
    {
        let text = format!("{START}frontend f\n  bind 127.0.0.1:8080\n  {rule}\n");
        for version in Version::ALL {
            assert_eq!(errors(&text, Some(same(version))).len(), 1, "{version:?} {rule}");
            assert!(!need!(Haproxy::check(version, &text)).accepted, "{version:?} accepts {rule}");
        }
    }
    for (version, is_known) in Version::ALL.into_iter().zip([false, false, true, true]) {
        let text = format!("{START}backend b\n  redirect location /a keep-query\n");
        assert_eq!(errors(&text, Some(same(version))).is_empty(), is_known, "{version:?}");
        assert_eq!(need!(Haproxy::check(version, &text)).accepted, is_known, "{version:?}");
    }
}

#[test]
fn what_haproxy_ignores_in_a_proxy_that_has_no_use_for_it_is_a_warning() {
    let (older, all) = (&[Version::V2_6, Version::V3_0][..], &Version::ALL[..]);
    for (section, line, versions) in [
        ("backend b", "timeout client 5s", all),
        ("backend b", "timeout client-fin 5s", all),
        ("backend b", "option httplog", all),
        ("backend b", "option httplog clf", all),
        ("backend b", "option tcplog", all),
        ("backend b", "option dontlognull", older),
        ("backend b", "no option logasap", older),
        ("frontend f\n  bind 127.0.0.1:8080", "timeout connect 5s", all),
        ("frontend f\n  bind 127.0.0.1:8080", "timeout tunnel 5s", all),
        ("frontend f\n  bind 127.0.0.1:8080", "option httpchk GET /", all),
        ("frontend f\n  bind 127.0.0.1:8080", "option srvtcpka", older),
    ] {
        let text = format!("{START}{section}\n  {line}\n");
        for version in Version::ALL {
            let is_ignored = versions.contains(&version);
            let found = found(&text, Some(same(version)));
            let is_warned = found.iter().any(|found| found.problem == Problem::NoEffect);
            let is_refused = found.iter().any(|found| found.severity == Severity::Error);
            assert_eq!((is_warned, is_refused), (is_ignored, !is_ignored), "{version:?} {line}: {found:#?}");
            let check = need!(Haproxy::check(version, &text));
            assert_eq!(check.accepted, is_ignored, "{version:?} {line}: {}", check.output);
        }
    }
    // Both halves of a `listen` section are used.
    let text = format!("{START}listen l\n  bind 127.0.0.1:8080\n  timeout client 5s\n  timeout connect 5s\n");
    assert_eq!(found(&text, None), []);
}

#[test]
fn what_haproxy_does_not_look_at_is_no_error() {
    accepts("userlist u\n  user a\n", &Version::ALL);
    accepts("global\n  default-path config x\n", &Version::ALL);
    accepts("backend b\n  stats scope . x\n", &Version::ALL);
    accepts("backend b\n  persist rdp-cookie(name)x\n", &Version::ALL);
    accepts("backend b\n  stick-table type ip size 1m store\n", &Version::ALL);
    accepts("backend b\n  email-alert level err x\n", &Version::ALL);
    accepts("backend b\n  balance sticky x\n", &[Version::V3_0, Version::V3_2, Version::V3_4]);
    accepts("backend b\n  log-format %zz\n  unique-id-header a b\n", &Version::ALL);
    accepts("peers p\n  server\n  server a\n", &Version::ALL);
    accepts("resolvers r x\nmailers m x\nring r x\nhttp-errors e x\ndefaults d x y\n", &Version::ALL);
    accepts("global\n  set-var proc.a str(a) b\n  set-var-fmt proc.b a b\n", &Version::ALL);
    accepts_one("backend b\n  server s 127.0.0.1:80 check healthcheck\n", Version::V3_4);
    accepts_one("global\n  stats bind-process 1\n", Version::V2_6);
    accepts_one("global\n  profiling.tasks on memory\n", Version::V3_4);
    accepts_one("crt-store s\n  load crt x.pem generate-dummy on keytype RSA bits 2048\n", Version::V3_4);
    let jwt = format!("{START}crt-store s\n  load crt /nowhere.pem jwt on\n");
    assert_eq!(errors(&jwt, Some(model::Version::V3_4)), []);
    assert_ne!(errors(&jwt, Some(model::Version::V3_2)), []);
}

#[test]
fn what_haproxy_ignores_of_a_default_server_is_a_warning() {
    let newer = [Version::V3_0, Version::V3_2, Version::V3_4];
    for (option, versions) in [("id 5", &Version::ALL[..]), ("no-tlsv10", &Version::ALL), ("guid x", &newer)]
    {
        let server = option.replace("id x", "id y").replace("id 5", "id 6");
        let text = format!(
            "defaults\n  timeout connect 1s\n  timeout server 1s\nbackend b\n  default-server {option}\n  server s 127.0.0.1:1 {option}\n  server t 127.0.0.1:1 {server}\n"
        );
        for version in versions.iter().copied() {
            let checks = Checks { version: Some(same(version)), ..Checks::default() };
            let found = check(&Document::parse(text.as_bytes()), &checks);
            let found: Vec<_> =
                found.iter().map(|found| (found.severity, found.problem, found.line)).collect();
            assert_eq!(found, [(Severity::Warning, Problem::NoEffect, 5)], "{version:?} {option}");
            let check = need!(Haproxy::check(version, &text));
            assert!(
                check.accepted && check.output.contains("not accepted in default-server"),
                "{version:?} {option}: {}",
                check.output
            );
        }
    }
}
