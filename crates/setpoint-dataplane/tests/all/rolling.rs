//! Several targets, some at a time.

use std::time::Duration;

use setpoint_dataplane::error::Stage;
use setpoint_dataplane::files::AuxiliaryFiles;
use setpoint_dataplane::rolling::{Rolled, Rolling, roll};
use setpoint_dataplane::sync::{Desired, SyncOptions};
use setpoint_dataplane::target::{ApiTarget, Target as _};
use setpoint_dataplane_api::Dialect;
use setpoint_testutils::wait::LIMIT;
use setpoint_testutils::{Backend, Missing, need};
use tokio_util::sync::CancellationToken;

use crate::counting::{Counting, Fault};
use crate::faults::is_equal;
use crate::sync::options;
use crate::world::World;

/// A server that is asked often, and is not down where a busy machine answers too late now and then.
const TEXT: &str = "frontend web\n  bind unix@DIR/web.sock\n  default_backend app\n\nbackend app\n  \
                    server s1 127.0.0.1:UP check inter 50ms fall 5\n";

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
    let server = Backend::start("up").await;
    let text = TEXT.replace("UP", &server.address().port().to_string());
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
        roll(&targets, &desired, &|_| options.clone(), &rolling, &cancel, &|_, _| {}).await
    };
    // Each has its sockets in a folder of its own, in which it runs: what is desired is the same for all.
    let folder = format!("{}/", worlds[0].0.root().display());
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

/// A world whose server is up, and the text that it has.
async fn one(text: &str) -> Result<(World, Counting<ApiTarget>, String), Missing> {
    let mut worlds = worlds(text).await?;
    let (world, target) = worlds.remove(0);
    for (world, _) in worlds {
        world.end().await;
    }
    let text = world.text(text);
    Ok((world, Counting::new(target), text))
}

fn quick() -> Rolling {
    Rolling { settle: Duration::from_millis(300), up_within: Duration::from_secs(2), ..Rolling::default() }
}

#[tokio::test]
async fn one_whose_sync_fails_after_the_commit_gets_its_text_back() {
    let server = Backend::start("up").await;
    let text = TEXT.replace("UP", &server.address().port().to_string());
    let (world, target, text) = need!(one(&text).await);
    let desired = Desired {
        text: text.replace("backend app\n", "backend app\n  balance leastconn\n").into(),
        files: AuxiliaryFiles::default(),
    };
    let former = target.read().await.unwrap().0;
    // What was written can't be read back.
    target.fail("read", [Fault::Pass, Fault::Pass, Fault::Broken]);
    let targets = [target];
    let cancel = CancellationToken::new();
    let outcomes = roll(&targets, &desired, &|_| options(), &quick(), &cancel, &|_, _| {}).await;
    let [Rolled::Failed { failed, restored: Some(Ok(_)) }] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!(failed.error.stage, Stage::ReadBack);
    let now = targets[0].read().await.unwrap().0;
    assert!(is_equal(&targets[0].inner, &now, &former), "{}", String::from_utf8_lossy(&now));
    // What never began needs nothing back.
    targets[0].fail("push", vec![Fault::Broken; 2]);
    let options = SyncOptions { fallback_to_raw: false, ..options() };
    let outcomes = roll(&targets, &desired, &|_| options.clone(), &quick(), &cancel, &|_, _| {}).await;
    let [Rolled::Failed { restored: None, .. }] = &outcomes[..] else { panic!("{outcomes:?}") };
    world.end().await;
}

#[tokio::test]
async fn files_that_the_former_text_names_go_only_when_it_is_not_needed_any_more() {
    let server = Backend::start("up").await;
    let up = server.address().port().to_string();
    let (world, target, text) = need!(one(&TEXT.replace("UP", &up)).await);
    let with = text.replace(
        "  default_backend",
        "  http-request set-header x %[path,map(DIR/maps/old.map)]\n  default_backend",
    );
    let with = with.replace("DIR", &world.root().display().to_string());
    let maps = |names: &[(&str, &str)]| AuxiliaryFiles {
        maps: Some(crate::sync::files(names)),
        ..AuxiliaryFiles::default()
    };
    let (targets, cancel) = ([target], CancellationToken::new());
    // Long enough to find out that a server is down.
    let rolling = Rolling { settle: Duration::from_secs(2), ..quick() };
    let go = async |text: String, files: AuxiliaryFiles| {
        let desired = Desired { text: text.into(), files };
        roll(&targets, &desired, &|_| options(), &rolling, &cancel, &|_, _| {}).await
    };
    let outcomes = go(with.clone(), maps(&[("old.map", "/a 1\n")])).await;
    assert!(outcomes[0].is_done(), "{outcomes:?}");
    let former = targets[0].read().await.unwrap().0;
    let unwell = text.replace(&format!("server s1 127.0.0.1:{up}"), "server s1 127.0.0.1:1");
    let outcomes = go(unwell, maps(&[])).await;
    let [Rolled::Unwell { restored: Ok(_), .. }] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(is_equal(&targets[0].inner, &targets[0].read().await.unwrap().0, &former));
    assert!(world.path("maps/old.map").exists());
    let outcomes = go(text, maps(&[])).await;
    let [Rolled::Done(result)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(result.applied_files.contains(&"- map old.map".to_owned()), "{result:?}");
    assert!(!world.path("maps/old.map").exists());
    world.end().await;
}

#[tokio::test]
async fn one_that_has_moved_since_the_plan_is_not_changed() {
    let server = Backend::start("up").await;
    let text = TEXT.replace("UP", &server.address().port().to_string());
    let worlds = need!(worlds(&text).await);
    let targets: Vec<ApiTarget> = worlds.iter().map(|(_, target)| target.clone()).collect();
    let folder = format!("{}/", worlds[0].0.root().display());
    let desired = worlds[0].0.text(&text).replace("socket /", "socket unix@/").replace(&folder, "");
    let desired = Desired { text: desired.into(), files: AuxiliaryFiles::default() };
    let moved = targets[1].endpoint().to_owned();
    let options = |target: &ApiTarget| SyncOptions {
        expected_version: Some(if target.endpoint() == moved { 99 } else { 1 }),
        ..options()
    };
    let before = bodies(&targets).await;
    let outcomes = roll(&targets, &desired, &options, &quick(), &CancellationToken::new(), &|_, _| {}).await;
    let [Rolled::Done(_), Rolled::Failed { failed, restored: None }, Rolled::Untouched] = &outcomes[..]
    else {
        panic!("{outcomes:?}")
    };
    assert!(failed.error.chain().contains("changed since the plan was made"), "{}", failed.error.chain());
    assert_eq!(bodies(&targets).await[1..], before[1..]);
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
