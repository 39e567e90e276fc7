//! Whose ConfigMap it is, and what is done to one that is not ours.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use setpoint_composite::api::ConditionType;
use setpoint_composite::publish::{MANAGED_BY, PART_OF};
use setpoint_testutils::{need, wait};

use super::world::{LIMIT, NAME, ORDERED, World, fast, from};

/// Makes the ConfigMap as somebody else would.
async fn make(world: &World, metadata: Value, data: &str) {
    let mut map = json!({ "metadata": metadata, "data": { "data": data } });
    map["metadata"]["name"] = json!(NAME);
    let somebody = PostParams { field_manager: Some("somebody".to_owned()), ..PostParams::default() };
    world.config_maps().create(&somebody, &from::<ConfigMap>(map)).await.unwrap();
}

fn claims(map: &ConfigMap) -> String {
    let mine = map.managed_fields().iter().filter(|claim| claim.manager.as_deref() == Some("core-operator"));
    mine.map(|claim| serde_json::to_string(&claim.fields_v1).unwrap()).collect()
}

#[tokio::test]
async fn should_skip_a_config_map_that_another_operator_manages() {
    let world = need!(World::new().await);
    let ns = world.name();
    make(&world, json!({ "labels": { MANAGED_BY: "other" } }), "theirs").await;
    let running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.condition("composite", ConditionType::Synced, "True", "Written").await;
    let condition = world.condition("composite", ConditionType::Published, "False", "NotOwned").await;
    assert!(condition.message.contains("`other`"), "{}", condition.message);
    world.event("NotOwned").await;
    running.stop().await;
    let map = world.config_map().await.unwrap();
    assert_eq!(map.data.unwrap()["data"], "theirs");
    assert_eq!(world.history.versions(NAME).await.len(), 1, "it was never written to");
}

#[tokio::test]
async fn should_merge_labels_without_taking_foreign_ones_over() {
    let world = need!(World::new().await);
    let ns = world.name();
    make(&world, json!({ "labels": { "team": "red" }, "annotations": { "note": "mine" } }), "old").await;
    let _running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    let map = world.publishes(json!({ "baseline": { "origin": ns } })).await;
    assert_eq!(map.labels()["team"], "red");
    assert_eq!(
        (map.labels()[MANAGED_BY].as_str(), map.labels()[PART_OF].as_str()),
        ("core-operator", "Cloud-Core")
    );
    assert_eq!(map.annotations()["note"], "mine");
    let ours = claims(&map);
    assert!(ours.contains("f:data") && !ours.contains("team") && !ours.contains("note"), "{ours}");
}

#[tokio::test]
async fn losing_the_label_stops_at_once_and_regaining_it_resumes() {
    let world = need!(World::new().await);
    let ns = world.name();
    let running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    world.patch_map(json!({ "metadata": { "labels": { MANAGED_BY: "other" } } })).await;
    world.condition("composite", ConditionType::Published, "False", "NotOwned").await;
    let handed_over = world
        .until("our reference to go", |map| map.owner_references().is_empty() && claims(map).is_empty())
        .await;
    assert!(handed_over.data.unwrap()["data"].contains(ns), "what was published stays");
    let owned = format!("setpoint_composite_config_map_owned{{namespace=\"{ns}\"}} 0");
    wait::until("the metrics to show it", LIMIT, async || {
        running.metrics.text().contains(&owned).then_some(())
    })
    .await;

    // What Consul says is not published any more, and the ConfigMap of another is not written. Own keys are still looked after.
    world.patch_map(json!({ "data": { "data": "theirs" } })).await;
    let versions = world.history.versions(NAME).await.len();
    world.consul.put(&format!("composite/{ns}/structure/{ns}-sat/compositeRole"), "satellite").await.unwrap();
    let own = format!("composite/{ns}/structure/{ns}/compositeRole");
    world.consul.delete(&own).await.unwrap();
    let back = async || world.consul.get(&own).await.ok()?.value.map(drop);
    wait::until("the own key to be put back", LIMIT, back).await;
    assert_eq!(world.config_map().await.unwrap().data.unwrap()["data"], "theirs");
    assert_eq!(world.history.versions(NAME).await.len(), versions);

    world.patch_map(json!({ "metadata": { "labels": { MANAGED_BY: "core-operator" } } })).await;
    world
        .publishes(json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": format!("{ns}-sat") }] }))
        .await;
    world.condition("composite", ConditionType::Published, "True", "Applied").await;
    assert!(world.history.versions_that_never_go_back(NAME, &ORDERED).await.len() > versions);
}

#[tokio::test]
async fn a_config_map_is_collected_with_its_composite_unless_it_was_handed_over() {
    let (world, other) = (need!(World::new().await), need!(World::new().await));
    let _running = world.operate_with(fast(&[world.name(), other.name()]));
    for one in [&world, &other] {
        one.declare("composite", json!({ "originNamespace": one.name() })).await;
        one.settled("composite").await;
    }
    world.patch_map(json!({ "metadata": { "labels": { MANAGED_BY: "other" } } })).await;
    world.until("our reference to go", |map| map.owner_references().is_empty()).await;
    world.delete("composite").await;
    other.delete("composite").await;
    // The collector looks for new kinds of owners every half a minute.
    let collected = async || other.config_map().await.is_none().then_some(());
    wait::until("the ConfigMap to be collected", LIMIT * 2, collected).await;
    assert!(world.config_map().await.is_some());
}

#[tokio::test]
async fn a_foreign_controller_is_lost_ownership_and_no_retry() {
    let world = need!(World::new().await);
    let ns = world.name();
    let owner: ConfigMap = from(json!({ "metadata": { "name": "owner" } }));
    let owner = world.config_maps().create(&PostParams::default(), &owner).await.unwrap();
    let reference = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(), "controller": true });
    make(&world, json!({ "ownerReferences": [reference] }), "theirs").await;
    let running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    let condition = world.condition("composite", ConditionType::Published, "False", "NotOwned").await;
    assert!(condition.message.contains("ConfigMap owner"), "{}", condition.message);
    assert_eq!(world.history.versions(NAME).await.len(), 1, "it was never written to");

    world.patch_map(json!({ "metadata": { "ownerReferences": null } })).await;
    world.publishes(json!({ "baseline": { "origin": ns } })).await;
    world.condition("composite", ConditionType::Published, "True", "Applied").await;
    running.stop().await;
}

#[tokio::test]
async fn a_conflict_is_settled_by_forcing_our_own_fields_and_no_others() {
    let world = need!(World::new().await);
    let ns = world.name();
    let _running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    // Another manager takes our data, our label, and a field of its own.
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": NAME, "labels": { PART_OF: "Other", "team": "red" } },
        "data": { "data": "theirs", "other": "mine" },
    });
    let parameters = PatchParams::apply("other").force();
    world.config_maps().patch(NAME, &parameters, &Patch::Apply(theirs)).await.unwrap();
    let map = world.publishes(json!({ "baseline": { "origin": ns } })).await;
    assert_eq!(map.labels()[PART_OF], "Cloud-Core");
    assert_eq!(map.labels()["team"], "red");
    assert_eq!(map.data.as_ref().unwrap()["other"], "mine");
    assert!(!claims(&map).contains("team"), "{}", claims(&map));
    // The next change meets no conflict: the claims are ours alone again.
    world.consul.put(&format!("composite/{ns}/structure/{ns}-sat/compositeRole"), "satellite").await.unwrap();
    world
        .publishes(json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": format!("{ns}-sat") }] }))
        .await;
    world.history.versions_that_never_go_back(NAME, &ORDERED).await;
}

#[tokio::test]
async fn what_is_changed_or_deleted_by_hand_is_repaired_at_once() {
    let world = need!(World::new().await);
    let ns = world.name();
    let _running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    let whole = world.config_map().await.unwrap();
    let intact = |map: &ConfigMap| {
        map.data == whole.data
            && map.labels() == whole.labels()
            && map.owner_references() == whole.owner_references()
    };
    for change in [
        json!({ "data": { "data": "{}" } }),
        json!({ "data": null }),
        json!({ "metadata": { "labels": null } }),
        json!({ "metadata": { "labels": { PART_OF: "Other" } } }),
        json!({ "metadata": { "ownerReferences": null } }),
        json!({ "metadata": { "annotations": null } }),
    ] {
        world.patch_map(change.clone()).await;
        world.until(&format!("the repair of {change}"), intact).await;
    }
    world.config_maps().delete(NAME, &DeleteParams::default()).await.unwrap();
    world.until("the ConfigMap to be made anew", |map| intact(map) && map.uid() != whole.uid()).await;
}
