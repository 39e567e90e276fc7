//! Probes, metrics, and the service manager.

use std::os::unix::net::UnixDatagram;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use setpoint_testutils::{http, need, wait};

use crate::world::{LIMIT, World};

#[tokio::test]
async fn probes_and_metrics_are_served_by_the_leader_and_by_who_stands_by() {
    let world = need!(World::new().await);
    let ns = world.name();
    let one = world.operate_here("one");
    world.led_by("one").await;
    let two = world.operate_here("two");
    world.declare(ns, "composite", json!({ "originNamespace": ns })).await;
    world.agrees(ns).await;
    for (operator, role, leader) in [(&one, "leading", 1), (&two, "standby", 0)] {
        let url = |path: &str| format!("{}/{path}", operator.port.http());
        let ready = async || http::get(&url("readyz")).await.filter(|answer| answer.trim() == role);
        operator.process.until(&format!("it is {role}"), ready).await;
        assert_eq!(http::get(&url("healthz")).await.as_deref(), Some("ok\n"));
        let metrics = http::get(&url("metrics")).await.unwrap();
        assert!(metrics.contains(&format!("\nsetpoint_composite_leader {leader}\n")), "{metrics}");
        assert!(metrics.ends_with("# EOF\n"), "{metrics}");
        let state = async || {
            let state: Value = serde_json::from_str(&http::get(&url("debug/state")).await?).ok()?;
            // Who stands by knows of no namespaces.
            let known = &state["namespaces"][ns];
            let as_expected = if leader == 1 {
                known["ready"] == "True" && known["compositeId"] == ns
            } else {
                known.is_null() && state["listed"] == false
            };
            (as_expected && state["role"] == role).then_some(())
        };
        operator.process.until("its state says so too", state).await;
    }
}

/// Waits for a message to systemd that contains a text; those before it are dropped.
async fn message(socket: &UnixDatagram, wanted: &str) -> String {
    let mut seen = Vec::new();
    let found = wait::within(LIMIT, async || {
        let mut buffer = [0; 4096];
        while let Ok(length) = socket.recv(&mut buffer) {
            let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if message.contains(wanted) {
                return Some(message);
            }
            seen.push(message);
        }
        None
    });
    found.await.unwrap_or_else(|| panic!("no message has {wanted:?}: {seen:?}"))
}

#[tokio::test]
async fn systemd_is_notified_when_the_operator_leads_that_it_is_alive_and_when_it_ends() {
    let world = need!(World::new().await);
    let path = world.folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "200000")];
    let one = world.operate_with(world.consul, "one", &["--namespace", world.name()], &variables);
    let ready = message(&socket, "READY=1").await;
    // It may have stood by for a moment before.
    assert!(["READY=1\nSTATUS=leading", "READY=1\nSTATUS=standby"].contains(&&*ready), "{ready}");
    for _ in 0..3 {
        message(&socket, "WATCHDOG=1").await;
    }
    let two = world.operate_here("two");
    one.process.signal_leader(Signal::SIGTERM);
    message(&socket, "STOPPING=1\nSTATUS=stopping").await;
    wait::until("it to end", LIMIT, async || one.process.exit_status()).await;
    world.led_by("two").await;
    drop(two);
}
