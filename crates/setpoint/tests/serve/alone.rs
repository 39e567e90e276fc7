//! The API of a command with nothing else in it, and a sync by one that has nothing but that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use setpoint_testutils::{Missing, Version, need};

use crate::sync::{Ran, address, run_by, shown};
use crate::{Serving, World};

/// A command with one job alone, whose path `cargo xtask test` puts into the environment.
fn alone(variable: &str) -> Result<PathBuf, Missing> {
    let missing = || Missing::new("a command with one job alone", "`cargo xtask test` builds it");
    std::env::var_os(variable).map(PathBuf::from).ok_or_else(missing)
}

#[tokio::test]
async fn an_api_alone_is_brought_to_a_configuration_by_a_sync_alone() {
    let world = need!(World::new(Version::V3_4));
    let (api, sync) = (need!(alone("SETPOINT_DATAPLANE_ALONE")), need!(alone("SETPOINT_SYNC_ALONE")));
    let run = |verb: &str, desired: &Path, more: &[&str]| -> Ran { run_by(&sync, verb, desired, more) };
    let serving: Serving =
        world.serve_by(&mut Command::new(&api), |command| command.args(["--reload-delay", "0.02"]));
    let (url, endpoint) = (address(&serving), shown(&serving));
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap();
    for (version, weight) in [(2, 7), (3, 9)] {
        fs::write(&desired, text.replace("weight 1", &format!("weight {weight}"))).unwrap();
        let planned = run("plan", &desired, &["--url", &url, "--detailed-exitcode"]);
        assert_eq!(planned.code(), Some(2), "{}", planned.err());
        let synced = run("sync", &desired, &["--url", &url]);
        assert_eq!(synced.code(), Some(0), "{}", synced.err());
        let expected = format!(
            "  ~ backend web: server s1\n{endpoint}: 1 operation server by server; no reload, version {version}.\n"
        );
        assert_eq!(synced.out(), expected);
        assert_eq!(world.weight().await, Some(weight));
    }
    // It has no HAProxy of its own to offer.
    let nowhere = run("plan", &desired, &[]);
    assert_eq!(nowhere.code(), Some(64), "{}", nowhere.err());
    assert!(nowhere.err().contains("--url URL") && !nowhere.err().contains("--local"), "{}", nowhere.err());
    assert_eq!(serving.terminate(), Some(0));
    world.end().await;
}
