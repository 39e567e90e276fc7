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
    ] {
        differ(&format!("{section}\n  {a}\n  {b}\n"), &format!("{section}\n  {b}\n  {a}\n"));
    }
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
        ("global", "ssl-provider-path /a", "ssl-provider default"),
        // The model has no place for the first line of these.
        ("backend b", "option httpchk OPTIONS * HTTP/1.1\\r\\nHost:\\ www", "option mysql-check"),
        ("frontend f", "stats show-node", "stats show-node n"),
    ] {
        differ(&format!("{section}\n  {a}\n  {b}\n"), &format!("{section}\n  {b}\n  {a}\n"));
    }
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
    let counts = ["first", "static-rr", "source", "uri", "hash src"];
    for balance in counts {
        differ(&text(balance, ["1", "2", "3"], ""), &text(balance, ["2", "1", "3"], ""));
    }
    for balance in ["roundrobin", "leastconn", "random", "source\n  hash-type consistent"] {
        let diff = diff(&text(balance, ["1", "2", "3"], ""), &text(balance, ["2", "1", "3"], ""));
        assert_eq!(told(&diff), [""; 0], "{balance}");
        differ(&text(balance, ["1", "2", "3"], " backup"), &text(balance, ["2", "1", "3"], " backup"));
    }
    // What comes at the end needs no text.
    let two = text("first", ["1", "2", "3"], "").replace("  server s3 10.0.0.3:1\n", "");
    assert_eq!(told(&diff(&two, &text("first", ["1", "2", "3"], ""))), ["+ backend b: server s3"]);
    let desired = text("first", ["3", "1", "2"], "");
    assert_eq!(told(&diff(&two, &desired)), ["~ text of backend b"]);
    assert_eq!(applied(&two, &desired), desired);
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
}
