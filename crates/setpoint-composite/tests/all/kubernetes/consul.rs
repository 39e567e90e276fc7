//! What happens to Consul, seen at the ConfigMap: it ends on what Consul says, and never loses what Consul did not say.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use setpoint_composite::api::ConditionType;
use setpoint_composite::publish::payload_of;
use setpoint_consul::{self as consul, Auth, Secret};
use setpoint_testutils::{Acl, Consul, need, wait};

use super::world::{LIMIT, NAME, ORDERED, Running, World, asked_again, before_consul, fast};

fn client(consul: &Consul, auth: Auth) -> consul::Client {
    consul::Client::new(consul::Settings { auth, ..consul::Settings::new(consul.url()) }).unwrap()
}

fn role(world: &World, namespace: &str) -> String {
    format!("composite/{}/structure/{namespace}/compositeRole", world.name())
}

/// The structure of a baseline with satellites.
fn with(world: &World, satellites: &[&str]) -> Value {
    let satellites: Vec<Value> = satellites.iter().map(|name| json!({ "origin": name })).collect();
    if satellites.is_empty() {
        return json!({ "baseline": { "origin": world.name() } });
    }
    json!({ "baseline": { "origin": world.name() }, "satellites": satellites })
}

#[tokio::test]
async fn killed_restarted_and_restored_to_an_earlier_state_it_is_what_consul_says() {
    let world = need!(World::new().await);
    let mut consul = need!(Consul::start(Acl::Off).await);
    let _running = Running::start(world.client.clone(), client(&consul, Auth::Anonymous), world.settings());
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    world.settled("composite").await;
    consul.put(&role(&world, "one"), "satellite").await.unwrap();
    world.publishes(with(&world, &["one"])).await;
    let saved = consul.save().await.unwrap();

    consul.process().kill();
    world.condition("composite", ConditionType::Published, "False", "ConsulUnavailable").await;
    assert!(
        payload_of(&world.config_map().await.unwrap()).unwrap().contains("one"),
        "nothing is lost with Consul"
    );
    consul.launch();
    consul.ready().await;
    consul.put(&role(&world, "two"), "satellite").await.unwrap();
    world.publishes(with(&world, &["one", "two"])).await;
    world.condition("composite", ConditionType::Published, "True", "Applied").await;
    world.history.versions_that_never_go_back(NAME, &ORDERED).await;

    // Many unrelated writes, so that the index goes far back.
    for number in 0..200 {
        consul.put(&format!("unrelated/{number}"), "x").await.unwrap();
    }
    consul.delete(&role(&world, "one")).await.unwrap();
    world.publishes(with(&world, &["two"])).await;
    consul.restore(saved).await.unwrap();
    world.publishes(with(&world, &["one"])).await;
    consul.put(&role(&world, "three"), "satellite").await.unwrap();
    world.publishes(with(&world, &["one", "three"])).await;
    // The index went back with Consul, so what was published must speak for itself.
    let states: [&[&str]; 6] = [&[], &["one"], &["one", "two"], &["two"], &["one"], &["one", "three"]];
    world.went_through(&states.map(|satellites| with(&world, satellites))).await;
}

#[tokio::test]
async fn denied_and_filtered_is_not_empty() {
    let world = need!(World::new().await);
    let consul = need!(Consul::start(Acl::On).await);
    let all = "key_prefix \"\" { policy = \"write\" }";
    let token = consul.token_with("operator", all).await.unwrap();
    let (proxy, url) = before_consul(&consul).await;
    let auth = Auth::Token(Secret::new(token));
    let client = consul::Client::new(consul::Settings { auth, ..consul::Settings::new(url) }).unwrap();
    let mut settings = world.settings();
    settings.wait_time = Duration::from_secs(1);
    let _running = Running::start(world.client.clone(), client, settings);
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    consul.put(&role(&world, "one"), "satellite").await.unwrap();
    consul.put(&role(&world, "two"), "satellite").await.unwrap();
    world.publishes(with(&world, &["one", "two"])).await;
    world.settled("composite").await;
    let before = world.config_map().await.unwrap().data;

    // One namespace is hidden, and another is removed meanwhile: nothing is, but what is new comes.
    let hidden =
        format!("{all}\nkey_prefix \"composite/{}/structure/one/\" {{ policy = \"deny\" }}", world.name());
    consul.set_policy("operator", &hidden).await.unwrap();
    world.condition("composite", ConditionType::Published, "False", "ConsulFiltered").await;
    assert_eq!(world.config_map().await.unwrap().data, before);
    consul.put(&role(&world, "three"), "satellite").await.unwrap();
    world.publishes(with(&world, &["one", "three", "two"])).await;

    consul.set_policy("operator", "key_prefix \"\" { policy = \"deny\" }").await.unwrap();
    consul.delete(&role(&world, "two")).await.unwrap();
    world.event("ConsulFiltered").await;
    asked_again(&proxy, &format!("composite/{}/", world.name()), 3).await;
    assert!(payload_of(&world.config_map().await.unwrap()).unwrap().contains("two"), "denied is not empty");

    consul.set_policy("operator", all).await.unwrap();
    world.publishes(with(&world, &["one", "three"])).await;
    world.condition("composite", ConditionType::Published, "True", "Applied").await;
    world.history.versions_that_never_go_back(NAME, &ORDERED).await;
    // What was denied was published at no time.
    let states: [&[&str]; 5] = [&[], &["one"], &["one", "two"], &["one", "three", "two"], &["one", "three"]];
    world.went_through(&states.map(|satellites| with(&world, satellites))).await;
}

#[tokio::test]
async fn a_structure_that_is_removed_as_a_whole_is_published_as_empty() {
    let world = need!(World::new().await);
    let other = format!("{}-base", world.name());
    let key = format!("composite/{other}/structure/{other}/compositeRole");
    world.consul.put(&key, "baseline").await.unwrap();
    let read_only = super::readonly::ReadOnly::start(world.consul.url()).await;
    // It may not write its own keys, so that nothing is left when others remove theirs.
    let consul = consul::Client::new(consul::Settings::new(read_only.url())).unwrap();
    let _running = Running::start(world.client.clone(), consul, world.settings());
    world
        .declare(
            "composite",
            json!({ "originNamespace": world.name(), "baseline": { "originNamespace": other } }),
        )
        .await;
    world.publishes(json!({ "baseline": { "origin": other } })).await;
    world.consul.delete(&key).await.unwrap();
    world.publishes(json!({})).await;
    world.history.versions_that_never_go_back(NAME, &ORDERED).await;
}

#[tokio::test]
async fn a_flood_of_changes_is_published_at_the_bucket_s_rate_and_ends_on_the_last() {
    let world = need!(World::new().await);
    let ns = world.name();
    let mut settings = world.settings();
    settings.on_success_delay_time = Duration::from_secs(1);
    let _running = world.operate_with(settings);
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    let before = world.history.versions(NAME).await.len();
    let began = std::time::Instant::now();
    // As fast as four connections can, for three seconds.
    let writer = |lane: u32| {
        let world = &world;
        async move {
            let mut count = 0_u32;
            while began.elapsed() < Duration::from_secs(3) {
                let key = role(world, &format!("{ns}-{lane}-{}", count % 10));
                match count % 3 {
                    2 => world.consul.delete(&key).await.unwrap(),
                    _ => world.consul.put(&key, "satellite").await.unwrap(),
                }
                count += 1;
            }
            count
        }
    };
    let (one, two, three, four) = tokio::join!(writer(1), writer(2), writer(3), writer(4));
    for lane in 1..=4 {
        for number in 0..10 {
            world.consul.delete(&role(&world, &format!("{ns}-{lane}-{number}"))).await.unwrap();
        }
    }
    world.publishes(with(&world, &[])).await;
    let seconds = began.elapsed().as_secs() + 1;
    let versions = world.history.versions_that_never_go_back(NAME, &ORDERED).await.len() - before;
    let changes = one + two + three + four;
    // Two may follow each other at once, and one a second after that.
    assert!(versions as u64 <= seconds + 3, "{versions} versions of {changes} changes in {seconds} s");
}

#[tokio::test]
async fn a_consul_that_gives_no_answer_is_asked_with_pauses() {
    let world = need!(World::new().await);
    let nobody = consul::Client::new(consul::Settings::new("http://127.0.0.1:1")).unwrap();
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    let running = Running::start(world.client.clone(), nobody, world.settings());
    let reported = world.condition("composite", ConditionType::Synced, "False", "ConsulUnavailable").await;
    assert!(reported.message.contains("refused"), "it says why: {}", reported.message);
    let failed = || -> u32 {
        let text = running.metrics.text();
        let line = format!(
            "setpoint_composite_transactions_total{{namespace=\"{}\",result=\"error\"}} ",
            world.name()
        );
        text.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok()).unwrap_or_default()
    };
    let (before, started) = (failed(), Instant::now());
    wait::until("ten more attempts", LIMIT, async || (failed() >= before + 10).then_some(())).await;
    // Pauses of at most 300 ms are half as long on average: ten take a second and a half, and without any a few milliseconds.
    assert!(started.elapsed() > Duration::from_millis(300), "ten attempts in {:?}", started.elapsed());
}

#[tokio::test]
async fn references_are_put_back_also_where_they_can_be_read_but_not_listed() {
    let (world, other) = (need!(World::new().await), need!(World::new().await));
    let consul =
        need!(Consul::start_with(Acl::On, &json!({ "acl": { "enable_key_list_policy": true } })).await);
    let reference = |world: &World| format!("config/{}/application/composite/structureRef", world.name());
    let mut rules = "key_prefix \"composite/\" { policy = \"write\" }\n".to_owned();
    for one in [&world, &other] {
        rules = format!("{rules}key \"{}\" {{ policy = \"write\" }}\n", reference(one));
    }
    let auth = Auth::Token(Secret::new(consul.token_with("operator", &rules).await.unwrap()));
    let client = client(&consul, auth);
    assert!(matches!(client.wait_below("config/", 0, Duration::ZERO).await, Err(consul::Error::Denied(_))));
    let _running = Running::start(world.client.clone(), client, fast(&[world.name(), other.name()]));
    for one in [&world, &other] {
        one.declare("composite", json!({ "originNamespace": one.name() })).await;
        one.settled("composite").await;
    }
    for one in [&world, &other] {
        consul.delete(&reference(one)).await.unwrap();
    }
    for one in [&world, &other] {
        let back = async || consul.get(&reference(one)).await.ok()?.value.map(drop);
        wait::until("the reference to be put back", LIMIT, back).await;
    }
}
