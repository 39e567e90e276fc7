//! Backends that come at runtime, where HAProxy can be told.

use std::fs;

use serde_json::json;
use setpoint_instance::cli::Request;
use setpoint_instance::instance::Applied;
use setpoint_instance::runtime::Reply;
use setpoint_testutils::{Missing, Port, Version, http, need, wait};

use crate::instance::{Running, backend, change};
use crate::world::{WITHIN, World};

/// A HAProxy that sends each request to the backend that its path names, and answers on another port itself.
async fn start(version: Version, lines: Option<&str>) -> Result<(Running, Port), Missing> {
    let (world, port) = (World::new(version)?, Port::lease());
    let text = format!(
        "global\n  hard-stop-after 5s\n  stats socket {} level admin\ndefaults d\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n  default-server weight 7\n\
         frontend main from d\n  bind {}\n  use_backend %[path,field(2,/)]\n\
         frontend answer from d\n  bind {}\n  http-request return status 200 content-type text/plain string served\n\
         backend web from d\n  server s1 127.0.0.1:9\n",
        world.folder.path().join("run.sock").display(),
        world.port.address(),
        port.address()
    );
    fs::write(world.file(), text).unwrap();
    let mut settings = world.settings(version);
    settings.program = lines.map_or(settings.program, |lines| world.check_with(lines));
    Ok((Running::start_on(world, settings).await, port))
}

async fn get(running: &Running, path: &str) -> Option<String> {
    http::get(&format!("http://{}/{path}", running.world.port.address())).await
}

#[tokio::test]
async fn a_backend_with_named_defaults_comes_without_a_reload_where_haproxy_can_be_told() {
    for version in Version::ALL {
        let (running, port) = need!(start(version, None).await);
        let worker = running.worker().await;
        let server = json!({ "name": "s", "address": "127.0.0.1", "port": port.number() });
        let new = json!({ "name": "new", "from": "d", "mode": "http", "servers": { "s": server } });
        let done = change(&running.instance, backend(new)).await.unwrap();
        let is_told = done.applied == Applied::Runtime;
        assert_eq!(is_told, version == Version::V3_4, "{version:?}: {done:?}");
        running.settled().await;
        assert_eq!(running.worker().await == worker, is_told, "{version:?}");
        assert_eq!(get(&running, "new").await.as_deref(), Some("served"), "{version:?}");
        let states = running.instance.worker().servers(Some("new")).await.unwrap().unwrap();
        assert_eq!((states[0].weight(), states[0].forced_state()), (7, None), "{version:?}");
        assert_eq!(running.instance.differences().await.unwrap(), [""; 0], "{version:?}");
        // What it is at runtime is what it is when it is loaded.
        running.instance.reload().await.unwrap();
        assert_eq!(get(&running, "new").await.as_deref(), Some("served"), "{version:?}");
        // Without a name of its defaults, it can't be told.
        let done = change(&running.instance, backend(json!({ "name": "other" }))).await.unwrap();
        assert!(matches!(done.applied, Applied::Ordered(_)), "{version:?}: {done:?}");
        running.settled().await;
        running.stop().await;
    }
}

#[tokio::test]
async fn a_backend_that_was_added_at_runtime_goes_again_if_the_check_refuses_it() {
    let refuses = "for file in \"$@\"; do if [ -f \"$file\" ] && grep -q 'backend new' \"$file\"; then exit 1; fi; done";
    let (running, _port) = need!(start(Version::V3_4, Some(refuses)).await);
    let done = change(&running.instance, backend(json!({ "name": "new", "from": "d" }))).await.unwrap();
    assert_eq!(done.applied, Applied::Runtime);
    let is_gone = async || {
        let shown = running.instance.worker().ask(&Request::new("show backend")).await.ok()?;
        let Reply::Done(shown) = shown else { return None };
        let text = fs::read_to_string(running.world.file()).unwrap();
        (shown.contains("web") && !shown.contains("new") && !text.contains("backend new")).then_some(())
    };
    wait::until("the backend to go", WITHIN, is_gone).await;
    running.stop().await;
}
