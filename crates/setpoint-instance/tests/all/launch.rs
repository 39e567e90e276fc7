//! What is started serves, outlives who started it, and says why it does not start.

use setpoint_instance::process::{Identity, LaunchError};
use setpoint_testutils::{Version, http, need};

use crate::world::{WITHIN, World};

#[tokio::test]
async fn what_is_started_serves_and_ends_when_it_is_stopped() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let haproxy = world.launch().start().await.unwrap();
        assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("one"), "{version:?}");
        let identity = haproxy.identity();
        assert_eq!(Identity::of(identity.pid()), Some(identity));
        haproxy.stop(WITHIN).await.unwrap();
        assert!(!identity.is_running());
        assert_eq!(http::get(&world.port.http()).await, None, "{version:?}");
    }
}

#[tokio::test]
async fn it_has_a_process_group_of_its_own_and_goes_on_when_it_is_let_go() {
    let world = need!(World::new(Version::V3_4));
    let haproxy = world.launch().start().await.unwrap();
    let identity = haproxy.identity();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", identity.pid())).unwrap();
    let group = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(2).unwrap().to_owned();
    assert_eq!(group, identity.pid().to_string());
    drop(haproxy);
    assert!(identity.is_running());
    assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("one"));
    identity.signal(rustix::process::Signal::TERM).unwrap();
}

#[tokio::test]
async fn one_that_refuses_its_configuration_says_why() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        std::fs::write(world.file(), "backend b\n  balance bogus\n").unwrap();
        let error = world.launch().start().await.unwrap_err();
        assert!(matches!(error, LaunchError::Ended { .. }), "{error}");
        assert!(error.to_string().contains("balance"), "{version:?}: {error}");
    }
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let world = need!(World::new(Version::V3_4));
    let mut launch = world.launch();
    launch.program = "/nonexistent/haproxy".into();
    let error = launch.start().await.unwrap_err().to_string();
    assert!(error.contains("/nonexistent/haproxy"), "{error}");
}
