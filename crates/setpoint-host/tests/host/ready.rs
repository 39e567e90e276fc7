//! Processes that say when they are ready: what comes after them waits.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use setpoint_host::{Process, Readiness};
use setpoint_testutils::Port;

use crate::processes::{is_alive, pids, soon};
use crate::world::{ALL, World, runtime};

/// What tells the process of a test where to listen.
const LISTEN: &str = "SETPOINT_TEST_LISTEN";

/// A process that does something once the file `go` is there, and a file that comes after it.
fn declared(then: &str, ready: &str) -> String {
    format!(
        "files: {{after: {{content: x, after: [process.p]}}}}
processes:
  p:
    command: 'echo $$ >> pids; until test -e go; do sleep 0.01; done; {then}; exec sleep 600'
    log: p.log
    adopt: true
    ready: {ready}
"
    )
}

/// Applies a manifest, and lets the process get ready once it has been started.
fn apply_and_let(world: &mut World, yaml: &str, get_ready: impl FnOnce(&Path) + Send) -> Vec<String> {
    let root = world.root();
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            soon("the process is started", || root.join("pids").exists());
            // Long enough for what does not wait.
            let until = Instant::now() + Duration::from_millis(300);
            while Instant::now() < until {
                assert!(!root.join("after").exists(), "it did not wait for the process");
                std::thread::sleep(Duration::from_millis(10));
            }
            get_ready(&root);
        });
        let log = world.apply(yaml);
        other.join().unwrap();
        log
    })
}

#[track_caller]
fn waits_for(then: &str, ready: &str) {
    let mut world = World::new();
    // A line of an earlier process.
    fs::write(world.path("p.log"), "listening\n").unwrap();
    let log =
        apply_and_let(&mut world, &declared(then, ready), |root| fs::write(root.join("go"), "").unwrap());
    assert_eq!(log, ["create file/p:log", "create process/p", "create file/after"], "{ready}");
    world.destroy();
}

#[test]
fn what_comes_after_a_process_waits_for_the_file_that_it_makes() {
    waits_for("touch made", "{file: made}");
}

#[test]
fn what_comes_after_a_process_waits_until_a_command_succeeds() {
    waits_for("touch made", "{command: test -e made}");
    waits_for("touch made", "{command: [test, -e, made], timeout: 5m}");
}

#[test]
fn what_comes_after_a_process_waits_for_a_line_of_its_log() {
    waits_for("echo now listening on port 80", "{log: listening}");
}

#[test]
fn what_comes_after_a_process_waits_until_its_port_accepts_connections() {
    for host in ["", "localhost:"] {
        let mut world = World::new();
        let free = Port::lease();
        let mut listener = None;
        let yaml = declared("true", &format!("{{port: '{host}{}'}}", free.number()));
        let log = apply_and_let(&mut world, &yaml, |root| {
            listener = Some(TcpListener::bind(free.address()).unwrap());
            fs::write(root.join("go"), "").unwrap();
        });
        assert_eq!(log, ["create file/p:log", "create process/p", "create file/after"]);
        world.destroy();
    }
}

#[test]
fn a_process_that_is_not_ready_in_time_is_ended_and_a_failure_with_its_last_words() {
    for (ready, missing) in [
        ("file: never", "never is not there"),
        ("command: 'false'", "`false` does not succeed"),
        ("command: sleep 600", "`sleep 600` does not succeed"),
        ("log: listening", "no line of its log contains \"listening\""),
        ("port: 1", "nothing accepts connections on 127.0.0.1:1"),
    ] {
        // On a busy machine it takes longer until the shell has come as far as its last words.
        let times = ["300ms", "3s", "30s"];
        let tried = times.into_iter().find(|time| is_ended_when_not_ready(ready, time, missing));
        assert!(tried.is_some(), "{ready}: it never said anything");
    }
}

/// Applies a process that is never ready. Returns whether it had said its last words in time.
fn is_ended_when_not_ready(ready: &str, time: &str, missing: &str) -> bool {
    let mut world = World::new();
    let yaml = declared("true", &format!("{{{ready}, timeout: {time}}}"));
    let log = world.apply(&yaml.replace("until", "echo loading; until"));
    if !fs::read_to_string(world.path("p.log")).unwrap().contains("loading\n") {
        return false;
    }
    let wanted =
        format!("create process/p, failed: it was not ready within {time}: {missing}; it was ended: loading");
    assert_eq!(log, ["create file/p:log".to_owned(), wanted]);
    let pids = fs::read_to_string(world.path("pids")).unwrap();
    let last = pids.lines().last().unwrap().parse().unwrap();
    assert!(!is_alive(rustix::process::Pid::from_raw(last).unwrap()), "{ready}");
    assert!(!world.path("after").exists());
    true
}

#[test]
fn a_process_is_not_ready_because_somebody_else_has_its_port() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut world = World::new();
    let yaml = format!("processes: {{p: {{command: touch begun && sleep 600, ready: {{port: {port}}}}}}}\n");
    let log = world.apply(&yaml);
    assert!(
        log.iter().any(|line| line.contains("something else accepts connections on the port of its `ready`")),
        "{log:?}"
    );
    assert_eq!(world.tree(), [""; 0], "it was not started");
    drop(taken);
    world.destroy();
}

#[test]
fn a_process_that_takes_the_port_of_another_begins_when_that_has_ended() {
    // The process is this test once more.
    if let Ok(port) = std::env::var(LISTEN) {
        let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
        let until = Instant::now() + Duration::from_mins(5);
        while Instant::now() < until && listener.accept().is_ok() {}
        return;
    }
    let leases = [Port::lease(), Port::lease()];
    let ports = leases.each_ref().map(Port::number);
    let this = std::env::current_exe().unwrap();
    let this = this.display();
    let test = "ready::a_process_that_takes_the_port_of_another_begins_when_that_has_ended";
    let listening = |name: &str, port: u16| {
        format!(
            "{name}: {{command: ['{this}', --exact, '{test}'], env: {{{LISTEN}: '{port}'}}, ready: {{port: {port}}}}}"
        )
    };
    let with = |all: &[String]| format!("processes: {{{}}}\n", all.join(", "));
    let mut world = World::new();
    let log = world.apply(&with(&[listening("a", ports[0]), listening("b", ports[1])]));
    assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
    // They exchange their ports, and one gets another name.
    for all in [
        [listening("a", ports[1]), listening("b", ports[0])],
        [listening("a", ports[1]), listening("c", ports[0])],
    ] {
        let log = world.apply(&with(&all));
        assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
    }
    world.destroy();
}

#[test]
fn a_process_that_ends_before_it_is_ready_is_not_waited_for() {
    let mut world = World::new();
    let started = Instant::now();
    let log = world.apply(
        "processes: {p: {command: 'sleep 0.2; echo no such table; exit 3', ready: {command: sleep 900, timeout: 1h}}}\n",
    );
    assert_eq!(
        log,
        ["create process/p, failed: it ended before it was ready, exit status: 3: no such table"]
    );
    assert!(started.elapsed() < Duration::from_mins(5));
}

#[test]
fn another_readiness_is_no_reason_to_restart() {
    let mut world = World::new();
    let with =
        |ready: &str| format!("processes: {{p: {{command: 'echo $$ >> pids; exec sleep 600'{ready}}}}}\n");
    world.apply(&with(", ready: {file: pids}"));
    let pid = pids(&world, 1)[0];
    assert_eq!(world.apply(&with(", ready: {file: never}")), ["modify process/p"]);
    assert_eq!(world.apply(&with("")), ["modify process/p"]);
    assert!(is_alive(pid), "it runs all the while");
    assert_eq!(world.drifted(), []);
    world.destroy();
}

#[test]
fn references_are_replaced_in_what_shows_readiness() {
    let world = World::new();
    let manifest = world.load(
        "files: {f: {content: x}}
processes: {p: {command: sleep 600, ready: {command: [test, -e, '${file.f.path}']}}}
",
    );
    let item = manifest.graph().item(&("process", "p").into()).unwrap();
    let ready = item.get::<Process>().unwrap().ready.as_ref().unwrap();
    let Readiness::Command(command) = &ready.condition else { panic!("{ready:?}") };
    let path = fs::canonicalize(world.root()).unwrap().join("f");
    assert_eq!(command.argv(), ["test", "-e", path.to_str().unwrap()]);
    assert_eq!(item.dependencies().len(), 1, "the file comes first");
}

/// Drops a run while the process is not ready.
fn cut_off(world: &mut World, yaml: &str) {
    let manifest = world.load(yaml);
    let pids = world.path("pids");
    let run = world.engine.reconcile(&mut world.current, Some(manifest.graph()), &ALL);
    runtime().block_on(async {
        let started = async {
            while !fs::read_to_string(&pids).is_ok_and(|text| text.ends_with('\n')) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = run => panic!("the process can't be ready"),
            () = started => {}
        }
    });
}

#[test]
fn what_a_run_that_was_cut_off_has_started_is_asked_whether_it_is_ready() {
    for (then, ready) in [("touch made", "{file: made}"), ("echo listening; touch made", "{log: listening}")]
    {
        let mut world = World::new();
        fs::write(world.path("p.log"), "listening\n").unwrap();
        let yaml = declared(then, ready);
        cut_off(&mut world, &yaml);
        fs::write(world.path("go"), "").unwrap();
        soon("it is ready", || world.path("made").exists());
        assert_eq!(world.apply(&yaml), ["create file/after"], "{ready}");
        assert!(is_alive(pids(&world, 1)[0]));
        world.destroy();
    }
}

#[test]
fn what_a_run_that_was_cut_off_has_started_is_started_again_if_it_is_not_ready() {
    let mut world = World::new();
    fs::write(world.path("p.log"), "listening\n").unwrap();
    let yaml = declared("echo listening", "{log: listening}");
    cut_off(&mut world, &yaml);
    let first = pids(&world, 1)[0];
    let root = world.root();
    let log = std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            soon("it is started again", || {
                fs::read_to_string(root.join("pids")).is_ok_and(|text| text.matches('\n').count() == 2)
            });
            fs::write(root.join("go"), "").unwrap();
        });
        let log = world.apply(&yaml);
        other.join().unwrap();
        log
    });
    assert_eq!(log, ["delete process/p", "create process/p", "create file/after"]);
    assert!(!is_alive(first));
    world.destroy();
}

#[test]
fn a_process_that_can_not_be_asked_any_more_whether_it_is_ready_is_ended_with_its_item() {
    let mut world = World::new();
    fs::create_dir(world.path("d")).unwrap();
    let log = world.apply(
        "processes: {p: {command: 'echo $$ >> ../pids; mv ../d ../away; exec sleep 600', cwd: d, ready: {command: 'false'}}}\n",
    );
    assert!(log[0].contains("can't run in d"), "{log:?}");
    let pid = pids(&world, 1)[0];
    assert!(world.destroy()[0].starts_with("delete process/p"));
    assert!(!is_alive(pid));
}
