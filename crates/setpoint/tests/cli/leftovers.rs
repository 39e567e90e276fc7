//! What must not be left: changes that were put off, copies of what is back in its place, half-renamed items, and a database that
//! is damaged beside a good copy.

use std::fs;

use nix::sys::signal::Signal;
use setpoint_testutils::{need, part};

use crate::failed::Immutable;
use crate::sandbox::{Sandbox, eventually};

/// The names of what is kept.
fn kept(sandbox: &Sandbox) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path(".setpoint/run/kept")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_waited_for_something_that_failed_and_then_succeeded_in_the_same_run_is_done_by_it() {
    need!(part::root("what can't be changed"));
    let sandbox = Sandbox::new(
        "directories: {a: {path: a}, b: {path: b}}\n\
         files:\n  fa: {path: a/f, content: fa1}\n  fb: {path: b/f, content: fb1}\n\
         symlinks: {l1: {path: l1, target: a/f}}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare(
        "directories: {a: {path: b}, b: {path: a}}\n\
         files:\n  fa: {path: b/f, content: fa2}\n  fb: {path: a/f, content: fb1}\n\
         commands: {slow: {apply: 'until grep -q \"file/fa failed\" .log || ! test -e site.yaml; do sleep 0.05; done; chattr -i a/f', undo: 'true'}}\n\
         symlinks: {l1: {path: n/l1, target: a/f}}\n",
    );
    let immutable = need!(Immutable::new(&sandbox.path("a/f")));
    let mut applying = sandbox.start(&["apply", "--yes"]);
    applying.until("! file/fa failed");
    let code = applying.wait();
    drop(immutable);
    let plan = sandbox.ok(&["plan"]);
    let is_done = plan == "site: nothing to do.\n";
    assert_eq!(code == 0, is_done, "{}\n{plan}", applying.log());
    if is_done {
        assert!(sandbox.path("n/l1").is_symlink());
    }
}

#[test]
fn an_item_whose_creation_was_cut_off_gets_another_name_with_all_that_is_known_of_it() {
    let sandbox = Sandbox::new(
        "commands: {x: {apply: 'touch made; kill -9 $PPID; sleep 1', undo: 'rm made'}}\n\
         files: {f: {content: one, after: [command.x]}}\n",
    );
    // It ends by a signal.
    let ended = sandbox.command(&["apply", "--yes"]).output().unwrap();
    assert_eq!(ended.status.code(), None);
    sandbox.ok(&["state", "mv", "command.x", "command.y"]);
    assert!(sandbox.ok(&["state", "list"]).contains("command/y"), "{}", sandbox.ok(&["state", "list"]));
    sandbox.declare("");
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("made").exists());
}

#[test]
fn a_copy_of_what_is_back_in_its_place_that_can_not_be_removed_is_named_and_removed_by_the_next_run() {
    need!(part::root("what can't be changed"));
    let sandbox = Sandbox::new("files: {f: {content: ours, adopt: true}}\n");
    sandbox.write("f", "theirs");
    sandbox.ok(&["apply", "--yes"]);
    let copy = sandbox.path(".setpoint/run/kept").join(&kept(&sandbox)[0]);
    let immutable = need!(Immutable::new(&copy));
    let ended = sandbox.run(&["destroy", "--yes"]);
    drop(immutable);
    assert_eq!(ended.code(), 1, "{}{}", ended.out(), ended.err());
    assert!(ended.out().contains("is not needed any more"), "{}", ended.out());
    assert_eq!(sandbox.read("f"), "theirs");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!((sandbox.read("f").as_str(), kept(&sandbox)), ("theirs", Vec::new()));
}

#[test]
fn a_copy_of_what_is_back_in_its_place_is_removed_by_the_next_run_where_one_was_killed_before_it_could() {
    let sandbox = Sandbox::new(
        "files: {f: {content: ours, adopt: true}}\n\
         commands: {c: {apply: 'true', undo: 'test -e .killed || { until grep -q theirs f || ! test -e site.yaml; do sleep 0.05; done; touch .killed; kill -9 $PPID; sleep 1; }'}}\n",
    );
    sandbox.write("f", "theirs");
    sandbox.ok(&["apply", "--yes"]);
    let copy = sandbox.path(".setpoint/run/kept").join(&kept(&sandbox)[0]);
    let bytes = fs::read(&copy).unwrap();
    let ended = sandbox.command(&["destroy", "--yes"]).output().unwrap();
    assert_eq!(ended.status.code(), None, "it was killed");
    assert_eq!(sandbox.read("f"), "theirs");
    // As it was right before that.
    fs::write(&copy, bytes).unwrap();
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!((sandbox.read("f").as_str(), kept(&sandbox)), ("theirs", Vec::new()));
}

#[test]
fn a_database_with_one_wrong_bit_is_damaged_and_its_copy_is_used() {
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    sandbox.ok(&["apply", "--yes"]);
    let database = sandbox.path(".setpoint/state.redb");
    let mut bytes = fs::read(&database).unwrap();
    // The type of a table's keys.
    let at = bytes.windows(4).position(|window| window == b"&str").unwrap();
    bytes[at] ^= 2;
    fs::write(&database, bytes).unwrap();
    let plan = sandbox.run(&["plan"]);
    assert_eq!((plan.code(), plan.out().as_str()), (0, "site: nothing to do.\n"), "{}", plan.err());
    assert!(plan.err().contains("what it held when it was last copied is used instead"), "{}", plan.err());
    sandbox.ok(&["destroy", "--yes"]);
    assert!(!sandbox.path("f").exists());
}

#[test]
fn what_a_killed_run_has_left_is_remembered_until_it_can_be_removed() {
    need!(part::root("what can't be changed"));
    let sandbox = Sandbox::new("root: r\nfiles: {c: {source: large}}\n");
    fs::create_dir(sandbox.path("r")).unwrap();
    fs::File::create(sandbox.path("large")).unwrap().set_len(256 << 20).unwrap();
    let left = || {
        let names = fs::read_dir(sandbox.path("r")).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect::<Vec<String>>()
    };
    let mut applying = sandbox.start(&["apply", "--yes"]);
    eventually("it is being written", || !left().is_empty());
    applying.signal(Signal::SIGKILL);
    let _ = applying.child.wait();
    let temporary = left().remove(0);
    assert!(temporary.starts_with(".setpoint-"), "{temporary} was done before the run could be killed");
    sandbox.declare("root: r\nfiles: {}\n");
    let immutable = need!(Immutable::new(&sandbox.path("r")));
    for _ in 0..2 {
        let ran = sandbox.run(&["apply", "--yes"]);
        assert_eq!(ran.code(), 1, "{}{}", ran.out(), ran.err());
        let why = format!("file/c: can't remove {temporary}: the root is marked as not to be changed");
        assert!(ran.err().contains(&why), "{}", ran.err());
    }
    drop(immutable);
    assert_eq!(left(), [temporary]);
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(left(), [""; 0]);
    let ran = sandbox.run(&["destroy", "--yes"]);
    assert_eq!((ran.code(), ran.err().as_str()), (0, ""));
}
