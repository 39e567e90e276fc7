//! A HAProxy that somebody ends, and starts anew on the same sockets, beside an instance that goes on.

use std::fs;

use setpoint_instance::cli::Socket;
use setpoint_instance::instance::{Applied, Event, Settings};
use setpoint_instance::process::Identity;
use setpoint_instance::reload::{Method, processes};
use setpoint_testutils::{Version, need, wait};
use tokio::sync::broadcast::Receiver;

use crate::instance::{Running, change, weight};
use crate::world::{WITHIN, World};

/// The process ids of a master and of its worker.
async fn pids(master: &Socket) -> [u32; 2] {
    let found = async || {
        let found = processes(master).await.ok()?;
        Some([found.master.pid, found.serving()?.pid])
    };
    wait::until("the master to answer", WITHIN, found).await
}

/// Kills processes, and waits until they are gone.
async fn kill(pids: [u32; 2]) {
    for identity in pids.into_iter().filter_map(Identity::of) {
        let _ = identity.signal(rustix::process::Signal::KILL);
        wait::until("its end", WITHIN, async || (!identity.is_running()).then_some(())).await;
    }
}

/// Waits until it is said that another HAProxy runs.
async fn noticed(events: &mut Receiver<Event>) {
    let noticed = async || {
        let event = events.recv().await.unwrap();
        matches!(&event, Event::Drift { difference } if difference.contains("started HAProxy")).then_some(())
    };
    wait::until("the other HAProxy to be noticed", WITHIN, noticed).await;
}

#[tokio::test]
async fn a_haproxy_that_takes_the_place_of_another_is_noticed_and_told_the_next_change() {
    for version in Version::ALL {
        let running = need!(Running::start(version).await);
        running.settled().await;
        change(&running.instance, weight(20)).await.unwrap();
        let checked = async || running.instance.is_checked().await.then_some(());
        wait::until("the check", WITHIN, checked).await;
        let mut events = running.instance.events();
        kill(pids(&running.world.master()).await).await;
        let other = running.world.launch().start().await.unwrap();
        noticed(&mut events).await;
        running.settled().await;
        let done = change(&running.instance, weight(30)).await.unwrap();
        assert_eq!(done.applied, Applied::Runtime, "{version:?}: {done:?}");
        assert!(running.instance.differences().await.unwrap().is_empty(), "{version:?}");
        drop(running.without_tasks().await);
        other.stop(std::time::Duration::ZERO).await.unwrap();
    }
}

#[tokio::test]
async fn a_haproxy_that_is_replaced_instead_of_reloaded_is_said_to_be_and_found() {
    let world = need!(World::new(Version::V3_4));
    world.write_backend();
    let at = |name: &str| world.folder.path().join(name);
    // As a service that is restarted: the old one ends at once, and another one begins.
    let script = format!(
        "kill -9 $(cat {})\nexec {} -W -D -S {} -f {} > /dev/null 2>&1\n",
        at("pids").display(),
        world.program.display(),
        world.master().path().display(),
        world.file().display()
    );
    fs::write(at("restart"), script).unwrap();
    let command = Method::Command(vec!["sh".into(), at("restart").into()]);
    let settings = Settings { reload: command, ..world.settings(Version::V3_4) };
    let running = Running::start_on(world, settings).await;
    running.settled().await;
    let before = pids(&running.world.master()).await;
    fs::write(running.world.folder.path().join("pids"), format!("{} {}", before[0], before[1])).unwrap();
    let mut events = running.instance.events();
    let error = running.instance.reload().await.unwrap_err();
    assert!(error.contains(&format!("its master was process {}", before[0])), "{error}");
    noticed(&mut events).await;
    running.settled().await;
    let done = change(&running.instance, weight(30)).await.unwrap();
    assert_eq!(done.applied, Applied::Runtime, "{done:?}");
    assert!(running.instance.differences().await.unwrap().is_empty());
    let after = pids(&running.world.master()).await;
    assert_ne!(after[0], before[0]);
    drop(running.without_tasks().await);
    kill(after).await;
}
