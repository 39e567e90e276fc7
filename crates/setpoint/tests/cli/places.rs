//! Directories that change places with others, links whose target has another name, and roots that are not there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use setpoint_testutils::{need, part};

use crate::kills::{self, AT_WORK};
use crate::sandbox::{Sandbox, eventually};

/// Two directories in these places, with a file in the first.
fn two(a: &str, b: &str) -> String {
    format!(
        "directories:\n  a: {{path: {a}}}\n  b: {{path: {b}}}\nfiles:\n  f: {{path: {a}/f, content: x}}\n"
    )
}

#[test]
fn directories_change_places_with_what_nobody_declared_in_them() {
    let sandbox = Sandbox::new(&two("one", "two"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("one/mine", "1");
    sandbox.write("two/theirs", "2");
    sandbox.declare(&two("two", "one"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["one", "one/theirs", "two", "two/f", "two/mine"]);
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    // What holds something else is not removed.
    let refused = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(refused.code(), 1);
    fs::remove_file(sandbox.path("one/theirs")).unwrap();
    fs::remove_file(sandbox.path("two/mine")).unwrap();
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), [""; 0]);
}

#[test]
fn directories_that_were_taken_over_change_places_and_stay_in_the_end() {
    let with = |a: &str, b: &str| {
        format!(
            "directories:\n  a: {{path: {a}, adopt: true, mode: '0700'}}\n  b: {{path: {b}, adopt: true}}\n"
        )
    };
    let sandbox = Sandbox::new(&with("one", "two"));
    for directory in ["one", "two"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
        sandbox.write(&format!("{directory}/was-{directory}"), "");
    }
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&with("two", "one"));
    sandbox.ok(&["apply", "--yes"]);
    let swapped = ["one", "one/was-two", "two", "two/was-one"];
    assert_eq!(sandbox.tree(), swapped);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), swapped, "they were not Setpoint's");
}

/// Killed at any instant, the next run goes on with what was set aside.
#[test]
fn directories_that_change_places_lose_nothing_when_runs_are_killed() {
    let sandbox = Sandbox::new(&two("one", "two"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("one/a", "a");
    sandbox.write("two/b", "b");
    let mut killed = 0;
    for round in 0_u64..400 {
        let (a, b) = if round % 2 == 0 { ("two", "one") } else { ("one", "two") };
        sandbox.declare(&two(a, b));
        let most = AT_WORK[usize::try_from(round).unwrap() % AT_WORK.len()];
        let after = Duration::from_micros((round * 7919) % most);
        killed += u64::from(kills::killed(&sandbox, &["apply", "--yes"], after));
        if round % 3 == 0 {
            sandbox.ok(&["apply", "--yes"]);
            let mut wanted =
                [a.to_owned(), format!("{a}/a"), format!("{a}/f"), b.to_owned(), format!("{b}/b")];
            wanted.sort();
            assert_eq!(sandbox.tree(), wanted, "round {round}");
            assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
        }
        if killed == 40 {
            break;
        }
    }
    assert_eq!(killed, 40, "so many runs were killed in time");
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_directory_takes_the_place_of_an_undeclared_one_that_is_in_use() {
    let sandbox = Sandbox::new("directories:\n  d: {path: old}\nfiles:\n  f: {path: new/f, content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("new/mine", "1");
    sandbox.declare("directories:\n  d: {path: new, mode: '0750'}\nfiles:\n  f: {path: new/f, content: x}\n");
    let done = sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["new", "new/f", "new/mine"], "{done}");
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(sandbox.path("new")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o750);
    sandbox.declare("directories:\n  d: {path: new}\nfiles:\n  f: {path: other/f, content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("new/more", "2");
    sandbox.declare("directories:\n  d: {path: other}\nfiles:\n  f: {path: other/f, content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    // Two directories that hold something can't become one: the old one is left to whoever uses it.
    assert_eq!(sandbox.tree(), ["new", "new/mine", "new/more", "other", "other/f"]);
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
}

#[test]
fn an_undeclared_directory_that_is_not_empty_is_let_go_and_not_reported_as_deleted() {
    let sandbox = Sandbox::new("files:\n  f: {path: d/f, content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("d/mine", "1");
    sandbox.declare("");
    let done = sandbox.ok(&["apply", "--yes"]);
    assert!(done.contains("directory/d/ released") && done.contains("1 deleted, 1 released"), "{done}");
    assert_eq!(sandbox.tree(), ["d", "d/mine"]);
}

#[test]
fn a_link_stays_as_it_is_when_its_target_has_another_name_or_fails() {
    let with = |name: &str, rest: &str| {
        format!(
            "directories:\n  {name}: {{path: releases/2{rest}}}\nsymlinks:\n  current: {{target: releases/2}}\n"
        )
    };
    let sandbox = Sandbox::new(&with("two", ""));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&with("second", ""));
    let plan = sandbox.ok(&["plan"]);
    assert!(!plan.contains("symlink/current"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    // The new item fails: the link points to what is there.
    sandbox.write("other", "in the way");
    sandbox.declare(
        "directories:\n  other:\nfiles:\n  third: {path: releases/2, content: x}\nsymlinks:\n  current: {target: releases/2}\n",
    );
    sandbox.write("releases/2/mine", "");
    let failed = sandbox.run(&["apply", "--yes"]);
    assert_eq!(failed.code(), 1, "{}", failed.out());
    assert!(sandbox.path("current").is_symlink(), "{}", failed.out());
}

/// A file system of its own, for as long as this lives.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    pub(crate) fn new(at: PathBuf, size: &str) -> Self {
        let options = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).output().unwrap();
        assert!(mounted.status.success(), "{mounted:?}");
        Self(at)
    }

    /// One directory in the place of another.
    fn bind(directory: &Path, at: PathBuf) -> Self {
        let mounted = Command::new("mount").arg("--bind").args([directory, &at]).output().unwrap();
        assert!(mounted.status.success(), "{mounted:?}");
        Self(at)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_root_whose_file_system_is_not_mounted_is_not_filled() {
    need!(part::root("a file system of its own"));
    let sandbox = Sandbox::new("");
    fs::create_dir_all(sandbox.path("disk")).unwrap();
    let mounted = Mounted::new(sandbox.path("disk"), "1m");
    sandbox.declare("root: disk\nfiles:\n  f: {content: x}\n");
    sandbox.ok(&["apply", "--yes"]);
    drop(mounted);
    for args in [&["plan"][..], &["apply", "--yes"], &["destroy", "--yes"], &["watch"]] {
        let refused = sandbox.run(args);
        assert_eq!(refused.code(), 1, "{args:?}: {}", refused.out());
        assert!(refused.err().contains("disk is not mounted"), "{}", refused.err());
        assert!(refused.err().contains("hint: nothing was changed; mount it"), "{}", refused.err());
    }
    assert_eq!(entries(&sandbox.path("disk")), [""; 0]);
    // What was moved off the file system by hand is taken over, after having been looked at.
    assert_eq!(sandbox.run(&["state", "relocate"]).code(), 1);
    sandbox.write("disk/f", "x");
    sandbox.ok(&["state", "relocate"]);
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
}

#[test]
fn what_is_on_a_disk_that_is_not_mounted_is_not_made_on_the_bare_mount_point() {
    need!(part::root("a file system of its own"));
    let sandbox = Sandbox::new(
        "directories: {sub: {path: d/sub}}\nfiles: {f: {path: d/f, content: x}, g: {path: d/sub/g, content: x}, \
         other: {content: x}}\nsymlinks: {l: {path: d/l, target: f}}\n",
    );
    for directory in ["d", "disk"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    let mount = || Mounted::bind(&sandbox.path("disk"), sandbox.path("d"));
    let mounted = mount();
    sandbox.ok(&["apply", "--yes"]);
    drop(mounted);
    fs::remove_file(sandbox.path("other")).unwrap();
    for args in [&["apply", "--yes"][..], &["apply", "--yes", "--target", "file.f"]] {
        let refused = sandbox.run(args);
        assert_eq!(refused.code(), 1, "{}{}", refused.out(), refused.err());
        let why = "d/f can't be looked at: the directory that it was in is not d any more; mount it";
        assert!(refused.err().contains(why), "{}", refused.err());
        assert_eq!(entries(&sandbox.path("d")), [""; 0]);
    }
    assert_eq!(sandbox.read("other"), "x", "the rest goes on");
    let mounted = mount();
    assert!(sandbox.ok(&["plan"]).contains("nothing to do"));
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(entries(&sandbox.path("disk")), [""; 0]);
    drop(mounted);
}

#[test]
fn a_directory_that_was_made_for_a_file_on_a_disk_that_is_not_mounted_is_not_forgotten_for_another_one() {
    need!(part::root("a file system of its own"));
    let sandbox = Sandbox::new("files: {h: {path: mnt/d/h, content: h}, z: {content: z}}\n");
    fs::create_dir(sandbox.path("mnt")).unwrap();
    fs::create_dir(sandbox.path("disk")).unwrap();
    let mount = || Mounted::bind(&sandbox.path("disk"), sandbox.path("mnt"));
    let mounted = mount();
    sandbox.ok(&["apply", "--yes"]);
    drop(mounted);
    sandbox.declare("files: {z: {content: z}}\n");
    fs::create_dir(sandbox.path("mnt/d")).unwrap();
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    let _mounted = mount();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(entries(&sandbox.path("disk")), [""; 0]);
}

#[test]
fn what_can_not_move_to_another_file_system_is_made_anew_there_on_demand() {
    need!(part::root("a file system of its own"));
    let sandbox = Sandbox::new("files:\n  f: {content: x}\n");
    fs::create_dir_all(sandbox.path("disk")).unwrap();
    let _mounted = Mounted::new(sandbox.path("disk"), "1m");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files:\n  f: {path: disk/f, content: x}\n");
    let failed = sandbox.run(&["apply", "--yes"]);
    assert_eq!(failed.code(), 1);
    assert!(failed.out().contains("on another file system; `--replace` with this item"), "{}", failed.out());
    assert_eq!(sandbox.read("f"), "x");
    sandbox.ok(&["apply", "--yes", "--replace", "file.f"]);
    assert_eq!((sandbox.read("disk/f").as_str(), sandbox.path("f").exists()), ("x", false));
}

/// Applies, puts something else's file there, declares something else, and expects to be refused without any change.
fn refused(first: &str, theirs: &[(&str, &str)], second: &str, why: &str) {
    let sandbox = Sandbox::new(first);
    sandbox.ok(&["apply", "--yes"]);
    for (path, text) in theirs {
        sandbox.write(path, text);
    }
    let before = sandbox.tree();
    sandbox.declare(second);
    for command in [&["plan"][..], &["apply", "--yes"], &["apply", "--yes"]] {
        let refused = sandbox.run(command);
        assert_eq!(refused.code(), 1, "{command:?}: {}", refused.out());
        assert!(refused.err().contains(why), "{command:?}: {}", refused.err());
        assert!(refused.err().contains("two steps"), "{}", refused.err());
    }
    assert_eq!(sandbox.tree(), before);
    for (path, text) in theirs {
        assert_eq!(sandbox.read(path), *text);
    }
}

#[test]
fn what_is_inside_of_a_directory_that_can_not_move_does_not_come_into_somebody_elses() {
    let declared = |d: &str, more: &str| {
        format!(
            "directories: {{d: {{path: {d}}}, x: {{path: {d}/x}}}}\nfiles: {{f: {{path: {d}/f, content: x}}{more}}}\n\
             symlinks: {{l: {{path: {d}/l, target: f}}}}\n"
        )
    };
    let sandbox = Sandbox::new(&declared("a", ""));
    sandbox.ok(&["apply", "--yes"]);
    fs::create_dir(sandbox.path("b")).unwrap();
    sandbox.write("b/theirs", "precious");
    sandbox.declare(&declared("b", ", g: {path: b/g, content: new}"));
    for _ in 0..2 {
        let failed = sandbox.run(&["apply", "--yes"]);
        assert_eq!(failed.code(), 1, "{}", failed.out());
        assert_eq!(sandbox.tree(), ["a", "a/f", "a/l", "a/x", "b", "b/theirs"], "{}", failed.out());
    }
    fs::rename(sandbox.path("b"), sandbox.path("away")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["away", "away/theirs", "b", "b/f", "b/g", "b/l", "b/x"]);
}

#[test]
fn a_file_that_stays_where_its_directory_leaves_is_refused() {
    let file = "files: {f: {path: p1/f, content: x}}\n";
    let declared = |d: &str, e: &str| format!("directories: {{d: {{path: {d}}}, e: {{path: {e}}}}}\n{file}");
    let why = "file/f is inside of directory/d, which moves, and would come to p2/f; it is declared as p1/f";
    refused(&declared("p1", "p2"), &[("p2/f", "precious")], &declared("p2", "p1"), why);
    refused(&declared("p1", "p3"), &[], &declared("p2", "p3"), why);
}

#[test]
fn a_file_has_another_name_in_a_directory_that_moves_and_replaces_nothing_there() {
    let declared = |d: &str, f: &str| {
        format!("directories: {{d: {{path: {d}}}}}\nfiles: {{f: {{path: {f}, content: x}}}}\n")
    };
    let sandbox = Sandbox::new(&declared("p1", "p1/a"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("p1/b", "precious");
    sandbox.declare(&declared("p2", "p2/b"));
    for _ in 0..3 {
        let failed = sandbox.run(&["apply", "--yes"]);
        assert_eq!(failed.code(), 1, "{}", failed.out());
        assert!(failed.out().contains("p2/b is there already"), "{}{}", failed.out(), failed.err());
        assert_eq!(sandbox.tree(), ["p2", "p2/a", "p2/b"]);
        assert_eq!((sandbox.read("p2/a"), sandbox.read("p2/b")), ("x".to_owned(), "precious".to_owned()));
    }
    fs::remove_file(sandbox.path("p2/b")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["p2", "p2/b"]);
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), [""; 0]);
}

#[test]
fn a_file_leaves_a_directory_that_moves_for_the_one_that_takes_its_place() {
    let declared = |d: &str, e: &str, f: &str| {
        format!(
            "directories: {{d: {{path: {d}}}, e: {{path: {e}}}}}\nfiles: {{f: {{path: {f}, content: x}}}}\n"
        )
    };
    let sandbox = Sandbox::new(&declared("p1", "p3", "p1/f"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("p3/f", "precious");
    sandbox.declare(&declared("p2", "p1", "p1/g"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["p1", "p1/f", "p1/g", "p2"]);
    assert_eq!((sandbox.read("p1/f"), sandbox.read("p1/g")), ("precious".to_owned(), "x".to_owned()));
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}

#[test]
fn the_log_of_a_process_in_a_directory_that_moves_is_no_exception() {
    let declared = |d: &str| {
        format!(
            "directories: {{d: {{path: {d}}}}}\nprocesses: {{p: {{command: 'sleep 1000', log: p1/log}}}}\n"
        )
    };
    let sandbox = Sandbox::new(&declared("p1"));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&declared("p2"));
    let refused = sandbox.run(&["apply", "--yes"]);
    assert!(refused.err().contains("is inside of directory/d"), "{}", refused.err());
    sandbox.declare(&declared("p1"));
    sandbox.ok(&["destroy", "--yes"]);
}

#[test]
fn what_is_reached_through_a_link_that_is_to_point_elsewhere_is_refused() {
    let declared = |target: &str| {
        format!(
            "symlinks: {{current: {{target: {target}}}}}\nfiles: {{conf: {{path: current/conf, content: x}}}}\n"
        )
    };
    let sandbox = Sandbox::new(&declared("r1"));
    for release in ["r1", "r2"] {
        fs::create_dir(sandbox.path(release)).unwrap();
    }
    sandbox.write("r2/conf", "precious");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&declared("r2"));
    for _ in 0..2 {
        let refused = sandbox.run(&["apply", "--yes"]);
        assert_eq!(refused.code(), 1);
        let why = "file/conf is reached through symlink/current, which is to point elsewhere";
        assert!(refused.err().contains(why), "{}", refused.err());
    }
    assert_eq!(sandbox.read("r2/conf"), "precious");
    assert_eq!(fs::read_link(sandbox.path("current")).unwrap(), Path::new("r1"));
}

#[test]
fn three_directories_take_each_others_places_with_all_that_is_in_them() {
    let declared = |x: &str, y: &str, z: &str| {
        let file = |name: &str, path: &str| format!("{name}: {{path: {path}/f, content: {name}}}");
        format!(
            "directories: {{x: {{path: {x}}}, y: {{path: {y}}}, z: {{path: {z}}}}}\nfiles: {{{}, {}, {}}}\n",
            file("a", x),
            file("b", y),
            file("c", z)
        )
    };
    let sandbox = Sandbox::new(&declared("x", "y", "z"));
    sandbox.ok(&["apply", "--yes"]);
    for place in ["x", "y", "z"] {
        sandbox.write(&format!("{place}/mine"), place);
    }
    sandbox.declare(&declared("y", "z", "x"));
    sandbox.ok(&["apply", "--yes"]);
    for (place, file, mine) in [("y", "a", "x"), ("z", "b", "y"), ("x", "c", "z")] {
        assert_eq!(sandbox.read(&format!("{place}/f")), file);
        assert_eq!(sandbox.read(&format!("{place}/mine")), mine);
    }
    assert_eq!(sandbox.tree().len(), 9, "{:?}", sandbox.tree());
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}

#[test]
fn watch_goes_on_with_what_stood_before_where_moves_are_refused() {
    let declared =
        |d: &str| format!("directories: {{d: {{path: {d}}}}}\nfiles: {{f: {{path: p1/f, content: x}}}}\n");
    let sandbox = Sandbox::new(&declared("p1"));
    let mut watching = sandbox.start(&["watch"]);
    eventually("it is there", || sandbox.path("p1/f").exists());
    sandbox.declare(&declared("p2"));
    watching.until("this can't be done at once");
    assert_eq!(sandbox.tree(), [".log", "p1", "p1/f"]);
    sandbox.declare("directories: {d: {path: p2}}\nfiles: {f: {path: p2/f, content: x}}\n");
    eventually("it moved along", || sandbox.path("p2/f").exists());
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0);
}

#[test]
fn what_is_to_come_to_the_place_of_an_original_is_refused_unless_it_takes_that_over() {
    let with = |motd: &str, conf: &str, adopt: &str| {
        format!(
            "files:\n  motd: {{path: {motd}, content: M, adopt: true}}\n  conf: {{path: {conf}, content: C{adopt}}}\n"
        )
    };
    let sandbox = Sandbox::new(&with("motd", "conf", ""));
    sandbox.write("motd", "theirs");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(&with("m2", "motd", ""));
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1);
    let why = "file/conf is to be motd, where what was there before Setpoint goes back, as file/motd leaves";
    assert!(refused.err().contains(why) && refused.err().contains("adopt: true"), "{}", refused.err());
    assert_eq!((sandbox.read("motd"), sandbox.read("conf")), ("M".to_owned(), "C".to_owned()));
    sandbox.declare(&with("m2", "motd", ", adopt: true"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!((sandbox.read("m2"), sandbox.read("motd")), ("M".to_owned(), "C".to_owned()));
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!((sandbox.tree(), sandbox.read("motd")), (vec!["motd".to_owned()], "theirs".to_owned()));
}

#[test]
fn what_is_in_the_way_of_a_creation_is_said_each_time() {
    let sandbox = Sandbox::new("files: {a: {content: ours}}\n");
    sandbox.write("a", "theirs");
    for _ in 0..2 {
        let plan = sandbox.ok(&["plan"]);
        assert!(plan.contains("file/a can't be created: a is there already"), "{plan}");
        assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    }
}

#[test]
fn what_is_to_come_into_a_directory_that_another_one_has_to_leave_first_is_refused() {
    let with = |a: &str, b: &str, c: &str| {
        format!("directories: {{a: {{path: {a}}}, b: {{path: {b}}}, c: {{path: {c}}}}}\n")
    };
    for (first, second) in [(["q", "r", "p"], ["r", "q/i", "q"]), (["q", "p", "x"], ["p", "p/i", "x"])] {
        let sandbox = Sandbox::new(&with(first[0], first[1], first[2]));
        sandbox.ok(&["apply", "--yes"]);
        for (at, name) in first.iter().zip(["a", "b", "c"]) {
            sandbox.write(&format!("{at}/{name}"), name);
        }
        let before = sandbox.tree();
        sandbox.declare(&with(second[0], second[1], second[2]));
        let refused = sandbox.run(&["apply", "--yes"]);
        assert_eq!(refused.code(), 1, "{}", refused.out());
        assert!(refused.err().contains("directory/b is to be"), "{}", refused.err());
        assert!(refused.err().contains("comes there when"), "{}", refused.err());
        assert_eq!(sandbox.tree(), before);
    }
}

#[test]
fn what_is_set_aside_is_found_under_the_new_name_of_its_item() {
    let with = |f: &str, g: &str, places: [&str; 2], more: &str| {
        let [first, second] = places;
        format!(
            "files:\n  {f}: {{path: {first}, content: F{more}}}\n  {g}: {{path: {second}, content: G{more}}}\n"
        )
    };
    let sandbox = Sandbox::new(&with("f", "g", ["one", "two"], ""));
    sandbox.ok(&["apply", "--yes"]);
    // One makes room for the other, and can't be made.
    sandbox.declare(&with("f", "g", ["two", "one"], ", owner: nobody-is-called-so"));
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    assert!(sandbox.tree().iter().any(|path| path.starts_with(".setpoint-aside-")), "{:?}", sandbox.tree());
    for (from, to) in [("file.f", "file.x"), ("file.g", "file.y")] {
        sandbox.ok(&["state", "mv", from, to]);
    }
    sandbox.declare(&with("x", "y", ["two", "one"], ""));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["one", "two"]);
    assert_eq!((sandbox.read("two"), sandbox.read("one")), ("F".to_owned(), "G".to_owned()));
    sandbox.ok(&["destroy", "--yes"]);
    assert!(sandbox.tree().is_empty(), "{:?}", sandbox.tree());
}

#[test]
fn what_is_set_aside_is_not_forgotten_without_a_word() {
    let with = |[first, second]: [&str; 2], more: &str| {
        format!("directories:\n  a: {{path: {first}{more}}}\n  b: {{path: {second}{more}}}\n")
    };
    let sandbox = Sandbox::new(&with(["one", "two"], ""));
    sandbox.ok(&["apply", "--yes"]);
    sandbox.write("one/mine", "a");
    sandbox.write("two/mine", "b");
    // One makes room for the other, and can't be made.
    sandbox.declare(&with(["two", "one"], ", owner: nobody-is-called-so"));
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    let aside = || sandbox.tree().into_iter().find(|path| path.starts_with(".setpoint-aside-")).unwrap();
    let before = sandbox.tree();
    let path = sandbox.path(&aside()).display().to_string();
    let refused = sandbox.run(&["state", "rm", "directory.a", "directory.b"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.err().contains(&path) && refused.err().contains("--force"), "{}", refused.err());
    assert_eq!(sandbox.ok(&["state", "list"]).lines().count(), 2, "nothing is forgotten");
    let forgotten = sandbox.ok(&["state", "rm", "--force", "directory.a", "directory.b"]);
    assert!(forgotten.contains(&format!("also what was set aside at {path}")), "{forgotten}");
    assert_eq!(sandbox.tree(), before);
    assert_eq!(sandbox.ok(&["state", "list"]), "");
}

/// A run that was killed while it wrote a file.
pub(crate) fn killed_while_writing(sandbox: &Sandbox) -> String {
    let temporary = || sandbox.tree().into_iter().find(|path| path.starts_with(".setpoint-"));
    let attempt = || {
        let mut applying = sandbox.start(&["apply", "--yes"]);
        while applying.child.try_wait().unwrap().is_none() {
            if temporary().is_some() {
                applying.signal(Signal::SIGKILL);
                break;
            }
        }
        let _ = applying.child.wait();
        let left = temporary();
        if left.is_none() {
            sandbox.ok(&["destroy", "--yes", "--target", "file.large"]);
        }
        left
    };
    // On any machine, one of so many runs is killed while it writes.
    (0..50).find_map(|_| attempt()).unwrap()
}

#[test]
fn what_a_killed_run_left_lying_about_is_removed_also_by_who_mends_the_state() {
    let sandbox = Sandbox::new("files:\n  large: {source: source}\n  f: {content: x}\n");
    fs::File::create(sandbox.path("source")).unwrap().set_len(64 << 20).unwrap();
    sandbox.ok(&["apply", "--yes", "--target", "file.f"]);
    let temporary = killed_while_writing(&sandbox);
    sandbox.ok(&["state", "mv", "file.f", "file.g"]);
    assert!(!sandbox.path(&temporary).exists(), "{:?}", sandbox.tree());
}

#[test]
fn a_plan_shows_what_becomes_of_what_was_set_aside() {
    let with = |[first, second]: [&str; 2], more: &str| {
        format!(
            "files:\n  f: {{path: {first}, content: F{more}}}\n  g: {{path: {second}, content: G{more}}}\n"
        )
    };
    let sandbox = Sandbox::new(&with(["one", "two"], ""));
    sandbox.ok(&["apply", "--yes"]);
    // One makes room for the other, and can't be made.
    sandbox.declare(&with(["two", "one"], ", owner: nobody-is-called-so"));
    assert_eq!(sandbox.run(&["apply", "--yes"]).code(), 1);
    assert!(sandbox.tree().iter().any(|path| path.starts_with(".setpoint-aside-")), "{:?}", sandbox.tree());
    sandbox.declare("files: {h: {content: H}}\n");
    let plan = sandbox.ok(&["plan", "--out", "kept"]);
    assert!(plan.contains("file/f") && plan.contains("file/g"), "{plan}");
    let drawn = sandbox.ok(&["graph", "--plan"]);
    assert!(drawn.contains("tooltip=\"file/f") && drawn.contains("tooltip=\"file/g"), "{drawn}");
    sandbox.ok(&["apply", "kept"]);
    assert_eq!(sandbox.tree(), ["h", "kept"]);
}
