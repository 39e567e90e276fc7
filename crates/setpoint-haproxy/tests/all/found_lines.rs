//! Lines that every HAProxy refuses, found by mutating real ones.

use setpoint_testutils::{Haproxy, Version, need};

use crate::check::same;
use crate::found::{START, errors, finds};

#[test]
fn what_follows_a_fetch_or_a_converter_without_a_comma_is_found() {
    finds(
        "frontend f\n  bind 127.0.0.1:8080",
        &[
            ("http-request set-var(txn.a) src()junk", "junk"),
            ("http-request set-var(txn.a) src,ipmask(8)junk", "junk"),
            ("http-request set-header A %[src()junk]", "junk]"),
            ("http-request set-header A \"%[src ,ipmask(8)]\"", " ,ipmask(8)]"),
            ("acl a src,ipmask(8)junk 10.0.0.1", "junk"),
            ("acl a path_beg()junk /", "junk"),
            ("http-request deny if { var(txn.a)junk -m found }", "junk"),
        ],
    );
}

#[test]
fn arguments_of_fetches_and_converters_are_in_their_ranges() {
    finds(
        "frontend f\n  bind 127.0.0.1:8080",
        &[
            ("acl a payload_lv(-1,2) -m found", "-1"),
            ("acl a payload_lv(1,0) -m found", "0"),
            ("acl a req.payload_lv(0,1,x) -m found", "x"),
            ("http-request set-header A %[src,ipmask(33)]", "33"),
            ("http-request set-timeout tunnel 99999999999s", "99999999999s"),
            ("acl a req_ssl_ver gt three", "three"),
        ],
    );
    assert_eq!(errors("frontend f\n  acl a req_ssl_ver gt 3.1\n  acl b req.ssl_ver 3:3.4 3\n", None), []);
}

#[test]
fn an_acl_that_a_fetch_names_has_to_stand_above_its_line() {
    for (lines, wrong) in [
        ("acl a acl(none)", "acl(none)"),
        ("http-request deny if { acl(!none) }", "acl(!none)"),
        ("http-request set-var(txn.a) acl(below)\n  acl below src 10.0.0.1", "acl(below)"),
        ("acl a acl", "acl"),
    ] {
        let text = format!("{START}frontend f\n  bind 127.0.0.1:8080\n  {lines}\n");
        for version in [Version::V3_0, Version::V3_2, Version::V3_4] {
            let found = errors(&text, Some(same(version)));
            assert_eq!(found.iter().map(|found| found.text.as_str()).collect::<Vec<_>>(), [wrong], "{lines}");
            assert!(!need!(Haproxy::check(version, &text)).accepted, "{version:?} accepts {lines:?}");
        }
    }
    let fine = "  acl b src 10.0.0.1\n  acl a acl(b,!TRUE)\n  http-request deny if { acl(a) }\n";
    let text = format!("{START}frontend f\n  bind 127.0.0.1:8080\n{fine}");
    for version in [Version::V3_0, Version::V3_2, Version::V3_4] {
        assert_eq!(errors(&text, Some(same(version))), [], "{version:?}");
        assert!(need!(Haproxy::check(version, &text)).accepted, "{version:?}");
    }
}

#[test]
fn what_lua_registers_is_missed_where_nothing_loads_lua() {
    finds(
        "frontend f\n  bind 127.0.0.1:8080",
        &[
            ("http-request set-var(txn.a) lua.mine", "lua.mine"),
            ("http-request set-header A %[src,lua.mine]", "%[src,lua.mine]"),
            ("use_backend %[lua.mine]", "%[lua.mine]"),
        ],
    );
    let loaded = format!("global\n  lua-load /x.lua\n{START}frontend f\n  use_backend %[lua.mine]\n");
    assert_eq!(errors(&loaded, None), []);
}

#[test]
fn a_scope_stands_alone_in_its_line() {
    finds(
        "frontend f\n  bind 127.0.0.1:8080",
        &[
            ("[a] http", "http"),
            ("[a]b", "[a]b"),
            ("[a", "[a"),
            ("[]", "[]"),
            (".if 0\n  [a] b\n.endif", "b"),
        ],
    );
    assert_eq!(errors("[a]\nfrontend f\n  [b] # why\n  [c]\n", None), []);
}

#[test]
fn what_a_section_or_a_word_takes_nothing_else_for_is_found() {
    finds("ring r", &[("maxlen 0", "0"), ("size 0", "0")]);
    finds(
        "backend b",
        &[
            ("log-format a b", "b"),
            ("unique-id-format", ""),
            ("option smtpchk EHLO a b", "b"),
            ("tcp-check connect port 0", "0"),
            ("http-check connect port 65536", "65536"),
            ("stick-table type ip size 1k store gpc9", "gpc9"),
            ("stick-table type ip size 1k store sess_cnt,gpc0(1)", "gpc0(1)"),
            ("stick-table type ip size 1k store http_req_rate", "http_req_rate"),
        ],
    );
    finds(
        "frontend f\n  bind 127.0.0.1:8080",
        &[
            ("external-check", ""),
            ("external-check external-check", "external-check"),
            ("declare capture request len 0", "0"),
        ],
    );
    finds(
        "global",
        &[
            ("cpu-map values 2", "values"),
            ("cpu-map 1x 2", "1x"),
            ("cpu-map auto:1/1-4x 0-3", "auto:1/1-4x"),
            ("ssl-default-bind-options TLSv1.2 ssl-min-ver", "TLSv1.2"),
            ("ssl-default-bind-options ssl-min-ver TLSv1.9", "TLSv1.9"),
            ("ssl-default-server-options no-sslv3 ssl-max-ver", "ssl-max-ver"),
            ("log 127.0.0.1:99999 local0", "99999"),
        ],
    );
}

#[test]
fn values_that_came_with_a_version_are_looked_at_from_it_on() {
    let newer = [Version::V3_2, Version::V3_4];
    for (section, line, wrong, versions) in [
        ("global", "tune.h2.log-errors to", "to", &newer[1..]),
        ("global", "cpu-set drop-corex 5", "drop-corex", &newer[..]),
        ("global", "http-err-codes 400 -1.5", "-1.5", &newer),
        ("global", "http-err-codes +0,505", "+0,505", &newer),
        ("global", "http-fail-codes 400-600", "400-600", &newer),
        ("global", "log 127.0.0.1:514x local0", "514x", &newer),
        ("log-profile p", "on any drop if", "if", &newer),
        ("backend b", "server s quic4@127.0.0.1:1 ssl verify none", "quic4@127.0.0.1:1", &newer[1..]),
    ] {
        let text = format!("{START}{section}\n  {line}\n");
        for version in versions {
            let found = errors(&text, Some(same(*version)));
            assert_eq!(found.iter().map(|found| found.text.as_str()).collect::<Vec<_>>(), [wrong], "{line}");
            assert!(!need!(Haproxy::check(*version, &text)).accepted, "{version:?} accepts {line:?}");
        }
    }
}

#[test]
fn a_protocol_that_the_mode_of_its_proxy_does_not_speak_is_found() {
    finds("frontend f\n  mode tcp\n  bind 127.0.0.1:8080", &[("bind 127.0.0.1:8081 proto h2", "proto")]);
    finds("frontend f\n  bind 127.0.0.1:8080", &[("bind 127.0.0.1:8081 proto none", "proto")]);
    finds("backend b", &[("server s 127.0.0.1:1 proto none", "proto")]);
    finds(
        "backend b\n  mode tcp",
        &[("server s 127.0.0.1:1 proto h2", "proto"), ("server s 127.0.0.1:1 proto fcgi", "proto")],
    );
    // The mode of the `defaults` that are named counts, whatever others say.
    finds("defaults d\n  mode tcp\nbackend b from d", &[("server s 127.0.0.1:1 proto h1", "proto")]);
    let text = format!(
        "{START}defaults d\n  mode tcp\nbackend b from d\n  server s 127.0.0.1:1 proto none\nlisten l\n  mode http\n  bind 127.0.0.1:8080 proto h1\n  server s 127.0.0.1:1 proto h2\n"
    );
    for version in Version::ALL {
        assert_eq!(errors(&text, Some(same(version))), [], "{version:?}");
        assert!(need!(Haproxy::check(version, &text)).accepted, "{version:?}");
    }
}

#[test]
fn options_that_exclude_each_other_are_found() {
    finds(
        "backend b",
        &[
            ("cookie c rewrite indirect", "rewrite"),
            ("cookie c indirect rewrite nocache", "rewrite"),
            ("cookie c insert prefix", "insert"),
        ],
    );
}

#[test]
fn the_address_of_an_agent_is_a_host_without_a_port() {
    finds(
        "backend b",
        &[
            ("server s 127.0.0.1:1 agent-addr 127.0.0.2:80", "127.0.0.2:80"),
            ("server s 127.0.0.1:1 agent-addr ipv4@127.0.0.2", "ipv4@127.0.0.2"),
            ("server s 127.0.0.1:1 agent-addr 127.0.0.256", "127.0.0.256"),
            ("default-server agent-addr /run/s", "/run/s"),
        ],
    );
    for address in ["127.0.0.2", "127.1", "::1", "[::1]", "*", "localhost"] {
        let text = format!("{START}backend b\n  server s 127.0.0.1:1 agent-addr {address}\n");
        assert_eq!(errors(&text, None), [], "{address}");
        for version in Version::ALL {
            assert!(need!(Haproxy::check(version, &text)).accepted, "{version:?}: {address}");
        }
    }
}

#[test]
fn filters_of_bandwidth_are_known_from_a_version_on() {
    for direction in ["in", "out"] {
        let line = format!("filter bwlim-{direction} x default-limit 10 default-period 10");
        let text = format!("{START}backend b\n  {line}\n");
        for version in Version::ALL {
            let found = errors(&text, Some(same(version)));
            assert_eq!(found.len(), usize::from(version == Version::V2_6), "{version:?}: {found:?}");
            assert_eq!(need!(Haproxy::check(version, &text)).accepted, found.is_empty(), "{version:?}");
        }
    }
}

#[test]
fn a_backend_of_another_mode_gets_no_requests() {
    let backends = "backend t\n  mode tcp\nbackend h\n  mode http\n";
    for (mode, line, wrong) in [
        ("http", "default_backend t", Some("t")),
        ("http", "use_backend t if TRUE", Some("t")),
        ("http", "default_backend h", None),
        ("tcp", "default_backend h", None),
        ("tcp", "use_backend t if TRUE", None),
    ] {
        for kind in ["frontend", "listen"] {
            let text = format!("{START}{backends}{kind} f\n  mode {mode}\n  bind 127.0.0.1:8080\n  {line}\n");
            for version in Version::ALL {
                let found = errors(&text, Some(same(version)));
                let at: Vec<&str> = found.iter().map(|found| found.text.as_str()).collect();
                assert_eq!(at, wrong.into_iter().collect::<Vec<_>>(), "{text}");
                assert_eq!(
                    need!(Haproxy::check(version, &text)).accepted,
                    wrong.is_none(),
                    "{version:?}: {text}"
                );
            }
        }
    }
    // Before 3.3, a frontend can have the name of its backend.
    let text = format!("{START}backend f\nfrontend f\n  bind 127.0.0.1:8080\n  default_backend f\n");
    for version in [Version::V2_6, Version::V3_0, Version::V3_2] {
        assert_eq!(errors(&text, Some(same(version))), [], "{version:?}");
        assert!(need!(Haproxy::check(version, &text)).accepted, "{version:?}");
    }
}

#[test]
fn numbers_are_read_as_haproxy_reads_them() {
    for line in [
        "acl a status eq -- 200",
        "acl a status 3-5 5- -5 :- --5",
        "balance uri depth 3x len 2y",
        "server s 127.0.0.053",
        "server s 127.0.0.1:1 addr 127.0.0.1",
        "server s 127.0.0.1:1 addr /run/s",
        "server s 127.0.0.1:1 addr :::80",
        "http-request capture src len 1x",
        "http-request capture src len 1x if TRUE",
    ] {
        let text = format!("{START}listen b\n  bind 127.0.0.1:8080\n  {line}\n");
        assert_eq!(errors(&text, None), [], "{line}");
        for version in Version::ALL {
            assert_eq!(errors(&text, Some(same(version))), [], "{version:?}: {line}");
            let check = need!(Haproxy::check(version, &text));
            assert!(check.accepted, "{version:?}: {line}: {}", check.output);
        }
    }
    finds(
        "listen b\n  bind 127.0.0.1:8080",
        &[
            ("acl a status 5-3", "5-3"),
            ("acl a status :", ":"),
            ("acl a status +5", "+5"),
            ("acl a status 5--", "5--"),
            ("balance hash src ,x", ",x"),
            ("server s 127.0.0.1:1 addr ::1", ":"),
            ("server s 127.0.0.1:1 addr 127.0.0.1:80-90", "80-90"),
            ("server s 127.0.0.1:1 addr 127.0.0.1:+1", "127.0.0.1:+1"),
            ("bind a:b:80", "a:b"),
            ("bind :x:80", ":x"),
            ("bind 127.0.0.1:$PORT", "$PORT"),
            ("bind 127.0.0.089:80", "127.0.0.089"),
            ("bind 127.0.0.1:1 crt-ignore-err 404,410", "404,410"),
            ("mode tcp\n  server s 127.0.0.1:1 redir http://x", "redir"),
        ],
    );
    finds(
        "global",
        &[("unix-bind 0400", "0400"), ("ssl-server-verify x", "x"), ("httpclient.ssl.verify", "")],
    );
    finds("defaults", &[("unique-id-format", ""), ("balance hash src ,x", ",x")]);
}

#[test]
fn what_came_with_a_version_is_refused_before_it() {
    let old = &[Version::V2_6][..];
    for (section, line, refusing) in [
        ("frontend f", "bind 127.0.0.1:8080 shards by-group", old),
        ("global", "tune.buffers.reserve", old),
        ("global", "setenv A b c", &[Version::V3_0, Version::V3_2, Version::V3_4][..]),
        ("global", "mworker-max-reloads", &[Version::V3_0, Version::V3_2, Version::V3_4][..]),
        ("backend b", "log stderr format raw profile p daemon notice", &[Version::V2_6, Version::V3_0][..]),
        ("backend b", "filter trace max-fwd 100", &[Version::V2_6, Version::V3_0, Version::V3_2][..]),
        ("frontend f", "http-request set-timeout client 20s", old),
        ("defaults d", "http-request set-timeout client 20s", old),
        (
            "frontend f\n  mode tcp",
            "quic-initial accept",
            &[Version::V2_6, Version::V3_0, Version::V3_2, Version::V3_4][..],
        ),
    ] {
        let text = format!("{START}{section}\n  {line}\n");
        for version in Version::ALL {
            let found = errors(&text, Some(same(version)));
            assert_eq!(!found.is_empty(), refusing.contains(&version), "{version:?}: {line}: {found:?}");
            let check = need!(Haproxy::check(version, &text));
            assert_eq!(check.accepted, found.is_empty(), "{version:?}: {line}: {}", check.output);
        }
    }
}
