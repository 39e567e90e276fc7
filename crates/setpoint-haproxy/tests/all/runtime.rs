//! The verdict of the comparator beside what a running HAProxy really does.

use setpoint_haproxy::compare::compare;
use setpoint_haproxy::model::{self, Context};
use setpoint_haproxy::text::Document;
use setpoint_testutils::{Haproxy, Version, need};

pub(crate) fn context(version: Version) -> Context {
    Context::new(match version {
        Version::V2_6 => model::Version::V2_6,
        Version::V3_0 => model::Version::V3_0,
        Version::V3_2 => model::Version::V3_2,
        Version::V3_4 => model::Version::V3_4,
    })
}

/// The backends that are tried: each with its settings, and with two servers.
const BALANCES: [&str; 8] = [
    "balance roundrobin",
    "balance leastconn",
    "balance random",
    "balance first",
    "balance static-rr",
    "balance source",
    "balance uri",
    "balance source\n  hash-type consistent",
];

fn backend(index: usize, balance: &str, servers: &str) -> String {
    format!("backend b{index}\n  {balance}\n  server s1 127.0.0.1:1\n{servers}")
}

/// What the comparator says of the one operation between two texts.
pub(crate) fn verdict(version: Version, current: &str, desired: &str) -> bool {
    let (current, desired) = (Document::parse(current.as_bytes()), Document::parse(desired.as_bytes()));
    let diff = compare(&current, &desired, &context(version)).unwrap();
    assert_eq!(diff.operations().len(), 1, "{:?}", diff.operations());
    diff.is_possible_at_runtime()
}

#[tokio::test]
async fn servers_change_and_come_at_runtime_exactly_where_the_comparator_says_so() {
    for version in Version::ALL {
        let haproxy = Haproxy::start_with(version, |port| {
            let backends = BALANCES.iter().enumerate().map(|(index, balance)| backend(index, balance, ""));
            format!("frontend main\n  bind {}\n{}", port.address(), backends.collect::<String>())
        })
        .await;
        let haproxy = need!(haproxy);
        for (index, balance) in BALANCES.iter().enumerate() {
            let current = backend(index, balance, "");

            let weighted = current.replace("127.0.0.1:1", "127.0.0.1:1 weight 7");
            let answer = haproxy.runtime(&format!("set server b{index}/s1 weight 7")).await.unwrap();
            let done = answer.trim().is_empty();
            assert_eq!(verdict(version, &current, &weighted), done, "{version:?} {balance}: {answer}");

            let moved = current.replace("127.0.0.1:1", "127.0.0.2:2");
            let answer =
                haproxy.runtime(&format!("set server b{index}/s1 addr 127.0.0.2 port 2")).await.unwrap();
            assert_eq!(
                verdict(version, &current, &moved),
                answer.contains("changed"),
                "{version:?} {balance}: {answer}"
            );

            for (name, server) in [("s2", "127.0.0.1:3"), ("s3", "127.0.0.1:4 cookie c")] {
                let desired = backend(index, balance, &format!("  server {name} {server}\n"));
                let add = format!("experimental-mode on; add server b{index}/{name} {server}");
                let answer = haproxy.runtime(&add).await.unwrap();
                let done = answer.contains("New server registered");
                assert_eq!(
                    verdict(version, &current, &desired),
                    done,
                    "{version:?} {balance} {server}: {answer}"
                );
            }
            // A name that happens to be known at that instant is not promised.
            let named = backend(index, balance, "  server s4 localhost:5\n");
            assert!(!verdict(version, &current, &named));
        }
    }
}

/// Whether HAProxy knows an option of a server, and accepts it of one that is added: it says so before it looks for values.
async fn accepts_option(haproxy: &Haproxy, option: &str) -> Option<bool> {
    let add = format!("experimental-mode on; add server b/x-{option} 127.0.0.1:1 {option}");
    let answer = haproxy.runtime(&add).await.unwrap();
    (!answer.contains("unknown keyword")).then(|| !answer.contains("not accepted for dynamic"))
}

#[tokio::test]
async fn every_option_of_a_server_can_be_added_at_runtime_exactly_where_its_row_says_so() {
    for version in Version::ALL {
        let haproxy = Haproxy::start_with(version, |port| {
            format!("frontend main\n  bind {}\nbackend b\n  balance roundrobin\n", port.address())
        })
        .await;
        let haproxy = need!(haproxy);
        let (mut asked, mut failures) = (0, Vec::new());
        let options = setpoint_haproxy::table::directives()
            .options(model::ObjectKind::Server, context(version).haproxy);
        for (option, dynamic) in options {
            if let Some(accepted) = accepts_option(&haproxy, option).await {
                asked += 1;
                if accepted != dynamic {
                    failures.push(format!("{version:?} {option}: HAProxy {accepted}, its row {dynamic}"));
                }
            }
        }
        assert!(asked > 80, "{version:?}: only {asked}");
        assert!(failures.is_empty(), "{failures:#?}");
    }
}

#[test]
fn a_server_with_an_option_that_can_not_be_added_comes_with_a_reload() {
    let base = "defaults d\n  mode http\nbackend b from d\n  balance roundrobin\n  server s1 127.0.0.1:1\n";
    for option in [
        "redir /x",
        "stick",
        "non-stick",
        "namespace n",
        "enabled",
        "tcp-ut 1s",
        "socks4 10.0.0.1:1",
        "max-reuse 3",
        "resolve-prefer ipv4",
        "init-addr none",
        "no-check",
        "track b/s3",
    ] {
        for text in
            [format!("{base}  server s2 127.0.0.1:2 {option}\n"), format!("{base}  server s2 127.0.0.1:2\n")]
        {
            // What `default-server` says has to be told as well.
            let given = text.contains(option);
            let default = if given { String::new() } else { format!("  default-server {option}\n") };
            let (current, desired) = (
                base.replace("  server s1", &format!("{default}  server s1")),
                text.replace("  server s1", &format!("{default}  server s1")),
            );
            assert!(!verdict(Version::V3_4, &current, &desired), "{desired}");
        }
    }
    let base = &base.replace("127.0.0.1:1", "127.0.0.1:1 check");
    assert!(verdict(Version::V3_4, base, &format!("{base}  server s2 127.0.0.1:2 track b/s1\n")));
}

#[test]
fn what_is_to_be_added_comes_with_what_default_server_says() {
    let base = "defaults d\n  default-server inter 3s weight 7\nbackend b from d\n  default-server weight 5 check\n  server s1 127.0.0.1:1\n";
    let (current, desired) =
        (Document::parse(base.as_bytes()), format!("{base}  server s2 127.0.0.1:2 rise 4\n"));
    let diff = compare(&current, &Document::parse(desired.as_bytes()), &Context::default()).unwrap();
    let effective = diff.operations()[0].effective.as_ref().unwrap().to_json();
    let expected = serde_json::json!({
        "name": "s2", "address": "127.0.0.1", "port": 2, "rise": 4, "weight": 5, "check": "enabled", "inter": 3000,
    });
    assert_eq!(effective, expected);
    // HAProxy ignores some options of `default-server`.
    let base = "backend b\n  default-server no-tlsv13 guid x force-tlsv12\n  server s1 127.0.0.1:1\n";
    let desired = format!("{base}  server s2 127.0.0.1:2\n");
    let (current, desired) = (Document::parse(base.as_bytes()), Document::parse(desired.as_bytes()));
    let diff = compare(&current, &desired, &Context::new(model::Version::V3_0)).unwrap();
    let effective = diff.operations()[0].effective.as_ref().unwrap().to_json();
    let expected =
        serde_json::json!({ "name": "s2", "address": "127.0.0.1", "port": 2, "force_tlsv12": "enabled" });
    assert_eq!(effective, expected);
}

#[tokio::test]
async fn a_server_that_an_expression_names_is_deleted_with_a_reload_as_haproxy_says() {
    for version in Version::ALL {
        let text = |server: &str, path: &str| {
            format!(
                "backend b\n  balance roundrobin\n  server s1 127.0.0.1:1\n{server}backend c\n  http-request deny if {{ srv_is_up({path}) }}\n"
            )
        };
        let named = "  server s2 127.0.0.1:2\n";
        let haproxy = Haproxy::start_with(version, |port| {
            let frontend = format!("frontend main\n  mode http\n  bind {}\n", port.address());
            format!("{frontend}{}", text(named, "b/s2").replace("backend c\n", "backend c\n  mode http\n"))
        })
        .await;
        let haproxy = need!(haproxy);
        haproxy.runtime("set server b/s2 state maint").await.unwrap();
        let answer = haproxy.runtime("experimental-mode on; del server b/s2").await.unwrap();
        assert!(!answer.contains("deleted"), "{version:?}: {answer}");
        assert!(!verdict(version, &text(named, "b/s2"), &text("", "b/s2")));
        assert!(verdict(version, &text(named, "b/s1"), &text("", "b/s1")));
        let own = "backend b\n  balance roundrobin\n  http-request deny if { srv_is_up(s2) }\n";
        assert!(!verdict(version, &format!("{own}{named}"), own));
    }
}

#[tokio::test]
async fn a_backend_is_added_at_runtime_exactly_in_the_modes_that_haproxy_accepts() {
    let version = Version::V3_4;
    let defaults = |mode: &str| if mode.is_empty() { String::new() } else { format!("  mode {mode}\n") };
    let cases: Vec<(&str, &str)> = ["", "tcp", "http", "log", "spop"]
        .into_iter()
        .flat_map(|a| ["", "tcp", "http", "log"].map(|b| (a, b)))
        .collect();
    let named: String = ["", "tcp", "http", "log", "spop"]
        .iter()
        .map(|mode| format!("defaults d{mode}\n{}", defaults(mode)))
        .collect();
    let haproxy = Haproxy::start_with(version, |port| {
        format!("frontend main\n  bind {}\n{named}backend x\n  mode http\n", port.address())
    })
    .await;
    let haproxy = need!(haproxy);
    for (index, (governing, own)) in cases.into_iter().enumerate() {
        let mode = if own.is_empty() { String::new() } else { format!(" mode {own}") };
        let add = format!("experimental-mode on; add backend n{index} from d{governing}{mode}");
        let answer = haproxy.runtime(&add).await.unwrap();
        let done = answer.contains("New backend");
        let desired = format!("{named}backend n{index} from d{governing}\n{}", defaults(own));
        assert_eq!(verdict(version, &named, &desired), done, "{governing:?} {own:?}: {answer}");
    }
}

#[test]
fn a_changed_comment_needs_no_reload() {
    for (section, line) in [
        ("backend b", "server s1 127.0.0.1:1"),
        ("frontend f", "bind :80 name a"),
        ("frontend f", "http-request deny"),
    ] {
        let text = |comment: &str| format!("{section}\n  {line} # {comment}\n");
        assert!(verdict(Version::V3_4, &text("one"), &text("two")), "{line}");
    }
    assert!(verdict(Version::V3_4, "backend b # one\n", "backend b # two\n"));
}

#[tokio::test]
async fn what_is_printed_after_any_operation_is_accepted_by_haproxy() {
    let current = "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\nfrontend f\n  bind 127.0.0.1:8080 name a\n  acl a src 10.0.0.1\n  http-request deny if a\n  default_backend b\nbackend b\n  balance roundrobin\n  server s1 127.0.0.1:1 check\n";
    let desired = "defaults\n  mode http\n  timeout connect 5s\n  timeout client 6s\n  timeout server 5s\n  option httplog\nfrontend f\n  bind 127.0.0.1:8080 name b\n  acl a src 10.0.0.2\n  acl c path_beg /c\n  http-request set-header X-Y \"two words\" if c\n  http-request deny if a\n  use_backend n if c\n  default_backend b\nbackend b\n  balance leastconn\n  server s2 127.0.0.1:2 check inter 2s\nbackend n\n  http-request set-path %[path,regsub(^/c,)]\n  server s1 127.0.0.1:1\n";
    for version in Version::ALL {
        let cx = context(version);
        let mut document = Document::parse(current.as_bytes());
        let diff = compare(&document, &Document::parse(desired.as_bytes()), &cx).unwrap();
        for operation in diff.operations() {
            document = document.apply(operation, &cx).unwrap();
        }
        let text = String::from_utf8(document.print()).unwrap();
        let check = need!(Haproxy::check(version, &text));
        assert!(check.accepted, "{version:?}\n{text}\n{}", check.output);
        let formatted = String::from_utf8(document.formatted().print()).unwrap();
        assert!(Haproxy::check(version, &formatted).unwrap().accepted, "{formatted}");
    }
}

#[test]
fn a_formatted_configuration_is_to_haproxy_what_it_was() {
    let odd = "global\nmaxconn   10\n\n\n\tlog stdout local0 # why\ndefaults\n mode\thttp\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n  backend b # here\r\n\tserver  s1   127.0.0.1:1 \r\n.if 1\n http-request deny if { path \"/a  b\" } # x\n.endif\n";
    let formatted = String::from_utf8(Document::parse(odd.as_bytes()).formatted().print()).unwrap();
    assert_ne!(odd, formatted);
    for version in Version::ALL {
        for text in [odd, &formatted] {
            let check = need!(Haproxy::check(version, text));
            assert!(check.accepted, "{version:?}\n{text}\n{}", check.output);
        }
    }
}

/// What is tried on a server that is added, beside what HAProxy starts with.
const STARTED: &str = "ring r\n  format rfc5424\n  server s1 127.0.0.1:1\nbackend web\n  mode http\n  balance roundrobin\n  server s1 127.0.0.1:1\n  server s2 127.0.0.1:2 check\n  server s3 unix@/tmp/s3\nbackend logs\n  mode log\n  balance roundrobin\n  server s1 udp@127.0.0.1:1\n";

#[tokio::test]
async fn sections_modes_addresses_and_files_decide_at_runtime_as_haproxy_says() {
    let haproxy = Haproxy::start_with(Version::V3_4, |port| {
        format!("{STARTED}frontend main\n  bind {}\n", port.address())
    })
    .await;
    let haproxy = need!(haproxy);
    let added = |section: &str, server: &str| {
        let end = STARTED.find(section).unwrap() + section.len();
        let (before, after) = STARTED.split_at(end);
        let (lines, rest) = match after.find("\nbackend") {
            Some(at) => after.split_at(at + 1),
            None => (after, ""),
        };
        format!("{before}{lines}  server n {server}\n{rest}")
    };
    for (section, server) in [
        ("ring r", "127.0.0.1:9"),
        ("backend logs", "127.0.0.1:9"),
        ("backend web", "127.0.0.1:9"),
        ("backend web", "127.0.0.1:9 ssl verify none crt /nope.pem"),
        ("backend web", "127.0.0.1:9 ssl ca-file /nope.pem"),
        ("backend web", "127.0.0.1:9 track s1"),
        ("backend web", "127.0.0.1:9 track web/s2"),
    ] {
        let name = section.split(' ').nth(1).unwrap();
        let add = format!("experimental-mode on; add server {name}/n {server}");
        let answer = haproxy.runtime(&add).await.unwrap();
        let done = answer.contains("New server registered");
        let said = verdict(Version::V3_4, STARTED, &added(section, server));
        assert_eq!(said, done, "{section} {server}: {answer}");
        if done {
            let delete = format!("experimental-mode on; del server {name}/n");
            haproxy.runtime(&delete).await.unwrap();
        }
    }
    let answer = haproxy.runtime("set server web/s3 addr 127.0.0.1 port 9").await.unwrap();
    let moved = STARTED.replace("unix@/tmp/s3", "127.0.0.1:9");
    assert_eq!(verdict(Version::V3_4, STARTED, &moved), answer.contains("changed"), "{answer}");
}

/// The section of the servers whose addresses are tried, after a `global` section with some line.
fn web(global: &str, servers: &str) -> String {
    format!("global\n{global}backend web\n  mode http\n  balance roundrobin\n{servers}")
}

#[tokio::test]
async fn addresses_of_every_family_are_added_at_runtime_exactly_where_haproxy_accepts_them() {
    let addresses = [
        "127.0.0.1:9",
        "127.0.0.1",
        "[::1]:9",
        ":9",
        "*:9",
        "ipv4@127.0.0.1:9",
        "ipv6@[::1]:9",
        "tcp4@127.0.0.1:9",
        "unix@/tmp/x",
        "/tmp/x",
        "abns@x",
        "quic4@127.0.0.1:9 ssl verify none alpn h3",
        "quic6@[::1]:9 ssl verify none alpn h3",
        "udp@127.0.0.1:9",
        "fd@3",
    ];
    for (version, global) in Version::ALL
        .into_iter()
        .flat_map(|version| [(version, ""), (version, "  expose-experimental-directives\n")])
    {
        let haproxy = Haproxy::start_with(version, |port| {
            format!("{}frontend main\n  bind {}\n", web(global, ""), port.address())
        })
        .await;
        let haproxy = need!(haproxy);
        for (number, server) in addresses.iter().enumerate() {
            let add = format!("experimental-mode on; add server web/n{number} {server}");
            let answer = haproxy.runtime(&add).await.unwrap();
            let is_accepted = answer.contains("New server registered");
            let current = web(global, "");
            let is_promised = verdict(version, &current, &web(global, &format!("  server n {server}\n")));
            // HAProxy 3.0 takes servers of QUIC, and 3.0 to 3.1 those of datagrams, which it can't reach.
            let is_useless =
                version == Version::V3_0 && (server.starts_with("quic") || server.starts_with("udp"));
            assert_eq!(is_promised, is_accepted && !is_useless, "{version:?} {global:?} {server}: {answer}");
        }
    }
}

#[tokio::test]
async fn an_address_is_changed_at_runtime_exactly_where_haproxy_changes_it() {
    let before = [
        "127.0.0.1:1",
        "127.0.0.1",
        "ipv4@127.0.0.1:1",
        "[::1]:1",
        "unix@/tmp/x",
        "/tmp/x",
        "abns@x",
        "127.0.0.1:1 resolvers dns",
    ];
    for version in Version::ALL {
        let servers: String = before
            .iter()
            .enumerate()
            .map(|(number, server)| format!("  server s{number} {server}\n"))
            .collect();
        let haproxy = Haproxy::start_with(version, |port| {
            format!(
                "resolvers dns\n  nameserver a 127.0.0.1:53\n{}frontend main\n  bind {}\n",
                web("", &servers),
                port.address()
            )
        })
        .await;
        let haproxy = need!(haproxy);
        for (number, server) in before.iter().enumerate() {
            let set = format!("set server web/s{number} addr 127.0.0.2 port 9");
            let answer = haproxy.runtime(&set).await.unwrap();
            let options = server.split_once(' ').map_or(String::new(), |(_, options)| format!(" {options}"));
            let line = |address: &str| web("", &format!("  server s {address}\n"));
            let is_promised = verdict(version, &line(server), &line(&format!("127.0.0.2:9{options}")));
            assert_eq!(is_promised, answer.contains("changed"), "{version:?} {server}: {answer}");
        }
    }
}

#[tokio::test]
async fn servers_of_a_disabled_backend_are_neither_added_nor_changed_nor_deleted_at_runtime() {
    let (one, other) = ("  server s1 127.0.0.1:1\n", "  server s2 127.0.0.1:2\n");
    let both = format!("{one}{other}");
    let changes = [(one, &*both), (&*both, one), (one, "  server s1 127.0.0.1:1 weight 7\n")];
    for version in Version::ALL {
        for (section, is_off) in [
            ("backend b\n  disabled\n", true),
            ("listen b\n  bind :1\n  disabled\n", true),
            ("defaults\n  disabled\nbackend b\n", true),
            ("defaults\n  disabled\nbackend b\n  enabled\n", false),
            ("backend b\n", false),
        ] {
            for (current, desired) in changes {
                let text = |servers: &str| format!("{section}  balance roundrobin\n{servers}");
                let told = verdict(version, &text(current), &text(desired));
                assert_eq!(told, !is_off, "{version:?} {section} {desired}");
            }
        }
        let haproxy = Haproxy::start_with(version, |port| {
            format!(
                "frontend main\n  bind {}\nbackend b\n  disabled\n  balance roundrobin\n{one}",
                port.address()
            )
        })
        .await;
        let haproxy = need!(haproxy);
        // Adding one is not tried: HAProxy 3.4 dies of it.
        for command in ["set server b/s1 weight 7", "set server b/s1 state maint", "del server b/s1"] {
            let answer = haproxy.runtime(&format!("experimental-mode on; {command}")).await.unwrap();
            assert!(!answer.trim().is_empty(), "{version:?} {command} is accepted");
        }
    }
}

#[tokio::test]
async fn servers_of_peers_are_neither_added_nor_changed_nor_deleted_at_runtime() {
    let text = |servers: &str| format!("peers p\n  bind 127.0.0.1:7003\n{servers}");
    let (one, other) = ("  server p1 127.0.0.1:7001\n", "  server p2 127.0.0.1:7002\n");
    for version in Version::ALL {
        let both = format!("{one}{other}");
        for (current, desired) in [(one, &*both), (&*both, one), (one, "  server p1 127.0.0.1:7009\n")] {
            assert!(!verdict(version, &text(current), &text(desired)), "{version:?} {current} {desired}");
        }
        let haproxy = Haproxy::start_with(version, |port| {
            format!("peers p\n  peer p1 127.0.0.1:7001\nfrontend main\n  bind {}\n", port.address())
        })
        .await;
        let haproxy = need!(haproxy);
        for command in ["add server p/p2 127.0.0.1:7002", "del server p/p1", "set server p/p1 weight 5"] {
            let answer = haproxy.runtime(&format!("experimental-mode on; {command}")).await.unwrap();
            assert!(answer.contains("No such backend"), "{version:?} {command}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_negated_option_of_a_server_is_promised_only_where_haproxy_accepts_it() {
    for version in Version::ALL {
        let haproxy = Haproxy::start_with(version, |port| {
            format!("frontend main\n  bind {}\nbackend b\n  balance roundrobin\n", port.address())
        })
        .await;
        let haproxy = need!(haproxy);
        let options = setpoint_haproxy::table::directives()
            .options(model::ObjectKind::Server, context(version).haproxy);
        let (mut asked, mut failures) = (0, Vec::new());
        for (option, _) in options {
            let negated =
                option.strip_prefix("no-").map_or_else(|| format!("no-{option}"), ToOwned::to_owned);
            let Some(is_accepted) = accepts_option(&haproxy, &negated).await else { continue };
            let current = Document::parse(b"backend b\n  balance roundrobin\n");
            let text = format!("backend b\n  balance roundrobin\n  server s 127.0.0.1:1 {negated}\n");
            let diff = compare(&current, &Document::parse(text.as_bytes()), &context(version)).unwrap();
            asked += 1;
            if diff.is_possible_at_runtime() && !is_accepted {
                failures.push(format!("{version:?} {negated}"));
            }
        }
        assert!(asked > 10, "{version:?}: only {asked}");
        assert!(failures.is_empty(), "{failures:#?}");
    }
}

/// What a running HAProxy answers to a server that is added, and the comparator says of it, in a section of its own.
async fn added(version: Version, sections: &str, current: &str, servers: &[&str]) {
    let haproxy = Haproxy::start_with(version, |port| {
        format!("{sections}{current}frontend main\n  bind {}\n", port.address())
    })
    .await;
    let haproxy = need!(haproxy);
    for server in servers {
        let answer = haproxy.runtime(&format!("experimental-mode on; add server b/{server}")).await.unwrap();
        let is_accepted = answer.contains("New server registered");
        let current = format!("{sections}{current}");
        let desired = format!("{current}  server {server}\n");
        assert_eq!(
            verdict(version, &current, &desired),
            is_accepted,
            "{version:?} {current} {server}: {answer}"
        );
        if is_accepted {
            let name = server.split(' ').next().unwrap();
            haproxy.runtime(&format!("experimental-mode on; del server b/{name}")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_server_comes_at_runtime_beside_other_lines_exactly_where_haproxy_accepts_it() {
    for version in Version::ALL {
        for (sections, lines) in [
            ("", "backend b\n  dispatch 127.0.0.1:1\n"),
            ("", "backend b\n  dispatch 127.0.0.1:1\n  balance roundrobin\n"),
            ("", "backend b\n  option transparent\n"),
            ("", "backend b\n  no option transparent\n"),
            ("defaults d\n  option transparent\n", "backend b from d\n"),
        ] {
            added(version, sections, lines, &["n 127.0.0.1:9"]).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_haproxy_would_refuse_to_start_with_is_not_promised_at_runtime() {
    let text = |mode: &str| {
        format!("backend b\n  mode {mode}\n  balance roundrobin\n  server s1 127.0.0.1:1 check\n")
    };
    for version in Version::ALL {
        for mode in ["tcp", "http"] {
            let servers = [
                "n 127.0.0.1:9",
                "n 127.0.0.1:9 proto h1",
                "n 127.0.0.1:9 observe layer7",
                "n 127.0.0.1:9 agent-check",
                "n 127.0.0.1:9 agent-check agent-port 8",
                "n 127.0.0.1:9 check track b/s1",
                "n/m 127.0.0.1:9",
                "n 127.0.0.1:9 id 1",
                "n 127.0.0.1:9 id 7",
            ];
            added(version, "", &text(mode), &servers).await;
        }
    }
}

#[tokio::test]
async fn a_guid_that_something_has_is_not_given_to_another_server_at_runtime() {
    for version in [Version::V3_0, Version::V3_2, Version::V3_4] {
        let current = "backend b\n  balance roundrobin\n  server s1 127.0.0.1:1 guid x\n";
        added(version, "", current, &["n 127.0.0.1:9 guid x", "n 127.0.0.1:9 guid y"]).await;
    }
    let moved = "backend b\n  balance roundrobin\n  server s1 127.0.0.1:1\n  server s2 127.0.0.1:2 guid x\n";
    let current = Document::parse(b"backend b\n  balance roundrobin\n  server s1 127.0.0.1:1 guid x\n");
    let diff = compare(&current, &Document::parse(moved.as_bytes()), &Context::default()).unwrap();
    assert!(diff.operations().iter().all(|operation| !operation.runtime.is_possible()), "{diff:?}");
}

#[test]
fn an_address_that_haproxy_resolves_while_it_runs_is_changed_by_a_reload() {
    let text =
        |server: &str| format!("resolvers dns\nbackend b\n  balance roundrobin\n  server s {server}\n");
    for version in Version::ALL {
        let named = text("www.example.test:80 resolvers dns");
        assert!(!verdict(version, &named, &text("127.0.0.1:80 resolvers dns")));
        // A name that was resolved when HAProxy started is not looked at again.
        assert!(verdict(version, &text("www.example.test:80"), &text("127.0.0.1:80")));
        let default =
            |server: &str| text(server).replace("  server", "  default-server resolvers dns\n  server");
        assert!(!verdict(version, &default("www.example.test:80"), &default("127.0.0.1:80")));
    }
}

#[test]
fn the_version_of_haproxy_decides_and_not_the_one_of_the_api() {
    let current = Document::parse(b"backend b\n  balance roundrobin\n");
    for (server, is_known) in [("strict-maxconn", false), ("idle-ping 1s", false), ("weight 5", true)] {
        let text = format!("backend b\n  balance roundrobin\n  server s 127.0.0.1:1 {server}\n");
        let desired = Document::parse(text.as_bytes());
        for (haproxy, is_possible) in [(model::Version::V3_0, is_known), (model::Version::V3_4, true)] {
            let cx = Context::new(model::Version::V3_4).with_haproxy(haproxy);
            let diff = compare(&current, &desired, &cx).unwrap();
            assert_eq!(diff.is_possible_at_runtime(), is_possible, "{haproxy} {server}");
        }
    }
}

#[test]
fn what_the_defaults_say_while_haproxy_runs_decides() {
    let text = |balance: &str, weight: u32| {
        format!("defaults d\n  balance {balance}\nbackend b from d\n  server s 10.0.0.1:80 weight {weight}\n")
    };
    let server = |current: &str, desired: &str| {
        let (current, desired) = (Document::parse(current.as_bytes()), Document::parse(desired.as_bytes()));
        let diff = compare(&current, &desired, &Context::default()).unwrap();
        let found = diff.operations().iter().find(|operation| operation.to_string().contains("server s"));
        found.unwrap().runtime.is_possible()
    };
    assert!(!server(&text("static-rr", 1), &text("roundrobin", 2)));
    assert!(server(&text("roundrobin", 1), &text("static-rr", 2)));
    let text = |line: &str, most: u32| {
        format!(
            "defaults d\n{line}backend b from d\n  balance roundrobin\n  server s 10.0.0.1:80 maxconn {most}\n"
        )
    };
    assert!(!server(&text("  default-server minconn 3\n", 10), &text("", 20)));
    assert!(!server(&text("  disabled\n", 10), &text("", 20)));
    assert!(server(&text("", 10), &text("  disabled\n", 20)));
}

/// A server of `b` before and after, the command that makes the one of the other, and whether that is promised.
const SETTINGS: [(&str, &str, &str, bool); 23] = [
    ("", "maxconn 50", "set maxconn server b/N 50", true),
    ("maxconn 50", "maxconn 5", "set maxconn server b/N 5", true),
    ("maxconn 50", "", "set maxconn server b/N 0", true),
    ("minconn 2 maxconn 50", "minconn 2 maxconn 5", "", false),
    ("check port 81", "check port 82", "set server b/N check-port 82", true),
    ("port 81", "port 82", "set server b/N check-port 82", false),
    ("check", "check port 82", "", false),
    ("check port 81", "check", "", false),
    ("check agent-check port 81", "check agent-check port 82", "", false),
    ("agent-check agent-port 81", "agent-check agent-port 82", "set server b/N agent-port 82", true),
    ("agent-port 81", "agent-port 82", "set server b/N agent-port 82", false),
    (
        "agent-check agent-port 81 agent-addr 127.0.0.3",
        "agent-check agent-port 81 agent-addr 127.0.0.2",
        "set server b/N agent-addr 127.0.0.2",
        true,
    ),
    ("agent-addr 127.0.0.1", "agent-addr 127.0.0.2", "set server b/N agent-addr 127.0.0.2", false),
    ("agent-check agent-port 81", "agent-check agent-port 81 agent-addr 127.0.0.2", "", false),
    (
        "agent-check agent-port 81 agent-addr 127.0.0.1",
        "agent-check agent-port 81 agent-addr localhost",
        "",
        false,
    ),
    (
        "agent-check agent-port 81 agent-send a",
        "agent-check agent-port 81 agent-send b",
        "set server b/N agent-send b",
        true,
    ),
    ("agent-send a", "agent-send b", "set server b/N agent-send b", false),
    ("agent-check agent-port 81 agent-send a", "agent-check agent-port 81 agent-send b\\n", "", false),
    ("agent-check agent-port 81", "agent-check agent-port 81 agent-send b", "", false),
    // What an agent answers sets these back, in percent of the weight that HAProxy was started with.
    ("agent-check agent-port 81 weight 10", "agent-check agent-port 81 weight 20", "", false),
    ("agent-check agent-port 81 maxconn 10", "agent-check agent-port 81 maxconn 20", "", false),
    ("agent-check agent-port 81", "agent-check agent-port 81 disabled", "", false),
    ("agent-port 81 weight 10", "agent-port 81 weight 20", "set server b/N weight 20", true),
];

#[tokio::test]
async fn settings_of_a_server_are_changed_at_runtime_exactly_where_haproxy_changes_them() {
    let backend = |servers: &str| format!("backend b\n  balance roundrobin\n{servers}");
    for version in Version::ALL {
        let server = |(at, case): (usize, &(&str, &str, &str, bool))| {
            format!("  server s{at} 127.0.0.1:1 {}\n", case.0)
        };
        let servers: String = SETTINGS.iter().enumerate().map(server).collect();
        let haproxy = Haproxy::start_with(version, |port| {
            format!("{}frontend main\n  bind {}\n", backend(&servers), port.address())
        })
        .await;
        let haproxy = need!(haproxy);
        for (at, (before, after, command, is_promised)) in SETTINGS.iter().enumerate() {
            let text = |options: &str| backend(&format!("  server s 127.0.0.1:1 {options}\n"));
            assert_eq!(
                verdict(version, &text(before), &text(after)),
                *is_promised,
                "{version:?} {before:?} {after:?}"
            );
            // A `default-server` counts for both.
            let shared = |options: &str| {
                let line = text("").replace(
                    "  server",
                    &format!("  default-server {}\n  server", before.replace(" 81", " 80")),
                );
                line.replace("127.0.0.1:1 ", &format!("127.0.0.1:1 {options} "))
            };
            if before.starts_with("check") && *is_promised {
                assert!(verdict(version, &shared("port 81"), &shared("port 82")), "{version:?} {before:?}");
            }
            if command.is_empty() {
                continue;
            }
            let answer = haproxy.runtime(&command.replace("/N", &format!("/s{at}"))).await.unwrap();
            assert_eq!(answer.trim().is_empty(), *is_promised, "{version:?} {command}: {answer}");
        }
    }
}

#[tokio::test]
async fn the_limit_of_a_frontend_is_changed_at_runtime_where_its_listeners_do_not_follow_from_it() {
    let text = |lines: &str| format!("frontend f\n  bind 127.0.0.1:1\n{lines}");
    for version in Version::ALL {
        for (before, after, is_promised) in [
            ("  backlog 9\n  maxconn 5\n", "  backlog 9\n  maxconn 7\n", true),
            ("  maxconn 5\n", "  maxconn 7\n", false),
            ("  backlog 9\n", "  backlog 9\n  maxconn 7\n", false),
            ("  backlog 9\n  maxconn 5\n", "  backlog 9\n", false),
            ("  backlog 9\n  maxconn 5\n  disabled\n", "  backlog 9\n  maxconn 7\n  disabled\n", false),
        ] {
            assert_eq!(
                verdict(version, &text(before), &text(after)),
                is_promised,
                "{version:?} {before} {after}"
            );
            let governed = |lines: &str| format!("defaults\n{lines}{}", text("  maxconn 5\n"));
            let is_governed = verdict(
                version,
                &governed("  backlog 9\n"),
                &governed("  backlog 9\n").replace("maxconn 5", "maxconn 7"),
            );
            assert!(is_governed, "{version:?}");
        }
        let haproxy = Haproxy::start_with(version, |port| {
            format!("frontend main\n  bind {}\n  backlog 9\n  maxconn 5\n", port.address())
        })
        .await;
        let haproxy = need!(haproxy);
        let answer = haproxy.runtime("set maxconn frontend main 7").await.unwrap();
        assert!(answer.trim().is_empty(), "{version:?}: {answer}");
        let shown = haproxy.runtime("show stat").await.unwrap();
        let limit = shown
            .lines()
            .find(|line| line.starts_with("main,FRONTEND,"))
            .and_then(|line| line.split(',').nth(6));
        assert_eq!(limit, Some("7"), "{version:?}: {shown}");
    }
    // What `defaults` say counts for many frontends.
    let defaults = |most: &str| format!("defaults d\n  backlog 9\n  maxconn {most}\nfrontend f from d\n");
    assert!(!verdict(Version::V3_4, &defaults("5"), &defaults("7")));
    let global = |most: &str| format!("global\n  maxconn {most}\n");
    assert!(!verdict(Version::V3_4, &global("7"), &global("5")));
}
