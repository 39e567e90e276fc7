//! A HAProxy in a container whose files and sockets are shared: it is used, and what has its process id here is left alone.

use std::ffi::OsStr;

use serde_json::json;
use setpoint_testutils::{Contained, Version, http, need};

use crate::{World, refused};

#[tokio::test]
async fn a_haproxy_in_a_container_is_used_and_its_process_id_is_nobodys_here() {
    let world = need!(World::new(Version::V3_4));
    let socket = world.folder.path().join("m.sock");
    let contained = need!(Contained::start(&world.program, &world.file(), &socket));
    contained.until("it serves", async || http::get(&world.port.http()).await).await;
    let (program, file) = (world.program.as_os_str(), world.file());
    let own = ["--haproxy".as_ref(), program, "--config".as_ref(), file.as_os_str()];
    let more: [&OsStr; 3] = ["--master-socket".as_ref(), socket.as_os_str(), "--reload-signal".as_ref()];
    let said = refused(&own.into_iter().chain(more).collect::<Vec<_>>());
    assert!(said.contains("reload-signal: ") && said.contains("in a container"), "{said}");
    assert!(contained.stranger_lives());

    let serving = world
        .serve_with(|command| command.arg("--master-socket").arg(&socket).args(["--reload-delay", "0.02"]));
    let said = serving.log.lock().unwrap().join("\n");
    let place = format!("is taken to run in {}", world.folder.path().display());
    assert!(said.contains("HAProxy runs in a container") && said.contains(&place), "{said}");
    assert_eq!(serving.weigh(1, 7).await.unwrap().0, 200);
    let new = json!({ "name": "b" });
    let path = "configuration/backends?version=2&force_reload=true";
    assert_eq!(serving.ask("POST", path, Some(&new)).await.unwrap().0, 201);
    assert_eq!(serving.weigh(3, 8).await.unwrap().0, 200);
    let said = serving.log.lock().unwrap().join("\n");
    assert!(!said.contains("has not read"), "{said}");
    assert!(contained.stranger_lives());
}
