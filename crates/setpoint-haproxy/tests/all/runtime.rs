//! The verdict of the comparator beside what a running HAProxy really does.

use setpoint_haproxy::compare::compare;
use setpoint_haproxy::model::{self, Context};
use setpoint_haproxy::text::Document;
use setpoint_testutils::{Haproxy, Version, need};

fn context(version: Version) -> Context {
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
fn verdict(version: Version, current: &str, desired: &str) -> bool {
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
