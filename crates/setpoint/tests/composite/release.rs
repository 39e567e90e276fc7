//! Composites are let go where no operator is at work.

use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use setpoint_composite::api::RELEASE_ANNOTATION;
use setpoint_consul as consul;
use setpoint_testutils::need;

use crate::world::{World, setpoint};

/// Runs `release` in the namespace; gives its exit code, and all that it printed.
fn release(world: &World, consul: &str, more: &[&str]) -> (Option<i32>, String) {
    let mut command = setpoint();
    command.arg("release").arg("--kubeconfig").arg(world.namespace.kubernetes().kubeconfig_file());
    command.args(["--namespace", world.name(), "--consul-url", consul]).args(more);
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// A Composite that was served, and whose operator is gone.
async fn abandoned(world: &World) {
    let ns = world.name();
    let mut operator = world.operate("one", &["--namespace", ns, "--leader-elect", "false"]);
    world.declare(ns, "composite", json!({ "originNamespace": ns })).await;
    world.agrees(ns).await;
    operator.process.kill();
}

#[tokio::test]
async fn a_composite_that_is_being_deleted_goes_with_its_keys() {
    let world = need!(World::new().await);
    abandoned(&world).await;
    world.composites().delete("composite", &DeleteParams::default()).await.unwrap();
    assert!(world.composites().get_opt("composite").await.unwrap().is_some(), "nobody lets it go");
    let (code, printed) = release(&world, &world.consul.url(), &[]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(world.composites().get_opt("composite").await.unwrap().is_none());
    assert!(world.structure(world.name()).await.is_empty());
}

#[tokio::test]
async fn a_composite_that_stays_keeps_its_keys_and_can_be_deleted() {
    let world = need!(World::new().await);
    abandoned(&world).await;
    let (code, printed) = release(&world, &world.consul.url(), &[]);
    assert!(code == Some(0) && printed.contains("left in Consul"), "{printed}");
    let composite = world.composites().get("composite").await.unwrap();
    assert!(composite.finalizers().is_empty());
    assert_eq!(world.structure(world.name()).await.len(), 1);
    let (code, printed) = release(&world, &world.consul.url(), &[]);
    assert!(code == Some(0) && printed.contains("nothing holds it"), "{printed}");
}

#[tokio::test]
async fn without_consul_it_waits_unless_its_keys_may_stay() {
    let world = need!(World::new().await);
    abandoned(&world).await;
    world.composites().delete("composite", &DeleteParams::default()).await.unwrap();
    let nowhere = "http://127.0.0.1:1";
    let (code, printed) = release(&world, nowhere, &[]);
    assert!(code == Some(1) && printed.contains("--leave-keys"), "{printed}");
    assert!(world.composites().get_opt("composite").await.unwrap().is_some());
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { RELEASE_ANNOTATION: "true" } } }));
    world.composites().patch("composite", &PatchParams::default(), &patch).await.unwrap();
    let (code, printed) = release(&world, nowhere, &[]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(world.composites().get_opt("composite").await.unwrap().is_none());
    assert_eq!(world.structure(world.name()).await.len(), 1);
}

#[tokio::test]
async fn keys_that_are_left_on_purpose_are_claimed_by_nobody_any_more() {
    let world = need!(World::new().await);
    abandoned(&world).await;
    let claims = async || {
        let claims = format!("composite/{}/claims/", world.name());
        let client = consul::Client::new(consul::Settings::new(world.consul.url())).unwrap();
        client.list(&claims, consul::Read::Consistent).await.unwrap().entries.len()
    };
    assert_eq!(claims().await, 1);
    world.composites().delete("composite", &DeleteParams::default()).await.unwrap();
    let (code, printed) = release(&world, &world.consul.url(), &["--leave-keys"]);
    assert!(code == Some(0) && printed.contains("nobody's now"), "{printed}");
    assert!(world.composites().get_opt("composite").await.unwrap().is_none());
    assert_eq!((world.structure(world.name()).await.len(), claims().await), (1, 0));
}

#[tokio::test]
async fn keys_may_be_left_also_where_consul_is_away() {
    let world = need!(World::new().await);
    abandoned(&world).await;
    world.composites().delete("composite", &DeleteParams::default()).await.unwrap();
    let (code, printed) = release(&world, "http://127.0.0.1:1", &["--leave-keys"]);
    assert!(code == Some(0) && printed.contains("left in Consul"), "{printed}");
    assert!(world.composites().get_opt("composite").await.unwrap().is_none());
}
