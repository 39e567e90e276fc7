//! What was there before, and what is nobody's.

use std::fs;

use crate::world::World;

#[test]
fn what_was_there_before_is_never_overwritten() {
    let mut world = World::new();
    fs::write(world.path("f"), "precious").unwrap();
    fs::create_dir(world.path("d")).unwrap();
    std::os::unix::fs::symlink("x", world.path("l")).unwrap();
    let yaml = "files: {f: {content: A}}\ndirectories: {d: }\nsymlinks: {l: {target: y}}\n";
    let log = world.apply(yaml);
    assert_eq!(log.len(), 3);
    for line in &log {
        assert!(line.contains("is there already") && line.contains("adopt: true"), "{line}");
    }
    assert_eq!((world.text("f"), world.tree().len()), ("precious".to_owned(), 3));
    world.destroy();
    assert_eq!(world.tree(), ["d", "f", "l"], "what was refused is not removed either");

    // A move does not overwrite either.
    world.apply("files: {g: {content: G}}\n");
    let log = world.apply("files: {g: {path: f, content: G}}\n");
    assert!(log[0].contains("f is there already"), "{log:?}");
    assert_eq!((world.text("f"), world.text("g")), ("precious".to_owned(), "G".to_owned()));
}

#[test]
fn what_is_adopted_is_changed_and_left_in_the_end() {
    let mut world = World::new();
    fs::write(world.path("f"), "theirs").unwrap();
    fs::create_dir(world.path("d")).unwrap();
    std::os::unix::fs::symlink("x", world.path("l")).unwrap();
    let log = world.apply(
        "files: {f: {content: A, adopt: true}, g: {content: G, adopt: true}}
directories: {d: {adopt: true}}\nsymlinks: {l: {target: y, adopt: true}}\n",
    );
    assert!(log.iter().all(|line| !line.contains("failed")), "{log:?}");
    assert_eq!(world.text("f"), "A");
    assert_eq!(fs::read_link(world.path("l")).unwrap(), std::path::Path::new("y"));
    world.destroy();
    assert_eq!(world.tree(), ["d", "f", "l"], "what Setpoint made itself is gone");
}

#[test]
fn only_what_is_of_the_same_type_is_adopted() {
    let mut world = World::new();
    fs::create_dir(world.path("f")).unwrap();
    let log = world.apply("files: {f: {content: A, adopt: true}}\n");
    assert!(log[0].contains("is there already (a directory)") && !log[0].contains("adopt: true"), "{log:?}");
}

#[test]
fn a_plan_can_be_warned_of_what_is_in_the_way() {
    let world = World::new();
    fs::write(world.path("f"), "").unwrap();
    fs::create_dir(world.path("g")).unwrap();
    let manifest = world.load("files: {f: {content: A, adopt: true}, g: {content: A}, h: {content: A}}\n");
    let ways: Vec<_> = manifest.graph().items().map(|node| world.host.in_the_way(node.item())).collect();
    let f = ways[0].as_ref().unwrap();
    assert_eq!((f.what, f.adoptable, f.adopts), ("a file", true, true));
    let g = ways[1].as_ref().unwrap();
    assert_eq!((g.what, g.adoptable, g.adopts), ("a directory", false, false));
    assert_eq!(ways[2], None);
}

#[test]
fn a_directory_with_unmanaged_entries_stays_and_they_are_named() {
    let mut world = World::new();
    world.apply("directories: {d: }\nfiles: {d/f: {content: x}}\n");
    for name in ["a", "b", "c", "x", "y", "z"] {
        fs::write(world.path("d").join(name), "theirs").unwrap();
    }
    let log = world.destroy();
    assert_eq!(log[0], "delete file/d/f");
    let failed = "delete directory/d, failed: d is not removed, as it holds what Setpoint did not put there: \
                  a, b, c, x, y, and 1 more";
    assert_eq!(log[1], failed);
    assert_eq!(world.tree(), ["d", "d/a", "d/b", "d/c", "d/x", "d/y", "d/z"]);
}

#[test]
fn a_path_without_a_directory_says_what_is_missing() {
    let mut world = World::new();
    let log = world.apply("files: {f: {path: no/where, content: x}}\n");
    assert!(log[0].contains("the directory around no/where is not there; declare it"), "{log:?}");
    assert_eq!(world.tree(), [""; 0]);
}
