//! What an API tells of itself, and what is made of it.

use setpoint_dataplane::client::{Client, Settings};
use setpoint_dataplane::target::{ApiTarget, Target as _};
use setpoint_haproxy::compare::compare;
use setpoint_haproxy::model::{Edition, Version};
use setpoint_haproxy::text::Document;
use setpoint_testutils::wait::LIMIT;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// What answers like an enterprise edition, which nobody can download.
async fn told(version: &'static str) -> Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let body = if request.starts_with(b"GET /v3/specification") {
                "{\"info\":{\"version\":\"3.3\"}}".to_owned()
            } else {
                format!("{{\"api\":{{\"version\":\"{version}\"}},\"system\":{{}}}}")
            };
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all((head + &body).as_bytes()).await;
        }
    });
    Client::connect(Settings { timeout: LIMIT, ..Settings::new(url) }).await.unwrap()
}

#[tokio::test]
async fn enterprise_parser_selected_for_ee() {
    let client = told("v3.1.2-ee1 abc").await;
    assert!(client.is_enterprise());
    assert_eq!(client.context(Version::V3_0).edition, Edition::Enterprise);
}

#[tokio::test]
async fn community_parser_selected_for_ce() {
    let client = told("v3.1.2 abc").await;
    assert!(!client.is_enterprise() && !client.is_setpoint());
    assert_eq!(client.context(Version::V3_0).edition, Edition::Community);
}

/// As one answers that somebody built by hand.
#[tokio::test]
async fn a_version_that_is_not_told_is_read_from_the_specification() {
    let client = told(" dev.dirty").await;
    assert_eq!(client.version().schema(), Version::V3_3);
    assert!(!client.is_enterprise() && !client.is_setpoint());
}

/// It tells a running HAProxy less than ours does.
#[tokio::test]
async fn what_the_original_does_not_tell_a_running_haproxy_takes_a_reload() {
    let target = ApiTarget::with_haproxy(told("v3.1.2 abc").await, Version::V3_1);
    let text = |options: &str| format!("backend b\n  balance roundrobin\n  server s 127.0.0.1:1 {options}\n");
    for (changed, is_told) in [("weight 7", true), ("disabled", true), ("maxconn 7", false)] {
        let (current, desired) = (text(""), text(changed));
        let (current, desired) = (Document::parse(current.as_bytes()), Document::parse(desired.as_bytes()));
        let diff = compare(&current, &desired, target.context()).unwrap();
        let [operation] = diff.operations() else { panic!("{diff:?}") };
        assert!(operation.runtime.is_possible(), "{changed}");
        assert_eq!(target.needs_reload(operation).is_none(), is_told, "{changed}");
    }
    // What it adds has to be whole without checks and without defaults.
    let more = |head: &str, server: &str| {
        let servers = format!("backend b\n  balance roundrobin\n{head}  server s 127.0.0.1:1\n");
        let new = format!("{servers}  server t 127.0.0.1:2 {server}\n");
        let diff =
            compare(&Document::parse(servers.as_bytes()), &Document::parse(new.as_bytes()), target.context());
        let diff = diff.unwrap();
        let [operation] = diff.operations() else { panic!("{diff:?}") };
        assert!(operation.runtime.is_possible(), "{head}{server}");
        target.needs_reload(operation)
    };
    assert_eq!(more("", "weight 7"), None);
    assert!(more("", "check").is_some());
    assert!(more("  default-server maxconn 9\n", "weight 7").is_some());
}

/// Seen at the original: what its calls make of that is something else.
#[tokio::test]
async fn what_the_original_gets_wrong_by_its_calls_goes_as_a_text() {
    let target = ApiTarget::with_haproxy(told("v3.0.21 abc").await, Version::V3_0);
    let newer = ApiTarget::with_haproxy(told("v3.2.13 abc").await, Version::V3_2);
    for (current, desired, is_wrong, is_wrong_later) in [
        ("mailers m\n  timeout mail 9s\n", "mailers m\n", true, true),
        ("mailers m\n  timeout mail 9s\n", "mailers m\n  timeout mail 8s\n", false, false),
        (
            "userlist u\n  group g\n  user a password x\n",
            "userlist u\n  group g users a\n  user a password x\n",
            true,
            true,
        ),
        ("backend b\n", "backend b\n\nring r\n  size 32768\n", true, false),
        ("defaults d\n  tcp-response content accept\n", "defaults d\n", true, true),
        ("defaults d\n", "defaults d\n  tcp-response content accept\n", true, false),
    ] {
        for (target, is_wrong) in [(&target, is_wrong), (&newer, is_wrong_later)] {
            let (old, new) = (Document::parse(current.as_bytes()), Document::parse(desired.as_bytes()));
            let diff = compare(&old, &new, target.context()).unwrap();
            let needs = diff.operations().iter().any(|operation| target.needs_text(operation).is_some());
            assert_eq!(needs, is_wrong, "{current}{desired}");
        }
    }
}
