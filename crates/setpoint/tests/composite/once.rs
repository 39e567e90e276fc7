//! `setpoint composite run --once`.

use serde_json::json;
use setpoint_testutils::need;

use crate::world::{World, setpoint};

#[tokio::test]
async fn once_ends_when_all_is_done_and_fails_with_the_reason_when_something_is_not() {
    let world = need!(World::new().await);
    let ns = world.name();
    world.declare(ns, "composite", json!({ "originNamespace": ns })).await;
    let run = |consul: &str, once: &str| {
        let mut command = setpoint();
        command.args(["run", "--namespace", ns, "--consul-url", consul, "--listen", "127.0.0.1:0", once]);
        command.arg("--kubeconfig").arg(world.namespace.kubernetes().kubeconfig_file());
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    let refused = run("http://127.0.0.1:1", "--once=8s").await.unwrap();
    let printed = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains(&format!("{ns}: ")) && printed.contains("not every Composite is ready"),
        "{printed}"
    );

    let done = run(&world.consul.url(), "--once").await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    world.agrees(ns).await;
    // And again, where there is nothing left to do.
    assert!(run(&world.consul.url(), "--once").await.unwrap().status.success());
}
