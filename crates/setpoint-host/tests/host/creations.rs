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
    let mut removed = world.host.sweep(world.current.as_ref().unwrap(), &items).removed;
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

/// A run is killed right after it has replaced a file or link that was taken over, before it could look at what was there.
#[test]
fn what_somebody_wrote_right_before_a_killed_run_replaced_it_is_kept() {
    let with = |text: &str| {
        format!(
            "files: {{f: {{content: {text}, adopt: true}}}}\nsymlinks: {{l: {{target: {text}, adopt: true}}}}\n"
        )
    };
    for is_theirs in [true, false] {
        let mut world = World::new();
        fs::write(world.path("f"), "precious").unwrap();
        symlink("precious", world.path("l")).unwrap();
        world.apply(&with("ours"));
        world.settle();
        let items: Vec<_> =
            world.load(&with("other")).graph().items().map(|node| node.item().clone()).collect();
        for item in &items {
            let (temporary, is_link) =
                (world.host.temporary(item).unwrap(), item.kind().as_str() == "symlink");
            match (is_link, is_theirs) {
                (true, _) => symlink(if is_theirs { "newer" } else { "other" }, &temporary).unwrap(),
                // What is half written is ours.
                (false, _) => fs::write(&temporary, if is_theirs { "newer" } else { "oth" }).unwrap(),
            }
        }
        let swept = world.host.sweep(world.current.as_ref().unwrap(), &items);
        assert_eq!((swept.removed.len(), swept.left.len()), (2, 0), "{swept:?}");
        assert_eq!(world.tree(), ["f", "l"]);
        let kept = fs::read_dir(world.directory.path().join("run/kept")).unwrap().flatten();
        let kept: String = kept.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect();
        // `newer`, also as base64 has it.
        let is_kept = [kept.contains("bmV3ZXI="), kept.contains("\"newer\"")];
        assert_eq!(
            (is_kept, world.host.take_notices().len()),
            ([is_theirs; 2], if is_theirs { 2 } else { 0 })
        );
    }
}

#[test]
fn what_can_not_be_kept_of_what_a_killed_run_had_replaced_has_a_name_that_nobody_removes() {
    let mut world = World::new();
    fs::write(world.path("f"), "precious").unwrap();
    world.apply("files: {f: {content: ours, adopt: true}}\n");
    let items: Vec<_> =
        world.current.iter().flat_map(|graph| graph.items().map(|node| node.item().clone())).collect();
    // More than is kept.
    let large = fs::File::create(world.host.temporary(&items[0]).unwrap()).unwrap();
    large.set_len(17 << 20).unwrap();
    let swept = world.host.sweep(world.current.as_ref().unwrap(), &items);
    assert_eq!((swept.removed.len(), swept.left.len()), (0, 0), "{swept:?}");
    assert_eq!(world.tree(), ["f", "f.setpoint-saved"]);
    assert!(world.host.take_notices()[0].to_string().contains("what was there is in f.setpoint-saved"));
}

#[test]
fn what_can_not_be_swept_of_one_item_holds_up_no_other() {
    let mut world = World::new();
    world.apply("directories: {d: }\nfiles: {f: {path: d/f, content: ours}, g: {content: ours}}\n");
    let items: Vec<_> =
        world.current.iter().flat_map(|graph| graph.items().map(|node| node.item().clone())).collect();
    for item in items.iter().filter(|item| item.kind().as_str() == "file") {
        fs::write(world.host.temporary(item).unwrap(), "ou").unwrap();
    }
    // Out of the root.
    fs::rename(world.path("d"), world.directory.path().join("away")).unwrap();
    symlink("../away", world.path("d")).unwrap();
    let swept = world.host.sweep(world.current.as_ref().unwrap(), &items);
    assert_eq!((swept.removed.len(), swept.left.len()), (1, 1), "{swept:?}");
    assert!(swept.left[0].1.to_string().contains("leads out of the root"), "{swept:?}");
}
