//! Probes and metrics.

use serde_json::{Value, json};
use setpoint_testutils::{http, need};

use crate::world::World;

#[tokio::test]
async fn probes_and_metrics_are_served_by_the_leader_and_by_who_stands_by() {
    let world = need!(World::new().await);
    let ns = world.name();
    let one = world.operate_here("one");
    world.led_by("one").await;
    let two = world.operate_here("two");
    world.declare(ns, "composite", json!({ "originNamespace": ns })).await;
    world.agrees(ns).await;
    for (operator, role, leader) in [(&one, "leading", 1), (&two, "standby", 0)] {
        let url = |path: &str| format!("{}/{path}", operator.port.http());
        let ready = async || http::get(&url("readyz")).await.filter(|answer| answer.trim() == role);
        operator.process.until(&format!("it is {role}"), ready).await;
        assert_eq!(http::get(&url("healthz")).await.as_deref(), Some("ok\n"));
        let metrics = http::get(&url("metrics")).await.unwrap();
        assert!(metrics.contains(&format!("\nsetpoint_composite_leader {leader}\n")), "{metrics}");
        assert!(metrics.ends_with("# EOF\n"), "{metrics}");
        let state = async || {
            let state: Value = serde_json::from_str(&http::get(&url("debug/state")).await?).ok()?;
            // Who stands by knows of no namespaces.
            let known = &state["namespaces"][ns];
            let as_expected = if leader == 1 {
                known["ready"] == "True" && known["compositeId"] == ns
            } else {
                known.is_null() && state["listed"] == false
            };
            (as_expected && state["role"] == role).then_some(())
        };
        operator.process.until("its state says so too", state).await;
    }
}
