//! Runs that end in the middle.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use setpoint_engine::{Hooks, LogEntry, OpError, Operation};
use setpoint_graph::ItemHandle;

use crate::world::{ALL, World};

/// Lets nothing be done to files and links.
struct OnlyDirectories;

impl Hooks for OnlyDirectories {
    fn before(&self, _: Operation, item: &ItemHandle) -> Result<(), OpError> {
        if item.kind().as_str() == "directory" { Ok(()) } else { Err(OpError::untouched("interrupted")) }
    }

    fn after(&self, _: &LogEntry) {}
}

#[test]
fn a_run_that_stopped_after_a_directory_moved_goes_on_with_what_is_inside() {
    let mut world = World::new();
    let with = |directory: &str| {
        format!(
            "directories: {{d: {{path: {directory}}}, e: {{path: {directory}/e}}}}
files: {{f: {{path: {directory}/e/f, content: x}}}}
symlinks: {{l: {{path: {directory}/l, target: e}}}}
"
        )
    };
    world.apply(&with("old"));
    let engine = world.engine.clone();
    world.engine = engine.clone().with_hooks(Arc::new(OnlyDirectories));
    let log = world.apply(&with("new"));
    assert!(log.iter().any(|line| line.contains("interrupted")), "{log:?}");
    world.engine = engine;
    // The files are not where they are believed to be, and are found all the same.
    let refreshed = world.refresh();
    assert!(refreshed.drifted.iter().all(|drifted| drifted.found.is_some()), "{refreshed:?}");
    let log = world.apply(&with("new"));
    assert!(log.iter().all(|line| !line.contains("failed") && !line.contains("create")), "{log:?}");
    assert_eq!(world.tree(), ["new", "new/e", "new/e/f", "new/l"]);
    assert_eq!(world.drifted(), []);
    world.destroy();
    assert_eq!(world.tree(), [""; 0]);
}

/// Lets things only be deleted.
struct OnlyDeletions;

impl Hooks for OnlyDeletions {
    fn before(&self, operation: Operation, _: &ItemHandle) -> Result<(), OpError> {
        if operation == Operation::Delete { Ok(()) } else { Err(OpError::untouched("interrupted")) }
    }

    fn after(&self, _: &LogEntry) {}
}

#[test]
fn a_directory_that_was_set_aside_is_put_back_where_its_item_is_not_wanted_any_more() {
    let mut world = World::new();
    let with = |a: &str, b: &str| format!("directories: {{a: {{path: {a}}}, b: {{path: {b}}}}}\n");
    world.apply(&with("one", "two"));
    fs::write(world.path("one/mine"), "1").unwrap();
    fs::write(world.path("two/theirs"), "2").unwrap();
    let engine = world.engine.clone();
    world.engine = engine.clone().with_hooks(Arc::new(OnlyDeletions));
    let log = world.apply(&with("two", "one"));
    assert!(log.iter().any(|line| line.contains("interrupted")), "{log:?}");
    let (gone, stays) = if world.path("one").exists() { ("two", "one") } else { ("one", "two") };
    assert!(!world.path(gone).exists(), "{:?}", world.tree());
    // The item is not declared any more: what it held is where it was.
    world.engine = engine;
    let name = if gone == "one" { "b" } else { "a" };
    let rest = format!("directories: {{{name}: {{path: {stays}}}}}\n");
    // It is known again, and as it holds something else it is not removed.
    let log = world.apply(&rest);
    assert!(log.iter().any(|line| line.contains("did not put there")), "{log:?}");
    assert_eq!(world.tree(), ["one", "one/mine", "two", "two/theirs"]);
    // Where something else is in its place by then, it stays where it is, and is named.
    world.refresh();
    world.engine = world.engine.clone().with_hooks(Arc::new(OnlyDeletions));
    let log = world.apply(&with("two", "one"));
    assert!(log.iter().any(|line| line.contains("interrupted")), "{log:?}");
    assert!(
        world.tree().iter().any(|path| path.starts_with(".setpoint-aside-")),
        "{log:?}, {:?}",
        world.tree()
    );
    let gone = if world.path("one").exists() { "two" } else { "one" };
    fs::create_dir(world.path(gone)).unwrap();
    fs::write(world.path(gone).join("newer"), "3").unwrap();
    let log = world.destroy();
    let left = log.iter().find(|line| line.contains("what it holds is in .setpoint-aside-")).unwrap();
    assert!(left.contains("to where you want it"), "{left}");
    let aside = left.split("is in ").nth(1).unwrap().split(',').next().unwrap();
    let held = fs::read_dir(world.path(aside)).unwrap().next().unwrap().unwrap().file_name();
    assert_eq!(held, if gone == "one" { "mine" } else { "theirs" });
}

#[test]
fn a_file_is_whole_and_nothing_is_left_whenever_a_run_is_killed() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        write_again_and_again(std::path::Path::new(&directory));
    }
    let mut world = World::new();
    let directory = world.directory.path().to_path_buf();
    let whole = |byte: &str| byte.repeat(1_000_000);
    world.apply(&format!("files: {{f: {{content: {}}}}}\n", whole("a")));
    for round in 0..20_u64 {
        let _ = fs::remove_file(directory.join("ready"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::a_file_is_whole_and_nothing_is_left_whenever_a_run_is_killed"])
            .env(DIRECTORY, &directory)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_mins(5);
        while !directory.join("ready").exists() {
            assert!(Instant::now() < until, "it writes");
            std::thread::sleep(Duration::from_millis(1));
        }
        let is_in_the_middle = round % 2 == 1;
        if is_in_the_middle {
            stop_in_the_middle_of_a_write(&world, &child);
        } else {
            std::thread::sleep(Duration::from_micros(round * 371));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let text = world.text("f");
        assert!(text == whole("a") || text == whole("b"), "{} bytes, half done", text.len());
        assert!(!is_in_the_middle || world.tree().len() == 2, "{:?}", world.tree());
        let items: Vec<ItemHandle> =
            world.current.iter().flat_map(|graph| graph.items().map(|node| node.item().clone())).collect();
        let swept = world.host.sweep(world.current.as_ref().unwrap(), &items);
        assert!(swept.left.is_empty(), "{swept:?}");
        assert_eq!(world.tree(), ["f"], "no rubbish");
    }
}

/// Lets a process that writes stand still, again and again, until that is in the middle of a write.
fn stop_in_the_middle_of_a_write(world: &World, child: &Child) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    let tasks = format!("/proc/{}/task", child.id());
    let is_stopped = |task: std::io::Result<fs::DirEntry>| {
        let stat = fs::read_to_string(task.unwrap().path().join("stat"));
        stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T")))
    };
    let until = Instant::now() + Duration::from_mins(5);
    loop {
        assert!(Instant::now() < until, "it was never in the middle of a write");
        signal(rustix::process::Signal::STOP);
        while !fs::read_dir(&tasks).unwrap().all(is_stopped) {
            assert!(Instant::now() < until, "it does not stop");
            std::thread::sleep(Duration::from_micros(100));
        }
        if world.tree().len() == 2 {
            return;
        }
        signal(rustix::process::Signal::CONT);
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Names the directory in which the test above, started again, writes until it is killed.
const DIRECTORY: &str = "SETPOINT_TEST_DIRECTORY";

fn write_again_and_again(directory: &std::path::Path) -> ! {
    let host = World::host(directory);
    let engine = setpoint_engine::Engine::new(setpoint_host::registry(&host));
    let file = directory.join("loop.yaml");
    let manifests = ["b", "a"].map(|byte| {
        let content = byte.repeat(1_000_000);
        let yaml = format!("name: test\nroot: root\nfiles: {{f: {{content: {content}, adopt: true}}}}\n");
        fs::write(&file, yaml).unwrap();
        setpoint_host::load(&file).unwrap()
    });
    let mut current = None;
    let runtime = crate::world::runtime();
    loop {
        for manifest in &manifests {
            runtime.block_on(engine.reconcile(&mut current, Some(manifest.graph()), &ALL)).unwrap();
            fs::write(directory.join("ready"), "").unwrap();
        }
    }
}

#[test]
fn what_a_killed_run_left_does_not_keep_a_directory_from_being_removed() {
    let mut world = World::new();
    world.apply("directories: {d: }\nfiles: {f: {path: d/f, content: x}}\n");
    // Learn the temporary name of another item by letting its write fail half-way: a directory is in its place.
    let name = temporary_name(&world);
    fs::write(world.path("d").join(&name), "rubbish").unwrap();
    world.destroy();
    assert_eq!(world.tree(), [""; 0]);
}

/// The name that a write uses until the file is whole, seen while a large file is being written.
fn temporary_name(world: &World) -> String {
    let root = world.root();
    let watcher = std::thread::spawn(move || {
        loop {
            for entry in fs::read_dir(&root).unwrap().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with(".setpoint-") {
                    return name;
                }
            }
        }
    });
    let mut other = World::new();
    other.host = World::host(world.directory.path());
    other.engine = setpoint_engine::Engine::new(setpoint_host::registry(&other.host));
    let large = "x".repeat(1_000_000);
    while !watcher.is_finished() {
        other.apply(&format!("files: {{g: {{content: {large}}}}}\n"));
        other.destroy();
    }
    watcher.join().unwrap()
}
