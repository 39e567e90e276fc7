//! What others do to the host meanwhile, and what the host refuses.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use setpoint_testutils::{need, part};

use crate::world::{ALL, World};

fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn a_link_that_leads_out_of_the_root_is_not_followed() {
    let mut world = World::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("theirs"), "precious").unwrap();
    symlink(outside.path(), world.path("absolute")).unwrap();
    let name = outside.path().file_name().unwrap().to_string_lossy().into_owned();
    symlink(format!("../../{name}"), world.path("relative")).unwrap();
    symlink("/proc/self/root", world.path("magic")).unwrap();
    for way in ["absolute", "relative", "magic"] {
        for yaml in [
            format!("files: {{f: {{path: {way}/theirs, content: x, adopt: true}}}}\n"),
            format!("directories: {{d: {{path: {way}/d}}}}\n"),
            format!("symlinks: {{l: {{path: {way}/l, target: x}}}}\n"),
            format!("processes: {{p: {{command: sleep 600, log: {way}/log}}}}\n"),
            format!("commands: {{c: {{apply: touch here, cwd: {way}}}}}\n"),
        ] {
            world.current = None;
            let log = world.apply(&yaml);
            assert!(log[0].contains("leads out of the root"), "{log:?}");
        }
    }
    assert_eq!(
        (entries(outside.path()), fs::read_to_string(outside.path().join("theirs")).unwrap()),
        (1, "precious".into())
    );
}

#[test]
fn a_link_that_stays_in_the_root_is_a_way_like_any_other() {
    let mut world = World::new();
    fs::create_dir(world.path("real")).unwrap();
    symlink("real", world.path("way")).unwrap();
    let log = world.apply("files: {f: {path: way/f, content: x}}\n");
    assert_eq!((log, world.text("real/f")), (vec!["create file/f".to_owned()], "x".to_owned()));
}

#[test]
fn a_link_that_is_swapped_in_during_the_run_leads_nowhere() {
    let mut world = World::new();
    let outside = tempfile::tempdir().unwrap();
    for name in ["f", "g"] {
        fs::write(outside.path().join(name), "precious").unwrap();
    }
    fs::create_dir(world.path("d")).unwrap();
    symlink(outside.path(), world.path("evil")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (halt, d, evil) = (Arc::clone(&stop), world.path("d"), world.path("evil"));
    let swapper = std::thread::spawn(move || {
        let mut swaps = 0_usize;
        while !halt.load(Ordering::Relaxed) {
            renameat_with(CWD, &d, CWD, &evil, RenameFlags::EXCHANGE).unwrap();
            swaps += 1;
        }
        if swaps % 2 == 1 {
            renameat_with(CWD, &d, CWD, &evil, RenameFlags::EXCHANGE).unwrap();
        }
        swaps
    });
    // How often which of the two is hit is up to the scheduler; that both are hit again and again is not.
    let (mut done, mut refused) = (0, 0);
    let until = std::time::Instant::now() + std::time::Duration::from_mins(5);
    for round in 0.. {
        if done.min(refused) > 200 || std::time::Instant::now() > until {
            break;
        }
        let yaml = if round % 3 == 2 {
            "directories: {}\n".to_owned()
        } else {
            format!(
                "files: {{f: {{path: d/f, content: r{round}}}, g: {{path: d/g{}, content: x}}}}\nsymlinks: {{l: {{path: d/l, target: t{round}}}}}\n",
                round % 2
            )
        };
        for line in world.apply(&yaml) {
            if line.contains("failed") { refused += 1 } else { done += 1 }
        }
    }
    stop.store(true, Ordering::Relaxed);
    let swaps = swapper.join().unwrap();
    assert!(done.min(refused) > 200, "{swaps} swaps, {done} done, {refused} refused");
    for name in ["f", "g"] {
        assert_eq!(fs::read_to_string(outside.path().join(name)).unwrap(), "precious");
    }
    assert_eq!(entries(outside.path()), 2, "nothing was ever written outside");
    // Nothing that was made during the race is forgotten.
    let log = world.destroy();
    assert_eq!(
        (world.tree(), entries(&world.path("d"))),
        (vec!["d".to_owned(), "evil".to_owned()], 0),
        "{log:?}"
    );
}

#[test]
fn something_else_in_its_place_is_an_error_and_stays() {
    let mut world = World::new();
    let yaml = "files: {f: {content: x}, g: {content: x}}\ndirectories: {d: }\nsymlinks: {l: {target: x}}\n";
    world.apply(yaml);
    fs::remove_file(world.path("f")).unwrap();
    fs::create_dir(world.path("f")).unwrap();
    fs::remove_file(world.path("g")).unwrap();
    symlink("f", world.path("g")).unwrap();
    fs::remove_dir(world.path("d")).unwrap();
    fs::write(world.path("d"), "theirs").unwrap();
    fs::remove_file(world.path("l")).unwrap();
    fs::write(world.path("l"), "theirs").unwrap();
    let refreshed = world.refresh();
    let words: Vec<String> = refreshed.unreadable.iter().map(|(_, error)| error.to_string()).collect();
    assert_eq!(words.len(), 4, "{words:?}");
    for (word, what) in words.iter().zip([
        "a directory, but a file",
        "a file, but a directory",
        "a file, but a symbolic link",
        "a symbolic link, but a file",
    ]) {
        assert!(word.contains(what), "{words:?}");
    }
    let log = world.destroy();
    assert!(log.iter().filter(|line| line.contains("is in its place")).count() >= 4, "{log:?}");
    assert_eq!(world.tree(), ["d", "f", "g", "l"]);
}

#[test]
fn a_pipe_in_its_place_is_not_waited_for() {
    let mut world = World::new();
    world.apply("files: {f: {content: x}}\n");
    fs::remove_file(world.path("f")).unwrap();
    rustix::fs::mkfifoat(CWD, world.path("f"), rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(world.refresh().unreadable.len(), 1);
}

#[test]
fn a_full_disk_changes_nothing() {
    need!(part::root("a file system of a given size"));
    let (mut world, unmount) = on_a_small_disk();
    world.apply("files: {f: {content: small}}\n");
    let large = "x".repeat(400_000);
    let log = world.apply(&format!("files: {{f: {{content: {large}}}, g: {{content: {large}}}}}\n"));
    assert_eq!(
        log.iter().filter(|line| line.contains("No space left") && line.contains("free some space")).count(),
        2,
        "{log:?}"
    );
    assert_eq!((world.text("f"), world.tree()), ("small".to_owned(), vec!["f".to_owned()]));
    drop(world.host.clone());
    world.current = None;
    drop(unmount);
}

#[test]
fn a_move_whose_write_fails_on_a_full_disk_has_moved_and_loses_nothing() {
    need!(part::root("a file system of a given size"));
    let (mut world, unmount) = on_a_small_disk();
    world.apply("files: {f: {path: a, content: small}}\n");
    let large = "x".repeat(400_000);
    let log = world.apply(&format!("files: {{f: {{path: b, content: {large}}}}}\n"));
    assert!(log.iter().any(|line| line.contains("No space left")), "{log:?}");
    assert_eq!((world.text("b"), world.tree()), ("small".to_owned(), vec!["b".to_owned()]));
    // What is known is saved, and another process goes on: it knows where the file is.
    world.host.settle(world.current.as_mut().unwrap());
    world.host = World::host(world.directory.path());
    world.host.recall(world.current.as_ref().unwrap());
    world.engine =
        setpoint_engine::Engine::new(setpoint_host::registry(&world.host)).verifying().retrying_now();
    let log = world.apply("files: {f: {path: c, content: other}}\n");
    assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
    assert_eq!((world.text("c"), world.tree()), ("other".to_owned(), vec!["c".to_owned()]));
    world.destroy();
    assert_eq!(world.tree(), [""; 0]);
    world.current = None;
    drop(unmount);
}

/// A world whose root has room for 256 KiB.
fn on_a_small_disk() -> (World, Unmount) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    fs::create_dir(&root).unwrap();
    let mut mount = Command::new("mount");
    let mounted = mount.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&root).output().unwrap();
    assert!(mounted.status.success(), "{mounted:?}");
    (World::in_directory(directory), Unmount(root))
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn without_permission_nothing_changes_and_the_error_says_so() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return as_nobody(Path::new(&directory));
    }
    need!(part::root("another user"));
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let root = directory.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("secret"), "x").unwrap();
    fs::set_permissions(root.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    // This program may be in a folder that another user can't look into.
    let program = directory.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let test = "hostile::without_permission_nothing_changes_and_the_error_says_so";
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(DIRECTORY, directory.path())
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{output:?}");
    assert_eq!(entries(&root), 1);
}

/// Names the directory in which the test above, started again as another user, does its work.
const DIRECTORY: &str = "SETPOINT_TEST_DIRECTORY";

fn as_nobody(directory: &Path) {
    let host = World::host(directory);
    let engine = setpoint_engine::Engine::new(setpoint_host::registry(&host));
    let file = directory.join("set.yaml");
    fs::write(&file, "name: test\nroot: root\nfiles: {f: {content: x}, secret: {content: y, adopt: true}}\ndirectories: {d: }\n").unwrap();
    let manifest = setpoint_host::load(&file).unwrap();
    let mut current = None;
    let run = engine.reconcile(&mut current, Some(manifest.graph()), &ALL);
    let status = crate::world::runtime().block_on(run).unwrap();
    assert_eq!(status.log().len(), 3);
    for entry in status.log() {
        let line = entry.to_string();
        assert!(line.contains("Permission denied") && line.contains("run as a user who may"), "{line}");
    }
}
