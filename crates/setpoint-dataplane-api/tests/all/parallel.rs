//! Many clients at once, on several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::RequestBuilder;
use serde_json::{Value as Json, json};
use setpoint_testutils::{Missing, need};

use crate::found::{answer, request};
use crate::world::{Plan, World};

/// How many changes are made while others read.
const CHANGES: u64 = 60;

async fn world() -> Result<World, Missing> {
    World::start(&Plan::default(), |folder, ports| {
        format!(
            "global\n  stats socket {}/run.sock level admin\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
             frontend f\n  bind {}\nbackend web\n  server s1 127.0.0.1:9 weight 1\n",
            folder.display(),
            ports[0].address()
        )
    })
    .await
}

/// The status, the version that the answer speaks of, and its body.
async fn versioned(request: RequestBuilder) -> (u16, u64, Json) {
    let response = request.send().await.unwrap();
    let version = response.headers()["configuration-version"].to_str().unwrap().parse().unwrap();
    let status = response.status().as_u16();
    (status, version, serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Json::Null))
}

/// Reads the server until nothing changes any more. Returns how often it was read.
async fn read(world: Arc<World>, ended: Arc<AtomicBool>) -> usize {
    let mut reads = 0;
    while !ended.load(Ordering::Relaxed) {
        let path = "/services/haproxy/configuration/backends/web/servers/s1";
        let (status, version, server) = versioned(request(&world, "GET", path)).await;
        // Each change says the version that it makes.
        assert_eq!((status, server["weight"].as_u64()), (200, Some(version)), "{server}");
        reads += 1;
    }
    reads
}

/// Changes the server for each version that nobody else was faster with.
async fn change(world: Arc<World>) {
    loop {
        let path = "/services/haproxy/configuration/version";
        let (_, version, body) = versioned(request(&world, "GET", path)).await;
        assert_eq!(body, version);
        if version > CHANGES {
            return;
        }
        let path = format!("/services/haproxy/configuration/backends/web/servers/s1?version={version}");
        let server = json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": version + 1 });
        let request = request(&world, "PUT", &path).header("content-type", "application/json");
        let (status, made, body) = versioned(request.body(server.to_string())).await;
        match status {
            200 | 202 => assert_eq!(made, version + 1, "{body}"),
            409 => assert!(made > version, "{body}"),
            _ => panic!("{status}: {body}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_says_the_version_that_it_speaks_of_whoever_commits_meanwhile() {
    let world = Arc::new(need!(world().await));
    let ended = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> =
        (0..3).map(|_| tokio::spawn(read(Arc::clone(&world), Arc::clone(&ended)))).collect();
    let writers: Vec<_> = (0..3).map(|_| tokio::spawn(change(Arc::clone(&world)))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
    ended.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.await.unwrap() > 0);
    }
    world.settled().await;
    Arc::into_inner(world).unwrap().end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_create_a_file_of_one_name_one_does() {
    let world = Arc::new(need!(world().await));
    let creations: Vec<_> = (0..20)
        .map(|number| {
            let body = format!(
                "--xBOUNDx\r\nContent-Disposition: form-data; name=\"file_upload\"; filename=\"same\"\r\n\r\n{number}\r\n--xBOUNDx--\r\n"
            );
            let request = request(&world, "POST", "/services/haproxy/storage/general");
            let request = request.header("content-type", "multipart/form-data; boundary=xBOUNDx").body(body);
            tokio::spawn(async move { answer(request).await.0 })
        })
        .collect();
    let mut statuses = Vec::new();
    for creation in creations {
        statuses.push(creation.await.unwrap());
    }
    let made = statuses.iter().filter(|status| **status == 201).count();
    assert!(made == 1 && statuses.iter().all(|status| matches!(status, 201 | 409)), "{statuses:?}");
    Arc::into_inner(world).unwrap().end().await;
}
