//! The last good text comes back where HAProxy refuses what followed, whoever runs by then.

use std::fs;
use std::time::Duration;

use setpoint_instance::instance::{Applied, Event, ReloadChoice, ReloadStatus, Settings};
use setpoint_testutils::{Missing, Version, need, wait};

use crate::instance::{Running, backend_with, change, weight};
use crate::world::{WITHIN, World};

/// A configuration that HAProxy refuses as soon as a file is gone that it names.
async fn start(version: Version) -> Result<Running, Missing> {
    let world = World::new(version)?;
    let map = world.folder.path().join("a.map");
    fs::write(&map, "a b\n").unwrap();
    let text = format!(
        "{}  http-request set-header x %[path,map({})]\nbackend web\n  server s1 127.0.0.1:9 weight 10\n",
        world.text("one"),
        map.display()
    );
    fs::write(world.file(), text).unwrap();
    let settings = world.settings(version);
    Ok(Running::start_on(world, settings).await)
}

fn read(running: &Running) -> String {
    fs::read_to_string(running.world.file()).unwrap()
}

/// The weight in HAProxy; none while its master starts anew.
async fn runtime_weight(running: &Running) -> Option<i64> {
    let states = running.instance.worker().servers(Some("web")).await.ok()??;
    states.first().map(setpoint_instance::runtime::ServerState::weight)
}

/// Waits until the old weight is back in the file and in HAProxy.
async fn undone(running: &Running) {
    let is_undone = async || {
        (read(running).contains("weight 10") && runtime_weight(running).await == Some(10)).then_some(())
    };
    wait::until("the change to be undone", WITHIN, is_undone).await;
}

#[tokio::test]
async fn a_change_that_was_told_at_runtime_is_undone_in_file_and_runtime_if_the_check_refuses_it() {
    for version in Version::ALL {
        let running = need!(start(version).await);
        let mut events = running.instance.events();
        fs::remove_file(running.world.folder.path().join("a.map")).unwrap();
        let done = change(&running.instance, weight(20)).await.unwrap();
        assert_eq!(done.applied, Applied::Runtime, "{version:?}");
        undone(&running).await;
        let mut restored = async || loop {
            if let Event::Restored { version, reason } = events.recv().await.unwrap() {
                return (version, reason);
            }
        };
        let (restored, reason) = tokio::time::timeout(WITHIN, restored()).await.unwrap();
        assert_eq!((restored, running.instance.version()), (3, 3), "{version:?}");
        assert!(reason.contains("a.map"), "{version:?}: {reason}");
        running.stop().await;
    }
}

#[tokio::test]
async fn what_a_killed_program_had_not_checked_is_checked_and_undone_by_the_next_one() {
    let running = need!(start(Version::V3_4).await);
    let settings = running.world.settings(Version::V3_4);
    let running = running.without_tasks().await;
    fs::remove_file(running.world.folder.path().join("a.map")).unwrap();
    let done = change(&running.instance, weight(20)).await.unwrap();
    assert_eq!(done.applied, Applied::Runtime);
    assert_eq!(runtime_weight(&running).await, Some(20));
    let running = running.again(settings).await;
    undone(&running).await;
    running.stop().await;
}

#[tokio::test]
async fn a_commit_whose_reload_fails_is_undone_also_if_a_check_accepted_it_or_its_program_was_killed() {
    for killed in [false, true] {
        let running = need!(start(Version::V3_4).await);
        let settings =
            Settings { reload_delay: Duration::from_hours(1), ..running.world.settings(Version::V3_4) };
        let running = running.again(settings).await;
        let good = read(&running);
        // A check does not bind: only a reload finds that the address is none of this machine.
        let text = format!("{good}frontend bad\n  bind 192.0.2.1:80\n");
        let done = running.instance.push(text.as_bytes(), Some(1), ReloadChoice::Delayed).await.unwrap();
        let Applied::Ordered(id) = done.applied else { panic!("{done:?}") };
        let done = change(&running.instance, weight(20)).await.unwrap();
        assert_eq!(done.applied, Applied::Runtime);
        let running = if killed {
            let settings = running.world.settings(Version::V3_4);
            running.again(settings).await
        } else {
            let checked = async || running.instance.is_checked().await.then_some(());
            wait::until("the check", WITHIN, checked).await;
            running.instance.reload().await.unwrap_err();
            running
        };
        let ended =
            async || running.instance.reload_by_id(&id).filter(|it| it.status == ReloadStatus::Failed);
        wait::until("the failed reload", WITHIN, ended).await;
        undone(&running).await;
        assert!(!read(&running).contains("frontend bad"), "killed: {killed}");
        let done = change(&running.instance, backend_with("b")).await;
        assert!(matches!(done.map(|done| done.applied), Ok(Applied::Ordered(_))), "killed: {killed}");
        running.stop().await;
    }
}
