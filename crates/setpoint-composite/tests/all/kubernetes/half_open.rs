//! The other end of a connection is gone without a word: while nothing was under way, and in the middle of an answer.
//!
//! These run with the defaults, which people run.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use setpoint_composite::settings::{Election, Namespaces, Settings};
use setpoint_consul as consul;
use setpoint_kube::Limits;
use setpoint_kube::client::Clients;
use setpoint_kube::lease::Timing;
use setpoint_testutils::{Proxy, need, wait};

use super::world::{LIMIT, Running, World, rests};

fn defaults(world: &World) -> Settings {
    let names = [world.name().to_owned()].into();
    Settings { namespaces: Namespaces::Only(names), ..Settings::default() }
}

async fn before_kubernetes(world: &World) -> Proxy {
    let url = world.namespace.kubernetes().url();
    Proxy::start(url.trim_start_matches("https://").parse().unwrap()).await
}

async fn configuration(world: &World, proxy: &Proxy) -> Config {
    let file = Kubeconfig::read_from(world.namespace.kubernetes().kubeconfig_file()).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    config.cluster_url = format!("https://{}", proxy.address()).parse().unwrap();
    config.proxy_url = None;
    config
}

/// An operator that reaches the API server through a proxy, by a client without any limits: the operator's own must do.
async fn behind(world: &World, proxy: &Proxy) -> Running {
    behind_both(world, proxy, world.consul_client()).await
}

async fn behind_both(world: &World, proxy: &Proxy, consul: consul::Client) -> Running {
    let client = Client::try_from(configuration(world, proxy).await).unwrap();
    Running::start(client, consul, defaults(world))
}

/// A proxy before Consul, and a client that reaches Consul through it.
async fn before_consul(world: &World) -> (Proxy, consul::Client) {
    let (proxy, url) = super::world::before_consul(world.consul).await;
    (proxy, consul::Client::new(consul::Settings::new(url)).unwrap())
}

fn alone(world: &World) -> Value {
    json!({ "baseline": { "origin": world.name() } })
}

#[tokio::test]
async fn connections_on_which_nothing_is_answered_are_given_up() {
    let world = need!(World::new().await);
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    let proxy = before_kubernetes(&world).await;
    proxy.freeze_answers_after(1);
    let running = behind(&world, &proxy).await;
    let lost = async || (proxy.connections() >= 2 && proxy.swallowed() >= 2).then_some(());
    wait::until("answers to be lost", LIMIT, lost).await;
    proxy.freeze();
    proxy.heal();
    world.settled("composite").await;
    world.publishes(alone(&world)).await;
    running.stop().await;
}

#[tokio::test]
async fn a_list_whose_answer_stops_on_its_way_is_asked_for_again() {
    let world = need!(World::new().await);
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    let long = json!({ "metadata": { "annotations": { "long": "x".repeat(200_000) } } });
    world.composites().patch("composite", &PatchParams::default(), &Patch::Merge(long)).await.unwrap();
    let proxy = before_kubernetes(&world).await;
    // More than TLS takes, and less than the list.
    proxy.freeze_answers_after(20_000);
    let running = behind(&world, &proxy).await;
    wait::until("an answer to stop", LIMIT, async || (proxy.swallowed() >= 1).then_some(())).await;
    proxy.freeze();
    proxy.heal();
    world.settled("composite").await;
    running.stop().await;
}

#[tokio::test]
async fn a_quiet_watch_whose_other_end_is_gone_is_made_anew() {
    let world = need!(World::new().await);
    let proxy = before_kubernetes(&world).await;
    let (seen, consul) = before_consul(&world).await;
    let running = behind_both(&world, &proxy, consul).await;
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    world.settled("composite").await;
    rests(&seen, Duration::from_secs(9)).await;
    proxy.freeze();
    let other = format!("{}-other", world.name());
    let spec = json!({ "originNamespace": world.name(), "baseline": { "originNamespace": other } });
    world.change("composite", spec).await;
    world.publishes(json!({ "satellites": [{ "origin": world.name() }] })).await;
    running.stop().await;
}

#[tokio::test]
async fn a_quiet_query_to_consul_whose_other_end_is_gone_is_asked_again() {
    let world = need!(World::new().await);
    let (proxy, client) = before_consul(&world).await;
    let _running = Running::start(world.client.clone(), client, defaults(&world));
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    world.settled("composite").await;
    proxy.freeze();
    let key = format!("composite/{}/structure/sat/compositeRole", world.name());
    world.consul.put(&key, "satellite").await.unwrap();
    let mut both = alone(&world);
    both["satellites"] = json!([{ "origin": "sat" }]);
    world.publishes(both).await;
}

#[tokio::test]
async fn an_answer_of_consul_that_stops_on_its_way_is_asked_for_again() {
    let world = need!(World::new().await);
    // Long names make a long answer of few keys.
    let long = "x".repeat(200);
    for number in 0..100 {
        let key = format!("composite/{}/structure/sat-{number:02}-{long}/compositeRole", world.name());
        world.consul.put(&key, "satellite").await.unwrap();
    }
    let (proxy, client) = before_consul(&world).await;
    proxy.freeze_answers_after(20_000);
    let _running = Running::start(world.client.clone(), client, defaults(&world));
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    wait::until("an answer to stop", LIMIT, async || (proxy.swallowed() >= 1).then_some(())).await;
    proxy.freeze();
    proxy.heal();
    let map = world.until("all of it", |map| {
        setpoint_composite::publish::payload_of(map).is_some_and(|payload| payload.contains("sat-99-"))
    });
    map.await;
}

#[tokio::test]
async fn connections_that_answer_nothing_cost_no_leadership_while_new_ones_work() {
    let world = need!(World::new().await);
    let proxy = before_kubernetes(&world).await;
    let clients = Clients::new(&configuration(&world, &proxy).await, Limits::default()).unwrap();
    let election =
        Election { namespace: world.name().to_owned(), name: "leader".to_owned(), timing: Timing::default() };
    let settings = Settings { election: Some(election), instance: "one".to_owned(), ..defaults(&world) };
    let running = Running::start(clients, world.consul_client(), settings);
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), world.name());
    let spec = async || leases.get_opt("leader").await.ok()??.spec;
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    world.settled("composite").await;
    let transitions = spec().await.unwrap().lease_transitions;
    // Several connections are kept by now, and all of them are broken at once; twice in a row.
    for _ in 0..2 {
        proxy.freeze();
        let frozen = spec().await.unwrap().renew_time.unwrap();
        let renewed =
            async || spec().await.filter(|spec| spec.renew_time.as_ref().is_some_and(|at| at.0 > frozen.0));
        let now = wait::until("the lease to be renewed", LIMIT, renewed).await;
        assert_eq!(now.holder_identity.as_deref(), Some("one"));
        assert_eq!(now.lease_transitions, transitions, "it was never lost");
    }
    running.stop().await;
}
