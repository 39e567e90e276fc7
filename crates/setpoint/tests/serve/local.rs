//! `setpoint haproxy plan` and `setpoint haproxy sync` with a HAProxy of this machine, and no API.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use setpoint_testutils::{Version, http, need};

use crate::World;
use crate::sync::{Ran, run};

/// Runs a command about the HAProxy of a world.
fn locally(world: &World, verb: &str, desired: &Path, more: &[&str]) -> Ran {
    let (program, file) = (world.program.display().to_string(), world.file().display().to_string());
    let mut arguments = vec!["--local", "--haproxy", &program, "--config", &file];
    arguments.extend(more);
    run(verb, desired, &arguments)
}

/// The process id of the worker.
async fn worker(world: &World) -> u32 {
    let master = setpoint_instance::cli::Socket::new(world.own("master.sock"));
    setpoint_instance::reload::processes(&master).await.unwrap().workers[0].pid
}

#[tokio::test]
async fn a_haproxy_without_any_api_is_started_told_and_reloaded_only_if_it_has_to_be() {
    for version in [Version::V2_6, Version::V3_4] {
        let world = need!(World::new(version));
        let (desired, name) = (world.folder.path().join("desired.cfg"), world.file().display().to_string());
        let text = fs::read_to_string(world.file()).unwrap();
        fs::write(&desired, text.replace("weight 1", "weight 4")).unwrap();
        let planned = locally(&world, "plan", &desired, &["--detailed-exitcode"]);
        assert_eq!(planned.code(), Some(2), "{}", planned.err());
        assert!(planned.out().contains("weight: 1 → 4"), "{}", planned.out());
        assert_eq!(http::get(&world.port.http()).await, None, "a plan starts nothing");

        let first = locally(&world, "sync", &desired, &[]);
        assert_eq!(first.code(), Some(0), "{}", first.err());
        assert!(first.err().contains("HAProxy is started as process"), "{}", first.err());
        assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("served"), "it goes on");
        assert_eq!(world.weight().await, Some(4));
        let (master, before) = (world.master().await, worker(&world).await);

        fs::write(&desired, text.replace("weight 1", "weight 9")).unwrap();
        let told = locally(&world, "sync", &desired, &[]);
        assert_eq!(told.code(), Some(0), "{}", told.err());
        let expected = format!(
            "  ~ backend web: server s1\n{name}: 1 operation server by server; no reload, version 3.\n"
        );
        assert_eq!(told.out(), expected);
        assert_eq!((world.weight().await, worker(&world).await), (Some(9), before));

        fs::write(&desired, text.replace("weight 1", "weight 9").replace("string served", "string anew"))
            .unwrap();
        let reloaded = locally(&world, "sync", &desired, &[]);
        assert_eq!(reloaded.code(), Some(0), "{}", reloaded.err());
        assert!(reloaded.out().contains("one reload, which succeeded, version 4."), "{}", reloaded.out());
        assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("anew"));
        assert_eq!(world.master().await, master);
        assert_ne!(worker(&world).await, before);
        assert!(fs::read_to_string(world.file()).unwrap().contains("# mine\n"), "comments stay");

        let again = locally(&world, "sync", &desired, &[]);
        assert_eq!(again.out(), format!("{name}: nothing to do.\n"));
        world.end().await;
    }
}

#[tokio::test]
async fn where_serve_has_it_in_hand_it_goes_through_that() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap();
    fs::write(&desired, text.replace("weight 1", "weight 6")).unwrap();
    let synced = locally(&world, "sync", &desired, &[]);
    assert_eq!(synced.code(), Some(0), "{}", synced.err());
    assert_eq!((serving.version().await, world.weight().await), (2, Some(6)));
    // Only the owner may use the socket, and needs no password.
    assert_eq!(fs::metadata(world.own("api.sock")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(serving.terminate(), Some(0));
    assert!(!world.own("api.sock").exists());
    fs::write(&desired, text.replace("weight 1", "weight 7")).unwrap();
    let alone = locally(&world, "sync", &desired, &[]);
    assert_eq!(alone.code(), Some(0), "{}", alone.err());
    assert_eq!(world.weight().await, Some(7), "it works without it as well");
    world.end().await;
}

#[tokio::test]
async fn where_there_is_no_configuration_the_desired_one_is_the_first() {
    let world = need!(World::new(Version::V3_4));
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap();
    fs::remove_file(world.file()).unwrap();
    fs::write(&desired, text.replace("mode http", "mode nonsense")).unwrap();
    let refused = locally(&world, "sync", &desired, &[]);
    assert_eq!(refused.code(), Some(1));
    assert!(refused.err().contains("HAProxy refuses the configuration"), "{}", refused.err());
    assert!(!world.file().exists(), "nothing is left of it");
    fs::write(&desired, &text).unwrap();
    let planned = locally(&world, "plan", &desired, &[]);
    assert_eq!(planned.code(), Some(1), "there is nothing to compare with: {}", planned.out());
    assert!(!world.file().exists());
    let synced = locally(&world, "sync", &desired, &[]);
    assert_eq!(synced.code(), Some(0), "{}", synced.err());
    assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("served"));
    world.end().await;
}

#[test]
fn somebody_has_to_say_which_haproxy() {
    let none = run("plan", Path::new("-"), &[]);
    assert_eq!(none.code(), Some(64), "{}", none.err());
    assert!(
        none.err().contains("--url URL, or take the HAProxy of this machine with --local"),
        "{}",
        none.err()
    );
    let both = run("plan", Path::new("-"), &["--local", "--url", "http://127.0.0.1:1"]);
    assert_eq!(both.code(), Some(64), "{}", both.err());
    let alone = run("plan", Path::new("-"), &["--url", "http://127.0.0.1:1", "--config", "a.cfg"]);
    assert_eq!(alone.code(), Some(64), "{}", alone.err());
}
