//! What the operator may do: all that it needs, and no more.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use setpoint_composite::api::{Composite, ConditionType};
use setpoint_composite::install::{NAME as LEASE, lease_rules, rules};
use setpoint_composite::settings::{Election, Settings};
use setpoint_kube::lease::Timing;
use setpoint_testutils::need;

use super::world::{NAME, ORDERED, Running, World};

async fn account(world: &World, name: &str) -> Client {
    let rules = [rules(NAME), lease_rules(LEASE)].concat();
    world.namespace.kubernetes().client_with(world.name(), name, rules).await
}

#[tokio::test]
async fn with_the_rights_of_the_manifests_everything_works() {
    let world = need!(World::new().await);
    let ns = world.name();
    let election = Election { namespace: ns.to_owned(), name: LEASE.to_owned(), timing: Timing::default() };
    let settings = Settings { election: Some(election), ..world.settings() };
    let running = Running::start(account(&world, "operator").await, world.consul_client(), settings);
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    world.event("Applied").await;
    // A conflict, a repair, a hand-over and back.
    world.patch_map(json!({ "data": { "data": "theirs" } })).await;
    world.publishes(json!({ "baseline": { "origin": ns } })).await;
    world.patch_map(json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "other" } } })).await;
    world.condition("composite", ConditionType::Published, "False", "NotOwned").await;
    world.until("our reference to go", |map| map.metadata.owner_references.is_none()).await;
    world
        .patch_map(json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "core-operator" } } }))
        .await;
    world.settled("composite").await;
    world.delete("composite").await;
    world.gone("composite").await;
    running.stop().await;
}

#[tokio::test]
async fn with_the_rights_of_the_manifests_nothing_else_works() {
    let world = need!(World::new().await);
    let ns = world.name();
    let client = account(&world, "operator").await;
    let denied = |what: &str, result: Result<(), kube::Error>| {
        let error = result.expect_err(what);
        assert!(matches!(&error, kube::Error::Api(status) if status.code == 403), "{what}: {error}");
    };
    let (all, delete) = (ListParams::default(), DeleteParams::default());
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "x": "y" } } }));
    let (maps, secrets): (Api<ConfigMap>, Api<Secret>) =
        (Api::namespaced(client.clone(), ns), Api::namespaced(client.clone(), ns));
    let composites: Api<Composite> = Api::namespaced(client.clone(), ns);
    let elsewhere: Api<Composite> = Api::namespaced(client.clone(), "default");
    denied("secrets are read", secrets.list(&all).await.map(drop));
    denied("all ConfigMaps are listed", maps.list(&all).await.map(drop));
    denied("another ConfigMap is read", maps.get("kube-root-ca.crt").await.map(drop));
    denied(
        "another ConfigMap is written",
        maps.patch("other", &PatchParams::default(), &patch).await.map(drop),
    );
    denied("the ConfigMap is deleted", maps.delete(NAME, &delete).await.map(drop));
    denied("a Composite is deleted", composites.delete("composite", &delete).await.map(drop));
    denied("Composites of another namespace are listed", elsewhere.list(&all).await.map(drop));
    denied(
        "Composites of all namespaces are listed",
        Api::<Composite>::all(client).list(&all).await.map(drop),
    );
}

#[tokio::test]
async fn after_ten_refused_writes_the_condition_says_so_and_retries_go_on() {
    let world = need!(World::new().await);
    let ns = world.name();
    let mut few = rules(NAME);
    for rule in few.iter_mut().filter(|rule| rule.resources.as_deref() == Some(&["configmaps".to_owned()])) {
        rule.verbs.retain(|verb| verb != "patch" && verb != "create");
        rule.verbs.push("get".to_owned());
    }
    let client = world.namespace.kubernetes().client_with(ns, "operator", few).await;
    let running = Running::start(client, world.consul_client(), world.settings());
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.condition("composite", ConditionType::Synced, "True", "Written").await;
    let condition = world.condition("composite", ConditionType::Published, "False", "ApplyFailed").await;
    assert!(condition.message.contains("forbidden"), "{}", condition.message);
    assert!(world.event("ApplyRetried").await.contains("forbidden"));
    assert!(running.metrics.text().contains(&format!("writes_total{{namespace=\"{ns}\",result=\"error\"}}")));

    let roles: Api<Role> = Api::namespaced(world.client.clone(), ns);
    let granted = Patch::Merge(json!({ "rules": rules(NAME) }));
    roles.patch("operator", &PatchParams::default(), &granted).await.unwrap();
    world.settled("composite").await;
    world.publishes(json!({ "baseline": { "origin": ns } })).await;
    world.history.versions_that_never_go_back(NAME, &ORDERED).await;
}
