//! Differences that only HAProxy's own rules show: lines that add up, places that matter, sections that repeat.

use crate::compare::{applied, diff, told};

/// Expects a difference both ways, and that applying it leads to the other side.
fn differ(a: &str, b: &str) {
    for (current, desired) in [(a, b), (b, a)] {
        assert_ne!(told(&diff(current, desired)), [""; 0], "{current:?} {desired:?}");
        let result = applied(current, desired);
        assert_eq!(told(&diff(&result, desired)), [""; 0], "{current:?} {desired:?} {result:?}");
    }
}

// Lines that add up

#[test]
fn each_one_of_two_lines_that_add_up_counts() {
    for (section, line) in [
        ("global", "lua-load-per-thread /X.lua"),
        ("global", "ssl-default-bind-options X"),
        ("global", "ssl-default-server-options X"),
        ("global", "unsetenv X"),
        ("global", "setcap X"),
        ("frontend f", "stats admin if X"),
        ("frontend f", "monitor fail if X"),
        ("frontend f", "compression algo X"),
        ("backend b", "compression type X"),
    ] {
        let text = |first: &str, second: &str| {
            let line = |value: &str| format!("  {}\n", line.replace('X', value));
            format!("{section}\n{}{}", line(first), line(second))
        };
        differ(&text("a", "b"), &text("c", "b"));
        differ(&text("a", "b"), &text("a", "c"));
        differ(&text("a", "b"), &text("a", "b").replace(&text("a", "b")[section.len() + 1..], ""));
    }
}

#[test]
fn each_one_of_two_lines_that_set_words_of_one_thing_counts() {
    for (section, first, other, second) in [
        ("global", "profiling.tasks on", "profiling.tasks auto", "profiling.tasks lock"),
        ("global", "cpu-affinity per-core", "cpu-affinity per-group", "cpu-affinity per-thread"),
        (
            "backend b",
            "option use-small-buffers queue check",
            "option use-small-buffers queue l7-retries",
            "no option use-small-buffers queue",
        ),
    ] {
        let text = |first: &str| format!("{section}\n  {first}\n  {second}\n");
        differ(&text(first), &text(other));
        differ(&text(first), &format!("{section}\n  {second}\n"));
        differ(&text(first), &format!("{section}\n  {first}\n"));
    }
}

#[test]
fn a_cookie_that_a_redirection_sets_is_not_one_that_it_clears() {
    let text = |word: &str| format!("frontend f\n  http-request redirect location /x {word}\n");
    differ(&text("set-cookie a"), &text("clear-cookie a"));
    differ(&text("set-cookie a clear-cookie b"), &text("clear-cookie b set-cookie a"));
    for word in ["set-cookie a", "clear-cookie a"] {
        assert!(applied("frontend f\n", &text(word)).contains(word), "{word}");
    }
}

#[test]
fn a_second_line_that_haproxy_ignores_makes_no_difference() {
    let text = |second: &str| format!("global\n  maxconn 100\n  maxconn {second}\n");
    assert_eq!(told(&diff(&text("200"), &text("300"))), [""; 0]);
    differ("global\n  maxconn 100\n  maxconn 200\n", "global\n  maxconn 200\n");
}

// Places that matter

#[test]
fn the_place_of_a_default_server_among_servers_counts() {
    let (one, other) = ("  server s1 10.0.0.1:1\n", "  server s2 10.0.0.2:1\n");
    let default = "  default-server check\n";
    let above = format!("backend b\n{default}{one}{other}");
    let between = format!("backend b\n{one}{default}{other}");
    let below = format!("backend b\n{one}{other}{default}");
    differ(&above, &between);
    differ(&between, &below);
    differ(&above, &below);
}

#[test]
fn the_order_of_lines_of_which_the_last_wins_counts() {
    for (section, a, b) in [
        ("frontend f", "log-format \"%ci\"", "option httplog"),
        ("frontend f", "option tcplog", "option httplog"),
        ("backend b", "errorfile 503 /a.http", "errorloc 503 http://a"),
        ("backend b", "errorloc303 503 http://b", "errorloc302 503 http://a"),
        ("backend b", "errorfile 503 /a.http", "errorfiles e 503"),
        ("global", "lua-prepend-path /a/?.lua", "lua-load /b.lua"),
        ("global", "lua-load-per-thread /a.lua", "lua-load /b.lua"),
        ("global", "setenv A b", "unsetenv A"),
        ("global", "user a", "uid 1"),
        ("backend b", "errorfile 403 /a.http", "http-error status 403 content-type text/plain string no"),
        ("backend b", "errorfiles e 403", "http-error status 403 content-type text/plain string no"),
    ] {
        differ(&format!("{section}\n  {a}\n  {b}\n"), &format!("{section}\n  {b}\n  {a}\n"));
    }
}

#[test]
fn the_order_of_options_that_set_the_same_counts() {
    for (line, a, b) in [
        ("frontend f\n  bind :443 ssl crt x", "ssl-max-ver TLSv1.2", "force-tlsv13"),
        ("frontend f\n  bind :443 ssl crt x", "ssl-min-ver TLSv1.3", "force-tlsv12"),
        ("frontend f\n  bind :443 ssl crt x", "force-tlsv12", "force-tlsv13"),
        ("frontend f\n  bind :443 ssl crt x", "no-alpn", "alpn h2"),
        ("frontend f\n  bind unix@/s", "user a", "uid 1"),
        ("frontend f\n  bind unix@/s", "group a", "gid 1"),
        ("frontend f\n  ssl-f-use crt x", "no-alpn", "alpn h2"),
        ("backend b\n  server s 10.0.0.1:443 ssl verify none", "ssl-max-ver TLSv1.2", "force-tlsv13"),
        ("backend b\n  server s 10.0.0.1:443 ssl verify none", "force-tlsv12", "force-tlsv13"),
        ("backend b\n  default-server", "ssl-max-ver TLSv1.2", "force-tlsv13"),
        // The certificate that is loaded first is the one of clients that name none.
        ("frontend f\n  bind :443 ssl", "crt x", "crt-list y"),
        ("frontend f\n  bind :443 ssl", "crt x", "default-crt y"),
        ("frontend f\n  bind :443 ssl", "crt-list x", "default-crt y"),
        ("frontend f\n  bind :443 ssl crt x", "strict-sni", "no-strict-sni"),
        // What switches a part off ends all of the header.
        ("backend b\n  server s 10.0.0.1:80", "send-proxy-v2", "no-send-proxy-v2-ssl"),
        ("backend b\n  server s 10.0.0.1:80", "send-proxy-v2", "no-send-proxy-v2-ssl-cn"),
        ("backend b\n  server s 10.0.0.1:80", "send-proxy-v2-ssl", "no-send-proxy-v2"),
        ("backend b\n  server s 10.0.0.1:80", "send-proxy-v2-ssl", "no-send-proxy-v2-ssl-cn"),
        ("backend b\n  server s 10.0.0.1:80 send-proxy-v2", "proxy-v2-options ssl", "no-send-proxy-v2-ssl"),
        ("backend b\n  default-server", "send-proxy-v2", "no-send-proxy-v2-ssl"),
        ("backend b\n  option httpchk\n  http-check send", "uri /a", "uri-lf /b"),
        ("backend b\n  option httpchk\n  http-check send", "body a", "body-lf b"),
    ] {
        let (one, other) = (format!("{line} {a} {b}\n"), format!("{line} {b} {a}\n"));
        differ(&one, &other);
        // Whatever is made anew has them in their order.
        for text in [&one, &other] {
            let header = text.lines().next().unwrap();
            let result = applied(&format!("{header}\n"), text);
            assert_eq!(result.find(a) < result.find(b), text == &one, "{text}{result}");
            assert!(result.contains(a) && result.contains(b), "{text}{result}");
        }
    }
    // What sets different things may stand in any order.
    let bind = |options: &str| format!("frontend f\n  bind :443 ssl crt x {options}\n");
    let (one, other) = ("ssl-min-ver TLSv1.2 ssl-max-ver TLSv1.3", "ssl-max-ver TLSv1.3 ssl-min-ver TLSv1.2");
    assert_eq!(told(&diff(&bind(one), &bind(other))), [""; 0]);
    // So may what only adds to each other.
    let server = |options: &str| format!("backend b\n  server s 10.0.0.1:80 {options}\n");
    for (one, other) in [
        ("send-proxy-v2 proxy-v2-options ssl", "proxy-v2-options ssl send-proxy-v2"),
        ("send-proxy-v2 send-proxy-v2-ssl", "send-proxy-v2-ssl send-proxy-v2"),
    ] {
        assert_eq!(told(&diff(&server(one), &server(other))), [""; 0]);
    }
}

#[test]
fn a_server_that_forces_a_version_of_tls_and_excludes_it_keeps_both_words() {
    let text = |options: &str| format!("backend b\n  server s 10.0.0.1:443 ssl verify none{options}\n");
    differ(&text(" force-tlsv12 no-tlsv12"), &text(" no-tlsv12"));
    differ(&text(" force-tlsv12 no-tlsv12"), &text(" force-tlsv12"));
}

#[test]
fn the_order_of_these_lines_counts() {
    for (section, a, b) in [
        ("crt-store s", "crt-base /a", "load crt x.pem"),
        ("backend b", "option external-check", "option httpchk"),
        ("backend b", "option spop-check", "option httpchk"),
        ("frontend f", "option httpclose", "no option httpclose"),
        ("backend b", "transparent", "no option transparent"),
        ("peers p", "enabled", "disabled"),
        ("peers p\n  peer a 127.0.0.1:1", "default-server ssl verify none", "peer b 127.0.0.1:2"),
        ("backend b\n  mode log\n  balance sticky", "server a udp@127.0.0.1:1", "server b udp@127.0.0.1:2"),
        (
            "backend b\n  mode log\n  balance log-hash lower",
            "server a udp@127.0.0.1:1",
            "server b udp@127.0.0.1:2",
        ),
        ("frontend f", "capture request header a len 9", "declare capture request len 8"),
        ("frontend f", "capture request header a len 9", "http-request capture req.hdr(b) len 8"),
        ("frontend f", "declare capture request len 9", "http-request capture req.hdr(b) len 8"),
        ("frontend f", "tcp-request content capture src len 9", "http-request capture req.hdr(b) len 8"),
        ("global", "default-path origin /a", "lua-load b.lua"),
        ("global", "default-path origin /a", "ssl-dh-param-file b.pem"),
        ("global", "expose-experimental-directives", "tune.fd.edge-triggered on"),
        ("frontend f", "acl a path /a", "http-request deny if a"),
        ("frontend f", "acl a path /a", "use_backend b unless !a"),
        ("global", "ssl-provider-path /a", "ssl-provider default"),
        ("backend b", "option httpchk GET /a", "http-check send meth HEAD uri /b"),
        ("backend b", "option httpchk /a", "http-check send meth HEAD uri /b"),
        ("healthcheck h", "type httpchk GET /a", "http-check send meth HEAD uri /b"),
        ("backend b", "force-persist if { src 10.0.0.1 }", "ignore-persist if { path /x }"),
        // The model has no place for the first line of these.
        ("backend b", "option httpchk OPTIONS * HTTP/1.1\\r\\nHost:\\ www", "option mysql-check"),
        ("frontend f", "stats show-node", "stats show-node n"),
    ] {
        differ(&format!("{section}\n  {a}\n  {b}\n"), &format!("{section}\n  {b}\n  {a}\n"));
    }
}

#[test]
fn a_check_that_says_nothing_of_its_request_may_stand_anywhere() {
    let (a, b) = ("option httpchk", "http-check send meth HEAD uri /b");
    let text = |a: &str, b: &str| format!("backend b\n  {a}\n  {b}\n");
    assert_eq!(told(&diff(&text(a, b), &text(b, a))), [""; 0]);
    assert_eq!(
        told(&diff("backend c\n", &format!("backend c\n{}", text(a, b)))),
        ["+ backend b", "+ backend b: http_check 0"]
    );
}

#[test]
fn the_order_of_lines_about_different_codes_does_not_count() {
    let (a, b) = ("errorfile 503 /a.http", "errorloc302 500 http://a");
    let text = |a: &str, b: &str| format!("backend b\n  {a}\n  {b}\n");
    assert_eq!(told(&diff(&text(a, b), &text(b, a))), [""; 0]);
}

#[test]
fn the_order_of_servers_counts_where_haproxy_looks_at_it() {
    let text = |balance: &str, order: [&str; 3], more: &str| {
        let servers: String = order.iter().map(|n| format!("  server s{n} 10.0.0.{n}:1{more}\n")).collect();
        format!("backend b\n  balance {balance}\n{servers}")
    };
    let counts = ["first", "static-rr", "source", "uri", "hash src", "source\n  hash-type consistent"];
    for balance in counts {
        differ(&text(balance, ["1", "2", "3"], ""), &text(balance, ["2", "1", "3"], ""));
    }
    let by_address = "source\n  hash-type consistent\n  default-server hash-key addr";
    for balance in ["roundrobin", "leastconn", "random", by_address] {
        let diff = diff(&text(balance, ["1", "2", "3"], ""), &text(balance, ["2", "1", "3"], ""));
        assert_eq!(told(&diff), [""; 0], "{balance}");
        differ(&text(balance, ["1", "2", "3"], " backup"), &text(balance, ["2", "1", "3"], " backup"));
    }
    // The numbers that place servers in a consistent hash follow from their order, unless they are stated.
    let text_of = |servers: [&str; 2]| {
        format!(
            "backend b\n  balance source\n  hash-type consistent\n  server {}\n  server {}\n",
            servers[0], servers[1]
        )
    };
    let (one, other) = ("a 10.0.0.1:1 id 7", "b 10.0.0.2:1 id 8");
    assert_eq!(told(&diff(&text_of([one, other]), &text_of([other, one]))), [""; 0]);
    let other = "b 10.0.0.2:1";
    differ(&text_of([one, other]), &text_of([other, one]));
    // What comes at the end needs no text.
    let two = text("first", ["1", "2", "3"], "").replace("  server s3 10.0.0.3:1\n", "");
    assert_eq!(told(&diff(&two, &text("first", ["1", "2", "3"], ""))), ["+ backend b: server s3"]);
    let desired = text("first", ["3", "1", "2"], "");
    assert_eq!(told(&diff(&two, &desired)), ["~ text of backend b"]);
    assert_eq!(applied(&two, &desired), desired);
}

#[test]
fn the_place_of_global_among_the_sections_that_are_read_after_it_counts() {
    let (global, other) = ("global\n  setenv A :80\n", "frontend f\n  bind \"${A}\"\n");
    differ(&format!("{global}{other}"), &format!("{other}{global}"));
    let (userlist, end) = ("userlist u\n  user a insecure-password b\n", "backend b\n");
    differ(&format!("{userlist}{global}{end}"), &format!("{userlist}{end}{global}"));
    // It is not taken for moved where something comes or goes beside it.
    let told_between = |a: &str, b: &str| told(&diff(a, b));
    let text = format!("{global}{userlist}{end}");
    assert_eq!(told_between(&format!("{global}{end}"), &text), ["+ userlist u", "+ userlist u: user a"]);
    assert_eq!(told_between(&text, &format!("{global}{userlist}")), ["- backend b"]);
    // It is made where it counts for all others.
    assert!(applied(&format!("{userlist}{end}"), &text).starts_with(global));
    differ(&format!("{userlist}{end}"), &text);
    differ(&format!("{userlist}{end}"), &format!("{userlist}{global}{end}"));
}

#[test]
fn a_line_that_repeats_beside_lines_whose_order_counts_leaves_these_in_their_order() {
    let text = |more: &str| {
        format!("global\n  setenv A b\n  presetenv X \"y z\"\n  cpu-map 1 0\n{more}frontend f\n  bind :80\n")
    };
    differ(&text(""), &text("  cpu-map 1 0\n"));
    differ(&text("  maxconn 5\n"), &text("  cpu-map 1 0\n"));
}

#[test]
fn a_rule_behind_a_line_that_the_model_does_not_cover_comes_behind_it() {
    let rules = "  http-response set-header a b\n  http-response bogus\n";
    let more = "  http-response set-header c d\n";
    differ(&format!("backend b\n{rules}"), &format!("backend b\n{rules}{more}"));
    differ(&format!("backend b\n{rules}"), &format!("backend b\n  timeout server 5s\n{rules}{more}"));
}

#[test]
fn a_section_that_comes_beside_a_conditional_that_is_not_closed_does_not_fall_into_it() {
    let text = |new: &str| format!("backend a\n{new}frontend f\n  .if 1\n  bind :80\n");
    let new = "listen l\n  bind :81\n  server s 10.0.0.1:1\n";
    differ(&text(""), &text(new));
    differ(&text("backend c\n"), &text(new));
}

#[test]
fn a_section_that_nobody_knows_is_not_taken_for_a_line_when_the_section_above_it_goes() {
    // What is not indented opens a section where the lines above are, and is a line of its section elsewhere.
    let text = |name: &str| {
        format!("defaults\nserver\nfrontend {name}\n\tmode http\n\nstrange words here\nbackend test\n")
    };
    differ(&text("old"), &text("new"));
}

// Sections that repeat

#[test]
fn each_of_several_sections_of_a_kind_and_name_is_changed_for_itself() {
    for (section, line) in [
        ("global", "maxconn N"),
        ("global", "setenv N N"),
        ("traces", "trace h1 sink N"),
        ("crt-store", "load crt N.pem"),
        ("crt-store s", "load crt N.pem"),
        ("userlist u", "user N insecure-password N"),
    ] {
        let text = |numbers: &[&str]| {
            let sections = numbers.iter().map(|n| format!("{section}\n  {}\n", line.replace('N', n)));
            format!("defaults d\n  mode http\n{}backend z\n", sections.collect::<String>())
        };
        for (from, to) in [
            (&["1", "2", "3"][..], &["1", "9", "3"][..]),
            (&["1", "2"], &["1", "9"]),
            (&["1", "2"], &["9", "2"]),
            (&["1", "2"], &["1"]),
            (&["1", "2"], &["2"]),
            (&["1"], &["1", "2"]),
            (&["1"], &["2", "1"]),
            (&["1", "2"], &["2", "1"]),
        ] {
            let (from, to) = (text(from), text(to));
            let result = applied(&from, &to);
            let lines = |text: &str| -> Vec<String> {
                text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
            };
            assert_eq!(lines(&result), lines(&to), "{from}");
        }
    }
}

// Defaults that are none

#[test]
fn a_default_that_depends_on_something_else_is_no_default() {
    for (mode, equal) in [("tcp", true), ("http", false)] {
        let text = |option: &str| format!("frontend f\n  mode {mode}\n{option}");
        let diff = diff(&text("  no option tcp-smart-accept\n"), &text(""));
        assert_eq!(diff.is_empty(), equal, "{mode}");
    }
    let governed = |option: &str| format!("defaults\n  mode http\nfrontend f\n{option}");
    assert!(!diff(&governed("  no option tcp-smart-accept\n"), &governed("")).is_empty());
    let shared = |option: &str| format!("defaults d\n{option}frontend f from d\n  mode http\n");
    assert!(!diff(&shared("  no option tcp-smart-accept\n"), &shared("")).is_empty());
    for (global, equal) in [("", true), ("global\n  ssl-default-server-options no-tls-tickets\n", false)] {
        let text =
            |option: &str| format!("{global}backend b\n  server s 10.0.0.1:1 ssl verify none{option}\n");
        assert_eq!(diff(&text(" tls-tickets"), &text("")).is_empty(), equal, "{global}");
    }
    assert!(!diff("global\n  tune.lua.forced-yield 10000\n", "global\n").is_empty());
    // A frame is as large as a buffer where nothing is stated.
    for (size, equal) in [("", true), ("  tune.bufsize 32768\n", false)] {
        let text = |line: &str| format!("global\n{size}{line}");
        let diff = diff(&text("  tune.h2.max-frame-size 16384\n"), &text(""));
        assert_eq!(diff.is_empty(), equal, "{size}");
    }
    // HAProxy adds one to what is stated, and not to its default.
    assert!(!diff("global\n  tune.http.logurilen 1024\n", "global\n").is_empty());
    assert!(diff("global\n  tune.http.logurilen 1023\n", "global\n").is_empty());
    // Checks are in TLS where the server is, unless that is forbidden.
    let server =
        |options: &str| format!("backend b\n  server s 10.0.0.1:443 ssl verify none check{options}\n");
    assert!(!diff(&server(" no-check-ssl"), &server("")).is_empty());
    assert!(diff(&server(" no-check-send-proxy"), &server("")).is_empty());
    let server = |options: &str| format!("backend b\n  server s 10.0.0.1:80 send-proxy-v2{options}\n");
    for option in [" no-send-proxy-v2-ssl", " no-send-proxy-v2-ssl-cn"] {
        assert!(!diff(&server(option), &server("")).is_empty(), "{option}");
    }
}
