//! What something else keeps changing back is repaired less and less often, and said; what is our own is no news.
//!
//! These run with the defaults, which people run.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use setpoint_composite::api::ConditionType;
use setpoint_composite::settings::{Namespaces, Settings};
use setpoint_consul as consul;
use setpoint_testutils::{Acl, Consul, need, wait};

use super::world::{LIMIT, Running, World, before_consul, looks, rests};

fn defaults(world: &World) -> Settings {
    Settings { namespaces: Namespaces::Only([world.name().to_owned()].into()), ..Settings::default() }
}

/// Waits until a metric of the namespace has a value.
async fn counted(world: &World, running: &Running, metric: &str, value: u64) {
    let line = format!("setpoint_composite_{metric}{{namespace=\"{}\"}} {value}", world.name());
    let reported = async || running.metrics.text().contains(&line).then_some(());
    wait::until(&line, LIMIT, reported).await;
}

#[tokio::test]
async fn keys_that_something_keeps_changing_are_put_back_less_and_less_often_and_that_is_reported() {
    let world = need!(World::new().await);
    let ns = world.name();
    let running = world.operate_with(defaults(&world));
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    let key = format!("composite/{ns}/structure/{ns}/compositeRole");
    let fighting = async {
        loop {
            if world.consul.get(&key).await.unwrap().value.as_deref() == Some("baseline") {
                world.consul.put(&key, "satellite").await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let reported = async {
        let reported = world.condition("composite", ConditionType::Synced, "False", "Contested").await;
        for part in [key.as_str(), "`satellite`", "`baseline`", &format!("{ns}/composite")] {
            assert!(reported.message.contains(part), "{part} is not in {}", reported.message);
        }
        world.event("Contested").await;
        counted(&world, &running, "keys_contested", 1).await;
    };
    tokio::select! {
        () = fighting => {}
        () = reported => {}
    }
    // Left alone, it is put back, and says so.
    world.condition("composite", ConditionType::Synced, "True", "Written").await;
    assert_eq!(world.consul.get(&key).await.unwrap().value.as_deref(), Some("baseline"));
    counted(&world, &running, "keys_contested", 0).await;
}

#[tokio::test]
async fn a_status_that_something_keeps_changing_is_written_less_and_less_often_and_that_is_reported() {
    let world = need!(World::new().await);
    let running = world.operate_with(defaults(&world));
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    world.settled("composite").await;
    let (composites, parameters) = (world.composites(), PatchParams::default());
    let theirs = Patch::Merge(json!({ "status": { "role": null } }));
    let fighting = async {
        loop {
            let role = composites.get("composite").await.unwrap().status.and_then(|status| status.role);
            if role.is_some() {
                composites.patch_status("composite", &parameters, &theirs).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let reported = async {
        world.event("StatusContested").await;
        counted(&world, &running, "status_contested", 1).await;
    };
    tokio::select! {
        () = fighting => {}
        () = reported => {}
    }
    counted(&world, &running, "status_contested", 0).await;
    world.settled("composite").await;
}

#[tokio::test]
async fn own_writes_cause_no_further_look_at_consul() {
    let world = need!(World::new().await);
    let consul = need!(Consul::start(Acl::Off).await);
    let (proxy, url) = before_consul(&consul).await;
    let client = consul::Client::new(consul::Settings::new(url)).unwrap();
    let _running = Running::start(world.client.clone(), client, defaults(&world));
    let ns = world.name();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    rests(&proxy, Duration::from_secs(9)).await;
    let before = looks(&proxy);
    for round in 0..2 {
        consul.put(&format!("composite/{ns}/structure/z-{round}/compositeRole"), "satellite").await.unwrap();
        let satellites: Vec<_> = (0..=round).map(|round| json!({ "origin": format!("z-{round}") })).collect();
        world.publishes(json!({ "baseline": { "origin": ns }, "satellites": satellites })).await;
    }
    // Longer than a status is left alone that something else has changed: that nothing is done can't be waited for.
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(looks(&proxy) - before, 0, "what others write to Consul takes no look at our own keys");
}
