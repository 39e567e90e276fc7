//! References, keywords and versions, beside what HAProxy says.

use std::fmt::Write as _;

use setpoint_conformance::TextCase;
use setpoint_haproxy::check::{Checks, check};
use setpoint_haproxy::model;
use setpoint_haproxy::text::{Diagnostic, Document, Problem, Severity};
use setpoint_testutils::{Haproxy, Version, need};

use crate::configurations::MIXED;
use crate::conformance::recording;

fn found(text: &str, version: Option<model::Version>) -> Vec<Diagnostic> {
    check(&Document::parse(text.as_bytes()), &Checks { version, ..Checks::default() })
}

pub(crate) fn same(version: Version) -> model::Version {
    match version {
        Version::V2_6 => model::Version::V2_6,
        Version::V3_0 => model::Version::V3_0,
        Version::V3_2 => model::Version::V3_2,
        Version::V3_4 => model::Version::V3_4,
    }
}

/// A proxy in which rules may stand.
fn frontend(lines: &str) -> String {
    format!(
        "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\nbackend there\n  server s1 127.0.0.1:1 check\nfrontend f\n  bind 127.0.0.1:8080\n{lines}"
    )
}

#[test]
fn an_undefined_name_is_found_and_haproxy_refuses_it() {
    for lines in [
        "  default_backend nowhere\n",
        "  use_backend nowhere if TRUE\n",
        "  http-request deny if nothing\n",
        "  http-request deny unless { path /x } || !nothing\n",
        "  acl a src 10.0.0.1\n  http-request deny if a b\n",
        "  http-request deny if late\n  acl late src 10.0.0.1\n",
        "  http-request auth unless { http_auth(nobody) }\n",
        "  errorfiles nowhere\n",
        "  http-request cache-use nothing\n",
        "backend b\n  server s 127.0.0.1:1 resolvers nowhere\n",
        "backend b\n  use-server nobody if TRUE\n  server s 127.0.0.1:1\n",
        "backend b\n  server s 127.0.0.1:1 track there/nobody\n",
        "backend b\n  stick-table type ip size 1k peers nowhere\n",
        "backend b\n  stick on src table nowhere\n",
        "backend b\n  use-fcgi-app nothing\n",
        "backend b from nowhere\n",
    ] {
        let text = frontend(lines);
        let found = found(&text, None);
        let problems: Vec<_> = found.iter().map(|found| found.problem).collect();
        assert_eq!(problems, [Problem::UnknownReference], "{lines:?}: {found:#?}");
        for version in Version::ALL {
            let check = need!(Haproxy::check(version, &text));
            assert!(!check.accepted, "{version:?} accepts {lines:?}");
        }
    }
}

#[test]
fn names_that_are_there_are_not_complained_of() {
    let text = frontend(
        "  acl a src 10.0.0.1\n  http-request deny if a or { path /x } !a\n  http-request deny if !{ ssl_fc } !a\n  http-request deny if METH_GET\n  http-request set-header X if if a\n  use_backend %[path] if a\n  default_backend there\nbackend b\n  server s 127.0.0.1:1 track there/s1\n",
    );
    assert_eq!(found(&text, None), []);
    for version in Version::ALL {
        assert_eq!(found(&text, Some(same(version))), [], "{version:?}");
        let check = need!(Haproxy::check(version, &text));
        assert!(check.accepted, "{version:?}: {}", check.output);
    }
}

#[test]
fn a_mixed_configuration_is_fine_for_the_versions_that_know_its_sections() {
    assert_eq!(found(MIXED, Some(model::Version::V3_0)), []);
    let later = found(MIXED, Some(model::Version::V3_4));
    assert_eq!(later.iter().map(|found| found.problem).collect::<Vec<_>>(), [Problem::Removed], "{later:#?}");
}

#[test]
fn unknown_keywords_are_found_with_a_hint() {
    let found = found("backend b\n  balanec roundrobin\n  no optoin httpclose\n  mode http\n", None);
    let said: Vec<_> = found.iter().map(|found| (found.to_string(), found.hint.as_deref())).collect();
    assert_eq!(
        said[0],
        ("2:3: unknown keyword `balanec` in a `backend` section".to_owned(), Some("did you mean `balance`?"))
    );
    assert!(
        found.iter().any(|found| found.problem == Problem::UnknownKeyword && found.line == 3),
        "{found:#?}"
    );
}

#[test]
fn unknown_options_of_servers_and_binds_are_found_as_haproxy_finds_them() {
    let text = "frontend f\n  bind 127.0.0.1:8080 nmae x\nbackend b\n  default-server innter 2s\n  server s 127.0.0.1:1 weight 5 chekc inter 2s\n  server t 127.0.0.1:1 set-proxy-v2-tlv-fmt(0x20) %[src] check\n";
    let found = found(text, Some(model::Version::V3_4));
    let said: Vec<_> = found.iter().map(|found| (found.to_string(), found.hint.as_deref())).collect();
    assert_eq!(
        said,
        [
            ("2:23: unknown keyword `nmae` in a `bind` line".to_owned(), Some("did you mean `name`?")),
            (
                "4:18: unknown keyword `innter` in a `default-server` line".to_owned(),
                Some("did you mean `inter`?")
            ),
            ("5:33: unknown keyword `chekc` in a `server` line".to_owned(), Some("did you mean `check`?")),
        ]
    );
    for version in Version::ALL {
        let output = need!(Haproxy::check(version, text)).output;
        for word in ["nmae", "innter", "chekc"] {
            let unknown = format!("unknown keyword '{word}'");
            assert!(output.contains(&unknown), "{version:?}: {word}: {output}");
        }
    }
}

#[test]
fn what_belongs_to_an_option_is_no_option() {
    let text = "backend b\n  server s 127.0.0.1:1 cookie chekc source 127.0.0.2 usesrc clientip check\n  server t \"${ADDRESS}\" \"${OPTIONS[*]}\" check\n";
    assert_eq!(found(text, None), []);
}

#[test]
fn what_a_version_removed_or_does_not_know_yet_is_named() {
    for (text, version, problem) in [
        ("traces\n", Version::V3_0, Problem::TooNew),
        ("healthcheck h\n  type tcp-check\n", Version::V3_2, Problem::TooNew),
        ("program p\n  command /bin/true\n", Version::V3_4, Problem::Removed),
        ("global\n  cpu-policy none\n", Version::V3_0, Problem::TooNew),
        ("backend b\n  server s 127.0.0.1:1 idle-ping 1s\n", Version::V3_0, Problem::TooNew),
        ("frontend x\n  bind 127.0.0.1:8080\nbackend x\n", Version::V3_4, Problem::DuplicateSection),
    ] {
        let found = found(text, Some(same(version)));
        assert_eq!(
            found.iter().map(|found| found.problem).collect::<Vec<_>>(),
            [problem],
            "{text:?}: {found:#?}"
        );
        let check = need!(Haproxy::check(version, text));
        assert!(!check.accepted, "{version:?} accepts {text:?}");
    }
}

#[test]
fn what_is_deprecated_is_warned_of_as_haproxy_warns() {
    for (text, version) in [
        ("global\n  master-worker\n", Version::V3_4),
        ("global\n  tune.quic.frontend.max-idle-timeout 10s\n", Version::V3_4),
        ("global\n  tune.quic.retry-threshold 10\n", Version::V3_4),
        ("global\n  tune.quic.socket-owner connection\n", Version::V3_4),
        ("backend b\n  dispatch 127.0.0.1:1\n", Version::V3_4),
        ("backend b\n  option transparent\n", Version::V3_4),
        ("backend b\n  option accept-invalid-http-response\n", Version::V3_2),
    ] {
        let found = found(text, Some(same(version)));
        let said: Vec<_> = found.iter().map(|found| (found.severity, found.problem)).collect();
        assert_eq!(said, [(Severity::Warning, Problem::Deprecated)], "{text:?}: {found:#?}");
        let output = need!(Haproxy::check(version, text)).output;
        assert!(output.contains("deprecated"), "{version:?} does not warn of {text:?}: {output}");
    }
}

#[test]
fn what_has_no_effect_in_a_section_is_warned_of_as_haproxy_warns() {
    for text in ["frontend f\n  bind 127.0.0.1:8080\n  balance roundrobin\n", "backend b\n  monitor-uri /\n"]
    {
        let found = found(text, None);
        let said: Vec<_> = found.iter().map(|found| (found.severity, found.problem)).collect();
        assert_eq!(said, [(Severity::Warning, Problem::NoEffect)], "{text:?}: {found:#?}");
        for version in Version::ALL {
            let check = need!(Haproxy::check(version, text));
            assert!(check.output.contains("ignored because"), "{version:?}: {text:?}: {}", check.output);
        }
    }
}

#[test]
fn a_name_that_is_given_twice_is_found_and_haproxy_refuses_it() {
    let newer = [Version::V3_2, Version::V3_4];
    for (text, column, problem, versions) in [
        ("backend b\nbackend b\n", "2:1", Problem::DuplicateSection, &Version::ALL[..]),
        ("frontend x\nlisten x\n", "2:1", Problem::DuplicateSection, &Version::ALL),
        ("log-forward x\nbackend x\n", "2:1", Problem::DuplicateSection, &Version::ALL),
        ("peers p\npeers p\n", "2:1", Problem::DuplicateSection, &Version::ALL),
        ("ring r\nring r\n", "2:1", Problem::DuplicateSection, &Version::ALL),
        ("http-errors e\nhttp-errors e\n", "2:1", Problem::DuplicateSection, &Version::ALL),
        (
            "fcgi-app a\n  docroot /x\nfcgi-app a\n  docroot /x\n",
            "3:1",
            Problem::DuplicateSection,
            &Version::ALL,
        ),
        ("log-profile l\nlog-profile l\n", "2:1", Problem::DuplicateSection, &newer),
        ("healthcheck h\nhealthcheck h\n", "2:1", Problem::DuplicateSection, &[Version::V3_4]),
        ("frontend x\nbackend x\n", "2:1", Problem::DuplicateSection, &[Version::V3_4]),
        (
            "backend b\n  server s 127.0.0.1:1\n  server s 127.0.0.1:2\n",
            "3:10",
            Problem::DuplicateName,
            &Version::ALL,
        ),
        (
            "ring r\n  server s 127.0.0.1:1\n  server s 127.0.0.1:2\n",
            "3:10",
            Problem::DuplicateName,
            &Version::ALL,
        ),
        (
            "resolvers r\n  nameserver n 127.0.0.1:53\n  nameserver n 127.0.0.2:53\n",
            "3:14",
            Problem::DuplicateName,
            &Version::ALL,
        ),
    ] {
        for version in versions {
            let found = found(text, Some(same(*version)));
            let said: Vec<_> = found.iter().map(|found| (found.problem, found.to_string())).collect();
            let [(named, message)] = &*said else { panic!("{version:?}: {text:?}: {found:#?}") };
            assert!(*named == problem && message.starts_with(&format!("{column}: ")), "{text:?}: {found:#?}");
            assert_eq!(found[0].severity, Severity::Error, "{text:?}");
            let check = need!(Haproxy::check(*version, text));
            assert!(!check.accepted, "{version:?} accepts {text:?}");
        }
    }
}

/// HAProxy 3.4 alerts, and goes on all the same.
#[test]
fn a_reference_to_one_of_several_defaults_is_ambiguous() {
    let text = "defaults d\ndefaults d\nbackend b from d\n";
    let found = found(text, None);
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["3:16: 2 defaults sections are called `d`"]
    );
    for version in Version::ALL {
        let output = need!(Haproxy::check(version, text)).output;
        assert!(output.contains("ambiguous defaults section name 'd'"), "{version:?}: {output}");
    }
}

#[test]
fn a_name_that_is_given_twice_where_that_is_allowed_is_not_complained_of() {
    for (text, versions) in [
        ("defaults d\ndefaults d\nbackend b\n", &Version::ALL[..]),
        ("crt-store s\ncrt-store s\nbackend b\n", &[Version::V3_0, Version::V3_2, Version::V3_4]),
        ("frontend x\n  bind 127.0.0.1:8080\nbackend x\n", &[Version::V2_6, Version::V3_0, Version::V3_2]),
        ("peers x\nbackend x\n", &Version::ALL),
        ("backend b\n.if 0\n  server s 127.0.0.1:1\n.else\n  server s 127.0.0.1:2\n.endif\n", &Version::ALL),
        ("backend b\nbackend c\n.if 0\nbackend d\n.else\nbackend d\n.endif\n", &Version::ALL),
        ("frontend f\n  bind 127.0.0.1:8080 name x\n  bind 127.0.0.1:8081 name x\n", &Version::ALL),
    ] {
        for version in versions {
            assert_eq!(found(text, Some(same(*version))), [], "{version:?}: {text:?}");
            let check = need!(Haproxy::check(*version, text));
            assert!(check.accepted, "{version:?}: {text:?}: {}", check.output);
        }
    }
}

#[test]
fn what_haproxy_passes_over_because_its_name_was_given_before_is_warned_of() {
    for text in [
        "userlist u\nuserlist u\n",
        "userlist u\n  user a insecure-password x\n  user a insecure-password y\n",
        "userlist u\n  group g\n  group g\n",
    ] {
        let found = found(text, None);
        assert_eq!(
            found.iter().map(|found| found.severity).collect::<Vec<_>>(),
            [Severity::Warning],
            "{text:?}"
        );
        for version in Version::ALL {
            let output = need!(Haproxy::check(version, text)).output;
            assert!(output.contains("ignoring duplicated"), "{version:?}: {text:?}: {output}");
        }
    }
}

/// All but rings that are not there: `haproxy -c` does not look for them, and HAProxy does not start without them.
#[test]
fn nothing_that_haproxy_accepted_in_the_recordings_is_called_an_error() {
    let mut looked_at = 0;
    for version in [model::Version::V3_0, model::Version::V3_2, model::Version::V3_4] {
        for line in recording(version, "text").lines() {
            let case: TextCase = serde_json::from_str(line).unwrap();
            if case.haproxy_ok != Some(true) || case.config.contains("log ring@") {
                continue;
            }
            looked_at += 1;
            for version in [None, Some(version)] {
                let mut errors = found(&case.config, version);
                errors.retain(|found| found.severity == Severity::Error);
                assert_eq!(errors, [], "{}", case.case);
            }
        }
    }
    assert!(looked_at > 1000, "only {looked_at} configurations");
}

#[test]
fn what_haproxy_refuses_of_a_value_is_found_with_its_place() {
    let cases = [
        ("  http-request set-var(txn.a) srcc\n", "srcc", Some("did you mean `src`?")),
        ("  http-request set-var(txn.a) src,lowre\n", "lowre", Some("did you mean `lower`?")),
        ("  http-request set-header X-A %[srcc]\n", "srcc", Some("did you mean `src`?")),
        ("  http-request deny if { pathh_beg /x }\n", "pathh_beg", Some("did you mean `path_beg`?")),
        ("  http-response set-var(txn.a) path\n", "path", None),
        ("  http-request set-var(bogus.a) src\n", "bogus", None),
        (
            "  http-request use-service promtheus-exporter\n",
            "promtheus-exporter",
            Some("did you mean `prometheus-exporter`?"),
        ),
        ("  acl a srcc 10.0.0.1\n", "srcc", Some("did you mean `src`?")),
        ("  http-request set-timeout server 1s\n", "http-request", None),
        ("backend b\n  tcp-request connection accept\n", "tcp-request", None),
        ("backend b\n  retry-on 503 conn-failur\n", "conn-failur", Some("did you mean `conn-failure`?")),
        ("backend b\n  hash-balance-factor 50\n", "50", None),
        ("backend b\n  server s 127.0.0.1:1 weight 300\n", "300", None),
        ("backend b\n  server s 127.0.0.1:70000\n", "70000", None),
        (
            "backend b\n  server s 127.0.0.1:1 check observe layer5\n",
            "layer5",
            Some("did you mean `layer4`?"),
        ),
        ("backend b\n  mode htpp\n", "htpp", Some("did you mean `http`?")),
        ("  bind 127.0.0.1\n", "127.0.0.1", Some("write `127.0.0.1:` and a port")),
        ("  http-request redirect location / code 300\n", "300", Some("did you mean `301`?")),
        ("  http-request deny deny_status 700\n", "700", None),
        ("  http-request set-log-level loud\n", "loud", None),
        ("resolvers r\n  nameserver n 127.0.0.1\n", "127.0.0.1", Some("write `127.0.0.1:` and a port")),
        ("listen b\n  mode http\n  http-request set-var(txn.a) srcc\n", "srcc", Some("did you mean `src`?")),
    ];
    for (lines, text, hint) in cases {
        let config = frontend(lines);
        let found: Vec<_> = found(&config, Some(model::Version::V3_4))
            .into_iter()
            .filter(|found| found.severity == Severity::Error)
            .collect();
        let [one] = found.as_slice() else { panic!("{lines:?}: {found:#?}") };
        assert_eq!(
            (one.problem, one.text.as_str(), one.hint.as_deref()),
            (Problem::Refused, text, hint),
            "{one}"
        );
        let check = need!(Haproxy::check(Version::V3_4, &config));
        assert!(!check.accepted, "{lines:?}");
    }
}

/// The recorded texts that HAProxy accepts, in every version.
#[test]
fn nothing_that_haproxy_accepts_is_called_refused() {
    let (mut checked, mut wrong) = (0, String::new());
    for version in model::Version::ALL.into_iter().filter(|version| *version >= model::Version::V3_0) {
        for line in crate::conformance::recording(version, "text").lines() {
            let case: TextCase = serde_json::from_str(line).unwrap();
            if case.haproxy_ok != Some(true) {
                continue;
            }
            checked += 1;
            for one in found(&case.config, Some(version)) {
                if one.problem == Problem::Refused {
                    writeln!(wrong, "{version} {}: {one}", case.case).unwrap();
                }
            }
        }
    }
    assert!(checked > 1000, "only {checked} texts were checked");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_variable_outside_of_double_quotes_is_warned_of_because_haproxy_does_not_expand_it() {
    let text = "backend b\n  errorfile 503 ${FILE}\n  server s ${HOST}:80\n  log-tag '${TAG}'\n  http-send-name-header \\${NAME}\n  option httpchk GET \"${PATH}\"\n";
    let found = found(text, None);
    let said: Vec<_> = found.iter().map(|found| (found.severity, found.to_string())).collect();
    let expected = "2:17: `${FILE}` is not expanded outside of double quotes".to_owned();
    assert_eq!(said, [(Severity::Warning, expected)]);
    assert_eq!(found[0].hint.as_deref(), Some("write it in double quotes: `\"${FILE}\"`"));
    for version in Version::ALL {
        let output = need!(Haproxy::check(version, text)).output;
        assert!(output.contains("'${FILE}'"), "{version:?}: {output}");
    }
}

fn errors_of(text: &str) -> Vec<String> {
    let found = check(&Document::parse(text.as_bytes()), &Checks::default());
    let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

#[test]
fn what_only_looks_like_a_name_is_no_error() {
    for text in [
        "frontend f\n  acl a src 10.0.0.1\n  acl b src 10.0.0.2\n  http-request deny if a OR b\n",
        "backend b\n  server track 10.0.0.1:80\n  server resolvers 10.0.0.2:80 check\n",
        "frontend f\n  http-request set-header X-A table if { path /table }\n",
        "frontend f\n  http-request set-header X-A \"the table of contents\" unless { path table x }\n",
    ] {
        assert_eq!(errors_of(text), [""; 0], "{text}");
    }
    let tracked = "frontend f\n  http-request track-sc0 src table nowhere\n";
    assert_eq!(errors_of(tracked).len(), 1);
    let named = "backend b\n  server s 10.0.0.1:80 track nowhere/s\n";
    assert_eq!(errors_of(named).len(), 1);
}

#[test]
fn what_haproxy_tolerates_is_a_warning() {
    for text in [
        "global\n  log ring@nowhere local0\n",
        "backend b\n  email-alert mailers nowhere\n",
        "frontend f\n  log 127.0.0.1 profile nowhere local0\n",
    ] {
        assert_eq!(errors_of(text), [""; 0], "{text}");
        assert!(!check(&Document::parse(text.as_bytes()), &Checks::default()).is_empty(), "{text}");
    }
}

#[test]
fn what_is_wrong_names_the_word_before_it_and_all_that_could_stand_there() {
    let found = |text: &str| {
        let checks = Checks { version: Some(model::Version::V3_4), ..Checks::default() };
        let found = check(&Document::parse(text.as_bytes()), &checks);
        let first = found.into_iter().find(|found| found.severity == Severity::Error).unwrap();
        (first.message, first.hint.unwrap_or_default().into_owned())
    };
    let (message, hint) = found("backend b\n  mode htpp\n");
    assert_eq!(message, "`mode` can't be `htpp`: HAProxy wants one of `tcp`, `http`, `log`, `spop`");
    assert_eq!(hint, "did you mean `http`?");
    let (message, hint) = found("backend b\n  balance rondrobin\n");
    for algorithm in ["roundrobin", "leastconn", "random", "uri", "hash", "hdr", "url_param", "sticky"] {
        assert!(message.contains(&format!("`{algorithm}`")), "{message}");
    }
    assert_eq!(hint, "did you mean `roundrobin`?");
    for (line, best) in [
        ("timeout sevrer 5s", "server"),
        ("http-request redirect locaton /a", "location"),
        ("redirect locaton /a", "location"),
        ("stats enabel", "enable"),
    ] {
        let (message, hint) = found(&format!("backend b\n  mode http\n  {line}\n"));
        assert_eq!(hint, format!("did you mean `{best}`?"), "{message}");
        assert!(!message.contains('_'), "{message}");
    }
    let (_, hint) = found("globl\n  maxconn 5\n");
    assert_eq!(hint, "did you mean `global`?");
}

#[test]
fn what_is_given_twice_in_several_files_names_the_other_file() {
    let (one, other) = (Document::parse(b"backend x\n"), Document::parse(b"global\nbackend x\n"));
    let found = setpoint_haproxy::check::check_together(&[&one, &other], &Checks::default());
    let hint = found[1][0].hint.clone().unwrap_or_default();
    assert_eq!(hint, "the other one is in line 1 of file 1 of those that are given");
}
