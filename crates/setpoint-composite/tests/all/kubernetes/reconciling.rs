//! Composites become keys in Consul: written, changed, moved, put back, removed.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use setpoint_composite::api::{ConditionType, FINALIZER, RELEASE_ANNOTATION, Role};
use setpoint_composite::settings::Settings;
use setpoint_consul as consul;
use setpoint_testutils::{Proxy, need, wait};

use super::world::{LIMIT, Log, Running, World, before_consul, rests};

/// An operator that reaches Consul through a proxy.
async fn behind_a_proxy(world: &World) -> (Proxy, Running) {
    let (proxy, url) = before_consul(world.consul).await;
    let consul = consul::Client::new(consul::Settings::new(url)).unwrap();
    let running = Running::start(world.client.clone(), consul, world.settings());
    (proxy, running)
}

#[tokio::test]
async fn a_composite_is_written_published_and_reported() {
    let world = need!(World::new().await);
    let ns = world.name();
    let running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    let composite = world.settled("composite").await;
    world.structure_is(ns, &[(&format!("{ns}/compositeRole"), "baseline")]).await;
    let reference =
        world.consul.get(&format!("config/{ns}/application/composite/structureRef")).await.unwrap();
    assert_eq!(reference.value, Some(format!("composite/{ns}/structure")));
    let map = world.publishes(json!({ "baseline": { "origin": ns } })).await;

    let status = composite.status.clone().unwrap();
    assert_eq!((status.composite_id.as_deref(), status.role), (Some(ns), Some(Role::Baseline)));
    assert_eq!(status.observed_generation, composite.metadata.generation);
    assert_eq!(status.owned_keys.len(), 2);
    let published = status.published.unwrap();
    assert_eq!(published.config_map, "composite-structure");
    assert_eq!(map.annotations()["setpoint.dev/source-index"], published.index.to_string());
    assert_eq!(map.annotations()["setpoint.dev/schema-version"], "1");
    assert!(composite.finalizers().contains(&FINALIZER.to_owned()));
    for reason in ["Valid", "Written", "Applied"] {
        world.event(reason).await;
    }
    wait::until("the metrics to show it", LIMIT, async || {
        let text = running.metrics.text();
        let line = format!("setpoint_composite_applied_index{{namespace=\"{ns}\"}} {}", published.index);
        text.contains(&line).then_some(())
    })
    .await;
    running.stop().await;
}

#[tokio::test]
async fn only_what_changed_is_written_and_what_is_not_declared_any_more_is_removed() {
    let world = need!(World::new().await);
    let ns = world.name();
    let (controller, peer) = (format!("{ns}-c"), format!("{ns}-p"));
    let _running = world.operate();
    let spec = json!({ "originNamespace": ns, "controllerNamespace": controller, "peerNamespace": peer });
    world.declare("composite", spec).await;
    let blue_green = [
        (format!("{controller}/bluegreenRole"), "controller".to_owned()),
        (format!("{controller}/compositeRole"), "baseline".to_owned()),
        (format!("{ns}/bluegreenRole"), "origin".to_owned()),
        (format!("{ns}/compositeRole"), "baseline".to_owned()),
        (format!("{ns}/controllerNamespace"), controller.clone()),
        (format!("{peer}/bluegreenRole"), "peer".to_owned()),
        (format!("{peer}/compositeRole"), "baseline".to_owned()),
        (format!("{peer}/controllerNamespace"), controller.clone()),
    ];
    let borrowed: Vec<_> = blue_green.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    world.structure_is(ns, &borrowed).await;
    world.publishes(json!({ "baseline": { "controller": controller, "origin": ns, "peer": peer } })).await;
    world.settled("composite").await;
    let role = format!("composite/{ns}/structure/{ns}/compositeRole");
    let before = world.consul_client().get(&role, consul::Read::Consistent).await.unwrap();

    world.change("composite", json!({ "controllerNamespace": null, "peerNamespace": null })).await;
    world.structure_is(ns, &[(&format!("{ns}/compositeRole"), "baseline")]).await;
    world.publishes(json!({ "baseline": { "origin": ns } })).await;
    assert_eq!(
        world.consul_client().get(&role, consul::Read::Consistent).await.unwrap(),
        before,
        "it was left alone"
    );
    let owned = async || {
        (world.composites().get("composite").await.ok()?.status?.owned_keys.len() == 2).then_some(())
    };
    wait::until("the owned keys to be trimmed", LIMIT, owned).await;
}

#[tokio::test]
async fn a_changed_composite_id_moves_the_keys_and_the_watch() {
    let world = need!(World::new().await);
    let ns = world.name();
    let (one, two) = (format!("{ns}-one"), format!("{ns}-two"));
    let _running = world.operate();
    world.consul.put(&format!("composite/{two}/structure/{two}/compositeRole"), "baseline").await.unwrap();
    world
        .declare("composite", json!({ "originNamespace": ns, "baseline": { "originNamespace": one } }))
        .await;
    world.publishes(json!({ "satellites": [{ "origin": ns }] })).await;

    world.change("composite", json!({ "baseline": { "originNamespace": two } })).await;
    world.publishes(json!({ "baseline": { "origin": two }, "satellites": [{ "origin": ns }] })).await;
    world.structure_is(&one, &[]).await;
    let reference =
        world.consul.get(&format!("config/{ns}/application/composite/structureRef")).await.unwrap();
    assert_eq!(reference.value, Some(format!("composite/{two}/structure")));
}

#[tokio::test]
async fn own_keys_that_something_else_removed_or_changed_are_put_back() {
    let world = need!(World::new().await);
    let ns = world.name();
    let (proxy, _running) = behind_a_proxy(&world).await;
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    let role = format!("composite/{ns}/structure/{ns}/compositeRole");
    let reference = format!("config/{ns}/application/composite/structureRef");
    let value = format!("composite/{ns}/structure");
    for (key, value) in [(&role, "baseline"), (&reference, value.as_str())] {
        rests(&proxy, Duration::from_secs(2)).await;
        world.consul.delete(key).await.unwrap();
        let back = async || (world.consul.get(key).await.ok()?.value? == value).then_some(());
        wait::until(&format!("{key} to be put back"), LIMIT, back).await;
        world.consul.put(key, "something else").await.unwrap();
        wait::until(&format!("{key} to be set right"), LIMIT, back).await;
    }
    world.publishes(json!({ "baseline": { "origin": ns } })).await;
}

#[tokio::test]
async fn the_own_reference_is_put_back_also_where_nothing_is_published() {
    let world = need!(World::new().await);
    let ns = world.name();
    let _running = world.operate_with(Settings { sync_enabled: false, ..world.settings() });
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.condition("composite", ConditionType::Synced, "True", "Written").await;
    world.condition("composite", ConditionType::Published, "False", "Disabled").await;
    let reference = format!("config/{ns}/application/composite/structureRef");
    world.consul.delete(&reference).await.unwrap();
    let back = async || world.consul.get(&reference).await.ok()?.value.map(drop);
    wait::until("the reference to be put back", LIMIT, back).await;
    assert!(world.config_map().await.is_none());
}

#[tokio::test]
async fn of_several_composites_the_oldest_counts_and_the_next_takes_over() {
    let world = need!(World::new().await);
    let ns = world.name();
    let _running = world.operate();
    world.declare("a", json!({ "originNamespace": ns })).await;
    world.settled("a").await;
    // Ages are told in seconds, and equal ones go by name.
    world
        .declare(
            "b",
            json!({ "originNamespace": ns, "baseline": { "originNamespace": format!("{ns}-other") } }),
        )
        .await;
    let refused = world.condition("b", ConditionType::Accepted, "False", "NotOldest").await;
    assert!(refused.message.contains("`a`"), "{}", refused.message);
    assert!(world.composites().get("b").await.unwrap().finalizers().is_empty());
    let owner =
        world.publishes(json!({ "baseline": { "origin": ns } })).await.owner_references()[0].name.clone();
    assert_eq!(owner, "a");

    world.delete("a").await;
    world.settled("b").await;
    world.structure_is(ns, &[]).await;
    let map = world.publishes(json!({ "satellites": [{ "origin": ns }] })).await;
    assert_eq!(map.owner_references().iter().map(|owner| owner.name.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[tokio::test]
async fn deleting_a_composite_removes_its_keys_and_nothing_else() {
    let world = need!(World::new().await);
    let ns = world.name();
    let foreign = format!("composite/{ns}/structure/{ns}-sat/compositeRole");
    world.consul.put(&foreign, "satellite").await.unwrap();
    let _running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    world.delete("composite").await;
    world.gone("composite").await;
    assert_eq!(
        world.keys(&format!("composite/{ns}/")).await.into_keys().collect::<Vec<_>>(),
        [foreign],
        "no claim is left"
    );
    assert!(world.keys(&format!("config/{ns}/")).await.is_empty());
}

#[tokio::test]
async fn a_deletion_waits_for_consul_and_an_annotation_releases_it() {
    let world = need!(World::new().await);
    let ns = world.name();
    let (proxy, _running) = behind_a_proxy(&world).await;
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    proxy.cut();
    let log = Log::default();
    let logged = log.collect();
    world.delete("composite").await;
    let waiting = world.condition("composite", ConditionType::Synced, "False", "DeletionWaits").await;
    assert!(waiting.message.contains(RELEASE_ANNOTATION), "{}", waiting.message);
    world.event("DeletionWaits").await;
    let line = log.line_with("removing the keys from Consul failed").await;
    for part in ["WARN", &format!("namespace=\"{ns}\""), "composite=\"composite\"", "tried again in"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    drop(logged);

    let patch = Patch::Merge(json!({ "metadata": { "annotations": { RELEASE_ANNOTATION: "true" } } }));
    world.composites().patch("composite", &PatchParams::default(), &patch).await.unwrap();
    world.gone("composite").await;
    assert_eq!(world.structure(ns).await.len(), 1, "the keys are left behind");
    world.event("KeysLeft").await;
}

#[tokio::test]
async fn a_deletion_that_waited_goes_on_when_consul_is_back() {
    let world = need!(World::new().await);
    let ns = world.name();
    let (proxy, _running) = behind_a_proxy(&world).await;
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    proxy.cut();
    world.delete("composite").await;
    world.condition("composite", ConditionType::Synced, "False", "DeletionWaits").await;
    proxy.heal();
    world.gone("composite").await;
    assert!(world.structure(ns).await.is_empty());
}

#[tokio::test]
async fn without_consul_a_composite_says_so_and_is_written_when_it_is_back() {
    let world = need!(World::new().await);
    let ns = world.name();
    let (proxy, _running) = behind_a_proxy(&world).await;
    proxy.cut();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.condition("composite", ConditionType::Synced, "False", "ConsulUnavailable").await;
    world.condition("composite", ConditionType::Published, "False", "ConsulUnavailable").await;
    assert!(world.config_map().await.is_none(), "nothing is published that Consul did not say");
    proxy.heal();
    world.settled("composite").await;
    world.publishes(json!({ "baseline": { "origin": ns } })).await;
}

#[tokio::test]
async fn keys_that_a_crash_left_behind_are_removed_by_the_next_run() {
    let world = need!(World::new().await);
    let ns = world.name();
    let orphan = format!("composite/{ns}/structure/{ns}-old/compositeRole");
    let claim = format!("composite/{ns}/claims/{ns}-old/compositeRole/{ns}/composite");
    for key in [&orphan, &claim] {
        world.consul.put(key, "baseline").await.unwrap();
    }
    let mut composite = world.declare("composite", json!({ "originNamespace": ns })).await;
    // As a run leaves it that was killed after it had written keys that are not declared any more.
    let mut status = composite.status.take().unwrap_or_default();
    status.owned_keys = BTreeSet::from([orphan.clone()]);
    composite.status = Some(status);
    world
        .composites()
        .replace_status("composite", &kube::api::PostParams::default(), &composite)
        .await
        .unwrap();
    let _running = world.operate();
    world.settled("composite").await;
    world.structure_is(ns, &[(&format!("{ns}/compositeRole"), "baseline")]).await;
    let owned = world.composites().get("composite").await.unwrap().status.unwrap().owned_keys;
    assert!(!owned.contains(&orphan), "{owned:?}");
}

#[tokio::test]
async fn keys_that_another_composite_declares_stay_when_one_goes() {
    let world = need!(World::new().await);
    let other = need!(World::new().await);
    let (origin, peer) = (world.name(), other.name());
    let spec = json!({ "originNamespace": origin, "controllerNamespace": format!("{origin}-c"), "peerNamespace": peer });
    let mut settings = super::world::fast(&[origin, peer]);
    settings.check_interval = Duration::from_mins(10);
    let _running = world.operate_with(settings);
    world.declare("composite", spec.clone()).await;
    other.declare("composite", spec).await;
    world.settled("composite").await;
    other.settled("composite").await;
    let before = world.structure(origin).await;
    assert_eq!(before.len(), 8);
    other.delete("composite").await;
    other.gone("composite").await;
    assert_eq!(world.structure(origin).await, before);
    assert!(world.keys(&format!("config/{peer}/")).await.is_empty());
}

#[tokio::test]
async fn a_composite_that_is_made_anew_owns_the_config_map() {
    let world = need!(World::new().await);
    let ns = world.name();
    let _running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    let old = world.settled("composite").await.uid();
    world.composites().delete("composite", &DeleteParams::default()).await.unwrap();
    world.gone("composite").await;
    let new = world.declare("composite", json!({ "originNamespace": ns })).await.uid();
    assert_ne!(old, new);
    world
        .until("the new owner", |map| {
            map.owner_references().iter().any(|owner| Some(&owner.uid) == new.as_ref())
        })
        .await;
    world.publishes(json!({ "baseline": { "origin": ns } })).await;
}

#[tokio::test]
async fn the_api_server_refuses_what_makes_no_sense() {
    let world = need!(World::new().await);
    let refused = [
        (json!({}), "originNamespace"),
        (json!({ "originNamespace": "" }), "originNamespace"),
        (json!({ "originNamespace": "Upper" }), "originNamespace"),
        (json!({ "originNamespace": "o", "controllerNamespace": "c" }), "set both or neither"),
        (json!({ "originNamespace": "o", "peerNamespace": "p" }), "set both or neither"),
        (
            json!({ "originNamespace": "o", "controllerNamespace": "o", "peerNamespace": "p" }),
            "three different",
        ),
        (json!({ "originNamespace": "o", "baseline": { "originNamespace": "o" } }), "satellite of itself"),
        (json!({ "originNamespace": "o", "baseline": {} }), "originNamespace"),
        (
            json!({ "originNamespace": "o", "baseline": { "originNamespace": "b", "peerNamespace": "p" } }),
            "set both or neither",
        ),
    ];
    for (spec, why) in refused {
        let error = world.try_declare("composite", spec.clone()).await.unwrap_err().to_string();
        assert!(error.contains(why), "{spec}: {error}");
    }
    let blank = json!({ "originNamespace": "o", "controllerNamespace": "", "peerNamespace": "" });
    world.try_declare("composite", blank).await.expect("blank is as good as not set");
    let wrong = json!({
        "apiVersion": "core.netcracker.com/v1", "kind": "Composite", "subKind": "Other",
        "metadata": { "name": "other" }, "spec": { "originNamespace": "o" },
    });
    let url = format!("/apis/core.netcracker.com/v1/namespaces/{}/composites", world.name());
    let request = http::Request::post(url).body(serde_json::to_vec(&wrong).unwrap()).unwrap();
    let error = world.client.request::<serde_json::Value>(request).await.unwrap_err().to_string();
    assert!(error.contains("subKind"), "{error}");
}

#[tokio::test]
async fn kubectl_shows_id_role_and_whether_it_is_ready() {
    let world = need!(World::new().await);
    let ns = world.name();
    let _running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    let output =
        world.namespace.kubernetes().kubectl().args(["-n", ns, "get", "composites"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "ID", "ROLE", "READY", "AGE"]);
    assert_eq!(rows[1][..4], ["composite", ns, "baseline", "True"]);
}
