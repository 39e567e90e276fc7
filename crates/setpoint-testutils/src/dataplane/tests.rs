//! The Dataplane API is configured, waited for and ended; a stand-in takes its place where there is none.

use super::*;
use crate::manifest::PartState;
use crate::need;
use std::os::unix::fs::PermissionsExt;

const NEWEST: Version = Version::V3_4;

/// Writes a program that is called like the real one.
fn stand_in(folder: &Workdir, script: &str) -> DataplaneProgram {
    let path = folder.write("dataplaneapi", format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    DataplaneProgram { version: "3.4.2".into(), path }
}

async fn haproxy(version: Version) -> Result<Haproxy, Missing> {
    let configuration = |port: &Port| format!("frontend main\n  bind {}\n", port.address());
    Haproxy::start_with_one_file(version, configuration).await
}

#[tokio::test]
async fn the_configuration_names_haproxys_files_and_folders_that_are_there() {
    let haproxy = need!(haproxy(NEWEST).await);
    let (folder, port) = (Workdir::new("dataplaneapi"), Port::lease());
    prepare(&folder, &port, &haproxy);
    let text = std::fs::read_to_string(folder.path().join("dataplaneapi.yaml")).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();

    assert_eq!(written["config_version"], 2);
    assert_eq!(written["dataplaneapi"]["host"], "127.0.0.1");
    assert_eq!(written["dataplaneapi"]["port"], port.number());
    assert_eq!(written["haproxy"]["haproxy_bin"], json!(haproxy.program()));
    assert_eq!(written["haproxy"]["master_runtime"], json!(haproxy.master_socket()));
    assert_eq!(written["haproxy"]["master_worker_mode"], true);
    for command in ["reload_cmd", "restart_cmd"] {
        assert_eq!(written["haproxy"]["reload"][command], "/bin/sh reload.sh");
    }
    for (section, key, name) in FOLDERS {
        assert_eq!(written["dataplaneapi"][section][key], json!(folder.path().join(name)));
        assert!(folder.path().join(name).is_dir(), "{name}");
    }
    let users = written["dataplaneapi"]["userlist"]["userlist_file"].as_str().unwrap();
    let users = std::fs::read_to_string(users).unwrap();
    assert!(users.contains("user admin insecure-password adminpwd"), "{users}");

    // The API hands this one file to HAProxy for a check, without any other.
    let file = written["haproxy"]["config_file"].as_str().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(&haproxy.runtime_socket().display().to_string()), "{text}");
    let check = haproxy.would_accept(&text);
    assert!(check.accepted, "{}", check.output);
}

async fn the_reload_command_reloads(version: Version) {
    let mut haproxy = need!(haproxy(version).await);
    haproxy.restart().await;
    let folder = Workdir::new("dataplaneapi");
    prepare(&folder, &Port::lease(), &haproxy);
    let reloaded =
        Command::new("/bin/sh").arg("reload.sh").current_dir(folder.path()).status().unwrap().success();
    assert!(reloaded);
    wait::until("a reload", wait::LIMIT, async || (haproxy.reloads().await == 1).then_some(())).await;
}

#[tokio::test]
async fn the_reload_command_reloads_the_oldest_haproxy() {
    the_reload_command_reloads(Version::V2_6).await;
}

#[tokio::test]
async fn the_reload_command_reloads_the_newest_haproxy() {
    the_reload_command_reloads(NEWEST).await;
}

/// What the test would be told when the wait is over.
async fn last_words(dataplane: Dataplane, limit: Duration) -> String {
    let waiting = async move {
        let task = tokio::task::spawn_local(async move { dataplane.ready(limit).await });
        task.await.unwrap_err().into_panic()
    };
    let panic = tokio::task::LocalSet::new().run_until(waiting).await;
    *panic.downcast::<String>().unwrap()
}

#[tokio::test]
async fn one_that_never_answers_is_given_up_with_its_log() {
    let folder = Workdir::new("stand-in");
    let program = stand_in(&folder, "echo listening to nobody; exec sleep 600");
    let dataplane = Dataplane::launched(program, need!(haproxy(NEWEST).await), Workdir::new("dataplaneapi"));
    let words = last_words(dataplane, Duration::from_secs(2)).await;
    assert!(words.starts_with("dataplaneapi: waited 2s in vain until it answers GET /v3/info"), "{words}");
    assert!(words.ends_with("listening to nobody\n"), "{words}");
}

#[tokio::test]
async fn one_that_ends_at_once_is_not_waited_for() {
    let folder = Workdir::new("stand-in");
    let program = stand_in(&folder, "echo configuration error: no such key >&2; exit 1");
    let dataplane = Dataplane::launched(program, need!(haproxy(NEWEST).await), Workdir::new("dataplaneapi"));
    let words = last_words(dataplane, wait::LIMIT).await;
    assert!(words.contains("it ended: exit status: 1"), "{words}");
    assert!(words.ends_with("configuration error: no such key\n"), "{words}");
}

#[test]
fn each_version_that_was_found_is_a_program_with_the_haproxy_that_fits() {
    let part = |version: Option<&str>| PartStatus {
        name: "dataplaneapi".into(),
        version: version.map(str::to_owned),
        state: PartState::Ready,
        path: Some("/opt/dataplaneapi".into()),
        why: None,
        optional: true,
    };
    let versions = ["3.0.23", "3.1.14", "3.2.15", "3.3.7", "3.4.2", "3.5.0"];
    let parts = versions.into_iter().map(Some).chain([None]).map(part).collect();
    let programs = programs_of(parts);
    assert_eq!(programs.iter().map(|program| program.version.as_str()).collect::<Vec<_>>(), versions);
    let with: Vec<_> = programs.iter().map(DataplaneProgram::haproxy).collect();
    let fitting = [Version::V3_0, Version::V3_2, Version::V3_2, Version::V3_2, Version::V3_4, Version::V3_4];
    assert_eq!(with, fitting);
}
