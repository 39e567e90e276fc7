//! Creations that were cut off: what is in their place is ours only if we made it.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_engine::{Engine, MemoryJournal, Operation, Record, replay};
use setpoint_host::registry;

use crate::world::{ALL, World};

const MANIFEST: &str = "directories: {d: }
files: {f: {content: ours}}
symlinks: {l: {target: ours}}
";

/// A run that was killed when the creation of all items was journalled, and what it had really done.
fn killed(manifest: &str, before_anything: bool) -> World {
    let mut world = World::new();
    let loaded = world.load(manifest);
    let journal = Arc::new(MemoryJournal::new());
    if before_anything {
        world.current = Some(started(&loaded));
    } else {
        let engine = Engine::new(registry(&world.host)).with_journal(Arc::<MemoryJournal>::clone(&journal));
        let mut current = None;
        world.block_on(engine.reconcile(&mut current, Some(loaded.graph()), &ALL)).unwrap();
        let mut records = journal.records();
        records.retain(|record| !matches!(record, Record::Ended { .. }));
        let started = records.iter().filter(|record| matches!(record, Record::Started { .. }));
        assert_eq!(started.count(), loaded.graph().items().count());
        world.current = Some(replay("test", None, &records));
    }
    // Another process goes on.
    world.host = World::host(world.directory.path());
    world.engine = Engine::new(registry(&world.host)).verifying().retrying_now();
    world
}

fn started(loaded: &setpoint_host::Manifest) -> setpoint_engine::CurrentGraph {
    let start = |(number, node): (u64, setpoint_graph::Node<'_, ()>)| Record::Started {
        number,
        operation: Operation::Create,
        item: node.item().clone(),
        target: None,
        path: node.path(),
        at: Timestamp::UNIX_EPOCH,
    };
    let records: Vec<Record> = (1..).zip(loaded.graph().items()).map(start).collect();
    replay("test", None, &records)
}

#[test]
fn what_a_killed_run_made_is_ours() {
    let mut world = killed(MANIFEST, false);
    let log = world.apply(MANIFEST);
    assert_eq!(log, [""; 0], "nothing is left to do");
    world.destroy();
    assert_eq!(world.tree(), [""; 0]);
}

#[test]
fn what_appeared_in_place_of_a_creation_that_never_began_is_not_ours() {
    let mut world = killed(MANIFEST, true);
    fs::create_dir(world.path("d")).unwrap();
    fs::write(world.path("f"), "ours").unwrap();
    symlink("ours", world.path("l")).unwrap();
    let log = world.apply(MANIFEST);
    assert_eq!(log.len(), 3, "{log:?}");
    assert!(log.iter().all(|line| line.contains("was not made by Setpoint")), "{log:?}");
    world.destroy();
    assert_eq!(world.tree(), ["d", "f", "l"], "all of it stays");
}

#[test]
fn what_replaced_the_work_of_a_killed_run_is_not_ours() {
    let mut world = killed(MANIFEST, false);
    fs::write(world.path("other"), "theirs").unwrap();
    fs::rename(world.path("other"), world.path("f")).unwrap();
    let log = world.apply(MANIFEST);
    assert!(log.len() == 1 && log[0].contains("was not made by Setpoint"), "{log:?}");
    assert_eq!(world.text("f"), "theirs");
}

#[test]
fn what_a_killed_run_had_made_under_another_name_is_swept_and_made_again() {
    let mut world = killed(MANIFEST, true);
    let items: Vec<_> =
        world.current.iter().flat_map(|graph| graph.items().map(|node| node.item().clone())).collect();
    // As the killed run would have left them.
    let mut names = Vec::new();
    for item in &items {
        let name = world.host.temporary(item).unwrap();
        match item.kind().as_str() {
            "directory" => fs::create_dir(&name).unwrap(),
            "symlink" => symlink("ours", &name).unwrap(),
            _ => fs::write(&name, "ou").unwrap(),
        }
        names.push(name);
    }
    let mut removed = world.host.sweep(&items).unwrap();
    removed.sort();
    names.sort();
    assert_eq!(removed, names);
    let log = world.apply(MANIFEST);
    assert_eq!(log.len(), 3, "{log:?}");
    assert_eq!(world.tree(), ["d", "f", "l"]);
    assert_eq!(world.drifted(), []);
}

#[test]
fn a_kept_name_is_no_obstacle_without_a_sweep() {
    let mut world = World::new();
    for node in world.load(MANIFEST).graph().items() {
        fs::create_dir(world.host.temporary(node.item()).unwrap()).unwrap();
    }
    let log = world.apply(MANIFEST);
    assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
    assert_eq!(world.tree(), ["d", "f", "l"]);
}
