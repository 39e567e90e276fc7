//! What runs, what is written and what is good are never taken for each other.

use std::fs;
use std::time::Duration;

use serde_json::json;
use setpoint_haproxy::edit::ChildKey;
use setpoint_haproxy::model::{Object, ObjectKind};
use setpoint_instance::cli::Request;
use setpoint_instance::configuration::Configuration;
use setpoint_instance::instance::{Applied, CommitError, Event, Instance, ReloadChoice, Settings};
use setpoint_instance::runtime::ServerState;
use setpoint_testutils::{Version, need, wait};
use tokio::sync::broadcast::Receiver;

use crate::instance::{Running, backend_with, change, web, weight};
use crate::world::{WITHIN, World};

async fn tell(running: &Running, command: &'static str) {
    let told = running.instance.worker().tell(&Request::new(command)).await.unwrap();
    assert!(matches!(told, setpoint_instance::runtime::Reply::Done(_)), "{command}: {told:?}");
}

async fn state(running: &Running, name: &str) -> Option<ServerState> {
    let servers = running.instance.worker().servers(Some("web")).await.ok()??;
    servers.into_iter().find(|state| state.name == name)
}

/// Waits for drift that is told in these words.
async fn drift(events: &mut Receiver<Event>, words: &str) {
    let told = async {
        loop {
            if let Event::Drift { difference } = events.recv().await.unwrap()
                && difference.contains(words)
            {
                return;
            }
        }
    };
    let told = tokio::time::timeout(WITHIN, told).await;
    assert!(told.is_ok(), "nothing was said of {words}");
}

/// A world with a server, on which an instance runs with a changed program.
async fn with_check(version: Version, lines: &str) -> Result<Running, setpoint_testutils::Missing> {
    let world = World::new(version)?;
    world.write_backend();
    let settings = world.settings(version);
    let settings = Settings { program: world.check_with(lines), ..settings };
    Ok(Running::start_on(world, settings).await)
}

#[tokio::test]
async fn a_file_that_is_edited_while_haproxy_is_asked_is_not_overwritten() {
    let world = need!(World::new(Version::V3_4));
    world.write_backend();
    let settings = world.settings(Version::V3_4);
    let lines = format!("echo '# by hand' >> {}", world.file().display());
    let settings = Settings { program: world.check_with(&lines), ..settings };
    let running = Running::start_on(world, settings).await;
    let error = change(&running.instance, backend_with("b")).await.unwrap_err();
    assert!(matches!(error, CommitError::Stale { given: 1, current: 2 }), "{error}");
    let text = fs::read_to_string(running.world.file()).unwrap();
    assert!(text.ends_with("# by hand\n") && !text.contains("backend b\n"), "{text}");
    running.stop().await;
}

#[tokio::test]
async fn a_file_that_is_edited_during_a_reload_that_fails_is_not_overwritten() {
    let world = need!(World::new(Version::V3_4));
    world.write_backend();
    let settings = world.settings(Version::V3_4);
    let file = world.file();
    // Whatever reloads HAProxy edits the file, too.
    let script = world.folder.path().join("reload");
    let text = format!(
        "#!/bin/sh\necho '# by hand' >> {}\nkill -USR2 $(cat {})\n",
        file.display(),
        world.folder.path().join("pid").display()
    );
    fs::write(&script, text).unwrap();
    let command = vec!["sh".into(), script.into()];
    let settings = Settings { reload: setpoint_instance::reload::Method::Command(command), ..settings };
    let running = Running::start_on(world, settings).await;
    let master = setpoint_instance::reload::processes(&running.world.master()).await.unwrap().master.pid;
    fs::write(running.world.folder.path().join("pid"), master.to_string()).unwrap();
    let good = fs::read_to_string(&file).unwrap();
    let bad = format!("{good}frontend bad\n  bind 192.0.2.1:80\n");
    let error = running.instance.push(bad.as_bytes(), Some(1), ReloadChoice::Now).await.unwrap_err();
    assert!(matches!(error, CommitError::Reload(_)), "{error}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.ends_with("# by hand\n") && text.contains("frontend bad"), "{text}");
    running.stop().await;
}

#[tokio::test]
async fn a_change_that_haproxy_can_not_be_told_is_checked_before_the_reload() {
    let calls = |running: &Running| {
        fs::read_to_string(running.world.folder.path().join("calls")).unwrap_or_default().lines().count()
    };
    let world = need!(World::new(Version::V3_4));
    world.write_backend();
    let lines = format!("echo >> {}", world.folder.path().join("calls").display());
    let settings = world.settings(Version::V3_4);
    let settings =
        Settings { program: world.check_with(&lines), reload_delay: Duration::from_hours(1), ..settings };
    let running = Running::start_on(world, settings).await;
    running.settled().await;
    change(&running.instance, weight(11)).await.unwrap();
    let checked = async || running.instance.is_checked().await.then_some(());
    wait::until("the check", WITHIN, checked).await;
    // The server is gone from HAProxy, which refuses to set its weight.
    tell(&running, "set server web/s1 state maint").await;
    tell(&running, "del server web/s1").await;
    let running = running.without_tasks().await;
    let before = calls(&running);
    let done = change(&running.instance, weight(12)).await.unwrap();
    assert!(matches!(done.applied, Applied::Ordered(_)), "{done:?}");
    assert!(!running.instance.is_checked().await, "nobody has asked about it");
    running.instance.reload().await.unwrap();
    assert!(calls(&running) > before, "it is asked before a reload");
    assert_eq!(state(&running, "s1").await.unwrap().weight(), 12);
    running.stop().await;
}

#[tokio::test]
async fn what_could_not_be_checked_is_not_taken_for_good() {
    let running = need!(with_check(Version::V3_4, "[ -e \"$(dirname \"$0\")/broken\" ] && kill -9 $$").await);
    running.settled().await;
    change(&running.instance, weight(11)).await.unwrap();
    let checked = async || running.instance.is_checked().await.then_some(());
    wait::until("the check", WITHIN, checked).await;
    fs::write(running.world.folder.path().join("broken"), "").unwrap();
    let done = change(&running.instance, weight(20)).await.unwrap();
    assert_eq!(done.applied, Applied::Runtime);
    let error = running.instance.reload().await.unwrap_err();
    assert!(error.contains("was ended by"), "{error}");
    assert!(!running.instance.is_checked().await);
    assert!(running.instance.settings().folder.join("good/0").exists(), "the last good text is kept");
    fs::remove_file(running.world.folder.path().join("broken")).unwrap();
    running.instance.reload().await.unwrap();
    assert!(running.instance.is_checked().await);
    assert!(!running.instance.settings().folder.join("good").exists());
    running.stop().await;
}

#[tokio::test]
async fn a_kill_between_the_file_and_the_command_is_made_good_by_the_next_one() {
    for version in Version::ALL {
        let running = need!(Running::start(version).await);
        running.settled().await;
        change(&running.instance, weight(30)).await.unwrap();
        let checked = async || running.instance.is_checked().await.then_some(());
        wait::until("the check", WITHIN, checked).await;
        running.settled().await;
        let settings = running.world.settings(version);
        let running = running.without_tasks().await;
        let add = |configuration: &mut Configuration| {
            let json = json!({ "name": "s2", "address": "127.0.0.1", "port": 10, "weight": 5 });
            let (object, _) = Object::from_json(ObjectKind::Server, &json, configuration.context()).unwrap();
            configuration.editor(&web()).create(&web(), &object, None)
        };
        change(&running.instance, add).await.unwrap();
        change(&running.instance, weight(40)).await.unwrap();
        // What HAProxy would be if the program had been killed before it was told all of it.
        tell(&running, "set server web/s1 weight 30").await;
        tell(&running, "set server web/s2 state maint").await;
        let running = running.again(settings).await;
        let is_right = async || {
            let (s1, s2) = (state(&running, "s1").await?, state(&running, "s2").await?);
            (s1.weight() == 40 && s2.admin_state().word() == "ready").then_some(())
        };
        wait::until("HAProxy to run what the file says", WITHIN, is_right).await;
        running.settled().await;
        running.instance.reload().await.unwrap();
        assert_eq!(state(&running, "s1").await.unwrap().weight(), 40, "{version:?}");
        assert_eq!(state(&running, "s2").await.unwrap().admin_state().word(), "ready", "{version:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_hand_edit_that_haproxy_has_not_read_is_loaded_when_the_program_starts_anew() {
    let running = need!(Running::start(Version::V3_4).await);
    running.settled().await;
    change(&running.instance, weight(30)).await.unwrap();
    let text = fs::read_to_string(running.world.file()).unwrap();
    fs::write(running.world.file(), format!("{text}backend byhand\n  server h 127.0.0.1:9\n")).unwrap();
    // A change that is told says nothing about the edit.
    let done = change(&running.instance, weight(31)).await.unwrap();
    assert_eq!(done.applied, Applied::Runtime, "{done:?}");
    running.settled().await;
    let found = running.instance.differences().await.unwrap();
    assert_eq!(found, ["server byhand/h is in the configuration and does not run"]);
    let settings = running.world.settings(Version::V3_4);
    let running = running.again(settings).await;
    let is_loaded =
        async || running.instance.differences().await.is_ok_and(|found| found.is_empty()).then_some(());
    wait::until("the edit to be loaded", WITHIN, is_loaded).await;
    running.stop().await;
}

#[tokio::test]
async fn a_commit_on_a_broken_hand_edit_is_refused_and_the_edit_stays() {
    let running = need!(Running::start(Version::V3_4).await);
    running.settled().await;
    let edited = format!("{}  nonsense here\n", fs::read_to_string(running.world.file()).unwrap());
    fs::write(running.world.file(), &edited).unwrap();
    let error = change(&running.instance, weight(30)).await.unwrap_err();
    assert!(
        matches!(&error, CommitError::Refused { messages, .. } if messages.contains("nonsense")),
        "{error}"
    );
    assert_eq!(fs::read_to_string(running.world.file()).unwrap(), edited);
    assert_eq!(state(&running, "s1").await.unwrap().weight(), 10);
    running.stop().await;
}

#[tokio::test]
async fn a_reload_by_somebody_else_is_noticed_and_what_it_read_is_known() {
    for version in Version::ALL {
        let running = need!(Running::start(version).await);
        running.settled().await;
        let mut events = running.instance.events();
        let text = fs::read_to_string(running.world.file()).unwrap().replace("weight 10", "weight 12");
        fs::write(running.world.file(), text).unwrap();
        let before = running.worker().await;
        // The clock of processes is a coarse one.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let method = setpoint_instance::reload::Method::Signal;
        setpoint_instance::reload::reload(&running.world.master(), &method, WITHIN).await.unwrap();
        drift(&mut events, "somebody else has reloaded").await;
        assert_ne!(running.worker().await, before, "{version:?}");
        running.settled().await;
        // What is told now builds on what was read.
        let done = change(&running.instance, weight(13)).await.unwrap();
        assert_eq!(done.applied, Applied::Runtime, "{version:?}: {done:?}");
        running.settled().await;
        assert!(running.instance.differences().await.unwrap().is_empty(), "{version:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn what_differs_after_a_reload_is_said() {
    let world = need!(World::new(Version::V3_4));
    world.write_backend();
    // HAProxy takes states of servers from a file, which nobody here knows of.
    let states = world.folder.path().join("states");
    let text = fs::read_to_string(world.file()).unwrap();
    let text = text.replace("global\n", &format!("global\n  server-state-file {}\n", states.display()));
    let text =
        text.replace("backend web # the shop\n", "backend web\n  load-server-state-from-file global\n");
    fs::write(world.file(), text).unwrap();
    let settings = world.settings(Version::V3_4);
    let running = Running::start_on(world, settings).await;
    running.settled().await;
    let state = running.instance.worker().ask(&Request::new("show servers state")).await.unwrap();
    let setpoint_instance::runtime::Reply::Done(table) = state else { panic!("{state:?}") };
    // Its weight is another one in that file.
    fs::write(&states, table.replace(" 10 10 ", " 7 10 ")).unwrap();
    let mut events = running.instance.events();
    running.instance.reload().await.unwrap();
    drift(&mut events, "server web/s1 has weight 7 and not 10").await;
    running.stop().await;
}

#[tokio::test]
async fn what_an_operator_set_against_the_configuration_survives_a_reload() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let text = format!(
            "{}backend web\n  server s1 127.0.0.1:9 weight 10\n  server s2 127.0.0.1:9 disabled\n",
            world.text("one")
        );
        fs::write(world.file(), text).unwrap();
        let settings = world.settings(version);
        let running = Running::start_on(world, settings).await;
        running.settled().await;
        let told = change(&running.instance, weight(20)).await.unwrap();
        assert_eq!(told.applied, Applied::Runtime, "{version:?}");
        // Back to what HAProxy was started with, and against what the configuration says.
        tell(&running, "set server web/s1 weight 10").await;
        tell(&running, "set server web/s2 state ready").await;
        running.instance.reload().await.unwrap();
        assert_eq!(state(&running, "s1").await.unwrap().weight(), 10, "{version:?}");
        assert_eq!(state(&running, "s2").await.unwrap().admin_state().word(), "ready", "{version:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn what_servers_inherit_is_no_difference_and_no_decision_of_an_operator() {
    for version in Version::ALL {
        for is_in_defaults in [false, true] {
            let what = format!("{version:?}, in defaults: {is_in_defaults}");
            let world = need!(World::new(version));
            let line = "  default-server disabled weight 5\n";
            let (own, theirs) = if is_in_defaults { ("", line) } else { (line, "") };
            let text = format!(
                "{}backend web\n{own}  server s1 127.0.0.1:9\n  server s2 127.0.0.1:9 weight 9 enabled\n",
                world.text("one").replace("defaults\n", &format!("defaults\n{theirs}"))
            );
            fs::write(world.file(), &text).unwrap();
            let settings = world.settings(version);
            let running = Running::start_on(world, settings).await;
            running.settled().await;
            assert_eq!(running.instance.differences().await.unwrap(), [""; 0], "{what}");
            tell(&running, "set server web/s1 state ready").await;
            tell(&running, "set server web/s1 weight 3").await;
            tell(&running, "set server web/s2 weight 4").await;
            running.instance.reload().await.unwrap();
            let found = running.instance.differences().await.unwrap();
            let differ = ["server web/s1 has weight 3 and not 5", "server web/s2 has weight 4 and not 9"];
            assert_eq!(found, differ, "{what}");
            assert_eq!(state(&running, "s1").await.unwrap().admin_state().word(), "ready", "{what}");
            // Who changes what is inherited has decided, too.
            let text = text.replace("disabled weight 5", "disabled weight 6");
            running.instance.push(text.as_bytes(), Some(1), ReloadChoice::Now).await.unwrap();
            let s1 = state(&running, "s1").await.unwrap();
            assert_eq!((s1.weight(), s1.admin_state().word()), (6, "ready"), "{what}");
            running.stop().await;
        }
    }
}

#[tokio::test]
async fn a_weight_that_is_taken_away_is_that_of_the_default() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let text = format!(
            "{}backend web\n  default-server weight 50\n  server s1 127.0.0.1:9 weight 10\n",
            world.text("one")
        );
        fs::write(world.file(), text).unwrap();
        let settings = world.settings(version);
        let running = Running::start_on(world, settings).await;
        let without = |configuration: &mut Configuration| {
            let json = json!({ "name": "s1", "address": "127.0.0.1", "port": 9 });
            let (object, _) = Object::from_json(ObjectKind::Server, &json, configuration.context()).unwrap();
            configuration.editor(&web()).replace(&web(), &ChildKey::Name("s1".into()), &object)
        };
        change(&running.instance, without).await.unwrap();
        running.settled().await;
        assert_eq!(state(&running, "s1").await.unwrap().weight(), 50, "{version:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn through_a_link_nobody_else_gets_the_same_configuration() {
    let world = need!(World::new(Version::V3_4));
    let first = Instance::open(world.settings(Version::V3_4)).unwrap();
    let link = world.folder.path().join("link.cfg");
    std::os::unix::fs::symlink(world.file(), &link).unwrap();
    let settings = world.settings(Version::V3_4);
    let through_link = || Settings {
        master_socket: settings.master_socket.clone(),
        ..Settings::new(&settings.program, &link, settings.context.haproxy)
    };
    let error = Instance::open(through_link()).unwrap_err();
    assert!(error.to_string().contains("process"), "{error}");
    // Nor as the second file of another configuration.
    let other = world.folder.path().join("other.cfg");
    fs::write(&other, "global\n").unwrap();
    let several = Settings {
        files: vec![other.clone(), link.clone()],
        ..Settings::new(&settings.program, &other, settings.context.haproxy)
    };
    let error = Instance::open(several).unwrap_err();
    assert!(error.to_string().contains("process"), "{error}");
    drop(first);
    Instance::open(through_link()).unwrap();
}

#[tokio::test]
async fn a_transaction_that_is_being_committed_takes_no_change_that_would_be_lost() {
    let world = need!(World::new(Version::V3_4));
    world.write_backend();
    let (asked, answer) = (world.folder.path().join("asked"), world.folder.path().join("answer"));
    let lines =
        format!("touch {}; while [ ! -e {} ]; do sleep 0.05; done", asked.display(), answer.display());
    let settings = Settings { program: world.check_with(&lines), ..world.settings(Version::V3_4) };
    let running = Running::start_on(world, settings).await;
    let transaction = running.instance.begin(1).unwrap();
    running.instance.in_transaction(&transaction.id, backend_with("early")).unwrap().unwrap();
    let commit = tokio::spawn({
        let (instance, id) = (running.instance.clone(), transaction.id.clone());
        async move { instance.commit(&id, ReloadChoice::Delayed).await }
    });
    wait::until("HAProxy to be asked", WITHIN, async || asked.exists().then_some(())).await;
    assert!(running.instance.in_transaction(&transaction.id, backend_with("late")).is_none());
    fs::write(answer, "").unwrap();
    commit.await.unwrap().unwrap();
    let text = fs::read_to_string(running.world.file()).unwrap();
    assert!(text.contains("backend early") && !text.contains("backend late"), "{text}");
    running.stop().await;
}
