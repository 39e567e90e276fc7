//! What `setpoint haproxy serve` is given: files of settings, and what it refuses.

use std::fs;
use std::process::Command;

use serde_json::json;
use setpoint_testutils::wait::LIMIT;
use setpoint_testutils::{Version, Workdir, http, need, wait};

use crate::{Serving, World, refused};

#[tokio::test]
async fn a_settings_file_of_the_original_is_read_as_it_is() {
    let world = need!(World::new(Version::V3_4));
    let (maps, settings) = (world.folder.path().join("m"), world.folder.path().join("dataplaneapi.yml"));
    let text = format!(
        "config_version: 2\nname: famous\ndataplaneapi:\n  scheme: [http]\n  host: 127.0.0.1\n  port: 0\n  \
         user:\n  - {{name: alice, insecure: true, password: wonderland}}\n  resources: {{maps_dir: {}}}\n\
         haproxy:\n  config_file: {}\n  haproxy_bin: {}\n  reload: {{reload_delay: 1, restart_cmd: none}}\n",
        maps.display(),
        world.file().display(),
        world.program.display()
    );
    fs::write(&settings, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
    let serving = Serving::start(command.args(["haproxy", "serve", "-f"]).arg(&settings));
    let said = serving.log.lock().unwrap().join("\n");
    for name in ["name", "haproxy.reload.restart_cmd"] {
        assert!(said.contains(&format!("dataplaneapi.yml: {name} has no meaning here")), "{said}");
    }
    let url = format!("{}/services/haproxy/storage/maps", serving.url);
    let form = reqwest::multipart::Form::new();
    let form = form.part("file_upload", reqwest::multipart::Part::text("a b\n").file_name("a.map"));
    let made = http::client().post(url).basic_auth("alice", Some("wonderland")).multipart(form).send().await;
    assert_eq!(made.unwrap().status(), 201);
    assert_eq!(fs::read_to_string(maps.join("a.map")).unwrap(), "a b\n");
    // The log holds no passwords.
    assert!(!serving.log.lock().unwrap().join("\n").contains("wonderland"));
    drop(serving);
    world.end().await;
}

#[tokio::test]
async fn a_settings_file_of_the_original_that_names_a_command_and_no_socket_is_enough() {
    for version in [Version::V2_6, Version::V3_4] {
        let world = need!(World::new(version));
        let settings = world.folder.path().join("dataplaneapi.yml");
        let mut haproxy = Command::new(&world.program).arg("-W").arg("-f").arg(world.file()).spawn().unwrap();
        wait::until("it to serve", LIMIT, async || http::get(&world.port.http()).await).await;
        // `kill` is a word of every shell, and no program of every machine.
        let reload = world.folder.path().join("reload");
        fs::write(&reload, format!("kill -USR2 {}\n", haproxy.id())).unwrap();
        let text = format!(
            "config_version: 2\ndataplaneapi:\n  scheme: [http]\n  host: 127.0.0.1\n  port: 0\n  \
             user:\n  - {{name: admin, insecure: true, password: wonderland}}\n\
             haproxy:\n  config_file: {}\n  haproxy_bin: {}\n  \
             reload: {{reload_delay: 1, reload_cmd: sh {}, reload_strategy: custom}}\n",
            world.file().display(),
            world.program.display(),
            reload.display()
        );
        fs::write(&settings, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
        let mut serving = Serving::start(command.args(["haproxy", "serve", "-f"]).arg(&settings));
        "wonderland".clone_into(&mut serving.password);
        let said = serving.log.lock().unwrap().join("\n");
        assert!(said.contains(&format!("HAProxy runs as process {}", haproxy.id())), "{version:?}: {said}");
        assert_eq!(serving.weigh(1, 7).await.unwrap().0, 200, "{version:?}");
        let new = json!({ "name": "b" });
        let path = "configuration/backends?version=2&force_reload=true";
        let made = serving.ask("POST", path, Some(&new)).await.unwrap();
        assert_eq!(made.0, 201, "{version:?}: {made:?}: {}", serving.log.lock().unwrap().join("\n"));
        let worker = setpoint_instance::runtime::Worker::at(world.folder.path().join("run.sock"));
        assert!(worker.servers(Some("b")).await.unwrap().is_some(), "{version:?}");
        assert_eq!(world.weight().await, Some(7), "{version:?}");
        drop(serving);
        haproxy.kill().unwrap();
        haproxy.wait().unwrap();
    }
}

#[tokio::test]
async fn where_a_command_reloads_haproxy_none_is_started_and_one_that_comes_is_found() {
    let world = need!(World::new(Version::V3_4));
    let reload = format!("sh {}", world.folder.path().join("reload").display());
    let serving =
        world.serve_with(|command| command.args(["--reload-delay", "0.02", "--reload-command"]).arg(&reload));
    let said = serving.log.lock().unwrap().join("\n");
    assert!(said.contains("no HAProxy runs with") && said.contains("haproxy.cfg"), "{said}");
    assert_eq!(http::get(&world.port.http()).await, None);
    assert_eq!(serving.weigh(1, 7).await.unwrap().0, 202);
    let mut haproxy = Command::new(&world.program).arg("-W").arg("-f").arg(world.file()).spawn().unwrap();
    wait::until("it to serve", LIMIT, async || http::get(&world.port.http()).await).await;
    // Not before: the signal ends a HAProxy that is still starting.
    fs::write(world.folder.path().join("reload"), format!("kill -USR2 {}\n", haproxy.id())).unwrap();
    let weighed = async || (serving.weigh(serving.version().await, 8).await?.0 == 200).then_some(());
    wait::until("a change to be told", LIMIT, weighed).await;
    let weighs = async || (world.weight().await == Some(8)).then_some(());
    wait::until("HAProxy to run what the file says", LIMIT, weighs).await;
    drop(serving);
    haproxy.kill().unwrap();
    haproxy.wait().unwrap();
}

#[tokio::test]
async fn settings_that_can_not_be_used_are_refused_with_their_place() {
    let folder = Workdir::new("settings");
    let path = folder.path().join("settings.yaml");
    let refused = |text: &str| {
        fs::write(&path, text).unwrap();
        let ran = Command::new(env!("CARGO_BIN_EXE_setpoint"))
            .args(["haproxy", "serve", "--settings"])
            .arg(&path)
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(1), "{text}");
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    for (text, said) in [
        ("config: [a.cfg]\nreload-dely: 1\n", "reload-dely"),
        ("config: [a.cfg\n", "settings.yaml"),
        ("config: a.cfg\nreload-dely: 1\n", "settings.yaml:2:1"),
        ("strict: true\n", "--config"),
        ("config: [a.cfg]\ntls-listen: 127.0.0.1:0\n", "tls-certificate"),
        ("config: 5\n", "a path or a list of paths"),
        ("config: [a.cfg]\ndialect: '9.9'\n", "9.9"),
        ("dataplaneapi: {port: many}\n", "dataplaneapi.port"),
    ] {
        let error = refused(text);
        assert!(error.contains(said), "{text}: {error}");
        assert!(!error.contains("<input>"), "{text}: {error}");
    }
}

#[tokio::test]
async fn a_configuration_that_haproxy_refuses_is_named_at_the_start_with_its_lines() {
    for version in [Version::V2_6, Version::V3_4] {
        let world = need!(World::new(version));
        let (good, file) = (fs::read_to_string(world.file()).unwrap(), world.file());
        let broken = format!("{good}  nonsense here\n");
        fs::write(&file, &broken).unwrap();
        let arguments =
            ["--haproxy".as_ref(), world.program.as_os_str(), "--config".as_ref(), file.as_os_str()];
        let said = refused(&arguments);
        let place = format!("{}:{}: unknown keyword 'nonsense'", file.display(), broken.lines().count());
        for part in ["HAProxy refuses the configuration", &place, "setpoint haproxy check"] {
            assert!(said.contains(part), "{version:?}: {part} in {said}");
        }
        // One that runs already is used all the same, with a warning.
        fs::write(&file, &good).unwrap();
        drop(world.serve());
        fs::write(&file, &broken).unwrap();
        let serving = world.serve();
        let said = serving.log.lock().unwrap().join("\n");
        assert!(said.contains(&place) && said.contains("no change can be made"), "{version:?}: {said}");
        assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("served"), "{version:?}");
        drop(serving);
        world.end().await;
    }
}

#[tokio::test]
async fn what_is_named_wrongly_is_refused_with_what_to_do() {
    let world = need!(World::new(Version::V3_4));
    let (program, file) = (world.program.as_os_str(), world.file());
    let with = |more: [&str; 2]| {
        let own = ["--haproxy".as_ref(), program, "--config".as_ref(), file.as_os_str()];
        refused(&own.into_iter().chain(more.map(std::ffi::OsStr::new)).collect::<Vec<_>>())
    };
    let own = file.to_str().unwrap();
    let said = with(["--maps", own]);
    assert!(said.contains("maps: ") && said.contains("is no folder"), "{said}");
    let said = with(["--tls-key", own]);
    assert!(said.contains("tls-key: a key is given") && said.contains("tls-listen"), "{said}");
    let said = with(["--client-ca", own]);
    assert!(said.contains("client-ca: an authority of clients is given"), "{said}");
    // A program that may not be run is there.
    let arguments = ["--config".as_ref(), file.as_os_str(), "--haproxy".as_ref(), file.as_os_str()];
    let said = refused(&arguments);
    assert!(said.contains("Permission denied") && said.contains("chmod"), "{said}");
    assert!(!said.contains("install"), "{said}");
    // A socket of a worker is no master's.
    drop(world.serve());
    let socket = world.folder.path().join("run.sock");
    let said = with(["--master-socket", socket.to_str().unwrap()]);
    assert!(said.contains("is no master") && said.contains("stats socket"), "{said}");
    world.end().await;
}
