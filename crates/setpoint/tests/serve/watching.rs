//! `setpoint haproxy watch` as a person runs it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use setpoint_testutils::wait::LIMIT;
use setpoint_testutils::{Port, Proxy, Version, http, need, wait};

use crate::World;
use crate::sync::address;

/// A command that watches; what it says is in a file.
struct Watching {
    child: Child,
    out: PathBuf,
}

impl Watching {
    fn start(world: &World, desired: &Path, more: &[&str]) -> Self {
        let (program, file) = (world.program.display().to_string(), world.file().display().to_string());
        let local = ["--local", "--haproxy", program.as_str(), "--config", file.as_str()];
        Self::start_at(world, &local, desired, more)
    }

    fn start_at(world: &World, place: &[&str], desired: &Path, more: &[&str]) -> Self {
        let out = world.folder.path().join("watch.out");
        let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
        command.args(["haproxy", "watch"]).arg(desired).arg("--json").args(place);
        command.args(["--timeout", "300", "--reload-timeout", "300"]).args(more);
        let child = command.stdout(fs::File::create(&out).unwrap()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, out }
    }

    /// All that happened, in order.
    fn events(&self) -> Vec<Json> {
        let text = fs::read_to_string(&self.out).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits until so many events of a kind have happened, and returns the last.
    async fn event(&self, kind: &str, count: usize) -> Json {
        let found = async || self.events().into_iter().filter(|event| event["event"] == *kind).nth(count - 1);
        wait::until(kind, LIMIT, found).await
    }

    fn terminate(mut self) -> Option<i32> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn what_changes_is_brought_there_and_what_somebody_else_changes_is_put_right() {
    let world = need!(World::new(Version::V3_4));
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap();
    fs::write(&desired, text.replace("weight 1", "weight 2")).unwrap();
    let watching = Watching::start(&world, &desired, &["--interval", "1"]);
    let synced = watching.event("synced", 1).await;
    assert_eq!(synced["operations"], json!(["~ backend web: server s1"]), "{synced}");
    wait::until("the weight", LIMIT, async || (world.weight().await == Some(2)).then_some(())).await;

    // What is being written, or was emptied by mistake, is no configuration.
    fs::write(&desired, "").unwrap();
    let wrong = watching.event("wrong", 1).await;
    assert!(wrong["message"].as_str().unwrap().contains("has no section"), "{wrong}");
    fs::write(&desired, text.replace("weight 1", "weight 3")).unwrap();
    watching.event("synced", 2).await;
    wait::until("the weight", LIMIT, async || (world.weight().await == Some(3)).then_some(())).await;

    // Somebody else edits the file.
    let there = fs::read_to_string(world.file()).unwrap();
    fs::write(world.file(), there.replace("weight 3", "weight 9")).unwrap();
    watching.event("synced", 3).await;
    assert!(fs::read_to_string(world.file()).unwrap().contains("weight 3"));

    // What HAProxy refuses is said once, and what was there goes on.
    fs::write(&desired, text.replace("mode http", "mode nonsense")).unwrap();
    let failed = watching.event("failed", 1).await;
    assert!(failed["error"]["message"].as_str().unwrap().contains("nonsense"), "{failed}");
    fs::write(&desired, text.replace("weight 1", "weight 3")).unwrap();
    watching.event("as-desired", 1).await;
    assert_eq!(watching.events().iter().filter(|event| event["event"] == "failed").count(), 1);
    assert_eq!(world.weight().await, Some(3));
    assert_eq!(watching.terminate(), Some(0));
    world.end().await;
}

#[tokio::test]
async fn whether_it_works_or_fails_is_seen_at_its_endpoints_and_at_those_of_the_api() {
    let world = need!(World::new(Version::V3_4));
    let ports = [Port::lease(), Port::lease()];
    let observe = ports.each_ref().map(|port| format!("--observe={}", port.address()));
    let serving = world.serve_with(|command| command.args(["--reload-delay", "0.02", &observe[0]]));
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap();
    fs::write(&desired, &text).unwrap();
    let place = ["--url", &address(&serving)];
    let watching = Watching::start_at(&world, &place, &desired, &["--interval", "1", &observe[1]]);
    for port in &ports {
        let works =
            async || http::get(&format!("{}/readyz", port.http())).await.filter(|it| it == "working\n");
        wait::until("it works", LIMIT, works).await;
        assert_eq!(http::get(&format!("{}/healthz", port.http())).await.as_deref(), Some("ok\n"));
    }
    fs::write(&desired, "").unwrap();
    watching.event("wrong", 1).await;
    let state = format!("{}/debug/state", ports[1].http());
    let fails = async || {
        let state: Json = serde_json::from_str(&http::get(&state).await?).ok()?;
        (state["role"] == "failing").then(|| state["reason"].as_str().unwrap().to_owned())
    };
    let reason = wait::until("it fails", LIMIT, fails).await;
    assert!(reason.contains("has no section"), "{reason}");
    assert_eq!(watching.terminate(), Some(0));
    drop(serving);
    world.end().await;
}

#[tokio::test]
async fn whoever_watches_keeps_the_connections_to_an_api() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let host = serving.url.trim_start_matches("http://").trim_end_matches("/v3").to_owned();
    let proxy = Proxy::start(host.parse().unwrap()).await;
    let url = address(&serving).replace(&host, &proxy.address().to_string());
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap();
    fs::write(&desired, &text).unwrap();
    let watching = Watching::start_at(&world, &["--url", &url], &desired, &["--interval", "1"]);
    for weight in 2..6 {
        fs::write(&desired, text.replace("weight 1", &format!("weight {weight}"))).unwrap();
        watching.event("synced", weight - 1).await;
    }
    assert_eq!(proxy.connections(), 1, "four passes and more, one after the other");
    // Whoever was gone is connected to again.
    proxy.cut();
    fs::write(&desired, text.replace("weight 1", "weight 7")).unwrap();
    watching.event("failed", 1).await;
    proxy.heal();
    watching.event("synced", 5).await;
    assert_eq!(watching.terminate(), Some(0));
    world.end().await;
}

#[tokio::test]
async fn who_only_reports_changes_nothing_and_says_each_difference_once() {
    let world = need!(World::new(Version::V3_4));
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap();
    fs::write(&desired, text.replace("weight 1", "weight 2")).unwrap();
    let watching = Watching::start(&world, &desired, &["--interval", "1", "--report-only"]);
    let differs = watching.event("differs", 1).await;
    assert_eq!(differs["reloads"], 0, "{differs}");
    fs::write(&desired, &text).unwrap();
    watching.event("as-desired", 1).await;
    fs::write(&desired, text.replace("string served", "string anew")).unwrap();
    let differs = watching.event("differs", 2).await;
    assert_eq!(differs["reloads"], 1, "{differs}");
    assert_eq!(fs::read_to_string(world.file()).unwrap(), text);
    assert_eq!(watching.terminate(), Some(0));
}

/// What somebody writes for longer than the interval is not read halfway.
#[tokio::test]
async fn what_is_still_being_written_is_not_brought_there_however_often_it_is_looked() {
    // What is left alone for half a second counts as written.
    const OFTEN_ENOUGH: Duration = Duration::from_millis(400);
    for attempt in 1.. {
        let world = need!(World::new(Version::V3_4));
        let desired = world.folder.path().join("desired.cfg");
        let text = fs::read_to_string(world.file()).unwrap();
        fs::write(&desired, text.replace("weight 1", "weight 2")).unwrap();
        let watching = Watching::start(&world, &desired, &["--interval", "1"]);
        watching.event("synced", 1).await;
        // Each time another part of it is there, and what HAProxy would take.
        let (mut written, mut was_quick) = (Instant::now(), true);
        for round in 0..40 {
            fs::write(&desired, format!("{}# {round}\n", text.replace("weight 1", "weight 99"))).unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            was_quick &= written.elapsed() < OFTEN_ENOUGH;
            written = Instant::now();
        }
        fs::write(&desired, text.replace("weight 1", "weight 3")).unwrap();
        was_quick &= written.elapsed() < OFTEN_ENOUGH;
        wait::until("the weight", LIMIT, async || (world.weight().await == Some(3)).then_some(())).await;
        if was_quick {
            let synced = watching.event("synced", 2).await;
            let told = synced["version"].as_u64().unwrap();
            assert_eq!(told, 3, "nothing came between: {:?}", watching.events());
        }
        assert_eq!(watching.terminate(), Some(0));
        world.end().await;
        if was_quick {
            break;
        }
        // The machine was too slow to write it again within that: it is tried again.
        assert!(attempt < 20, "the machine was never quick enough");
    }
}

#[tokio::test]
async fn one_that_never_answers_holds_up_no_other() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let url = address(&serving);
    // It accepts, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = format!("http://{}", silent.local_addr().unwrap());
    let desired = world.folder.path().join("desired.cfg");
    let text = fs::read_to_string(world.file()).unwrap();
    let place = ["--url", &dead, "--url", &url];
    fs::write(&desired, text.replace("weight 1", "weight 2")).unwrap();
    let watching = Watching::start_at(&world, &place, &desired, &["--interval", "1"]);
    for (count, weight) in [(1, 2), (2, 3)] {
        fs::write(&desired, text.replace("weight 1", &format!("weight {weight}"))).unwrap();
        watching.event("synced", count).await;
        assert_eq!(world.weight().await, Some(weight));
    }
    assert_eq!(watching.terminate(), Some(0));
    world.end().await;
}
