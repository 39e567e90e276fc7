//! Files that were there before: what can't be kept is not replaced.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::process::Command;

use setpoint_testutils::{need, part};

use crate::failed::set_attribute;
use crate::places::Mounted;
use crate::sandbox::Sandbox;

/// More than the largest original that is kept.
const TOO_LARGE: u64 = (16 << 20) + 1;
/// More than all originals together may be.
const TOO_MUCH: u64 = 128 << 20;

#[test]
fn a_file_that_is_too_large_to_be_kept_is_not_taken_over() {
    let sandbox = Sandbox::new("files: {big: {content: ours, adopt: true}}\n");
    fs::File::create(sandbox.path("big")).unwrap().set_len(TOO_LARGE).unwrap();
    let planned = sandbox.ok(&["plan"]);
    let warning = "warning: file/big can't be taken over: big is larger than 16 MiB";
    assert!(planned.contains(warning), "{planned}");
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.out().contains("! file/big failed to create"), "{}", refused.out());
    assert!(refused.out().contains(": big is larger than 16 MiB"), "{}", refused.out());
    assert_eq!(fs::metadata(sandbox.path("big")).unwrap().len(), TOO_LARGE);
    // One that is as declared is not replaced.
    sandbox.declare("files: {big: {source: data, adopt: true}}\n");
    fs::File::create(sandbox.path("data")).unwrap().set_len(TOO_LARGE).unwrap();
    let planned = sandbox.ok(&["plan"]);
    assert!(planned.contains("it exists and is adopted") && !planned.contains("warning"), "{planned}");
}

#[test]
fn no_file_is_taken_over_when_too_much_is_kept_already() {
    let sandbox = Sandbox::new("files: {small: {content: ours, adopt: true}}\n");
    sandbox.write("small", "theirs");
    let kept = sandbox.path(".setpoint/run/kept");
    fs::create_dir_all(&kept).unwrap();
    fs::File::create(kept.join("others")).unwrap().set_len(TOO_MUCH).unwrap();
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(
        refused.out().contains("more than 128 MiB are kept already"),
        "{}{}",
        refused.out(),
        refused.err()
    );
    assert_eq!(sandbox.read("small"), "theirs");
}

#[test]
fn a_file_with_an_attribute_that_can_not_be_kept_is_not_rewritten() {
    need!(part::root("a user who may not label files"));
    let sandbox = Sandbox::new("files: {f: {content: old}}\n");
    for path in ["", "site.yaml"] {
        chown(sandbox.path(path), Some(65534), Some(65534)).unwrap();
    }
    // Where the program itself is may be closed to others.
    let program = sandbox.path(".program");
    fs::copy(env!("CARGO_BIN_EXE_setpoint"), &program).unwrap();
    let apply = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program);
        let output = command.args(["apply", "--yes"]).current_dir(sandbox.root()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    assert_eq!(apply().0, Some(0), "{}", apply().1);
    rustix::fs::setxattr(sandbox.path("f"), "security.label", b"theirs", rustix::fs::XattrFlags::empty())
        .unwrap();
    fs::write(sandbox.path("site.yaml"), "name: site\nfiles: {f: {content: new}}\n").unwrap();
    let (code, output) = apply();
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("can't keep the attribute") && output.contains("security.label"), "{output}");
    assert_eq!(sandbox.read("f"), "old");
}

#[test]
fn a_link_that_could_not_be_put_back_as_it_is_is_not_taken_over() {
    let sandbox = Sandbox::new("symlinks: {l: {target: ours, adopt: true}}\n");
    let target = OsStr::from_bytes(b"caf\xe9");
    symlink(target, sandbox.path("l")).unwrap();
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.out().contains("l points to what is not UTF-8"), "{}", refused.out());
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(fs::read_link(sandbox.path("l")).unwrap().as_os_str(), target);
}

#[test]
fn what_is_as_declared_is_taken_over_and_let_go_without_being_rewritten() {
    let sandbox = Sandbox::new(
        "files: {f: {content: theirs, adopt: true}, big: {source: data, adopt: true}}\n\
         symlinks: {l: {target: theirs, adopt: true}}\n",
    );
    sandbox.write("f", "theirs");
    symlink("theirs", sandbox.path("l")).unwrap();
    for file in ["data", "big"] {
        fs::File::create(sandbox.path(file)).unwrap().set_len(TOO_LARGE).unwrap();
    }
    let inodes = || {
        ["f", "big", "l"].map(|path| fs::symlink_metadata(sandbox.path(path)).map(|found| found.ino()).ok())
    };
    let before = inodes();
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(inodes(), before);
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(inodes(), before);
    // Also where it is imported.
    sandbox.ok(&["state", "import", "file.big", "file.f", "symlink.l"]);
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(inodes(), before);
}

#[test]
fn a_large_file_that_was_taken_over_as_it_is_is_not_replaced_later() {
    let sandbox = Sandbox::new("files: {big: {source: data, adopt: true}}\n");
    for file in ["data", "big"] {
        fs::File::create(sandbox.path(file)).unwrap().set_len(TOO_LARGE).unwrap();
    }
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files: {big: {content: ours, adopt: true}}\n");
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.out().contains("16 MiB"), "{}{}", refused.out(), refused.err());
    assert_eq!(fs::metadata(sandbox.path("big")).unwrap().len(), TOO_LARGE);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(fs::metadata(sandbox.path("big")).unwrap().len(), TOO_LARGE);
}

#[test]
fn a_small_file_that_was_taken_over_as_it_is_comes_back_when_it_was_replaced_later() {
    let sandbox = Sandbox::new("files: {f: {content: theirs, adopt: true}}\n");
    sandbox.write("f", "theirs");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files: {f: {content: ours, adopt: true}}\n");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("f"), "ours");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("f"), "theirs");
}

#[test]
fn what_is_kept_stays_where_nothing_more_can_be() {
    need!(part::root("a file system of a given size"));
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}}\n");
    sandbox.write("f", "first");
    let kept = sandbox.path(".setpoint/run/kept");
    fs::create_dir_all(&kept).unwrap();
    let _mounted = Mounted::new(kept.clone(), "64k");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["state", "rm", "file.f"]);
    sandbox.write("f", "second");
    crate::full::fill(&kept.join("filler"));
    let refused = sandbox.run(&["apply", "--yes"]);
    assert_eq!(refused.code(), 1, "{}", refused.out());
    assert!(refused.out().contains("what is there can't be kept"), "{}", refused.out());
    fs::remove_file(kept.join("filler")).unwrap();
    // As it was before somebody wrote there.
    sandbox.write("f", "ours");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("f"), "first");
}

#[test]
fn one_damaged_copy_does_not_hide_the_others() {
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}, g: {content: ours, adopt: true}}\n");
    sandbox.write("f", "of f");
    sandbox.write("g", "of g");
    sandbox.ok(&["apply", "--yes"]);
    let list = sandbox.ok(&["state", "kept"]);
    let damaged = list.lines().find(|line| line.contains("file/f")).unwrap().split(' ').next().unwrap();
    let intact = list.lines().find(|line| line.contains("file/g")).unwrap().split(' ').next().unwrap();
    sandbox.write(&format!(".setpoint/run/kept/{damaged}"), "{");
    let list = sandbox.ok(&["state", "kept"]);
    assert_eq!(list.lines().count(), 2, "{list}");
    let line = list.lines().find(|line| line.starts_with(damaged)).unwrap();
    assert!(line.contains("damaged") && line.contains("the original of file/f"), "{list}");
    assert_eq!(sandbox.ok(&["state", "kept", intact]), "of g");
    let refused = sandbox.run(&["state", "kept", damaged]);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("is damaged"), "{}", refused.err());
    // It is not put back either, and nothing is forgotten.
    let failed = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(failed.code(), 1, "{}", failed.out());
    assert_eq!((sandbox.read("f"), sandbox.read("g")), ("ours".to_owned(), "of g".to_owned()));
}

#[test]
fn an_original_that_is_not_what_was_kept_is_not_put_back() {
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}}\n");
    sandbox.write("f", "theirs");
    sandbox.ok(&["apply", "--yes"]);
    let list = sandbox.ok(&["state", "kept"]);
    let name = list.split(' ').next().unwrap();
    let copy = format!(".setpoint/run/kept/{name}");
    let whole = sandbox.read(&copy);
    // It is as good a copy as any, of something else.
    let (theirs, others) = ("dGhlaXJz", "dGhlaXJ6");
    assert!(whole.contains(theirs), "{whole}");
    sandbox.write(&copy, &whole.replace(theirs, others));
    assert!(sandbox.ok(&["state", "kept"]).contains("damaged"));
    let failed = sandbox.run(&["destroy", "--yes"]);
    assert_eq!(failed.code(), 1, "{}", failed.out());
    assert!(failed.out().contains("is damaged") && failed.out().contains(name), "{}", failed.out());
    assert_eq!(sandbox.read("f"), "ours");
    // Nothing is forgotten.
    sandbox.write(&copy, &whole);
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.read("f"), "theirs");
}

#[test]
fn attributes_are_kept_where_there_is_no_proc() {
    need!(part::root("a namespace of mounts"));
    let sandbox = Sandbox::new("files: {f: {content: old}}\n");
    sandbox.ok(&["apply", "--yes"]);
    let path = sandbox.path("f");
    need!(set_attribute(&path, "trusted.mark", b"precious"));
    sandbox.declare("files: {f: {content: new}}\n");
    let script = "umount -l /proc && test ! -e /proc/self && exec \"$0\" apply --yes";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_setpoint")]);
    let output = command.current_dir(sandbox.root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sandbox.read("f"), "new");
    let mut found = vec![0; 64];
    let length = rustix::fs::getxattr(&path, "trusted.mark", &mut found).unwrap();
    assert_eq!(&found[..length], b"precious");
}

#[test]
fn the_permissions_of_a_file_do_not_change_under_its_other_names() {
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode() & 0o777;
    let closed = |path: &std::path::Path| {
        fs::write(path, "secret\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    for adopt in ["", ", adopt: true"] {
        let sandbox =
            Sandbox::new(&format!("files: {{g: {{content: \"secret\\n\", mode: '0644'{adopt}}}}}\n"));
        let outside = tempfile::tempdir_in(sandbox.root().parent().unwrap()).unwrap();
        let key = outside.path().join("key");
        if adopt.is_empty() {
            sandbox.ok(&["apply", "--yes"]);
            fs::remove_file(sandbox.path("g")).unwrap();
        }
        closed(&key);
        fs::hard_link(&key, sandbox.path("g")).unwrap();
        let ran = sandbox.run(&["apply", "--yes"]);
        assert_eq!(ran.code(), 0, "{}{}", ran.out(), ran.err());
        assert!(ran.err().contains("g has another name, a hard link"), "{}", ran.err());
        assert_eq!((mode(&key), mode(&sandbox.path("g"))), (0o600, 0o644));
        sandbox.ok(&["destroy", "--yes"]);
        assert_eq!((mode(&key), fs::read_to_string(&key).unwrap().as_str()), (0o600, "secret\n"));
    }
}

#[test]
fn what_was_taken_over_and_is_gone_is_not_said_to_be_left_of_a_failure() {
    let sandbox = Sandbox::new("files: {c: {content: ours, adopt: true}, z: {content: z}}\n");
    sandbox.write("c", "theirs");
    sandbox.ok(&["apply", "--yes"]);
    fs::remove_file(sandbox.path("c")).unwrap();
    sandbox.declare("files: {z: {content: z}}\n");
    let plan = sandbox.ok(&["plan"]);
    assert!(plan.contains("it is not intended any more"), "{plan}");
    assert!(!plan.contains("failed operation"), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.read("c"), "theirs");
}
