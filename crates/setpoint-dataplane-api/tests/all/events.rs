//! What happens is told to whoever listens.

use serde_json::json;
use setpoint_testutils::need;

use crate::world::{Plan, WITHIN, World};

#[tokio::test]
async fn commits_and_reloads_are_told_as_they_happen() {
    let plan = Plan::default();
    let world = need!(
        World::start(&plan, |_, ports| format!(
            "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\nfrontend f\n  bind {}\n",
            ports[0].address()
        ))
        .await
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/v3/services/haproxy", world.url);
    let refused = client.get(format!("{url}/events")).send().await.unwrap();
    assert_eq!(refused.status().as_u16(), 401);
    let mut stream =
        client.get(format!("{url}/events")).basic_auth("admin", Some("adminpwd")).send().await.unwrap();
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let created = client
        .post(format!("{url}/configuration/backends?version=1"))
        .basic_auth("admin", Some("adminpwd"))
        .header("content-type", "application/json")
        .body(json!({ "name": "b" }).to_string());
    assert_eq!(created.send().await.unwrap().status().as_u16(), 202);
    let mut said = String::new();
    while !(said.contains("event: commit") && said.contains("event: reload")) {
        let chunk = tokio::time::timeout(WITHIN, stream.chunk()).await.unwrap().unwrap().unwrap();
        said.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(said.contains("\"version\":2") && said.contains("+ backend b"), "{said}");
    world.end().await;
}

#[tokio::test]
async fn a_stream_on_which_nothing_happens_says_that_it_is_alive() {
    let world = need!(
        World::start(&Plan::default(), |_, ports| format!(
            "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\nfrontend f\n  bind {}\n",
            ports[0].address()
        ))
        .await
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client.get(format!("{}/v3/services/haproxy/events", world.url));
    let mut stream = request.basic_auth("admin", Some("adminpwd")).send().await.unwrap();
    let mut said = String::new();
    while !said.ends_with(": alive\n\n") {
        let chunk = tokio::time::timeout(WITHIN, stream.chunk()).await.unwrap().unwrap().unwrap();
        said.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert_eq!(said, ": connected\n\n: alive\n\n");
    world.end().await;
}
