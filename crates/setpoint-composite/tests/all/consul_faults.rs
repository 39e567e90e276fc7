//! The watch, against a real Consul that is killed, restarted, restored, denied and flooded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use setpoint_consul::watch;
use setpoint_consul::{Auth, Client, Read, Secret, Settings};
use setpoint_testutils::{Acl, Consul, ConsulCluster, Proxy, need, wait};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::watching::{Watching, client, fast};

async fn put_attribute(consul: &Consul, composite: &str, line: &str) {
    let (key, value) = line.split_once('=').expect("a key and a value");
    consul.put(&format!("composite/{composite}/structure/{key}"), value).await.expect("it can be written");
}

fn with_token(consul: &Consul, token: &str) -> Client {
    let auth = Auth::Token(Secret::new(token));
    Client::new(Settings { auth, ..Settings::new(consul.url()) }).expect("a client")
}

const ONLY_BASELINE: &str = r#"{"baseline":{"origin":"bs"}}"#;
const WITH_SATELLITE: &str = r#"{"baseline":{"origin":"bs"},"satellites":[{"origin":"st"}]}"#;

#[tokio::test]
async fn changes_are_seen_and_so_is_the_removal_of_everything() {
    let consul = need!(Consul::shared().await);
    put_attribute(consul, "seen", "bs/compositeRole=baseline").await;
    put_attribute(consul, "seen-too", "other/compositeRole=baseline").await;
    let mut watching = Watching::start(client(&consul.url()), "seen", fast());
    watching.until(ONLY_BASELINE).await;
    put_attribute(consul, "seen", "st/compositeRole=satellite").await;
    watching.until(WITH_SATELLITE).await;
    consul.delete("composite/seen/structure/st/compositeRole").await.unwrap();
    watching.until(ONLY_BASELINE).await;
    consul.delete_tree("composite/seen/structure/").await.unwrap();
    watching.until("{}").await;
    assert_eq!(watching.count("RemovalConfirmed"), 1);
    put_attribute(consul, "seen", "bs/compositeRole=baseline").await;
    watching.until(ONLY_BASELINE).await;
    assert_eq!(watching.end().await, None);
}

#[tokio::test]
async fn a_structure_that_is_gone_for_a_moment_is_not_taken_away() {
    let consul = need!(Consul::shared().await);
    put_attribute(consul, "blink", "bs/compositeRole=baseline").await;
    let settings = watch::Settings { removal_grace: Duration::from_secs(30), ..fast() };
    let mut watching = Watching::start(client(&consul.url()), "blink", settings);
    watching.until(ONLY_BASELINE).await;
    consul.delete_tree("composite/blink/structure/").await.unwrap();
    watching.reported("RemovalSuspected", 1).await;
    put_attribute(consul, "blink", "bs/compositeRole=baseline").await;
    watching.reported("Answered 1 false", 1).await;
    assert_eq!(watching.count("RemovalConfirmed"), 0);
    assert_eq!(watching.end().await, None);
}

#[tokio::test]
async fn an_empty_prefix_that_wakes_on_unrelated_writes_stays_within_the_bucket() {
    let consul = need!(Consul::start(Acl::Off).await);
    let settings = watch::Settings { refill: Duration::from_millis(250), ..fast() };
    let start = Instant::now();
    let watching = Watching::start(client(&consul.url()), "nothing", settings);
    watching.reported("RemovalConfirmed", 1).await;
    for number in 0..400 {
        consul.put("unrelated", &number.to_string()).await.unwrap();
    }
    let answered = watching.count("Answered");
    let most = 2 + usize::try_from(start.elapsed().as_millis() / 250).unwrap();
    assert!(answered >= 2, "it does wake: {answered}");
    assert!(answered <= most, "{answered} answers, and {most} tokens");
    watching.end().await;
}

#[tokio::test]
async fn a_consul_that_is_killed_and_comes_back_is_followed_again() {
    let mut consul = need!(Consul::start(Acl::Off).await);
    put_attribute(&consul, "x", "bs/compositeRole=baseline").await;
    let mut watching = Watching::start(client(&consul.url()), "x", fast());
    watching.until(ONLY_BASELINE).await;
    consul.process().kill();
    watching.reported("Failed", 3).await;
    assert_eq!(watching.snapshots.try_recv(), None, "away is not empty");
    consul.launch();
    consul.ready().await;
    put_attribute(&consul, "x", "st/compositeRole=satellite").await;
    watching.until(WITH_SATELLITE).await;

    // Without a trace: a new one, with a lower index.
    consul.process().kill();
    std::fs::remove_dir_all(consul.folder().join("data")).unwrap();
    consul.launch();
    consul.ready().await;
    put_attribute(&consul, "x", "bs/compositeRole=baseline").await;
    watching.until(ONLY_BASELINE).await;
    watching.end().await;
}

#[tokio::test]
async fn a_restored_snapshot_with_a_lower_index_is_seen_at_once() {
    let consul = need!(Consul::start(Acl::Off).await);
    put_attribute(&consul, "x", "bs/compositeRole=baseline").await;
    let saved = consul.save().await.unwrap();
    for number in 0..50 {
        consul.put("unrelated", &number.to_string()).await.unwrap();
    }
    put_attribute(&consul, "x", "st/compositeRole=satellite").await;
    let settings = watch::Settings { wait: Duration::from_mins(5), ..fast() };
    let mut watching = Watching::start(client(&consul.url()), "x", settings);
    watching.until(WITH_SATELLITE).await;
    consul.restore(saved).await.unwrap();
    watching.until(ONLY_BASELINE).await;
    assert!(watching.count("IndexReset") + watching.count("Failed") >= 1, "{:?}", watching.events());
    put_attribute(&consul, "x", "st/compositeRole=satellite").await;
    watching.until(WITH_SATELLITE).await;
    watching.end().await;
}

#[tokio::test]
async fn what_acls_filter_removes_nothing() {
    let consul = need!(Consul::start(Acl::On).await);
    let all = r#"key_prefix "composite/" { policy = "read" }"#;
    let token = consul.token_with("watcher", all).await.unwrap();
    put_attribute(&consul, "x", "bs/compositeRole=baseline").await;
    put_attribute(&consul, "x", "st/compositeRole=satellite").await;
    let mut watching = Watching::start(with_token(&consul, &token), "x", fast());
    watching.until(WITH_SATELLITE).await;

    // A part is not seen any more, and something else is new.
    let part = r#"key_prefix "composite/" { policy = "read" } key_prefix "composite/x/structure/bs" { policy = "deny" }"#;
    consul.set_policy("watcher", part).await.unwrap();
    put_attribute(&consul, "x", "tt/compositeRole=satellite").await;
    watching.until(r#"{"baseline":{"origin":"bs"},"satellites":[{"origin":"st"},{"origin":"tt"}]}"#).await;
    watching.reported("Filtered { withheld: false }", 1).await;

    // Nothing is seen any more: denied is not empty. A query that is under way still has the old rights.
    consul.set_policy("watcher", r#"key_prefix "elsewhere/" { policy = "read" }"#).await.unwrap();
    put_attribute(&consul, "x", "uu/compositeRole=satellite").await;
    watching.reported("Filtered", watching.count("Filtered") + 2).await;
    let _ = watching.snapshots.try_recv();
    put_attribute(&consul, "x", "vv/compositeRole=satellite").await;
    watching.reported("Filtered", watching.count("Filtered") + 1).await;
    assert_eq!(watching.snapshots.try_recv(), None);
    assert_eq!(watching.count("Removal"), 0);

    // One that begins now has nothing to hold on to, and passes nothing on.
    let mut late = Watching::start(with_token(&consul, &token), "x", fast());
    late.reported("Filtered { withheld: true }", 1).await;
    assert_eq!(late.snapshots.try_recv(), None);

    consul.set_policy("watcher", all).await.unwrap();
    consul.delete("composite/x/structure/st/compositeRole").await.unwrap();
    let now =
        r#"{"baseline":{"origin":"bs"},"satellites":[{"origin":"tt"},{"origin":"uu"},{"origin":"vv"}]}"#;
    watching.until(now).await;
    late.until(now).await;
    late.end().await;
    watching.end().await;
}

#[tokio::test]
async fn a_token_that_is_deleted_is_denied_and_a_new_one_in_the_file_goes_on() {
    let consul = need!(Consul::start(Acl::On).await);
    let rules = r#"key_prefix "composite/" { policy = "read" }"#;
    let (old, new) = (
        consul.token_with("watcher", rules).await.unwrap(),
        consul.token_with("watcher", rules).await.unwrap(),
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, &old).unwrap();
    let auth = Auth::TokenFile(file.clone());
    let client = Client::new(Settings { auth, ..Settings::new(consul.url()) }).unwrap();
    put_attribute(&consul, "x", "bs/compositeRole=baseline").await;
    let mut watching = Watching::start(client, "x", fast());
    watching.until(ONLY_BASELINE).await;

    let tokens = consul.request(reqwest::Method::GET, "/v1/acl/tokens").send().await.unwrap();
    let tokens: Vec<Value> = tokens.json().await.unwrap();
    let accessor =
        tokens.iter().find(|token| token["SecretID"] == old.as_str()).unwrap()["AccessorID"].clone();
    let path = format!("/v1/acl/token/{}", accessor.as_str().unwrap());
    consul.request(reqwest::Method::DELETE, &path).send().await.unwrap().error_for_status().unwrap();
    put_attribute(&consul, "x", "st/compositeRole=satellite").await;
    watching.reported("Failed Denied", 1).await;
    // The query that was under way still had its rights.
    let _ = watching.snapshots.try_recv();
    consul.delete("composite/x/structure/bs/compositeRole").await.unwrap();
    watching.reported("Failed Denied", watching.count("Failed Denied") + 2).await;
    assert_eq!(watching.snapshots.try_recv(), None, "denied is not empty");
    std::fs::write(&file, &new).unwrap();
    watching.until(r#"{"satellites":[{"origin":"st"}]}"#).await;
    watching.end().await;
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_again() {
    let consul = need!(Consul::shared().await);
    let address = consul.url().trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(address).await;
    put_attribute(consul, "cut", "bs/compositeRole=baseline").await;
    let mut watching = Watching::start(client(&format!("http://{}", proxy.address())), "cut", fast());
    watching.until(ONLY_BASELINE).await;
    proxy.cut();
    watching.reported("Failed Unreachable", 3).await;
    put_attribute(consul, "cut", "st/compositeRole=satellite").await;
    proxy.heal();
    watching.until(WITH_SATELLITE).await;
    watching.end().await;
}

#[tokio::test]
async fn the_election_of_another_leader_is_survived() {
    let mut cluster = need!(ConsulCluster::start(Acl::Off).await);
    let leads = async |server: &Consul| {
        let request = server.request(reqwest::Method::GET, "/v1/agent/self");
        let own: Value = request.send().await.ok()?.json().await.ok()?;
        Some(own["Stats"]["consul"]["leader"] == "true")
    };
    let mut leader = 0;
    for (number, server) in cluster.servers.iter().enumerate() {
        if leads(server).await == Some(true) {
            leader = number;
        }
    }
    let followers: Vec<_> = (0..3).filter(|number| *number != leader).collect();
    put_attribute(&cluster.servers[followers[0]], "x", "bs/compositeRole=baseline").await;
    let mut watching = Watching::start(client(&cluster.servers[followers[0]].url()), "x", fast());
    watching.until(ONLY_BASELINE).await;
    cluster.servers[leader].process().kill();
    let written = async || {
        let server = &cluster.servers[followers[1]];
        server.put("composite/x/structure/st/compositeRole", "satellite").await.ok()
    };
    wait::until("another leader takes a write", wait::LIMIT, written).await;
    watching.until(WITH_SATELLITE).await;
    // A new leader may answer before it has applied all that was agreed on: that is suspected, and never believed.
    assert_eq!(watching.count("RemovalConfirmed"), 0);
    watching.end().await;
}

#[tokio::test]
async fn a_thousand_writes_a_second_end_on_the_last_state_within_the_bucket() {
    let consul = need!(Consul::start(Acl::Off).await);
    put_attribute(&consul, "x", "bs/compositeRole=baseline").await;
    let refill = Duration::from_millis(500);
    let start = Instant::now();
    let watching = Watching::start(client(&consul.url()), "x", watch::Settings { refill, ..fast() });
    watching.reported("Answered", 1).await;

    let (go, writes) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU64::new(0)));
    let mut writers = JoinSet::new();
    for writer in 0..16 {
        let (go, writes) = (Arc::clone(&go), Arc::clone(&writes));
        let url = format!("{}/v1/kv/composite/x/structure/n-{writer}/controllerNamespace", consul.url());
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        writers.spawn(async move {
            while go.load(Ordering::Relaxed) {
                let number = writes.fetch_add(1, Ordering::Relaxed);
                http.put(&url).body(number.to_string()).send().await.unwrap().error_for_status().unwrap();
            }
        });
    }
    let enough = async || (writes.load(Ordering::Relaxed) >= 1_000).then_some(());
    wait::until("enough writes to show anything", wait::LIMIT, enough).await;
    go.store(false, Ordering::Relaxed);
    while writers.join_next().await.is_some() {}

    let client = client(&consul.url());
    let last = client.list("composite/x/structure/", Read::Consistent).await.unwrap();
    let mut watching = watching;
    let mut seen = watching.next().await;
    while seen.entries.iter().map(|entry| &entry.value).ne(last.entries.iter().map(|entry| &entry.value)) {
        seen = watching.next().await;
    }
    let answered = u128::try_from(watching.count("Answered")).unwrap();
    let most = 2 + start.elapsed().as_millis() / refill.as_millis();
    assert!(answered <= most, "{answered} answers, and {most} tokens");
    watching.end().await;
}

#[tokio::test]
async fn a_rotated_token_reaches_every_watch() {
    let consul = need!(Consul::start(Acl::On).await);
    let rules = |prefix: &str| format!("key_prefix \"{prefix}\" {{ policy = \"write\" }}");
    let token = consul.token_with("first", &rules("composite/")).await.unwrap();
    let folder = setpoint_testutils::Workdir::new("token");
    let file = folder.write("token", &token);
    let auth = Auth::TokenFile(file.clone());
    let client = Client::new(Settings { auth, ..Settings::new(consul.url()) }).unwrap();
    // Their queries wait as long as any does: only the new token ends them sooner.
    let slow = setpoint_consul::watch::Settings { wait: wait::LIMIT, ..fast() };
    let watching: Vec<_> =
        (0..4).map(|number| Watching::start(client.clone(), &format!("w{number}"), slow.clone())).collect();
    for number in 0..4 {
        put_attribute(&consul, &format!("w{number}"), "bs/compositeRole=baseline").await;
    }
    for watching in &watching {
        watching.reported("Answered 1 true", 1).await;
    }
    let next = consul.token_with("second", &rules("composite/")).await.unwrap();
    // One that is between two queries takes a new token without being woken: then it is rotated once more.
    let mut reached = false;
    for token in [&next, &token, &next, &token, &next] {
        let before: Vec<_> = watching.iter().map(|watching| watching.count("Renewed")).collect();
        folder.write("token", token);
        let all = async || {
            let mut both = watching.iter().zip(&before);
            both.all(|(watching, before)| watching.count("Renewed") > *before).then_some(())
        };
        reached = wait::within(Duration::from_secs(10), all).await.is_some();
        if reached {
            break;
        }
    }
    assert!(reached, "no new token has ended the queries of all watches");
    for watching in watching {
        watching.end().await;
    }
}

#[tokio::test]
async fn without_a_token_where_one_is_needed_consul_is_asked_at_the_pace_of_the_grace() {
    let consul = need!(Consul::start(Acl::On).await);
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let client = client(&consul.url());
    let counted = std::sync::Arc::clone(&asked);
    let observer = move |event: setpoint_consul::watch::Event<'_>| {
        if matches!(event, setpoint_consul::watch::Event::Filtered { .. }) {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let settings = setpoint_consul::watch::Settings { removal_grace: Duration::from_secs(1), ..fast() };
    let (sink, _taken) = setpoint_loop::latest::channel();
    let cancel = tokio_util::sync::CancellationToken::new();
    let began = std::time::Instant::now();
    let prefix = "composite/x/structure/".to_owned();
    let watching =
        tokio::spawn(setpoint_consul::watch::watch(client, prefix, settings, sink, cancel.clone(), observer));
    let asked_often = async || (asked.load(std::sync::atomic::Ordering::Relaxed) >= 3).then_some(());
    wait::until("three confirmations", wait::LIMIT, asked_often).await;
    assert!(began.elapsed() > Duration::from_secs(2), "three within {:?}", began.elapsed());
    cancel.cancel();
    watching.await.unwrap();
}
