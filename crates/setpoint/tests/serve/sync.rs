//! `setpoint haproxy plan` and `setpoint haproxy sync` as a person runs them, against `setpoint haproxy serve`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;
use setpoint_testutils::wait::LIMIT;
use setpoint_testutils::{Version, need};

use crate::{Serving, World};

pub(crate) struct Ran(Output);

impl Ran {
    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.0.status.code()
    }
}

/// Runs `setpoint haproxy VERB DESIRED`, with the time that calls and reloads need on a busy machine.
pub(crate) fn run(verb: &str, desired: &Path, arguments: &[&str]) -> Ran {
    run_by(Path::new(env!("CARGO_BIN_EXE_setpoint")), verb, desired, arguments)
}

/// The same by another program.
pub(crate) fn run_by(program: &Path, verb: &str, desired: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(program);
    let seconds = LIMIT.as_secs().to_string();
    command.args(["haproxy", verb]).arg(desired).args(["--timeout", &seconds]).args(arguments);
    if verb == "sync" {
        command.args(["--reload-timeout", &seconds]);
    }
    Ran(command.output().unwrap())
}

/// The address of what serves, with the user and the password.
pub(crate) fn address(serving: &Serving) -> String {
    let host = serving.url.trim_start_matches("http://").trim_end_matches("/v3");
    format!("http://admin:{}@{host}", serving.password)
}

/// What is shown of an address.
pub(crate) fn shown(serving: &Serving) -> String {
    serving.url.trim_end_matches("/v3").to_owned()
}

#[tokio::test]
async fn a_plan_says_whether_haproxy_reloads_and_a_sync_does_what_it_says() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let (url, endpoint) = (address(&serving), shown(&serving));
    let master = world.master().await;
    let desired = world.folder.path().join("desired.cfg");
    // The first text that is pushed stands for all that was there.
    let text = fs::read_to_string(world.file()).unwrap();
    fs::write(&desired, text.replace("weight 1", "weight 2")).unwrap();
    let first = run("sync", &desired, &["--url", &url]);
    assert_eq!(first.code(), Some(0), "{}", first.err());
    let expected = format!(
        "  ~ backend web: server s1\n{endpoint}: 1 operation server by server; no reload, version 2.\n"
    );
    assert_eq!(first.out(), expected, "what can be told is told, however it came");
    assert_eq!(world.weight().await, Some(2));

    fs::write(&desired, text.replace("weight 1", "weight 7")).unwrap();
    let planned = run("plan", &desired, &["--url", &url, "--detailed-exitcode"]);
    assert_eq!(planned.code(), Some(2), "{}", planned.err());
    let out = planned.out();
    assert!(out.contains("weight: 2 → 7") && out.contains(&format!("{endpoint}: no reload.")), "{out}");
    let synced = run("sync", &desired, &["--url", &url]);
    assert_eq!(synced.code(), Some(0), "{}", synced.err());
    assert!(synced.out().contains("1 operation server by server; no reload, version 3."), "{}", synced.out());
    assert_eq!(world.weight().await, Some(7));

    let more = text.replace("weight 1", "weight 7")
        + "\nbackend more from d\n  balance source\n  server m1 127.0.0.1:8\n";
    fs::write(&desired, more).unwrap();
    let planned = run("plan", &desired, &["--url", &url, "--json"]);
    let json: Json = serde_json::from_str(&planned.out()).unwrap();
    assert_eq!((json["mode"].as_str(), json["version"].as_u64()), (Some("fine-grained"), Some(3)), "{json}");
    let reloads = json["reloads"].as_u64().unwrap();
    let synced = run("sync", &desired, &["--url", &url, "--json"]);
    let json: Json = serde_json::from_str(&synced.out()).unwrap();
    assert_eq!((json["success"].as_bool(), json["version"].as_u64()), (Some(true), Some(4)), "{json}");
    assert_eq!(u64::from(json["reload_triggered"].as_bool().unwrap()), reloads, "{json}");
    let again = run("sync", &desired, &["--url", &url]);
    assert_eq!(again.out(), format!("{endpoint}: nothing to do.\n"));
    let again = run("plan", &desired, &["--url", &url, "--detailed-exitcode"]);
    assert_eq!((again.code(), again.out()), (Some(0), format!("{endpoint}: nothing to do.\n")));
    assert_eq!(world.master().await, master);
    world.end().await;
}

#[tokio::test]
async fn files_of_a_folder_are_all_that_is_wanted_and_without_one_they_are_left_alone() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let (url, desired, maps) =
        (address(&serving), world.folder.path().join("desired.cfg"), world.folder.path().join("wanted"));
    fs::create_dir(&maps).unwrap();
    fs::write(maps.join("hosts.map"), "a.test web\n").unwrap();
    fs::write(maps.join(".hidden"), "x").unwrap();
    fs::copy(world.file(), &desired).unwrap();
    let folder = maps.display().to_string();
    let synced = run("sync", &desired, &["--url", &url, "--maps", &folder]);
    assert!(synced.out().contains("+ map hosts.map"), "{}{}", synced.out(), synced.err());
    fs::remove_file(maps.join("hosts.map")).unwrap();
    let alone = run("sync", &desired, &["--url", &url]);
    assert!(alone.out().ends_with(": nothing to do.\n"), "{}", alone.out());
    let synced = run("sync", &desired, &["--url", &url, "--maps", &folder]);
    assert!(synced.out().contains("- map hosts.map"), "{}{}", synced.out(), synced.err());
    world.end().await;
}

#[tokio::test]
async fn one_that_fails_holds_up_no_other_and_says_what_happened_without_a_password() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap().replace("weight 1", "weight 9");
    fs::write(&desired, text).unwrap();
    let url = address(&serving);
    let synced = run("sync", &desired, &["--url", "http://admin:geheim@127.0.0.1:1", "--url", &url]);
    assert_eq!(synced.code(), Some(1));
    assert!(synced.out().contains("1 operation"), "{}", synced.out());
    assert_eq!(world.weight().await, Some(9), "the other one was brought there");
    let err = synced.err();
    assert!(err.contains("http://127.0.0.1:1") && err.contains("hint:") && !err.contains("geheim"), "{err}");

    let wrong = url.replace(&serving.password, "geheim");
    let refused = run("plan", &desired, &["--url", &wrong, "--json"]);
    assert_eq!(refused.code(), Some(1));
    let json: Json = serde_json::from_str(&refused.out()).unwrap();
    assert_eq!(json["error"]["stage"], "connect", "{json}");
    assert!(!refused.out().contains("geheim") && !refused.err().contains("geheim"), "{}", refused.err());

    for (arguments, expected) in [
        (&["--url", "nonsense"][..], "nonsense"),
        (&["--url", &url, "--maps", "/nowhere"], "/nowhere"),
        (&["--url", &url, "--user", "x"], "--password-file"),
        (&[], "--url"),
    ] {
        let ran = run("sync", &desired, arguments);
        assert!(ran.code() != Some(0) && ran.err().contains(expected), "{arguments:?}: {}", ran.err());
    }
    let broken = world.folder.path().join("broken.cfg");
    fs::write(&broken, "backend b\n  server s1 \"127.0.0.1:1\n").unwrap();
    let ran = run("sync", &broken, &["--url", &url]);
    assert!(
        ran.code() == Some(1) && ran.err().contains("parse-desired") && ran.err().contains("line 2"),
        "{}",
        ran.err()
    );
    world.end().await;
}

#[tokio::test]
async fn of_several_that_fail_each_says_why() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let (url, endpoint) = (address(&serving), shown(&serving));
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap().replace("weight 1", "weight 9");
    fs::write(&desired, text).unwrap();
    let wrong = url.replace(&serving.password, "geheim");
    let dead = "http://127.0.0.1:1";
    for verb in ["plan", "sync"] {
        let ran = run(verb, &desired, &["--url", dead, "--url", &wrong, "--url", &url]);
        assert_eq!(ran.code(), Some(1));
        let err = ran.err();
        let line = |of: &str| {
            err.lines().find(|line| line.starts_with(&format!("{of}: failed: "))).unwrap_or_default()
        };
        assert!(line(dead).contains("can't be reached"), "{err}");
        assert!(line(&endpoint).contains("401"), "{err}");
        assert!(err.contains(&format!("{dead}: hint: ")) && err.contains("2 of 3 failed"), "{err}");
        assert!(!err.contains("geheim"), "{err}");
        assert!(ran.out().contains(&endpoint), "{}", ran.out());
    }
    assert_eq!(world.weight().await, Some(9), "the third one was brought there");
    world.end().await;
}

#[tokio::test]
async fn a_plan_in_a_file_is_carried_out_once_and_only_if_nothing_changed_since() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let folder = world.folder.path();
    let (url, desired, plan) = (address(&serving), folder.join("desired.cfg"), folder.join("plan.json"));
    let text = fs::read_to_string(world.file()).unwrap();
    fs::write(&desired, text.replace("weight 1", "weight 2")).unwrap();
    let file = plan.display().to_string();
    let planned = run("plan", &desired, &["--url", &url, "--out", &file]);
    assert_eq!(planned.code(), Some(0), "{}", planned.err());
    assert_eq!(fs::metadata(&plan).unwrap().permissions().mode() & 0o777, 0o600);

    // Another text, another HAProxy, and what is no plan.
    fs::write(&desired, text.replace("weight 1", "weight 3")).unwrap();
    let other = run("sync", &desired, &["--url", &url, "--plan", &file]);
    assert_eq!(other.code(), Some(1));
    assert!(other.err().contains("the configuration or its files have changed since"), "{}", other.err());
    fs::write(&desired, text.replace("weight 1", "weight 2")).unwrap();
    let files =
        run("sync", &desired, &["--url", &url, "--plan", &file, "--maps", &folder.display().to_string()]);
    assert!(files.err().contains("the configuration or its files have changed since"), "{}", files.err());
    let wrong = folder.join("wrong.json").display().to_string();
    fs::write(&wrong, "{}").unwrap();
    let no_plan = run("sync", &desired, &["--url", &url, "--plan", &wrong]);
    assert!(
        no_plan.err().contains("it is no plan that `setpoint haproxy plan --out` wrote"),
        "{}",
        no_plan.err()
    );
    let elsewhere = url.replace("127.0.0.1", "localhost");
    let elsewhere = run("sync", &desired, &["--url", &elsewhere, "--plan", &file]);
    assert!(elsewhere.err().contains("the plan is not for this one"), "{}", elsewhere.err());
    assert_eq!(serving.version().await, 1, "nothing was done");

    let synced = run("sync", &desired, &["--url", &url, "--plan", &file]);
    assert_eq!(synced.code(), Some(0), "{}", synced.err());
    assert_eq!((serving.version().await, world.weight().await), (2, Some(2)));
    let again = run("sync", &desired, &["--url", &url, "--plan", &file]);
    assert_eq!(again.code(), Some(1));
    assert!(again.err().contains("the configuration was changed since the plan was made"), "{}", again.err());

    // Where one can't be asked, there is no plan.
    let gone = folder.join("gone.json").display().to_string();
    let partly = run("plan", &desired, &["--url", &url, "--url", "http://127.0.0.1:1", "--out", &gone]);
    assert_eq!((partly.code(), Path::new(&gone).exists()), (Some(1), false));
    world.end().await;
}
