//! Traffic goes on while a configuration is synced.

use setpoint_dataplane::costs::Weights;
use setpoint_dataplane::sync::{Choice, SyncOptions};
use setpoint_dataplane::target::ApiTarget;
use setpoint_dataplane_api::Dialect;
use setpoint_testutils::backend::Backend;
use setpoint_testutils::load::Load;
use setpoint_testutils::need;

use crate::sync::{options, run};
use crate::world::World;

/// A configuration with servers of some weights, and rules.
fn text(backends: &[Backend], weights: &[usize], rules: usize) -> String {
    let rules =
        (0..rules).fold(String::new(), |text, n| format!("{text}  http-request set-header x-{n} {n}\n"));
    let servers = backends.iter().zip(weights).filter(|(_, weight)| **weight > 0);
    let servers = servers.enumerate().fold(String::new(), |text, (number, (backend, weight))| {
        format!("{text}  server s{number}-{} {} weight {weight}\n", backend.name(), backend.address())
    });
    // Without it, HAProxy itself closes connections that are idle when it reloads.
    format!(
        "frontend web\n  bind 127.0.0.1:PORT\n  option idle-close-on-response\n{rules}  default_backend app\n\n\
         backend app\n  balance roundrobin\n{servers}"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_during_a_hundred_syncs() {
    let mut backends = Vec::new();
    for name in ["a", "b", "c"] {
        backends.push(Backend::start(name).await);
    }
    let world = need!(World::start(Dialect::default(), &text(&backends, &[10, 10, 10], 0)).await);
    let target = ApiTarget::new(world.client().await).await.unwrap();
    let options = SyncOptions { choice: Choice::Cheapest(Weights::default()), ..options() };
    run(&target, &world.text(&text(&backends, &[10, 10, 11], 0)), &options).await.unwrap();
    let load = Load::start(&format!("http://{}/", world.address), 4);
    let mut reloads = 0;
    for round in 0..100 {
        // Weights change all the time; a server goes and comes; now and then a rule takes a reload.
        let weights = [10 + round % 7, 20 - round % 5, if round % 3 == 0 { 0 } else { 10 }];
        let result =
            run(&target, &world.text(&text(&backends, &weights, round / 25)), &options).await.unwrap();
        let has_rule = round > 0 && round % 25 == 0;
        assert_eq!(result.reload_triggered, has_rule, "round {round}: {result:?}");
        reloads += usize::from(result.reload_triggered);
    }
    let report = load.stop().await;
    assert_eq!((report.total_failed(), reloads), (0, 3), "{report:?}");
    assert!(report.total_answered() > 100, "{report:?}");
    world.end().await;
}
