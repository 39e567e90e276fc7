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
}
