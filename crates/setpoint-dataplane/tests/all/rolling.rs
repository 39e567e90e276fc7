//! Several targets, some at a time.

use std::time::Duration;

use setpoint_dataplane::files::AuxiliaryFiles;
use setpoint_dataplane::rolling::{Rolled, Rolling, roll};
use setpoint_dataplane::sync::Desired;
use setpoint_dataplane::target::{ApiTarget, Target as _};
use setpoint_dataplane_api::Dialect;
use setpoint_testutils::wait::LIMIT;
use setpoint_testutils::{Missing, need};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::faults::is_equal;
use crate::sync::options;
use crate::world::World;

const TEXT: &str = "frontend web\n  bind unix@DIR/web.sock\n  default_backend app\n\nbackend app\n  \
                    server s1 127.0.0.1:UP check inter 50ms fall 1\n";

async fn worlds(text: &str) -> Result<Vec<(World, ApiTarget)>, Missing> {
    let mut worlds = Vec::new();
    for _ in 0..3 {
        let world = World::start(Dialect::default(), text).await?;
        let target = ApiTarget::new(world.client().await).await.unwrap();
        // Its server is known to be up.
        let deadline = tokio::time::Instant::now() + LIMIT;
        while target.health().await.unwrap().up.is_empty() {
            assert!(tokio::time::Instant::now() < deadline, "its server is down");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        worlds.push((world, target));
    }
    Ok(worlds)
}

#[tokio::test]
async fn one_that_is_not_well_gets_its_text_back_and_no_other_is_touched() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = TEXT.replace("UP", &server.local_addr().unwrap().port().to_string());
    let worlds = need!(worlds(&text).await);
    let rolling = Rolling {
        settle: Duration::from_secs(2),
        // Nothing listens there: it is never up, however long is waited.
        up_within: Duration::from_secs(2),
        ..Rolling::default()
    };
    let (cancel, options) = (CancellationToken::new(), options());
    let targets: Vec<ApiTarget> = worlds.iter().map(|(_, target)| target.clone()).collect();
    let go = async |text: &str| {
        let desired = Desired { text: text.as_bytes().to_vec(), files: AuxiliaryFiles::default() };
        roll(&targets, &desired, &options, &rolling, &cancel, &|_, _| {}).await
    };
    // Each has its sockets in a folder of its own, in which it runs: what is desired is the same for all.
    let folder = format!("{}/", worlds[0].0.folder.path().display());
    let well = worlds[0]
        .0
        .text(&text)
        .replace("socket /", "socket unix@/")
        .replace(&folder, "")
        .replace("\nbackend app\n", "\nbackend app\n  balance leastconn\n");
    let outcomes = go(&well).await;
    assert!(outcomes.iter().all(Rolled::is_done), "{outcomes:?}");
    let before = bodies(&targets).await;
    assert!(before.iter().all(|body| String::from_utf8_lossy(body).contains("balance leastconn")));
    let unwell = well.replace("server s1", "server s1 127.0.0.1:1 check inter 50ms fall 1 #");
    let outcomes = go(&unwell).await;
    match &outcomes[..] {
        [Rolled::Unwell { why, restored: Ok(restored) }, Rolled::Untouched, Rolled::Untouched] => {
            assert_eq!(why, "1 server is down that had been up: app/s1");
            assert!(restored.success);
        }
        other => panic!("{other:?}"),
    }
    for (target, (now, before)) in targets.iter().zip(bodies(&targets).await.iter().zip(&before)) {
        assert!(is_equal(target, now, before), "{} has not what it had", target.endpoint());
    }
    for (world, _) in worlds {
        world.end().await;
    }
}

async fn bodies(targets: &[ApiTarget]) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    for target in targets {
        bodies.push(target.read().await.unwrap().0);
    }
    bodies
}
