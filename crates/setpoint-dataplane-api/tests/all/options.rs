//! What is decided about the API as a whole, and what is said beforehand: strictness, reading only, time for bodies, plans.

use std::fs;
use std::time::{Duration, Instant};

use reqwest::RequestBuilder;
use serde_json::{Value as Json, json};
use setpoint_dataplane_api::Options;
use setpoint_testutils::{Missing, need};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::found::{ask, request};
use crate::world::{Plan, WITHIN, World};

async fn world(options: Options) -> Result<World, Missing> {
    let plan = Plan { options, ..Plan::default() };
    World::start(&plan, |folder, ports| {
        format!(
            "global\n  stats socket {}/run.sock level admin\ndefaults d\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
             frontend f from d\n  bind {}\nbackend web from d\n  balance roundrobin\n  server s1 127.0.0.1:9 weight 1\n",
            folder.display(),
            ports[0].address()
        )
    })
    .await
}

/// Objects with a property each that nobody knows, and its name: of the object, in one of its parts, and in a list.
fn with_unknown() -> [(&'static str, &'static str, Json, &'static str); 4] {
    [
        (
            "PUT",
            "configuration/backends/web/servers/s1?version=",
            json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "wieght": 2 }),
            "wieght",
        ),
        (
            "POST",
            "configuration/backends?version=",
            json!({ "name": "b", "balance": { "algorithm": "roundrobin", "algoritm": 1 } }),
            "algoritm",
        ),
        (
            "POST",
            "configuration/backends?full_section=true&version=",
            json!({ "name": "c", "servers": { "s": { "name": "s", "address": "127.0.0.1", "prot": 9 } } }),
            "prot",
        ),
        (
            "PUT",
            "configuration/backends/web/http_request_rules?version=",
            json!([{ "type": "deny" }, { "type": "deny", "dney_status": 403 }]),
            "dney_status",
        ),
    ]
}

async fn send(request: RequestBuilder, body: &Json) -> (u16, Option<String>, String) {
    let request = request.header("content-type", "application/json").body(body.to_string());
    let response = request.send().await.unwrap();
    let warning = response.headers().get("warning").map(|warning| warning.to_str().unwrap().to_owned());
    (response.status().as_u16(), warning, response.text().await.unwrap())
}

#[tokio::test]
async fn properties_that_nobody_knows_are_named_in_a_warning() {
    let world = need!(world(Options::default()).await);
    for (version, (method, path, body, unknown)) in (1..).zip(with_unknown()) {
        let request = request(&world, method, &format!("/services/haproxy/{path}{version}"));
        let (status, warning, answer) = send(request, &body).await;
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        let warning = warning.unwrap_or_default();
        assert!(warning.starts_with("299 - ") && warning.contains(unknown), "{path}: {warning}");
    }
    assert!(!fs::read_to_string(world.file()).unwrap().contains("dney"));
    // What is known needs no warning.
    let server = json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": 3 });
    let path = "/services/haproxy/configuration/backends/web/servers/s1?version=5";
    let (status, warning, answer) = send(request(&world, "PUT", path), &server).await;
    assert_eq!((status, warning), (200, None), "{answer}");
    world.end().await;
}

#[tokio::test]
async fn an_api_that_is_strict_refuses_properties_that_nobody_knows_and_changes_nothing() {
    let world = need!(world(Options { strict: true, ..Options::default() }).await);
    let before = fs::read(world.file()).unwrap();
    for (method, path, body, unknown) in with_unknown() {
        let request = request(&world, method, &format!("/services/haproxy/{path}1"));
        let (status, _, answer) = send(request, &body).await;
        assert_eq!(status, 422, "{path}: {answer}");
        assert!(answer.contains(unknown), "{path}: {answer}");
    }
    assert_eq!(fs::read(world.file()).unwrap(), before);
    assert_eq!(world.api.instance().version(), 1);
    world.end().await;
}

#[tokio::test]
async fn an_api_that_only_reads_shows_everything_and_changes_nothing() {
    let world = need!(world(Options { read_only: true, ..Options::default() }).await);
    let before = fs::read(world.file()).unwrap();
    let server = json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": 3 });
    for (method, path, body) in [
        ("PUT", "configuration/backends/web/servers/s1?version=1", Some(server.clone())),
        ("POST", "configuration/backends?version=1", Some(json!({ "name": "b" }))),
        ("DELETE", "configuration/backends/web?version=1", None),
        ("POST", "transactions?version=1", None),
        ("POST", "reloads", None),
        ("DELETE", "storage/maps/routes.map", None),
        ("PUT", "runtime/backends/web/servers/s1", Some(json!({ "admin_state": "maint" }))),
    ] {
        let (status, _, answer) = ask(&world, method, path, body).await;
        assert_eq!(status, 403, "{method} {path}: {answer}");
        assert!(answer.contains("read-only"), "{method} {path}: {answer}");
    }
    for path in [
        "configuration/backends/web/servers/s1",
        "runtime/backends/web/servers/s1",
        "storage/maps/routes.map",
        "transactions",
        "reloads",
    ] {
        let (status, _, answer) = ask(&world, "GET", path, None).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
    assert_eq!(fs::read(world.file()).unwrap(), before);
    assert!(world.folder.path().join("maps/routes.map").exists());
    assert!(world.api.instance().differences().await.unwrap().is_empty());
    world.end().await;
}

#[tokio::test]
async fn the_plan_of_a_transaction_says_what_committing_it_does() {
    let world = need!(world(Options::default()).await);
    let begin = async |version: u64| {
        let (status, _, answer) = ask(&world, "POST", &format!("transactions?version={version}"), None).await;
        assert_eq!(status, 201, "{answer}");
        serde_json::from_str::<Json>(&answer).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let weigh = async |id: &str, weight: u64| {
        let server = json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": weight });
        let path = format!("configuration/backends/web/servers/s1?transaction_id={id}");
        let (status, _, answer) = ask(&world, "PUT", &path, Some(server)).await;
        assert_eq!(status, 202, "{answer}");
    };
    let plan = async |id: &str| {
        let (status, _, answer) = ask(&world, "GET", &format!("transactions/{id}/diff"), None).await;
        assert_eq!(status, 200, "{answer}");
        let plan: Json = serde_json::from_str(&answer).unwrap();
        plan["operations"].as_array().unwrap().clone()
    };
    let id = begin(1).await;
    assert!(plan(&id).await.is_empty(), "nothing is changed yet");
    weigh(&id, 7).await;
    let operations = plan(&id).await;
    let [weight] = operations.as_slice() else { panic!("{operations:?}") };
    assert_eq!(weight["runtime"], json!({ "possible": "yes" }));
    assert_eq!(weight["detail"], json!([{ "attribute": "weight", "old": "1", "new": "7" }]));
    // As the plan says: without a reload.
    let (status, reload, answer) = ask(&world, "PUT", &format!("transactions/{id}"), None).await;
    assert_eq!((status, reload), (200, None), "{answer}");

    let id = begin(2).await;
    weigh(&id, 8).await;
    let new = json!({ "name": "b", "from": "d", "balance": { "algorithm": "leastconn" } });
    let path = format!("configuration/backends?transaction_id={id}");
    assert_eq!(ask(&world, "POST", &path, Some(new)).await.0, 202);
    let operations = plan(&id).await;
    assert_eq!(operations.len(), 2, "{operations:?}");
    let of = |action: &str| operations.iter().find(|operation| operation["action"] == action).unwrap();
    assert_eq!(of("modify")["runtime"], json!({ "possible": "yes" }));
    assert_eq!(of("create")["runtime"]["possible"], "no");
    let why = of("create")["runtime"]["why"].as_str().unwrap().to_owned();
    let (status, reload, answer) = ask(&world, "PUT", &format!("transactions/{id}"), None).await;
    assert!(status == 202 && reload.is_some(), "{status} {reload:?} {answer}");
    assert!(!why.is_empty());
    assert_eq!(ask(&world, "GET", &format!("transactions/{id}/diff"), None).await.0, 404);
    world.end().await;
}

#[tokio::test]
async fn bodies_that_do_not_come_hold_up_nobody_and_end_in_time() {
    let options = Options { body_within: Duration::from_secs(2), ..Options::default() };
    let world = need!(world(options).await);
    let address = world.url.trim_start_matches("http://").to_owned();
    let head = "POST /v3/services/haproxy/configuration/raw?version=1 HTTP/1.1\r\nhost: x\r\nauthorization: Basic YWRtaW46YWRtaW5wd2Q=\r\n\
                content-type: text/plain\r\ncontent-length: 1000\r\n\r\nglobal";
    let begun = Instant::now();
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    let server = json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": 5 });
    let path = "configuration/backends/web/servers/s1?version=1";
    assert_eq!(ask(&world, "PUT", path, Some(server)).await.0, 200);
    for mut stream in slow {
        let mut answer = vec![0; 12];
        tokio::time::timeout(WITHIN, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 408");
    }
    assert!(begun.elapsed() >= options.body_within);
    assert_eq!(world.api.instance().version(), 2, "nothing was pushed");
    world.end().await;
}
