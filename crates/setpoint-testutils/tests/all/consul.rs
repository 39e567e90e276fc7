//! Consul keeps keys, tells of changes, and asks for tokens.

use std::time::{Duration, Instant};

use setpoint_testutils::{Acl, Consul, ConsulCluster, http, need, wait};

use crate::process_is_gone;

#[tokio::test]
async fn a_blocking_query_returns_on_a_write_and_data_survive_a_restart() {
    let mut consul = need!(Consul::start(Acl::Off).await);
    consul.put("colour", "blue").await.unwrap();
    let before = consul.get("colour").await.unwrap();
    assert_eq!(before.value.as_deref(), Some("blue"));

    // Where nothing is written, it waits.
    let started = Instant::now();
    let same = consul.get_after("colour", before.index, Duration::from_secs(1)).await.unwrap();
    assert_eq!((same.index, same.value.as_deref()), (before.index, Some("blue")));
    assert!(started.elapsed() >= Duration::from_secs(1));

    let started = Instant::now();
    let write = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        consul.put("colour", "green").await.unwrap();
    };
    let (after, ()) = tokio::join!(consul.get_after("colour", before.index, Duration::from_mins(10)), write);
    let after = after.unwrap();
    assert_eq!(after.value.as_deref(), Some("green"));
    assert!(after.index > before.index);
    assert!(started.elapsed() >= Duration::from_millis(300) && started.elapsed() < wait::LIMIT);

    consul.restart().await;
    assert_eq!(consul.get("colour").await.unwrap().value.as_deref(), Some("green"));
    assert_eq!(consul.get("size").await.unwrap().value, None);
}

#[tokio::test]
async fn with_acls_nothing_is_allowed_without_a_token() {
    let mut consul = need!(Consul::start(Acl::On).await);
    consul.put("colour", "blue").await.unwrap();
    assert_eq!(consul.get("colour").await.unwrap().value.as_deref(), Some("blue"));

    let url = format!("{}/v1/kv/colour?raw", consul.url());
    let refused = http::client().get(url).send().await.unwrap();
    assert_eq!(refused.status(), 403);

    let (folder, id) = (consul.folder().to_path_buf(), consul.process().id());
    drop(consul);
    assert!(!folder.exists());
    process_is_gone(id).await;
}

#[tokio::test]
async fn a_cluster_survives_the_loss_of_one_server() {
    let mut cluster = need!(ConsulCluster::start(Acl::Off).await);
    cluster.servers[0].put("colour", "blue").await.unwrap();
    cluster.servers[0].process().kill();
    let (second, third) = (&cluster.servers[1], &cluster.servers[2]);
    wait::until("a write without the lost server", wait::LIMIT, async || {
        second.put("colour", "green").await.ok()
    })
    .await;
    assert_eq!(third.get("colour").await.unwrap().value.as_deref(), Some("green"));
}

#[tokio::test]
async fn consul_goes_back_to_what_was_saved() {
    let consul = need!(Consul::start(Acl::Off).await);
    consul.put("tree/kept", "1").await.unwrap();
    let saved = consul.save().await.unwrap();
    consul.put("tree/lost", "2").await.unwrap();
    consul.restore(saved).await.unwrap();
    assert_eq!(consul.get("tree/lost").await.unwrap().value, None);
    assert_eq!(consul.get("tree/kept").await.unwrap().value.as_deref(), Some("1"));
    consul.delete_tree("tree/").await.unwrap();
    assert_eq!(consul.get("tree/kept").await.unwrap().value, None);
}

#[tokio::test]
async fn a_consul_token_may_do_what_its_policy_says() {
    let consul = need!(Consul::start(Acl::On).await);
    let token = consul.token_with("reader", r#"key_prefix "open/" { policy = "read" }"#).await.unwrap();
    let read = async |key: &str| {
        let url = format!("{}/v1/kv/{key}", consul.url());
        let request = setpoint_testutils::http::client().get(url).header("X-Consul-Token", &token);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!((read("open/a").await, read("closed/a").await), (404, 403));
    consul.set_policy("reader", r#"key_prefix "closed/" { policy = "read" }"#).await.unwrap();
    assert_eq!((read("open/a").await, read("closed/a").await), (403, 404));
}
