//! What failed, or can't be reached, is nobody's loss: it is left as it is, said, and not forgotten.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use nix::sys::signal::Signal;
use rustix::fs::IFlags;
use setpoint_testutils::{Missing, need, part};

use crate::places::Mounted;
use crate::processes::Processes;
use crate::sandbox::{Sandbox, eventually};

/// Marks a file or directory as not to be changed, as `chattr +i` does, for as long as this lives.
pub(crate) struct Immutable(fs::File);

impl Immutable {
    pub(crate) fn new(path: &Path) -> Result<Self, Missing> {
        let file = fs::File::open(path).unwrap();
        let missing =
            |error: rustix::io::Errno| Missing::new("a file that may not be changed", error.to_string());
        let flags = rustix::fs::ioctl_getflags(&file).map_err(missing)?;
        rustix::fs::ioctl_setflags(&file, flags | IFlags::IMMUTABLE).map_err(missing)?;
        Ok(Self(file))
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        if let Ok(flags) = rustix::fs::ioctl_getflags(&self.0) {
            let _ = rustix::fs::ioctl_setflags(&self.0, flags - IFlags::IMMUTABLE);
        }
    }
}

#[test]
fn an_adopted_file_that_may_not_be_changed_is_not_forgotten_by_destroy() {
    need!(part::root("files that may not be changed"));
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}}\n");
    sandbox.write("f", "theirs");
    sandbox.ok(&["apply", "--yes"]);
    let immutable = need!(Immutable::new(&sandbox.path("f")));
    for _ in 0..2 {
        let destroyed = sandbox.run(&["destroy", "--yes"]);
        assert_eq!(destroyed.code(), 1, "{}", destroyed.out());
        assert!(destroyed.out().contains("f is marked as not to be changed"), "{}", destroyed.out());
        assert!(destroyed.out().contains("chattr -ia"), "{}", destroyed.out());
    }
    drop(immutable);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("f"), "theirs");
}

#[test]
fn an_adoption_that_failed_leaves_the_file_to_whom_it_belongs() {
    need!(part::root("files that may not be changed"));
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}, other: {content: x}}\n");
    sandbox.write("f", "theirs");
    let immutable = need!(Immutable::new(&sandbox.path("f")));
    let failed = sandbox.run(&["apply", "--yes"]);
    assert_eq!(failed.code(), 1, "{}", failed.out());
    drop(immutable);
    // It was never replaced: what they write from now on is not to be put back to what it was.
    sandbox.write("f", "newer");
    sandbox.declare("files: {other: {content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("f"), "newer");
    assert_eq!(sandbox.ok(&["state", "kept"]), "Nothing is kept.\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("f"), "newer");
}

#[test]
fn a_command_of_ours_that_holds_again_is_still_undone() {
    let sandbox = Sandbox::new(
        "files: {f: {content: x}}\ncommands:\n  c: {check: test -e f && test -e done, apply: touch done, \
         undo: rm done, after: [file.f]}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("f")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert!(!sandbox.ok(&["state", "show", "command.c"]).contains("adopted"));
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("done").exists());
}

#[test]
fn the_original_of_a_link_is_known_although_the_state_has_forgotten_it() {
    let sandbox = Sandbox::new("symlinks: {l: {target: ours, adopt: true}}\n");
    symlink("theirs", sandbox.path("l")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "rm", "symlink.l"]);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(fs::read_link(sandbox.path("l")).unwrap(), Path::new("theirs"));
}

#[test]
fn what_was_in_a_directory_that_nobody_declared_is_gone_with_it() {
    let declared = "files: {f: {path: d/f, content: x}, g: {content: x}, h: {path: d/sub/h, content: x}, \
                    i: {path: etc/i/i, content: x}}\ndirectories: {sub: {path: d/sub}}\n";
    let sandbox = Sandbox::new(declared);
    for directory in ["d", "etc", "etc/i"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    sandbox.write("etc/hosts", "");
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_dir_all(sandbox.path("d")).unwrap();
    fs::remove_dir_all(sandbox.path("etc/i")).unwrap();
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["etc", "etc/hosts"]);
    let known = sandbox.ok(&["state", "list"]);
    assert!(!known.contains("file/") && !known.contains("directory/"), "{known}");
}

#[test]
fn what_is_on_a_disk_that_is_not_mounted_is_not_forgotten_by_destroy() {
    need!(part::root("a file system of its own"));
    let sandbox = Sandbox::new("files: {f: {path: d/f, content: x}}\n");
    fs::create_dir(sandbox.path("d")).unwrap();
    let bind = |args: &[&str]| {
        let mounted = std::process::Command::new("mount").args(args).current_dir(sandbox.root()).output();
        assert!(mounted.as_ref().is_ok_and(|mounted| mounted.status.success()), "{mounted:?}");
    };
    fs::create_dir(sandbox.path("disk")).unwrap();
    bind(&["--bind", "disk", "d"]);
    sandbox.ok(&["apply", "--yes"]);
    let unmounted = std::process::Command::new("umount").arg(sandbox.path("d")).status().unwrap();
    assert!(unmounted.success());
    let destroyed = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(destroyed.code(), 1, "{}", destroyed.out());
    fs::remove_dir(sandbox.path("d")).unwrap();
    fs::rename(sandbox.path("disk"), sandbox.path("d")).unwrap();
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["d"]);
}

/// As one that is not mounted: an empty directory is where it was, or around that.
#[test]
fn what_is_in_a_directory_that_is_another_one_is_not_forgotten() {
    let sandbox = Sandbox::new(
        "files: {f: {path: d/f, content: x}, g: {content: x}, h: {path: disk/sub/h, content: x}}\n",
    );
    for directory in ["d", "disk", "disk/sub"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    sandbox.ok(&["apply", "--yes"]);
    for directory in ["d", "disk"] {
        fs::rename(sandbox.path(directory), sandbox.path(&format!("{directory}-away"))).unwrap();
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    sandbox.declare("files: {g: {content: y}}\n");
    for args in [&["plan"][..], &["apply", "--yes"], &["destroy", "--yes"], &["destroy", "--yes"]] {
        let ran = sandbox.run(args);
        assert_eq!(ran.code(), 1, "{}", ran.out());
        let text = ran.out() + &ran.err();
        assert!(text.contains("d/f can't be looked at"), "{text}");
        assert!(text.contains("disk/sub/h can't be looked at"), "{text}");
        assert!(text.contains("setpoint state rm"), "{text}");
        if args[0] == "apply" {
            assert_eq!(sandbox.read("g"), "y", "the rest is done");
        }
    }
    assert!(!sandbox.path("g").exists(), "the rest is gone");
    for directory in ["d", "disk"] {
        fs::remove_dir(sandbox.path(directory)).unwrap();
        fs::rename(sandbox.path(&format!("{directory}-away")), sandbox.path(directory)).unwrap();
    }
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), ["d", "disk", "disk/sub"]);
}

#[test]
fn what_is_declared_is_made_again_with_the_directory_around_it() {
    let sandbox = Sandbox::new("files: {f: {path: d/f, content: x}}\n");
    fs::create_dir(sandbox.path("d")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_dir_all(sandbox.path("d")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("d/f"), "x");
}

/// Sets an extended attribute where the file system has them.
pub(crate) fn set_attribute(path: &Path, name: &str, value: &[u8]) -> Result<(), Missing> {
    let set = rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty());
    set.map_err(|error| Missing::new("extended attributes", format!("{name}: {error}")))
}

#[test]
fn the_attributes_of_an_original_come_back_although_the_file_was_gone() {
    need!(part::root("an attribute that only root may set"));
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}}\n");
    sandbox.write("f", "theirs");
    // An access control list: the owner, user 1234, the group, the mask and others.
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 4, 1234), (4, 4, u32::MAX), (16, 4, u32::MAX), (32, 4, u32::MAX)];
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        acl.extend(tag.to_le_bytes().into_iter().chain(permissions.to_le_bytes()).chain(id.to_le_bytes()));
    }
    let kept = [("system.posix_acl_access", acl), ("trusted.mark", b"precious".to_vec())];
    for (name, value) in &kept {
        need!(set_attribute(&sandbox.path("f"), name, value));
    }
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("f")).unwrap();
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("f"), "theirs");
    for (name, value) in kept {
        let mut found = vec![0; 1024];
        let length = rustix::fs::getxattr(sandbox.path("f"), name, &mut found).unwrap();
        assert_eq!(found[..length], value, "{name}");
    }
}

#[test]
fn other_names_of_a_file_that_is_taken_over_keep_what_they_hold_and_a_warning_says_so() {
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}}\n");
    sandbox.write("f", "theirs");
    fs::hard_link(sandbox.path("f"), sandbox.path("link")).unwrap();
    let applied = sandbox.run(&["apply", "--yes"]);
    assert_eq!(applied.code(), 0, "{}", applied.err());
    assert!(applied.err().contains("f has another name"), "{}", applied.err());
    assert_eq!((sandbox.read("f"), sandbox.read("link")), ("ours".into(), "theirs".into()));
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!((sandbox.read("f"), sandbox.read("link")), ("theirs".into(), "theirs".into()));
    let inode = |name: &str| fs::metadata(sandbox.path(name)).unwrap().ino();
    assert_ne!(inode("f"), inode("link"));
}

#[test]
fn watch_leaves_alone_what_can_not_be_read_and_what_restarts_with_it() {
    let declared = |content: &str| {
        format!(
            "files:\n  conf: {{content: {content}}}\n  other: {{content: {content}}}\nprocesses:\n  \
             web: {{command: 'echo $$ >> pids; exec sleep 600 # ${{file.conf.path}}'}}\n"
        )
    };
    let sandbox = Processes::new(&declared("one"));
    let mut watching = sandbox.start(&["watch"]);
    sandbox.pids(1);
    fs::remove_file(sandbox.path("conf")).unwrap();
    fs::create_dir(sandbox.path("conf")).unwrap();
    sandbox.declare(&declared("two"));
    eventually("the rest is changed", || sandbox.read("other") == "two");
    watching.until("file/conf can't be read");
    assert_eq!(sandbox.written().len(), 1, "{}", watching.log());
    fs::remove_dir(sandbox.path("conf")).unwrap();
    eventually("it is put right", || {
        fs::read_to_string(sandbox.path("conf")).is_ok_and(|text| text == "two")
    });
    sandbox.pids(2);
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
}

#[test]
fn watch_says_what_it_takes_over() {
    let declared = "files: {motd: {content: ours, adopt: true}}\n";
    let sandbox = Sandbox::new(declared);
    sandbox.write("motd", "theirs");
    let mut reporting = sandbox.start(&["watch", "--report-only"]);
    reporting.until("it exists and is adopted");
    reporting.signal(Signal::SIGTERM);
    assert_eq!(reporting.wait(), 0, "{}", reporting.log());
    let mut watching = sandbox.start(&["watch"]);
    eventually("it is taken over", || sandbox.read("motd") == "ours");
    eventually("that is saved", || sandbox.run(&["show", "1"]).out().contains("it exists and is adopted"));
    watching.signal(Signal::SIGTERM);
    assert_eq!(watching.wait(), 0, "{}", watching.log());
    assert!(sandbox.ok(&["show", "1"]).contains("theirs"), "{}", sandbox.ok(&["show", "1"]));
}

#[test]
fn watch_goes_on_where_its_output_has_no_room() {
    need!(part::root("a file system of a given size"));
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    fs::create_dir(sandbox.path("small")).unwrap();
    let _mounted = Mounted::new(sandbox.path("small"), "64k");
    let log = fs::File::create(sandbox.path("small/log")).unwrap();
    let errors = fs::File::create(sandbox.path("errors")).unwrap();
    let child = sandbox.command(&["watch", "--interval", "100ms"]).stdout(log).stderr(errors).spawn();
    let mut watching = crate::sandbox::Ended(child.unwrap());
    eventually("it is applied", || sandbox.path("f").exists());
    crate::full::fill(&sandbox.path("small/filler"));
    for _ in 0..3 {
        fs::remove_file(sandbox.path("f")).unwrap();
        eventually("it is put right", || sandbox.path("f").exists());
    }
    assert!(watching.0.try_wait().unwrap().is_none(), "{}", sandbox.read("errors"));
}

#[test]
fn a_directory_that_a_command_runs_in_is_made_anew_in_the_same_run() {
    let manifest = "directories: {work: {}}\ncommands: {made: {check: test -e it, apply: touch it, undo: rm it, cwd: work}}\n";
    let sandbox = Sandbox::new(manifest);
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_dir_all(sandbox.path("work")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.tree(), ["work", "work/it"]);
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    // One that goes can't be undone without it: nobody says that it was.
    fs::remove_dir_all(sandbox.path("work")).unwrap();
    sandbox.declare("directories: {work: {}}\n");
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.err().contains("work"), "{}", refused.err());
}

#[test]
fn a_directory_that_can_not_be_made_takes_nothing_away() {
    let file = "files: {a: {path: d/x, content: precious, prevent_destroy: true}}\n";
    let sandbox = Sandbox::new(file);
    fs::create_dir(sandbox.path("d")).unwrap();
    sandbox.ok(&["apply", "--yes"]);
    // It was there before, and nobody says that it is to be taken over.
    sandbox.declare(&format!("directories: {{d: {{mode: \"0755\"}}}}\n{file}"));
    for _ in 0..2 {
        let failed = sandbox.run(&["apply", "--yes"]);
        assert_eq!(failed.code(), 1, "{}", failed.out());
        assert!(!failed.out().contains("deleted") && !failed.out().contains("removed"), "{}", failed.out());
        assert_eq!(sandbox.read("d/x"), "precious");
    }
    sandbox.declare(&format!("directories: {{d: {{mode: \"0755\", adopt: true}}}}\n{file}"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("d/x"), "precious");
}

#[test]
fn what_moves_to_where_nothing_can_be_made_stays_where_it_is_and_is_not_undone() {
    let declared = "files: {a: {path: old/x, content: precious}}\ndirectories: {old: {}}\n\
                    commands: {db: {apply: echo data > db, undo: rm db}}\n";
    let sandbox = Sandbox::new(declared);
    sandbox.ok(&["apply", "--yes"]);
    let moved = |slow: &str| {
        format!(
            "files: {{a: {{path: d/x, content: precious}}}}\ndirectories: {{d: {{after: [command.slow]}}}}\n\
             commands:\n  slow: {{apply: \"{slow}\"}}\n  \
             db: {{apply: echo data > db, undo: rm $ROOT/db, cwd: d}}\n"
        )
    };
    let moved = |slow: &str| moved(slow).replace("$ROOT", sandbox.root().to_str().unwrap());
    sandbox.declare(&moved("false"));
    let failed = sandbox.run(&["apply", "--yes"]);
    assert_eq!(failed.code(), 1, "{}", failed.out());
    assert_eq!(sandbox.read("old/x"), "precious", "{}", failed.out());
    assert!(sandbox.path("db").exists(), "{}", failed.out());
    let explained = sandbox.ok(&["explain", "file.a"]);
    assert!(explained.contains("directory/d"), "{explained}");
    sandbox.declare(&moved("true"));
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("d/x"), "precious");
    assert!(!sandbox.path("old").exists() && sandbox.path("db").exists());
}
