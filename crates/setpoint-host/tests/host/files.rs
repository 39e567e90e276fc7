//! Directories, files and links on disk.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use futures::FutureExt;
use setpoint_engine::testkit;
use setpoint_graph::Name;
use setpoint_host::{
    Access, Content, Directories, Directory, File, Files, Mode, RootPath, Symlink, Symlinks,
};
use setpoint_testutils::part::Missing;
use setpoint_testutils::{need, part};

use crate::world::{ALL, World};

fn path(text: &str) -> RootPath {
    RootPath::new(text).unwrap()
}

#[test]
fn the_configurators_of_paths_keep_every_promise_that_can_be_checked() {
    let world = World::new();
    let access = |mode| Access { mode: Some(Mode::new(mode)), ..Access::default() };
    let file = |at: &str, content: &str, access| File {
        log: false,
        name: Name::from_static("f"),
        path: path(at),
        content: Content::from(content),
        sensitive: false,
        access,
        adopt: false,
        needs: Vec::new(),
    };
    let files = [
        file("one", "A", access(0o600)),
        file("one", "B", access(0o640)),
        file("two", "B", Access::default()),
        file("two", "", access(0o4711)),
    ];
    assert_eq!(world.block_on(testkit::check(Files::new(&world.host), &files)).findings, []);
    let directory = |at: &str, access| Directory {
        implicit: false,
        name: Name::from_static("d"),
        path: path(at),
        access,
        adopt: false,
        needs: Vec::new(),
    };
    let directories =
        [directory("d", access(0o700)), directory("e", access(0o755)), directory("e", Access::default())];
    assert_eq!(world.block_on(testkit::check(Directories::new(&world.host), &directories)).findings, []);
    let link = |at: &str, target: &str| Symlink {
        name: Name::from_static("l"),
        path: path(at),
        target: target.to_owned(),
        adopt: false,
        needs: Vec::new(),
    };
    let links = [link("l", "a"), link("l", "/b"), link("m", "../c"), link("m", "a")];
    assert_eq!(world.block_on(testkit::check(Symlinks::new(&world.host), &links)).findings, []);
    assert_eq!(world.tree(), [""; 0], "nothing is left behind");
}

#[test]
fn a_tree_is_made_changed_and_removed() {
    let mut world = World::new();
    let log = world.apply(
        "directories: {conf: {path: etc/app, mode: '0750'}, etc: }
files: {config: {path: etc/app/app.conf, content: 'a: 1', mode: '0604'}, key: {content: k, sensitive: true}}
symlinks: {current: {target: etc/app}}
",
    );
    assert_eq!(
        log,
        [
            "create directory/etc",
            "create file/key",
            "create directory/conf",
            "create file/config",
            "create symlink/current"
        ]
    );
    assert_eq!(world.tree(), ["current", "etc", "etc/app", "etc/app/app.conf", "key"]);
    let mode = |at: &str| fs::metadata(world.path(at)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("etc/app"), mode("etc/app/app.conf"), mode("key")), (0o750, 0o604, 0o600));
    assert_eq!(world.text("current/app.conf"), "a: 1");
    assert_eq!(world.drifted(), []);

    let log = world.apply("directories: {etc: }\nfiles: {key: {content: k2, sensitive: true}}\n");
    assert_eq!(log.len(), 4, "{log:?}");
    assert_eq!(world.tree(), ["etc", "key"]);
    world.destroy();
    assert_eq!(world.tree(), [""; 0]);
}

#[test]
fn another_path_is_a_rename_on_disk() {
    let mut world = World::new();
    world.apply(
        "directories: {d: }\nfiles: {f: {path: one, content: x}}\nsymlinks: {l: {path: ln, target: one}}\n",
    );
    let inode = |world: &World, at: &str| fs::symlink_metadata(world.path(at)).unwrap().ino();
    let (file, link) = (inode(&world, "one"), inode(&world, "ln"));
    let log = world.apply(
        "directories: {d: }\nfiles: {f: {path: d/two, content: x}}\nsymlinks: {l: {path: d/ln, target: one}}\n",
    );
    assert_eq!(log, ["modify file/f", "modify symlink/l"]);
    assert_eq!((inode(&world, "d/two"), inode(&world, "d/ln")), (file, link), "the very same file and link");
    world.apply("directories: {d: }\nfiles: {f: {path: three, content: y, mode: '0600'}}\n");
    assert_eq!(
        (world.text("three"), world.tree()),
        ("y".to_owned(), vec!["d".to_owned(), "three".to_owned()])
    );
}

#[test]
fn what_is_in_a_directory_moves_along_with_it() {
    let mut world = World::new();
    let with = |directory: &str, content: &str| {
        format!(
            "directories: {{d: {{path: {directory}}}, e: {{path: {directory}/e}}}}
files: {{f: {{path: {directory}/f, content: x}}, g: {{path: {directory}/e/g, content: {content}}}}}
symlinks: {{l: {{path: {directory}/l, target: f}}}}
"
        )
    };
    world.apply(&with("old", "a"));
    let inode = fs::metadata(world.path("old/f")).unwrap().ino();
    fs::write(world.path("old/theirs"), "not ours").unwrap();
    let log = world.apply(&with("new", "b"));
    assert!(log.iter().all(|line| line.starts_with("modify") && !line.contains("failed")), "{log:?}");
    assert_eq!(world.tree(), ["new", "new/e", "new/e/g", "new/f", "new/l", "new/theirs"]);
    assert_eq!(
        (fs::metadata(world.path("new/f")).unwrap().ino(), world.text("new/e/g")),
        (inode, "b".to_owned())
    );
    assert_eq!(world.drifted(), []);
}

#[test]
fn files_swap_their_places_and_keep_what_they_hold() {
    let mut world = World::new();
    world.apply("files: {a: {path: one, content: A}, b: {path: two, content: B}}\n");
    let log = world.apply("files: {a: {path: two, content: A}, b: {path: one, content: B}}\n");
    assert_eq!((world.text("one"), world.text("two")), ("B".into(), "A".into()), "{log:?}");
    assert_eq!(world.tree(), ["one", "two"]);
}

#[test]
fn a_file_that_becomes_a_link_is_made_anew() {
    let mut world = World::new();
    world.apply("files: {a: {path: x, content: A}}\n");
    let log = world.apply("symlinks: {a: {path: x, target: y}}\n");
    assert_eq!(log, ["delete file/a", "create symlink/a"]);
    assert_eq!(fs::read_link(world.path("x")).unwrap(), Path::new("y"));
    let log = world.apply("symlinks: {a: {path: x, target: z}}\n");
    assert_eq!(
        (log, fs::read_link(world.path("x")).unwrap()),
        (vec!["modify symlink/a".to_owned()], "z".into())
    );
}

#[test]
fn drift_is_seen_and_put_right() {
    let mut world = World::new();
    let yaml = "directories: {d: {mode: '0755'}}
files: {f: {path: d/f, content: x, mode: '0644'}, g: {content: y}, h: {content: z}}
symlinks: {l: {target: g}}
";
    world.apply(yaml);
    fs::write(world.path("d/f"), "changed").unwrap();
    fs::set_permissions(world.path("d"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(world.path("g"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(world.path("l")).unwrap();
    std::os::unix::fs::symlink("elsewhere", world.path("l")).unwrap();
    fs::remove_file(world.path("h")).unwrap();
    let drifted: Vec<String> = world.drifted().iter().map(ToString::to_string).collect();
    assert_eq!(
        drifted,
        ["directory/d", "file/f", "file/h", "symlink/l"],
        "the mode of g is nobody's business"
    );
    let log = world.apply(yaml);
    assert_eq!(log.len(), 4, "{log:?}");
    assert_eq!((world.text("d/f"), world.text("h")), ("x".into(), "z".into()));
    assert_eq!(fs::read_link(world.path("l")).unwrap(), Path::new("g"));
    assert_eq!(fs::metadata(world.path("d")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(world.drifted(), []);
}

#[test]
fn a_file_that_somebody_has_open_and_writes_to_is_not_replaced() {
    for adopt in [false, true] {
        let mut world = World::new();
        let yaml = format!("files: {{f: {{content: x, adopt: {adopt}}}}}\n");
        if adopt {
            fs::write(world.path("f"), "original").unwrap();
        }
        world.apply(&yaml);
        let mut file = fs::File::options().append(true).open(world.path("f")).unwrap();
        file.write_all(b"1").unwrap();
        assert_eq!(world.drifted(), [("file", "f").into()]);
        let log = world.apply(&yaml);
        assert!(log[0].contains("f is not replaced: somebody has it open and writes to it"), "{log:?}");
        file.write_all(b"2").unwrap();
        assert_eq!((world.text("f"), world.tree()), ("x12".to_owned(), vec!["f".to_owned()]));
        drop(file);
        world.refresh();
        let log = world.apply(&yaml);
        assert!(log.len() == 1 && log[0].starts_with("modify file/f (before that: "), "{log:?}");
        assert_eq!((world.text("f"), world.tree()), ("x".to_owned(), vec!["f".to_owned()]));
    }
}

#[test]
fn what_is_not_managed_stays_as_it_is_when_content_changes() {
    let mut world = World::new();
    world.apply("files: {f: {content: x}}\n");
    fs::set_permissions(world.path("f"), fs::Permissions::from_mode(0o611)).unwrap();
    world.apply("files: {f: {content: y}}\n");
    assert_eq!(fs::metadata(world.path("f")).unwrap().permissions().mode() & 0o777, 0o611);
}

#[test]
fn owners_are_known_by_name_and_by_number() {
    need!(part::root("a file of another user"));
    let mut world = World::new();
    world.apply(
        "files: {f: {content: x, owner: nobody, group: '12345'}}\ndirectories: {d: {owner: '54321'}}\n",
    );
    let file = fs::metadata(world.path("f")).unwrap();
    assert_eq!((file.uid() != 0, file.gid()), (true, 12345));
    assert_eq!(fs::metadata(world.path("d")).unwrap().uid(), 54321);
    assert_eq!(world.drifted(), []);
    std::os::unix::fs::chown(world.path("f"), Some(0), None).unwrap();
    assert_eq!(world.drifted(), [("file", "f").into()]);
    let log = world.apply("files: {f: {content: x, owner: nosuchuser}}\n");
    assert_eq!(log[0], "modify file/f, failed: there is no user \"nosuchuser\"");
}

#[test]
fn a_rewritten_file_keeps_its_access_control_list_and_what_users_attached() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    let mut world = World::new();
    world.apply("files: {f: {content: one, mode: '0640'}}\n");
    let path = world.path("f");
    // user::rw- user:1234:r-- group::r-- mask::r-- other::---
    let entries =
        [(1_u16, 6_u16, u32::MAX), (2, 4, 1234), (4, 4, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes().into_iter().chain(permissions.to_le_bytes()).chain(id.to_le_bytes()));
    }
    let attached = [("user.origin", b"backup".to_vec()), ("system.posix_acl_access", list)];
    for (name, value) in &attached {
        // Not every file system has them.
        let set = setxattr(&path, *name, value, XattrFlags::empty());
        need!(set.map_err(|error| Missing::new("extended attributes", format!("{name}: {error}"))));
    }
    let inode = fs::metadata(&path).unwrap().ino();
    world.apply("files: {f: {content: two, mode: '0640'}}\n");
    assert_eq!(world.text("f"), "two");
    assert_ne!(fs::metadata(&path).unwrap().ino(), inode, "it is another file");
    for (name, value) in &attached {
        let mut found = [0; 200];
        let length = getxattr(&path, *name, &mut found[..]).unwrap();
        assert_eq!(&found[..length], value, "{name}");
    }
    assert_eq!(world.drifted(), []);
}

/// The owner of a link, and what is attached to it.
fn attached_to_link(path: &Path, name: &str) -> (u32, u32, Option<Vec<u8>>) {
    let (found, mut value) = (fs::symlink_metadata(path).unwrap(), [0; 200]);
    let length = rustix::fs::lgetxattr(path, name, &mut value[..]).ok();
    (found.uid(), found.gid(), length.map(|length| value[..length].to_vec()))
}

#[test]
fn a_link_that_points_elsewhere_keeps_its_owner_and_what_is_attached_to_it() {
    need!(part::root("a link of another user"));
    let mut world = World::new();
    let with = |target: &str, adopt: bool| format!("symlinks: {{l: {{target: {target}, adopt: {adopt}}}}}\n");
    let (path, name) = (world.path("l"), "trusted.origin");
    let attach = || {
        std::os::unix::fs::lchown(&path, Some(1000), Some(1001)).unwrap();
        // Not every file system, and not every container, has them.
        let _ = rustix::fs::lsetxattr(&path, name, b"backup", rustix::fs::XattrFlags::empty());
        attached_to_link(&path, name)
    };
    world.apply(&with("a", false));
    let was = attach();
    world.apply(&with("b", false));
    assert_eq!(fs::read_link(&path).unwrap(), Path::new("b"));
    assert_eq!(attached_to_link(&path, name), was);
    world.destroy();
    // One that was there before has them in the end also where somebody has made it anew meanwhile.
    for is_made_anew in [false, true] {
        std::os::unix::fs::symlink("theirs", &path).unwrap();
        let was = attach();
        world.apply(&with("ours", true));
        world.settle();
        assert_eq!(attached_to_link(&path, name), was);
        if is_made_anew {
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("another", &path).unwrap();
        }
        world.destroy();
        assert_eq!(fs::read_link(&path).unwrap(), Path::new("theirs"));
        assert_eq!(attached_to_link(&path, name), was, "made anew: {is_made_anew}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn nobody_waits_for_a_large_file_to_be_read() {
    let mut world = World::new();
    world.apply("files: {small: {content: x}}\n");
    let mut current = world.current.clone().unwrap();
    let read_at_once = |world: &World, current: &mut _| {
        world.block_on(async { world.engine.refresh(current, &ALL).now_or_never().is_some() })
    };
    assert!(read_at_once(&world, &mut current), "a small one is no trouble");
    fs::File::create(world.path("small")).unwrap().set_len(64 << 20).unwrap();
    // The other thread may have been quicker than this one.
    assert!((0..100).any(|_| !read_at_once(&world, &mut current)));
    assert_eq!(world.drifted().len(), 1, "it is read all the same");
}

/// As where something else fails for long: then it is not forgotten where things were moved.
#[test]
fn a_file_that_comes_back_to_a_path_with_another_directory_is_known_by_that() {
    let declared = |one: Option<&str>, file: &str, content: &str| {
        let one = one.map_or_else(String::new, |path| format!(", one: {{path: {path}}}"));
        format!("directories: {{s: {one}}}\nfiles: {{f: {{path: {file}, content: {content}}}}}\n")
    };
    let mut world = World::new();
    for yaml in [
        declared(Some("one1"), "s/f", "a"),
        declared(Some("one1"), "one1/f", "a"),
        declared(Some("one1"), "s/f", "a"),
        declared(None, "s/f", "a"),
        declared(Some("one0"), "one0/f", "a"),
        declared(Some("one1"), "one1/f", "b"),
    ] {
        let log = world.apply(&yaml);
        assert!(log.iter().all(|line| !line.contains("failed")), "{yaml}: {log:?}");
    }
    assert_eq!(world.text("one1/f"), "b");
    world.settle();
    assert_eq!(world.drifted(), []);
    world.destroy();
    assert_eq!(world.tree(), [""; 0]);
}

#[test]
fn a_directory_into_which_a_file_was_moved_goes_after_it_also_where_the_rest_of_the_change_has_failed() {
    let mut world = World::new();
    let with = |file: &str| {
        format!(
            "directories: {{a: {{path: d1}}, b: {{path: d2}}}}\nfiles: {{own: {{{file}}}}}\n\
             commands: {{c: {{apply: 'true', redo_on: [file.own]}}}}\n"
        )
    };
    world.apply(&with("path: d1/own, content: one"));
    world.settle();
    let log = world.apply(&with("path: d2/own, content: two, owner: nosuchuser"));
    assert!(log[0].contains("there is no user"), "{log:?}");
    assert_eq!(world.tree(), ["d1", "d2", "d2/own"]);
    world.settle();
    let current = world.current.take();
    world.begin_again(current);
    assert_eq!(world.drifted(), [("file", "own").into()]);
    let log = world.destroy();
    assert!(log.iter().all(|line| !line.contains("failed to") && !line.contains(", failed")), "{log:?}");
    assert_eq!(world.tree(), [""; 0]);
}
