//! A HAProxy in a container: the process ids that its master names are those of others here.

use std::path::Path;
use std::time::Duration;

use setpoint_instance::instance::{Event, Instance, Settings};
use setpoint_instance::process::Identity;
use setpoint_instance::reload::{Method, Outcome, processes, reload};
use setpoint_testutils::{Contained, Missing, Version, http, need, wait};

use crate::instance::{change, weight};
use crate::world::{WITHIN, World};

/// A HAProxy in a container, whose master listens as `options` say behind the path of its socket.
async fn start(version: Version, options: &str) -> Result<(World, Contained), Missing> {
    let world = World::new(version)?;
    world.write_backend();
    let socket = format!("{}{options}", world.master().path().display());
    let contained = Contained::start(&world.program, &world.file(), Path::new(&socket))?;
    contained.until("it serves", async || http::get(&world.port.http()).await).await;
    let found = contained.until("its master answers", async || processes(&world.master()).await.ok()).await;
    // Whoever has its process id here is nobody whom a mistake would hurt.
    assert_eq!(found.master.pid, contained.master());
    Ok((world, contained))
}

#[tokio::test]
async fn a_stranger_that_has_the_process_id_of_a_master_in_a_container_gets_no_signal() {
    for version in [Version::V2_6, Version::V3_4] {
        let (world, contained) = need!(start(version, "").await);
        world.write("two");
        let asked = reload(&world.master(), &Method::Signal, WITHIN).await;
        assert!(contained.stranger_lives(), "{version:?}");
        let error = asked.unwrap_err().to_string();
        assert!(error.contains("in a container"), "{version:?}: {error}");
        // By its socket it reloads as any other.
        let outcome = reload(&world.master(), &Method::Socket, WITHIN).await.unwrap();
        assert!(matches!(outcome, Outcome::Succeeded { .. }), "{version:?}: {outcome:?}");
        assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("two"), "{version:?}");
    }
}

#[tokio::test]
async fn a_master_in_a_container_whose_socket_may_not_reload_is_asked_by_nothing_else() {
    for version in [Version::V2_6, Version::V3_0] {
        let (world, contained) = need!(start(version, ",level,user").await);
        let asked = reload(&world.master(), &Method::Socket, WITHIN).await;
        assert!(contained.stranger_lives(), "{version:?}");
        let error = asked.unwrap_err().to_string();
        assert!(error.contains("in a container"), "{version:?}: {error}");
    }
}

#[tokio::test]
async fn a_container_that_starts_anew_is_noticed_although_its_processes_have_the_same_ids() {
    let (world, mut contained) = need!(start(Version::V3_4, "").await);
    let settings: Settings = world.settings(Version::V3_4);
    let instance = Instance::open(settings).unwrap();
    let mut events = instance.events();
    let task = tokio::spawn({
        let instance = instance.clone();
        async move { instance.run().await }
    });
    change(&instance, weight(20)).await.unwrap();
    assert!(instance.settled(WITHIN).await);
    // It says to the second when it started, and a busy machine answers late.
    tokio::time::sleep(Duration::from_secs(5)).await;
    while let Ok(event) = events.try_recv() {
        assert!(!matches!(event, Event::Drift { .. }), "{event:?}");
    }
    contained.restart(&world.program, &world.file(), world.master().path());
    let noticed = async || {
        let event = events.recv().await.unwrap();
        matches!(&event, Event::Drift { difference } if difference.contains("started HAProxy")).then_some(())
    };
    wait::until("the other HAProxy to be noticed", WITHIN, noticed).await;
    // What it has read is known: it was written long before.
    assert!(instance.settled(WITHIN).await);
    let done = change(&instance, weight(30)).await.unwrap();
    assert_eq!(done.applied, setpoint_instance::instance::Applied::Runtime, "{done:?}");
    task.abort();
}

#[tokio::test]
async fn the_master_of_this_machine_is_known_by_who_listens_on_its_socket() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let haproxy = world.launch().start().await.unwrap();
        for _ in 0..2 {
            let found = processes(&world.master()).await.unwrap();
            assert!(found.are_ours, "{version:?}");
            assert_eq!(Identity::of(found.master.pid), Some(haproxy.identity()), "{version:?}");
            // It stays so when it starts anew.
            reload(&world.master(), &Method::Socket, WITHIN).await.unwrap();
        }
        haproxy.stop(WITHIN).await.unwrap();
    }
}
