//! Servers and backends that are added to a running HAProxy: they are what the same lines of a file would make.

use setpoint_haproxy::compare::compare;
use setpoint_haproxy::model::{self, Context, Object};
use setpoint_haproxy::text::Document;
use setpoint_testutils::{Haproxy, Version, need, wait};

use crate::runtime::{context, verdict};

/// The server that HAProxy is told where one text becomes another, with all that HAProxy would take from elsewhere in a file.
fn effective(version: model::Version, current: &str, desired: &str) -> Object {
    let (current, desired) = (Document::parse(current.as_bytes()), Document::parse(desired.as_bytes()));
    let diff = compare(&current, &desired, &Context::new(version)).unwrap();
    diff.operations().last().unwrap().effective.clone().unwrap()
}

/// The words of a server that are told to HAProxy after its name.
fn words(server: &Object, cx: &Context) -> String {
    let mut line = Vec::new();
    server.write(cx, &mut line).unwrap();
    let line = String::from_utf8(line).unwrap();
    line.split_whitespace().skip(2).collect::<Vec<_>>().join(" ")
}

/// What `show stat` says of the check of a server; nothing before the first one has ended.
async fn check_of(haproxy: &Haproxy, server: &str) -> String {
    let shown = haproxy.runtime("show stat").await.unwrap();
    let names: Vec<&str> = shown.lines().next().unwrap_or_default().split(',').collect();
    let column = names.iter().position(|name| *name == "check_status").unwrap();
    let line = shown.lines().find(|line| line.split(',').nth(1) == Some(server)).unwrap_or_default();
    line.split(',').nth(column).unwrap_or_default().trim_start_matches("* ").to_owned()
}

#[tokio::test]
async fn a_server_that_is_added_is_checked_as_the_same_server_of_a_file() {
    let own = rcgen::generate_simple_self_signed(["example.test".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("own.pem");
    std::fs::write(&pem, format!("{}{}", own.cert.pem(), own.signing_key.serialize_pem())).unwrap();
    for version in Version::ALL {
        let (tls, proxied) = (folder.path().join("tls.sock"), folder.path().join("proxied.sock"));
        let servers: [(&str, String, &str); 3] = [
            ("tls", format!("unix@{} ssl verify none check", tls.display()), "L6OK"),
            ("proxied", format!("unix@{} send-proxy check", proxied.display()), "L7OK"),
            (
                "proxied2",
                format!("unix@{} send-proxy-v2 check no-check-send-proxy", proxied.display()),
                "L7OK",
            ),
        ];
        let backend = |name: &str| {
            let mode = if name.starts_with("tls") {
                ""
            } else {
                "  option httpchk\n  http-check send meth GET uri /\n"
            };
            format!(
                "backend {name}\n  balance roundrobin\n  timeout check 10s\n  default-server inter 500ms\n{mode}"
            )
        };
        let haproxy = Haproxy::start_with(version, |port| {
            let mut text = format!(
                "frontend main\n  bind {}\n  bind unix@{} ssl crt {}\n  bind unix@{} accept-proxy\n  http-request return status 200 content-type text/plain string x\n",
                port.address(),
                tls.display(),
                pem.display(),
                proxied.display(),
            );
            for (name, server, _) in &servers {
                text += &backend(name);
                text += &["  server ", name, " ", server, "\n"].concat();
                text += &backend(&format!("{name}-new"));
            }
            text
        })
        .await;
        let haproxy = need!(haproxy);
        let cx = context(version);
        for (name, server, expected) in &servers {
            let current = backend(&format!("{name}-new"));
            let desired = format!("{current}  server added-{name} {server}\n");
            assert!(verdict(version, &current, &desired), "{version:?} {name}");
            let words = words(&effective(cx.haproxy, &current, &desired), &cx);
            let path = format!("{name}-new/added-{name}");
            let answer =
                haproxy.runtime(&format!("experimental-mode on; add server {path} {words}")).await.unwrap();
            assert!(answer.contains("New server registered"), "{version:?} {words}: {answer}");
            haproxy.runtime(&format!("enable health {path}")).await.unwrap();
            haproxy.runtime(&format!("set server {path} state ready")).await.unwrap();
            for server in [format!("added-{name}"), (*name).to_owned()] {
                // One of many: on a busy machine, a check may be answered too late.
                let mut found = String::new();
                let checked = wait::within(wait::LIMIT, async || {
                    found = check_of(&haproxy, &server).await;
                    (found == *expected).then_some(())
                });
                assert!(checked.await.is_some(), "{version:?} {server}: {words}: {found}");
            }
        }
    }
}

#[test]
fn what_a_check_takes_over_from_its_server_in_a_file_is_told_of_a_server_that_is_added() {
    let words_of = |default: &str, server: &str| {
        let base = format!("backend b\n  balance roundrobin\n{default}  server a 10.0.0.1:1\n");
        let desired = format!("{base}  server n 10.0.0.2:443 {server}\n");
        words(&effective(model::Version::V3_4, &base, &desired), &Context::default())
    };
    for (server, has) in [
        ("ssl verify none check", true),
        ("ssl verify none", false),
        ("ssl verify none check port 81", false),
        ("ssl verify none check addr 10.0.0.3", false),
        ("ssl verify none check no-check-ssl", false),
        ("check", false),
    ] {
        let line = words_of("", server);
        assert_eq!(line.split(' ').any(|word| word == "check-ssl"), has, "{server}: {line}");
    }
    for (server, has) in [
        ("send-proxy check", true),
        ("send-proxy-v2 check", true),
        ("send-proxy-v2-ssl check", true),
        ("send-proxy-v2-ssl-cn check no-check-send-proxy", true),
        ("send-proxy", false),
        ("send-proxy check port 81", false),
        ("check", false),
    ] {
        let line = words_of("", server);
        assert_eq!(line.split(' ').any(|word| word == "check-send-proxy"), has, "{server}: {line}");
    }
    // What others start from counts as well.
    assert!(words_of("  default-server ssl verify none check\n", "weight 2").contains("check-ssl"));
}

#[test]
fn a_server_whose_words_add_to_those_of_default_server_comes_with_a_reload() {
    for (default, server) in [
        ("proxy-v2-options ssl", "proxy-v2-options crc32c"),
        ("send-proxy-v2-ssl", "no-send-proxy-v2"),
        ("ssl-max-ver TLSv1.2", "force-tlsv13"),
    ] {
        let base =
            format!("backend b\n  balance roundrobin\n  default-server {default}\n  server a 10.0.0.1:1\n");
        let desired = format!("{base}  server n 10.0.0.2:443 {server}\n");
        assert!(!verdict(Version::V3_4, &base, &desired), "{default} {server}");
        // One alone is told as it is.
        let alone = format!("{base}  server n 10.0.0.2:443\n");
        assert!(verdict(Version::V3_4, &base, &alone), "{default}");
        let base = base.replace(&format!("  default-server {default}\n"), "");
        let alone = format!("{base}  server n 10.0.0.2:443 {server}\n");
        assert!(verdict(Version::V3_4, &base, &alone), "{server}");
    }
    // What is told in the order in which HAProxy reads both is the same.
    let base = "backend b\n  balance roundrobin\n  default-server force-tlsv13\n  server a 10.0.0.1:1\n";
    let desired = format!("{base}  server n 10.0.0.2:443 ssl-max-ver TLSv1.2\n");
    assert!(verdict(Version::V3_4, base, &desired));
}

#[test]
fn a_server_that_takes_its_name_of_tls_from_requests_is_not_promised_where_haproxy_gives_none_to_what_is_added()
 {
    let possible = |version, mode: &str, server: &str| {
        let base = format!("backend b\n  mode {mode}\n  balance roundrobin\n");
        let desired = format!("{base}  server n 10.0.0.2:443 {server}\n");
        let (current, desired) = (Document::parse(base.as_bytes()), Document::parse(desired.as_bytes()));
        compare(&current, &desired, &Context::new(version)).unwrap().is_possible_at_runtime()
    };
    for version in [model::Version::V3_2, model::Version::V3_3, model::Version::V3_4] {
        let is_given = version != model::Version::V3_3;
        assert_eq!(possible(version, "http", "ssl verify none"), is_given, "{version}");
        assert!(possible(version, "http", "ssl verify none sni str(a)"), "{version}");
        assert!(possible(version, "http", "weight 2"), "{version}");
        assert!(possible(version, "tcp", "ssl verify none"), "{version}");
    }
}

#[tokio::test]
async fn a_server_is_not_promised_beside_a_key_of_cookies_where_haproxy_gives_none_to_what_is_added() {
    let text = "backend b\n  mode http\n  balance roundrobin\n  cookie c insert dynamic\n  dynamic-cookie-key hush\n  server a 127.0.0.1:1\n";
    for version in Version::ALL {
        let haproxy =
            Haproxy::start_with(version, |port| format!("frontend main\n  bind {}\n{text}", port.address()))
                .await;
        let haproxy = need!(haproxy);
        let answer = haproxy.runtime("experimental-mode on; add server b/n 127.0.0.1:2").await.unwrap();
        assert!(answer.contains("New server registered"), "{version:?}: {answer}");
        let shown = haproxy.runtime("show stat").await.unwrap();
        let names: Vec<&str> = shown.lines().next().unwrap_or_default().split(',').collect();
        let column = names.iter().position(|name| *name == "cookie").unwrap();
        let line = shown.lines().find(|line| line.starts_with("b,n,")).unwrap();
        let has_one = line.split(',').nth(column).is_some_and(|cookie| !cookie.is_empty());
        let desired = format!("{text}  server n 127.0.0.1:2\n");
        let (current, desired) = (Document::parse(text.as_bytes()), Document::parse(desired.as_bytes()));
        let diff = compare(&current, &desired, &context(version)).unwrap();
        assert_eq!(diff.is_possible_at_runtime(), has_one, "{version:?}: {line}");
        assert!(!diff.plan("x").to_string().contains("hush"), "{version:?}");
    }
}

#[tokio::test]
async fn a_backend_with_a_guid_is_added_at_runtime_exactly_where_haproxy_accepts_it() {
    let version = Version::V3_4;
    let base = "defaults d\n  mode http\nbackend x from d\n  guid taken\n  balance roundrobin\n  server s 127.0.0.1:1 guid held\n";
    let haproxy = Haproxy::start_with(version, |port| {
        format!("frontend main\n  bind {}\n  guid front\n{base}", port.address())
    })
    .await;
    let haproxy = need!(haproxy);
    let frontend = "frontend main\n  bind :1\n  guid front\n";
    for (index, guid) in ["new", "taken", "held", "front", "1"].into_iter().enumerate() {
        let add = format!("experimental-mode on; add backend n{index} from d guid {guid}");
        let answer = haproxy.runtime(&add).await.unwrap();
        let done = answer.contains("New backend");
        let current = format!("{frontend}{base}");
        let desired = format!("{current}backend n{index} from d\n  guid {guid}\n");
        assert_eq!(verdict(version, &current, &desired), done, "{guid}: {answer}");
    }
}
