//! Processes that are kept running.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use setpoint_engine::testkit;
use setpoint_graph::ItemRef;
use setpoint_host::{Invocation, Process, Processes, Started, StopSignal, Wait};

use crate::commands::FullFor;
use crate::world::World;

/// Writes its process id and sleeps.
const SLEEPER: &str = "processes: {p: {command: 'echo $$ >> pids; exec sleep 600', stop_timeout: 5s}}\n";

/// The process ids that were written, once there are so many.
pub(crate) fn pids(world: &World, count: usize) -> Vec<Pid> {
    let text = || fs::read_to_string(world.path("pids")).unwrap_or_default();
    soon("it writes its process id", || text().matches('\n').count() >= count);
    let pids: Vec<Pid> = text().lines().map(|line| Pid::from_raw(line.parse().unwrap()).unwrap()).collect();
    assert_eq!(pids.len(), count);
    pids
}

/// Returns whether a process runs. One that has ended counts as gone although nobody has collected its end, as the first process of
/// a container may not.
pub(crate) fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    // The state is that of the first thread only.
    let threads = rest.split(' ').nth(17).unwrap().parse::<u64>().unwrap();
    !rest.starts_with(['Z', 'X', 'x']) || threads > 1
}

/// Waits for something that happens soon.
pub(crate) fn soon(what: &str, mut happened: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_mins(5);
    while !happened() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_configurator_of_processes_keeps_every_promise_that_can_be_checked() {
    let world = World::new();
    let sample = |seconds: &str, timeout| Process {
        name: "a/b".into(),
        command: Invocation::Program(vec!["sleep".into(), seconds.into()]),
        env: [("A".to_owned(), "b".to_owned())].into(),
        sensitive: false,
        cwd: None,
        log: None,
        ready: None,
        stop_signal: StopSignal::Term,
        stop_timeout: Wait::from_millis(timeout),
        runs_other: None,
        log_lost: false,
        needs: Vec::new(),
    };
    let samples = [sample("61", 5000), sample("61", 6000), sample("62", 5000)];
    assert_eq!(world.block_on(testkit::check(Processes::new(&world.host), &samples)).findings, []);
}

#[test]
fn a_process_is_started_found_again_and_ended() {
    let mut world = World::new();
    assert_eq!(world.apply(SLEEPER), ["create process/p"]);
    let pid = pids(&world, 1)[0];
    assert!(is_alive(pid));
    let mut logs =
        fs::read_dir(world.directory.path().join("run")).unwrap().map(|entry| entry.unwrap().path());
    let log = logs.find(|path| path.extension().is_some_and(|extension| extension == "log")).unwrap();
    let mode = fs::metadata(log).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "what it says is its owner's alone");
    assert_eq!(rustix::process::getpgid(Some(pid)).unwrap(), pid, "a process group of its own");
    assert_eq!((world.drifted(), world.apply(SLEEPER)), (vec![], vec![]));
    assert_eq!(world.destroy(), ["delete process/p"]);
    assert!(!is_alive(pid));
    pids(&world, 1);
}

#[test]
fn a_process_that_died_is_started_again() {
    let mut world = World::new();
    world.apply(SLEEPER);
    kill_process(pids(&world, 1)[0], Signal::KILL).unwrap();
    soon("it is seen to be gone", || world.drifted() == [("process", "p").into()]);
    assert_eq!(world.apply(SLEEPER), ["create process/p"]);
    assert!(is_alive(pids(&world, 2)[1]));
    world.destroy();
}

#[test]
fn a_process_restarts_when_what_it_refers_to_changes_and_otherwise_not() {
    let mut world = World::new();
    let with = |content: &str, timeout: &str| {
        format!(
            "files: {{f: {{content: {content}}}}}
processes: {{p: {{command: 'echo $$ >> pids; cat ${{file.f.path}} >> read; exec sleep 600', stop_timeout: {timeout}}}}}
"
        )
    };
    world.apply(&with("a", "5s"));
    soon("it has read", || fs::read_to_string(world.path("read")).is_ok_and(|text| text == "a"));
    assert_eq!(world.apply(&with("a", "6s")), ["modify process/p"], "how it is ended is no reason");
    assert_eq!(world.apply(&with("b", "6s")), ["modify file/f", "delete process/p", "create process/p"]);
    soon("it has read", || world.text("read") == "ab");
    let pids = pids(&world, 2);
    assert!(!is_alive(pids[0]) && is_alive(pids[1]));
    world.destroy();
}

#[test]
fn a_process_restarts_when_a_file_that_it_refers_to_was_deleted_and_comes_back() {
    let mut world = World::new();
    let yaml = "files: {f: {content: x}, g: {content: x}}
processes:
  refers: {command: 'sleep 600 # ${file.f.path}'}
  named: {command: sleep 600, restart_on: [file.f]}
  other: {command: sleep 600, after: [file.f]}
";
    world.apply(yaml);
    fs::remove_file(world.path("f")).unwrap();
    world.refresh();
    let mut log = world.apply(yaml);
    log.sort();
    assert_eq!(
        log,
        [
            "create file/f",
            "create process/named",
            "create process/refers",
            "delete process/named",
            "delete process/refers"
        ]
    );
    assert_eq!(world.apply(yaml), [""; 0]);
    world.destroy();
}

#[test]
fn a_process_whose_log_was_moved_or_deleted_is_started_again_with_the_one_that_is_declared() {
    let mut world = World::new();
    let yaml = "processes: {p: {command: 'echo $$ >> pids; echo here; exec sleep 600', log: p.log, stop_timeout: 5s}}\n";
    let (log, process) = (ItemRef::new("file", "p:log"), ItemRef::new("process", "p"));
    world.apply(yaml);
    let has_written = |world: &World, count: usize| {
        pids(world, count);
        soon("it writes into its log", || {
            fs::read_to_string(world.path("p.log")).is_ok_and(|text| text == "here\n")
        });
    };
    has_written(&world, 1);
    // As by who rotates logs, and leaves a new one in the place of the old one or not.
    fs::rename(world.path("p.log"), world.path("p.log.1")).unwrap();
    assert_eq!(world.drifted(), [log.clone(), process.clone()]);
    assert_eq!(world.apply(yaml), ["create file/p:log", "delete process/p", "create process/p"]);
    has_written(&world, 2);
    fs::rename(world.path("p.log"), world.path("p.log.2")).unwrap();
    fs::write(world.path("p.log"), "").unwrap();
    assert_eq!(world.drifted(), [process]);
    assert_eq!(world.apply(yaml), ["delete process/p", "create process/p"]);
    has_written(&world, 3);
    // It is emptied, and is the same one.
    fs::write(world.path("p.log"), "").unwrap();
    assert_eq!((world.drifted(), world.apply(yaml)), (vec![], vec![]));
    world.destroy();
    // One that does not write to its log at all.
    let yaml = "processes: {p: {command: 'exec sleep 600 > own 2>&1', log: p.log, stop_timeout: 5s}}\n";
    world.apply(yaml);
    soon("it has begun", || world.path("own").exists());
    fs::remove_file(world.path("p.log")).unwrap();
    assert_eq!(world.drifted(), [log]);
    assert_eq!(world.apply(yaml), ["create file/p:log"]);
    world.destroy();
}

#[test]
fn which_process_runs_is_part_of_the_items_state_and_saved_with_it() {
    let mut world = World::new();
    world.apply(SLEEPER);
    let pid = pids(&world, 1)[0];
    let current = world.current.as_mut().unwrap();
    world.host.settle(current);
    let started =
        |world: &World| world.current.as_ref().unwrap().state(&("process", "p").into()).and_then(Started::of);
    let noted = started(&world).unwrap();
    assert!(noted.pid() == pid.as_raw_nonzero().get() && noted.is_running());
    let beside: Vec<_> = fs::read_dir(world.directory.path().join("run")).unwrap().collect();
    assert_eq!(beside.len(), 1, "only the log is beside the state: {beside:?}");
    world.apply(&SLEEPER.replace("sleep 600", "sleep 601"));
    assert_eq!(started(&world).unwrap().pid(), pids(&world, 2)[1].as_raw_nonzero().get());
    assert!(!noted.is_running());
    world.destroy();
}

#[test]
fn a_process_that_overwrote_its_mark_is_found_by_what_was_noted() {
    let mut world = World::new();
    // Nothing in the environment, as of a program that writes its title there.
    let yaml = "processes: {p: {command: 'echo $$ >> pids; exec env -i sleep 600', stop_timeout: 5s}}\n";
    world.apply(yaml);
    let pid = pids(&world, 1)[0];
    soon("the mark is gone", || {
        fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()))
            .is_ok_and(|environment| environment.is_empty())
    });
    assert_eq!((world.drifted(), world.apply(yaml)), (vec![], vec![]));
    world.destroy();
    assert!(!is_alive(pid));
}

#[test]
fn a_process_that_was_started_and_not_noted_is_not_started_twice() {
    let mut world = World::new();
    world.apply(SLEEPER);
    pids(&world, 1);
    // As after a kill between the start and the note of it: no state, another program.
    world.current = None;
    assert_eq!(world.apply(SLEEPER), ["create process/p"]);
    assert_eq!(pids(&world, 1).len(), 1, "the one that runs was found by its mark");
    assert_eq!(world.drifted(), []);

    world.current = None;
    let other = SLEEPER.replace("sleep 600", "sleep 601");
    assert_eq!(world.apply(&other), ["create process/p"]);
    let pids = pids(&world, 2);
    assert!(!is_alive(pids[0]) && is_alive(pids[1]), "one of another definition is ended first");
    world.destroy();
    assert!(!is_alive(pids[1]));
}

#[test]
fn what_ignores_the_signal_is_killed_with_all_it_started() {
    let mut world = World::new();
    let yaml = "processes: {p: {command: 'trap \"\" TERM; echo $$ >> pids; (echo $BASHPID; sleep 600) & sleep 600 & echo $! >> pids; while true; do sleep 1; done', stop_timeout: 200ms}}\n";
    world.apply(yaml);
    let pids = pids(&world, 2);
    let started = Instant::now();
    world.destroy();
    assert!(started.elapsed() >= Duration::from_millis(200), "it was asked first");
    soon("both are gone", || pids.iter().all(|&pid| !is_alive(pid)));
}

#[test]
fn the_signal_to_stop_with_is_the_declared_one() {
    let mut world = World::new();
    let yaml = "processes: {p: {command: 'trap \"echo int >> said; exit\" INT; touch ready; while true; do sleep 0.05; done', stop_signal: INT}}\n";
    world.apply(yaml);
    soon("it listens", || world.path("ready").exists());
    world.destroy();
    assert_eq!(world.text("said"), "int\n");
}

#[test]
fn a_process_that_ends_at_once_is_a_failure_with_its_last_words() {
    // On a busy machine it may run for longer than it is watched, and is tried again.
    let is_seen = (0..100).any(|_| {
        let mut world = World::new();
        let log = world.apply("processes: {p: {command: 'echo no such thing >&2; exit 7', log: p.log}}\n");
        let is_seen = log[1] != "create process/p";
        if is_seen {
            assert_eq!(log[1], "create process/p, failed: it ended at once, exit status: 7: no such thing");
            assert_eq!(world.text("p.log"), "no such thing\n");
        }
        world.destroy();
        is_seen
    });
    assert!(is_seen, "it was never seen to end at once");
    let mut world = World::new();
    let log = world.apply("processes: {p: {command: [/no/such/program]}}\n");
    assert!(log[0].contains("can't start [\"/no/such/program\"]: No such file"), "{log:?}");
}

/// The processes whose directory this is, and that are no zombies.
fn running_in(directory: &Path) -> Vec<String> {
    let directory = fs::canonicalize(directory).unwrap();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let here = processes
        .filter(|process| fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == directory));
    here.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_process_is_known_by_the_directory_that_it_runs_in() {
    let mut world = World::new();
    world.apply(SLEEPER);
    let pid = pids(&world, 1)[0].as_raw_nonzero().to_string();
    assert_eq!(running_in(&world.root()), [pid]);
    world.destroy();
    assert_eq!(running_in(&world.root()), [""; 0]);
}

/// What has no mark in its environment is found by its note alone.
#[test]
fn a_process_that_was_started_and_could_not_be_noted_is_ended() {
    let mut world = World::new();
    let engine = world.engine.clone();
    world.engine = engine.clone().with_journal(Arc::new(FullFor("started", None)));
    let log =
        world.apply("processes: {p: {command: [env, -i, /bin/sh, -c, 'echo $$ >> pids; exec sleep 600']}}\n");
    assert!(log[0].contains("the process can't be written down"), "{log:?}");
    world.engine = engine;
    // It may not have come as far as to write its id: it is known by where it runs.
    assert_eq!(running_in(&world.root()), [""; 0]);
    world.destroy();
}

#[test]
fn a_process_has_its_environment_its_directory_and_its_log() {
    let mut world = World::new();
    world.apply(
        "directories: {d: , logs: }
processes: {p: {command: 'echo $WHO in $(pwd); exec sleep 600', env: {WHO: me}, cwd: d, log: logs/p}}
",
    );
    let d = fs::canonicalize(world.path("d")).unwrap();
    soon("it has spoken", || world.text("logs/p") == format!("me in {}\n", d.display()));
    world.destroy();
    assert_eq!(world.tree(), [""; 0], "its log goes with it");
}
