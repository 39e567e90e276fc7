//! Somebody removes whole trees from Consul: our keys come back, and nothing emptier is published meanwhile.
//!
//! These run with the defaults, which people run, and on a Consul of their own: what it reports of a removal depends on what
//! was removed before.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use setpoint_composite::api::ConditionType;
use setpoint_composite::publish::{MANAGED_BY, payload_of};
use setpoint_composite::settings::{Namespaces, Settings};
use setpoint_consul as consul;
use setpoint_testutils::{Acl, Consul, need, wait};

use super::world::{LIMIT, NAME, Running, World, asked_again, before_consul, rests};

/// By when what Consul does not report is found, with a margin for a busy machine; everything is checked every five minutes.
const SOON: Duration = Duration::from_mins(2);

fn operate(worlds: &[&World], consul: &Consul) -> Running {
    operate_at(worlds, consul.url(), Settings::default())
}

fn operate_at(worlds: &[&World], consul: String, settings: Settings) -> Running {
    let names = worlds.iter().map(|world| world.name().to_owned()).collect();
    let settings = Settings { namespaces: Namespaces::Only(names), ..settings };
    let client = consul::Client::new(consul::Settings::new(consul)).unwrap();
    Running::start(worlds[0].client.clone(), client, settings)
}

fn role(id: &str, namespace: &str) -> String {
    format!("composite/{id}/structure/{namespace}/compositeRole")
}

/// Waits until a key has a value.
async fn back(consul: &Consul, key: &str, value: &str, since: Instant) {
    let there = async || (consul.get(key).await.ok()?.value.as_deref() == Some(value)).then_some(());
    wait::until(&format!("{key} to be put back"), LIMIT, there).await;
    assert!(since.elapsed() < SOON, "it took {:?}", since.elapsed());
}

/// All structures that were published.
async fn published(world: &World) -> Vec<Value> {
    let versions = world.history.versions(NAME).await;
    let payload = |map| serde_json::from_str::<Value>(payload_of(map).unwrap()).unwrap()["composite"].clone();
    versions.iter().map(payload).collect()
}

#[tokio::test]
async fn a_removed_parent_is_put_back_although_consul_does_not_report_it() {
    let world = need!(World::new().await);
    let consul = need!(Consul::start(Acl::Off).await);
    let ns = world.name();
    let _running = operate(&[&world], &consul);
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    // One key is deleted and restored: what is left of that below the structure hides the removal of its parent.
    let satellite = role(ns, "sat");
    let alone = json!({ "baseline": { "origin": ns } });
    let both = json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": "sat" }] });
    consul.put(&satellite, "satellite").await.unwrap();
    world.publishes(both.clone()).await;
    consul.delete(&satellite).await.unwrap();
    world.publishes(alone.clone()).await;
    consul.put(&satellite, "satellite").await.unwrap();
    world.publishes(both.clone()).await;

    let since = Instant::now();
    consul.delete_tree(&format!("composite/{ns}/")).await.unwrap();
    back(&consul, &role(ns, ns), "baseline", since).await;
    // The satellite was somebody else's: it is gone when that is believed.
    world.publishes(alone.clone()).await;
    for structure in published(&world).await {
        assert!(structure == alone || structure == both, "{structure} was published");
    }
}

#[tokio::test]
async fn all_namespaces_of_a_removed_composite_put_their_keys_back_before_anything_is_published() {
    let (baseline, satellite) = (need!(World::new().await), need!(World::new().await));
    let consul = need!(Consul::start(Acl::Off).await);
    let (base, sat) = (baseline.name(), satellite.name());
    let _running = [operate(&[&baseline], &consul), operate(&[&satellite], &consul)];
    baseline.declare("composite", json!({ "originNamespace": base })).await;
    baseline.settled("composite").await;
    let spec = json!({ "originNamespace": sat, "baseline": { "originNamespace": base } });
    satellite.declare("composite", spec).await;
    satellite.settled("composite").await;
    let both = json!({ "baseline": { "origin": base }, "satellites": [{ "origin": sat }] });
    let (mut before, worlds) = (Vec::new(), [&baseline, &satellite]);
    for world in worlds {
        world.publishes(both.clone()).await;
        before.push(published(world).await.len());
    }
    for round in 0..2 {
        let since = Instant::now();
        consul.delete_tree(&format!("composite/{base}/")).await.unwrap();
        back(&consul, &role(base, base), "baseline", since).await;
        back(&consul, &role(base, sat), "satellite", since).await;
        // A change that both have to publish shows that they have seen all that was before it.
        let added = role(base, &format!("z-{round}"));
        consul.put(&added, "satellite").await.unwrap();
        let mut more = both.clone();
        more["satellites"].as_array_mut().unwrap().push(json!({ "origin": format!("z-{round}") }));
        for world in worlds {
            world.publishes(more.clone()).await;
        }
        if round == 0 {
            // From here on there is something below the structure that hides the removal of its parent.
            consul.delete(&added).await.unwrap();
            for world in worlds {
                world.publishes(both.clone()).await;
            }
        }
    }
    for (world, before) in worlds.into_iter().zip(before) {
        for structure in &published(world).await[before..] {
            assert_eq!(structure["baseline"], both["baseline"], "{structure} was published");
            assert_eq!(structure["satellites"][0], both["satellites"][0], "{structure} was published");
        }
    }
}

#[tokio::test]
async fn a_part_that_was_removed_is_put_back_before_the_rest_is_published() {
    let (baseline, satellite) = (need!(World::new().await), need!(World::new().await));
    let consul = need!(Consul::start(Acl::Off).await);
    let (base, sat) = (baseline.name(), satellite.name());
    let _running = operate(&[&baseline, &satellite], &consul);
    baseline.declare("composite", json!({ "originNamespace": base })).await;
    let spec = json!({ "originNamespace": sat, "baseline": { "originNamespace": base } });
    satellite.declare("composite", spec).await;
    let both = json!({ "baseline": { "origin": base }, "satellites": [{ "origin": sat }] });
    for world in [&baseline, &satellite] {
        world.publishes(both.clone()).await;
        world.settled("composite").await;
    }
    let before = published(&baseline).await.len();
    let since = Instant::now();
    consul.delete_tree(&format!("composite/{base}/structure/{sat}/")).await.unwrap();
    back(&consul, &role(base, sat), "satellite", since).await;
    consul.put(&role(base, "z"), "satellite").await.unwrap();
    let mut more = both.clone();
    more["satellites"].as_array_mut().unwrap().push(json!({ "origin": "z" }));
    baseline.publishes(more.clone()).await;
    for structure in &published(&baseline).await[before..] {
        assert!(*structure == both || *structure == more, "{structure} was published");
    }
}

#[tokio::test]
async fn a_part_that_another_operator_puts_back_is_waited_for_before_the_rest_is_published() {
    let (baseline, satellite) = (need!(World::new().await), need!(World::new().await));
    let consul = need!(Consul::start(Acl::Off).await);
    let (base, sat) = (baseline.name(), satellite.name());
    let (proxy, url) = before_consul(&consul).await;
    let _running = operate_at(&[&baseline], url, Settings::default());
    let other = operate(&[&satellite], &consul);
    baseline.declare("composite", json!({ "originNamespace": base })).await;
    baseline.settled("composite").await;
    let spec = json!({ "originNamespace": sat, "baseline": { "originNamespace": base } });
    satellite.declare("composite", spec).await;
    let both = json!({ "baseline": { "origin": base }, "satellites": [{ "origin": sat }] });
    for world in [&baseline, &satellite] {
        world.publishes(both.clone()).await;
        world.settled("composite").await;
    }
    let before = published(&baseline).await.len();
    // It takes the other a while: it is started anew.
    other.stop().await;
    consul.delete_tree(&format!("composite/{base}/structure/{sat}/")).await.unwrap();
    asked_again(&proxy, &format!("composite/{base}/"), 2).await;
    assert_eq!(published(&baseline).await.len(), before, "its claim is still there");
    let since = Instant::now();
    let _other = operate(&[&satellite], &consul);
    back(&consul, &role(base, sat), "satellite", since).await;
    consul.put(&role(base, "z"), "satellite").await.unwrap();
    let mut more = both.clone();
    more["satellites"].as_array_mut().unwrap().push(json!({ "origin": "z" }));
    baseline.publishes(more.clone()).await;
    for structure in &published(&baseline).await[before..] {
        assert!(*structure == both || *structure == more, "{structure} was published");
    }
}

#[tokio::test]
async fn an_operator_that_starts_while_keys_are_away_publishes_nothing_emptier() {
    let (baseline, satellite) = (need!(World::new().await), need!(World::new().await));
    let consul = need!(Consul::start(Acl::Off).await);
    let (base, sat) = (baseline.name(), satellite.name());
    let running = [operate(&[&baseline], &consul), operate(&[&satellite], &consul)];
    baseline.declare("composite", json!({ "originNamespace": base })).await;
    baseline.settled("composite").await;
    let spec = json!({ "originNamespace": sat, "baseline": { "originNamespace": base } });
    satellite.declare("composite", spec).await;
    let both = json!({ "baseline": { "origin": base }, "satellites": [{ "origin": sat }] });
    let worlds = [&baseline, &satellite];
    for world in worlds {
        world.publishes(both.clone()).await;
        world.settled("composite").await;
    }
    for operator in running {
        operator.stop().await;
    }
    let before = [published(&baseline).await.len(), published(&satellite).await.len()];
    consul.delete_tree(&format!("composite/{base}/")).await.unwrap();
    // The first sees its own key come back, and could publish it alone.
    let since = Instant::now();
    let (proxy, url) = before_consul(&consul).await;
    let _first = operate_at(&[&baseline], url, Settings::default());
    back(&consul, &role(base, base), "baseline", since).await;
    asked_again(&proxy, &format!("composite/{base}/"), 1).await;
    let _second = operate(&[&satellite], &consul);
    back(&consul, &role(base, sat), "satellite", since).await;
    consul.put(&role(base, "z"), "satellite").await.unwrap();
    let mut more = both.clone();
    more["satellites"].as_array_mut().unwrap().push(json!({ "origin": "z" }));
    for (world, before) in worlds.into_iter().zip(before) {
        world.publishes(more.clone()).await;
        for structure in &published(world).await[before..] {
            assert!(*structure == both || *structure == more, "{structure} was published");
        }
    }
}

#[tokio::test]
async fn what_is_missing_when_an_operator_starts_is_believed_after_the_grace() {
    let world = need!(World::new().await);
    let consul = need!(Consul::start(Acl::Off).await);
    let ns = world.name();
    let running = operate(&[&world], &consul);
    world.declare("composite", json!({ "originNamespace": ns })).await;
    consul.put(&role(ns, "sat"), "satellite").await.unwrap();
    world.publishes(json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": "sat" }] })).await;
    running.stop().await;
    consul.delete(&role(ns, "sat")).await.unwrap();
    let _running = operate(&[&world], &consul);
    world.publishes(json!({ "baseline": { "origin": ns } })).await;
}

#[tokio::test]
async fn own_keys_are_put_back_also_where_nothing_is_published() {
    let (disabled, foreign) = (need!(World::new().await), need!(World::new().await));
    let consul = need!(Consul::start(Acl::Off).await);
    let ((first, one), (second, other)) = (before_consul(&consul).await, before_consul(&consul).await);
    let proxies = [first, second];
    let settings = Settings { sync_enabled: false, ..Settings::default() };
    let _disabled = operate_at(&[&disabled], one, settings);
    let _foreign = operate_at(&[&foreign], other, Settings::default());
    for world in [&disabled, &foreign] {
        world.declare("composite", json!({ "originNamespace": world.name() })).await;
        world.condition("composite", ConditionType::Synced, "True", "Written").await;
    }
    foreign.settled("composite").await;
    foreign.patch_map(json!({ "metadata": { "labels": { MANAGED_BY: "other" } } })).await;
    foreign.condition("composite", ConditionType::Published, "False", "NotOwned").await;
    let rest = proxies.each_ref().map(|proxy| rests(proxy, Duration::from_secs(8)));
    join_all(rest).await;
    let since = Instant::now();
    for world in [&disabled, &foreign] {
        consul.delete(&role(world.name(), world.name())).await.unwrap();
    }
    for world in [&disabled, &foreign] {
        back(&consul, &role(world.name(), world.name()), "baseline", since).await;
    }
    assert!(disabled.config_map().await.is_none());
}
