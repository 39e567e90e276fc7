//! What can happen to a process: killed, stopped, resumed, ended.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use nix::sys::signal::Signal;
use serde_json::json;
use setpoint_composite::publish::{TRANSITIONS_ANNOTATION, payload_of};
use setpoint_testutils::{need, wait};
use tokio::time::sleep;

use crate::world::{LIMIT, NAME, ORDERED, World};

/// The keys that a Composite in one of the shapes below declares.
fn declared(world: &World, shape: usize) -> BTreeSet<String> {
    let ns = world.name();
    let of = |id: &str, namespace: &str, attributes: &[&str]| -> Vec<String> {
        attributes
            .iter()
            .map(|attribute| format!("composite/{id}/structure/{namespace}/{attribute}"))
            .collect()
    };
    let mut keys = vec![format!("config/{ns}/application/composite/structureRef")];
    match shape {
        0 => keys.extend(of(ns, ns, &["compositeRole"])),
        1 => {
            let member = ["bluegreenRole", "compositeRole", "controllerNamespace"];
            keys.extend(of(ns, &format!("{ns}-c"), &member[..2]));
            keys.extend(of(ns, ns, &member));
            keys.extend(of(ns, &format!("{ns}-p"), &member));
        }
        _ => keys.extend(of(&format!("{ns}-b"), ns, &["compositeRole"])),
    }
    keys.into_iter().collect()
}

fn spec(world: &World, shape: usize) -> serde_json::Value {
    let ns = world.name();
    let (controller, peer) = (format!("{ns}-c"), format!("{ns}-p"));
    match shape {
        0 => {
            json!({ "originNamespace": ns, "controllerNamespace": null, "peerNamespace": null, "baseline": null })
        }
        1 => {
            json!({ "originNamespace": ns, "controllerNamespace": controller, "peerNamespace": peer, "baseline": null })
        }
        _ => json!({
            "originNamespace": ns, "controllerNamespace": null, "peerNamespace": null,
            "baseline": { "originNamespace": format!("{ns}-b") },
        }),
    }
}

async fn all_keys(world: &World) -> BTreeSet<String> {
    let ns = world.name();
    let mut keys: BTreeSet<String> = BTreeSet::new();
    for id in [ns.to_owned(), format!("{ns}-b")] {
        keys.extend(world.structure(&id).await.into_keys());
    }
    let reference = format!("config/{ns}/application/composite/structureRef");
    if world.consul.get(&reference).await.unwrap().value.is_some() {
        keys.insert(reference);
    }
    keys
}

#[tokio::test]
async fn killed_again_and_again_it_leaves_no_key_behind_and_ends_on_what_is_declared() {
    let world = need!(World::new().await);
    let ns = world.name();
    world.declare(ns, "composite", json!({ "originNamespace": ns })).await;
    for round in 1..=12_usize {
        let mut operator = world.operate("one", &["--namespace", ns, "--leader-elect", "false"]);
        sleep(Duration::from_millis(40)).await;
        let patch = Patch::Merge(json!({ "spec": spec(&world, round % 3) }));
        world.composites().patch("composite", &PatchParams::default(), &patch).await.unwrap();
        // Sooner and later, so that it is killed in the middle of different steps.
        sleep(Duration::from_millis((round as u64 * 37) % 230)).await;
        operator.process.kill();
    }
    for shape in [1, 2, 0] {
        let patch = Patch::Merge(json!({ "spec": spec(&world, shape) }));
        world.composites().patch("composite", &PatchParams::default(), &patch).await.unwrap();
        let mut operator = world.operate("one", &["--namespace", ns, "--leader-elect", "false"]);
        let expected = declared(&world, shape);
        let mut last = (BTreeSet::new(), BTreeSet::new());
        let settled = wait::within(LIMIT, async || {
            let owned = world.composites().get("composite").await.ok()?.status.unwrap_or_default().owned_keys;
            last = (all_keys(&world).await, owned);
            (last.0 == expected && last.1 == expected).then_some(())
        });
        settled.await.unwrap_or_else(|| panic!("never {expected:?}, but {last:?}"));
        world.agrees(&if shape == 2 { format!("{ns}-b") } else { ns.to_owned() }).await;
        operator.process.kill();
    }
    let versions = world.history.versions_that_never_go_back(NAME, &ORDERED).await;
    assert!(versions.len() >= 3, "it published while it was killed: {}", versions.len());
}

#[tokio::test]
async fn a_leader_that_was_stopped_past_its_lease_writes_nothing_when_it_goes_on() {
    let world = need!(World::new().await);
    let ns = world.name();
    let one = world.operate_here("one");
    world.led_by("one").await;
    let mut two = world.operate_here("two");
    world.declare(ns, "composite", json!({ "originNamespace": ns })).await;
    world.agrees(ns).await;

    // Stopped in the middle of a flood of changes, with requests under way.
    let role = |number: u32| format!("composite/{ns}/structure/{ns}-{:02}/compositeRole", number % 30);
    for number in 0..30 {
        world.consul.put(&role(number), "satellite").await.unwrap();
        sleep(Duration::from_millis(5)).await;
    }
    one.process.pause();
    for number in 0..15 {
        world.consul.delete(&role(number)).await.unwrap();
    }
    let term = world.led_by("two").await.to_string();
    let map = world.agrees(ns).await;
    assert_eq!(map.annotations()[TRANSITIONS_ANNOTATION], term);

    one.process.resume();
    let printed = async || one.process.log().contains("does not lead any more").then_some(());
    one.process.until_within(LIMIT, "it notices", printed).await;
    for number in 15..20 {
        world.consul.delete(&role(number)).await.unwrap();
    }
    world.agrees(ns).await;
    let versions = world.history.versions_that_never_go_back(NAME, &ORDERED).await;
    let last = versions.last().unwrap();
    assert_eq!(last.annotations()[TRANSITIONS_ANNOTATION], term, "the former leader wrote nothing");

    // It is as good as any other when the present leader is killed.
    two.process.kill();
    world.led_by("one").await;
    world.consul.delete(&role(29)).await.unwrap();
    let map = world.agrees(ns).await;
    assert!(!payload_of(&map).unwrap().contains(&format!("{ns}-29")));
    world.history.versions_that_never_go_back(NAME, &ORDERED).await;
}

#[tokio::test]
async fn asked_to_end_it_gives_the_lease_back_and_exits_with_0() {
    let world = need!(World::new().await);
    let ns = world.name();
    let operator = world.operate_here("one");
    world.led_by("one").await;
    world.declare(ns, "composite", json!({ "originNamespace": ns })).await;
    world.agrees(ns).await;
    operator.process.signal_leader(Signal::SIGTERM);
    let ended = async || operator.process.exit_status();
    let status = wait::until("it to end", LIMIT, ended).await;
    assert_eq!(status.code(), Some(0), "{}", operator.process.log());
    world.led_by("").await;
}
