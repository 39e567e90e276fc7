//! The ways that a sync takes, and what it does about several targets, as a person asks for them.

use std::fs;

use serde_json::Value as Json;
use setpoint_testutils::{Version, need};

use crate::World;
use crate::sync::{address, run, shown};

#[tokio::test]
async fn a_way_is_asked_for_and_costs_are_those_of_a_file() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let (url, endpoint) = (address(&serving), shown(&serving));
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap();
    fs::write(&desired, text.replace("weight 1", "weight 2")).unwrap();
    let planned = run("plan", &desired, &["--url", &url, "--json"]);
    let json: Json = serde_json::from_str(&planned.out()).unwrap();
    assert_eq!(
        (&json["mode"], json["ways"].as_array().map(Vec::len)),
        (&"runtime".into(), Some(3)),
        "{json}"
    );

    // Where a call by itself is dear, the same file leads to another way.
    let mut costs = json["costs"].clone();
    costs["direct"]["base"] = 9.into();
    let file = world.folder.path().join("costs.json");
    fs::write(&file, costs.to_string()).unwrap();
    let file = file.display().to_string();
    let planned = run("plan", &desired, &["--url", &url, "--json", "--costs", &file, "--reload-cost", "3"]);
    let json: Json = serde_json::from_str(&planned.out()).unwrap();
    assert_ne!(json["mode"], "runtime", "{json}");
    assert_eq!(json["costs"]["reload"], 3.0, "{json}");

    let synced = run("sync", &desired, &["--url", &url, "--way", "text"]);
    let expected = format!(
        "  ~ backend web: server s1\n{endpoint}: 1 operation by a push of the whole text; no reload, version 2.\n"
    );
    assert_eq!((synced.code(), synced.out()), (Some(0), expected), "{}", synced.err());

    fs::write(&file, "{\"begin\": 1}").unwrap();
    let wrong = run("sync", &desired, &["--url", &url, "--costs", &file]);
    assert_eq!(wrong.code(), Some(1));
    assert!(
        wrong.err().contains("does not say what calls cost") && wrong.err().contains("plan --json"),
        "{}",
        wrong.err()
    );
    world.end().await;
}

#[tokio::test]
async fn several_are_changed_one_after_the_other_and_none_where_one_does_not_answer() {
    let one = need!(World::new(Version::V3_4));
    let serving = one.serve();
    let (url, endpoint) = (address(&serving), shown(&serving));
    let desired = one.folder.path().join("desired.cfg");
    let text = fs::read_to_string(one.file()).unwrap();
    fs::write(&desired, text.replace("weight 1", "weight 2")).unwrap();
    // Nothing listens at port 1.
    let refused = run(
        "sync",
        &desired,
        &["--url", &url, "--url", "http://127.0.0.1:1", "--rolling", "1", "--settle", "0"],
    );
    assert_eq!((refused.code(), one.weight().await), (Some(1), Some(1)), "{}", refused.out());
    let err = refused.err();
    assert!(err.contains("nothing was changed") && err.contains("2 of 2 failed"), "{err}");
    let local = run("sync", &desired, &["--local", "--rolling", "1"]);
    assert!(local.code() == Some(64) && local.err().contains("--url"), "{}", local.err());
    let rolled = run("sync", &desired, &["--url", &url, "--rolling", "1", "--settle", "0", "-v"]);
    assert_eq!((rolled.code(), one.weight().await), (Some(0), Some(2)), "{}", rolled.err());
    assert!(rolled.err().contains(&format!("{endpoint}: done, and well")), "{}", rolled.err());
    one.end().await;
}
