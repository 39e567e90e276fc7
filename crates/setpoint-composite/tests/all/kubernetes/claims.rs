//! Several Composites declare the same keys: each key stays as long as anybody wants it, and nobody fights over it.
//!
//! These run with the defaults, which people run.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::ResourceExt;
use serde_json::{Value, json};
use setpoint_composite::api::ConditionType;
use setpoint_composite::publish::payload_of;
use setpoint_composite::settings::{Namespaces, Settings};
use setpoint_consul as consul;
use setpoint_testutils::{Missing, need, wait};

use super::world::{LIMIT, NAME, ORDERED, Running, World};

/// The defaults, for some namespaces.
fn defaults(namespaces: &[&str]) -> Settings {
    let names = namespaces.iter().map(|name| (*name).to_owned()).collect();
    Settings { namespaces: Namespaces::Only(names), ..Settings::default() }
}

/// A blue-green group of three namespaces, each of which declares the whole group.
struct Group {
    origin: World,
    peer: World,
    controller: World,
}

impl Group {
    async fn new() -> Result<Self, Missing> {
        Ok(Self { origin: World::new().await?, peer: World::new().await?, controller: World::new().await? })
    }

    fn worlds(&self) -> [&World; 3] {
        [&self.origin, &self.peer, &self.controller]
    }

    fn spec(&self) -> Value {
        json!({
            "originNamespace": self.origin.name(),
            "peerNamespace": self.peer.name(),
            "controllerNamespace": self.controller.name(),
        })
    }

    fn published(&self) -> Value {
        let (origin, peer, controller) = (self.origin.name(), self.peer.name(), self.controller.name());
        json!({ "baseline": { "controller": controller, "origin": origin, "peer": peer } })
    }

    async fn declare(&self) {
        for world in self.worlds() {
            world.declare("composite", self.spec()).await;
        }
        for world in self.worlds() {
            world.publishes(self.published()).await;
            world.settled("composite").await;
        }
    }
}

/// Payloads of all versions of a ConfigMap since it first held a structure.
async fn since(world: &World, first: &Value) -> Vec<Value> {
    let versions = world.history.versions_that_never_go_back(NAME, &ORDERED).await;
    let payloads = versions.iter().map(|map| {
        let payload: Value = serde_json::from_str(payload_of(map).unwrap()).unwrap();
        payload["composite"].clone()
    });
    let since: Vec<_> = payloads.skip_while(|structure| structure != first).collect();
    assert!(!since.is_empty(), "{first} was published");
    since
}

/// One of the three leaves the group; the others must not notice.
async fn leaves(group: &Group) {
    let before = group.origin.structure(group.origin.name()).await;
    assert_eq!(before.len(), 8);
    let own = group.controller.name();
    let alone = json!({ "originNamespace": own, "peerNamespace": null, "controllerNamespace": null });
    group.controller.change("composite", alone).await;
    group.controller.publishes(json!({ "baseline": { "origin": own } })).await;
    group.controller.structure_is(own, &[(&format!("{own}/compositeRole"), "baseline")]).await;
    // A change that all have to publish shows that whatever was under way has been looked at.
    let key = format!("composite/{}/structure/{own}-late/compositeRole", group.origin.name());
    group.origin.consul.put(&key, "satellite").await.unwrap();
    let mut with_satellite = group.published();
    with_satellite["satellites"] = json!([{ "origin": format!("{own}-late") }]);
    for world in [&group.origin, &group.peer] {
        world.publishes(with_satellite.clone()).await;
        for structure in since(world, &group.published()).await {
            assert!(
                structure == group.published() || structure == with_satellite,
                "{structure} was published"
            );
        }
    }
    let mut after = group.origin.structure(group.origin.name()).await;
    after.retain(|key, _| !key.contains("-late/"));
    assert_eq!(after, before);
}

#[tokio::test]
async fn what_others_declare_stays_when_one_of_a_group_changes_its_spec() {
    let group = need!(Group::new().await);
    let names = group.worlds().map(World::name);
    let _running = group.origin.operate_with(defaults(&names));
    group.declare().await;
    leaves(&group).await;
}

#[tokio::test]
async fn what_others_declare_stays_also_with_one_operator_in_each_namespace() {
    let group = need!(Group::new().await);
    let _running = group.worlds().map(|world| world.operate_with(defaults(&[world.name()])));
    group.declare().await;
    leaves(&group).await;
    // A key goes with the last that declares it, whoever that is.
    let id = group.origin.name();
    group.origin.delete("composite").await;
    group.origin.gone("composite").await;
    group
        .peer
        .publishes({
            let mut left = group.published();
            left["satellites"] = json!([{ "origin": format!("{}-late", group.controller.name()) }]);
            left
        })
        .await;
    assert_eq!(group.peer.structure(id).await.len(), 9);
    group.peer.delete("composite").await;
    group.peer.gone("composite").await;
    let left: Vec<_> = group.peer.keys(&format!("composite/{id}/")).await.into_keys().collect();
    assert_eq!(left, [format!("composite/{id}/structure/{}-late/compositeRole", group.controller.name())]);
}

/// The index of the last change of each key of a structure.
async fn indices(world: &World, id: &str) -> BTreeMap<String, u64> {
    let prefix = setpoint_structure::prefix(id);
    let listed = world.consul_client().list(&prefix, consul::Read::Consistent).await.unwrap();
    listed.entries.into_iter().map(|entry| (entry.key, entry.modify_index)).collect()
}

async fn disagree(one: &World, other: &World, running: &[&Running]) {
    let (first, second) = (one.name(), other.name());
    let id = format!("{first}-base");
    // They agree on the namespaces, and not on which of two is the origin.
    let spec = |origin: &str, peer: &str| {
        json!({
            "originNamespace": origin, "peerNamespace": peer, "controllerNamespace": format!("{first}-c"),
            "baseline": { "originNamespace": id },
        })
    };
    one.declare("composite", spec(first, second)).await;
    one.settled("composite").await;
    other.declare("composite", spec(second, first)).await;
    let refused = other.condition("composite", ConditionType::Synced, "False", "KeyConflict").await;
    for name in [format!("{first}/composite"), format!("{second}/composite")] {
        assert!(refused.message.contains(&name), "{}", refused.message);
    }
    other.event("KeyConflict").await;
    let metric = format!("setpoint_composite_key_conflicts{{namespace=\"{second}\"}} 2");
    let counted = async || running.iter().any(|one| one.metrics.text().contains(&metric)).then_some(());
    wait::until("the metric", LIMIT, counted).await;
    one.condition("composite", ConditionType::Synced, "True", "Written").await;

    // Nothing flips, however often both look at it.
    let satellite = |name: &str| format!("composite/{id}/structure/{name}/compositeRole");
    let before = indices(one, &id).await;
    let roles = json!({ "controller": format!("{first}-c"), "origin": first, "peer": second });
    for round in 0..3 {
        let added = format!("z-{round}");
        one.consul.put(&satellite(&added), "satellite").await.unwrap();
        for world in [one, other] {
            // Which makes a full pass: the spec has another generation.
            let annotation = json!({ "metadata": { "annotations": { "round": added } } });
            let patch = kube::api::Patch::Merge(annotation);
            world.composites().patch("composite", &kube::api::PatchParams::default(), &patch).await.unwrap();
            world.publishes(json!({ "satellites": [roles, { "origin": added }] })).await;
        }
        one.consul.delete(&satellite(&added)).await.unwrap();
        for world in [one, other] {
            world.publishes(json!({ "satellites": [roles] })).await;
        }
    }
    assert_eq!(indices(one, &id).await, before, "no key was written");

    // With the older claim the conflict goes.
    one.delete("composite").await;
    one.gone("composite").await;
    other.settled("composite").await;
    let roles = json!({ "controller": format!("{first}-c"), "origin": second, "peer": first });
    other.publishes(json!({ "satellites": [roles] })).await;
    assert_eq!(other.composites().get("composite").await.unwrap().finalizers().len(), 1);
}

#[tokio::test]
async fn of_two_that_disagree_the_older_claim_holds_and_nothing_flips() {
    let (one, other) = (need!(World::new().await), need!(World::new().await));
    let settings = Settings {
        on_success_delay_time: Duration::from_millis(500),
        ..defaults(&[one.name(), other.name()])
    };
    let running = one.operate_with(settings);
    disagree(&one, &other, &[&running]).await;
}

#[tokio::test]
async fn of_two_that_disagree_the_older_claim_holds_also_between_operators() {
    let (one, other) = (need!(World::new().await), need!(World::new().await));
    let running = [&one, &other].map(|world| {
        let settings =
            Settings { on_success_delay_time: Duration::from_millis(500), ..defaults(&[world.name()]) };
        world.operate_with(settings)
    });
    disagree(&one, &other, &[&running[0], &running[1]]).await;
}
