//! etcd keeps what it confirmed.

use setpoint_testutils::{Durability, Etcd, EtcdCluster, need};

use crate::process_is_gone;

#[tokio::test]
async fn keeps_a_key_over_a_kill_and_a_restart() {
    let mut etcd = need!(Etcd::start_with(Durability::Durable).await);
    etcd.put("colour", "blue").await.unwrap();
    let endpoint = etcd.endpoint();
    etcd.restart().await;
    assert_eq!(etcd.endpoint(), endpoint);
    assert_eq!(etcd.get("colour").await.unwrap().as_deref(), Some("blue"));
    assert_eq!(etcd.get("size").await.unwrap(), None);
}

#[tokio::test]
async fn a_cluster_survives_the_loss_of_one_member() {
    let mut cluster = need!(EtcdCluster::start().await);
    cluster.members[0].put("colour", "blue").await.unwrap();
    cluster.members[0].process().kill();

    cluster.members[1].ready().await;
    cluster.members[1].put("colour", "green").await.unwrap();
    assert_eq!(cluster.members[2].get("colour").await.unwrap().as_deref(), Some("green"));

    cluster.members[0].launch();
    cluster.members[0].ready().await;
    assert_eq!(cluster.members[0].get("colour").await.unwrap().as_deref(), Some("green"));
}

#[tokio::test]
async fn a_cluster_without_a_majority_confirms_nothing() {
    let mut cluster = need!(EtcdCluster::start().await);
    for member in &mut cluster.members[1..] {
        member.process().pause();
    }
    let put = cluster.members[0].put("colour", "blue");
    let outcome = tokio::time::timeout(std::time::Duration::from_secs(3), put).await;
    assert!(!matches!(outcome, Ok(Ok(()))), "{outcome:?}");
}

#[tokio::test]
async fn is_gone_when_it_is_dropped() {
    let mut etcd = need!(Etcd::start().await);
    let (folder, id) = (etcd.folder().to_path_buf(), etcd.process().id());
    drop(etcd);
    assert!(!folder.exists());
    process_is_gone(id).await;
}
