//! Runs that were killed between what they did and what they could note of it, and somebody who writes a file then.
//!
//! What is there is compared with what was there before the operation that was cut off, and with what it makes of that. What is
//! neither is somebody's work: it is kept, or left where it is.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use setpoint_engine::{MemoryJournal, Record, replay};

use crate::world::World;

const ADOPTED: &str = "files: {f: {content: ours, adopt: true}}\n";
const ADOPTED_LINK: &str = "symlinks: {l: {target: ours, adopt: true}}\n";

/// Runs, and goes on from what is known when nobody could note any more how an operation ended.
fn cut_off(world: &mut World, run: impl FnOnce(&mut World)) {
    cut_off_before(world, |record| matches!(record, Record::Ended { .. }), run);
}

/// Runs, and goes on from what is known when nobody could note some of it.
fn cut_off_before(world: &mut World, is_lost: impl Fn(&Record) -> bool, run: impl FnOnce(&mut World)) {
    let (before, engine) = (world.current.clone(), world.engine.clone());
    let journal = Arc::new(MemoryJournal::new());
    world.engine = engine.clone().with_journal(journal.clone());
    run(world);
    world.engine = engine;
    let mut records = journal.records();
    records.retain(|record| !is_lost(record));
    assert!(!records.is_empty(), "something was begun");
    let current = replay("test", before, &records);
    world.host.recall(&current);
    world.current = Some(current);
}

/// What is kept of originals, to be put back as if it had not been removed.
fn kept(world: &World) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(world.directory.path().join("run/kept")).unwrap();
    entries.map(|entry| entry.unwrap().path()).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn link(world: &World) -> String {
    fs::read_link(world.path("l")).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_file_that_is_written_after_a_deletion_that_nobody_noted_is_not_deleted() {
    let mut world = World::new();
    world.apply("files: {f: {content: ours}}\nsymlinks: {l: {target: ours}}\n");
    cut_off(&mut world, |world| {
        world.destroy();
    });
    assert_eq!(world.tree(), [""; 0]);
    fs::write(world.path("f"), "somebody's").unwrap();
    symlink("somebodys", world.path("l")).unwrap();
    assert_eq!(world.destroy(), [""; 0]);
    assert_eq!((world.text("f"), link(&world)), ("somebody's".to_owned(), "somebodys".to_owned()));
    let notices: Vec<String> = world.host.take_notices().iter().map(ToString::to_string).collect();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(
        notices[0].contains("f is not what Setpoint wrote") && notices[0].contains("left as it is"),
        "{notices:?}"
    );
}

#[test]
fn what_a_deletion_had_not_reached_is_deleted() {
    let mut world = World::new();
    world.apply("files: {f: {content: ours}}\nsymlinks: {l: {target: ours}}\n");
    cut_off(&mut world, |world| {
        world.destroy();
    });
    fs::write(world.path("f"), "ours").unwrap();
    symlink("ours", world.path("l")).unwrap();
    world.destroy();
    assert_eq!(world.tree(), [""; 0]);
    assert!(world.host.take_notices().is_empty());
}

#[test]
fn a_file_that_is_written_before_an_adoption_has_replaced_it_is_what_comes_back() {
    let mut world = World::new();
    fs::write(world.path("f"), "precious").unwrap();
    symlink("precious", world.path("l")).unwrap();
    let both = format!("{ADOPTED}{ADOPTED_LINK}");
    cut_off(&mut world, |world| {
        world.apply(&both);
    });
    // It was kept and noted, and not replaced.
    fs::write(world.path("f"), "newer").unwrap();
    fs::remove_file(world.path("l")).unwrap();
    symlink("newer", world.path("l")).unwrap();
    world.apply(&both);
    assert_eq!((world.text("f"), link(&world)), ("ours".to_owned(), "ours".to_owned()));
    world.destroy();
    assert_eq!((world.text("f"), link(&world)), ("newer".to_owned(), "newer".to_owned()));
}

#[test]
fn a_file_that_is_written_after_an_adoption_was_cut_off_is_left_when_its_item_goes() {
    for is_read_before in [false, true] {
        let mut world = World::new();
        fs::write(world.path("f"), "precious").unwrap();
        symlink("precious", world.path("l")).unwrap();
        cut_off(&mut world, |world| {
            world.apply(&format!("{ADOPTED}{ADOPTED_LINK}"));
        });
        // Nobody knows whether it was replaced before.
        fs::write(world.path("f"), "newer").unwrap();
        fs::remove_file(world.path("l")).unwrap();
        symlink("newer", world.path("l")).unwrap();
        if is_read_before {
            world.refresh();
        }
        let log = world.destroy();
        assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
        assert_eq!((world.text("f"), link(&world)), ("newer".to_owned(), "newer".to_owned()));
        let notices: Vec<String> = world.host.take_notices().iter().map(ToString::to_string).collect();
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(
            notices.iter().all(|notice| notice.contains("left as it is") && notice.contains("is kept")),
            "{notices:?}"
        );
        assert_eq!(kept(&world).len(), 2, "what was there before");
        assert!(world.current.as_ref().is_none_or(setpoint_graph::Graph::is_empty));
    }
}

#[test]
fn what_an_adoption_that_nobody_noted_has_replaced_comes_back() {
    let mut world = World::new();
    fs::write(world.path("f"), "precious").unwrap();
    symlink("precious", world.path("l")).unwrap();
    let both = format!("{ADOPTED}{ADOPTED_LINK}");
    cut_off(&mut world, |world| {
        world.apply(&both);
    });
    world.destroy();
    assert_eq!((world.text("f"), link(&world)), ("precious".to_owned(), "precious".to_owned()));
    assert!(world.host.take_notices().is_empty());
}

#[test]
fn a_file_that_is_written_after_the_original_was_put_back_is_not_replaced_by_it() {
    for has_kept in [true, false] {
        let mut world = World::new();
        fs::write(world.path("f"), "precious").unwrap();
        symlink("precious", world.path("l")).unwrap();
        world.apply(&format!("{ADOPTED}{ADOPTED_LINK}"));
        let originals = kept(&world);
        // That the original is back is noted right after that.
        let is_lost = |record: &Record| {
            matches!(record, Record::Ended { .. }) || has_kept && matches!(record, Record::Noted { .. })
        };
        cut_off_before(&mut world, is_lost, |world| {
            world.destroy();
        });
        if has_kept {
            for (path, bytes) in originals {
                fs::write(path, bytes).unwrap();
            }
        }
        assert_eq!((world.text("f"), link(&world)), ("precious".to_owned(), "precious".to_owned()));
        fs::write(world.path("f"), "newer").unwrap();
        fs::remove_file(world.path("l")).unwrap();
        symlink("newer", world.path("l")).unwrap();
        world.destroy();
        assert_eq!((world.text("f"), link(&world)), ("newer".to_owned(), "newer".to_owned()), "{has_kept}");
        assert_eq!(world.host.take_notices().len(), if has_kept { 2 } else { 0 });
    }
}

#[test]
fn originals_of_files_that_changed_places_are_back_in_one_run() {
    let with = |f: &str, g: &str| {
        format!(
            "files: {{f: {{path: {f}, content: F, adopt: true}}, g: {{path: {g}, content: G, adopt: true}}}}\n"
        )
    };
    for first in [true, false] {
        let mut world = World::new();
        for path in ["one", "two"] {
            fs::write(world.path(path), path).unwrap();
        }
        for straight in [first, !first, first] {
            let (f, g) = if straight { ("one", "two") } else { ("two", "one") };
            let log = world.apply(&with(f, g));
            assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
            assert_eq!((world.text(f), world.text(g)), ("F".to_owned(), "G".to_owned()));
        }
        let log = world.destroy();
        assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
        assert_eq!(world.tree(), ["one", "two"]);
        assert_eq!((world.text("one"), world.text("two")), ("one".to_owned(), "two".to_owned()));
    }
}

#[test]
fn what_was_there_before_is_put_back_also_if_the_file_that_replaced_it_is_gone() {
    let mut world = World::new();
    fs::write(world.path("f"), "precious").unwrap();
    symlink("precious", world.path("l")).unwrap();
    world.apply(&format!("{ADOPTED}{ADOPTED_LINK}"));
    fs::remove_file(world.path("f")).unwrap();
    fs::remove_file(world.path("l")).unwrap();
    world.refresh();
    world.destroy();
    assert_eq!((world.text("f"), link(&world)), ("precious".to_owned(), "precious".to_owned()));
}

#[test]
fn what_was_taken_over_stays_in_its_place_when_its_item_moves() {
    let at = |path: &str| {
        format!(
            "files: {{f: {{path: {path}, content: ours, adopt: true}}}}\n\
             symlinks: {{l: {{path: l{path}, target: ours, adopt: true}}}}\n"
        )
    };
    for (cut_off_at_once, yaml) in [(false, at("b")), (true, at("b"))] {
        let mut world = World::new();
        fs::write(world.path("a"), "precious").unwrap();
        symlink("precious", world.path("la")).unwrap();
        world.apply(&at("a"));
        if cut_off_at_once {
            cut_off(&mut world, |world| {
                world.apply(&yaml);
            });
        }
        let log = world.apply(&yaml);
        assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
        assert_eq!(world.tree(), ["a", "b", "la", "lb"]);
        assert_eq!((world.text("a"), world.text("b")), ("precious".to_owned(), "ours".to_owned()));
        // What is made elsewhere is ours.
        world.destroy();
        assert_eq!(world.tree(), ["a", "la"]);
        assert_eq!(world.text("a"), "precious");
    }
}

#[test]
fn what_is_in_the_place_of_a_creation_that_was_cut_off_is_somebodys_whatever_it_is() {
    for first in ["link", "directory", "nothing"] {
        for yaml in ["", "files: {f: {content: ours}}\n"] {
            let mut world = World::new();
            // It was prepared, and not brought to its place.
            cut_off(&mut world, |world| {
                world.apply("files: {f: {content: ours}}\n");
            });
            fs::remove_file(world.path("f")).unwrap();
            match first {
                "link" => symlink("elsewhere", world.path("f")).unwrap(),
                "directory" => fs::create_dir(world.path("f")).unwrap(),
                _ => {}
            }
            for _ in 0..2 {
                world.refresh();
                if yaml.is_empty() {
                    world.destroy()
                } else {
                    world.apply(yaml)
                };
            }
            match first {
                "link" => fs::remove_file(world.path("f")).unwrap(),
                "directory" => fs::remove_dir(world.path("f")).unwrap(),
                _ if !yaml.is_empty() => continue,
                _ => {}
            }
            fs::write(world.path("f"), "somebody's").unwrap();
            if let Some(current) = &mut world.current
                && !current.is_empty()
            {
                world.refresh();
            }
            if yaml.is_empty() {
                world.destroy()
            } else {
                world.apply(yaml)
            };
            assert_eq!(world.text("f"), "somebody's", "{first}, {yaml}");
        }
    }
}

#[test]
fn an_original_never_goes_to_where_its_item_is_made_after_it_was_gone() {
    let at = |path: &str| {
        format!(
            "files: {{f: {{path: {path}, content: ours, adopt: true}}}}\n\
             symlinks: {{l: {{path: l{path}, target: ours, adopt: true}}}}\n"
        )
    };
    for theirs in [None, Some("newer")] {
        for is_cut_off in [false, true] {
            let mut world = World::new();
            fs::write(world.path("a"), "precious").unwrap();
            symlink("precious", world.path("la")).unwrap();
            if is_cut_off {
                cut_off(&mut world, |world| {
                    world.apply(&at("a"));
                });
            } else {
                world.apply(&at("a"));
                world.settle();
            }
            fs::remove_file(world.path("a")).unwrap();
            fs::remove_file(world.path("la")).unwrap();
            if !is_cut_off {
                world.refresh();
            }
            if let Some(newer) = theirs {
                fs::write(world.path("a"), newer).unwrap();
                symlink(newer, world.path("la")).unwrap();
            }
            if is_cut_off {
                world.refresh();
            }
            let log = world.apply(&at("b"));
            assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
            assert_eq!(world.text("b"), "ours");
            world.destroy();
            let back = theirs.unwrap_or("precious");
            assert_eq!(world.tree(), ["a", "la"], "{theirs:?}, {is_cut_off}");
            assert_eq!(world.text("a"), back, "{theirs:?}, {is_cut_off}");
            assert_eq!(fs::read_link(world.path("la")).unwrap().to_str(), Some(back));
            let notices: Vec<String> = world.host.take_notices().iter().map(ToString::to_string).collect();
            assert_eq!(notices.len(), if theirs.is_some() { 2 } else { 0 }, "{notices:?}");
        }
    }
}

#[test]
fn a_directory_is_let_go_however_its_adoption_was_cut_off() {
    for kept in 1..6 {
        let mut world = World::new();
        fs::create_dir(world.path("d")).unwrap();
        fs::write(world.path("d/mine"), "").unwrap();
        let left = std::cell::Cell::new(kept);
        let is_lost = |record: &Record| match record {
            Record::Ended { .. } => true,
            _ => left.replace(left.get() - 1) <= 0,
        };
        cut_off_before(&mut world, is_lost, |world| {
            world.apply("directories: {d: {adopt: true, mode: '0700'}}\n");
        });
        world.refresh();
        let log = world.destroy();
        assert!(log.iter().all(|line| !line.contains("failed")), "{kept}: {log:?}");
        assert_eq!(world.tree(), ["d", "d/mine"]);
    }
}
