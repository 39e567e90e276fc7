//! Clients and a HAProxy that do not behave.

use std::time::Duration;

use reqwest::Client;
use serde_json::{Value as Json, json};
use setpoint_testutils::{Missing, need};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{Plan, WITHIN, World};

async fn world() -> Result<World, Missing> {
    let plan = Plan::default();
    World::start(&plan, |folder, ports| {
        format!(
            "global\n  stats socket {}/run.sock level admin\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
             frontend f\n  bind {}\nbackend web\n  server s1 127.0.0.1:9 weight 1\n",
            folder.display(),
            ports[0].address()
        )
    })
    .await
}

async fn ask(world: &World, method: &str, path: &str, body: Option<Json>) -> (u16, Json) {
    let client = Client::builder().no_proxy().timeout(Duration::from_mins(1)).build().unwrap();
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = client.request(method, format!("{}/v3/services/haproxy/{path}", world.url));
    let request = request.basic_auth("admin", Some("adminpwd"));
    let request = match body {
        Some(body) => request.header("content-type", "application/json").body(body.to_string()),
        None => request,
    };
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Json::Null))
}

fn server(weight: u64) -> Json {
    json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": weight })
}

#[tokio::test]
async fn of_many_who_change_the_same_version_one_wins() {
    let world = need!(world().await);
    let tries = (0..60_u64).map(|number| {
        let world = &world;
        async move {
            let version = ask(world, "GET", "configuration/version", None).await.1;
            let path = format!("configuration/backends/web/servers/s1?version={version}");
            ask(world, "PUT", &path, Some(server(number + 1))).await.0
        }
    });
    let statuses = futures::future::join_all(tries).await;
    let won = statuses.iter().filter(|status| **status == 200).count();
    assert!(won > 0 && statuses.iter().all(|status| matches!(status, 200 | 409)), "{statuses:?}");
    let version = ask(&world, "GET", "configuration/version", None).await.1;
    assert_eq!(version, 1 + won, "each that won made one version: {statuses:?}");
    world.settled().await;
    assert!(world.api.instance().differences().await.unwrap().is_empty());
    world.end().await;
}

#[tokio::test]
async fn what_is_malformed_is_refused_and_nobody_else_notices() {
    let world = need!(world().await);
    let address = world.url.trim_start_matches("http://").to_owned();
    for bytes in [
        &b"\x00\x01\x02\r\n\r\n"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v3/services/haproxy/transactions?version=1 HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999\r\n\r\n",
        b"GET /v3/%ff%fe/%00?x=%zz&&= HTTP/1.1\r\nhost: x\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(WITHIN, stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "{bytes:?}");
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{bytes:?}: {text}");
    }
    for (path, body) in [
        ("configuration/backends?version=1", json!({ "name": "a\nb" })),
        ("configuration/backends?version=1", json!([[[[]]]])),
        ("configuration/backends?version=1", json!({ "name": "b", "servers": 5 })),
        ("configuration/backends/web/servers?version=1", json!({ "name": "x y", "address": "127.0.0.1" })),
        (
            "configuration/backends/web/http_request_rules/99999999999999999999?version=1",
            json!({ "type": "allow" }),
        ),
        ("runtime/backends/web/servers", json!({ "name": "x;shutdown", "address": "127.0.0.1", "port": 9 })),
    ] {
        let (status, _) = ask(&world, "POST", path, Some(body.clone())).await;
        assert!((400..500).contains(&status), "{path} {body}: {status}");
    }
    assert_eq!(ask(&world, "GET", "configuration/version", None).await, (200, json!(1)));
    // One that sends half a body holds up nobody.
    let mut slow = TcpStream::connect(&address).await.unwrap();
    slow.write_all(b"POST /v3/services/haproxy/configuration/raw?version=1 HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nglobal").await.unwrap();
    let path = "configuration/backends/web/servers/s1?version=1";
    assert_eq!(ask(&world, "PUT", path, Some(server(5))).await.0, 200);
    world.end().await;
}

#[tokio::test]
async fn a_hung_haproxy_holds_up_no_reader_and_a_change_says_that_it_waits() {
    let world = need!(world().await);
    let worker =
        setpoint_instance::reload::processes(world.api.instance().master()).await.unwrap().serving().unwrap();
    let identity = setpoint_instance::process::Identity::of(worker.pid).unwrap();
    identity.signal(rustix::process::Signal::STOP).unwrap();
    assert_eq!(ask(&world, "GET", "configuration/backends/web/servers/s1", None).await.0, 200);
    // It is written, and a reload is ordered, because HAProxy can't be told.
    let (status, _) =
        ask(&world, "PUT", "configuration/backends/web/servers/s1?version=1", Some(server(7))).await;
    assert_eq!(status, 202);
    identity.signal(rustix::process::Signal::CONT).unwrap();
    world.settled().await;
    assert!(world.api.instance().differences().await.unwrap().is_empty());
    world.end().await;
}

#[tokio::test]
async fn a_change_is_made_to_its_end_whoever_hangs_up() {
    let world = need!(world().await);
    let address = world.url.trim_start_matches("http://").to_owned();
    let serving = || async {
        setpoint_instance::reload::processes(world.api.instance().master()).await.unwrap().serving().unwrap()
    };
    let before = serving().await;
    // It takes a check and a reload; nobody waits for the answer.
    let body =
        json!({ "name": "hung", "servers": { "h": { "name": "h", "address": "127.0.0.1", "port": 9 } } });
    let body = body.to_string();
    let request = format!(
        "POST /v3/services/haproxy/configuration/backends?version=1&force_reload=true&full_section=true HTTP/1.1\r\nhost: x\r\n\
         authorization: Basic YWRtaW46YWRtaW5wd2Q=\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    drop(stream);
    let reloaded = async || {
        let processes = setpoint_instance::reload::processes(world.api.instance().master()).await.ok()?;
        processes.serving().filter(|worker| worker.pid != before.pid)
    };
    setpoint_testutils::wait::until("the reload", WITHIN, reloaded).await;
    world.settled().await;
    assert_eq!(ask(&world, "GET", "configuration/version", None).await, (200, json!(2)));
    assert!(world.api.instance().differences().await.unwrap().is_empty());
    world.end().await;
}

#[tokio::test]
async fn a_server_that_is_added_while_haproxy_hangs_is_there_when_it_goes_on_whoever_hangs_up() {
    let world = need!(world().await);
    let address = world.url.trim_start_matches("http://").to_owned();
    let worker =
        setpoint_instance::reload::processes(world.api.instance().master()).await.unwrap().serving().unwrap();
    let identity = setpoint_instance::process::Identity::of(worker.pid).unwrap();
    identity.signal(rustix::process::Signal::STOP).unwrap();
    let body = json!({ "name": "s2", "address": "127.0.0.1", "port": 9 }).to_string();
    let request = format!(
        "POST /v3/services/haproxy/configuration/backends/web/servers?version=1 HTTP/1.1\r\nhost: x\r\n\
         authorization: Basic YWRtaW46YWRtaW5wd2Q=\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(&address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let written = async || std::fs::read_to_string(world.file()).unwrap().contains("server s2").then_some(());
    setpoint_testutils::wait::until("the file", WITHIN, written).await;
    drop(stream);
    identity.signal(rustix::process::Signal::CONT).unwrap();
    let agrees = async || {
        let found = world.api.instance().differences().await;
        found.is_ok_and(|found| found.is_empty()).then_some(())
    };
    setpoint_testutils::wait::until("HAProxy to run what the file says", WITHIN, agrees).await;
    world.end().await;
}

#[tokio::test]
async fn a_runtime_action_that_haproxy_refuses_is_made_good_by_a_reload() {
    let world = need!(world().await);
    let client = Client::builder().no_proxy().build().unwrap();
    let push = async |version: u64, actions: &str| {
        let text = std::fs::read_to_string(world.file()).unwrap();
        let url =
            format!("{}/v3/services/haproxy/configuration/raw?version={version}&skip_reload=true", world.url);
        let request =
            client.post(url).basic_auth("admin", Some("adminpwd")).header("content-type", "text/plain");
        let answer = request.header("x-runtime-actions", actions).body(text).send().await.unwrap();
        (answer.status().as_u16(), answer.headers().contains_key("reload-id"))
    };
    assert_eq!(push(1, "SetServerWeight web s1 7").await, (201, false));
    assert_eq!(push(2, "SetServerWeight web nowhere 7;SetServerWeight web s1 8").await, (202, true));
    world.settled().await;
    world.end().await;
}

#[tokio::test]
async fn thousands_of_clients_that_stay_are_all_answered_and_changes_are_made_beside_them() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    // Both ends of each connection are files of this process.
    let most = limit.maximum.map_or(2_000, |most| most.saturating_sub(500) / 2);
    let count = usize::try_from(most).unwrap().min(2_000);
    let world = need!(world().await);
    let address = world.url.trim_start_matches("http://").to_owned();
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(TcpStream::connect(&address).await.unwrap());
    }
    let request = b"GET /v3/services/haproxy/configuration/version HTTP/1.1\r\nhost: x\r\nauthorization: Basic YWRtaW46YWRtaW5wd2Q=\r\n\r\n";
    for round in 1..=2_u64 {
        for client in &mut clients {
            client.write_all(request).await.unwrap();
        }
        let path = format!("configuration/backends/web/servers/s1?version={round}");
        assert_eq!(ask(&world, "PUT", &path, Some(server(round + 1))).await.0, 200);
        for client in &mut clients {
            let mut answer = vec![0; 2_000];
            let length = tokio::time::timeout(WITHIN, client.read(&mut answer)).await.unwrap().unwrap();
            assert!(answer[..length].starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
        }
    }
    world.end().await;
}
