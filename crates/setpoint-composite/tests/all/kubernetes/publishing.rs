//! What Consul says becomes the ConfigMap.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use setpoint_composite::api::ConditionType;
use setpoint_composite::publish::{Desired, Ownership, Writer, Written};
use setpoint_kube::lease::Fence;
use setpoint_testutils::need;

use super::world::{NAME, ORDERED, World};

fn writer(world: &World) -> Writer {
    Writer::new(world.client.clone(), world.target(), Fence::open(), Duration::from_secs(10))
}

async fn desired(world: &World, payload: &str, index: u64) -> Desired {
    let composites = world.composites();
    let composite = match composites.get_opt("composite").await.unwrap() {
        Some(found) => found,
        None => world.declare("composite", json!({ "originNamespace": world.name() })).await,
    };
    Desired {
        payload: payload.to_owned(),
        composite: world.name().to_owned(),
        index,
        transitions: 0,
        owner: composite.owner().unwrap(),
    }
}

#[tokio::test]
async fn should_set_the_resource_version_of_what_was_read_and_none_for_what_is_not_there() {
    let world = need!(World::new().await);
    let (writer, one, two) = (writer(&world), desired(&world, "1", 1).await, desired(&world, "2", 2).await);
    assert_eq!(one.object(writer.target(), None).metadata.resource_version, None);
    let Written::Changed(created) = writer.write(None, &one).await.unwrap() else { panic!("it is created") };
    assert_eq!(two.object(writer.target(), Some("7")).metadata.resource_version.as_deref(), Some("7"));
    let Written::Changed(_) = writer.write(Some(created.clone()), &two).await.unwrap() else {
        panic!("it is changed")
    };
    assert!(matches!(writer.write(writer.read().await.unwrap(), &two).await.unwrap(), Written::Unchanged(_)));
}

#[tokio::test]
async fn what_was_created_is_claimed_as_applied() {
    let world = need!(World::new().await);
    writer(&world).write(None, &desired(&world, "1", 1).await).await.unwrap();
    let map = world.config_map().await.unwrap();
    let claims: Vec<_> = map
        .managed_fields()
        .iter()
        .map(|claim| (claim.manager.as_deref(), claim.operation.as_deref()))
        .collect();
    assert_eq!(claims, [(Some("core-operator"), Some("Apply"))]);
    // An apply that leaves something out removes it, which shows that the claim is whole.
    let bare = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": NAME } });
    let parameters = PatchParams::apply("core-operator");
    let left = world.config_maps().patch(NAME, &parameters, &Patch::Apply(bare)).await.unwrap();
    assert_eq!((left.data, left.metadata.labels, left.metadata.owner_references), (None, None, None));
}

#[tokio::test]
async fn a_config_map_that_somebody_made_meanwhile_is_looked_at_before_it_is_written() {
    let world = need!(World::new().await);
    let (writer, wanted) = (writer(&world), desired(&world, "ours", 1).await);
    let theirs: ConfigMap = super::world::from(json!({
        "metadata": { "name": NAME, "labels": { "app.kubernetes.io/managed-by": "other" } }, "data": { "data": "theirs" },
    }));
    world.config_maps().create(&kube::api::PostParams::default(), &theirs).await.unwrap();
    // To the writer nothing is there.
    let Written::NotOurs(found, _) = writer.write(None, &wanted).await.unwrap() else {
        panic!("it is another's")
    };
    assert_eq!(found, Ownership::HandedOver { to: "other".to_owned() });
    assert_eq!(world.config_map().await.unwrap().data.unwrap()["data"], "theirs");
}

#[tokio::test]
async fn should_skip_after_a_conflict_that_turns_out_to_be_a_hand_over() {
    let world = need!(World::new().await);
    let writer = writer(&world);
    let Written::Changed(seen) = writer.write(None, &desired(&world, "1", 1).await).await.unwrap() else {
        panic!("it is created")
    };
    world.patch_map(json!({ "metadata": { "labels": { "app.kubernetes.io/managed-by": "other" } } })).await;
    let written = writer.write(Some(seen), &desired(&world, "2", 2).await).await.unwrap();
    assert!(matches!(written, Written::NotOurs(Ownership::HandedOver { .. }, _)), "{written:?}");
    assert_eq!(world.config_map().await.unwrap().data.unwrap()["data"], "1");
}

#[tokio::test]
async fn nothing_is_written_behind_a_closed_fence() {
    let world = need!(World::new().await);
    let fence = Fence::open();
    let writer = Writer::new(world.client.clone(), world.target(), fence.clone(), Duration::from_secs(10));
    let wanted = desired(&world, "1", 1).await;
    fence.close();
    assert!(writer.write(None, &wanted).await.unwrap_err().is_fenced());
    assert!(world.config_map().await.is_none());
}

#[tokio::test]
async fn the_payload_is_compact_and_stays_the_same_bytes() {
    let world = need!(World::new().await);
    let ns = world.name();
    let running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    let map = world.publishes(json!({ "baseline": { "origin": ns } })).await;
    let expected = format!(r#"{{"cloudProvider":"OnPrem","composite":{{"baseline":{{"origin":"{ns}"}}}}}}"#);
    assert_eq!(map.data.as_ref().unwrap()["data"], expected);
    world.settled("composite").await;
    running.stop().await;
    let before = world.config_map().await.unwrap().resource_version();
    let again = world.operate();
    world.settled("composite").await;
    again.stop().await;
    assert_eq!(
        world.config_map().await.unwrap().resource_version(),
        before,
        "equal input is no reason to write"
    );
}

#[tokio::test]
async fn a_bad_entry_is_left_out_and_reported_and_the_rest_goes_on() {
    let world = need!(World::new().await);
    let ns = world.name();
    let _running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    world.consul.put(&format!("composite/{ns}/structure/{ns}-bad/compositeRole"), "sattelite").await.unwrap();
    world
        .consul
        .put(&format!("composite/{ns}/structure/{ns}-good/compositeRole"), "satellite")
        .await
        .unwrap();
    world
        .publishes(
            json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": format!("{ns}-good") }] }),
        )
        .await;
    let note = world.event("EntriesNotUsed").await;
    assert!(note.contains(&format!("{ns}-bad")), "{note}");
    let issues = async || {
        world.composites().get("composite").await.ok()?.status.filter(|status| !status.issues.is_empty())
    };
    let status =
        setpoint_testutils::wait::until("the issue in the status", super::world::LIMIT, issues).await;
    assert_eq!((status.issues[0].kind.as_str(), status.issue_count), ("UnknownCompositeRole", Some(1)));
}

#[tokio::test]
async fn an_ambiguous_group_keeps_what_was_published() {
    let world = need!(World::new().await);
    let ns = world.name();
    let running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    let published = world.publishes(json!({ "baseline": { "origin": ns } })).await;
    world.settled("composite").await;
    world
        .consul
        .put(&format!("composite/{ns}/structure/{ns}-rival/compositeRole"), "baseline")
        .await
        .unwrap();
    world.event("EntriesNotUsed").await;
    assert_eq!(world.config_map().await.unwrap().data, published.data);
    // Also by a run that has nothing but the ConfigMap to go by.
    running.stop().await;
    let _again = world.operate();
    world.consul.put(&format!("composite/{ns}/structure/{ns}-sat/compositeRole"), "satellite").await.unwrap();
    world
        .publishes(json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": format!("{ns}-sat") }] }))
        .await;
}

#[tokio::test]
async fn an_empty_structure_is_published_as_empty() {
    let world = need!(World::new().await);
    let ns = world.name();
    // Its own keys can't be written, so that the structure stays empty.
    let running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    running.stop().await;
    world.consul.delete_tree(&format!("composite/{ns}/")).await.unwrap();
    let token = need!(denied(&world).await);
    let _running = super::world::Running::start(world.client.clone(), token, world.settings());
    let map = world.publishes(json!({})).await;
    assert_eq!(map.data.unwrap()["data"], r#"{"cloudProvider":"OnPrem","composite":{}}"#);
}

/// A client of Consul behind which every write fails.
async fn denied(world: &World) -> Result<setpoint_consul::Client, setpoint_testutils::Missing> {
    let proxy = super::readonly::ReadOnly::start(world.consul.url()).await;
    Ok(setpoint_consul::Client::new(setpoint_consul::Settings::new(proxy.url())).unwrap())
}

#[tokio::test]
async fn switched_off_nothing_is_published_and_keys_are_written_all_the_same() {
    let world = need!(World::new().await);
    let ns = world.name();
    let mut settings = world.settings();
    settings.sync_enabled = false;
    let _running = world.operate_with(settings);
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.condition("composite", ConditionType::Synced, "True", "Written").await;
    world.condition("composite", ConditionType::Published, "False", "Disabled").await;
    assert!(world.config_map().await.is_none());
}

#[tokio::test]
async fn without_a_composite_nothing_is_published() {
    let world = need!(World::new().await);
    let other = need!(World::new().await);
    let ns = world.name();
    world.consul.put(&format!("composite/{ns}/structure/{ns}/compositeRole"), "baseline").await.unwrap();
    let _running = world.operate_with(super::world::fast(&[ns, other.name()]));
    // A neighbour that was declared later shows that everything was looked at.
    other.declare("composite", json!({ "originNamespace": other.name() })).await;
    other.settled("composite").await;
    assert!(world.config_map().await.is_none());
}

#[tokio::test]
async fn many_changes_end_on_the_last_and_never_go_back() {
    let world = need!(World::new().await);
    let ns = world.name();
    let _running = world.operate();
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    for number in 0..60 {
        let key = format!("composite/{ns}/structure/{ns}-{:02}/compositeRole", number % 20);
        if number < 40 {
            world.consul.put(&key, "satellite").await.unwrap();
        } else {
            world.consul.delete(&key).await.unwrap();
        }
    }
    world.publishes(json!({ "baseline": { "origin": ns } })).await;
    world.history.versions_that_never_go_back(NAME, &ORDERED).await;
}

#[tokio::test]
async fn values_of_half_a_megabyte_fit_into_a_status() {
    let world = need!(World::new().await);
    let ns = world.name();
    let settings = setpoint_composite::settings::Settings {
        namespaces: setpoint_composite::settings::Namespaces::Only([ns.to_owned()].into()),
        ..setpoint_composite::settings::Settings::default()
    };
    for number in 0..4 {
        let key = format!("composite/{ns}/structure/long-{number}/compositeRole");
        world.consul.put(&key, &"x".repeat(450_000)).await.unwrap();
        let group = format!("composite/{ns}/structure/group-{number}");
        world.consul.put(&format!("{group}/compositeRole"), "satellite").await.unwrap();
        world.consul.put(&format!("{group}/controllerNamespace"), &"y".repeat(450_000)).await.unwrap();
    }
    let _running = world.operate_with(settings);
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    let issues = async || {
        let status = world.composites().get("composite").await.ok()?.status?;
        status.issue_count.filter(|count| *count >= 5).map(|_| status.issues)
    };
    let issues = setpoint_testutils::wait::until("the issues", super::world::LIMIT, issues).await;
    assert!(issues.iter().all(|issue| issue.message.len() < 2_000 && issue.subject.len() < 2_000));
}

#[tokio::test]
async fn after_a_change_of_id_nothing_of_the_old_composite_is_kept() {
    let world = need!(World::new().await);
    let ns = world.name();
    let (one, two) = (format!("{ns}-one"), format!("{ns}-two"));
    // The second has an ambiguous baseline, which keeps what was published of it before: nothing.
    for (id, name) in [(&one, "a"), (&two, "b"), (&two, "c")] {
        world
            .consul
            .put(&format!("composite/{id}/structure/{name}/compositeRole"), "baseline")
            .await
            .unwrap();
    }
    let _running = world.operate();
    let spec = |id: &str| json!({ "originNamespace": ns, "baseline": { "originNamespace": id } });
    world.declare("composite", spec(&one)).await;
    world.publishes(json!({ "baseline": { "origin": "a" }, "satellites": [{ "origin": ns }] })).await;
    world.change("composite", spec(&two)).await;
    world.publishes(json!({ "satellites": [{ "origin": ns }] })).await;
}
