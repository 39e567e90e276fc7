//! What happens is told to whoever listens.

use std::fs;

use serde_json::{Value as Json, json};
use setpoint_instance::cli::Socket;
use setpoint_instance::reload::{Method, reload};
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

/// Reads a stream of events until one has a name, and returns what it says.
async fn event(stream: &mut reqwest::Response, name: &str) -> Json {
    let (mut said, head) = (String::new(), format!("event: {name}\ndata: "));
    loop {
        let whole = said.split_once(&head).and_then(|(_, rest)| rest.split_once("\n\n"));
        if let Some((data, _)) = whole {
            return serde_json::from_str(data).unwrap();
        }
        let chunk = tokio::time::timeout(WITHIN, stream.chunk()).await.unwrap().unwrap().unwrap();
        said.push_str(&String::from_utf8_lossy(&chunk));
    }
}

#[tokio::test]
async fn a_hand_edit_drift_and_what_was_written_back_are_told_with_what_differs() {
    let plan = Plan::default();
    let world = need!(
        World::start(&plan, |folder, ports| format!(
            "global\n  stats socket {}/run.sock level admin\ndefaults d\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
             frontend f from d\n  bind {}\nbackend web from d\n  server s1 127.0.0.1:9 weight 5\n",
            folder.display(),
            ports[0].address()
        ))
        .await
    );
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/v3/services/haproxy", world.url);
    let mut stream =
        client.get(format!("{url}/events")).basic_auth("admin", Some("adminpwd")).send().await.unwrap();
    let text = fs::read_to_string(world.file()).unwrap();
    fs::write(world.file(), format!("{text}backend byhand from d\n")).unwrap();
    let edit = event(&mut stream, "file-changed").await;
    assert_eq!(edit, json!({ "version": 2, "changes": ["+ backend byhand"] }));
    // One that changes nothing HAProxy reads is told as well.
    fs::write(world.file(), format!("{text}backend byhand from d # mine\n")).unwrap();
    assert_eq!(event(&mut stream, "file-changed").await["version"], 3);

    let master = Socket::new(world.folder.path().join("master.sock"));
    reload(&master, &Method::Signal, WITHIN).await.unwrap();
    let drift = event(&mut stream, "drift").await;
    assert!(drift["difference"].as_str().unwrap().contains("somebody else has reloaded"), "{drift}");

    // HAProxy accepts it when it is asked, and has no right to the address.
    let bind = json!({ "name": "x", "address": "192.0.2.1", "port": 9 });
    let request = client
        .post(format!("{url}/configuration/frontends/f/binds?version=3"))
        .basic_auth("admin", Some("adminpwd"))
        .header("content-type", "application/json")
        .body(bind.to_string());
    assert_eq!(request.send().await.unwrap().status().as_u16(), 202);
    let restored = event(&mut stream, "restored").await;
    assert_eq!(restored["version"], 5, "{restored}");
    assert!(restored["reason"].as_str().unwrap().contains("192.0.2.1"), "{restored}");
    world.end().await;
}
